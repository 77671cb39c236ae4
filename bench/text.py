#!/usr/bin/python3
"""Makes a data set of characters:  bench/text.py OUT.npz [--windows N] [--steps N]

The text is the dictionary of Debian's package dict-gcide. A sample has `steps` characters, and its labels are the
characters that follow each of them. Training and test are different parts of the book. Characters are numbered in
the order of VOCABULARY; all others count as the last one.
"""
import argparse
import gzip
import sys

import numpy as np

SOURCE = "/usr/share/dictd/gcide.dict.dz"
VOCABULARY = "abcdefghijklmnopqrstuvwxyz .,;:()[]'\"-\n?"
TEST_SHARE = 0.1


def numbers(text):
    """Of each character: its place in the vocabulary."""
    table = np.full(256, len(VOCABULARY) - 1)
    for place, letter in enumerate(VOCABULARY):
        table[ord(letter)] = place
    return table[np.frombuffer(" ".join(text.lower().split()).encode("latin-1"), np.uint8)]


def windows(of, count, steps, rng):
    """`count` windows at random places, and what follows each of their characters."""
    first = rng.integers(0, len(of) - steps - 1, count)
    places = first[:, None] + np.arange(steps)
    return of[places].astype(np.float32), of[places + 1].astype(np.int32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--windows", type=int, default=20000, help="for training; the test has a tenth")
    parser.add_argument("--steps", type=int, default=64)
    options = parser.parse_args()
    try:
        with gzip.open(SOURCE) as file:
            text = file.read().decode("latin-1")
    except FileNotFoundError:
        sys.exit(f"text.py: {SOURCE} is not there (apt-get install dict-gcide)")
    all_numbers = numbers(text)
    border = int(len(all_numbers) * (1 - TEST_SHARE))
    rng = np.random.default_rng(1)
    x_train, y_train = windows(all_numbers[:border], options.windows, options.steps, rng)
    x_test, y_test = windows(all_numbers[border:], options.windows // 10, options.steps, rng)
    np.savez(options.out, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    share = np.bincount(all_numbers, minlength=len(VOCABULARY)) / len(all_numbers)
    entropy = -np.sum(share * np.log(np.maximum(share, 1e-12)))
    print(f"{len(all_numbers)} characters, {len(VOCABULARY)} different ones; "
          f"perplexity {np.exp(entropy):.2f} by their frequencies alone")


if __name__ == "__main__":
    main()
