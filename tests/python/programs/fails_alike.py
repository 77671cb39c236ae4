"""All ranks do the same wrong thing.   mpiexec -n 3 python3 fails_alike.py HOW"""
import sys

import fast_decentralized as fast
import numpy as np

how = sys.argv[1]
model, options = {"x": np.zeros(2)}, {}


class Listener(fast.Observer):
    if how == "observer":
        def on_phases(self, event):
            pass


if how == "comm":
    options["comm"] = 3
worker = fast.Worker(model, "complete", deadline=20, observer=Listener(), **options)
with worker.round():
    pass
if how == "topology":
    worker.set_topology("nope")
if how == "state":
    worker.load_state_dict({})
if how == "damaged":
    worker.load_state_dict({"format": 1, "tensors": [("a", 3)]})
if how == "rebind":
    worker.rebind({"x": np.zeros(5)})
if how == "scalar":
    worker.scalar("x", "abc")
if how == "moved":
    model["x"] = np.zeros(2)
with worker.round():
    pass
print("ended")
