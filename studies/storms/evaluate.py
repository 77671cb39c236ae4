#!/usr/bin/python3
"""Great-circle errors of storm tracks:  evaluate.py FOLDER NAME=MODEL.safetensors...

Writes FOLDER/table.md and FOLDER/error.svg: mean errors in km after 6, 12, 18 and 24 hours on the test years. Several
models with one NAME are several seeds: both have their mean, and for 24 hours also the smallest and the largest. The
network is computed here by NumPy, apart from the library.
"""
import json
import pathlib
import struct
import sys
import textwrap

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from output import plt, save, write_table  # noqa: E402
from prepare import KM_A_DEGREE, NEXT, SCALE_KM, STEP_H  # noqa: E402

EARTH_KM = 6371.0
STAYS, STRAIGHT = "the storm stays", "constant velocity"


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


def errors_of(folder, models):
    """By name: errors of each seed [NEXT]."""
    inputs = np.load(folder / "storms.npz")["x_test"].astype(np.float64)
    places = np.load(folder / "places.npz")["test"]
    here, move, truth = places[:, :2], places[:, 2:4], places[:, 4:].reshape(-1, NEXT, 2)
    straight = np.arange(1, NEXT + 1)[None, :, None] * move[:, None]

    def error_of(moves):
        return great_circle_km(places_at(here, moves), truth).mean(0)

    errors = {STAYS: [error_of(0 * straight)], STRAIGHT: [error_of(straight)]}
    for model in models:
        name, path = model.split("=", 1)
        moves = straight + SCALE_KM * predict(path, inputs).reshape(-1, NEXT, 2)
        errors.setdefault(name, []).append(error_of(moves))
    return errors


def row_of(errors):
    """Of all seeds: means [NEXT], and the smallest and the largest error at the end. In 0.1 km, as the table has them."""
    last = [error[-1] for error in errors]
    return np.round(np.mean(errors, 0), 1), round(min(last), 1), round(max(last), 1)


def table(rows):
    yield "| | " + " | ".join(f"{STEP_H * step} h" for step in range(1, NEXT + 1)) + " | smallest to largest |"
    yield "|---" * (NEXT + 2) + "|"
    for name, (means, smallest, largest) in rows.items():
        spread = f"{smallest:.1f} to {largest:.1f}" if smallest < largest else ""
        yield f"| {name} | " + " | ".join(f"{mean:.1f}" for mean in means) + f" | {spread} |"


def draw(rows, path):
    """Errors over hours; and after the last hour, with the smallest and the largest seed."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    hours = [STEP_H * step for step in range(1, NEXT + 1)]
    color = {name: f"C{index}" for index, name in enumerate(rows)}
    for name, (means, _, _) in rows.items():
        left.plot(hours, means, marker="o", markersize=4, color=color[name], label=name)
    left.set(xlabel="hours ahead", ylabel="mean great-circle error (km)", ylim=(0, None))
    left.set_xticks(hours)
    left.grid(alpha=0.3)
    left.legend(frameon=False, fontsize=8)
    names = [name for name in rows if name != STAYS]  # its error would hide the differences of the others
    for place, name in enumerate(names):
        means, smallest, largest = rows[name]
        right.bar(place, means[-1], 0.6, color=color[name], alpha=0.6)
        if smallest < largest:
            right.errorbar(place, means[-1], [[means[-1] - smallest], [largest - means[-1]]], color="black", capsize=4)
        right.annotate(f"{means[-1]:.1f}", (place, largest), (0, 4), textcoords="offset points", ha="center", fontsize=8)
    right.set_xticks(range(len(names)), [textwrap.fill(name, 13) for name in names], fontsize=8)
    right.set(ylabel=f"error after {hours[-1]} h (km), smallest to largest seed")
    right.margins(y=0.1)
    right.grid(alpha=0.3, axis="y")
    figure.tight_layout()
    save(figure, path)


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = {name: row_of(errors) for name, errors in errors_of(folder, sys.argv[2:]).items()}
    draw(rows, folder / "error.svg")
    write_table(folder, table(rows))


if __name__ == "__main__":
    main()
