"""Each worker begins with its rank; on a complete graph one round makes the mean of it. --mpi4py: of that communicator."""
import sys

import fast_decentralized as fast
import numpy as np

if "--mpi4py" in sys.argv:
    from mpi4py import MPI

    try:
        fast.Worker({"x": np.zeros(1)}, "complete", comm=MPI.COMM_WORLD)
    except fast.Error as error:
        sys.exit(str(error))
x = np.zeros(1)
worker = fast.Worker({"x": x}, "complete", deadline=20)
with worker.round():
    x += fast.rank()
worker.await_finish()
mean = float(worker.mean_model()["x"][0])
if worker.rank == 0:
    print(f"{worker.size} workers: {mean}")
