#!/usr/bin/env python3
"""What a round costs in Python: LeNet of PyTorch with a round around its step, against the bare step. And the time of
importing the package.   Run it in the environment of the package, on an idle machine:

  python bench/python_step.py                      one worker
  mpiexec -n 2 python bench/python_step.py         two workers, each on a core of its own
  python bench/python_step.py --import             the time of importing the package, without a framework

Steps with and without a round alternate in blocks, in an order that changes, so that both see the same disturbances.
Prints the ratio of each pair of blocks: the median, and the middle half.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
BATCH = 32


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--import", dest="imports", action="store_true", help="measure the import instead")
    parser.add_argument("--pairs", type=int, default=60, help="pairs of blocks")
    parser.add_argument("--steps", type=int, default=20, help="steps of a block")
    return parser.parse_args()


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.4f} ({low:.4f} to {high:.4f})"


def import_times(repeats=15):
    """Seconds beyond those of an interpreter that imports nothing, and of one that imports NumPy."""
    def seconds(code):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - began

    seconds("import fast_decentralized")
    for base in ("pass", "import numpy"):
        times = [seconds(f"{base}; import fast_decentralized") - seconds(base) for _ in range(repeats)]
        print(f"import beyond \"{base}\": {quartiles(times)} s")


class Trial:
    """Steps of the same network with and without a round."""

    def __init__(self):
        import fast_decentralized as fast
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.torch = torch
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(6, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
            torch.nn.Linear(400, 120), torch.nn.ReLU(), torch.nn.Linear(120, 84), torch.nn.ReLU(),
            torch.nn.Linear(84, 10))
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.001, momentum=0.9)
        self.x, self.y = torch.randn(BATCH, 1, 28, 28), torch.arange(BATCH) % 10
        self.worker = fast.Worker(self.net, "complete")

    def step(self):
        self.optimizer.zero_grad()
        self.torch.nn.functional.cross_entropy(self.net(self.x), self.y).backward()
        self.optimizer.step()

    def round(self):
        with self.worker.round():
            self.step()

    @staticmethod
    def seconds(work, steps):
        began = time.perf_counter()
        for _ in range(steps):
            work()
        return (time.perf_counter() - began) / steps

    def ratios(self, pairs, steps):
        """Workers meet before each block without rounds: at staleness 0 the others would wait for one that is slow."""
        import fast_decentralized as fast

        both = [self.step, self.round]
        for work in both:
            self.seconds(work, steps)
        found = []
        for pair in range(pairs):
            times = {}
            for work in both if pair % 2 == 0 else both[::-1]:
                fast.world().barrier()
                times[work.__name__] = self.seconds(work, steps)
            found.append((times["round"] / times["step"], times["step"]))
        return found


def main():
    options = parsed()
    if options.imports:
        return import_times()
    trial = Trial()
    found = trial.ratios(options.pairs, options.steps)
    if trial.worker.rank == 0:
        print(f"{trial.worker.size} workers, batch {BATCH}, {options.pairs} pairs of {options.steps} steps")
        print(f"a step alone: {quartiles([1e3 * step for _, step in found])} ms")
        print(f"with a round / alone: {quartiles([ratio for ratio, _ in found])}")


if __name__ == "__main__":
    main()
