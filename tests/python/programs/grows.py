"""Worker k pulls its weight to 10 k; a spare joins.   fastrun -n 2 --spares 1 --grow-at 0.5 python3 grows.py"""
import time

import fast_decentralized as fast
import numpy as np

TOGETHER, MOST = 300, 20_000
group = fast.with_spares()
x = np.zeros(3)
worker = fast.Worker({"x": x}, "complete", comm=group, allow_growth=True,
                     deadline=100, suspect_after=60)
first, together = worker.size, 0
while worker.rounds < MOST and together < TOGETHER:
    with worker.round():
        time.sleep(0.001)
        x += 0.1 * (10.0 * worker.rank - x)
    together += worker.size == 3
worker.await_finish()
mean = worker.mean_model()["x"]
print(f"seat {worker.rank} of {worker.size}: mean {mean[0]:.6f}, joined {group.joined()}, began with {first}\n", end="",
      flush=True)
