#!/usr/bin/env python3
"""Writes a small data set in a format that fast-train reads, for the commands of the documentation.

  make_data.py idx DIR       28x28 images of ten classes, as Fashion-MNIST's four files
  make_data.py cifar DIR     32x32 color images of ten classes, as CIFAR-10's six binary files
  make_data.py images DIR    the same in DIR/train/<class>/*.png and DIR/test/<class>/*.png
  make_data.py tar DIR       the same in DIR/train-000.tar, DIR/train-001.tar and DIR/test-000.tar
  make_data.py csv DIR       DIR/flowers.csv, three species by length and width
  make_data.py npz DIR       DIR/digits.npz, 28x28 images of ten classes
"""
import io
import pathlib
import random
import struct
import sys
import tarfile
import zipfile
import zlib

CLASSES = 10
BRIGHTNESS = [bytes(20 * label + value * 40 // 256 for value in range(256)) for label in range(CLASSES)]
random.seed(1)


def image(label, size_bytes):
    """Each class has a brightness of its own."""
    return random.randbytes(size_bytes).translate(BRIGHTNESS[label])


def samples(count, size_bytes):
    return [(index % CLASSES, image(index % CLASSES, size_bytes)) for index in range(count)]


def write_idx(folder):
    for name, count in (("train", 1280), ("t10k", 100)):
        made = samples(count, 28 * 28)
        labels = bytes(label for label, _ in made)
        pixels = b"".join(pixels for _, pixels in made)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, 28, 28) + pixels)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels)


def write_cifar(folder):
    names = [f"data_batch_{part}.bin" for part in range(1, 6)] + ["test_batch.bin"]
    for name in names:
        made = samples(10, 3 * 32 * 32)
        (folder / name).write_bytes(b"".join(bytes([label]) + pixels for label, pixels in made))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(pixels, side):
    rows = b"".join(b"\0" + pixels[row * 3 * side:(row + 1) * 3 * side] for row in range(side))
    header = struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_images(folder):
    for part, count in (("train", 100), ("test", 20)):
        for index, (label, pixels) in enumerate(samples(count, 3 * 32 * 32)):
            place = folder / part / f"class{label}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{index}.png").write_bytes(png(pixels, 32))


def write_tar(folder):
    for name, count in (("train-000", 60), ("train-001", 50), ("test-000", 20)):
        with tarfile.open(folder / f"{name}.tar", "w") as archive:
            for index, (label, pixels) in enumerate(samples(count, 3 * 32 * 32)):
                for ending, contents in (("png", png(pixels, 32)), ("cls", str(label).encode())):
                    member = tarfile.TarInfo(f"{name}/{index:06}.{ending}")
                    member.size = len(contents)
                    archive.addfile(member, io.BytesIO(contents))


def write_csv(folder):
    species = [("aster", 2.0, 0.5), ("iris", 5.0, 1.5), ("rose", 3.5, 3.0)]
    lines = ["length,width,species"]
    for index in range(300):
        name, length, width = species[index % 3]
        lines.append(f"{random.gauss(length, 0.3):.3f},{random.gauss(width, 0.2):.3f},{name}")
    (folder / "flowers.csv").write_text("\n".join(lines) + "\n")


def npy(descr, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + values


def write_npz(folder):
    with zipfile.ZipFile(folder / "digits.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for part, count in (("train", 200), ("test", 50)):
            made = samples(count, 28 * 28)
            labels = bytes(label for label, _ in made)
            archive.writestr(f"x_{part}.npy", npy("|u1", (count, 28, 28), b"".join(pixels for _, pixels in made)))
            archive.writestr(f"y_{part}.npy", npy("|u1", (count,), labels))


if __name__ == "__main__":
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    {"idx": write_idx, "cifar": write_cifar, "images": write_images, "tar": write_tar,
     "csv": write_csv, "npz": write_npz}[kind](folder)
