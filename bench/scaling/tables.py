#!/usr/bin/python3
"""Tables and pictures of the scaling study:  bench/scaling/tables.py DIR [--out docs/pictures]

DIR has the results of bench/scaling/scaling.sh. Tables are printed as Markdown. "wire" is how long the link of a host is busy
in a round: the bytes that it sends, divided by --link, which NetPIPE measures (bench/remote.sh). With --out, pictures are written there:
scaling-workers.svg (a round by number of workers) and scaling-anatomy.svg (where a round's time goes). Pictures need
matplotlib:  apt-get install python3-matplotlib
"""
import argparse
import json
import pathlib
import sys

METHODS = ["none", "ring", "torus", "one-peer", "hierarchical", "hierarchical-one-peer", "ring-stale1", "ring-inf",
           "one-peer-inf", "ring-int8", "one-peer-int8", "all-reduce", "mpi-all-reduce", "ddp", "torch-alone", "server", "server-async"]
TORCH = ["ddp", "torch-alone"]  # their steps are those of another program
DRAWN = ["ring", "torus", "one-peer", "hierarchical-one-peer", "ring-inf", "mpi-all-reduce", "ddp", "server"]
CENTRAL = ["mpi-all-reduce", "ddp", "server"]  # of the drawn ones, those without neighbors
WORKERS = ["n1", "n2", "n4", "n8", "n16"]
STRONG = {"strong1": 1, "strong2": 2, "n4": 4, "strong8": 8, "strong": 16}  # all workers compute 160 ms a round together
PARTS = ["compute_ms", "publish_ms", "mix_ms", "wait_ms", "rest_ms"]


def read(directory):
    """{cell: {method: row}}; a cell's file is CELL.METHOD.json. Cells of training have a list of rows, one an epoch."""
    cells = {}
    for file in sorted(pathlib.Path(directory).glob("*.json")):
        cell, method = file.name.removesuffix(".json").split(".", 1)
        content = json.loads(file.read_text())
        rows = content["rows"] if isinstance(content, dict) else content
        cells.setdefault(cell, {})[method] = rows if cell.startswith("train") else rows[0]
    return cells


def present(cells, names):
    return [m for m in METHODS if any(m in cells.get(name, {}) for name in names)]


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def ratio(row, base):
    return f"{row['round_ms'] / base['round_ms']:.3f}" if row and base else "–"


def efficiency(cells):
    """A round without exchange ÷ a round: by number of workers."""
    names = [n for n in WORKERS if n in cells]
    print("Time of a round ÷ that without exchange, by number of workers:\n")
    table(["method", *(n[1:] for n in names)],
          [[m, *(ratio(cells[n].get(m), cells[n].get("none")) for n in names)] for m in present(cells, names) if m != "none"])


def weak_speed_up(cells):
    """Samples a second of N workers ÷ those of one worker without exchange. The efficiency is this ÷ N."""
    alone = cells.get("n1", {}).get("none")
    names = [n for n in WORKERS[1:] if n in cells]
    if not alone or not names:
        return

    def shown(row, workers):
        return f"{workers * alone['round_ms'] / row['round_ms']:.1f}" if row else "–"
    print("Weak scaling, speed-up over one worker without exchange:\n")
    table(["method", *(n[1:] for n in names)],
          [[m, *(shown(cells[n].get(m), int(n[1:])) for n in names)] for m in present(cells, names) if m not in TORCH])


def strong_speed_up(cells):
    """The time of a round of one worker without exchange ÷ that of N workers, who share its work."""
    alone = cells.get("strong1", {}).get("none")
    names = [n for n in STRONG if n in cells]
    if not alone:
        return

    def shown(row, workers):
        if not row:
            return "–"
        speed_up = alone["round_ms"] / row["round_ms"]
        return f"{speed_up:.2f} ({speed_up / workers:.2f})"
    methods = [m for m in present(cells, [n for n in names if n not in ("n4", "strong")]) if m not in TORCH]
    print("Strong scaling, speed-up over one worker without exchange (efficiency):\n")
    table(["method", *(str(STRONG[n]) for n in names)], [[m, *(shown(cells[n].get(m), STRONG[n]) for n in names)] for m in methods])


def conditions(cells):
    names = [n for n in ("n16", "hosts1", "hosts2", "100mbit", "10gbit", "quarter-mb", "jitter", "slow", "strong", "100mb",
                         "100mb8") if n in cells]
    print("16 workers (100mb: 4, 100mb8: 8), time of a round ÷ that without exchange:\n")
    table(["method", *names],
          [[m, *(ratio(cells[n].get(m), cells[n].get("none")) for n in names)] for m in present(cells, names) if m != "none"])


def anatomy(cells, link, name="n16"):
    print(f"Where the time of a round goes, in ms ({name}):\n")
    rows = []
    for method in present(cells, [name]):
        row = cells[name].get(method)
        if not row or "wait_ms" not in row:  # DDP does not say
            continue
        rows.append([method, f"{row['round_ms']:.1f}", *(f"{row[part]:.2f}" for part in PARTS),
                     f"{row['host_sent_mb_round'] / link * 1e3:.1f}", f"{row['fresh']:.2f}", f"{row['host_sent_mb_round']:.2f}"])
    table(["method", "round", "compute", "publish", "mix", "wait", "rest", "wire", "fresh reads", "MB sent by a host"], rows)


def slow_worker(cells):
    if "slow" not in cells:
        return
    healthy, slow = cells.get("n16", {}), cells["slow"]
    print("Beside a worker that is 4 times as slow: the others' rate ÷ their rate without it:\n")
    rows = [[m, f"{healthy[m]['round_ms'] / slow[m]['round_ms']:.3f}", f"{slow[m].get('fresh', 1):.2f}"]
            for m in present(cells, ["slow"]) if m in slow and m in healthy]
    table(["method", "rate kept", "fresh reads"], rows)


def training(cells, share=0.85):
    """Seconds to an accuracy, and the last one. The seconds are those of the first epoch that ends above it."""
    for name, what in ("train", "Training, 16 workers on 4 hosts"), ("train-slow", "The same beside a worker that is 4 times as slow"):
        if name not in cells:
            continue
        print(f"{what}:\n")
        found = []
        for method in present(cells, [name]):
            rows = cells[name][method]
            first = next((row for row in rows if row["test_accuracy_mean_model"] >= share), None)
            reached = [f"{first['seconds']:.1f}", f"{first['epoch']}"] if first else ["not reached", "–"]
            found.append([method, f"{rows[-1]['seconds']:.1f}", *reached, f"{100 * rows[-1]['test_accuracy_mean_model']:.1f}"])
        table(["method", "seconds in all", f"seconds to {share:.0%}", "epochs", "last accuracy, %"], found)


def draw(cells, out):
    try:
        import matplotlib
    except ModuleNotFoundError:
        sys.exit("tables.py: matplotlib is not there: apt-get install python3-matplotlib")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = "fast"  # the same picture from the same rows
    import matplotlib.pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    names = [n for n in ("n1", "n2", "n4", "n8", "n16") if n in cells]
    figure, axes = plt.subplots(figsize=(7, 4))
    for method in sorted(set(DRAWN) & set(present(cells, names)), key=lambda m: -cells[names[-1]].get(m, {"round_ms": 0})["round_ms"]):
        points = [(int(n[1:]), cells[n][method]["round_ms"] / cells[n]["none"]["round_ms"]) for n in names if method in cells[n]]
        axes.plot(*zip(*points), marker="o", markersize=3, label=method, linestyle="--" if method in CENTRAL else "-")
    axes.set_xscale("log", base=2)
    axes.set_xticks([int(n[1:]) for n in names], [n[1:] for n in names])
    axes.set_xlabel("workers on up to 4 hosts")
    axes.set_ylabel("time of a round ÷ without exchange")
    axes.set_ylim(bottom=0)
    axes.grid(True, alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(out / "scaling-workers.svg", metadata={"Date": None})

    if "n16" in cells:
        methods = [m for m in present(cells, ["n16"])[::-1] if "wait_ms" in cells["n16"][m]]
        figure, axes = plt.subplots(figsize=(7, 4))
        left = [0.0] * len(methods)
        for part in PARTS:
            widths = [max(0.0, cells["n16"][m][part]) for m in methods]
            axes.barh(methods, widths, left=left, label=part.removesuffix("_ms"))
            left = [a + b for a, b in zip(left, widths)]
        axes.set_xlabel("ms a round, 16 workers on 4 hosts")
        axes.legend(fontsize=7)
        figure.tight_layout()
        figure.savefig(out / "scaling-anatomy.svg", metadata={"Date": None})


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("results")
    arguments.add_argument("--link", type=float, default=118, help="MB/s of a host's link (118: what NetPIPE gives at 1 Gbit/s)")
    arguments.add_argument("--out", type=pathlib.Path)
    options = arguments.parse_args()
    cells = read(options.results)
    if not cells:
        sys.exit(f"tables.py: no results in {options.results}; bench/scaling/scaling.sh makes them")
    if any(not cell.startswith("train") for cell in cells):
        efficiency(cells)
        weak_speed_up(cells)
        strong_speed_up(cells)
        conditions(cells)
        anatomy(cells, options.link)
    slow_worker(cells)
    training(cells)
    if options.out:
        draw(cells, options.out)


if __name__ == "__main__":
    main()
