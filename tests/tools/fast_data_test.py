#!/usr/bin/env python3
"""Writes data sets with NumPy, zipfile, tarfile and csv, and compares what fast-data reads with them.

  fast_data_test.py FAST_DATA
"""
import csv
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

try:
    import numpy
except ModuleNotFoundError:
    print("skipped: no NumPy here; apt-get install python3-numpy")
    sys.exit(77)

PROGRAM = sys.argv[1]
random = numpy.random.default_rng(7)
failures = []


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60)


def check(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what)


def check_moments(text, values, what):
    """`values`: samples x channels x all else."""
    moved = numpy.moveaxis(numpy.asarray(values, dtype=float), 1, 0).reshape(values.shape[1], -1)
    for name, expected in (("mean", moved.mean(1)), ("standard deviation", moved.std(1))):
        found = re.search(rf"^{name} (.*)$", text, re.M)
        check(found is not None, f"{what}: no {name} in {text}")
        if found:
            numbers = [float(number) for number in found[1].split()]
            check(numpy.allclose(numbers, expected, atol=2e-4), f"{what}: {name} {numbers}, {expected}")


def info(what, *words):
    result = run("info", *words)
    check(result.returncode == 0, f"{what}: {result.stderr}")
    return result.stdout


def refused(what, *words, says, status=1):
    result = run(*words)
    check(result.returncode == status, f"{what}: status {result.returncode}")
    check(result.stderr.count("\n") == 1 and result.stdout == "", f"{what}: {result.stdout}{result.stderr}")
    check(result.stderr.count("fast-data: ") == 1, f"{what}: {result.stderr}")
    check(says in result.stderr, f"{what}: no \"{says}\" in {result.stderr}")


def numpy_files(folder):
    x = random.integers(0, 256, (50, 5, 4, 3), dtype=numpy.uint8)
    y = random.integers(0, 7, 50)
    y[0] = 6
    for save in (numpy.savez, numpy.savez_compressed):
        file = folder / f"{save.__name__}.npz"
        save(file, x_train=x, y_train=y, x_test=x[:20], y_test=y[:20])
        text = info(save.__name__, file)
        check("train: 50 samples of 3x5x4 bytes, 7 classes" in text, text)
        check("test: 20 samples" in text, text)
        check_moments(text, x.transpose(0, 3, 1, 2) / 255, save.__name__)
    whole = file.read_bytes()
    (folder / "cut.npz").write_bytes(whole[:len(whole) // 2])
    refused("cut npz", "info", folder / "cut.npz", says="not a complete ZIP archive")
    (folder / "damaged.npz").write_bytes(whole[:200] + bytes([whole[200] ^ 255]) + whole[201:])
    refused("damaged npz", "info", folder / "damaged.npz", says="is damaged")
    numpy.savez(folder / "objects.npz", x=numpy.array([{}, {}], dtype=object), y=y[:2])
    refused("pickles", "info", folder / "objects.npz", says="pickled Python objects")
    values = random.normal(3, 2, (400, 6)).astype(numpy.float32)
    numpy.save(folder / "x.npy", values)
    numpy.save(folder / "y.npy", values.sum(1))
    text = info("npy", folder / "x.npy", "--target", folder / "y.npy", "--test-share", "0.25")
    check("train: 300 samples of 6 floats, 1 numbers to predict" in text, text)
    numpy.save(folder / "y.npy", numpy.where(numpy.arange(400) % 2 == 0, -0.5, 2.5))
    text = info("targets", folder / "x.npy", "--target", folder / "y.npy", "--test-share", "0.25")
    found = re.search(r"^targets: mean (.*), standard deviation (.*)$", text, re.M)
    # A share p of one value: mean -0.5 + 3p, deviation 3 sqrt(p (1 - p)).
    share = (float(found[1]) + 0.5) / 3
    check(0.3 < share < 0.7 and abs(float(found[2]) - 3 * (share * (1 - share)) ** 0.5) < 2e-4, text)
    numpy.savez(folder / "from1.npz", x=values[:60], y=1 + numpy.arange(60) % 3)
    check("no training sample has class 0\n" in info("labels from 1", folder / "from1.npz"), "class 0")
    numpy.savez(folder / "from0.npz", x=values[:60], y=numpy.arange(60) % 3)
    check("no training sample" not in info("labels from 0", folder / "from0.npz"), "all classes")


def times(folder):
    """Seconds since 1970 within a minute: read, and refused where they become 32-bit floats."""
    seconds = 1.7e9 + numpy.arange(60)
    file = folder / "times.csv"
    file.write_text("time,y\n" + "".join(f"{second:.0f},{i % 2}\n" for i, second in enumerate(seconds)))
    text = info("times", file, "--target", "y")
    check("column time: values are stored less 1700000000" in text, text)
    mean = float(re.search(r"^mean (.*)$", text, re.M)[1])
    check(abs(mean - seconds.mean()) < 5, text)
    refused("times in shards", "convert", file, folder / "times", "--target", "y",
            says="feature time has values near 1700000000 with small differences, which the 32-bit floats of packed shards cannot tell apart")
    check(not (folder / "times").exists(), "a folder for shards that were refused")


def tables(folder):
    rows = [[f"{random.normal():.6f}", f"{random.normal(5, 3):.6f}", random.choice(["a,b", 'say "x"', "two\nlines"])]
            for _ in range(200)]
    with open(folder / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["x", "y", "kind"], *rows])
    (folder / "test.csv").write_bytes((folder / "t.csv").read_bytes())
    text = info("csv", folder / "t.csv", "--target", "kind", "--test-data", folder / "test.csv")
    check("train: 200 samples of 2 floats, 3 classes" in text, text)
    check_moments(text, numpy.array([[float(row[0]), float(row[1])] for row in rows]), "csv")
    check("features: x, y\n" in text, text)
    spaced = folder / "my shards"
    result = run("convert", folder / "t.csv", spaced, "--target", "kind")
    check(f"train with: fast-train --data '{spaced}'\n" in result.stdout, result.stdout + result.stderr)
    check(info("shards", spaced).count(" in 1 shard\n") == 2, "one shard")
    refused("no column", "info", folder / "t.csv", "--target", "kin", says="did you mean \"kind\"?", status=2)


def add(archive, name, contents):
    member = tarfile.TarInfo(name)
    member.size = len(contents)
    archive.addfile(member, io.BytesIO(contents))


def npy(array):
    buffer = io.BytesIO()
    numpy.save(buffer, array)
    return buffer.getvalue()


def tars(folder):
    all_values = []
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        values = random.random((30, 3, 2, 2), dtype=numpy.float32)
        all_values.append(values)
        with tarfile.open(folder / f"train-{form}.tar", "w", format=form) as archive:
            long = "long/" * (25 if form != tarfile.USTAR_FORMAT else 1)
            for i, value in enumerate(values):
                add(archive, f"{long}{i:04}.npy", npy(value))
                add(archive, f"{long}{i:04}.json", json.dumps({"label": i % 4}).encode())
    (folder / "test-0.tar").write_bytes((folder / "train-0.tar").read_bytes())
    text = info("tar", folder)
    check("train: 90 samples of 3x2x2 floats, 4 classes in 3 shards" in text, text)
    check_moments(text, numpy.concatenate(all_values), "tar")
    text = info("tar pattern", folder / "train-{0..2}.tar", "--test-data", folder / "test-*.tar")
    check("train: 90 samples" in text and "test: 30 samples" in text, text)
    packed = folder / "packed"
    result = run("convert", folder, packed, "--shard-size", "1KB")
    check(result.returncode == 0, result.stderr)
    check(len(list(packed.glob("train-*-of-00005.packed"))) == 5, str(list(packed.iterdir())))
    check_moments(info("packed", packed), numpy.concatenate(all_values), "packed")
    text = info("shard", packed / "train-00000-of-00005.packed")
    check("shard 0 of 5" in text and "all samples whole" in text, text)
    refused("a full directory", "convert", folder, packed, says="is not empty", status=2)
    refused("a size", "convert", folder, folder / "other", "--shard-size", "8XB", says="\"8XB\"", status=2)
    shuffled = folder / "shuffled"
    check(run("convert", folder, shuffled, "--shuffle", "3").returncode == 0, "shuffle")
    a, b = (next(place.glob("train-00000*")).read_bytes() for place in (packed, shuffled))
    check(a[64:112] != b[64:112], "the first sample is in its place")
    check_moments(info("shuffled", shuffled), numpy.concatenate(all_values), "shuffled")
    shard = next(packed.glob("train-00002*"))
    whole = bytearray(shard.read_bytes())
    whole[64] ^= 1
    shard.write_bytes(whole)
    refused("a damaged sample", "info", shard, says="1 damaged samples, the first is sample 0")
    shard.write_bytes(whole[:-3])
    refused("a cut shard", "info", packed, says="truncated")


with tempfile.TemporaryDirectory() as name:
    for part in (numpy_files, times, tables, tars):
        place = pathlib.Path(name) / part.__name__
        place.mkdir()
        part(place)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
