#!/usr/bin/python3
"""The speed of training on packed shards, divided by that on the same samples in memory.

  bench/streaming.py [--bin DIR] [--workers 4] [--models lenet,mlp] [--repeats 7] [--window 5000]

Each repeat trains once on each, one after the other. Both have the same batches: the same window. Prints the median of the
ratios, with the lowest and the highest. Takes about a minute a model on two cores.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        sys.exit(f"streaming.py: {' '.join(map(str, command))}: {(done.stderr.strip() or done.stdout.strip())[-500:]}")


def samples_per_second(args, model, data, directory):
    summary = directory / "summary.json"
    command = ["mpiexec", "-n", args.workers, args.bin / "fast-train", "--data", data, "--model", model, "--epochs", args.epochs,
               "--window", args.window, "--quiet", "--topology", "ring", "--out", directory / "run", "--overwrite",
               "--summary-json", summary]
    run(command)
    return json.loads(summary.read_text())["samples_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--models", default="lenet,mlp")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--window", type=int, default=5000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        sources = {"memory": args.data, "shards": place / "shards"}
        run([args.bin / "fast-data", "convert", args.data, sources["shards"], "--shard-size", "4MB"])
        print("| model | data | samples/s, median | ÷ memory | lowest, highest |")
        print("|---|---|---|---|---|")
        for model in args.models.split(","):
            speeds = {kind: [] for kind in sources}
            for _ in range(args.repeats):
                for kind, data in sources.items():
                    speeds[kind].append(samples_per_second(args, model, data, place))
            for kind, found in speeds.items():
                ratios = [speed / memory for speed, memory in zip(found, speeds["memory"])]
                print(f"| {model} | {kind} | {statistics.median(found):.0f} | {statistics.median(ratios):.3f} | "
                      f"{min(ratios):.3f}, {max(ratios):.3f} |", flush=True)


if __name__ == "__main__":
    main()
