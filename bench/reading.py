#!/usr/bin/env python3
"""How fast fast-data reads CSV, NumPy and image files, beside pandas, NumPy and Pillow in the same run.

  bench/reading.py [--build build/release] [--repeats 7] [--json FILE]

Prints a table in Markdown. Each row is the time to read one set of files into memory: `fast-data info`, which also measures
the mean and the deviation of each feature, and a process of Python that reads the same files and makes float32 or uint8 arrays
of them. The time of the same program for a set of a few bytes is subtracted: starting Python and importing pandas take
longer than many files. Both are measured in turn, `repeats` times; figures are minima. What is not installed has the reason.
"""
import argparse
import importlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

READ = {
    "pandas": "import pandas, sys, numpy\nframe = pandas.read_csv(sys.argv[1])\nframe[[c for c in frame if c != 'y']].to_numpy('float32')",
    "numpy": "import numpy, sys\nfor name in sys.argv[1:]: numpy.load(name).astype('float32')",
    "bytes": "import numpy, sys\nfor name in sys.argv[1:]: numpy.load(name)",
    "PIL": "import sys, pathlib, numpy\nfrom PIL import Image\n"
           "for name in sorted(pathlib.Path(sys.argv[1]).rglob('*.*')): numpy.asarray(Image.open(name).convert('RGB'))",
}


def seconds(command):
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    return time.perf_counter() - began


def table(path, rows, columns):
    draw = random.Random(1)
    with open(path, "w") as file:
        file.write(",".join(f"feature_{i}" for i in range(columns)) + ",y\n")
        for row in range(rows):
            file.write(",".join(f"{draw.gauss(0, 1):.6f}" for _ in range(columns)) + f",{row % 2}\n")
    return ["--target", "y"]


def arrays(numpy, folder, samples, shape, dtype):
    folder.mkdir()
    values = numpy.random.default_rng(1).integers(0, 256, (samples, *shape)).astype(dtype)
    for part in ("train", "test"):
        share = values if part == "train" else values[:2]
        numpy.save(folder / f"x_{part}.npy", share)
        numpy.save(folder / f"y_{part}.npy", numpy.arange(len(share)) % 2)


def images(numpy, image, folder, count, ending, size):
    generator = numpy.random.default_rng(1)
    smooth = image.fromarray(generator.integers(0, 256, (8, 8, 3)).astype("uint8")).resize((size, size))
    for part in ("train", "test"):
        for i in range(count if part == "train" else 2):
            place = folder / part / str(i % 2)
            place.mkdir(parents=True, exist_ok=True)
            noisy = numpy.asarray(smooth).astype(int) + generator.integers(-8, 9, (size, size, 3))
            image.fromarray(noisy.clip(0, 255).astype("uint8")).save(place / f"{i}.{ending}")


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        return str(error)


def rows_of(folder):
    """(title, size of the files, fast-data's arguments for the set and a small one, Python's package, script, arguments)."""
    numpy, image = module("numpy"), module("PIL.Image")
    options = table(folder / "large.csv", 100_000, 40)
    table(folder / "small.csv", 10, 40)
    yield "CSV, 100,000 rows of 40 numbers", [folder / "large.csv"], [folder / "small.csv"], options, "pandas", "pandas"
    if isinstance(numpy, str):
        return
    for title, dtype, script in (("NumPy, float32", "f4", "numpy"), ("NumPy, float64", "f8", "numpy"), ("NumPy, uint8", "u1", "bytes")):
        for size, samples in (("large", 60_000), ("small", 10)):
            arrays(numpy, folder / f"{dtype}-{size}", samples, (28, 28), dtype)
        yield f"{title}, 60,000 x 28 x 28", [folder / f"{dtype}-large"], [folder / f"{dtype}-small"], [], "numpy", script
    if isinstance(image, str):
        return
    for ending, count, size in (("png", 400, 224), ("png", 10_000, 32), ("jpg", 400, 224)):
        name = f"{ending}-{size}"
        images(numpy, image, folder / name, count, ending, size)
        images(numpy, image, folder / f"{name}-small", 2, ending, size)
        yield f"{ending.upper()}, {count:,} of {size} x {size}", [folder / name], [folder / f"{name}-small"], [], "PIL", "PIL"


def script_arguments(script, paths):
    if script in ("numpy", "bytes"):
        return sorted(path / f"x_{part}.npy" for path in paths for part in ("train", "test"))
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    program = given.build / "bin/fast-data"
    os.environ["OMP_NUM_THREADS"] = "1"
    results = []
    print("| files | MB | fast-data s | other | other s | fast-data ÷ other |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for title, large, small, options, package, script in rows_of(pathlib.Path(name)):
            megabytes = sum(file.stat().st_size for path in large for file in [path, *path.rglob("*")] if file.is_file()) / 1e6
            commands = {"fast": [[program, "info", *paths, *options] for paths in (large, small)]}
            missing = module(package)
            if not isinstance(missing, str):
                commands["other"] = [[sys.executable, "-c", READ[script], *script_arguments(script, paths)] for paths in (large, small)]
            times = {key: [[], []] for key in commands}
            for _ in range(given.repeats):
                for key, pair in commands.items():
                    for command, found in zip(pair, times[key]):
                        found.append(seconds(command))
            took = {key: min(pair[0]) - min(pair[1]) for key, pair in times.items()}
            other = f"{took['other']:.3f} | {took['fast'] / took['other']:.2f}" if "other" in took else f"{missing} | "
            print(f"| {title} | {megabytes:.0f} | {took['fast']:.3f} | {package} | {other} |", flush=True)
            results.append({"files": title, "megabytes": megabytes, "package": package, **took})
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
