"""A mistake with replicas of several ranks.   mpiexec -n 4 python3 replica_mistakes.py HOW"""
import sys
import warnings

import fast_decentralized as fast
import torch
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

warnings.simplefilter("ignore")
how = sys.argv[1]
torch.set_num_threads(1)
torch.manual_seed(0)
culprit = fast.rank() == fast.size() - 1
if how == "initialized":
    import os

    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29871")
    torch.distributed.init_process_group("gloo", rank=fast.rank(), world_size=fast.size())
if how == "stops":
    fast.on_stop()
if how == "threads":
    fast.local.run(2, lambda: fast.replicas(shards=2))
replicas = fast.replicas(shards={"odd": 3, "text": "two", "other": 4 if culprit else 2}.get(how, 2))
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
options = {"replicas": replicas}
if how == "forgotten":
    options = {}
if how == "comm":
    options["comm"] = replicas.across
if how == "mesh":
    options["replicas"] = replicas.mesh
if how == "event":
    options["algorithm"] = "event_triggered"
if how == "heal":
    options["nan"] = "heal"
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
elif how == "part" and culprit:
    model = torch.nn.Linear(4, 4)
elif how == "one rank" and culprit:
    options["staleness"] = 1
else:
    fully_shard(model, mesh=replicas.mesh)
worker = fast.Worker(model, "ring", deadline=20, **options)
with worker.round():
    pass
print("made", flush=True)
