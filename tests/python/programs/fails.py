"""A run in which rank 1 does something wrong.   mpiexec -n 3 python3 fails.py HOW"""
import os
import signal
import sys
import time

import fast_decentralized as fast
import numpy as np

how = sys.argv[1]
culprit = fast.rank() == 1
x = np.zeros(7 + (how == "shape" and culprit))
if how == "early" and culprit:
    raise ValueError("no data")
if how == "early exit" and culprit:
    sys.exit("no data")
between = how.endswith("two averages")  # of the three in a step: a signal comes with the second one
how = how.split()[0] if between else how
signals = {"stop": signal.SIGSTOP, "kill": signal.SIGKILL}


class Between(fast.Observer):
    def __init__(self):
        self.read = 0

    def on_message(self, event):
        self.read += event.kind == "read" and event.round == 6
        if self.read == 3:
            self.read += 1
            os.kill(os.getpid(), signals[how])


options = {"suspect_after": 1, "rejoin_after": 5} if how in signals else {}
if between:
    options |= {"mix_times": 3, "algorithm": "atc", "observer": Between() if culprit else None}
worker = fast.Worker({"x": x}, "ring" if how != "topology" else "taurus", deadline=30,
                     staleness=int(how == "option" and culprit), **options)
pids = [int(pid) for pid in fast.world().all_gather(str(os.getpid()).encode())]
rounds = {"stop": 1000, "kill": 300, "caught exit": 300}.get(how, 100_000)
while worker.rounds < rounds:
    t = worker.rounds
    with worker.round():
        x -= 0.1 * (x - fast.rank())
        if how in ("stop", "kill"):
            time.sleep(0.01)
        if culprit and t == 6:
            if how == "raise":
                raise ValueError("no more batches")
            if how == "loss":
                x[2] = np.inf
            if how in signals and not between:
                os.kill(os.getpid(), signals[how])
        if how == "stop" and fast.rank() == 0 and t == 150:
            os.kill(pids[1], signal.SIGCONT)
    if how in ("between", "hook") and culprit and t == 6:
        if how == "hook":
            sys.excepthook = lambda kind, error, trace: print("hook:", error, file=sys.stderr)
        raise ValueError("no more batches")
    if how == "caught exit" and t == 6:
        try:
            sys.exit(3)
        except SystemExit as error:
            assert error.code == 3
worker.await_finish()
stats = worker.stats
print(f"rank {fast.rank()} ended: {worker.rounds} rounds, skipped {stats.skipped > 0}, rejoined {stats.rejoined > 0}")
