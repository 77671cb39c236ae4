#!/usr/bin/python3
"""Local steps with an outer step, compared with all-reduce: trains LeNet-5 on Fashion-MNIST with 8
workers by each rule, and writes a table.

  bench/local_steps.py [--program FILE] [--samples N] [--epochs N] [--seeds N] [--runs DIR] [--out FILE]

Rates: each rule gets four settings, one run each of a quarter of the epochs with seed 100. The one with the best
test accuracy is taken for all seeds. Runs that are in DIR are not repeated.
"""
import argparse
import pathlib
import statistics
import sys

from runs import RunFailed, epochs_to, fast_train, words

WORKERS, PERIOD, BATCH = 8, 50, 16
RING, PAIRS, ALL = "--topology ring", "--topology random_matchings", "--topology complete"


def outer(rule, *options):
    return f"--algorithm {rule} period={PERIOD} " + " ".join(options)


def rates(base, *values):
    """One setting for each learning rate."""
    return base, [f"--lr {value}" for value in values]


def grid(base, options):
    """Two learning rates by two settings of the rule."""
    return base, [f"{option} --lr {rate}" for rate in (0.01, 0.03) for option in options]


RATES, LOCAL_RATES = (0.01, 0.02, 0.05, 0.1), (0.005, 0.01, 0.02, 0.05)
RULES = {  # name: (label, (options, four settings))
    "allreduce": ("all-reduce in every step", rates("--algorithm allreduce", *RATES)),
    "awc": ("`awc` in every step, ring", rates(RING, *RATES)),
    "local": ("`local`, ring", rates(f"{RING} {outer('local')}", *LOCAL_RATES)),
    "diloco": ("`diloco`", grid(f"{ALL} {outer('diloco')}", ("rate=0.7 momentum=0.9", "rate=0.7 momentum=0.5"))),
    "noloco": ("`noloco`, pairs", grid(f"{PAIRS} {outer('noloco')}", ("rate=0.7 momentum=0.5", "rate=1 momentum=0.3"))),
    "gasloc": ("`gasloc`, ring", grid(f"{RING} {outer('gasloc')}", ("rate=1 acceleration=0", "rate=1 acceleration=0.3"))),
    "gasloc-peer": ("`gasloc`, one peer",
                    grid(f"--topology one_peer_exponential {outer('gasloc')}", ("acceleration=0", "acceleration=0.3"))),
    "gasloc-int4": ("`gasloc`, ring, 4 bits", grid(f"{RING} --codec int4 {outer('gasloc', 'changes=true')}",
                                                    ("consensus_step=1", "consensus_step=0.6"))),
    "gasloc-int2": ("`gasloc`, ring, 2 bits", grid(f"{RING} --codec int2 {outer('gasloc', 'changes=true')}",
                                                    ("consensus_step=0.3", "consensus_step=0.15"))),
    "sparta": ("`sparta` .5 %, ring", rates(f"{RING} --algorithm sparta", *LOCAL_RATES)),
}


def run(arguments, directory, options, epochs, seed):
    """The summary of a run, and its mean model's accuracy by epoch."""
    return fast_train(directory, arguments.program, WORKERS,
                      ["--samples", arguments.samples, "--batch-size", BATCH, "--epochs", epochs, "--seed", seed, *words(options)])


def tuned(arguments, name):
    """The best of the rule's four settings."""
    base, settings = RULES[name][1]
    assert len(settings) == 4
    found = []
    for number, setting in enumerate(settings):
        options = f"{base} {setting}"
        try:
            summary, _ = run(arguments, arguments.runs / f"tune-{name}-{number}", options, max(1, arguments.epochs // 4), 100)
        except RunFailed as reason:  # such as a rate at which training diverges
            print(f"{name}: {setting}: failed: {reason}", flush=True)
            continue
        found.append((summary["test_accuracy_mean_model"], -number, setting))
        print(f"{name}: {options}: {100 * found[-1][0]:.2f} %", flush=True)
    if not found:
        sys.exit(f"local_steps.py: {name}: no setting could be run")
    return max(found)[2]


def row(name, results):
    label, setting = RULES[name][0], results[name]["setting"]
    runs, reference = results[name]["runs"], results["allreduce"]["runs"]
    accuracies = [100 * summary["test_accuracy_mean_model"] for summary, _ in runs]
    sent = statistics.mean(summary["bytes_sent_per_worker_per_round"] for summary, _ in runs)
    of_reference = statistics.mean(summary["bytes_sent_per_worker_per_round"] for summary, _ in reference)
    epochs = [epochs_to(by_epoch, 0.85) for _, by_epoch in runs]
    reached = f"{statistics.mean(epochs):.1f}" if all(epochs) else "–"
    ratio = of_reference / sent if sent else 0
    return (f"| {label} | {statistics.mean(accuracies):.2f} ({min(accuracies):.2f} – {max(accuracies):.2f}) | {reached} | "
            f"{sent / 1e3:.2f} | 1/{ratio:.0f} | `{setting}` |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/fast-train")
    parser.add_argument("--samples", type=int, default=0, help="of the training set; 0: all")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("build/local_steps"))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--rules", nargs="*", default=list(RULES), choices=list(RULES))
    arguments = parser.parse_args()
    results = {}
    for name in arguments.rules:
        setting = tuned(arguments, name)
        options = f"{RULES[name][1][0]} {setting}"
        try:
            runs = [run(arguments, arguments.runs / f"{name}-{seed}", options, arguments.epochs, seed)
                    for seed in range(1, arguments.seeds + 1)]
        except RunFailed as reason:
            sys.exit(f"local_steps.py: {name}: {reason}")
        results[name] = {"setting": setting, "runs": runs}
    lines = ["| rule | test accuracy, % | epochs to 85 % | kB a step | against all-reduce | setting |", "|---|---|---|---|---|---|"]
    lines += [row(name, results) for name in results] if "allreduce" in results else []
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
