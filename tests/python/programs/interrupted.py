"""Rank 1 gets a signal while it waits for rank 0, which waits until rank 1 has handled it.
mpiexec -n 2 python3 interrupted.py FOLDER WAIT SIGNAL"""
import os
import pathlib
import signal
import sys
import threading
import time

import fast_decentralized as fast
import numpy as np

handled, wait, number = pathlib.Path(sys.argv[1]) / "handled", sys.argv[2], signal.Signals[sys.argv[3]]
rank = fast.rank()


def handle(number, frame):
    handled.touch()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(0)


def until_handled():
    if rank == 0:
        last = time.monotonic() + 200
        while not handled.exists():
            if time.monotonic() > last:
                print("the handler has not run", file=sys.stderr, flush=True)
                os._exit(9)
            time.sleep(0.01)
    else:
        signal.signal(number, handle)
        timer = threading.Timer(1, os.kill, (os.getpid(), number))
        timer.daemon = True  # the end of the interpreter does not wait for it
        timer.start()


fast.world().barrier()
if wait == "constructor":
    until_handled()
x = np.full(5, float(rank))
worker = fast.Worker({"x": x}, "complete", algorithm="allreduce" if wait == "allreduce" else "awc", deadline=250)
if wait == "barrier":
    until_handled()
    fast.world().barrier()
for step in range(4):
    with worker.round():
        if step == 2 and wait in ("round", "allreduce"):
            if rank == 0:
                until_handled()
    if step == 1 and rank == 1 and wait in ("round", "allreduce"):
        until_handled()
if wait == "finish":
    until_handled()
    worker.await_finish()
worker.close()
if wait == "end":
    until_handled()
print("end", rank, flush=True)
