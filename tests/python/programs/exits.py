"""Rank 1 ends by SystemExit between rounds.   mpiexec -n 3 python3 exits.py HOW   prints how each rank ended"""
import sys

import fast_decentralized as fast
import numpy as np

how = sys.argv[1]


def end():
    if how == "raise":
        raise SystemExit(3)
    if how == "text":
        raise SystemExit("no more batches")
    if how == "exit":
        sys.exit(3)
    if how == "other":
        raise SystemExit((3, 4))
    if how == "derived":
        raise type("Ends", (SystemExit,), {})(3)
    if how == "well":
        raise SystemExit(0)
    if how == "none":
        raise SystemExit


def caught():
    try:
        raise SystemExit(4)
    except SystemExit as error:
        assert error.code == 4
        error.code = 5
        assert error.code == 5


x = np.zeros(7)
worker = fast.Worker({"x": x}, "ring", deadline=100)
caught()
limit = 6 if how in ("well", "none") else 10**9
while worker.rounds < limit:
    with worker.round():
        x -= 0.1 * (x - fast.rank())
    if fast.rank() == 1 and worker.rounds == 6:
        end()
