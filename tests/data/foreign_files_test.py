#!/usr/bin/env python3
"""Files as Pillow, NumPy, pandas, Python's csv and tarfile write them, drawn from a seed, against what fast-data makes of them.

  foreign_files_test.py FAST_DATA [SECONDS] [SEED]

Exit status 77: Pillow or NumPy is not there. Without pandas, its files are left out.
"""
import csv
import io
import json
import os
import pathlib
import pickle
import random
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

try:
    import numpy as np
    from PIL import Image, ImageOps
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

try:
    import pandas as pd
except ImportError as error:
    pd = None
    print("skipped: files of pandas:", error)

DATA = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else float(os.environ.get("FAST_FOREIGN_SECONDS", 10))
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(10**6)


def packed(path):
    """Samples and labels or targets of one packed shard."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[-24:-16])[0]
    form = json.loads(content[-24 - length:-24])
    size = int(np.prod(form["sample_shape"]))
    dtype = np.dtype("u1" if form["values"] == "u8" else "<f4")
    count = form["samples"]
    values = np.frombuffer(content, dtype, count * size, 64).reshape(count, *form["sample_shape"])
    targets_at = -(-(64 + values.nbytes) // 64) * 64
    kind = "<i4" if form["targets"] == "labels" else "<f4"
    targets = np.frombuffer(content, kind, count * int(np.prod(form["target_shape"])), targets_at)
    return values, targets


def converted(source, to, *options):
    """Values and targets of the training and of the test part, in one array."""
    command = [DATA, "convert", source, to, *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    parts = [packed(path) for path in sorted(pathlib.Path(to).glob("*.packed"))]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def info(source, *options):
    done = subprocess.run([DATA, "info", str(source), *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


# pictures ------------------------------------------------------------------------------------


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def passes(rows, columns, interlaced):
    """(first row, step, first column, step) of Adam7, or the whole picture."""
    if not interlaced:
        return [(0, 1, 0, 1)]
    return [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]


def packed_row(values, depth):
    if depth == 16:
        return values.astype(">u2").tobytes()
    if depth == 8:
        return values.astype("u1").tobytes()
    bits = "".join(format(int(value), f"0{depth}b") for value in values.ravel())
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def png(draw, rows, columns):
    """A PNG file of any color type, depth and interlacing, with and without gAMA and tRNS."""
    color, depth = draw.choice([(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8),
                                (4, 8), (4, 16), (6, 8), (6, 16)])
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    values = np.random.default_rng(draw.randrange(2**32)).integers(0, 2**depth, (rows, columns, channels))
    interlaced = draw.random() < .4
    raw = b""
    for row0, row_step, column0, column_step in passes(rows, columns, interlaced):
        part = values[row0::row_step, column0::column_step]
        if part.size:
            raw += b"".join(b"\0" + packed_row(row, depth) for row in part)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, depth, color, 0, 0, interlaced))
    if draw.random() < .4:
        file += chunk(b"gAMA", struct.pack(">I", draw.choice([45455, 100000, 22727])))
    if color == 3:
        file += chunk(b"PLTE", bytes(draw.randrange(256) for _ in range(3 * 2**depth)))
    if draw.random() < .4 and color in (0, 2, 3):
        file += chunk(b"tRNS", {0: struct.pack(">H", 1), 2: struct.pack(">HHH", 1, 2, 3), 3: b"\x80\x10"}[color])
    file += chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    what = f"PNG color {color} depth {depth} interlaced {interlaced}"
    if color == 0 and depth == 16:  # Pillow clips these
        return "png", file, np.repeat((values >> 8).astype("u1"), 3, axis=2), what
    return "png", file, np.asarray(Image.open(io.BytesIO(file)).convert("RGB")), what


def jpeg(draw, rows, columns):
    mode = draw.choice(["L", "RGB", "CMYK"])
    shape = (rows, columns) if mode == "L" else (rows, columns, len(mode))
    smooth = np.random.default_rng(draw.randrange(2**32)).integers(0, 256, shape).astype("u1")
    picture = Image.fromarray(smooth, mode)
    orientation = draw.randrange(9)
    sideways = orientation in (5, 6, 7, 8)
    if sideways:
        picture = picture.transpose(Image.Transpose.TRANSPOSE)
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010e] = "a picture"
    options = {"quality": draw.choice([30, 75, 95]), "progressive": draw.random() < .5,
               "subsampling": draw.choice([0, 1, 2])}
    file = io.BytesIO()
    picture.save(file, "JPEG", exif=exif, **options)
    expected = ImageOps.exif_transpose(Image.open(file)).convert("RGB")
    return draw.choice(["jpg", "JPEG"]), file.getvalue(), np.asarray(expected), f"JPEG {mode} orientation {orientation} {options}"


def webp(draw, rows, columns):
    mode = draw.choice(["RGB", "RGBA"])
    pixels = np.random.default_rng(draw.randrange(2**32)).integers(0, 256, (rows, columns, len(mode))).astype("u1")
    options = {"lossless": draw.random() < .5, "quality": draw.choice([30, 95]), "exact": True}
    file = io.BytesIO()
    Image.fromarray(pixels, mode).save(file, "WEBP", **options)
    expected = np.asarray(Image.open(io.BytesIO(file.getvalue())).convert("RGB"))
    return "webp", file.getvalue(), expected, f"WebP {mode} {options}"


def pictures(draw, folder):
    rows, columns = draw.randrange(1, 40), draw.randrange(1, 40)
    drawn = [draw.choice([png, jpeg, webp])(draw, rows, columns) for _ in range(40)]
    for split in ("train", "test"):
        for number, (ending, content, _, _) in enumerate(drawn):
            place = folder / "in" / split / f"{number:03}" / ("deeper" if number % 3 == 0 else ".")
            place.mkdir(parents=True)
            (place / f"a.{ending}").write_bytes(content)
    (folder / "in/train/.ipynb_checkpoints").mkdir()
    (folder / "in/train/001/b.bmp").write_bytes(b"BM")
    assert "images not read: 1 of other formats" in info(folder / "in"), info(folder / "in")
    values, labels = converted(folder / "in", folder / "out")
    assert len(values) == 2 * len(drawn), len(values)
    for sample, label in zip(values, labels):
        _, _, expected, what = drawn[label]
        found = sample.transpose(1, 2, 0)
        assert found.shape == expected.shape and np.array_equal(found, expected), \
            f"{what}: off by {np.abs(found.astype(int) - expected).max()}"


# arrays --------------------------------------------------------------------------------------


def arrays(draw, folder):
    random_numbers = np.random.default_rng(draw.randrange(2**32))
    dtype = np.dtype(draw.choice(["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]))
    dtype = dtype.newbyteorder(draw.choice("<>"))
    shape = draw.choice([(3,), (4, 5), (3, 6, 7), (6, 7, 1), (6, 7, 3), (6, 7, 4)])
    x = (random_numbers.random((40, *shape)) * (1.5 if dtype.kind == "b" else 90)).astype(dtype)
    y = np.arange(40).astype(draw.choice(["i8", ">i4", "u1", "u8", "<f8"]))
    texts = draw.choice([None, None, "U", ">U9", "S", "U4"])
    if texts:  # 40 names, whose order is that of their bytes
        begin = "n" if texts == "S" else draw.choice(["n", "\u00e9", "\u4e2d", "\U0001f408"])
        y = np.array([f"{begin}{i:02}" for i in range(40)]).astype(texts)
    names = draw.choice([("x", "y"), ("X_train", "Y_train"), ("x_train", "y_train"), ("X", "Y")])
    file = folder / draw.choice(["a.npz", "a[1].npz", "exp{a}.npz", "A.NPZ"])
    order = draw.choice("CF")
    with open(file, "wb") as stream:
        np.savez(stream, **{names[0]: np.asarray(x, order=order), names[1]: y})
    values, labels = converted(file, folder / "out")
    expected = x.astype("u1" if dtype.kind == "u" and dtype.itemsize == 1 else "<f4")
    if len(shape) == 2:
        expected = expected[:, None]
    if len(shape) == 3 and shape[0] == 6:
        expected = expected.transpose(0, 3, 1, 2)
        assert f"{shape[2]} channel" in info(file)
    assert sorted(labels) == list(range(40))
    assert np.array_equal(values, expected[labels]), f"{dtype} {shape} order {order} {file.name}"


def pickles(draw, folder):
    """The Python version of CIFAR-10, saved by Python 3."""
    random_numbers = np.random.default_rng(draw.randrange(2**32))
    protocol, as_bytes = draw.choice([3, 4, 5]), draw.random() < 0.5
    x = random_numbers.integers(0, 256, (12, 3072), np.uint8)
    y = [draw.randrange(10) for _ in range(12)]

    def key(name):
        return name.encode() if as_bytes else name

    for part, (name, rows) in enumerate([(f"data_batch_{i}", slice(2 * i - 2, 2 * i)) for i in range(1, 6)] + [("test_batch", slice(10, 12))]):
        content = {key("batch_label"): f"batch {part}", key("labels"): y[rows], key("data"): x[rows], key("filenames"): ["a.png", "b.png"]}
        with open(folder / name, "wb") as stream:
            pickle.dump(content, stream, protocol)
    names = [f"kind {i}" for i in range(10)]
    with open(folder / "batches.meta", "wb") as stream:
        pickle.dump({key("label_names"): [key(name) for name in names], key("num_vis"): 3072}, stream, protocol)
    values, labels = converted(folder, folder / "out")
    order = [10, 11, *range(10)]  # the test part is first by name
    assert np.array_equal(values, x[order].reshape(12, 3, 32, 32)), f"protocol {protocol}"
    assert list(labels) == [y[i] for i in order]


# tables --------------------------------------------------------------------------------------


def tables(draw, folder):
    numbers = [draw.gauss(0, 10**draw.randrange(-3, 6)) for _ in range(60)]
    column_kinds = {
        "floats": lambda i: repr(numbers[i]),
        "integers": lambda i: str(i * i),
        "truths": lambda i: str(i % 3 == 0),
        "texts": lambda i: f"text, \"{i}\"",
        "thousands": lambda i: f"{1234 + i:,}.5",
        "percent": lambda i: f"{i} %",
        "missing": lambda i: draw.choice(["#N/A", "<NA>", ".", "-", "", "NA"]),
    }
    used = {"floats": lambda i: numbers[i], "integers": lambda i: i * i, "truths": lambda i: i % 3 == 0}
    columns = draw.sample(sorted(column_kinds), draw.randrange(1, len(column_kinds) + 1))
    if not set(columns) & set(used):
        columns.append("floats")
    file = folder / draw.choice(["a.csv", "DATA.CSV", "data[1].csv", "a b{1}.csv"])
    with open(file, "w", newline="") as stream:
        writer = csv.writer(stream, lineterminator=draw.choice(["\n", "\r\n"]))
        writer.writerow([*columns, "y"])
        for i in range(60):
            writer.writerow([*(column_kinds[name](i) for name in columns), i])
    values, labels = converted(file, folder / "out", "--target", "y", "--target-type", "classes")
    kept = [name for name in columns if name in used]
    expected = np.array([[used[name](i) for name in kept] for i in range(60)], dtype="<f4")
    assert np.array_equal(values, expected[labels]), (columns, values[:3], expected[labels][:3])
    text = info(file, "--target", "y", "--target-type", "classes")
    assert f"features: {', '.join(kept)}\n" in text, text
    for name in set(columns) - set(kept):
        assert f"column not used: {name}" in text, text


def frames(draw, folder):
    """What DataFrame.to_csv writes, against what pandas.read_csv reads. Large values keep their differences."""
    generator = np.random.default_rng(draw.randrange(2**32))
    rows = 60
    made = {
        "floats": generator.normal(size=rows) * 10.0**draw.randrange(-20, 20),
        "integers": generator.integers(-10**draw.randrange(1, 7), 10**7, rows),
        "truths": generator.integers(0, 2, rows).astype(bool),
        "seconds": 1.7e9 + generator.integers(0, 3000, rows),
        "milliseconds": 1700000000000 + 250 * generator.permutation(rows),
        "offset": 1e4 + generator.permutation(rows) * 1e-3,
        "constant": np.full(rows, draw.choice([0.0, 1.5, 1.7e9])),
        "dates": pd.date_range("2024-01-31", periods=rows),
        "texts": [draw.choice(["a,b", 'say "x"', "two\nlines", "="]) + str(i) for i in range(rows)],
        "gone": [np.nan] * rows,
        "categories": pd.Categorical(["low" if i % 2 else "high" for i in range(rows)]),
    }
    used = {"floats", "integers", "truths", "seconds", "milliseconds", "offset", "constant"}
    chosen = draw.sample(sorted(made), draw.randrange(2, len(made) + 1))
    if not set(chosen) & used:
        chosen.append("floats")
    frame = pd.DataFrame({name: made[name] for name in chosen})
    frame["y"] = np.arange(rows)
    file = folder / "frame.csv"
    frame.to_csv(file, index=draw.random() < .5, quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
                 lineterminator=draw.choice(["\n", "\r\n"]), encoding=draw.choice(["utf-8", "utf-8-sig"]))
    if draw.random() < .3:  # saved twice: the index becomes a column "Unnamed: 0"
        pd.read_csv(file).to_csv(file, index=False)
    read = pd.read_csv(file)
    if "categories" in chosen:  # a feature of 0 and 1 for each
        at = chosen.index("categories")
        chosen[at:at + 1] = ["categories=high", "categories=low"]
        used |= set(chosen[at:at + 2])
        for name in chosen[at:at + 2]:
            read[name] = (read["categories"] == name.split("=")[1]).astype(float)
    kept = [name for name in chosen if name in used]
    text = info(file, "--target", "y", "--target-type", "classes", "--test-share", "0.25")
    assert f"features: {', '.join(kept)}\n" in text, text
    for name in set(chosen) - set(kept):
        assert f"column not used: {name}" in text, text
    moments = {name: [float(number) for number in line.split()] for name, line in
               re.findall(r"^(mean|standard deviation) (.*)$", text, re.M)}
    columns = read[kept].to_numpy(dtype=float)
    spread = columns.max(0) - columns.min(0)
    # Of a part of 45 of the 60 rows: between the smallest and the largest mean that such parts have.
    ordered = np.sort(columns, axis=0)
    low, high = ordered[:45].mean(0), ordered[15:].mean(0)
    for k, name in enumerate(kept):
        slack = 1e-4 + 1e-6 * abs(columns[:, k]).max() * (name not in ("seconds", "milliseconds", "offset"))
        assert low[k] - slack <= moments["mean"][k] <= high[k] + slack, f"{name}: mean {moments['mean'][k]} of {low[k]} to {high[k]}"
        deviation = moments["standard deviation"][k]
        if spread[k] == 0:
            assert deviation == 1, f"{name}: {deviation} of a constant"
        elif spread[k] > 1e-2:
            assert spread[k] / 60 < deviation <= spread[k] / 2 + slack, f"{name}: {deviation} of values within {spread[k]}"


# archives ------------------------------------------------------------------------------------


def archives(draw, folder):
    format = draw.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    expected = np.random.default_rng(draw.randrange(2**32)).integers(0, 256, (20, 5, 6, 3)).astype("u1")
    prefix = draw.choice(["", "./", "a/" * 40])
    for split in ("train", "test"):
        with tarfile.open(folder / f"{split}-0.tar", "w", format=format) as archive:
            for i in range(20):
                picture = io.BytesIO()
                Image.fromarray(expected[i], "RGB").save(picture, "PNG")
                members = [(f"{prefix}{i:03}.png", picture.getvalue()), (f"{prefix}{i:03}.cls", b"%d" % i)]
                if draw.random() < .5:
                    members.insert(0, (f"{prefix}._{i:03}.png", b"\0\5\x16\7 of the Finder"))
                    members.append((f"{prefix}._{i:03}.cls", b"\0\5\x16\7"))
                for name, content in members:
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    values, labels = converted(folder, folder.parent / (folder.name + "-out"))
    assert sorted(labels) == sorted(list(range(20)) * 2), labels
    assert np.array_equal(values.transpose(0, 2, 3, 1), expected[labels]), (format, prefix)


def main():
    print("seed", SEED)
    draw = random.Random(SEED)
    began, rounds = time.monotonic(), 0
    kinds = [pictures, arrays, pickles, tables, archives] + ([frames] if pd else [])
    while rounds < len(kinds) or time.monotonic() - began < SECONDS:
        kind = kinds[rounds % len(kinds)]
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "set"
            place.mkdir()
            try:
                kind(draw, place)
            except AssertionError as error:
                print(f"FAILED in round {rounds} of seed {SEED}, {kind.__name__}: {error}")
                return 1
        rounds += 1
    print(rounds, "rounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
