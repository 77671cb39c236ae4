#!/usr/bin/env python3
"""The table of bench/peers.sh:  table.py DIRECTORY_OF_RUNS [JSON_FILE]"""
import json
import pathlib
import statistics
import sys

NAMES = {"ddp": "PyTorch DDP, gloo", "ddp_alone": "its control, no exchange", "torch-ring": "fast, torch, ring",
         "torch_inf": "fast, torch, ring, staleness inf", "torch_allreduce": "fast, torch, all-reduce of gradients",
         "torch_alone": "its control, no exchange (none)", "nn-ring": "fast, nn, ring"}
CONTROLS = {"ddp": "ddp_alone", "torch-ring": "torch_alone", "torch_inf": "torch_alone", "torch_allreduce": "torch_alone"}

rates = {}
for path in pathlib.Path(sys.argv[1]).glob("*.json"):
    name, ranks, _ = path.stem.rsplit("-", 2)
    rates.setdefault((int(ranks), name), []).append(json.loads(path.read_text())["samples_per_second"])
rows = []
print("| ranks | | samples/s (lowest - highest) | ÷ DDP | ÷ own control |\n|---|---|---|---|---|")
for ranks in sorted({r for r, _ in rates}):
    median = {name: statistics.median(values) for (r, name), values in rates.items() if r == ranks}
    for name in NAMES:
        values = rates[ranks, name]
        to_ddp = median[name] / median["ddp"]
        to_control = median[name] / median[CONTROLS[name]] if name in CONTROLS else None
        rows.append({"method": name, "ranks": ranks, "samples_per_second": median[name], "low": min(values),
                     "high": max(values), "to_ddp": to_ddp, "to_control": to_control})
        print(f"| {ranks} | {NAMES[name]} | {median[name]:,.0f} ({min(values):,.0f} - {max(values):,.0f}) | {to_ddp:.2f} | "
              f"{'' if to_control is None else f'{to_control:.2f}'} |")
if len(sys.argv) > 2 and sys.argv[2]:
    pathlib.Path(sys.argv[2]).write_text(json.dumps(rows, indent=1))
