"""Rank 1 is killed, and a spare takes its seat.   fastrun -n 3 --spares 1 python3 replaced.py"""
import os
import signal
import time

import fast_decentralized as fast
import numpy as np

group = fast.with_spares()
rank = fast.rank()
x = np.zeros(3)
worker = fast.Worker({"x": x}, "complete", comm=group, deadline=100, suspect_after=60)
while worker.rounds < 400:
    with worker.round():
        time.sleep(0.001)
        x += 0.1 * (10.0 * worker.rank - x)
    if rank == 1 and worker.rounds == 20:
        os.kill(os.getpid(), signal.SIGKILL)
worker.await_finish()
mean = worker.mean_model()["x"]
print(f"rank {rank} on seat {worker.rank}: mean {mean[0]:.6f}, replaced {group.replaced()}\n", end="", flush=True)
