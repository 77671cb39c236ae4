"""Ranks with data loaders whose processes are started anew.   mpiexec -n 2 python3 children.py METHOD    spawn, forkserver"""
import multiprocessing
import sys

import fast_decentralized as fast
import numpy as np

PLACE = fast.rank(), fast.size()  # also in the child, which imports this


def in_child(results):
    error = ""
    try:
        fast.Worker({"x": np.zeros(2)}, deadline=20)
    except fast.ArgumentError as raised:
        error = str(raised)
    assert PLACE == (fast.rank(), fast.size())
    results.put((*PLACE, error))


if __name__ == "__main__":
    x = np.full(2, float(fast.rank()))
    worker = fast.Worker({"x": x}, "complete", initial="as_is", deadline=60)
    context = multiprocessing.get_context(sys.argv[1])
    results = context.SimpleQueue()
    child = context.Process(target=in_child, args=(results,))
    child.start()
    rank, size, error = results.get()
    child.join(60)
    with worker.round():
        pass
    print(f"rank {worker.rank} has {x[0]}; its child: {child.exitcode}, {rank} of {size}, {error}\n", end="", flush=True)
