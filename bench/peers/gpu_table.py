#!/usr/bin/env python3
"""fast::cuda beside PyTorch, graph beside graph:  gpu_table.py DIRECTORY, with bench_cuda_nn_*.json and torch_*.json in it."""
import json
import pathlib
import sys

# Name in bench_cuda_nn, in PyTorch's files; least quotients in TF32 and bf16.
ROWS = [("lenet5", "lenet", 1.2, 1.2), ("resnet20", "resnet20", 1.2, 1.2), ("resnet50", "resnet50", 1.3, 1.5)]

directory = pathlib.Path(sys.argv[1])
ours = [row for path in sorted(directory.glob("bench_cuda_nn*.json")) for row in json.loads(path.read_text())]
if not ours:
    sys.exit(f"gpu_table: no bench_cuda_nn_*.json in {directory}; run the stages peers_* of bench/gpu.sh first")
theirs = {}
for path in directory.glob("torch_*.json"):
    run = json.loads(path.read_text())
    theirs[run["model"], run["precision"], run["batch"], run["graph"]] = run["images_per_second"]
print("| model | precision | as a graph | batch | fast::cuda, images/s | PyTorch | quotient | wanted |\n|---|---|---|---|---|---|---|---|")
for name, peer, tf32, bf16 in ROWS:
    for precision, least in [("f32", 1.1 if name == "resnet50" else None), ("tf32", tf32), ("bf16", bf16)]:
        for graph in [False, True]:
            row = next((row for row in ours if row["method"] == name and row["precision"] == precision
                        and (row["graph, tuned"] == "yes") == graph), None)
            if row is None:
                continue
            rate = theirs.get((peer, precision, row["batch"], graph))
            quotient = "not measured | |" if rate is None else f"{rate:,.0f} | {row['images/s'] / rate:.2f} |"
            wanted = f"≥ {least}" if graph and least else "–"
            print(f"| {name} | {precision} | {'yes' if graph else 'no'} | {row['batch']} | {row['images/s']:,.0f} | {quotient} {wanted} |")
