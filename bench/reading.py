#!/usr/bin/env python3
"""How fast fast-data reads CSV, NumPy and image files, beside pandas, NumPy and Pillow in the same run.

  bench/reading.py [--build build/release] [--repeats 7] [--json FILE]

Prints a table in Markdown. Each row is the time to read one set of files into memory and to measure the mean and the
deviation: by `fast-data info`, and by Python, which makes arrays of float32 or uint8 of the same files. Python's time begins
after its imports; from that of `fast-data`, the time for a set of a few bytes is subtracted. Both are measured in turn,
`repeats` times; figures are minima. What is not installed has the reason.
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

MEASURE = "\nprint(time.perf_counter() - began)"
READ = {
    "pandas": "import pandas, sys, time\nbegan = time.perf_counter()\nframe = pandas.read_csv(sys.argv[1])\n"
              "values = frame[[c for c in frame if c != 'y']].to_numpy('float32')\nvalues.mean(0), values.std(0)",
    "numpy": "import numpy, sys, time\nbegan = time.perf_counter()\n"
             "values = [numpy.load(name).astype('float32') for name in sys.argv[1:]]\nvalues[-1].mean(), values[-1].std()",
    "bytes": "import numpy, sys, time\nbegan = time.perf_counter()\n"
             "values = [numpy.load(name) for name in sys.argv[1:]]\nvalues[-1].mean(), values[-1].std()",
    "PIL": "import sys, pathlib, numpy, time\nfrom PIL import Image\nbegan = time.perf_counter()\n"
           "names = sorted(pathlib.Path(sys.argv[1]).rglob('*.*'))\n"
           "values = numpy.stack([numpy.asarray(Image.open(name).convert('RGB')) for name in names])\n"
           "values.mean((0, 1, 2)), values.std((0, 1, 2))",
}


def seconds(command):
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    return time.perf_counter() - began


def own_seconds(command):
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout)


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
        return [path / f"x_{part}.npy" for path in paths for part in ("test", "train")]
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
            missing = module(package)
            times = {"fast": [], "small": [], "other": []}
            for _ in range(given.repeats):
                times["fast"].append(seconds([program, "info", *large, *options]))
                times["small"].append(seconds([program, "info", *small, *options]))
                if not isinstance(missing, str):
                    script_of = READ[script] + MEASURE
                    times["other"].append(own_seconds([sys.executable, "-c", script_of, *script_arguments(script, large)]))
            took = {"fast": min(times["fast"]) - min(times["small"])} | {"other": min(found) for found in [times["other"]] if found}
            other = f"{took['other']:.3f} | {took['fast'] / took['other']:.2f}" if "other" in took else f"{missing} | "
            print(f"| {title} | {megabytes:.0f} | {took['fast']:.3f} | {package} | {other} |", flush=True)
            results.append({"files": title, "megabytes": megabytes, "package": package, **took})
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
