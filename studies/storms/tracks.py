#!/usr/bin/python3
"""Makes up a table of storms for run.sh --small:  tracks.py STORMS.csv

It has the columns of R's table that prepare.py reads. Each storm moves at its own speed and turns slowly.
"""
import csv
import datetime
import math
import random
import sys

YEARS, STORMS, FIXES = range(1990, 1996), 4, 30  # storms of a year, fixes of a storm


def track(rng, name, year):
    time = datetime.datetime(year, 8, 1)
    lat, lon, speed, heading = rng.uniform(10, 20), rng.uniform(-60, -30), rng.uniform(0.5, 1.5), rng.uniform(0, 0.5)
    turn = rng.uniform(0.01, 0.05)
    for step in range(FIXES):
        angle = heading + turn * step
        lat, lon = lat + speed * math.sin(angle), lon - speed * math.cos(angle)
        yield [name, time.year, time.month, time.day, time.hour, round(lat, 2), round(lon, 2), 50 + step, 1000 - step]
        time += datetime.timedelta(hours=6)


def main():
    rng = random.Random(1)
    with open(sys.argv[1], "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "year", "month", "day", "hour", "lat", "long", "wind", "pressure"])
        for year in YEARS:
            for number in range(STORMS):
                writer.writerows(track(rng, f"storm {number}", year))


if __name__ == "__main__":
    main()
