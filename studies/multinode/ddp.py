#!/usr/bin/python3
"""A cell of the study with PyTorch's DistributedDataParallel: the network of the same file, batches of the same size.

  mpiexec -n 2 studies/multinode/ddp.py --data FOLDER --model FILE.toml [--batch-size 8] [--rounds 20] [--step-ms 0] [--device cpu]
                                        --json FILE

FOLDER has the binary files of CIFAR-10. A step takes at least --step-ms: a third of what is missing is slept in the forward
pass, the rest in parts between the layers of the backward pass, so that DDP reduces gradients meanwhile. Ranks come from
mpiexec, srun or torchrun. MASTER_ADDR is the host of rank 0 (127.0.0.1). On the CPU gloo carries the gradients, with
--device cuda NCCL.
"""
import argparse
import json
import os
import pathlib
import time
import tomllib

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29534")

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WARM_UP = 4


def of_launcher(*names, default):
    return int(next((os.environ[name] for name in names if name in os.environ), default))


class Sleep(torch.autograd.Function):
    """The identity, whose backward takes some time."""

    @staticmethod
    def forward(ctx, value, pace):
        ctx.pace = pace
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.pace.each_s)
        return gradient, None


class Pace:
    """What a step sleeps: each_s at each of several places."""

    def __init__(self):
        self.each_s = self.forward_s = 0.0

    def fill(self, missing_s, places):
        self.forward_s, self.each_s = max(0, missing_s) / 3, max(0, missing_s) * 2 / 3 / places


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, value):
        return self.body(value) + self.shortcut(value)


def layers_of(rows, channels, classes):
    """The layers of a model file of fast-train, and the channels after them."""
    made = []
    for row in rows:
        kind = row["type"]
        if kind == "conv2d":
            made.append(nn.Conv2d(channels, row["channels"], row["kernel"], row.get("stride", 1), row.get("padding", 0),
                                  bias=row.get("bias", True)))
            channels = row["channels"]
        elif kind == "residual":
            body, after = layers_of(row["body"], channels, classes)
            shortcut, _ = layers_of(row.get("shortcut", []), channels, classes)
            made.append(Residual(body, shortcut))
            channels = after
        elif kind == "dense":
            made.append(nn.Linear(channels, row.get("units", classes)))
        elif kind == "batch_norm":
            made.append(nn.BatchNorm2d(channels))
        elif kind == "relu":
            made.append(nn.ReLU())
        elif kind == "global_average_pool":
            made.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()))
        else:
            raise SystemExit(f"ddp.py: it has no layer \"{kind}\"; add it to layers_of()")
    return nn.Sequential(*made), channels


class Paced(nn.Module):
    def __init__(self, layers, pace):
        super().__init__()
        self.layers, self.pace = layers, pace
        self.places = sum(isinstance(layer, (Residual, nn.Linear)) for layer in layers)

    def forward(self, value):
        time.sleep(self.pace.forward_s)
        for layer in self.layers:
            value = layer(value)
            if isinstance(layer, (Residual, nn.Linear)):
                value = Sleep.apply(value, self.pace)
        return value


def read(folder):
    rows = np.concatenate([np.fromfile(path, np.uint8).reshape(-1, 3073) for path in sorted(folder.glob("data_batch_*.bin"))])
    return rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0].astype(np.int64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--step-ms", type=float, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=pathlib.Path, required=True)
    options = parser.parse_args()
    rank, workers = of_launcher("PMI_RANK", "RANK", "SLURM_PROCID", default=0), of_launcher("PMI_SIZE", "WORLD_SIZE", "SLURM_NTASKS", default=1)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    device = torch.device(options.device)
    if device.type == "cuda":
        local = of_launcher("MPI_LOCALRANKID", "LOCAL_RANK", "SLURM_LOCALID", default=rank)
        device = torch.device("cuda", local % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=rank, world_size=workers)
    images, labels = read(options.data)
    pace, spent = Pace(), {"input": 0.0}
    layers, _ = layers_of(tomllib.loads(options.model.read_text())["layers"], 3, int(labels.max()) + 1)
    model = Paced(layers, pace).to(device)
    trained = DistributedDataParallel(model, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    draw = np.random.default_rng(rank)

    def step():
        began = time.monotonic()
        mine = draw.integers(len(labels), size=options.batch_size)
        x = (torch.from_numpy(images[mine]).float() / 255 - 0.5).to(device)
        y = torch.from_numpy(labels[mine]).to(device)
        spent["input"] += time.monotonic() - began
        optimizer.zero_grad()
        nn.functional.cross_entropy(trained(x), y).backward()
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    def seconds_of(rounds):
        torch.distributed.barrier()
        spent["input"], began = 0.0, time.monotonic()
        for _ in range(rounds):
            step()
        return (time.monotonic() - began) / rounds

    step()
    with trained.no_sync():  # what an undisturbed step takes without an exchange
        alone_s = min(seconds_of(1) - spent["input"] for _ in range(WARM_UP))
    pace.fill(options.step_ms / 1e3 - alone_s, model.places)
    seconds_of(1)
    round_s = seconds_of(options.rounds)
    own = torch.tensor([1e3 * round_s, 1e3 * max(alone_s, options.step_ms / 1e3), 1e3 * spent["input"] / options.rounds,
                        options.batch_size / round_s], dtype=torch.float64, device=device)
    torch.distributed.all_reduce(own)
    if rank == 0:
        means = (own / workers).tolist()
        row = {"samples_per_second": own[3].item(), "round": means[0], "step": min(means[1], means[0] - means[2]), "rest": means[2]}
        row["wait"] = row["round"] - row["step"] - row["rest"]
        options.json.write_text(json.dumps(row))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
