#!/usr/bin/env python3
"""The table of docs/how-to/fine-tune.md: two models, whole and in parts, by rule.

    fastrun -n 4 python3 bench/replicas.py      4 ranks: two replicas of two; "whole" are the same replicas with one rank each

A cell is the loss after the last round, where weights differ from those of whole replicas, else "=", and the MiB that a replica sends
in a round. Memory is that of a rank with awc after a step, above that before the model was made.
"""
import ctypes
import gc
import warnings

import fast_decentralized as fast
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

warnings.simplefilter("ignore")
torch.set_num_threads(1)
libc = ctypes.CDLL("libc.so.6")
libc.mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD: what is freed goes back at once
ROUNDS, BATCH, WIDTH, RATE = 6, 8, 384, 0.02
# awc is not first: the first run of a kind also loads parts of PyTorch.
RULES = {"gasloc": {"algorithm_option": {"period": 2}}, "awc": {}, "diloco": {"algorithm_option": {"period": 3}, "topology": "complete"},
         "awc, int8": {"codec": "int8"}}
KINDS = ["whole", "LoRA", "FSDP2", "FSDP2, LoRA", "TP", "DDP", "FSDP2, bf16"]


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 8 * WIDTH), nn.Linear(8 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, 64)).transpose(1, 2) for part in (self.q, self.k, self.v))
        return x + self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Adapted(nn.Module):
    """The inner module rests, and an adapter of rank 8 beside it trains."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner.requires_grad_(False)
        self.a, self.b = nn.Linear(WIDTH, 8, bias=False), nn.Linear(8, WIDTH, bias=False)

    def forward(self, x):
        return self.inner(x) + self.b(self.a(x))


MODELS = {"MLP": [Mlp, Mlp], "transformer": [Attention, Mlp]}
PLANS = {Mlp: {"up": ColwiseParallel(), "down": RowwiseParallel()},
         Attention: {"q": ColwiseParallel(), "k": ColwiseParallel(), "v": ColwiseParallel(), "out": RowwiseParallel()}}


def made(model, kind):
    """The module, and the part of a batch that this rank has."""
    torch.manual_seed(1)
    parts = [part() for part in MODELS[model]]
    module = nn.Sequential(*([Adapted(part) for part in parts] if "LoRA" in kind else parts))
    module = module.bfloat16() if "bf16" in kind else module
    half = slice(replicas.shard * BATCH // 2, (replicas.shard + 1) * BATCH // 2)
    if "FSDP2" in kind:
        for part in module:
            fully_shard(part, mesh=replicas.mesh)
        return fully_shard(module, mesh=replicas.mesh), half
    if kind == "DDP":
        return nn.parallel.DistributedDataParallel(module, process_group=replicas.mesh.get_group(), gradient_as_bucket_view=True), half
    if kind == "TP":
        for part in module:
            parallelize_module(part, replicas.mesh, PLANS[type(part)])
    return module, slice(None)


def memory():
    """The KiB that this rank has. Of memory that ranks share, each has its share."""
    gc.collect()
    libc.malloc_trim(0)
    return int(next(line for line in open("/proc/self/smaps_rollup") if line.startswith("Pss:")).split()[1])


def run(model, kind, rule):
    before = most = memory()
    module, part = made(model, kind)
    is_whole = kind in ("whole", "LoRA")
    place = {"comm": replicas.across} if is_whole else {"replicas": replicas}
    worker = fast.Worker(module, deadline=120, algorithm=rule.split(",")[0], **{"topology": "ring", **RULES[rule], **place})
    training = [one for one in module.parameters() if one.requires_grad]
    optimizer = torch.optim.SGD(training, RATE, momentum=0.9)
    for round in range(ROUNDS):
        torch.manual_seed(100 * replicas.index + round)
        x = torch.randn(BATCH, 8, WIDTH, dtype=training[0].dtype)
        with worker.round(RATE) as this:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(module(x[part]), torch.sin(3 * x[part]))
            loss.backward()
            this.loss = loss
            optimizer.step()
            most = max(most, memory())
    sent, peak = worker.stats.bytes_sent / ROUNDS, most - before
    worker.await_finish()
    end = {name.removeprefix("module."): (one.full_tensor() if isinstance(one, DTensor) else one).float().clone()
           for name, one in worker.mean_model().items()}
    worker.close()
    del module, optimizer, training
    tests = torch.Generator().manual_seed(7)
    x = torch.randn(BATCH, 8, WIDTH, generator=tests)
    torch.manual_seed(1)
    mean = nn.Sequential(*[Adapted(part()) if "LoRA" in kind else part() for part in MODELS[model]])
    mean.load_state_dict(end)
    with torch.no_grad():
        loss = float(nn.functional.mse_loss(mean(x), torch.sin(3 * x)))
    told = [eval(one) for one in fast.world().all_gather(repr((sent, peak)).encode())]
    return end, loss, sum(one for one, _ in told[:1 if is_whole else 2]) / 2**20, max(one for _, one in told) / 2**10


replicas = fast.replicas(shards=2, device="cpu")
for model in MODELS:
    references = {}
    for kind in KINDS:
        cells, of_awc = [], 0.0
        for rule in RULES:
            end, loss, sent, peak = run(model, kind, rule)
            reference = references.setdefault(("LoRA" in kind, rule), end)
            furthest = max(float((end[name] - reference[name]).abs().max()) for name in end)
            is_equal = end is not reference and furthest <= 1e-6
            cells.append(f"{'=' if is_equal else f'{loss:.3f}'}; {sent:.2f}")
            of_awc = peak if rule == "awc" else of_awc
        if fast.rank() == 0:
            print(f"| {model}, {kind} | {of_awc:.0f} | {' | '.join(cells)} |", flush=True)
