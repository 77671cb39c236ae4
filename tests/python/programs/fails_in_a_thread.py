"""Rank 1 fails in a thread that trains.   mpiexec -n 3 python3 fails_in_a_thread.py step|between|closed"""
import atexit
import sys
import threading

import fast_decentralized as fast
import numpy as np

how = sys.argv[1]
x = np.full(2, float(fast.rank()))


def train():
    worker = fast.Worker({"x": x}, "complete", deadline=20)
    if how == "closed":
        with worker:
            loop(worker)
    else:
        loop(worker)


def loop(worker):
    for t in range(100_000):
        with worker.round():
            if how == "step" and fast.rank() == 1 and t == 5:
                raise ValueError("no more batches")
        if fast.rank() == 1 and t == 5:
            raise ValueError("no more batches")
    print("trained")


atexit.register(lambda: print("at the end", flush=True))
thread = threading.Thread(target=train)
thread.start()
thread.join()
