"""The program of rank 1 ends well, but its worker does not.   mpiexec -n 3 python3 fails_at_the_end.py"""
import fast_decentralized as fast
import numpy as np


def fails():
    """As PyTorch does when a kernel on a GPU has failed."""
    raise RuntimeError("a kernel failed")


x = np.zeros(7)
worker = fast.Worker({"x": x}, "ring", deadline=100)
limit = 6 if fast.rank() == 1 else 10**9
while worker.rounds < limit:
    with worker.round():
        x -= 0.1 * (x - fast.rank())
worker._model.settle = fails
