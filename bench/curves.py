#!/usr/bin/python3
"""Accuracy over epochs by number of workers: trains on Fashion-MNIST with 1 to 16 workers on a ring, a torus, with one peer
a round and with an all-reduce, and writes a table, pictures and the figures as JSON.

  bench/curves.py [--models lenet lstm] [--workers 1 2 4 8 16] [--exchanges ring all-reduce ...] [--samples N] [--epochs N]
                  [--seeds N] [--one-seed EXCHANGE...] [--runs DIR] [--out DIR] [--rounds DIR]

Workers are threads (--exchange local): the accuracy of synchronous rounds does not depend on the load of the machine. Runs
that are in DIR are not repeated. The exchange ddp is PyTorch's DistributedDataParallel over gloo; it is left out where torch
is missing, and for models other than lenet.

The time to an accuracy is the epochs to it, times the seconds of an epoch. These come from rounds that fast-sim simulates, or
with --rounds from the measured rounds of bench/scaling/scaling.sh in DIR, and the table says from which. Pictures need
matplotlib:  apt-get install python3-matplotlib
"""
import argparse
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys

from runs import RunFailed, epochs_to, fast_train, trained
from scaling.tables import read
from time_to import accuracy_of

TARGET = 0.85
PARAMETERS = {"lenet": 61706, "lstm": 24458}
ALONE = "alone"
EXCHANGES = {  # name: (label, options of fast-train, options of fast-sim, fewest workers)
    "ring": ("`awc`, ring", ["--topology", "ring"], ["--topology", "ring"], 2),
    "torus": ("`awc`, torus", ["--topology", "torus2d"], ["--topology", "torus2d"], 8),  # below, it is a ring
    "one-peer": ("`awc`, one peer", ["--topology", "one_peer_exponential"], ["--topology", "one_peer_exponential"], 4),
    "all-reduce": ("all-reduce", ["--algorithm", "allreduce"], ["--exchange", "ring"], 2),
    "ddp": ("PyTorch DDP, gloo", None, None, 2),
}
HERE = pathlib.Path(__file__).resolve().parent


class Cell:
    """All seeds of an exchange on a number of workers."""

    def __init__(self, model, exchange, workers, runs):
        self.model, self.exchange, self.workers = model, exchange, workers
        self.summaries = [summary for summary, _ in runs]
        self.curves = [curve for _, curve in runs]

    def final(self):
        return [100 * curve[-1] for curve in self.curves]

    def epochs(self):
        """None unless all seeds reach the target."""
        reached = [epochs_to(curve, TARGET) for curve in self.curves]
        return statistics.mean(reached) if all(reached) else None

    def curve(self):
        return [100 * statistics.mean(at) for at in zip(*self.curves)]

    def row(self):
        return {"model": self.model, "exchange": self.exchange, "workers": self.workers, "accuracy": self.curves,
                "epochs_to_85": [epochs_to(curve, TARGET) for curve in self.curves]}


def why_not(model, exchange):
    """Empty where an exchange can be run."""
    if exchange != "ddp":
        return ""
    if model != "lenet":
        return f"{model} is not among its models"
    return "" if importlib.util.find_spec("torch") else "torch is missing: apt-get install python3-torch"


def run(options, model, exchange, workers, seed):
    directory = options.runs / f"{model}-{exchange}-{workers}-{seed}"
    rate = f"{options.lr * workers ** options.lr_power:.3g}"
    common = ["--samples", options.samples, "--batch-size", options.batch, "--epochs", options.epochs, "--seed", seed, "--lr", rate]
    if exchange == "ddp":
        summary, lines = trained(directory, [sys.executable, str(HERE / "peers" / "ddp_epochs.py")], ["--ranks", workers, *common])
    else:
        rule = [] if exchange == ALONE else EXCHANGES[exchange][1]
        summary, lines = fast_train(directory, options.program, workers, ["--model", model, *rule, *common])
    return summary, [accuracy_of(each) for each in lines]


def exchanges_of(options, workers):
    if workers == 1:
        return [ALONE]
    names = [name for name in options.exchanges if workers >= EXCHANGES[name][3]]
    return [name for name in names if name != "ddp" or workers <= options.ddp_workers]


def cells_of(options, model):
    cells = []
    for workers in options.workers:
        for exchange in exchanges_of(options, workers):
            if why := why_not(model, exchange):
                print(f"left out: {exchange}, {model}: {why}")
                continue
            seeds = 1 if exchange in options.one_seed else options.seeds
            cell = Cell(model, exchange, workers, [run(options, model, exchange, workers, seed) for seed in range(1, seeds + 1)])
            cells.append(cell)
            print(f"{model}, {exchange}, {workers} workers: {statistics.mean(cell.final()):.2f} %", flush=True)
    return cells


class Rounds:
    """Seconds of a round."""

    def __init__(self, options):
        self.options = options
        self.measured = read(options.rounds) if options.rounds else {}
        self.simulator = pathlib.Path(options.program).with_name("fast-sim")
        if not options.rounds and not self.simulator.exists():
            print(f"no seconds: {self.simulator} is missing; build fast-sim, or give --rounds")
        self.source = (f"measured by bench/scaling/scaling.sh in {options.rounds}" if options.rounds else
                       f"simulated by fast-sim: steps of {options.step_ms:g} ms, links of {options.bandwidth:g} bytes/s and "
                       f"{1e3 * options.latency:g} ms, a host a worker")

    def seconds(self, cell):
        """None where it is not known."""
        if self.options.rounds:
            method = "none" if cell.exchange == ALONE else cell.exchange
            row = self.measured.get(f"n{cell.workers}", {}).get(method)
            return row["round_ms"] / 1e3 if row else None
        return self.simulated(cell)

    def simulated(self, cell):
        step_s = self.options.step_ms / 1e3
        if cell.exchange == ALONE:
            return step_s
        if EXCHANGES[cell.exchange][2] is None or cell.model not in PARAMETERS or not self.simulator.exists():
            return None
        command = [str(self.simulator), *EXCHANGES[cell.exchange][2], "--workers",
                   str(cell.workers), "--payload", str(4 * PARAMETERS[cell.model]), "--step", str(step_s), "--bandwidth",
                   str(self.options.bandwidth), "--latency", str(self.options.latency), "--rounds", "40", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RunFailed(f"{' '.join(command)}: {done.stderr.strip()}")
        found = json.loads(done.stdout)
        return found["seconds"] / found["rounds"]


def to_target_s(cell, rounds):
    """Epochs to the target, times the rounds of an epoch, times seconds of a round."""
    epochs, round_s = cell.epochs(), rounds.seconds(cell)
    if epochs is None or round_s is None:
        return None
    summary = cell.summaries[0]
    return epochs * summary["rounds"] / summary["epochs"] * round_s


def spread(values):
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ({min(values):.1f} – {max(values):.1f})"


def shown(value, digits=1):
    return "–" if value is None else f"{value:.{digits}f}"


def table(cells, workers, text_of):
    """Rows are exchanges, columns numbers of workers."""
    by_place = {(cell.exchange, cell.workers): cell for cell in cells}
    names = [name for name in (ALONE, *EXCHANGES) if any(cell.exchange == name for cell in cells)]
    lines = ["| exchange | " + " | ".join(map(str, workers)) + " |", "|---" * (len(workers) + 1) + "|"]
    for name in names:
        found = [by_place.get((name, count)) for count in workers]
        label = EXCHANGES[name][0] if name in EXCHANGES else "one worker"
        lines.append(f"| {label} | " + " | ".join(text_of(cell) if cell else "–" for cell in found) + " |")
    return lines


def report(cells, options, rounds):
    workers = options.workers
    yield from ["Test accuracy after the last epoch, %, by number of workers:", ""]
    yield from table(cells, workers, lambda cell: spread(cell.final()))
    yield from ["", f"Epochs to {100 * TARGET:g} %:", ""]
    yield from table(cells, workers, lambda cell: shown(cell.epochs()))
    yield from ["", f"Seconds to {100 * TARGET:g} %, computed: these epochs times the seconds of an epoch, {rounds.source}:", ""]
    yield from table(cells, workers, lambda cell: shown(to_target_s(cell, rounds)))


def draw(cells, workers, path):
    try:
        import matplotlib
    except ModuleNotFoundError:
        return print("no picture: matplotlib is missing: apt-get install python3-matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "fast"  # the same picture from the same figures
    import matplotlib.pyplot as plt

    several = [count for count in workers if count > 1]
    figure, axes = plt.subplots(1, len(several), figsize=(3.1 * len(several), 3.4), sharey=True, squeeze=False)
    names = [ALONE, *EXCHANGES]
    for place, count in zip(axes[0], several):
        for cell in cells:
            if cell.workers not in (1, count):
                continue
            epochs = range(1, len(cell.curve()) + 1)
            label = cell.exchange.replace("one-peer", "one peer")
            place.plot(epochs, cell.curve(), marker=".", color="gray" if cell.workers == 1 else f"C{names.index(cell.exchange) - 1}",
                       label=label, linewidth=1.2)
        place.axhline(100 * TARGET, color="gray", linewidth=0.6)
        place.set(title=f"{count} workers", xlabel="epoch")
        place.grid(alpha=0.3)
        place.legend(fontsize=7, frameon=False)
    axes[0][0].set_ylabel("test accuracy, mean model (%)")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(path)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fast-train")
    parser.add_argument("--models", nargs="+", default=["lenet", "lstm"])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--exchanges", nargs="+", default=["ring", "torus", "one-peer", "all-reduce"], choices=list(EXCHANGES))
    parser.add_argument("--samples", type=int, default=0, help="of the training set; 0: all")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16, help="of each worker")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate of one worker")
    parser.add_argument("--lr-power", type=float, default=0.5, help="N workers have that rate times N to this power")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--one-seed", nargs="*", default=[], choices=list(EXCHANGES), help="exchanges that get one seed only")
    parser.add_argument("--ddp-workers", type=int, default=16, help="ddp has at most so many; each is a process with PyTorch")
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("build/curves"))
    parser.add_argument("--out", type=pathlib.Path, help="folder of pictures, tables and JSON [that of --runs]")
    parser.add_argument("--rounds", type=pathlib.Path, help="results of bench/scaling/scaling.sh")
    parser.add_argument("--step-ms", type=float, default=10, help="of a simulated step")
    parser.add_argument("--bandwidth", type=float, default=1.25e8, help="of a simulated link, bytes per second")
    parser.add_argument("--latency", type=float, default=1e-4, help="of a simulated link, seconds")
    return parser.parse_args()


def main():
    options = read_options()
    out = options.out or options.runs
    out.mkdir(parents=True, exist_ok=True)
    rounds = Rounds(options)
    for model in options.models:
        try:
            cells = cells_of(options, model)
            lines = list(report(cells, options, rounds))
        except RunFailed as reason:
            sys.exit(f"curves.py: {reason}")
        print("\n".join(["", f"{model}:", "", *lines]))
        (out / f"curves-{model}.md").write_text("\n".join(lines) + "\n")
        settings = {"samples": options.samples, "epochs": options.epochs, "batch": options.batch, "lr": options.lr,
                    "lr_power": options.lr_power}
        figures = [{**cell.row(), "seconds_to_85": to_target_s(cell, rounds)} for cell in cells]
        (out / f"curves-{model}.json").write_text(
            json.dumps({"settings": settings, "seconds_are": rounds.source, "cells": figures}, indent=1) + "\n")
        draw(cells, options.workers, out / f"curves-{model}.svg")


if __name__ == "__main__":
    main()
