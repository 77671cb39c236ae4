#!/usr/bin/python3
"""Workers of different speeds at staleness 0: speed and accuracy with even and with measured batches.

  bench/balance.py [--program FILE] [--slow 1:2,2:4] [--workers 3] [--seeds 3] [--epochs 5] [--out DIR]

Trains a model on a part of Fashion-MNIST with each balance and seed. Steps sleep so that a step on --batch-size samples
takes --step-ms, times the factor of a slow worker: the machine needs no faster cores. The sum of speeds is what all
workers would do if none waited. The figures of speed are those of the last half of the epochs, medians over seeds.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile


def factors(text, workers):
    slow = dict(part.split(":") for part in text.split(",")) if text else {}
    return [float(slow.get(str(rank), 1)) for rank in range(workers)]


def run(args, balance, seed, directory):
    command = [args.mpiexec, "-n", str(args.workers), args.program, "--model", args.model, "--samples", str(args.samples),
               "--batch-size", str(args.batch_size), "--epochs", str(args.epochs), "--lr", str(args.lr), "--seed", str(seed),
               "--step-ms", str(args.step_ms), "--balance", balance, "--topology", args.topology, "--quiet", "--out",
               str(directory), "--overwrite", *shlex.split(args.more)]
    if args.slow:
        command += ["--slow", args.slow]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        sys.exit(f"balance.py: {shlex.join(command)}: {done.stderr.strip()[-500:]}")
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    epochs = [line for line in lines if line["kind"] == "epoch"]
    last = [line for line in epochs if line["epoch"] > args.epochs // 2]
    speed = sum(statistics.mean(line["samples_per_second"] for line in last if line["rank"] == rank)
                for rank in range(args.workers))
    final = [line for line in lines if line["kind"] == "end"][0]
    shares = [next(line["samples"] for line in reversed(epochs) if line["rank"] == rank) for rank in range(args.workers)]
    return speed, 100 * final["test_accuracy"], shares


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fast-train")
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--slow", default="1:2,2:4", help="RANK:FACTOR of each slow worker")
    parser.add_argument("--balances", default="even measured")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=6000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--topology", default="ring")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--step-ms", type=float, default=200)
    parser.add_argument("--more", default="", help="more options of fast-train")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = args.out or pathlib.Path(temporary)
        speed_of_all = sum(args.batch_size / (args.step_ms / 1000) / factor for factor in factors(args.slow, args.workers))
        print(f"{args.workers} workers, slow {args.slow or '-'}: the sum of speeds is {speed_of_all:.0f} samples/s")
        for balance in args.balances.split():
            runs = [run(args, balance, seed, out / f"{balance}-{seed}") for seed in range(1, args.seeds + 1)]
            speed = statistics.median(speed for speed, _, _ in runs)
            accuracies = [accuracy for _, accuracy, _ in runs]
            print(f"{balance:10} {speed:7.0f} samples/s  {speed / speed_of_all:5.2f} of the sum  accuracy "
                  f"{statistics.mean(accuracies):6.2f} % ({', '.join(f'{a:.2f}' for a in accuracies)})  samples of the "
                  f"last epoch {runs[-1][2]}", flush=True)


if __name__ == "__main__":
    main()
