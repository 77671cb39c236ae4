#!/usr/bin/python3
"""Makes small sets of Fashion-MNIST:  colored.py FOLDER TRAIN TEST

Writes the first TRAIN and TEST images to FOLDER/gray as they are, and to FOLDER/color as the six binary files of
CIFAR-10: 32x32 pixels, three channels. The gray value of a pixel mixes two random colors of its image, so that
brightness alone says less about the class.
Needs Debian's dataset-fashion-mnist and python3-numpy.
"""
import gzip
import pathlib
import struct
import sys

import numpy as np

SOURCE = pathlib.Path("/usr/share/datasets/fashion-mnist")
SIDE, MARGIN, FILES = 28, 2, 5


def read(part, count):
    images = gzip.decompress((SOURCE / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((SOURCE / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    gray = np.frombuffer(images, np.uint8).reshape(-1, SIDE, SIDE)[:count]
    return gray, np.frombuffer(labels, np.uint8)[:count]


def colored(gray, rng):
    """[count, 3, 32, 32] bytes."""
    share = np.pad(gray / 255, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)))[:, None]
    front, back = (rng.uniform(low, high, (len(gray), 3, 1, 1)) for low, high in ((80, 255), (0, 175)))
    return (share * front + (1 - share) * back).astype(np.uint8)


def write_gray(folder, part, images, labels):
    """Two IDX files, as Fashion-MNIST has them."""
    header = struct.pack(">4i", 2051, len(labels), SIDE, SIDE)
    (folder / f"{part}-images-idx3-ubyte").write_bytes(header + images.tobytes())
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, len(labels)) + labels.tobytes())


def write_color(path, images, labels):
    path.write_bytes(np.concatenate([labels[:, None], images.reshape(len(labels), -1)], 1).tobytes())


def main():
    folder, train, test = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for name in ("gray", "color"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    for part, count in (("train", train), ("t10k", test)):
        gray, labels = read(part, count)
        write_gray(folder / "gray", part, gray, labels)
        images = colored(gray, rng)
        if part == "t10k":
            write_color(folder / "color" / "test_batch.bin", images, labels)
            continue
        for number in range(FILES):
            mine = slice(number * count // FILES, (number + 1) * count // FILES)
            write_color(folder / "color" / f"data_batch_{number + 1}.bin", images[mine], labels[mine])


if __name__ == "__main__":
    main()
