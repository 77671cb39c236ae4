#!/usr/bin/python3
"""Table and picture of the study of faults:  table.py FAST-MODEL FOLDER TESTS  writes FOLDER/table.md and FOLDER/versions.svg.

Every version of every run is exported by fast-model and evaluated here by NumPy, apart from the library: the last models
on the first TESTS images, the versions on 1,000 of them. A version that
cannot be loaded, and a last model whose accuracy is not what the run says, end the program with status 1.
"""
import collections
import gzip
import json
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from output import plt, save, write_table  # noqa: E402

SOURCE = pathlib.Path("/usr/share/datasets/fashion-mnist")
OF_VERSIONS = 1000  # test images
MEAN, STDDEV = 0.2860, 0.3530  # of Fashion-MNIST, as fast-train normalizes it
TITLES = {"undisturbed": "undisturbed", "lost": "one worker killed", "replaced": "one killed, a spare takes its place"}


def test_part(count):
    images = gzip.decompress((SOURCE / "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((SOURCE / "t10k-labels-idx1-ubyte.gz").read_bytes())[8:]
    inputs = np.frombuffer(images, np.uint8).reshape(-1, 784) / np.float32(255)
    return (inputs[:count] - MEAN) / STDDEV, np.frombuffer(labels, np.uint8)[:count]


def tensors_of(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[8 + length:][slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
            for name, entry in header.items()}


def accuracy(path, test):
    """In %, of the network 784-256-10."""
    inputs, labels = test
    t = tensors_of(path)
    hidden = np.maximum(inputs @ t["fc1.weight"].T + t["fc1.bias"], 0)
    return 100 * float(np.mean((hidden @ t["fc2.weight"].T + t["fc2.bias"]).argmax(1) == labels))


class Run:
    def __init__(self, program, folder, result, test):
        self.name, self.seed = result.stem.rsplit("-", 1)
        content = json.loads(result.read_text())
        self.load, self.resumed = content["load"], content["resumed"]
        self.training_s = content["summary"]["seconds"]
        own = folder / result.stem
        self.stopped_s = self.from_version_on(own) if self.resumed else None
        self.final = accuracy(own / "mean-model.safetensors", test)
        said = 100 * content["summary"]["test_accuracy_mean_model"]
        if abs(said - self.final) > 0.1:
            sys.exit(f"table.py: {own}: the run says {said:.2f} %, NumPy {self.final:.2f} %")
        self.versions, self.sizes = {}, []
        for version in sorted((own / "checkpoints").glob("round-*")):
            self.sizes.append(sum(file.stat().st_size for file in version.iterdir()))
            self.versions[int(version.name.removeprefix("round-"))] = self.evaluate(program, version, test)

    def from_version_on(self, own):
        """Seconds from the version that the run resumed from until it trained again."""
        lines = [json.loads(line) for line in (own / "metrics" / "0.jsonl").open()]
        written = next(line["time"] for line in lines if line.get("event") == "checkpoint" and line["step"] == self.resumed)
        return [line["time"] for line in lines if line["kind"] == "start"][-1] - written

    @staticmethod
    def evaluate(program, version, test):
        with tempfile.TemporaryDirectory() as place:
            model = pathlib.Path(place) / "model.safetensors"
            done = subprocess.run([program, "export", version, "--to", model], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"table.py: {version} cannot be loaded: {done.stderr.strip()}")
            return accuracy(model, [part[:OF_VERSIONS] for part in test])


def title_of(name):
    count = re.fullmatch(r"resumed-(\d+)", name)
    return f"all killed, resumed on {count[1]}" if count else TITLES[name]


def spread(values, digits):
    text = f"{statistics.mean(values):.{digits}f}"
    return text if len(values) == 1 else f"{text} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def lost_of(runs, undisturbed):
    """Seconds lost by a kill: training again, or more training than in the undisturbed run of the seed."""
    lost = [run.stopped_s if run.resumed else run.training_s - undisturbed[run.seed] for run in runs if run.seed in undisturbed]
    return "–" if runs[0].name == "undisturbed" or not lost else spread(lost, 1)


def table(groups):
    yield "| run | accuracy, % | seconds lost | versions | MB a version |"
    yield "|---|---|---|---|---|"
    undisturbed = {run.seed: run.training_s for run in groups["undisturbed"]}
    for name, runs in groups.items():
        sizes = sorted(size / 1e6 for run in runs for size in run.sizes)
        yield (f"| {title_of(name)} | {spread([run.final for run in runs], 2)} | {lost_of(runs, undisturbed)} | "
               f"{sum(len(run.versions) for run in runs)} | {sizes[0]:.1f} to {sizes[-1]:.1f} |")


def draw(groups, path):
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, runs in groups.items():
        rounds = sorted(set.intersection(*(set(run.versions) for run in runs)))
        axes.plot(rounds, [statistics.mean(run.versions[r] for run in runs) for r in rounds], marker="o", markersize=4,
                  label=title_of(name))
    resumed = [run.resumed for runs in groups.values() for run in runs if run.resumed]
    if resumed:
        axes.axvline(statistics.median(resumed), color="gray", linewidth=0.8, linestyle="--", label="resumed here")
    axes.set(xlabel="round of the version", ylabel="test accuracy (%)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    test = test_part(int(sys.argv[3]))
    groups = collections.defaultdict(list)
    for result in sorted(folder.glob("*-*.json")):
        run = Run(program, folder, result, test)
        groups[run.name].append(run)
    order = [*TITLES, *sorted((name for name in groups if name not in TITLES), key=lambda name: int(name.split("-")[1]))]
    groups = {name: groups[name] for name in order if name in groups}
    runs = [run for of_name in groups.values() for run in of_name]
    lines = [*table(groups), "", f"{sum(len(run.versions) for run in runs)} versions were loaded and evaluated. "
             f"The machine's load was {min(run.load for run in runs):.0f} to {max(run.load for run in runs):.0f}."]
    draw(groups, folder / "versions.svg")
    write_table(folder, lines)


if __name__ == "__main__":
    main()
