#!/usr/bin/python3
"""The training cells of the scaling study with PyTorch's DistributedDataParallel over gloo. As bench_training: the model,
the samples, the schedule of the rate, and steps of at least --step-ms.

  mpiexec -n 4 bench/scaling/ddp_training.py [--model mlp:512-256] [--samples N] [--epochs N] [--step-ms 40] [--json FILE]

What is left of a step is slept: a third before the forward pass, the rest in equal parts before the backward pass of each
layer. So DDP reduces the gradients of a layer beside the backward pass of the next. MASTER_ADDR is the host of rank 0.
"""
import argparse
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

from ddp import Sleep  # first: it sets what PyTorch reads from the environment
from ddp_epochs import DATA, gray, rate_at, tested
import models
import torch
from torch.nn.parallel import DistributedDataParallel

SHARE_OF_FORWARD = 1 / 3


class Pause(torch.nn.Module):
    """The identity. Its backward pass takes `seconds`."""

    def __init__(self):
        super().__init__()
        self.seconds = 0.0

    def forward(self, value):
        return Sleep.apply(value, self.seconds)


def network(widths):
    """Dense layers with a pause after each of them."""
    layers, pauses, before = [torch.nn.Flatten()], [], 784
    for index, after in enumerate([*widths, 10]):
        pauses.append(Pause())
        layers += [torch.nn.Linear(before, after), pauses[-1]]
        if index < len(widths):
            layers.append(torch.nn.ReLU())
        before = after
    return models.initialize(torch.nn.Sequential(*layers)), pauses


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mlp:512-256", help="mlp:WIDTH-WIDTH...")
    parser.add_argument("--data", default=DATA, help="four IDX files of Fashion-MNIST, .gz")
    parser.add_argument("--samples", type=int, default=12800)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--step-ms", type=float, default=40)
    parser.add_argument("--slow", type=float, default=1, help="how many times as slow the last worker is")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--curve", action="store_true", help="a row for each epoch")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def main():
    options = read_options()
    rank, workers = int(os.environ.get("PMI_RANK", 0)), int(os.environ.get("PMI_SIZE", 1))
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=workers)
    inputs, labels = gray(options.data, "train", options.samples)
    tests = gray(options.data, "t10k") if rank == 0 else None
    net, pauses = network([int(width) for width in options.model.removeprefix("mlp:").split("-")])
    model = DistributedDataParallel(net, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=options.lr, momentum=options.momentum)
    step_s = options.step_ms / 1e3 * (options.slow if rank == workers - 1 else 1)
    steps = len(labels) // workers // options.batch_size

    def step(chosen, computing_s):
        """`computing_s`: how long the step before computed, without pauses and exchange. Returns that of this step."""
        left_s = max(0.0, step_s - computing_s)
        for pause in pauses:
            pause.seconds = left_s * (1 - SHARE_OF_FORWARD) / len(pauses)
        time.sleep(left_s * SHARE_OF_FORWARD)
        optimizer.zero_grad()
        began = time.monotonic()
        loss = torch.nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
        forward_s = time.monotonic() - began
        loss.backward()
        optimizer.step()
        return 3 * forward_s  # a backward pass takes about two forward ones

    rows, elapsed_s, computing_s = [], 0.0, 0.0
    torch.distributed.barrier()
    for epoch in range(options.epochs):
        order = torch.randperm(len(labels))[rank::workers]  # of one seed: the same on all ranks
        began = time.monotonic()
        for index in range(steps):
            optimizer.param_groups[0]["lr"] = rate_at(epoch + (index + 0.5) / steps, options)
            computing_s = step(order[index * options.batch_size:(index + 1) * options.batch_size], computing_s)
        torch.distributed.barrier()
        elapsed_s += time.monotonic() - began
        if rank == 0:
            rows.append({"method": "DDP", "workers": workers, "epoch": epoch + 1, "seconds": elapsed_s,
                         "test_accuracy_mean_model": tested(net, *tests)["test_accuracy"]})
        torch.distributed.barrier()
    if rank == 0 and options.json:
        options.json.write_text(json.dumps({"rows": rows if options.curve else rows[-1:]}))
    torch.distributed.barrier()


if __name__ == "__main__":
    main()
