#!/usr/bin/python3
"""Local steps with an outer step, compared with all-reduce: trains a model with 8 workers by each rule, and writes a
table. The tasks: LeNet-5 on Fashion-MNIST, and a language model of characters (bench/text.py, bench/text.toml).

  bench/local_steps.py [--task images|text] [--program FILE] [--samples N] [--epochs N] [--seeds N] [--runs DIR] [--out FILE]

Rates: each rule gets four settings, one run each of a quarter of the epochs with seed 100. The one with the best
result of the mean model is taken for all seeds. Runs that are in DIR are not repeated.

  bench/local_steps.py --settings FILE ...    nothing is tuned: FILE has a setting for each rule (bench/text.json)

  bench/local_steps.py --steps-ms FILE ...    also writes the seconds to the quality of "epochs to": FILE has the
                                              milliseconds of a step by link and rule (bench/slow_links.sh)
"""
import argparse
import dataclasses
import json
import math
import pathlib
import statistics
import subprocess
import sys

from runs import RunFailed, fast_train, words

WORKERS, PERIOD, TUNING_SEED = 8, 50, 100
RING, PAIRS, ALL = "--topology ring", "--topology random_matchings", "--topology complete"
HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Task:
    """What is learned, and how good it is."""
    arguments: list  # of fast-train
    rates: tuple  # of rules that exchange in every step
    local_rates: tuple  # of rules that exchange seldom
    grid_rates: tuple  # of rules with two settings more
    measure: str
    unit: str
    target: float
    samples: int  # 0: all
    epochs: int
    higher_is_better: bool

    def value(self, measured):
        """The result as the table has it, of test_{measure}."""
        return 100 * measured if self.higher_is_better else measured

    def whole(self, lines):
        """The result of parts of the test samples together."""
        forth, back = (float, float) if self.higher_is_better else (math.log, math.exp)
        name = f"test_{self.measure}"
        mean = sum(forth(line[name]) * line["test_samples"] for line in lines) / sum(line["test_samples"] for line in lines)
        return self.value(back(mean))

    def reaches(self, value):
        return value >= self.target if self.higher_is_better else value <= self.target

    def best(self, values):
        return max(values) if self.higher_is_better else min(values)


TASKS = {
    "images": Task(["--batch-size", "16"], (0.01, 0.02, 0.05, 0.1), (0.005, 0.01, 0.02, 0.05), (0.01, 0.03),
                   "accuracy", "test accuracy, %", 85, 0, 50, True),
    "text": Task(["--loss", "cross_entropy", "--model", str(HERE / "text.toml"), "--batch-size", "8", "--optimizer", "adam",
                  "--evaluate-every", "100"], (0.02, 0.05, 0.1, 0.2), (0.01, 0.02, 0.05, 0.1), (0.02, 0.05),
                 "perplexity", "test perplexity", 6, 25600, 8, False),
}
TEXT_STEPS = 32  # characters of a sample


def rates(base, *values):
    """One setting for each learning rate."""
    return base, [f"--lr {value}" for value in values]


def rules_of(task):
    """name: (label, (options, four settings))"""
    def outer(rule, *options):
        return f"--algorithm {rule} period={PERIOD} " + " ".join(options)

    def grid(base, *options):
        """Two learning rates by two settings of the rule."""
        return base, [f"{option} --lr {rate}" for rate in task.grid_rates for option in options]

    return {
        "allreduce": ("all-reduce in every step", rates("--algorithm allreduce", *task.rates)),
        "awc": ("`awc` in every step, ring", rates(RING, *task.rates)),
        "local": ("`local`, ring", rates(f"{RING} {outer('local')}", *task.local_rates)),
        "diloco": ("`diloco`", grid(f"{ALL} {outer('diloco')}", "rate=0.7 momentum=0.9", "rate=0.7 momentum=0.5")),
        "diloco-few": ("`diloco`, 2 %", grid(f"{ALL} {outer('diloco', 'fraction=0.02')}",
                                             "rate=1 momentum=0.95", "rate=0.7 momentum=0.95")),
        "diloco-few-int2": ("`diloco`, 2 %, 2 bits", grid(f"{ALL} --codec int2 {outer('diloco', 'fraction=0.02')}",
                                                          "rate=1 momentum=0.95", "rate=0.7 momentum=0.95")),
        "noloco": ("`noloco`, pairs", grid(f"{PAIRS} {outer('noloco')}", "rate=0.7 momentum=0.5", "rate=1 momentum=0.3")),
        "gasloc": ("`gasloc`, ring", grid(f"{RING} {outer('gasloc')}", "rate=1 acceleration=0", "rate=1 acceleration=0.3")),
        "gasloc-peer": ("`gasloc`, one peer",
                        grid(f"--topology one_peer_exponential {outer('gasloc')}", "acceleration=0", "acceleration=0.3")),
        "gasloc-int4": ("`gasloc`, ring, 4 bits", grid(f"{RING} --codec int4 {outer('gasloc', 'changes=true')}",
                                                        "consensus_step=1", "consensus_step=0.6")),
        "gasloc-int2": ("`gasloc`, ring, 2 bits", grid(f"{RING} --codec int2 {outer('gasloc', 'changes=true')}",
                                                        "consensus_step=0.3", "consensus_step=0.15")),
        "sparta": ("`sparta` .5 %, ring", rates(f"{RING} --algorithm sparta", *task.local_rates)),
    }


RULES = list(rules_of(TASKS["images"]))


class Comparison:
    """The runs of one task."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.task = TASKS[arguments.task]
        self.rules = rules_of(self.task)
        self.samples = self.task.samples if arguments.samples is None else arguments.samples
        self.epochs = arguments.epochs or self.task.epochs
        self.data = self.text_data() if arguments.task == "text" else []

    def text_data(self):
        """Makes the windows of text, where they are not there."""
        file = self.arguments.runs / f"text-{self.samples}-{TEXT_STEPS}.npz"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            made = subprocess.run([str(HERE / "text.py"), str(file), "--windows", str(self.samples), "--steps", str(TEXT_STEPS)],
                                  check=False)
            if made.returncode != 0:
                sys.exit("local_steps.py: there is no text to learn")
        return ["--data", str(file)]

    def run(self, directory, options, epochs, seed):
        """The summary of a run, and the results of its mean model: (epochs, result)."""
        summary, lines = fast_train(directory, self.arguments.program, WORKERS,
                                    ["--samples", self.samples, *self.data, *self.task.arguments, "--epochs", epochs, "--seed",
                                     seed, *words(options)])
        steps = lines[-1][0]["step"] / epochs  # of an epoch
        return summary, [(line[0]["step"] / steps, self.task.whole(line)) for line in lines]

    def result(self, summary):
        return self.task.value(summary[f"test_{self.task.measure}_mean_model"])

    def tuned(self, name):
        """The best of the rule's four settings."""
        base, settings = self.rules[name][1]
        assert len(settings) == 4
        found = {}
        for number, setting in enumerate(settings):
            options = f"{base} {setting}"
            try:
                summary, _ = self.run(self.arguments.runs / f"tune-{name}-{number}", options, max(1, self.epochs // 4),
                                      TUNING_SEED)
            except RunFailed as reason:  # such as a rate at which training diverges
                print(f"{name}: {setting}: failed: {reason}", flush=True)
                continue
            found.setdefault(self.result(summary), setting)
            print(f"{name}: {options}: {self.result(summary):.3f}", flush=True)
        if not found:
            sys.exit(f"local_steps.py: {name}: no setting could be run")
        return found[self.task.best(found)]

    def compare(self, name):
        setting = self.arguments.settings[name] if self.arguments.settings else self.tuned(name)
        options = f"{self.rules[name][1][0]} {setting}"
        try:
            runs = [self.run(self.arguments.runs / f"{name}-{seed}", options, self.epochs, seed)
                    for seed in range(1, self.arguments.seeds + 1)]
        except RunFailed as reason:
            sys.exit(f"local_steps.py: {name}: {reason}")
        print(f"{name}: " + ", ".join(f"{self.result(summary):.3f}" for summary, _ in runs), flush=True)
        return {"setting": setting, "runs": runs}

    def epochs_to_target(self, result):
        """The mean over seeds; None: some seed did not come there."""
        reached = [next((epoch for epoch, value in tested if self.task.reaches(value)), None) for _, tested in result["runs"]]
        return None if None in reached else statistics.mean(reached)

    def row(self, name, results):
        sent, reference = (statistics.mean(summary["bytes_sent_per_worker_per_round"] for summary, _ in results[rule]["runs"])
                           for rule in (name, "allreduce"))
        share = f"1/{reference / sent:.0f}" if 0 < sent < reference / 2 else f"{sent / reference:.3g}"
        values = [self.result(summary) for summary, _ in results[name]["runs"]]
        epochs = self.epochs_to_target(results[name])
        cells = [self.rules[name][0], f"{statistics.mean(values):.2f}", f"{min(values):.2f}, {max(values):.2f}",
                 f"{epochs:.2f}" if epochs else "–", f"{sent / 1e3:.2f}", share, f"`{results[name]['setting']}`"]
        return "| " + " | ".join(cells) + " |"

    def table(self, results):
        lines = [f"| rule | {self.task.unit} | lowest, highest | epochs to {self.task.target} | kB a step | bytes to all-reduce's "
                 "| setting |", "|---|---|---|---|---|---|---|"]
        return lines + ([self.row(name, results) for name in results] if "allreduce" in results else [])

    def seconds_table(self, results, steps_ms):
        """Seconds to the target: epochs to it, by steps of an epoch, by the milliseconds of a step on a link."""
        lines = ["| rule | " + " | ".join(steps_ms) + " |", "|---|" + "---|" * len(steps_ms)]
        for name, result in results.items():
            epochs = self.epochs_to_target(result)
            summary = result["runs"][0][0]
            steps = summary["rounds"] / summary["epochs"]
            cells = ["–" if epochs is None or name not in by_rule else f"{epochs * steps * by_rule[name] / 1e3:.0f}"
                     for by_rule in steps_ms.values()]
            lines.append(f"| {self.rules[name][0]} | " + " | ".join(cells) + " |")
        return lines


def settings_of(file):
    try:
        found = json.loads(pathlib.Path(file).read_text())
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{file}: {error}") from None
    unknown = set(found) - set(RULES)
    if unknown:
        raise argparse.ArgumentTypeError(f"{file}: no rule is named {', '.join(sorted(unknown))}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=list(TASKS), default="images")
    parser.add_argument("--program", default="build/release/bin/fast-train")
    parser.add_argument("--samples", type=int, help="of the training set; 0: all")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("build/local_steps"))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--rules", nargs="*", default=RULES, choices=RULES)
    parser.add_argument("--settings", type=settings_of, metavar="FILE")
    parser.add_argument("--steps-ms", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.settings:
        arguments.rules = [name for name in arguments.rules if name in arguments.settings]
    comparison = Comparison(arguments)
    results = {name: comparison.compare(name) for name in arguments.rules}
    lines = comparison.table(results)
    if arguments.steps_ms:
        lines += ["", *comparison.seconds_table(results, json.loads(arguments.steps_ms.read_text())[arguments.task])]
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
