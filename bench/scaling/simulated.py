#!/usr/bin/python3
"""fast-sim against the scaling study:  bench/scaling/simulated.py DIR [--program build/release/bin/fast-sim]

DIR has the results of bench/scaling/scaling.sh, or is bench/scaling/recorded.json: the rounds of the published study, its
ratios times the round without exchange. For each measured cell that fast-sim knows, prints as Markdown the measured and the
simulated time of a round, and the error. The simulator gets the step time, the payload, the links and the hosts, and what
other measurements say of the machine: nothing that was measured in the cell.
"""
import argparse
import json
import math
import pathlib
import statistics
import sys

from simulator import SimulationFailed, seconds_per_round
from tables import METHODS, read, table

TOPOLOGIES = {"ring": "ring", "torus": "torus2d", "one-peer": "one_peer_exponential", "hierarchical": "hierarchical",
              "hierarchical-one-peer": "hierarchical_one_peer"}
SUFFIXES = {"-stale1": ["--staleness", "1"], "-inf": ["--staleness", "inf"], "-int8": []}
INT8 = 1 + 4 / 256  # bytes an element
ALL_REDUCES = ("all-reduce", "mpi-all-reduce")
READS = {"ring": 2, "torus": 4, "one-peer": 1, "hierarchical": 4, "hierarchical-one-peer": 4}  # models that a round mixes, at most
WARM_UP = 3  # rounds before those that are measured

# Of the machine. NetPIPE: bytes of a message to those of a link. The others are from the study's cells on one host (hosts1),
# which are not simulated here: a core copies and adds for MPI's all-reduce at the rate that gives its round, 1.361 of one
# without exchange. A ring's round, 1.016, mixes two models. At staleness inf, 1.030, messages are also copied and checked.
NETPIPE = 116.6 / 125
CORES = 2
COPY = 1.57e9
MIX, MIX_LATE = 6.2e9, 3.3e9

SHORT = 2048  # bytes of an all-reduce: up to here, MPICH 4.0 takes recursive doubling for MPI_Iallreduce


def all_reduce_of(payload, workers):
    """Between hosts, all-reduce and mpi-all-reduce are MPI_Iallreduce. The algorithm that MPICH 4.0 takes for it."""
    power_of_two = 1 << (workers.bit_length() - 1)
    return "halving" if payload > SHORT and payload / 4 >= power_of_two else "doubling"


def arguments_of(method, row):
    """None for methods that the simulator does not know."""
    payload = row["mb"] * 1e6
    if method in ALL_REDUCES:
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


def recorded(path):
    """The cells of a file, as read() gives those of a folder."""
    cells = json.loads(pathlib.Path(path).read_text())
    return {name: {method: {**cell, "round_ms": ms} for method, ms in cell["round_ms"].items()} for name, cell in cells.items()}


def base_of(method):
    for suffix in SUFFIXES:
        method = method.removesuffix(suffix)
    return method


def simulated(program, cell, method, row):
    """Milliseconds of a round; None where the simulator has no such case. As in the study, the mean over the workers, and over
    those that are not slow."""
    known = arguments_of(method, row)
    if known is None or row["hosts"] == 1 or (row["slow"] != 1 and "inf" in method):
        return None  # the simulator counts the slow worker's rounds, too
    rate = {"10gbit": 1.25e9, "100mbit": 1.25e7}.get(cell, 1.25e8)
    latency = 0.01 if cell == "100mbit" else 1e-4  # of a link: the switch delays 20 ms between two hosts, over two links
    rounds = 10 if cell.startswith("100mb") else 40
    workers, step_s = row["workers"], row["step_ms"] / 1e3
    command = [program, *known, "--workers", str(workers), "--workers-per-host", str(workers // row["hosts"]),
               "--bandwidth", str(rate * NETPIPE), "--latency", str(latency)]
    if method in ALL_REDUCES:  # a host has a share of the machine's cores
        command += ["--cores", "1", "--memory-bandwidth", str(CORES * COPY / row["hosts"])]
    else:
        late = method.endswith(("-inf", "-stale1"))
        step_s += READS[base_of(method)] * row["mb"] * 1e6 / (MIX_LATE if late else MIX)
    command += ["--step", str(step_s)]
    if row["jitter"]:
        command += ["--jitter", str(math.sqrt(math.log(1 + row["jitter"] ** 2)))]
    if method.endswith("-inf"):  # without the rounds before, in which the first messages arrive
        early, late = (seconds_per_round([*command, "--rounds", str(count)])["worker"] * count for count in (WARM_UP, WARM_UP + rounds))
        return 1e3 * (late - early) / rounds
    if row["slow"] != 1:
        command += ["--slow", f"{workers - 1}:{row['slow']:g}"]
    found = seconds_per_round([*command, "--rounds", str(rounds)])
    if row["slow"] != 1:
        return 1e3 * (found["worker"] * workers - found["mean"]) / (workers - 1)
    return 1e3 * found["worker"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--program", default="build/release/bin/fast-sim")
    options = parser.parse_args()
    rows, errors = [], []
    cells = recorded if options.results.endswith(".json") else read
    for cell, by_method in cells(options.results).items():
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
