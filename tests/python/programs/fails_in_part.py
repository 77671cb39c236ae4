"""Errors of groups that are not all ranks.   mpiexec -n 3 python3 fails_in_part.py threads|comm"""
import sys

import fast_decentralized as fast
import numpy as np

if sys.argv[1] == "threads":  # the threads of rank 1 disagree
    if fast.rank() == 1:
        fast.local.run(2, lambda: fast.Worker({"x": np.zeros(3 + fast.rank())}))
else:  # ranks 1 and 2 disagree
    from mpi4py import MPI
    part = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank > 0, MPI.COMM_WORLD.rank)
    if part.size == 2:
        fast.Worker({"x": np.zeros(3 + part.rank)}, comm=part, deadline=30)
