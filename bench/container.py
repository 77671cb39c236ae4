#!/usr/bin/env python3
"""The speed of training in the runtime image over that on the bare machine.

  bench/container.py ROOT BIN                 ROOT: the image, by scripts/container.sh --export ROOT; BIN: the same programs
                                              outside, build/deb/bin of scripts/deb.sh
  ... --pairs 3 --samples 6000 --epochs 1     small, to see that it runs
  ... --json FILE                             the figures as JSON

The image runs in a chroot of its files as its user, with processes, mounts and /dev/shm of its own. Needs root and an idle
machine with a core for each worker. Runs alternate, and each pair begins with the other one. A ratio is that of a pair.
Both must end with the same loss, which shows that they compute the same. Status 1: the median ratio of samples a second is
below --least.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
BARE, IMAGE = "bare machine", "image"
USER = 1000  # of the image


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path, help="the files of the image")
    parser.add_argument("bin", type=pathlib.Path, help="the programs outside")
    parser.add_argument("--pairs", type=int, default=9, help="runs of each (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="of a run (%(default)s)")
    parser.add_argument("--samples", type=int, default=60000, help="of an epoch (%(default)s)")
    parser.add_argument("--epochs", type=int, default=3, help="of a run (%(default)s)")
    parser.add_argument("--least", type=float, default=0.97, help="ratio that is required (%(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the figures")
    options = parser.parse_args()
    if min(options.pairs, options.workers, options.samples, options.epochs) < 1:
        parser.error("at least 1 of everything is required")
    for file in (options.root / "usr/bin/fast-train", options.bin / "fast-train", options.bin / "fastrun"):
        if not file.exists():
            parser.error(f"{file} is not there")
    return options


class Place:
    """Where fastrun and fast-train run: words before the program, its folder, and where it and this program see one folder."""

    def __init__(self, prefix, programs, folder, inside):
        self.prefix, self.programs, self.folder, self.inside = prefix, programs, folder, inside

    def run(self, options):
        """(samples a second, seconds of the whole command, loss)."""
        command = [*self.prefix, "env", "OMP_NUM_THREADS=1", f"{self.programs}fastrun", "-n", str(options.workers),
                   f"{self.programs}fast-train", "--model", "lenet", "--seed", "1", "--staleness", "0", "--quiet",
                   "--samples", str(options.samples), "--epochs", str(options.epochs),
                   "--summary-json", f"{self.inside}/summary.json"]
        began = time.perf_counter()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        if done.returncode:
            sys.exit(f"container.py: {' '.join(command)}: status {done.returncode}\n{done.stderr}{done.stdout}")
        summary = json.loads((self.folder / "summary.json").read_text())
        return summary["samples_per_second"], seconds, summary["test_loss_mean_model"]


def places(options, folder):
    own = {name: folder / name.partition(" ")[0] for name in (BARE, IMAGE)}
    for each in own.values():
        each.mkdir(mode=0o777)
        each.chmod(0o777)
    chroot = ["env", f"BIND={own[IMAGE]}:/shared", str(SOURCE / "scripts/bare_machine.sh"), "run", str(options.root), "setpriv",
              "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "env", "HOME=/home/fast"]
    return {BARE: Place([], f"{options.bin.resolve()}/", own[BARE], own[BARE]), IMAGE: Place(chroot, "", own[IMAGE], "/shared")}


def measured(runs, pairs):
    """runs: a function for each name. Results of each name, in order of the pairs."""
    found = {name: [] for name in runs}
    for run in runs.values():
        run()  # files are in memory then
    for pair in range(pairs):
        for name in list(runs)[::1 if pair % 2 == 0 else -1]:
            found[name].append(runs[name]())
    return found


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def figures(found):
    """Rates are samples a second; the ratio of seconds is turned, so that below 1 is always a slower image."""
    bare, image = found[BARE], found[IMAGE]
    losses = {loss for *_, loss in bare + image}
    if len(losses) > 1:
        sys.exit(f"container.py: the runs do not compute the same: losses {sorted(losses)}")
    rates = {name: spread([rate for rate, *_ in runs]) for name, runs in found.items()}
    return {"samples_per_second": rates,
            "ratio": spread([inside[0] / outside[0] for outside, inside in zip(bare, image)]),
            "command_ratio": spread([outside[1] / inside[1] for outside, inside in zip(bare, image)])}


def shown(value, digits):
    return "{median:,.{d}f} ({low:,.{d}f} - {high:,.{d}f})".format(**value, d=digits)


def main():
    options = parsed()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o755)
        both = places(options, pathlib.Path(folder))
        runs = {name: (lambda place=place: place.run(options)) for name, place in both.items()}
        result = figures(measured(runs, options.pairs))
    rates = result["samples_per_second"]
    print(f"LeNet-5, {options.workers} workers, {options.epochs} epochs of {options.samples} samples, {options.pairs} pairs\n")
    print("| bare, samples/s | image, samples/s | image ÷ bare | the whole command |\n|---|---|---|---|")
    print(f"| {shown(rates[BARE], 0)} | {shown(rates[IMAGE], 0)} | {shown(result['ratio'], 3)} | {shown(result['command_ratio'], 3)} |")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))
    return int(result["ratio"]["median"] < options.least)


if __name__ == "__main__":
    sys.exit(main())
