"""An error after the end of training.   mpiexec -n 2 python3 fails_after.py finish|await_finish round|scalar|with"""
import sys

import fast_decentralized as fast
import numpy as np

end, how = sys.argv[1:]
worker = fast.Worker({"x": np.zeros(4)}, "ring", deadline=100)
for _ in range(3):
    with worker.round():
        pass
getattr(worker, end)()
if how == "round":
    with worker.round():
        pass
if how == "scalar":
    worker.scalar("loss", "text")
if how == "with":
    with worker:
        raise ValueError("of the program")
print("ended")
