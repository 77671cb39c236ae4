#!/usr/bin/env python3
"""Makes directories that look like those of training runs, for tests of fast-report.

  make_run.py DIRECTORY [--workers 4] [--epochs 5] [--topology "torus 2x2"] [--option torus2d]
              [--lost RANK] [--paused RANK] [--unfinished] [--resumed] [--loss-scale X]

The files have the layout of docs/how-to/look-at-training.md. All values follow from the arguments.
"""
import argparse
import json
import math
import pathlib
import random

BEGAN = 1_763_800_000.0
ROUNDS = 100  # an epoch
PHASES = ("step", "publish", "wait", "mix", "rest")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--topology", default="torus 2x2")
    parser.add_argument("--option", default="torus2d")
    parser.add_argument("--algorithm", default="awc")
    parser.add_argument("--staleness", default="0")
    parser.add_argument("--lost", type=int)
    parser.add_argument("--paused", type=int)
    parser.add_argument("--unfinished", action="store_true")
    parser.add_argument("--resumed", action="store_true")
    parser.add_argument("--loss-scale", type=float, default=1)
    return parser.parse_args()


def neighbors_of(rank, args):
    name, _, sides = args.topology.partition(" ")
    if name != "torus":
        return sorted({(rank - 1) % args.workers, (rank + 1) % args.workers} - {rank})
    rows, columns = map(int, sides.split("x"))
    row, column = divmod(rank, columns)
    around = [((row - 1) % rows, column), ((row + 1) % rows, column), (row, (column - 1) % columns), (row, (column + 1) % columns)]
    return sorted({r * columns + c for r, c in around} - {rank})


class Worker:
    def __init__(self, rank, args):
        self.rank, self.args = rank, args
        self.random = random.Random(rank)
        self.neighbors = neighbors_of(rank, args)
        self.lines = []
        self.offset = BEGAN + 0.01 * rank

    def write(self, kind, seconds, **fields):
        self.lines.append({"kind": kind, "time": self.offset + seconds, "seconds": seconds, "rank": self.rank, **fields})

    def spent(self, seconds):
        """Phases and waits that add up to `seconds`. The slowest worker is the last one, or the paused one."""
        slow = self.args.paused if self.args.paused is not None else self.args.workers - 1
        wait = 0.04 if self.rank == slow else (0.30 if slow in self.neighbors else 0.12)
        wait *= 1 + 0.3 * (self.random.random() - 0.5)
        shares = {"publish": 0.03, "wait": wait, "mix": 0.10, "rest": 0.02}
        phases = {"step": 1 - sum(shares.values()), **shares}
        weights = {peer: 8 if peer == slow else 1 for peer in self.neighbors}
        whole = sum(weights.values()) or 1
        waits = {str(peer): seconds * wait * weight / whole for peer, weight in weights.items()}
        return {"phases": {name: seconds * phases[name] for name in PHASES}, "waits": waits}

    def start(self, resumed_step=None):
        a = self.args
        facts = {"workers": a.workers, "topology": a.topology, "algorithm": a.algorithm,
                 "staleness": a.staleness if a.staleness == "inf" else int(a.staleness), "codec": "identity", "exchange": "shared memory",
                 "spectral_gap": 0.5, "neighbors": self.neighbors, "samples": 60000, "parameters": 61706, "batch": 64,
                 "optimizer": "sgd", "learning_rate": 0.05, "seed": 1, "validation": "10 % of the training samples",
                 "host": f"node{self.rank // 4 + 1}"}
        if resumed_step is not None:
            facts["resumed_step"] = resumed_step
        self.write("start", 0.0, **facts)

    def epoch(self, number, seconds, length):
        noise = lambda size: size * (self.random.random() - 0.5)
        loss = self.args.loss_scale * (0.25 + 2.0 * math.exp(-0.7 * number)) * (1 + noise(0.1))
        fields = {"epoch": number, "step": number * ROUNDS, "loss": loss, "accuracy": 1 - 0.35 * loss / self.args.loss_scale,
                  "learning_rate": 0.05 if number <= self.args.epochs / 2 else 0.005, "gradient_norm": 2 * loss + noise(0.1),
                  "consensus_distance": 0.4 * math.exp(-0.3 * number) + 0.02 + noise(0.002), "samples": 15000,
                  "samples_per_second": 15000 / length, "age_mean": 0.0, "age_max": 0, **self.spent(length)}
        if self.rank == 0:
            fields |= {"validation_loss": 1.1 * loss, "validation_accuracy": 0.9 - 0.3 * loss, "validated": "mean model"}
        self.write("epoch", seconds, **fields)

    def intervals(self, began, ended, epoch):
        for at in range(int(began) // 2 * 2 + 2, int(ended) + 1, 2):
            self.write("interval", float(at), step=int((epoch - 1 + (at - began) / (ended - began)) * ROUNDS), samples_per_second=2000.0 + self.rank, **self.spent(2.0))

    def event(self, seconds, name, step, **more):
        self.write("event", seconds, event=name, step=step, **more)


def train(worker, args, first, last, dies_after=None):
    length = 7.5
    for number in range(first, last + 1):
        began, ended = (number - first) * length, (number - first + 1) * length
        if dies_after is not None and number > dies_after:
            return
        worker.intervals(began, ended, number)
        if args.paused is not None and number == first + 1 and args.paused in worker.neighbors:
            worker.event(began + 2.2, "suspected", number * ROUNDS, worker=args.paused)
            worker.event(began + 5.3, "returned", number * ROUNDS, worker=args.paused)
        if args.lost is not None and number == 4 and args.lost in worker.neighbors:
            worker.event(began + 1.7, "suspected", number * ROUNDS, worker=args.lost)
        worker.epoch(number, ended, length)
        worker.event(ended + 0.05, "checkpoint", number * ROUNDS)
    if not args.unfinished:
        lost = [args.lost] if args.lost is not None else []
        worker.write("end", (last - first + 1) * length + 0.5, step=last * ROUNDS, test_loss=0.3, test_accuracy=0.8125,
                     seconds_training=(last - first + 1) * length, lost=lost)


def configuration(args):
    return ("# fast-train 0.1.0 (0123456789ab)\n# host node1, 2026-11-22 17:00:00\n\n"
            f'topology = "{args.option}"\nalgorithm = "{args.algorithm}"\nstaleness = "{args.staleness}"\n'
            f"epochs = {args.epochs}\nlr = 0.05\nbatch = 64\nmodel = \"lenet5\"\n")


def main():
    args = parse()
    (args.directory / "metrics").mkdir(parents=True, exist_ok=True)
    (args.directory / "config.toml").write_text(configuration(args))
    everything = []
    for rank in range(args.workers):
        worker = Worker(rank, args)
        dies_after = 3 if rank == args.lost else None
        worker.start()
        if args.resumed:
            half = args.epochs // 2
            unfinished, args.unfinished = args.unfinished, True
            train(worker, args, 1, half + 1, dies_after)
            args.unfinished = unfinished
            worker.offset += 3600
            worker.start(resumed_step=half * ROUNDS)
            train(worker, args, half + 1, args.epochs, dies_after)
        else:
            train(worker, args, 1, args.epochs, dies_after)
        text = "".join(json.dumps(line) + "\n" for line in worker.lines)
        (args.directory / "metrics" / f"{rank}.jsonl").write_text(text)
        everything += worker.lines
    if not args.unfinished:
        everything.sort(key=lambda line: line["time"])
        (args.directory / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in everything))


if __name__ == "__main__":
    main()
