"""Replicas of two ranks that are saved, and go on.   mpiexec -n 4 python3 replica_resumes.py FOLDER"""
import sys
import warnings

import fast_decentralized as fast
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.fsdp import fully_shard

warnings.simplefilter("ignore")
folder = sys.argv[1]
torch.set_num_threads(1)


def net(shards, seed=1):
    replicas = fast.replicas(shards=shards)
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5, momentum=0.5), torch.nn.Linear(5, 1)).double()
    fully_shard(model, mesh=replicas.mesh)
    return replicas, model, torch.optim.Adam(model.parameters(), 0.01)


def train(model, optimizer, worker, rounds):
    while worker.rounds < rounds:
        torch.manual_seed(100 * fast.rank() + worker.rounds)
        with worker.round():
            optimizer.zero_grad()
            model(torch.randn(8, 3, dtype=torch.float64)).square().mean().backward()
            optimizer.step()


def whole(state):
    return {name: one.full_tensor().tolist() if hasattr(one, "full_tensor") else one.tolist() for name, one in state.items()}


def options(replicas):
    return {"replicas": replicas, "algorithm": "gradient_tracking", "deadline": 60}


replicas, model, optimizer = net(2)
with fast.Worker(model, "ring", **options(replicas)) as worker:
    train(model, optimizer, worker, 5)
    worker.save(folder, "half of it", optimizer=optimizer)
    train(model, optimizer, worker, 9)
    expected = whole(model.state_dict())

replicas, model, optimizer = net(2, seed=7)
with fast.Worker(model, "ring", initial="as_is", **options(replicas)) as worker:
    assert worker.load(folder, optimizer=optimizer) == "half of it" and worker.rounds == 5
    train(model, optimizer, worker, 9)
    assert whole(model.state_dict()) == expected, "another end"
    worker.await_finish()
    mean = worker.mean_model()
    if replicas.index == 0:  # whole weights, written by the ranks of one replica
        dcp.save({"model": mean}, checkpoint_id=f"{folder}/whole")
    mean = whole(mean)
fast.world().barrier()

for shards in (4, 1):
    replicas, model, optimizer = net(shards, seed=8)
    state = {"model": get_model_state_dict(model)}
    dcp.load(state, checkpoint_id=f"{folder}/whole")
    set_model_state_dict(model, state["model"])
    assert whole(model.state_dict()) == mean, f"other weights on {shards} ranks"
    with fast.Worker(model, "ring", **options(replicas)) as worker:
        train(model, optimizer, worker, 2)
    if fast.rank() == 0:
        print(f"whole weights go on in replicas of {shards}", flush=True)
if fast.rank() == 0:
    print("the same end", flush=True)
