#!/usr/bin/python3
"""Makes windows of storm tracks:  prepare.py STORMS.csv FOLDER

STORMS.csv is the table `storms` of R's package dplyr (see run.sh). A window has the fixes of the last 48 hours, and the
positions of the next 24 hours. Years that are divisible by 5 are the test set; all others are for training.
Writes FOLDER/storms.npz for fast-train, and FOLDER/places.npz for evaluate.py.
"""
import csv
import datetime
import sys

import numpy as np

STEP_H, PAST, NEXT = 6, 8, 4  # hours from fix to fix; steps back; steps ahead
KM_A_DEGREE = 111.195
SCALE_KM = 100.0  # of inputs and targets


def fixes(path):
    """By storm (name and year): fixes at 0, 6, 12, 18 h in the order of time."""
    storms = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if int(row["hour"]) % STEP_H != 0:
                continue
            time = datetime.datetime(*(int(row[k]) for k in ("year", "month", "day", "hour")))
            storms.setdefault((row["name"], time.year), []).append(
                (time, float(row["lat"]), float(row["long"]), float(row["wind"]), float(row["pressure"])))
    return {key: sorted(rows) for key, rows in storms.items()}


def without_gap(rows):
    step = datetime.timedelta(hours=STEP_H)
    return all(later[0] - earlier[0] == step for earlier, later in zip(rows, rows[1:]))


def km_from(here, lat, lon):
    """East and north of `here`, in km on the plane that touches the globe there."""
    east = (lon - here[1]) * KM_A_DEGREE * np.cos(np.radians(here[0]))
    return np.array([east, (lat - here[0]) * KM_A_DEGREE])


def window(rows):
    """Inputs [PAST x features], targets [2·NEXT], and where the storm is and will be (degrees)."""
    past, following = rows[:PAST + 1], rows[PAST + 1:]
    here = past[-1][1:3]
    places = np.array([km_from(here, row[1], row[2]) for row in past])
    moves = np.diff(places, axis=0)
    season = 2 * np.pi * past[-1][0].timetuple().tm_yday / 365.25
    inputs = [[*move / SCALE_KM, *place / (10 * SCALE_KM), (row[3] - 50) / 30, (row[4] - 990) / 20,
               row[1] / 30, row[2] / 60 + 1, np.sin(season), np.cos(season)]
              for move, place, row in zip(moves, places[1:], past[1:])]
    # What is to be learned is how far the storm leaves the straight line.
    straight = np.outer(np.arange(1, NEXT + 1), moves[-1])
    targets = np.array([km_from(here, row[1], row[2]) for row in following]) - straight
    degrees = [*here, *(moves[-1]), *(value for row in following for value in row[1:3])]
    return inputs, targets.reshape(-1) / SCALE_KM, degrees


def main():
    source, folder = sys.argv[1:]
    parts = {"train": ([], [], []), "test": ([], [], [])}
    length = PAST + 1 + NEXT
    for (_, year), rows in fixes(source).items():
        part = parts["test" if year % 5 == 0 else "train"]
        for first in range(len(rows) - length + 1):
            if without_gap(rows[first:first + length]):
                for of_part, value in zip(part, window(rows[first:first + length])):
                    of_part.append(value)
    arrays, places = {}, {}
    for name, (inputs, targets, degrees) in parts.items():
        arrays[f"x_{name}"] = np.array(inputs, np.float32)
        arrays[f"y_{name}"] = np.array(targets, np.float32)
        places[name] = np.array(degrees)
    np.savez(f"{folder}/storms.npz", **arrays)
    np.savez(f"{folder}/places.npz", **places)
    print(f"{len(arrays['x_train'])} windows for training, {len(arrays['x_test'])} for the test, "
          f"{arrays['x_train'].shape[1]} steps of {arrays['x_train'].shape[2]} numbers")


if __name__ == "__main__":
    main()
