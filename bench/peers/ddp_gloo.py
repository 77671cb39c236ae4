#!/usr/bin/env python3
"""LeNet-5 on Fashion-MNIST with PyTorch's own DistributedDataParallel over gloo, or with each rank alone.

  bench/peers/ddp_gloo.py --ranks 4 [--steps 200] [--batch 64] [--alone] [--json FILE]

One thread a rank, SGD with momentum 0.9, batches gathered from images in memory. Prints total samples/s of the timed
steps, from the first rank's start to the last one's end.
"""
import argparse
import gzip
import json
import os
import tempfile
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import models

DATA = "/usr/share/datasets/fashion-mnist"


def read(name, offset, folder=DATA):
    with gzip.open(f"{folder}/{name}.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


def train(rank, options, rendezvous, results):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=options.ranks)
    images = torch.from_numpy(read("train-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28).copy())
    labels = torch.from_numpy(read("train-labels-idx1-ubyte", 8).astype(np.int64))
    net = models.lenet()
    model = net if options.alone else torch.nn.parallel.DistributedDataParallel(
        net, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    order = torch.randperm(len(labels))[rank::options.ranks]

    def step(i):
        first = i * options.batch % (len(order) - options.batch)
        chosen = order[first:first + options.batch]
        inputs = (images[chosen].float() / 255 - 0.286) / 0.353
        optimizer.zero_grad(set_to_none=options.alone)
        loss = torch.nn.functional.cross_entropy(model(inputs), labels[chosen])
        loss.backward()
        optimizer.step()
        return loss.item()

    for i in range(20):
        step(i)
    dist.barrier()
    began = time.monotonic()
    for i in range(options.steps):
        loss = step(20 + i)
    results.put((began, time.monotonic(), loss))
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--alone", action="store_true", help="no exchange at all: the control")
    parser.add_argument("--json")
    options = parser.parse_args()
    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as directory:
        mp.start_processes(train, (options, f"file://{directory}/rendezvous", results), options.ranks,
                           start_method="spawn")
    times = [results.get() for _ in range(options.ranks)]
    seconds = max(end for _, end, _ in times) - min(begin for begin, _, _ in times)
    rate = options.ranks * options.steps * options.batch / seconds
    print(f"{'alone' if options.alone else 'ddp'}, {options.ranks} ranks: {rate:.0f} samples/s, last loss {times[0][2]:.3f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"samples_per_second": rate, "ranks": options.ranks, "alone": options.alone}, file)


if __name__ == "__main__":
    main()
