#!/usr/bin/python3
"""Table and picture of the residual network's study:  table.py FOLDER EPOCHS  writes FOLDER/table.md and FOLDER/epoch.svg."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "fast"  # the same picture from the same figures
import matplotlib.pyplot as plt  # noqa: E402

TITLES = {"alone": "one node", "ring": "ring", "asynchronous": "ring, staleness inf", "all-reduce": "all-reduce"}


def main():
    folder, epochs = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    found = {}
    for path in sorted(folder.glob("*.*.json")):
        name, nodes = path.stem.rsplit(".", 1)
        found[name, int(nodes)] = json.loads(path.read_text())
    lines = ["| nodes | exchange | seconds an epoch | test accuracy, % | worst worker, % | kB sent a round | load |",
             "|---|---|---|---|---|---|---|"]
    order = sorted(found, key=lambda key: (key[1], list(TITLES).index(key[0])))
    for name, nodes in order:
        run = found[name, nodes]
        lines.append(f"| {nodes} | {TITLES[name]} | {run['seconds'] / epochs:.1f} | {100 * run['test_accuracy_mean_model']:.1f} | "
                     f"{100 * run['test_accuracy_worst_worker']:.1f} | {run['bytes_sent_per_worker_per_round'] / 1000:.0f} | "
                     f"{run['machine_load']:.0f} |")
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.5))
    for name, title in TITLES.items():
        nodes = [n for of, n in order if of == name]
        runs = [found[name, n] for n in nodes]
        panels[0].plot(nodes, [run["seconds"] / epochs for run in runs], marker="o", label=title)
        panels[1].plot(nodes, [100 * run["test_accuracy_mean_model"] for run in runs], marker="o", label=title)
    for axes, label in zip(panels, ("seconds an epoch", "test accuracy, mean model (%)")):
        axes.set(xlabel="nodes", ylabel=label, ylim=(0, None))
        axes.set_xticks([1, 2, 3])
        axes.grid(alpha=0.3)
    panels[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "epoch.svg", metadata={"Date": None})
    figure.savefig(folder / "epoch.png", dpi=90)
    plt.close(figure)
    (folder / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
