#!/usr/bin/python3
"""Table and picture of the residual network's study:  table.py FOLDER EPOCHS LONG

Writes FOLDER/table.md and FOLDER/epoch.svg.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from output import plt, save, write_table  # noqa: E402

TITLES = {"alone": "one node", "ring": "ring", "asynchronous": "ring, staleness inf", "all-reduce": "all-reduce"}


def read(folder):
    """By name of the exchange and number of nodes."""
    found = {}
    for path in folder.glob("*.*.json"):
        name, nodes = path.stem.rsplit(".", 1)
        found[name, int(nodes)] = json.loads(path.read_text())
    return dict(sorted(found.items(), key=lambda item: (item[0][1], list(TITLES).index(item[0][0]))))


def times_table(times, epochs):
    yield "| nodes | exchange | seconds an epoch | kB sent a round | load |"
    yield "|---|---|---|---|---|"
    for (name, nodes), run in times.items():
        yield (f"| {nodes} | {TITLES[name]} | {run['seconds'] / epochs:.1f} | "
               f"{run['bytes_sent_per_worker_per_round'] / 1000:.0f} | {run['machine_load']:.0f} |")


def accuracy_table(accuracies, long):
    yield f"| workers | exchange | test accuracy after {long} epochs, % | worst worker, % |"
    yield "|---|---|---|---|"
    for (name, nodes), run in accuracies.items():
        yield (f"| {nodes} | {TITLES[name]} | {100 * run['test_accuracy_mean_model']:.1f} | "
               f"{100 * run['test_accuracy_worst_worker']:.1f} |")


def draw(times, epochs, path):
    figure, axes = plt.subplots(figsize=(6, 3.5))
    one = times.get(("alone", 1))
    for name in list(TITLES)[1:]:
        points = [(nodes, run["seconds"] / epochs) for (of, nodes), run in times.items() if of == name or of == "alone"]
        axes.plot(*zip(*points), marker="o", label=TITLES[name])
    if one:
        axes.plot([1, 2, 3], [one["seconds"] / epochs / nodes for nodes in (1, 2, 3)], color="gray", linestyle="--",
                  linewidth=0.8, label="one node's, divided")
    axes.set(xlabel="nodes", ylabel="seconds an epoch", ylim=(0, None))
    axes.set_xticks([1, 2, 3])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def main():
    folder, epochs, long = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    times = read(folder)
    lines = [*times_table(times, epochs), "", *accuracy_table(read(folder / "accuracy"), long)]
    draw(times, epochs, folder / "epoch.svg")
    write_table(folder, lines)


if __name__ == "__main__":
    main()
