#!/usr/bin/env python3
"""What to do beside a slow worker, in virtual time: the accuracy of the mean model when the time is over.

  bench/stragglers.py [--slow TIMES] [--epochs N] [--seeds N] [--first-seed N] [--runs DIR] [--out FILE] [WAY ...]

8 workers train LeNet-5 on Fashion-MNIST, batches of 64, SGD with momentum 0.9. A step of worker 3 takes TIMES (4) as long as
one of the others. The time of all ways is that of N (4) epochs of the all-reduce. The learning rate is 0.05: a tenth of
the time warm-up, then a cosine. Every worker has an eighth of the samples. The weights are combined by `awc` of
fast_decentralized on a ring (see bench/asynchronous.py on virtual time). Runs that are in DIR are not repeated.
"""
import argparse
import gzip
import json
import math
import pathlib
import statistics

import asynchronous  # first: it keeps PyTorch to one thread
import numpy as np
import torch
from torch import nn
from torch.nn import functional

WORKERS, BATCH, PEAK, SLOW = 8, 64, .05, 3
RING = [[(abs(i - j) % (WORKERS - 2) == 1) / 3 for j in range(WORKERS)] for i in range(WORKERS)]
WAYS = {"allreduce": "all-reduce", "epochs": "`awc`, staleness inf, as many epochs", "inf": "`awc`, staleness inf",
        "fair": "the same, weights by speed", "balance": "`awc`, staleness 0, batches by speed",
        "allreduce-balance": "all-reduce, batches by speed"}


def images(folder, part):
    def read(name, header):
        return np.frombuffer(gzip.decompress((folder / f"{part}-{name}-ubyte.gz").read_bytes()), np.uint8, offset=header)

    x = torch.from_numpy(read("images-idx3", 16).astype(np.float32) / 255).reshape(-1, 1, 28, 28)
    return x, torch.from_numpy(read("labels-idx1", 8).astype(np.int64))


def network():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def rate(share):
    """At this share of the time."""
    return PEAK * min(1, 10 * share) * .5 * (1 + math.cos(math.pi * max(0, share - .1) / .9))


class Learner:
    """One worker's part of the samples, its replica and its optimizer."""

    def __init__(self, data, seed, rank, batch):
        (x, y), size = data, len(data[0]) // WORKERS
        order = np.random.RandomState(seed).permutation(len(x))[rank * size:(rank + 1) * size]
        self.x, self.y, self.batch = x[order], y[order], batch
        self.drawn, self.order = np.random.RandomState(1000 * seed + rank), []
        torch.manual_seed(seed)
        self.model = network()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=PEAK, momentum=.9)

    def gradients(self):
        if len(self.order) < self.batch:
            self.order = self.drawn.permutation(len(self.x))
        now, self.order = self.order[:self.batch], self.order[self.batch:]
        self.optimizer.zero_grad()
        functional.cross_entropy(self.model(self.x[now]), self.y[now]).backward()

    def learn(self, share):
        self.optimizer.param_groups[0]["lr"] = rate(share) * self.batch / BATCH  # each sample counts alike
        self.gradients()
        self.optimizer.step()


def all_reduce(data, seed, batches, rounds):
    """Replicas that stay equal: one of them."""
    learners = [Learner(data, seed, rank, batch) for rank, batch in enumerate(batches)]
    for step in range(rounds):
        for one in learners:
            one.gradients()
        with torch.no_grad():
            for parts in zip(*(one.model.parameters() for one in learners)):
                mean = sum(p.grad * one.batch for p, one in zip(parts, learners)) / sum(batches)
                for p in parts:
                    p.grad.copy_(mean)
        for one in learners:
            one.optimizer.param_groups[0]["lr"] = rate(step / rounds)
            one.optimizer.step()
    return learners[0].model.state_dict()


def combined(data, seed, batches, topology, times=None, time=None, rounds=None):
    """With `times` of a step, workers do not wait. They end when `time` is over, or after so many rounds."""
    import fast_decentralized as fast

    turns, staleness = asynchronous.Turns(WORKERS), 0 if times is None else "inf"
    learners = [Learner(data, seed, rank, batch) for rank, batch in enumerate(batches)]

    def work():
        rank = fast.rank()
        one = learners[rank]
        worker = fast.Worker(one.model, topology, staleness=staleness, deadline=1e5, failure_timeout=1e5, log=lambda *_: None)
        if times is None:
            for step in range(rounds):
                worker.step(one.learn, step / rounds)
        else:
            count = min(rounds or math.inf, int(time / times[rank]))
            for step in range(count):
                turns.wait(rank, (step + 1) * times[rank])
                worker.step(one.learn, step / count)
            turns.end()
        worker.await_finish()
        mean = worker.mean_model()
        worker.close()
        return mean

    return fast.local.run(WORKERS, work)[0]


def accuracy(weights, data):
    model = network()
    model.load_state_dict(weights)
    parts = zip(*(values.split(1000) for values in data))
    with torch.no_grad():
        return 100 * sum((model(x).argmax(1) == y).sum().item() for x, y in parts) / len(data[0])


def trained(way, data, seed, slow, epochs):
    times = [slow if rank == SLOW else 1 for rank in range(WORKERS)]
    rounds = epochs * (len(data[0]) // (WORKERS * BATCH))
    time, even = rounds * slow, [BATCH] * WORKERS
    speeds = sum(1 / t for t in times)
    parts = [round(WORKERS * BATCH / t / speeds) for t in times]
    balanced_rounds = int(time / max(b / BATCH * t for b, t in zip(parts, times)))
    return {"allreduce": lambda: all_reduce(data, seed, even, rounds),
            "allreduce-balance": lambda: all_reduce(data, seed, parts, balanced_rounds),
            "balance": lambda: combined(data, seed, parts, "ring", rounds=balanced_rounds),
            "epochs": lambda: combined(data, seed, even, "ring", times, time, rounds),
            "inf": lambda: combined(data, seed, even, "ring", times, time),
            "fair": lambda: combined(data, seed, even, asynchronous.fair(RING, times), times, time)}[way]()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="WAY", default=list(WAYS), help=", ".join(WAYS))
    parser.add_argument("--slow", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("build/stragglers"))
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    learned, tested = images(arguments.data, "train"), images(arguments.data, "t10k")
    lines = ["| way | accuracy of the mean model, % |", "|---|---|"]
    arguments.runs.mkdir(parents=True, exist_ok=True)
    for way in arguments.ways:
        found = []
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            file = arguments.runs / f"{way}-{arguments.slow}-{arguments.epochs}-{seed}.json"
            if not file.exists():
                file.write_text(json.dumps(accuracy(trained(way, learned, seed, arguments.slow, arguments.epochs), tested)))
            found.append(json.loads(file.read_text()))
            print(way, seed, found[-1], flush=True)
        lines.append(f"| {WAYS[way]} | {statistics.mean(found):.2f} ({min(found):.2f} - {max(found):.2f}) |")
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
