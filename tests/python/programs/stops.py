"""A loop that saves and ends when a rank is asked to, and goes on from there.   mpiexec -n 3 python3 stops.py FOLDER HOW"""
import os
import pathlib
import random
import signal
import sys
import time

import fast_decentralized as fast
import torch

folder, how, ROUNDS = pathlib.Path(sys.argv[1]), sys.argv[2], 200
if how != "whole":
    fast.on_stop((lambda worker: worker.save(folder / "checkpoints", worker.rounds, optimizer=optimizer)) if how in ("save", "USR2") else None)
torch.manual_seed(fast.rank())
random.seed(fast.rank())
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
worker = fast.Worker(net, "ring", algorithm="atc", deadline=60)
begin = worker.load(folder / "checkpoints", optimizer=optimizer) or 0
for step in range(begin, ROUNDS):
    if step == 20 and fast.rank() == 1 and begin == 0 and how != "whole":
        os.kill(os.getpid(), signal.SIGUSR2 if how == "USR2" else signal.SIGTERM)
    with worker.round(learning_rate=0.01):
        batch = torch.randn(8, 4) + random.random()
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()
        if how != "whole":
            time.sleep(0.02)  # workers look for requests ten times a second
    if how != "whole" and worker.stop_requested:
        print(f"rank {fast.rank()} stops after {worker.rounds}", flush=True)
        break
else:
    worker.await_finish()
    torch.save(net.state_dict(), folder / f"{how}-{fast.rank()}.pt")
    print(f"rank {fast.rank()} ends after {worker.rounds}", flush=True)
