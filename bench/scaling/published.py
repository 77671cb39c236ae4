#!/usr/bin/python3
"""fast-sim against a published table:  bench/scaling/published.py [--program build/release/bin/fast-sim]

Figure 6, right, of Wang et al. (ICLR 2025, arXiv 2410.11998; github.com/WangZesen/Decentralized-Training-Exp,
images/transformer_runtime.png): milliseconds of a step on nodes with four A40 and Ethernet of 25 Gbit/s. All GPUs together
take 25,000 tokens a step. Prints as Markdown all nine cells of three of its methods, fitted or predicted, and the deviation.
"""
import argparse
import sys

from simulator import SimulationFailed, round_s
from tables import table

PUBLISHED_MS = {"all-reduce": {8: 166.1, 16: 195.5, 32: 188.5},
                "SGP": {8: 150.5, 16: 99.9, 32: 112.4},
                "one-peer exponential": {8: 122.8, 16: 97.4, 32: 110.8}}
FITTED = {("SGP", 8), ("one-peer exponential", 8)}

# Of the source: transformer_base with one embedding of 37,120 words for all, f32; the nominal rate of a node; the steps of the
# fourth method of the figure, the alternating exponential ring, which is taken to hide its messages.
PARAMETERS = 6 * 3_152_384 + 6 * 4_204_032 + 2 * 1024 + 37_120 * 512
PAYLOAD = 4 * PARAMETERS
NOMINAL = 25e9 / 8
STEP_MS = {8: 122.0, 16: 78.9, 32: 67.9}
# DDP overlaps an all-reduce with the backward pass, two thirds of the multiplications of a step.
FORWARD = 1 / 3
# Fitted to one cell each: bytes per second of a node in f32 messages of pairs, and the longer step of SGP.
PAIRS = 8.05e9
SGP = 150.5 / 122.0


def simulated_ms(program, method, gpus):
    command = [program, "--workers", str(gpus), "--workers-per-host", "4", "--payload", str(PAYLOAD), "--latency", "1e-5",
               "--rounds", "120"]
    step_s = STEP_MS[gpus] / 1e3
    if method == "all-reduce":
        return 1e3 * round_s([*command, "--exchange", "ring", "--bandwidth", str(NOMINAL), "--step", str(FORWARD * step_s)])
    # SGP sends to one worker and reads another one. The pairs of the other program read each other, as in base2.
    topology, factor = ("one_peer_exponential", SGP) if method == "SGP" else ("base2", 1)
    return 1e3 * round_s([*command, "--topology", topology, "--bandwidth", str(PAIRS), "--step", str(factor * step_s)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fast-sim")
    options = parser.parse_args()
    rows = []
    for method, cells in PUBLISHED_MS.items():
        for gpus, published in cells.items():
            found = simulated_ms(options.program, method, gpus)
            rows.append([method, str(gpus), f"{published}", f"{found:.1f}", "fitted" if (method, gpus) in FITTED else "predicted",
                         f"{100 * (found / published - 1):+.1f} %"])
    table(["method", "GPUs", "published, ms", "simulated, ms", "", "deviation"], rows)


if __name__ == "__main__":
    try:
        main()
    except SimulationFailed as reason:
        sys.exit(f"published.py: {reason}")
