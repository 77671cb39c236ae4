#!/usr/bin/python3
"""Rounds of 64 to 100,000 workers, simulated:  bench/scaling/large.py [--program build/release/bin/fast-sim] [--jitter 0.2]

The base cell of the study on larger clusters: hosts with four workers, links of 1 Gbit/s to one switch, 2 MB, steps of 40 ms.
Prints as Markdown the time in which the last worker has made its rounds, divided by the mean time of its steps. Up to
10,000 workers by SimGrid (about 15 minutes), then by the recurrence, in which messages do not share links. A row with
"recurrence" shows what it gives for fewer workers.
An all-reduce of 10,000 workers in a ring has 200 million messages a round: it is left out above --longest-ring workers.
"""
import argparse
import subprocess
import sys

from simulator import SimulationFailed, round_s
from tables import table

WORKERS = [64, 256, 1000, 10000, 100000]
LARGEST_OF_SIMGRID = 10000
STEP_S = 0.04
METHODS = {
    "ring": ["--topology", "ring"],
    "ring, recurrence": ["--topology", "ring", "--model", "recurrence"],
    "ring, staleness 1": ["--topology", "ring", "--staleness", "1"],
    "ring, int8": ["--topology", "ring", "--payload", "0.508e6"],
    "hierarchical_one_peer": ["--topology", "hierarchical_one_peer"],
    "one-peer": ["--topology", "one_peer_exponential"],
    "one-peer, recurrence": ["--topology", "one_peer_exponential", "--model", "recurrence"],
    "all-reduce, halving": ["--exchange", "halving"],
    "all-reduce, ring": ["--exchange", "ring"],
}
SHARE_LINKS = ["one-peer"]  # all workers of a host send over its link at the same time


def seconds_a_round(options, arguments, workers):
    """None, if it takes too long."""
    command = [options.program, "--workers", str(workers), "--workers-per-host", "4", "--bandwidth", "1.25e8", "--latency", "1e-4",
               "--step", str(STEP_S), "--rounds", str(options.rounds), "--jitter", str(options.jitter), *arguments]
    if "--payload" not in arguments:
        command += ["--payload", "2e6"]
    try:
        return round_s(command, options.limit)
    except subprocess.TimeoutExpired:
        return None


def cell(options, method, workers):
    arguments = METHODS[method]
    if workers > LARGEST_OF_SIMGRID and "--model" not in arguments:
        if "--exchange" in arguments or method in SHARE_LINKS:
            return "–"
        arguments = [*arguments, "--model", "recurrence"]
    if method == "all-reduce, ring" and workers > options.longest_ring:
        return "–"
    found = seconds_a_round(options, arguments, workers)
    print(f"{method}, {workers} workers: {found}", file=sys.stderr, flush=True)
    return f"{found / STEP_S:.2f}" if found else "too long"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fast-sim")
    parser.add_argument("--jitter", type=float, default=0, help="of the steps: standard deviation of the logarithm")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--longest-ring", type=int, default=256)
    parser.add_argument("--limit", type=float, default=300, help="seconds of one simulation")
    options = parser.parse_args()
    rows = [[method, *(cell(options, method, workers) for workers in WORKERS)] for method in METHODS]
    table(["method", *(f"{workers:,}" for workers in WORKERS)], rows)


if __name__ == "__main__":
    try:
        main()
    except SimulationFailed as reason:
        sys.exit(f"large.py: {reason}")
