#!/usr/bin/env python3
"""Accuracy over epochs of LeNet-5 on Fashion-MNIST with PyTorch's DistributedDataParallel over gloo.

  bench/peers/ddp_epochs.py --out DIR --summary-json FILE [--ranks 4] [--samples N] [--epochs N] [--batch-size N] [--lr R]
                            [--seed N]

One thread a rank. SGD with momentum 0.9, an epoch of warm-up, then a cosine schedule, as fast-train. Writes the lines of
metrics and the keys of the summary that bench/runs.py reads.
"""
import argparse
import json
import math
import os
import pathlib
import tempfile

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import models
from ddp_gloo import read


def part(name, count=None):
    images = torch.from_numpy(read(f"{name}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)[:count].copy())
    return (images.float() / 255 - 0.286) / 0.353, torch.from_numpy(read(f"{name}-labels-idx1-ubyte", 8)[:count].astype(np.int64))


def rate_at(done, options):
    """fast-train's: a linear rise, then half a cosine."""
    warmup = min(1, options.epochs / 4)
    if done < warmup:
        return options.lr * done / warmup
    return options.lr * (1 + math.cos(math.pi * (done - warmup) / (options.epochs - warmup))) / 2


def train(rank, options, rendezvous):
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=options.ranks)
    inputs, labels = part("train", options.samples or None)
    net = models.lenet()
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=options.lr, momentum=0.9)
    steps = len(labels) // (options.ranks * options.batch_size)
    tests = part("t10k") if rank == 0 else None
    lines = []
    for epoch in range(options.epochs):
        order = torch.randperm(len(labels))[rank::options.ranks]  # of one seed: the same on all ranks
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate_at(epoch + step / steps, options)
            chosen = order[step * options.batch_size:(step + 1) * options.batch_size]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen]).backward()
            optimizer.step()
        if rank == 0:
            with torch.no_grad():
                accuracy = (net(tests[0]).argmax(1) == tests[1]).float().mean().item()
            lines.append({"kind": "epoch", "epoch": epoch + 1, "test_accuracy": accuracy, "test_samples": len(tests[1])})
        dist.barrier()
    if rank == 0:
        (options.out / "metrics").mkdir(parents=True, exist_ok=True)
        (options.out / "metrics" / "0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        options.summary_json.write_text(json.dumps({"rounds": steps * options.epochs, "epochs": options.epochs}))
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--summary-json", type=pathlib.Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        mp.start_processes(train, (options, f"file://{directory}/rendezvous"), options.ranks, start_method="spawn")


if __name__ == "__main__":
    main()
