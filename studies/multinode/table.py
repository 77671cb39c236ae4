#!/usr/bin/python3
"""Table and picture of the study of several nodes:  table.py FOLDER

Writes FOLDER/table.md and FOLDER/nodes.svg. Of fast-train's runs, the second epoch counts, by the metrics of all workers.
"""
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from output import plt, save, write_table  # noqa: E402

TITLES = {"unpaced": "none, steps not paced", "alone": "none", "ring": "neighbors, ring", "all-reduce": "all-reduce", "ddp": "PyTorch DDP"}
PARTS = {"exchange": "exchange", "wait": "waiting", "rest": "input and other"}


def of_metrics(folder):
    """Images per second of all workers, and the mean worker's milliseconds of a round by phase."""
    speeds, rounds = [], []
    for path in sorted((folder / "metrics").glob("*.jsonl")):
        epochs = [line for line in map(json.loads, path.read_text().splitlines()) if line["kind"] == "epoch"]
        count, last = epochs[-1]["step"] - epochs[-2]["step"], epochs[-1]
        phases = last["phases"]
        speeds.append(last["samples_per_second"])
        rounds.append({"round": last["samples"] / last["samples_per_second"] / count, "step": phases["step"] / count,
                       "exchange": (phases["publish"] + phases["mix"]) / count, "wait": phases["wait"] / count,
                       "rest": phases["rest"] / count})
    means = {name: 1e3 * statistics.mean(one[name] for one in rounds) for name in rounds[0]}
    return {"samples_per_second": sum(speeds), **means}


def read(folder):
    """By hosts, workers on each and exchange."""
    found = {}
    for path in folder.glob("*.json"):
        name, hosts, each = path.stem.rsplit(".", 2)
        row = json.loads(path.read_text())
        found[int(hosts), int(each), name] = row if name == "ddp" else {**row, **of_metrics(folder / path.stem)}
    return dict(sorted(found.items(), key=lambda item: (item[0][:2], list(TITLES).index(item[0][2]))))


def table(rows):
    yield "| hosts | workers | exchange | images/s | ms a round | step | exchange | waiting | input, other | step's share | load |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for (hosts, each, name), row in rows.items():
        exchange = f"{row['exchange']:.1f}" if name not in ("ddp", "all-reduce") else "–"
        yield (f"| {hosts} | {hosts * each} | {TITLES[name]} | {row['samples_per_second']:.0f} | {row['round']:.1f} | {row['step']:.1f} | "
               f"{exchange} | {row['wait']:.1f} | {row['rest']:.1f} | {row['step'] / row['round']:.2f} | {row['machine_load']:.0f} |")


def draw(rows, path):
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    names = [name for name in ("ring", "all-reduce", "ddp") if any(key[2] == name for key in rows)]
    for name in names:
        points = sorted((hosts * each, row["samples_per_second"]) for (hosts, each, of), row in rows.items() if of == name)
        left.scatter(*zip(*points), s=18, label=TITLES[name])
    most = max(hosts * each for hosts, each, _ in rows)
    one = rows[1, 1, "alone"]["samples_per_second"]
    left.plot([1, most], [one, most * one], color="gray", linestyle="--", linewidth=0.8, label="one worker's, times workers")
    left.set(xlabel="workers", ylabel="images/s", xlim=(0, None), ylim=(0, None))
    left.grid(alpha=0.3)
    left.legend(frameon=False, fontsize=8)
    cells = sorted({key[:2] for key in rows if key[0] * key[1] > 1})
    for index, name in enumerate(names):
        places = [at + 0.27 * (index - 1) for at, cell in enumerate(cells) if (*cell, name) in rows]
        of_name = [rows[(*cell, name)] for cell in cells if (*cell, name) in rows]
        bottom = [0.0] * len(of_name)
        for part, shade in zip(PARTS, (1.0, 0.6, 0.3)):
            heights = [row.get(part, 0) for row in of_name]
            label = f"{TITLES[name]}: {PARTS[part]}" if any(heights) and index == 0 else None
            right.bar(places, heights, 0.25, bottom=bottom, color=f"C{index}", alpha=shade, label=label)
            bottom = [low + height for low, height in zip(bottom, heights)]
    right.set_xticks(range(len(cells)), [f"{hosts} x {each}" for hosts, each in cells])
    right.set(xlabel="hosts x workers on each", ylabel="ms a round beside the step")
    right.legend(frameon=False, fontsize=8)
    right.grid(alpha=0.3, axis="y")
    figure.tight_layout()
    save(figure, path)


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = read(folder)
    draw(rows, folder / "nodes.svg")
    write_table(folder, table(rows))


if __name__ == "__main__":
    main()
