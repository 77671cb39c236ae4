#!/usr/bin/python3
"""Great-circle errors of storm tracks:  evaluate.py FOLDER NAME=MODEL.safetensors...

Prints a table as Markdown: mean errors in km after 6, 12, 18 and 24 hours on the test years. Several models with one
NAME are several seeds: the table has their mean, and for 24 hours also the smallest and the largest. The network is
computed here by NumPy, apart from the library.
"""
import json
import struct
import sys

import numpy as np

from prepare import KM_A_DEGREE, NEXT, SCALE_KM

EARTH_KM = 6371.0


def great_circle_km(a, b):
    """Between places [..., latitude and longitude in degrees] (haversine)."""
    a, b = np.radians(a), np.radians(b)
    half = (b - a) / 2
    h = np.sin(half[..., 0]) ** 2 + np.cos(a[..., 0]) * np.cos(b[..., 0]) * np.sin(half[..., 1]) ** 2
    return 2 * EARTH_KM * np.arcsin(np.sqrt(h))


def places_at(here, moves_km):
    """Where a storm at `here` is after the moves [n, NEXT, east and north]."""
    lat = here[:, None, 0] + moves_km[..., 1] / KM_A_DEGREE
    lon = here[:, None, 1] + moves_km[..., 0] / (KM_A_DEGREE * np.cos(np.radians(here[:, None, 0])))
    return np.stack([lat, lon], -1)


def read_model(path):
    """Tensors and metadata of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
    return tensors, metadata


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def predict(path, inputs):
    """Outputs [n, 2·NEXT] of the model in storms.toml."""
    tensors, metadata = read_model(path)
    weights = {name.split(".")[0].rstrip("_1") + "." + name.split(".")[1]: value for name, value in tensors.items()}
    mean, stddev = (np.array([float(x) for x in metadata[f"fast.{key}"].split(",")]) for key in ("mean", "stddev"))
    x = (inputs - mean.reshape(-1, 1)) / stddev.reshape(-1, 1)
    # Convolution with a kernel of 3 steps, and zeros around the track.
    around = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    steps = x.shape[1]
    x = sum(around[:, k:k + steps] @ weights["conv1d.weight"][:, :, k].T for k in range(3)) + weights["conv1d.bias"]
    x = np.maximum(x, 0)
    hidden = cell = np.zeros((len(x), weights["lstm.weight_hh"].shape[1]))
    for t in range(steps):
        gates = x[:, t] @ weights["lstm.weight_ih"].T + hidden @ weights["lstm.weight_hh"].T + weights["lstm.bias"]
        i, f, g, o = np.split(gates, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
    return hidden @ weights["fc.weight"].T + weights["fc.bias"]


def main():
    folder, *models = sys.argv[1:]
    inputs = np.load(f"{folder}/storms.npz")["x_test"].astype(np.float64)
    places = np.load(f"{folder}/places.npz")["test"]
    here, move, truth = places[:, :2], places[:, 2:4], places[:, 4:].reshape(-1, NEXT, 2)
    straight = np.arange(1, NEXT + 1)[None, :, None] * move[:, None]

    def error_of(moves):
        return great_circle_km(places_at(here, moves), truth).mean(0)

    errors = {"the storm stays": [error_of(0 * straight)], "constant velocity": [error_of(straight)]}
    for model in models:
        name, path = model.split("=", 1)
        moves = straight + SCALE_KM * predict(path, inputs).reshape(-1, NEXT, 2)
        errors.setdefault(name, []).append(error_of(moves))
    print("| | 6 h | 12 h | 18 h | 24 h, km | smallest to largest |\n|---|---|---|---|---|---|")
    for name, of_seeds in errors.items():
        mean = " | ".join(f"{error:.1f}" for error in np.mean(of_seeds, 0))
        last = [error[-1] for error in of_seeds]
        spread = f"{min(last):.1f} to {max(last):.1f}" if len(last) > 1 else ""
        print(f"| {name} | {mean} | {spread} |")


if __name__ == "__main__":
    main()
