"""Mistakes with replicas of several ranks.   mpiexec -n 4 python3 replica_mistakes.py HOW...

Of one, the error ends the program. Several errors are caught, and rank 0 prints them.
"""
import os
import sys
import warnings

import fast_decentralized as fast
import torch
from torch import distributed
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import DTensor, Partial, Shard, distribute_tensor

warnings.simplefilter("ignore")
torch.set_num_threads(1)
culprit = fast.rank() == fast.size() - 1


def make(how):
    torch.manual_seed(0)
    if how == "initialized":
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29871")
        distributed.init_process_group("gloo", rank=fast.rank(), world_size=fast.size())
    if how == "stops":
        fast.on_stop()
    replicas = fast.replicas(shards={"odd": 3, "text": "two", "other": 4 if culprit else 2}.get(how, 2))
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    options = {} if how == "forgotten" else {"replicas": replicas.mesh if how == "mesh" else replicas}
    options |= {"comm": {"comm": replicas.across}, "event": {"algorithm": "event_triggered"}, "heal": {"nan": "heal"},
               "clip": {"robust": "clip"}, "trimmed": {"robust": "trimmed_mean"},
                "option": {"staleness": int(culprit)}, "growth": {"allow_growth": True}, "mean": {"on_mean": (1, print)},
               "site": {"site": fast.Site("a", "nats://127.0.0.1:1/run")},
                "flat": {"flat": True}}.get(how, {})
    if how == "seed":
        torch.manual_seed(fast.rank())
        model = torch.nn.Linear(4, 4)
    elif how == "fsdp1":
        model = FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    elif how == "dict":
        model = {"w": torch.zeros(3)}
    elif how == "zero3":
        model[0].weight.ds_id = 0
    elif how == "placement" and replicas.index == 1:
        for layer in model:
            layer.weight = torch.nn.Parameter(distribute_tensor(layer.weight.detach(), replicas.mesh, [Shard(1)]))
            layer.bias = torch.nn.Parameter(distribute_tensor(layer.bias.detach(), replicas.mesh, [Shard(0)]))
    elif how == "partial":
        model[0].weight = torch.nn.Parameter(DTensor.from_local(model[0].weight.detach(), replicas.mesh, [Partial()]))
    elif how == "one rank" and culprit:
        pass
    elif how == "another model" and replicas.index == 1:
        model = fully_shard(torch.nn.Linear(4, 4), mesh=replicas.mesh)
    else:
        fully_shard(model, mesh=replicas.mesh)
    worker = fast.Worker(model, "ring", deadline=20, **options)
    with worker.round():
        pass
    if how == "rebind":
        model[1].bias.requires_grad_(False)
        worker.rebind()
    print("made", how, flush=True)


for how in sys.argv[1:]:
    try:
        make(how)
    except fast.Error as error:
        if len(sys.argv) == 2:
            raise
        if fast.rank() == 0:
            print(f"{how}: {type(error).__name__}: {error}", flush=True)
    if how == "initialized":
        distributed.destroy_process_group()
