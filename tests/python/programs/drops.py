"""An exception passes on rank 1, and its program goes on.   mpiexec -n 2 python3 drops.py HOW"""
import sys

import fast_decentralized as fast
import numpy as np

how = sys.argv[1]
culprit = fast.rank() == 1
x = np.zeros(7)
worker = fast.Worker({"x": x}, "ring", deadline=100)


def rounds(count):
    for t in range(count):
        with worker.round():
            if culprit and t == 5:
                if how == "round":
                    raise ValueError("no more batches")
                if how == "exit in a round":
                    sys.exit(0)
        if culprit and t == 5:
            if how == "call":
                worker.scalar("loss", "no more batches")
            if how == "exit in a with statement":
                sys.exit()
        yield t


def within():
    with worker:
        yield from rounds(300)


if how == "exit in a with statement":
    with worker:
        list(rounds(300))
elif how == "generator":
    loop = within()
    for t in loop:
        if culprit and t == 5:
            break
    loop.close()
else:
    try:
        list(rounds(300))
    except (ValueError, fast.ArgumentError):
        pass
