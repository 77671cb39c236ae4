#!/usr/bin/python3
"""A cell of the scaling study with PyTorch's DistributedDataParallel over gloo: steps are paced as those of bench_scaling.

  mpiexec -n 4 bench/scaling/ddp.py [--mb 2] [--step-ms 40] [--rounds 40] [--json FILE]

A third of a step is forward, the rest backward, in eight layers of equal size. So DDP reduces the gradients of one layer
beside the backward of the next, in buckets of 1 MB. MASTER_ADDR is the host of rank 0 (127.0.0.1).
"""
import argparse
import json
import math
import os
import pathlib
import random
import time

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29533")

import torch
from torch.nn.parallel import DistributedDataParallel

LAYERS = 8


class Sleep(torch.autograd.Function):
    """The identity, whose backward takes some time."""

    @staticmethod
    def forward(ctx, value, seconds):
        ctx.seconds = seconds
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.seconds)
        return gradient, None


class Paced(torch.nn.Module):
    def __init__(self, elements, step_s):
        super().__init__()
        self.step_s = step_s
        self.layers = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(elements // LAYERS)) for _ in range(LAYERS))

    def forward(self, value):
        time.sleep(self.step_s / 3)
        for layer in self.layers:
            value = Sleep.apply(value, self.step_s * 2 / 3 / LAYERS) + layer.mean()
        return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=2)
    parser.add_argument("--step-ms", type=float, default=40)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--jitter", type=float, default=0, help="of the steps, lognormal: deviation / mean")
    parser.add_argument("--slow", type=float, default=1, help="how many times as slow the last worker is")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--alone", action="store_true", help="without an exchange")
    options = parser.parse_args()
    rank, workers = int(os.environ.get("PMI_RANK", 0)), int(os.environ.get("PMI_SIZE", 1))
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=workers)
    model = Paced(int(options.mb * 1e6 / 4), options.step_ms / 1e3)
    trained = model if options.alone else DistributedDataParallel(model, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    value = torch.ones(1)

    draw, spread = random.Random(rank), math.sqrt(math.log(1 + options.jitter**2))

    def step():
        factor = math.exp(draw.gauss(-spread**2 / 2, spread)) if spread else 1
        model.step_s = options.step_ms / 1e3 * factor * (options.slow if rank == workers - 1 else 1)
        optimizer.zero_grad()
        trained(value).sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    torch.distributed.barrier()
    began = time.monotonic()
    for _ in range(options.rounds):
        step()
    counts = options.slow == 1 or rank < workers - 1  # the slow worker apart
    own = torch.tensor([(time.monotonic() - began) / options.rounds * 1e3, 1.0]) * counts
    torch.distributed.all_reduce(own)
    if rank == 0 and options.json:
        name = "none (torch)" if options.alone else "DDP"
        row = {"method": name, "workers": workers, "mb": options.mb, "step_ms": options.step_ms, "round_ms": (own[0] / own[1]).item()}
        options.json.write_text(json.dumps({"rows": [row]}))
    torch.distributed.barrier()


if __name__ == "__main__":
    main()
