#!/usr/bin/python3
"""Table and plots of bench/convergence.sh: convergence.py RUNS DOCS writes
DOCS/reference/convergence.md and DOCS/pictures/convergence-*.svg. The numbers of runs are
recomputed from their JSON files."""
import json
import pathlib
import re
import statistics
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "fast"
import matplotlib.pyplot as plt

from time_to import accuracy_of, metrics, over_time, time_to

ROWS = {
    "even-allreduce": "all-reduce",
    "even-ring": "`awc`, ring",
    "even-torus": "`awc`, torus 2x4",
    "even-one-peer": "`awc`, one-peer exponential",
    "even-choco": "`choco` top-1 %, ring",
    "even-event": "`event_triggered`, ring",
    "high-allreduce": "all-reduce",
    "high-ring": "`awc`, ring",
    "high-choco": "`choco` top-1 %, ring",
    "sixteen-allreduce": "all-reduce",
    "sixteen-gut-torus": "`gut`, torus 4x4",
    "sixteen-gut-ring": "`gut`, ring",
    "sixteen-atc-torus": "`atc`, torus 4x4, lazy weights",
    "sixteen-averaged-momentum-before": "`averaged_momentum`, one-peer exponential",
    "sixteen-averaged-momentum-torus": "`averaged_momentum`, `atc=true`, torus 4x4",
    "sixteen-averaged-momentum-ring": "`averaged_momentum`, `atc=true`, ring",
    "sixteen-averaged-momentum-one-peer": "`averaged_momentum`, `atc=true`, one-peer exponential",
    "lstm-allreduce": "all-reduce",
    "lstm-averaged-momentum-torus": "`averaged_momentum`, torus 4x4",
    "lstm-averaged-momentum-ring": "`averaged_momentum`, ring",
    "lstm-averaged-momentum-one-peer": "`averaged_momentum`, one-peer exponential",
    "lstm-averaged-momentum-base2": "`averaged_momentum`, base2",
    "text-allreduce": "all-reduce",
    "text-awc-torus": "`awc`, torus 4x4",
    "text-awc-ring": "`awc`, ring",
    "text-awc-one-peer": "`awc`, one-peer exponential",
    "skewed-allreduce": "all-reduce",
    "skewed-awc": "`awc`",
    "skewed-tracking": "`gradient_tracking`",
    "skewed-d2": "`d2`",
    "skewed-edm": "`edm`",
    "skewed-gut": "`gut`",
    "skewed-quasi-global": "`quasi_global_momentum`",
    "skewed-averaged-momentum": "`averaged_momentum`",
    "skewed-decentlam": "`decentlam`",
    "skewed-decentlam-long": "`decentlam`, rate 0.047",
    "skewed-relay-sum": "`relay_sum`, chain",
    "skewed-a2cid2": "`a2cid2`, alternating pairs",
    "skewed-apart": "`awc`, constant rate, no closing rounds",
    "skewed-closed": "`awc`, constant rate",
    "best8-allreduce": "8 workers: all-reduce",
    "best8-awc": "`awc`, ring",
    "best8-gut": "`gut`, ring",
    "best16-allreduce": "16 workers: all-reduce",
    "best16-awc": "`awc`, ring",
    "best16-gut": "`gut`, ring",
    "best16-gut-torus": "`gut`, torus 4x4",
    "slow-allreduce": "all-reduce",
    "slow-awc": "`awc`, staleness inf",
}
TARGET = 0.85  # accuracy whose time is taken


class Row:
    """All runs of a name, by seed."""

    def __init__(self, runs, name):
        self.name, self.label = name, ROWS[name]
        self.directories = sorted(
            (d for d in runs.glob(f"{name}-*") if re.fullmatch(rf"{name}-\d+", d.name) and (d / "summary.json").exists()),
            key=lambda d: int(d.name.rsplit("-", 1)[1]))
        self.summaries = [json.loads((d / "summary.json").read_text()) for d in self.directories]
        self.metrics = [metrics(d) for d in self.directories]

    def values(self, key):
        return [s[key] for s in self.summaries]

    def mean(self, key):
        return statistics.mean(self.values(key))

    @property
    def is_text(self):
        return "test_perplexity_mean_model" in self.summaries[0]

    def results(self):
        """What the mean models reach: accuracies, or perplexities."""
        return self.values("test_perplexity_mean_model" if self.is_text else "test_accuracy_mean_model")

    def accuracy(self):
        return 100 * self.mean("test_accuracy_mean_model")

    def worst_lag(self):
        """By how many points a worst worker trails its mean model, at most."""
        return max(100 * (s["test_accuracy_mean_model"] - s["test_accuracy_worst_worker"]) for s in self.summaries)


def spread(values, scale=100):
    low, high, mean = min(values) * scale, max(values) * scale, statistics.mean(values) * scale
    return f"{mean:.2f} ({low:.2f} - {high:.2f})"


def by_line(workers):
    """(epoch, accuracy, round, consensus distance) of each line; every worker has tested its slice."""
    for lines in zip(*workers):
        yield len(lines), 100 * accuracy_of(lines), lines[0]["step"], statistics.mean(l["consensus_distance"] for l in lines)


def time_to_target(row):
    times = [time_to(workers, TARGET) for workers in row.metrics]
    return None if not times or None in times else times


def plot(rows, path, column, xlabel, ylabel, logarithmic=False):
    figure, axes = plt.subplots(figsize=(7, 4))
    for row in rows:
        runs = [list(by_line(workers)) for workers in row.metrics]
        points = [list(zip(*at)) for at in zip(*runs)]
        x = [p[2][0] for p in points] if column == 3 else list(range(1, len(points) + 1))
        y = [p[column] for p in points]
        if column == 3 and not any(any(values) for values in y):
            continue  # replicas that never differ
        middle = [statistics.mean(values) for values in y]
        line, = axes.plot(x, middle, "-" if rows.index(row) < 10 else "--", marker=".", label=row.label.replace("`", ""))  # 10 colors
        axes.fill_between(x, [min(v) for v in y], [max(v) for v in y], color=line.get_color(), alpha=0.15, linewidth=0)
    finish(figure, axes, path, xlabel, ylabel, logarithmic)


def plot_time(rows, path):
    figure, axes = plt.subplots(figsize=(7, 4))
    for row in rows:
        for index, workers in enumerate(row.metrics):
            time, accuracy = zip(*over_time(workers))
            axes.plot(time, [100 * a for a in accuracy], color=f"C{rows.index(row)}",
                      label=row.label.replace("`", "") if index == 0 else None)
    axes.axhline(100 * TARGET, color="gray", linewidth=0.8)
    finish(figure, axes, path, "seconds", "test accuracy, mean model (%)", False)


def finish(figure, axes, path, xlabel, ylabel, logarithmic):
    axes.set(xlabel=xlabel, ylabel=ylabel)
    if logarithmic:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def table(rows):
    lines = ["| run | mean model, % | worst worker, % | consensus distance | sent per round and worker | messages sent |",
             "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.label} | {spread(row.values('test_accuracy_mean_model'))} | "
                     f"{spread(row.values('test_accuracy_worst_worker'))} | {row.mean('consensus_distance'):.2g} | "
                     f"{row.mean('bytes_sent_per_worker_per_round') / 1000:.1f} kB | {100 * row.mean('sent_fraction'):.0f} % |")
    return "\n".join(lines)


STUDENT = {2: 12.71, 3: 4.30, 5: 2.78, 10: 2.26}  # by number of seeds: 95 % of Student's distribution, both sides


def behind(row, base):
    """By how many points, or percent of a perplexity, of runs with the same seed: mean and half of the interval of 95 %."""
    lags = [100 * (a / b - 1) if row.is_text else 100 * (b - a) for a, b in zip(row.results(), base.results(), strict=True)]
    half = STUDENT.get(len(lags), 2) * statistics.stdev(lags) / len(lags) ** .5 if len(lags) > 1 else float("nan")
    return statistics.mean(lags), half


def paired(rows):
    result, unit, scale = ("test perplexity", "%", 1) if rows[0].is_text else ("mean model, %", "points", 100)
    lines = [f"| run | rate | {result} | {unit} behind all-reduce | consensus distance | sent per round and worker |",
             "|---|---|---|---|---|---|"]
    for row in rows:
        lag = "–" if row is rows[0] else "{:.2f} ± {:.2f}".format(*behind(row, rows[0]))
        rate = json.loads((row.directories[0] / "metrics.jsonl").open().readline())["learning_rate"]
        lines.append(f"| {row.label} | {rate} | {spread(row.results(), scale)} | {lag} | "
                     f"{row.mean('consensus_distance'):.2g} | {row.mean('bytes_sent_per_worker_per_round') / 1000:.1f} kB |")
    return "\n".join(lines)


def verdict(text, found, holds):
    return f"| {text} | {found} | {'yes' if holds else '**no**'} |"


def findings(rows):
    """What was to be shown, and whether it is."""
    base = rows["even-allreduce"].accuracy()
    for name in ("even-ring", "even-torus", "even-one-peer"):
        lag = base - rows[name].accuracy()
        yield verdict(f"even shards: {rows[name].label} within 0.3 points of all-reduce", f"{lag:+.2f} points behind", lag <= 0.3)
    for task, name, rule, most, unit in (("LeNet", "sixteen", "averaged-momentum", 0.2, "points"),
                                         ("LSTM", "lstm", "averaged-momentum", 0.3, "points"), ("text", "text", "awc", 1, "%")):
        for graph in ("torus", "ring", "one-peer"):
            row = rows[f"{name}-{rule}-{graph}"]
            lag, half = behind(row, rows[f"{name}-allreduce"])
            yield verdict(f"16 workers, {task}: {row.label} within {most} {unit} of all-reduce", f"{lag:+.2f} ± {half:.2f} {unit} behind",
                          lag <= most)
    for workers in (8, 16):
        full, awc, gut = (rows[f"best{workers}-{rule}"].accuracy() for rule in ("allreduce", "awc", "gut"))
        yield verdict(f"skewed shards, {workers} workers: `gut` on a ring recovers 90 % of the {full - awc:.2f} points that `awc` loses, "
                      "each at its best rate", f"{100 * (gut - awc) / (full - awc):.0f} %", gut - awc >= .9 * (full - awc))
    full, awc = rows["skewed-allreduce"].accuracy(), rows["skewed-awc"].accuracy()
    # Without gut: its steps are longer.
    best = max((rows[f"skewed-{n}"] for n in ("tracking", "d2", "edm", "quasi-global", "averaged-momentum", "decentlam", "relay-sum")), key=Row.accuracy)
    regained = (best.accuracy() - awc) / (full - awc) if full > awc else 1
    yield verdict(f"skewed shards: the best rule recovers half of the {full - awc:.2f} points that `awc` loses",
                  f"{best.label}: {100 * regained:.0f} %", regained >= 0.5)
    ring = rows["even-ring"]
    lag = ring.accuracy() - rows["even-choco"].accuracy()
    ratio = ring.mean("bytes_sent_per_worker_per_round") / rows["even-choco"].mean("bytes_sent_per_worker_per_round")
    yield verdict("`choco` top-1 % within 0.7 points of `awc` at 1/30 of its bytes",
                  f"{lag:+.2f} points behind, 1/{ratio:.1f} of the bytes", lag <= 0.7 and ratio >= 30)
    lag, share = ring.accuracy() - rows["even-event"].accuracy(), rows["even-event"].mean("sent_fraction")
    yield verdict("`event_triggered` within 0.5 points of `awc` with 40 % of its messages",
                  f"{lag:+.2f} points behind, {100 * share:.0f} % of the messages", lag <= 0.5 and share <= 0.4)
    slow, fast = time_to_target(rows["slow-allreduce"]), time_to_target(rows["slow-awc"])
    known = slow is not None and fast is not None
    ratio = statistics.mean(f / s for f, s in zip(fast, slow)) if known else float("nan")
    found = (f"{statistics.mean(fast):.1f} s against {statistics.mean(slow):.1f} s: {ratio:.2f}" if known
             else f"{100 * TARGET:.0f} % was not reached")
    yield verdict(f"one worker 4 times slower: {100 * TARGET:.0f} % in half of all-reduce's time", found, known and ratio <= 0.5)
    closed = [row for row in rows.values() if row.name != "skewed-apart"]
    worst = max(closed, key=Row.worst_lag)
    yield verdict("closing rounds: the worst worker within 1 point of the mean model in every run",
                  f"{worst.worst_lag():.2f} points at most ({worst.label}); without them "
                  f"{rows['skewed-apart'].worst_lag():.2f}", worst.worst_lag() <= 1)


def report(rows):
    group = lambda prefix: [row for row in rows.values() if row.name.startswith(prefix)]
    any_row = rows["even-allreduce"]
    seeds = len(any_row.summaries)
    slow = table(group("slow"))
    return f"""# Convergence

Does training without all-reduce reach the accuracy of all-reduce? `bench/convergence.sh` has the
options of all runs, runs this comparison and writes this page.

- Model and data: LeNet-5 on Fashion-MNIST, and an LSTM on images and on text.
- Workers: {any_row.summaries[0]["workers"]} or 16, as threads (`--exchange local`), batch 64 per worker.
- Training, unless said: {any_row.summaries[0]["epochs"]} epochs, SGD with momentum 0.9, one epoch of warm-up, then a cosine
  schedule.
- Values: mean (lowest - highest) of {seeds} seeds.
- Accuracy: on the 10,000 test images, after the closing rounds.

| expected | found | holds |
|---|---|---|
{chr(10).join(findings(rows))}

## Even shards, learning rate 0.05
This rate is the default of `fast-train`.

{table(group("even"))}

![accuracy over epochs](../pictures/convergence-even.svg)
![consensus distance over rounds](../pictures/convergence-even-distance.svg)

## Even shards, learning rate 0.1
All-reduce is most accurate at this rate. Rates tried: 0.02, 0.05, 0.1 and 0.15.

{table(group("high"))}

## 16 workers
The points behind all-reduce are those of runs with the same seed, of {len(rows["sixteen-allreduce"].summaries)}: mean and interval of 95 %.
Rates were chosen with 5 epochs and other seeds: of 0.05, 0.1 and 0.15 for all-reduce and `awc`, of
0.03 and 0.043 for `gut`, whose steps are 2.35 times as long. `atc` and `averaged_momentum` have
that of `awc`, which with seeds 101 to 103 ended 0.56 points behind on torus and ring, 0.48 with
one-peer exponential.

{paired(group("sixteen"))}

- With `awc` and `atc`, each worker has a momentum of its own, whose noise keeps the workers apart.
  That of `gut` is the change of the averaged weights. `averaged_momentum` sends its own. It sends
  twice as much, and fits graphs that change. With `atc=true` it needs no lazy weights. Without, it
  sends while gradients are computed. See [Keep `awc` and `atc`
  stable](../how-to/choose-a-topology.md#keep-awc-and-atc-stable).
- Differences are larger in short runs. With 5 epochs and seeds 101 to 104, all-reduce ended at
  88.18 %. On the torus, `averaged_momentum` without `atc`, with lazy weights, ended at 88.06, `gut`
  at 87.88, `decentlam` at 87.80, `atc` at 87.72, `awc` at 87.36. On the one-peer graph,
  `averaged_momentum` ended at 87.90, `atc` at 87.58, `gossip_pga`, exact every 8 rounds, at 87.57,
  `quasi_global_momentum` with `mu=0.5` at 87.55.

An LSTM (`--model lstm`), with {len(rows["lstm-allreduce"].summaries)} seeds and 2.5 epochs of warm-up. `averaged_momentum` has
`atc=true`. For all, the rates 0.8 and 1.2 were tried with 1 and 2.5 epochs of warm-up and two other
seeds, for all-reduce also 0.05 to 0.6 and 1.6. With 1 epoch and seeds 1 to 5, all-reduce ended at
88.34 %.

{paired(group("lstm"))}

ResNet-20 (`--model resnet20 --resize 32x32`, 1,920 images, as many for the test, 16 epochs, 4 of
them warm-up) has run with one seed only. With batches of 8, which make 240 rounds, and the rate
0.1, all-reduce ends at 85.5 %, `averaged_momentum` with `atc=true` at 85.1 on the torus, 84.0 on
the one-peer graph and 82.8 on the ring. With batches of 4, 480 rounds and the rate 0.05, all-reduce
ends at 85.8, the one-peer graph at 86.0.

The [language task](local-steps.md) by Adam, with {len(rows["text-allreduce"].summaries)} seeds, 16 epochs and batches of 8. Rates tried
with two other seeds: 0.01, 0.02, 0.04, 0.08 and 0.12. A worker of `awc` has a batch of its own in
Adam's second moment. Its noise makes steps shorter, so that the best rate is twice that of
all-reduce.

{paired(group("text"))}

## Skewed shards
Shards are skewed by label, Dirichlet(0.1). The topology is a ring and the learning rate is 0.02.

- `edm`, `gut`, `quasi_global_momentum`, `averaged_momentum` and `decentlam` contain the momentum
  and use plain SGD steps. The other rules use SGD with momentum.
- `gut` makes longer steps than the others at the same rate: (1 - μ)/(1 - β - μ) = 23.5 gradients in
  the long run, in place of 1/(1 - β) = 10. `decentlam` has the same steps at the rate 0.047.
- The last two rows keep the learning rate constant. A decreasing rate brings replicas together, a
  constant rate does not. These rows show the effect of closing rounds.

{table(group("skewed"))}

![accuracy over epochs](../pictures/convergence-skewed.svg)
![consensus distance over rounds](../pictures/convergence-skewed-distance.svg)

The next rows have the best of three rates: of 0.02, 0.047 and 0.1, or with `gut` of 0.02, 0.03 and
0.043.

{paired(group("best8"))}

{paired(group("best16"))}

## One slow worker
The computing time is simulated: a step that is too short sleeps. Every step takes 20 ms. A step of
worker 3 takes 80 ms. The time includes an evaluation every 13 rounds.

{slow}

![accuracy over time](../pictures/convergence-slow.svg)
"""


def main(runs, docs):
    rows = {name: Row(runs, name) for name in ROWS}
    missing = [name for name, row in rows.items() if not row.summaries]
    if missing:
        sys.exit(f"convergence.py: {runs} has no {', '.join(missing)}; run bench/convergence.sh")
    pictures = docs / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    for group in ("even", "skewed"):
        chosen = [row for row in rows.values() if row.name.startswith(group)]
        plot(chosen, pictures / f"convergence-{group}.svg", 1, "epoch", "test accuracy, mean model (%)")
        plot(chosen, pictures / f"convergence-{group}-distance.svg", 3, "round", "consensus distance", True)
    plot_time([rows["slow-allreduce"], rows["slow-awc"]], pictures / "convergence-slow.svg")
    page = docs / "reference" / "convergence.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(report(rows))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
