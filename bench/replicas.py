#!/usr/bin/env python3
"""The table of docs/how-to/fine-tune.md: two models, whole and in parts, by rule.

    fastrun -n 4 python3 bench/replicas.py [float64]    4 ranks: two replicas of two; "whole" are the same replicas with one rank each

A cell is the loss after the last round, where weights differ from those of whole replicas, else "=", and the MiB that a replica sends
in a round. Memory is that of a rank with awc after a step, above that before the model was made. "Alone" is PyTorch on all four ranks
without a worker. A step is one with awc beside one of DDP alone, both by turns, with 4 samples a rank, each rank a replica if "whole".
"""
import contextlib
import ctypes
import gc
import statistics
import sys
import tempfile
import time
import warnings

import fast_decentralized as fast
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

warnings.simplefilter("ignore")
torch.set_num_threads(1)
libc = ctypes.CDLL("libc.so.6")
ROUNDS, BATCH, WIDTH, RATE, TIMED = 6, 8, 384, 0.02, 15
BOUND = 1e-12 if "float64" in sys.argv else 1e-6
# awc is not first: the first run of a kind also loads parts of PyTorch.
RULES = {"gasloc": {"algorithm_option": {"period": 2}}, "awc": {}, "diloco": {"algorithm_option": {"period": 3}, "topology": "complete"},
         "awc, int8": {"codec": "int8"}}
KINDS = ["whole", "LoRA", "FSDP2", "FSDP2, LoRA", "TP", "DDP", "FSDP2, bf16", "DDP alone", "FSDP2 alone"]


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
    half = slice(shard * BATCH // 2, (shard + 1) * BATCH // 2)
    mesh = all_ranks if "alone" in kind else whole["shard"]
    if "FSDP2" in kind:
        for part in module:
            fully_shard(part, mesh=mesh)
        return fully_shard(module, mesh=mesh), half
    if "DDP" in kind:
        return nn.parallel.DistributedDataParallel(module, process_group=mesh.get_group(), gradient_as_bucket_view=True), half
    if kind == "TP":
        for part in module:
            parallelize_module(part, mesh, PLANS[type(part)])
    return module, slice(None)


def memory():
    """The KiB that this rank has. Of memory that ranks share, each has its share."""
    gc.collect()
    libc.malloc_trim(0)
    return int(next(line for line in open("/proc/self/smaps_rollup") if line.startswith("Pss:")).split()[1])


class Training:
    """``place`` says among whom the worker is. None: there is no worker."""

    def __init__(self, model, kind, rule, place):
        self.module, self.part = made(model, kind)
        self.worker = None if place is None else \
            fast.Worker(self.module, deadline=120, algorithm=rule.split(",")[0], **{"topology": "ring", **RULES[rule], **place})
        self.training = [one for one in self.module.parameters() if one.requires_grad]
        self.optimizer = torch.optim.SGD(self.training, RATE, momentum=0.9)

    def step(self, round, look=lambda: None):
        torch.manual_seed(100 * replica + round)
        x = torch.randn(BATCH, 8, WIDTH, dtype=self.training[0].dtype)[self.part]
        with contextlib.nullcontext() if self.worker is None else self.worker.round(RATE):
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.module(x), torch.sin(3 * x)).backward()
            self.optimizer.step()
            look()


def place_of(kind):
    """A rank that has the whole model is a replica: of the ranks that see the same batches, each is in another group."""
    return None if "alone" in kind else {"comm": across} if kind in ("whole", "LoRA") else {"replicas": whole}


def run(model, kind, rule):
    before = most = memory()
    place = place_of(kind)
    one = Training(model, kind, rule, place)

    def look():
        nonlocal most
        most = max(most, memory())

    for round in range(ROUNDS):
        one.step(round, look)
    worker, end, sent = one.worker, {}, 0.0
    if worker is not None:
        sent = worker.stats.bytes_sent / ROUNDS
        worker.await_finish()
        end = {name.removeprefix("module."): (each.full_tensor() if isinstance(each, DTensor) else each).to(torch.get_default_dtype()).clone()
               for name, each in worker.mean_model().items()}
        worker.close()
    told = [eval(each) for each in fast.world().all_gather(repr((sent, most - before)).encode())]
    return end, sum(each for each, _ in told[:1 if "comm" in (place or {}) else 2]) / 2**20, max(each for _, each in told) / 2**10


def loss_of(model, kind, weights):
    tests = torch.Generator().manual_seed(7)
    x = torch.randn(BATCH, 8, WIDTH, generator=tests)
    torch.manual_seed(1)
    mean = nn.Sequential(*[Adapted(part()) if "LoRA" in kind else part() for part in MODELS[model]])
    mean.load_state_dict(weights)
    with torch.no_grad():
        return float(nn.functional.mse_loss(mean(x), torch.sin(3 * x)))


def step_beside_ddp(model, kind):
    """The ratio of the times that all ranks need for a step."""
    place = {} if kind in ("whole", "LoRA") else place_of(kind)
    both = [Training(model, "DDP alone", "awc", None), Training(model, kind, "awc", place)]
    if kind in ("whole", "LoRA"):
        both[1].part = both[0].part
    times = [[], []]
    for round in range(TIMED):
        for one, took in zip(both, times):
            distributed.barrier()
            began = time.perf_counter()
            one.step(round)
            distributed.barrier()
            took.append(time.perf_counter() - began)
    if both[1].worker is not None:
        both[1].worker.close()
    return statistics.median(times[1][3:]) / statistics.median(times[0][3:])


def give_back(is_measured):
    """Whether memory that is freed goes back at once, and has to be had anew."""
    libc.mallopt(-3, 1 << (16 if is_measured else 25))  # M_MMAP_THRESHOLD
    libc.mallopt(-1, 0 if is_measured else 1 << 30)  # M_TRIM_THRESHOLD


torch.set_default_dtype(torch.float64 if "float64" in sys.argv else torch.float32)
replica, shard = divmod(fast.rank(), 2)
meeting = fast.world().all_gather(tempfile.mkdtemp().encode())[0].decode()
distributed.init_process_group("gloo", store=distributed.FileStore(f"{meeting}/store", 4), rank=fast.rank(), world_size=fast.size())
whole, all_ranks = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replica", "shard")), init_device_mesh("cpu", (4,))
across = fast.world().split(shard)
rows = {}
give_back(True)
for model in MODELS:
    references = {}
    for kind in KINDS:
        cells, of_awc = [], 0.0
        for rule in RULES if "alone" not in kind else ["awc"]:
            end, sent, peak = run(model, kind, rule)
            reference = references.setdefault(("LoRA" in kind, rule), end)
            furthest = max((float((end[name] - reference[name]).abs().max()) for name in end), default=0.0)
            is_equal = end is not reference and furthest <= BOUND
            cells += [f"{'=' if is_equal else f'{loss_of(model, kind, end):.3f}'}; {sent:.2f}"] if end else [""] * len(RULES)
            of_awc = peak if rule == "awc" else of_awc
            if fast.rank() == 0:
                print(f"{model}, {kind}, {rule}: {furthest:.2g} from whole replicas", file=sys.stderr, flush=True)
        rows[model, kind] = f"{of_awc:.0f}", " | ".join(cells)
give_back(False)
for (model, kind), (of_awc, cells) in rows.items():
    ratio = step_beside_ddp(model, kind)
    if fast.rank() == 0:
        print(f"| {model}, {kind} | {of_awc} | {ratio:.2f} | {cells} |", flush=True)
distributed.destroy_process_group()
