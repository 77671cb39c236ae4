"""Complete averaging of the ranks' numbers; or a rank that fails.   torchrun --nproc_per_node 4 averages.py [HOW]"""
import sys

import fast_decentralized as fast
import numpy as np

how = sys.argv[1] if len(sys.argv) > 1 else ""
x = np.array([float(fast.rank())])
worker = fast.Worker({"x": x}, "complete", initial="as_is", deadline=100)
limit = 10**9 if how else 1
while worker.rounds < limit:
    with worker.round():
        if how == "raise" and fast.rank() == 2 and worker.rounds == 6:
            raise ValueError("no more batches")
    if how == "exit" and fast.rank() == 2 and worker.rounds == 6:
        sys.exit(3)
worker.await_finish()
print(f"rank {fast.rank()} of {fast.size()} has {x[0]}\n", end="", flush=True)
