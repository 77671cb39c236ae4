#!/usr/bin/env python3
"""fast::cuda beside PyTorch's eager mode:  gpu_table.py DIRECTORY, with bench_cuda_nn_*.json and torch_*.json in it."""
import json
import pathlib
import sys

# Name in bench_cuda_nn, in PyTorch's files; whether only runs as a CUDA graph count; least quotient.
ROWS = [("lenet5", "lenet", True, 2.0), ("resnet20", "resnet20", True, 2.0), ("resnet50", "resnet50", False, 1.0)]

directory = pathlib.Path(sys.argv[1])
ours = [row for path in sorted(directory.glob("bench_cuda_nn*.json")) for row in json.loads(path.read_text())]
if not ours:
    sys.exit(f"gpu_table: no bench_cuda_nn_*.json in {directory}; run the stages peers_* of bench/gpu.sh first")
theirs = {}
for path in directory.glob("torch_*.json"):
    run = json.loads(path.read_text())
    theirs[run["model"], run["precision"], run["batch"]] = run["images_per_second"]
print("| model | precision | batch | fast::cuda, images/s | PyTorch eager | quotient | wanted |\n|---|---|---|---|---|---|---|")
for name, peer, graph, least in ROWS:
    for precision in ["f32", "tf32", "bf16"]:
        runs = [row for row in ours if row["method"] == name and row["precision"] == precision
                and (row["graph, tuned"] == "yes" or not graph)]
        if not runs:
            continue
        best = max(runs, key=lambda row: row["images/s"])
        rate = theirs.get((peer, precision, best["batch"]))
        quotient = "not measured | |" if rate is None else f"{rate:,.0f} | {best['images/s'] / rate:.2f} |"
        how = ", graph, tuned" if best["graph, tuned"] == "yes" else ""
        wanted = "–" if graph and precision == "f32" else f"≥ {least}"  # a goal only where tensor cores compute
        print(f"| {name}{how} | {precision} | {best['batch']} | {best['images/s']:,.0f} | {quotient} {wanted} |")
