#!/usr/bin/env python3
"""Accuracy over epochs on Fashion-MNIST with PyTorch's DistributedDataParallel over gloo.

  bench/peers/ddp_epochs.py --out DIR --summary-json FILE [--model lenet|lstm|resnet20] [--ranks 4] [--samples N] [--epochs N]
                            [--batch-size N] [--lr R] [--seed N] [--data DIR]

One thread a rank. As fast-train: the model and the distribution of its initial weights, SGD with momentum 0.9, an epoch of
warm-up, then a cosine schedule, samples shuffled anew in each epoch. Writes the lines of metrics and the keys of the summary
that bench/runs.py reads; each rank tests a part of the test images.
"""
import argparse
import datetime
import functools
import json
import math
import os
import pathlib
import sys
import tempfile

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import models
from ddp_gloo import DATA, read

MODELS = {"lenet": models.lenet, "lstm": models.lstm, "resnet20": functools.partial(models.resnet20, channels=1)}
COLOR = {"resnet20": models.resnet20}
DEADLINE = datetime.timedelta(minutes=3)  # of each exchange
TEST_BATCH = 250


def gray(folder, name, count=None):
    """Images and labels of "train" or "t10k"."""
    images = torch.from_numpy(read(f"{name}-images-idx3-ubyte", 16, folder).reshape(-1, 1, 28, 28)[:count].copy())
    labels = torch.from_numpy(read(f"{name}-labels-idx1-ubyte", 8, folder)[:count].astype(np.int64))
    return (images.float() / 255 - 0.286) / 0.353, labels


def color(folder, files, count=None):
    """Images (0 to 1) and labels of binary files of CIFAR-10."""
    records = np.concatenate([np.fromfile(folder / name, np.uint8).reshape(-1, 1 + 3 * 32 * 32) for name in files])[:count]
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()).float() / 255
    return images, torch.from_numpy(records[:, 0].astype(np.int64))


def sets(folder, count=None):
    """Images and labels for training (the first `count`) and for the test, scaled as fast-train does."""
    folder = pathlib.Path(folder)
    if not (folder / "test_batch.bin").exists():
        return gray(folder, "train", count), gray(folder, "t10k")
    (images, labels), (tests, test_labels) = (color(folder, [f"data_batch_{n}.bin" for n in range(1, 6)], count),
                                              color(folder, ["test_batch.bin"]))
    mean, deviation = images.mean((0, 2, 3), keepdim=True), images.std((0, 2, 3), keepdim=True)
    return ((images - mean) / deviation, labels), ((tests - mean) / deviation, test_labels)


def rate_at(done, options):
    """fast-train's: a linear rise, then half a cosine. `done`: epochs."""
    warmup = min(1, options.epochs / 4)
    if done < warmup:
        return options.lr * done / warmup
    return options.lr * (1 + math.cos(math.pi * (done - warmup) / (options.epochs - warmup))) / 2


def tested(net, inputs, labels):
    net.eval()
    with torch.no_grad():
        outputs = torch.cat([net(batch) for batch in inputs.split(TEST_BATCH)])
    net.train()
    return {"test_accuracy": (outputs.argmax(1) == labels).float().mean().item(),
            "test_loss": torch.nn.functional.cross_entropy(outputs, labels).item(), "test_samples": len(labels)}


def train(rank, options, rendezvous, samples, tests):
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=options.ranks, timeout=DEADLINE)
    inputs, labels = samples
    net = models.initialize((MODELS if inputs.shape[1] == 1 else COLOR)[options.model]())
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=options.lr, momentum=0.9)
    steps = len(labels) // options.ranks // options.batch_size
    lines = []
    for epoch in range(options.epochs):
        order = torch.randperm(len(labels))[rank::options.ranks]  # of one seed: the same on all ranks
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate_at(epoch + (step + 0.5) / steps, options)
            chosen = order[step * options.batch_size:(step + 1) * options.batch_size]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen]).backward()
            optimizer.step()
        own = [each[rank::options.ranks] for each in tests]
        lines.append({"kind": "epoch", "epoch": epoch + 1, "step": (epoch + 1) * steps, **tested(net, *own)})
        dist.barrier()
    (options.out / "metrics" / f"{rank}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    dist.barrier()
    if rank == 0:
        options.summary_json.write_text(json.dumps({"rounds": steps * options.epochs, "epochs": options.epochs}))
    dist.destroy_process_group()


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(MODELS), default="lenet")
    parser.add_argument("--data", default=DATA, help="four IDX files of Fashion-MNIST, .gz, or the binary files of CIFAR-10")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--summary-json", type=pathlib.Path, required=True)
    return parser.parse_args()


def main():
    options = read_options()
    try:
        samples, tests = sets(options.data, options.samples or None)
    except OSError as error:
        sys.exit(f"ddp_epochs.py: {error}; apt-get install dataset-fashion-mnist")
    if samples[0].shape[1] != 1 and options.model not in COLOR:
        sys.exit(f"ddp_epochs.py: {options.model} takes images of one channel; for color images there is resnet20")
    if len(samples[1]) < options.ranks * options.batch_size or len(tests[1]) < options.ranks:
        sys.exit(f"ddp_epochs.py: {len(samples[1])} samples and {len(tests[1])} for the test; {options.ranks} ranks need "
                 f"{options.ranks * options.batch_size} and {options.ranks} at least")
    (options.out / "metrics").mkdir(parents=True, exist_ok=True)
    for old in (options.out / "metrics").glob("*.jsonl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as directory:
        # Forked processes share PyTorch and the samples: an import takes seconds.
        mp.start_processes(train, (options, f"file://{directory}/rendezvous", samples, tests), options.ranks,
                           start_method="fork")


if __name__ == "__main__":
    main()
