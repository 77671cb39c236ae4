"""Replicas of several ranks beside workers that have the whole model.

    fastrun -n 4 python3 sharded.py [mesh]SHARDS CASE...    mesh: all ranks are in one mesh
    CASE: KIND[+lora][+micro][+still],DTYPE,ALGORITHM[,OPTION=VALUE]...    KIND: fsdp, tp, ddp or fsdp_tp
    lora: adapters alone train    micro: gradients of two micro-batches are added    still: replicas begin apart, and make no step
"""
import contextlib
import os
import pickle
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
ROUNDS, STILL_ROUNDS, BATCH, RATE = 7, 40, 12, 0.05


class Net(torch.nn.Module):
    """The bias of one element has an empty shard on most ranks."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 12), torch.nn.Linear(12, 6)
        self.norm, self.last = torch.nn.LayerNorm(6), torch.nn.Linear(6, 1)

    def forward(self, x):
        return self.last(self.norm(self.hidden(x)))

    def hidden(self, x):
        return self.second(torch.tanh(self.first(x)))


class Adapted(Net):
    """The adapter is beside two layers, and trains alone."""

    def __init__(self):
        super().__init__()
        self.requires_grad_(False)
        self.down, self.up = torch.nn.Linear(6, 2, bias=False), torch.nn.Linear(2, 6, bias=False)

    def hidden(self, x):
        return super().hidden(x) + self.up(self.down(x))


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


def net(dtype, how):
    torch.manual_seed(1 + (replicas.index if "still" in how else 0))
    return (Adapted if "lora" in how else Net)().to(dtype)


def not_yet(module):
    """Gradients are added on each rank, and not among the ranks."""
    if hasattr(module, "no_sync"):
        return module.no_sync()
    if hasattr(module, "set_requires_gradient_sync"):
        module.set_requires_gradient_sync(False)
    return contextlib.nullcontext()


def backward(module, x, y, how):
    halves = 2 if "micro" in how else 1
    total = 0.0
    for last, (a, b) in enumerate(zip(x.chunk(halves), y.chunk(halves)), 1 - halves):
        with not_yet(module) if last < 0 else contextlib.nullcontext():
            if last == 0 and hasattr(module, "set_requires_gradient_sync"):
                module.set_requires_gradient_sync(True)
            loss = torch.nn.functional.mse_loss(module(a), b) / halves
            loss.backward()
        total += float(loss)
    return total


def train(module, worker, dtype, how, part=slice(None)):
    optimizer = torch.optim.SGD([one for one in module.parameters() if one.requires_grad], RATE, momentum=0.9)
    for round in range(STILL_ROUNDS if "still" in how else ROUNDS):
        if "still" in how:
            with worker.round(RATE):
                pass
            continue
        torch.manual_seed(1000 * replicas.index + round)
        x = torch.randn(BATCH, 6, dtype=dtype)
        y = torch.sin(x.sum(1, keepdim=True)) + replicas.index
        with worker.round(RATE) as this:
            optimizer.zero_grad()
            this.loss = backward(module, x[part], y[part], how)
            optimizer.step()


def weights(state):
    return {name.removeprefix("module."): (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).clone()
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
def apart(start, end, mean):
    """How far the replicas are apart at first and in the end, their mean has moved, the mean model is from their mean, and a
    weight is outside of those that the replicas had at first."""
    starts, ends = zip(*[pickle.loads(one) for one in replicas.across.all_gather(pickle.dumps((start, end)))])
    found = [0.0] * 5
    for name in start:
        first, last = (torch.stack([one[name].double() for one in several]) for several in (starts, ends))
        one = [(first - first.mean(0)).abs().max(), (last - last.mean(0)).abs().max(), (last.mean(0) - first.mean(0)).abs().max(),
               (mean[name].double() - last.mean(0)).abs().max(), torch.maximum(last - first.amax(0), first.amin(0) - last).max()]
        found = [max(float(a), b) for a, b in zip(one, found)]
    return found


for case in sys.argv[2:]:
    replicas = replicas_of_ranks()
    kind, dtype, algorithm, *given = case.split(",")
    kind, *how = kind.split("+")
    options = {"algorithm": algorithm, "deadline": 60, **dict(one.split("=", 1) for one in given)}
    options |= {"initial": "as_is"} if "still" in how else {}
    topology = options.pop("topology", "ring")
    rule = {name.removeprefix("rule."): options.pop(name) for name in [*options] if name.startswith("rule.")}
    options |= {"algorithm_option": rule} if rule else {}
    dtype = getattr(torch, dtype)
    module, part, given = cut(net(dtype, how), kind)
    start = weights(module.state_dict())
    worker = fast.Worker(module, topology, replicas=given, **options)
    assert (worker.rank, worker.size) == (replicas.index, replicas.count)
    train(module, worker, dtype, how, part)
    own, mean, sent = result(worker, module)
    assert "lora" not in how or all(torch.equal(start[name], own[name]) for name in start if "up" not in name and "down" not in name)
    copies = [tensor.tolist() for tensor in module.state_dict().values() if not isinstance(tensor, DTensor)]
    same = len(set(replicas.inside.all_gather(repr(copies).encode()))) == 1
    reference = net(dtype, how)
    unsharded = fast.Worker(reference, topology, comm=replicas.across, **options)
    train(reference, unsharded, dtype, how)
    other, other_mean, sent_whole = result(unsharded, reference)
    found = repr((difference(own, other), difference(mean, other_mean), same, sent, sent_whole / shards, *apart(start, own, mean))).encode()
    errors, errors_of_mean, sames, *rest = zip(*[eval(one) for one in fast.world().all_gather(found)])
    first, last, moved, off, outside = (max(one) for one in rest[2:])
    worker.close()
    unsharded.close()
    if fast.rank() == 0:
        print(f"{case}: {max(errors):.1e} from unsharded, mean {max(errors_of_mean):.1e}, copies {'equal' if all(sames) else 'DIFFER'}, "
              f"{sum(rest[0]):.0f} bytes, unsharded {sum(rest[1]):.0f}, apart {first:.1e} to {last:.1e}, moved {moved:.1e}, "
              f"off {off:.1e}, outside {outside:.1e}", flush=True)
