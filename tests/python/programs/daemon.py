"""The program ends while a daemon thread trains.   mpiexec -n 3 python3 daemon.py ranks|local|finished"""
import sys
import threading
import time

import fast_decentralized as fast
import numpy as np

how = sys.argv[1]
begun = threading.Event()


def train():
    worker = fast.Worker({"x": np.zeros(2_000_000)}, "complete", deadline=60)
    while how != "finished" or worker.rounds < 5:
        with worker.round():
            pass
        if worker.rounds == 3:
            begun.set()
    worker.await_finish()
    print("finished", flush=True)
    begun.clear()
    time.sleep(100)


if how == "local":
    work = lambda: fast.local.run(2, train)  # noqa: E731
else:
    fast.rank()
    work = train
thread = threading.Thread(target=work, daemon=True)
thread.start()
while thread.is_alive() and not begun.wait(0.01):  # a rank whose neighbor ended earlier may never begin round 3
    pass
if how == "finished":
    while begun.is_set():
        time.sleep(0.01)
if fast.rank() != 1 and how == "ranks":
    thread.join(60)
