"""Replicas of two ranks, of which one does something wrong.   fastrun -n 6 python3 replica_fails.py HOW FOLDER"""
import os
import pathlib
import signal
import sys
import threading
import time

import fast_decentralized as fast
import torch
from torch.distributed.fsdp import fully_shard

how, folder = sys.argv[1], pathlib.Path(sys.argv[2])
torch.set_num_threads(1)
replicas = fast.replicas(shards=2)
culprit = fast.rank() == 2
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
fully_shard(model, mesh=replicas.mesh)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
worker = fast.Worker(model, "ring", replicas=replicas, failure_timeout=1.5, deadline=60)
pids = [int(pid) for pid in fast.world().all_gather(str(os.getpid()).encode())]


def watch(pid):
    """Until that process has ended; its parent may not have heard of it."""
    began = folder / "began"
    while how == "stop" and not began.exists():
        time.sleep(0.01)
    if how == "stop":
        time.sleep(4)
        os.kill(pids[2], signal.SIGCONT)
        return
    while pathlib.Path(f"/proc/{pid}").exists() and pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
        time.sleep(0.01)
    if began.exists():
        print(f"rank 3 ended after {time.time() - float(began.read_text()):.2f} s", flush=True)


if how in ("kill", "stop") and fast.rank() == 0:
    threading.Thread(target=watch, args=[pids[3]], daemon=True).start()
rounds = 60 if how in ("kill", "stop") else 100_000
while worker.rounds < rounds:
    t = worker.rounds
    if culprit and t == 10:
        (folder / "began").write_text(str(time.time()))
        if how == "between":
            raise ValueError("no more batches")
    with worker.round():
        if culprit and t == 10:
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if how == "raise":
                raise ValueError("no more batches")
        if how == "together" and t == 10:
            raise RuntimeError("the shapes do not fit")
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().sum().backward()
        optimizer.step()
        if how in ("kill", "stop"):
            time.sleep(0.05)
worker.await_finish()
worker.mean_model()
print(f"rank {fast.rank()} ended: {worker.rounds} rounds, skipped {worker.stats.skipped > 0}, rejoined {worker.stats.rejoined}", flush=True)
