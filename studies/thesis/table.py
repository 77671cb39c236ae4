#!/usr/bin/python3
"""Table and pictures of the thesis' study:  table.py FOLDER  writes FOLDER/table.md and FOLDER/*.svg."""
import collections
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from output import plt, save, write_table  # noqa: E402

SETS = {"gray": "Fashion-MNIST, ring", "color": "color images, grid"}
NAMES = {"one": "1 worker", "all-reduce": "all-reduce", "server": "parameter server", "server_async": "the same, asynchronous",
         "awc": "weights (`awc`)", "atc": "weights (`atc`)", "asynchronous": "weights, staleness inf",
         "gradients": "gradients, best rate"}
METHODS = {"alone": "no exchange", "ring": "ring", "asynchronous": "ring, staleness inf", "all-reduce": "all-reduce",
           "server": "parameter server", "server_async": "the same, asynchronous"}


def row_of(path):
    content = json.loads(path.read_text())
    return content[0] if isinstance(content, list) else content


def accuracies(folder):
    """[set][name][workers]: accuracies in %, a seed each. Of rates, the best one by its mean."""
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    for path in sorted(folder.glob("*.json")):
        kind, workers, rest = path.stem.split(".", 2)
        name, _ = rest.rsplit(".", 1)
        found[kind][name][int(workers)].append(100 * row_of(path)["test_accuracy_mean_model"])
    for names in found.values():
        rates = [name for name in names if name.startswith("gradients-")]
        for workers in {w for name in rates for w in names[name]}:
            names["gradients"][workers] = max((names[name][workers] for name in rates), key=statistics.mean)
        for name in rates:
            del names[name]
    return found


def spread(values):
    if not values:
        return "–"
    return f"{statistics.mean(values):.1f} ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else f"{values[0]:.1f}"


def accuracy_table(names):
    counts = sorted({workers for of_name in names.values() for workers in of_name} - {1})
    yield "| exchange | " + " | ".join(f"{n} workers" for n in counts) + " |"
    yield "|---" * (len(counts) + 1) + "|"
    for name, title in NAMES.items():
        if name == "one":
            yield "| 1 worker | " + " | ".join([spread(names["one"][1])] * len(counts)) + " |"
        elif name in names:
            yield f"| {title} | " + " | ".join(spread(names[name].get(n, [])) for n in counts) + " |"


def rounds_of(folder):
    """[method][workers]: median of a round's milliseconds."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sorted(folder.glob("*.json")):
        workers, name, _ = path.stem.split(".")
        found[name][int(workers)].append(row_of(path)["round_ms"])
    return {name: {n: statistics.median(times) for n, times in sorted(of_name.items())} for name, of_name in found.items()}


def rounds_table(rounds):
    counts = sorted({n for of_name in rounds.values() for n in of_name})
    yield "| exchange | " + " | ".join(f"{n}" for n in counts) + " |"
    yield "|---" * (len(counts) + 1) + "|"
    for name, title in METHODS.items():
        if name in rounds:
            yield f"| {title} | " + " | ".join(f"{rounds[name][n]:.1f}" if n in rounds[name] else "–" for n in counts) + " |"


def sets_of(found):
    return [(kind, title) for kind, title in SETS.items() if kind in found]


def draw_accuracy(found, path):
    sets = sets_of(found)
    figure, panels = plt.subplots(1, len(sets), figsize=(5 * len(sets), 4), sharey=True, squeeze=False)
    panels = panels[0]
    for axes, (kind, title) in zip(panels, sets):
        base = statistics.mean(found[kind]["one"][1])
        axes.axhline(base, color="gray", linewidth=0.8, label="1 worker")
        for index, name in enumerate(name for name in NAMES if name in found[kind] and name != "one"):
            points = sorted((n, values) for n, values in found[kind][name].items() if values)
            x = [n * 1.03 ** (index - 3) for n, _ in points]  # side by side
            middle = [statistics.mean(values) for _, values in points]
            errors = [[m - min(v) for m, (_, v) in zip(middle, points)], [max(v) - m for m, (_, v) in zip(middle, points)]]
            axes.errorbar(x, middle, yerr=errors, marker="o", markersize=4, capsize=2, label=NAMES[name].replace("`", ""))
        axes.set(title=title, xlabel="workers", xscale="log")
        axes.set_xticks(counts := sorted({n for values in found[kind].values() for n in values if n > 1}), counts)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("test accuracy, mean model (%)")
    panels[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, path)


def draw_rounds(rounds, path):
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, title in METHODS.items():
        if name in rounds:
            axes.plot(list(rounds[name]), list(rounds[name].values()), marker="o", markersize=4, label=title)
    axes.set(xlabel="workers", ylabel="ms a round, of which 40 ms are the step", xscale="log")
    axes.set_xticks(counts := sorted({n for values in rounds.values() for n in values}), counts)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def main():
    folder = pathlib.Path(sys.argv[1])
    found, rounds = accuracies(folder / "runs"), rounds_of(folder / "rounds")
    lines = []
    for kind, title in sets_of(found):
        lines += [f"{title}: test accuracy of the mean model in %, mean (smallest to largest seed)", ""]
        lines += [*accuracy_table(found[kind]), ""]
    if found:
        draw_accuracy(found, folder / "accuracy.svg")
    if rounds:
        lines += ["Milliseconds of a round by number of workers", "", *rounds_table(rounds)]
        draw_rounds(rounds, folder / "rounds.svg")
    write_table(folder, lines)


if __name__ == "__main__":
    main()
