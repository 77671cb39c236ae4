#!/usr/bin/python3
"""fast-sim against the scaling study:  bench/scaling/simulated.py DIR [--program build/release/bin/fast-sim]

DIR has the results of bench/scaling/scaling.sh. For each measured cell that fast-sim knows, prints as Markdown the measured
and the simulated time of a round, and the error. The simulator gets the step time, the payload, the links and the hosts,
and nothing that was measured in the cell.
"""
import argparse
import math
import statistics
import sys

from simulator import SimulationFailed, round_s
from tables import METHODS, read, table

TOPOLOGIES = {"ring": "ring", "torus": "torus2d", "one-peer": "one_peer_exponential", "hierarchical": "hierarchical",
              "hierarchical-one-peer": "hierarchical_one_peer"}
SUFFIXES = {"-stale1": ["--staleness", "1"], "-inf": ["--staleness", "inf"], "-int8": []}
INT8 = 1 + 4 / 256  # bytes an element
SHORT = 2048  # bytes of an all-reduce: up to here, MPICH 4.0 takes recursive doubling for MPI_Iallreduce


def all_reduce_of(payload, workers):
    """Between hosts, all-reduce and mpi-all-reduce are MPI_Iallreduce. The algorithm that MPICH 4.0 takes for it."""
    power_of_two = 1 << (workers.bit_length() - 1)
    return "halving" if payload > SHORT and payload / 4 >= power_of_two else "doubling"


def arguments_of(method, row):
    """None for methods that the simulator does not know."""
    payload = row["mb"] * 1e6
    if method in ("all-reduce", "mpi-all-reduce"):
        return ["--exchange", all_reduce_of(payload, row["workers"]), "--payload", str(payload)]
    options = []
    for suffix, more in SUFFIXES.items():
        if method.endswith(suffix):
            method, options = method.removesuffix(suffix), more
            if suffix == "-int8":
                payload *= INT8 / 4
            break
    if method not in TOPOLOGIES:
        return None
    return ["--topology", TOPOLOGIES[method], "--payload", str(payload), *options]


def simulated(program, cell, method, row):
    """Milliseconds of a round; None where the simulator has no such case."""
    known = arguments_of(method, row)
    if known is None or row["hosts"] == 1:
        return None
    bandwidth = {"10gbit": 1.25e9, "100mbit": 1.25e7}.get(cell, 1.25e8)
    latency = 0.01 if cell == "100mbit" else 1e-4  # of a link: the switch delays 20 ms between two hosts, over two links
    command = [program, *known, "--workers", str(row["workers"]), "--workers-per-host", str(row["workers"] // row["hosts"]),
               "--bandwidth", str(bandwidth), "--latency", str(latency), "--step", str(row["step_ms"] / 1e3), "--rounds", "40"]
    if row["jitter"]:
        command += ["--jitter", str(math.sqrt(math.log(1 + row["jitter"] ** 2)))]
    if row["slow"] != 1:
        if "inf" in method:
            return None  # the simulator counts the slow worker's rounds, too
        command += ["--slow", f"{row['workers'] - 1}:{row['slow']:g}"]
    return 1e3 * round_s(command)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--program", default="build/release/bin/fast-sim")
    options = parser.parse_args()
    rows, errors = [], []
    for cell, by_method in read(options.results).items():
        for method in METHODS:
            row = by_method.get(method)
            predicted = simulated(options.program, cell, method, row) if row and "hosts" in row else None
            if predicted is None:
                continue
            error = predicted / row["round_ms"] - 1
            errors.append(abs(error))
            rows.append([cell, method, f"{row['round_ms']:.1f}", f"{predicted:.1f}", f"{100 * error:+.0f} %"])
    table(["cell", "method", "measured, ms", "simulated, ms", "error"], rows)
    within = sum(error <= 0.1 for error in errors)
    print(f"{len(errors)} cells, {within} within 10 %; median error {100 * statistics.median(errors):.1f} %")


if __name__ == "__main__":
    try:
        main()
    except SimulationFailed as reason:
        sys.exit(f"simulated.py: {reason}")
