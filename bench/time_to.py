#!/usr/bin/python3
"""time_to.py PERCENT RUN...: when the mean model of each run of fast-train (--out RUN --evaluate-every N) reached a test
accuracy of PERCENT, in seconds of training (tests left out), and that time over the first run's."""
import json
import pathlib
import sys


def over_time(workers):
    """(seconds, accuracy): whenever a worker has tested its slice, of all workers' latest tests."""
    events = sorted((line["seconds"], rank, line) for rank, lines in enumerate(workers) for line in lines)
    latest = {}
    for seconds, rank, line in events:
        latest[rank] = line
        if len(latest) < len(workers):
            continue
        correct = sum(line["mean_model_test_correct"] for line in latest.values())
        yield seconds, correct / sum(line["mean_model_test_samples"] for line in latest.values())


def metrics(run):
    """Every worker's lines."""
    return [[json.loads(line) for line in path.open()] for path in sorted(pathlib.Path(run).glob("metrics-*.jsonl"))]


def time_to(workers, accuracy):
    return next((seconds for seconds, reached in over_time(workers) if reached >= accuracy), None)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    target = float(sys.argv[1]) / 100
    first = None
    print(f"{'run':24} {'to ' + sys.argv[1] + ' %, s':>12} {'/ first':>8} {'best, %':>8}")
    for run in sys.argv[2:]:
        workers = metrics(run)
        seconds = time_to(workers, target)
        best = 100 * max(accuracy for _, accuracy in over_time(workers))
        first = first or seconds
        ratio = f"{seconds / first:.2f}" if seconds and first else "-"
        print(f"{pathlib.Path(run).name:24} {'%.1f' % seconds if seconds else '-':>12} {ratio:>8} {best:8.2f}")


if __name__ == "__main__":
    main()
