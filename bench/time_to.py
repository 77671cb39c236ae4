#!/usr/bin/python3
"""time_to.py PERCENT RUN...: when the mean model of each run of fast-train (--out RUN --evaluate-every N) reached a test
accuracy of PERCENT, in seconds of training (tests left out), and that time over the first run's ("-": it did not)."""
import json
import pathlib
import sys


def over_time(workers):
    """(seconds, accuracy): whenever a worker has tested its slice, of all workers' latest tests."""
    events = sorted((line["seconds_training"], rank, line) for rank, lines in enumerate(workers) for line in lines)
    latest = {}
    for seconds, rank, line in events:
        latest[rank] = line
        if len(latest) < len(workers):
            continue
        yield seconds, accuracy_of(latest.values())


def accuracy_of(lines):
    """Of parts of the test samples together."""
    return sum(line["test_accuracy"] * line["test_samples"] for line in lines) / sum(line["test_samples"] for line in lines)


def metrics(run):
    """Every worker's lines of epochs and of tests within one."""
    files = sorted((pathlib.Path(run) / "metrics").glob("*.jsonl"))
    lines = [[json.loads(line) for line in path.open()] for path in files]
    return [[line for line in own if line["kind"] in ("epoch", "evaluation")] for own in lines]


def time_to(workers, accuracy):
    return next((seconds for seconds, reached in over_time(workers) if reached >= accuracy), None)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    target = float(sys.argv[1]) / 100
    first = None
    print(f"{'run':24} {'to ' + sys.argv[1] + ' %, s':>12} {'/ first':>8} {'best, %':>8}")
    for place, run in enumerate(sys.argv[2:]):
        workers = metrics(run)
        seconds = time_to(workers, target)
        if place == 0:
            first = seconds
        best = 100 * max(accuracy for _, accuracy in over_time(workers))
        ratio = f"{seconds / first:.2f}" if seconds and first else "-"
        print(f"{pathlib.Path(run).name:24} {'%.1f' % seconds if seconds else '-':>12} {ratio:>8} {best:8.2f}")


if __name__ == "__main__":
    main()
