"""A rank that starts another Python with the package.   mpiexec -n 2 python3 starts.py subprocess|environment|system|mpiexec"""
import os
import subprocess
import sys

import fast_decentralized as fast
import numpy as np

code = 'import fast_decentralized as fast; print(f"child {fast.rank()} of {fast.size()}\\n", end="", flush=True)'
x = np.full(2, float(fast.rank()))
worker = fast.Worker({"x": x}, "complete", initial="as_is", deadline=60)
status = None
with worker.round():
    if fast.rank() == 0 and sys.argv[1] == "system":
        status = os.waitstatus_to_exitcode(os.system(f"timeout 40 {sys.executable} -c '{code}'"))
    elif fast.rank() == 0:
        launcher = ["mpiexec", "-n", "2"] if sys.argv[1] == "mpiexec" else []
        environment = {**os.environ} if sys.argv[1] == "environment" else None
        status = subprocess.run([*launcher, sys.executable, "-c", code], env=environment, stdin=subprocess.DEVNULL, timeout=40).returncode
if status is not None:
    print(f"status {status}\n", end="", flush=True)
print(f"rank {worker.rank} has {x[0]}\n", end="", flush=True)
