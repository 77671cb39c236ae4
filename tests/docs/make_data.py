#!/usr/bin/env python3
"""Writes a small data set in a format that fast-train reads, for the commands of the documentation.

  make_data.py idx DIR       28x28 images of ten classes, as Fashion-MNIST's four files
  make_data.py cifar DIR     32x32 color images of ten classes, as CIFAR-10's six binary files
  make_data.py images DIR    the same in DIR/train/<class>/*.png and DIR/test/<class>/*.png
"""
import pathlib
import random
import struct
import sys
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


if __name__ == "__main__":
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    {"idx": write_idx, "cifar": write_cifar, "images": write_images}[kind](folder)
