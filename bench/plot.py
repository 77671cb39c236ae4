#!/usr/bin/python3
"""Pictures of the benchmarks' JSON:  bench/plot.py --out docs/pictures FILE...

Writes one picture a file, <name of the file>.svg, of a kind that its rows tell:
  steps      (bench_step)       a step's time, without exchange = 1, and what is kept beside a straggler
  consensus  (bench_consensus)  time to agree by number of workers; give the runs of all numbers as one
                                picture:  bench/plot.py --name consensus n2.json n4.json n8.json
  sizes      (others)           time by size, a line a method, topology and number of workers
Needs matplotlib:  apt-get install python3-matplotlib
"""
import argparse
import itertools
import json
import pathlib
import sys

try:
    import matplotlib
except ModuleNotFoundError:
    sys.exit("plot.py: matplotlib is not there: apt-get install python3-matplotlib")
matplotlib.use("Agg")
matplotlib.rcParams["svg.fonttype"] = "none"
matplotlib.rcParams["svg.hashsalt"] = "fast"  # the same picture from the same rows
import matplotlib.pyplot as plt  # noqa: E402

NAMELESS = ("-", None, "identity", "fixed")


def titled(row):
    """A row's name among others of its file."""
    parts = []
    for key in ("method", "topology", "staleness", "codec", "arena"):
        if row.get(key) in NAMELESS:
            continue
        text = str(row[key]).replace("_", " ")
        parts.append("staleness " + text.replace("inf", "∞") if key == "staleness" else text)
    return ", ".join(parts)


def groups(rows, key):
    found = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def errors(rows):
    return [[r["median_ms"] - r["low_ms"] for r in rows], [r["high_ms"] - r["median_ms"] for r in rows]]


def plot_steps(rows, axes):
    calm = [r for r in rows if r.get("slow", "-") == "-"]
    base = next(r["median_ms"] for r in calm if r["method"] == "none")
    names = [titled(r) for r in calm]
    spread = [[v / base for v in side] for side in errors(calm)]
    axes.barh(names, [r["median_ms"] / base for r in calm], xerr=spread, color="#4c78a8", height=0.35,
              align="edge", label="a step's time ÷ without exchange")
    kept = {titled(r): r["rate_kept"] for r in rows if "rate_kept" in r}
    if kept:
        slow = next(r["slow"] for r in rows if "rate_kept" in r)
        axes.barh(names, [kept[n] for n in names], color="#f58518", height=-0.35, align="edge",
                  label=f"healthy workers' rounds a second beside a straggler ({slow}) ÷ without")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.1), frameon=False)
    first = calm[0]
    axes.set_title(f"{first['model']}, {first['compute']}, {first['workers']} workers")


def plot_consensus(rows, axes):
    for name, line in groups(rows, titled).items():
        line.sort(key=lambda r: r["workers"])
        axes.errorbar([r["workers"] for r in line], [r["median_ms"] for r in line], yerr=errors(line),
                      marker="o", capsize=2, label=name)
    axes.set_yscale("log")
    axes.set_xticks(sorted({r["workers"] for r in rows}))
    axes.set_xlabel("workers")
    axes.set_ylabel("ms until the consensus distance has shrunk")
    axes.set_title(f"{rows[0]['bytes'] / 1e6:g} MB a worker")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def plot_sizes(rows, axes):
    workers = {r.get("workers") for r in rows}

    def name(row):
        many = f", {row['workers']} workers" if len(workers) > 1 and "workers" in row else ""
        return titled(row) + many

    lines = groups(rows, name)
    colors = matplotlib.colormaps["tab20"].colors if len(lines) > 10 else matplotlib.colormaps["tab10"].colors
    for color, (text, line) in zip(itertools.cycle(colors), lines.items()):
        line.sort(key=lambda r: r["bytes"])
        axes.errorbar([r["bytes"] / 1e6 for r in line], [r["median_ms"] for r in line], yerr=errors(line),
                      marker="o", capsize=2, color=color, label=text, linestyle="-" if text.startswith("awc") else "--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("MB")
    axes.set_ylabel("ms")
    axes.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def kind_of(rows):
    if "of_none" in rows[0]:
        return plot_steps
    return plot_consensus if "rounds" in rows[0] else plot_sizes


def draw(rows, path):
    figure, axes = plt.subplots(figsize=(8, 4.5))
    kind_of(rows)(rows, axes)
    axes.grid(True, alpha=0.3)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/pictures"), help="folder [docs/pictures]")
    parser.add_argument("--name", help="all files' rows in one picture of this name")
    options = parser.parse_args()
    pictures = {}
    for file in options.files:
        try:
            rows = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            sys.exit(f"plot.py: {file}: {error}; give what a benchmark wrote with --json")
        pictures.setdefault(options.name or file.stem, []).extend(rows)
    for name, rows in pictures.items():
        if not rows:
            sys.exit(f"plot.py: {name}: no rows; run the benchmark again with --json")
        draw(rows, options.out / f"{name}.svg")


if __name__ == "__main__":
    main()
