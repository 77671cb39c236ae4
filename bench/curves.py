#!/usr/bin/python3
"""Accuracy over epochs by number of workers: trains on Fashion-MNIST with 1 to 16 workers on a ring, a torus, with one peer
a round, with an all-reduce and by PyTorch's DistributedDataParallel, and writes tables, pictures and the figures as JSON.

  bench/curves.py [--models lenet lstm resnet20] [--workers 1 2 4 8 16] [--exchanges ring all-reduce ...] [--samples N]
                  [--epochs N] [--seeds N] [--one-seed EXCHANGE...] [--runs DIR] [--out DIR] [--rounds DIR]
                  [--test-samples N] [--colored]

Workers are threads (--exchange local): the accuracy of synchronous rounds does not depend on the load of the machine. The
exchange ddp is processes with gloo (bench/peers/ddp_epochs.py); it is left out where torch is missing. Runs that are in DIR
are not repeated; with --known, tables and pictures show these alone.

With --colored, images are 32x32 with three channels, in the files of CIFAR-10 (studies/colored.py).

The learning rate of N workers is that of one worker times N to the power of --lr-power. A model with several rates gets the
one with which one worker is best after a quarter of the epochs, with seed 100.

The time to an accuracy is the epochs to it, times the seconds of an epoch. These come from rounds that fast-sim simulates, or
with --rounds from the measured rounds of bench/scaling/scaling.sh in DIR, and the table says from which. fast-sim has no ddp:
its rounds are those of an all-reduce. Pictures need matplotlib:  apt-get install python3-matplotlib
"""
import argparse
import importlib.util
import json
import pathlib
import statistics
import sys

from accuracy import pictures
from accuracy.cases import ALONE, EXCHANGES, MODELS, Cell
from accuracy.data import colored, with_tests
from accuracy.report import figures, report
from accuracy.seconds import Measured, Simulated
from runs import RunFailed, fast_train, trained
from time_to import accuracy_of

HERE = pathlib.Path(__file__).resolve().parent
TUNING_SEED = 100


def why_not(exchange):
    """Empty where an exchange can be run."""
    if exchange != "ddp" or importlib.util.find_spec("torch"):
        return ""
    return "torch is missing: apt-get install python3-torch"


class Runs:
    """The runs of one model."""

    def __init__(self, options, model):
        self.options, self.model = options, model
        self.data = []
        if options.colored:
            self.data = ["--data", colored(options.runs, options.samples, options.test_samples)]
        elif options.test_samples:
            self.data = ["--data", with_tests(options.runs / f"tests-{options.test_samples}", options.test_samples)]
        self.rates = options.lr or MODELS[model].rates
        self.rate = self.rates[0] if len(self.rates) == 1 else self.best_rate()

    def run(self, name, exchange, workers, seed, rate, epochs):
        """The summary, and the accuracy of the mean model after each epoch. With --known None, if there is no such run."""
        directory = self.options.runs / f"{self.model}-{name}-{workers}-{seed}"
        common = ["--samples", self.options.samples, "--batch-size", self.options.batch, "--epochs", epochs, "--seed", seed, "--lr",
                  f"{rate:.3g}", *self.data]
        model = ["--model", self.model]
        if exchange == "ddp":
            program = [sys.executable, str(HERE / "peers" / "ddp_epochs.py")]
            found = trained(directory, program, ["--ranks", workers, *model, *common], not self.options.known)
        else:
            rule = [] if exchange == ALONE else EXCHANGES[exchange].train
            found = fast_train(directory, self.options.program, workers, [*model, *rule, *common], not self.options.known)
        return found and (found[0], [accuracy_of(each) for each in found[1]])

    def best_rate(self):
        """Of one worker."""
        epochs = max(1, self.options.epochs // 4)
        found = {}
        for rate in self.rates:
            run = self.run(f"rate-{rate:g}", ALONE, 1, TUNING_SEED, rate, epochs)
            if run is None:
                raise RunFailed(f"{self.options.runs} has no run of {self.model} with rate {rate:g}; leave out --known")
            found[rate] = run[1][-1]
            print(f"{self.model}, rate {rate:g}: {100 * found[rate]:.2f} % after {epochs} epochs", flush=True)
        return max(found, key=found.get)

    def cell(self, exchange, workers):
        """None, if no seed has a run."""
        seeds = 1 if exchange in self.options.one_seed else self.options.seeds
        rate = self.rate * workers ** self.options.lr_power
        runs = [self.run(exchange, exchange, workers, seed, rate, self.options.epochs) for seed in range(1, seeds + 1)]
        if not any(runs):
            return None
        cell = Cell(self.model, exchange, workers, [run for run in runs if run])
        print(f"{self.model}, {exchange}, {workers} workers: {statistics.mean(cell.final()):.2f} %", flush=True)
        return cell


def exchanges_of(options, workers):
    """Those that differ from others on so many workers, and can be run."""
    if workers == 1:
        return [ALONE]
    names = [name for name in options.exchanges if workers >= EXCHANGES[name].fewest and not why_not(name)]
    return [name for name in names if name != "ddp" or workers <= options.ddp_workers]


def rounds_of(options):
    if options.rounds:
        return Measured(options.rounds)
    simulator = pathlib.Path(options.program).with_name("fast-sim")
    return Simulated(simulator, options.step_ms / 1e3, options.bandwidth, options.latency)


def study(options, model, rounds, out):
    """Runs, and writes the table, the figures and the pictures of a model."""
    runs = Runs(options, model)
    cells = [runs.cell(exchange, workers) for workers in options.workers for exchange in exchanges_of(options, workers)]
    if not (cells := [cell for cell in cells if cell]):
        raise RunFailed(f"{options.runs} has no such runs of {model}; leave out --known")
    lines = list(report(model, cells, options.workers, rounds))
    print("\n".join(["", f"{model}, rate of one worker {runs.rate:g}:", "", *lines]))
    (out / f"curves-{model}.md").write_text("\n".join(lines) + "\n")
    settings = {"samples": options.samples, "epochs": options.epochs, "batch": options.batch, "lr": runs.rate,
                "lr_power": options.lr_power, "target": MODELS[model].target, "test_samples": options.test_samples,
                "colored": options.colored}
    (out / f"curves-{model}.json").write_text(
        json.dumps({"settings": settings, "seconds_are": rounds.source, "cells": figures(cells, rounds)}, indent=1) + "\n")
    pictures.draw(model, cells, options.workers, rounds, out)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fast-train")
    parser.add_argument("--models", nargs="+", default=["lenet", "lstm"], choices=list(MODELS))
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--exchanges", nargs="+", default=list(EXCHANGES), choices=list(EXCHANGES))
    parser.add_argument("--samples", type=int, default=0, help="of the training set; 0: all")
    parser.add_argument("--test-samples", type=int, default=0, help="of the test set; 0: all")
    parser.add_argument("--colored", action="store_true", help="color images of 32x32; needs --samples and --test-samples")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16, help="of each worker")
    parser.add_argument("--lr", type=float, nargs="+", help="rates of one worker [of each model its own]")
    parser.add_argument("--lr-power", type=float, default=0.5, help="N workers have that rate times N to this power")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--one-seed", nargs="*", default=[], choices=list(EXCHANGES), help="exchanges that get one seed only")
    parser.add_argument("--ddp-workers", type=int, default=16, help="ddp has at most so many; each is a process with PyTorch")
    parser.add_argument("--known", action="store_true", help="show the runs that are in --runs, and train nothing")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("build/curves"))
    parser.add_argument("--out", type=pathlib.Path, help="folder of pictures, tables and JSON [that of --runs]")
    parser.add_argument("--rounds", type=pathlib.Path, help="results of bench/scaling/scaling.sh")
    parser.add_argument("--step-ms", type=float, default=10, help="of a simulated step")
    parser.add_argument("--bandwidth", type=float, default=1.25e8, help="of a simulated link, bytes per second")
    parser.add_argument("--latency", type=float, default=1e-4, help="of a simulated link, seconds")
    options = parser.parse_args()
    if options.colored and not (options.samples > 0 and options.test_samples > 0):
        parser.error("--colored makes a new set: give the numbers of its images, --samples and --test-samples")
    return options


def main():
    options = read_options()
    out = options.out or options.runs
    out.mkdir(parents=True, exist_ok=True)
    for exchange in options.exchanges:
        if why := why_not(exchange):
            print(f"left out: {exchange}: {why}")
    rounds = rounds_of(options)
    for model in options.models:
        try:
            study(options, model, rounds, out)
        except (RunFailed, OSError) as reason:
            sys.exit(f"curves.py: {reason}")


if __name__ == "__main__":
    main()
