"""A step that raises on worker 1 ends all workers.   mpiexec -n 3 python3 python_failure_test.py EXAMPLES_DIRECTORY"""
import ctypes as c
import sys

import numpy as np

sys.path.insert(0, sys.argv[1])
import train  # noqa: E402

environment, group = c.c_void_p(), c.c_void_p()
train.check(train.fast.fast_environment_create(c.byref(environment)))
train.check(train.fast.fast_group_world(environment, c.byref(group)))
rank, rounds, found = train.fast.fast_group_rank(group), [], ""


def step():
    rounds.append(1)
    if rank == 1 and len(rounds) == 6:
        raise ValueError("no more batches")
    return 1.0


try:
    with train.Worker(group, "ring", {"w": np.zeros(3)}) as worker:
        for _ in range(1000):
            worker.step(step)
except (RuntimeError, ValueError) as error:
    found = str(error)
train.fast.fast_group_free(group)
train.fast.fast_environment_free(environment)
expected = "no more batches" if rank == 1 else " failed"
assert expected in found and len(rounds) < 10, f"rank {rank}: {found!r} after {len(rounds)} rounds"
print("ended as it should")
