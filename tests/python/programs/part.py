"""Rank 0 makes no worker; the others average in a communicator of their own.   mpiexec -n 3 python3 part.py"""
import fast_decentralized as fast
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
part = world.Split(world.rank > 0, world.rank)
if world.rank > 0:
    x = np.array([float(world.rank)])
    worker = fast.Worker({"x": x}, "complete", comm=part, initial="as_is", deadline=30)
    with worker.round():
        pass
    worker.await_finish()
    print(f"rank {world.rank} has {x[0]}\n", end="", flush=True)
