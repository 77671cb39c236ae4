"""Replicas of two ranks that are saved, and go on.

    mpiexec -n 4 python3 replica_resumes.py FOLDER [[mesh_]KIND [OPTION=VALUE]...]    as replica_fails.py
"""
import sys
import warnings

import fast_decentralized as fast
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

warnings.simplefilter("ignore")
folder, kind = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "fsdp"
given = {"algorithm": "gradient_tracking", **dict(one.split("=", 1) for one in sys.argv[3:])}
topology = given.pop("topology", "ring")
torch.set_num_threads(1)


def net(shards, seed=1):
    if kind.startswith("mesh_"):
        replicas = init_device_mesh("cpu", (fast.size() // shards, shards), mesh_dim_names=("replica", "shard"))
        mesh = replicas["shard"]
    else:
        replicas = fast.replicas(shards=shards)
        mesh = replicas.mesh
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8, momentum=0.5), torch.nn.Linear(8, 1)).double()
    if kind.endswith("fsdp"):
        fully_shard(model, mesh=mesh)
    elif kind.endswith("tp"):
        parallelize_module(model[0], mesh, ColwiseParallel(output_layouts=Replicate()))
    else:
        model = torch.nn.parallel.DistributedDataParallel(model, process_group=mesh.get_group())
    return replicas, mesh.get_group(), model, torch.optim.Adam(model.parameters(), 0.01)


def train(model, optimizer, worker, rounds):
    while worker.rounds < rounds:
        of_batch = worker.rank if kind.endswith("tp") else fast.rank()
        torch.manual_seed(100 * of_batch + worker.rounds)
        with worker.round(0.01):
            optimizer.zero_grad()
            model(torch.randn(8, 3, dtype=torch.float64)).square().mean().backward()
            optimizer.step()


def whole(state):
    return {name: one.full_tensor().tolist() if hasattr(one, "full_tensor") else one.tolist() for name, one in state.items()}


def options(replicas):
    return {"replicas": replicas, "deadline": 60, **given}


if kind.startswith("mesh_"):
    store = torch.distributed.FileStore(f"{folder}.meeting", fast.size())
    torch.distributed.init_process_group("gloo", store=store, rank=fast.rank(), world_size=fast.size())
replicas, group, model, optimizer = net(2)
with fast.Worker(model, topology, **options(replicas)) as worker:
    train(model, optimizer, worker, 5)
    worker.save(folder, "half of it", optimizer=optimizer)
    train(model, optimizer, worker, 9)
    expected = whole(model.state_dict())

replicas, group, model, optimizer = net(2, seed=7)
with fast.Worker(model, topology, initial="as_is", **options(replicas)) as worker:
    assert worker.load(folder, optimizer=optimizer) == "half of it" and worker.rounds == 5
    train(model, optimizer, worker, 9)
    assert whole(model.state_dict()) == expected, "another end"
    worker.await_finish()
    model.load_state_dict(worker.mean_model())
    state = {"model": get_model_state_dict(model)}
    if worker.rank == 0:  # whole weights, written by the ranks of one replica
        dcp.save(state, checkpoint_id=f"{folder}/whole", process_group=group)
    mean = whole(model.state_dict())
fast.world().barrier()

for shards in (4, 1):
    replicas, group, model, optimizer = net(shards, seed=8)
    with fast.Worker(model, topology, initial="as_is", **options(replicas)) as worker:
        try:
            worker.load(folder, optimizer=optimizer)
            told = "nothing"
        except fast.ArgumentError as error:
            told = str(error)
    assert f"is of replicas of 2 ranks, this run has {shards}; start it with as many shards" in told, told
    state = {"model": get_model_state_dict(model)}
    dcp.load(state, checkpoint_id=f"{folder}/whole")
    set_model_state_dict(model, state["model"])
    assert whole(model.state_dict()) == mean, f"other weights on {shards} ranks"
    with fast.Worker(model, topology, **options(replicas)) as worker:
        train(model, optimizer, worker, 2)
    if fast.rank() == 0:
        print(f"whole weights go on in replicas of {shards}", flush=True)
if fast.rank() == 0:
    print("the same end", flush=True)
