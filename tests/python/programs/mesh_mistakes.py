"""Mistakes with a mesh of all ranks as replicas.   mpiexec -n 4 python3 mesh_mistakes.py HOW...      rank 0 prints the errors"""
import os
import sys
import warnings

import fast_decentralized as fast
import torch
from torch import distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard

warnings.simplefilter("ignore")
torch.set_num_threads(1)
store = distributed.FileStore(os.environ["MEETING"], fast.size())
distributed.init_process_group("gloo", store=store, rank=fast.rank(), world_size=fast.size())
whole = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replica", "shard"))
MESHES = {"one side": init_device_mesh("cpu", (4,)), "a part": whole["shard"],
          "order": DeviceMesh("cpu", [[0, 2], [1, 3]], mesh_dim_names=("replica", "shard"))}
others = init_device_mesh("cpu", (4, 1))


def make(how):
    torch.manual_seed(0)
    mesh = others if how == "shards" and fast.rank() == 3 else MESHES.get(how, whole)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    if how == "hsdp":
        fully_shard(model, mesh=whole)
    elif how == "ddp of all":
        model = torch.nn.parallel.DistributedDataParallel(model)
    elif how != "copies" or fast.rank() < 2:
        fully_shard(model, mesh=whole["shard"])
    worker = fast.Worker(model, "ring", deadline=20, replicas=mesh, comm=fast.world() if how == "comm" else None)
    with worker.round():
        pass
    worker.close()
    if fast.rank() == 0:
        print("made", how, flush=True)


for how in sys.argv[1:]:
    try:
        make(how)
    except fast.Error as error:
        if fast.rank() == 0:
            print(f"{how}: {type(error).__name__}: {error}", flush=True)
distributed.destroy_process_group()
