#!/usr/bin/python3
"""Table and picture of the residual network's study:  table.py FOLDER EPOCHS LONG

LONG is 0 if hosts trained alone. Writes FOLDER/table.md, FOLDER/epoch.svg and FOLDER/accuracy.svg.
"""
import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from output import plt, save, write_table  # noqa: E402

TITLES = {"alone": "one node", "ring": "ring", "asynchronous": "ring, staleness inf", "all-reduce": "all-reduce"}


def accuracy_by_epoch(path):
    """Of the test samples, of which each worker has a part. A resumed run may have an epoch twice."""
    parts = collections.defaultdict(dict)
    for line in path.read_text().splitlines() if path.exists() else ():
        entry = json.loads(line)
        if entry["kind"] == "epoch":
            parts[entry["epoch"]][entry["rank"]] = entry["test_accuracy"], entry["test_samples"]
    return {epoch: sum(right * count for right, count in each.values()) / sum(count for _, count in each.values())
            for epoch, each in sorted(parts.items())}


def read(folder):
    """By name of the exchange and number of nodes."""
    found = {}
    for path in folder.glob("*.*.json"):
        name, nodes = path.stem.rsplit(".", 1)
        found[name, int(nodes)] = json.loads(path.read_text()) | {"epochs": accuracy_by_epoch(path.with_suffix("") / "metrics.jsonl")}
    return dict(sorted(found.items(), key=lambda item: (item[0][1], list(TITLES).index(item[0][0]))))


def times_table(times, epochs):
    yield "| nodes | exchange | seconds an epoch | kB sent a round | load |"
    yield "|---|---|---|---|---|"
    for (name, nodes), run in times.items():
        seconds = "resumed" if run.get("state") == "--resume" else f"{run['seconds'] / epochs:.1f}"
        yield (f"| {nodes} | {TITLES[name]} | {seconds} | "
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


def draw_accuracies(accuracies, path):
    figure, axes = plt.subplots(figsize=(6, 3.5))
    for (name, nodes), run in accuracies.items():
        axes.plot(list(run["epochs"]), [100 * right for right in run["epochs"].values()], linewidth=1, label=f"{nodes}: {TITLES[name]}")
    axes.set(xlabel="epochs", ylabel="test accuracy, %")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def main():
    folder, epochs, long = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    times = read(folder)
    accuracies = read(folder / "accuracy") if long else times
    lines = [*times_table(times, epochs), "", *accuracy_table(accuracies, long or epochs)]
    draw(times, epochs, folder / "epoch.svg")
    draw_accuracies(accuracies, folder / "accuracy.svg")
    write_table(folder, lines)


if __name__ == "__main__":
    main()
