"""Replicas of two ranks, of which one does something wrong.

    fastrun -n 6 python3 replica_fails.py HOW FOLDER [mesh_]KIND [OPTION=VALUE]...    KIND: fsdp, tp or ddp; mesh_: all ranks are in one mesh
"""
import os
import pathlib
import signal
import sys
import threading
import time

import fast_decentralized as fast
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

how, folder, kind = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "fsdp"
torch.set_num_threads(1)
if kind.startswith("mesh_"):
    store = torch.distributed.FileStore(str(folder / "meeting"), fast.size())
    torch.distributed.init_process_group("gloo", store=store, rank=fast.rank(), world_size=fast.size())
    replicas = init_device_mesh("cpu", (fast.size() // 2, 2), mesh_dim_names=("replica", "shard"))
    mesh = replicas["shard"]
else:
    replicas = fast.replicas(shards=2)
    mesh = replicas.mesh
culprit = fast.rank() == 2
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
if kind.endswith("fsdp"):
    fully_shard(model, mesh=mesh)
elif kind.endswith("tp"):
    parallelize_module(model[0], mesh, ColwiseParallel(output_layouts=torch.distributed.tensor.Replicate()))
else:
    model = torch.nn.parallel.DistributedDataParallel(model, process_group=mesh.get_group())
optimizer = torch.optim.SGD(model.parameters(), 0.01)
options = dict(one.split("=", 1) for one in sys.argv[4:])
worker = fast.Worker(model, options.pop("topology", "ring"), replicas=replicas, failure_timeout=1.5, deadline=60, **options)
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
    with worker.round(0.01):
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
