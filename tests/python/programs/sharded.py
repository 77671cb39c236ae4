"""Replicas of several ranks beside workers that have the whole model.

    fastrun -n 4 python3 sharded.py [mesh]SHARDS CASE...    mesh: all ranks are in one mesh    CASE: KIND,DTYPE,ALGORITHM[,OPTION=VALUE]...    KIND: fsdp, tp, ddp or fsdp_tp
"""
import os
import sys
import types
import warnings

import fast_decentralized as fast
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

warnings.simplefilter("ignore")
in_one_mesh, shards = sys.argv[1].startswith("mesh"), int(sys.argv[1].removeprefix("mesh"))
torch.set_num_threads(1)
ROUNDS, BATCH, RATE = 7, 12, 0.05


class Net(torch.nn.Module):
    """The bias of one element has an empty shard on most ranks."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 12), torch.nn.Linear(12, 6)
        self.norm, self.last = torch.nn.LayerNorm(6), torch.nn.Linear(6, 1)

    def forward(self, x):
        return self.last(self.norm(self.second(torch.tanh(self.first(x)))))


def replicas_of_ranks():
    if not in_one_mesh:
        return fast.replicas(shards=shards)
    index, shard = divmod(fast.rank(), shards)
    world = fast.world()
    return types.SimpleNamespace(index=index, shard=shard, count=world.size // shards, inside=world.split(index), across=world.split(shard),
                                 mesh=mesh_of(("shard",), (shards,))["shard"])


def mesh_of(names, sizes):
    """Of the ranks of the replica; in one mesh, its first side is the replicas."""
    if in_one_mesh:
        return init_device_mesh("cpu", (fast.size() // shards, *sizes), mesh_dim_names=("replica", *names))
    return init_device_mesh("cpu", sizes, mesh_dim_names=names)


def net(dtype):
    torch.manual_seed(1)
    return Net().to(dtype)


def train(module, worker, dtype, part=slice(None)):
    optimizer = torch.optim.SGD(module.parameters(), RATE, momentum=0.9)
    for round in range(ROUNDS):
        torch.manual_seed(1000 * replicas.index + round)
        x = torch.randn(BATCH, 6, dtype=dtype)
        y = torch.sin(x.sum(1, keepdim=True)) + replicas.index
        with worker.round(RATE) as this:
            optimizer.zero_grad()
            this.loss = torch.nn.functional.mse_loss(module(x[part]), y[part])
            this.loss.backward()
            optimizer.step()


def weights(state):
    return {name.removeprefix("module."): tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.clone()
            for name, tensor in state.items()}


def cut(module, kind):
    """As people do it; the part of a batch that this rank has; and what the worker gets as replicas."""
    if kind == "ddp":
        module = torch.nn.parallel.DistributedDataParallel(module, process_group=replicas.mesh.get_group())
    elif kind == "fsdp":
        fully_shard(module.first, mesh=replicas.mesh)
        fully_shard(module, mesh=replicas.mesh)
    parts, own = shards, replicas.shard
    mesh = mesh_of(("shard",), (shards,)) if in_one_mesh else None
    if kind in ("tp", "fsdp_tp"):
        mesh = mesh_of(("data", "model"), (1, shards) if kind == "tp" else (2, shards // 2))
        parallelize_module(module, mesh["model"], {"first": ColwiseParallel(), "second": RowwiseParallel()})
        parts, own = mesh["data"].size(), mesh["data"].get_local_rank()
        if kind == "fsdp_tp":
            fully_shard(module, mesh=mesh["data"])
    return module, slice(own * BATCH // parts, (own + 1) * BATCH // parts), mesh if in_one_mesh else replicas


def result(worker, module):
    own, sent = weights(module.state_dict()), worker.stats.bytes_sent
    worker.await_finish()
    return own, weights(worker.mean_model()), sent


def difference(one, other):
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in other)


if in_one_mesh:
    store = torch.distributed.FileStore(os.environ["MEETING"], fast.size())
    torch.distributed.init_process_group("gloo", store=store, rank=fast.rank(), world_size=fast.size())
for case in sys.argv[2:]:
    replicas = replicas_of_ranks()
    kind, dtype, algorithm, *given = case.split(",")
    options = {"algorithm": algorithm, "deadline": 60, **dict(one.split("=", 1) for one in given)}
    topology = options.pop("topology", "ring")
    rule = {name.removeprefix("rule."): options.pop(name) for name in [*options] if name.startswith("rule.")}
    options |= {"algorithm_option": rule} if rule else {}
    module, part, given = cut(net(getattr(torch, dtype)), kind)
    worker = fast.Worker(module, topology, replicas=given, **options)
    assert (worker.rank, worker.size) == (replicas.index, replicas.count)
    train(module, worker, getattr(torch, dtype), part)
    own, mean, sent = result(worker, module)
    copies = [tensor.tolist() for tensor in module.state_dict().values() if not isinstance(tensor, DTensor)]
    same = len(set(replicas.inside.all_gather(repr(copies).encode()))) == 1
    reference = net(getattr(torch, dtype))
    unsharded = fast.Worker(reference, topology, comm=replicas.across, **options)
    train(reference, unsharded, getattr(torch, dtype))
    other, other_mean, sent_whole = result(unsharded, reference)
    found = repr((difference(own, other), difference(mean, other_mean), same, sent, sent_whole / shards)).encode()
    errors, errors_of_mean, sames, *bytes_sent = zip(*[eval(one) for one in fast.world().all_gather(found)])
    worker.close()
    unsharded.close()
    if fast.rank() == 0:
        print(f"{case}: {max(errors):.1e} from unsharded, mean {max(errors_of_mean):.1e}, copies {'equal' if all(sames) else 'DIFFER'}, "
              f"{sum(bytes_sent[0]):.0f} bytes, unsharded {sum(bytes_sent[1]):.0f}", flush=True)
