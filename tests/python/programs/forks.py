"""Rank 0 forks a child in the middle of a run.   mpiexec -n 2 python3 forks.py HOW"""
import multiprocessing
import os
import signal
import sys
import threading
import time

import fast_decentralized as fast
import numpy as np

how = sys.argv[1]
if how == "terminate":
    fast.on_stop()
x = np.full(2, float(fast.rank()))
worker = fast.Worker({"x": x}, "complete", initial="as_is", deadline=20)
with worker.round():
    pass


def in_child():
    assert (fast.rank(), fast.size()) == (0, 2)
    if how == "terminate":
        os.kill(os.getpid(), signal.SIGUSR2)  # as to all processes of a job
        while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            time.sleep(1)
    try:
        worker.rounds
    except fast.ArgumentError as error:
        print(error, flush=True)
    if how == "raise":
        raise ValueError("of the child")
    if how == "status":
        sys.exit(3)
    if how == "close":
        worker.close()
    if how == "round":
        with worker.round():
            pass


if fast.rank() == 0:
    if how == "terminate":  # at once, also children that a thread has started
        asks = signal.getsignal(signal.SIGTERM)
        for turn in range(10):
            child = multiprocessing.get_context("fork").Process(target=in_child, daemon=True)
            thread = threading.Thread(target=child.start)
            thread.start() if turn % 2 else child.start()
            thread.join() if turn % 2 else time.sleep(turn / 100)
            child.terminate()
            child.join(20)
            assert child.exitcode == -signal.SIGTERM, (turn, child.exitcode)
        own = lambda number, frame: sys.exit(5)  # changed since
        signal.signal(signal.SIGTERM, own)
        child = os.fork()
        if child == 0:
            os._exit(0 if signal.getsignal(signal.SIGTERM) is own else 1)
        assert os.waitpid(child, 0)[1] == 0
        signal.signal(signal.SIGTERM, asks)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
    elif how == "multiprocessing":
        child = multiprocessing.get_context("fork").Process(target=in_child)
        child.start()
        child.join(20)
        assert child.exitcode == 0
    else:
        child = os.fork()
        if child == 0:
            in_child()
            sys.exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status == {"exit": 0, "close": 0, "raise": 1, "round": 1, "status": 3}[how], status
for _ in range(200):
    with worker.round():
        x -= 0.1 * (x - fast.rank())
worker.await_finish()
assert worker.stats.skipped == 0
print(f"rank {fast.rank()} ended: {worker.rounds} rounds\n", end="", flush=True)
