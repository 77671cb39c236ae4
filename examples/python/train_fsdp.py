"""FSDP2 in replicas of two ranks.   fastrun -n 4 python examples/python/train_fsdp.py [EPOCHS] [SAMPLES] [FOLDER]

Each rank holds half of a model, and averages it with the same half of the neighbor replicas. Fashion-MNIST.
"""
import gzip
import sys

import numpy as np
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard

import fast_decentralized as fast

epochs, samples = [int(n) for n in (sys.argv[1:3] + ["3", "60000"][len(sys.argv[1:3]):])]
torch.set_num_threads(1)


def images(part, count=None):
    def read(kind, header):
        with gzip.open(f"/usr/share/datasets/fashion-mnist/{part}-{kind}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)
    x = torch.tensor(read("images-idx3", 16).reshape(-1, 784)[:count] / np.float32(255) - np.float32(0.3))
    return x, torch.tensor(read("labels-idx1", 8)[:count].astype(np.int64))


def block(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, outputs), torch.nn.LayerNorm(outputs), torch.nn.GELU())


replicas = fast.replicas(shards=2)                          # instead of init_process_group()
torch.manual_seed(0)
model = torch.nn.Sequential(block(784, 256), block(256, 256), torch.nn.Linear(256, 10))
for layer in model:
    fully_shard(layer, mesh=replicas.mesh)
fully_shard(model, mesh=replicas.mesh)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)     # after fully_shard()
worker = fast.Worker(model, "ring", replicas=replicas)      # after fully_shard(), too

x, y = (part[fast.rank()::fast.size()] for part in images("train", samples))   # each rank has its own
for epoch in range(epochs):
    for batch in torch.randperm(len(x) // 32 * 32).split(32):
        with worker.round():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()

sent = worker.stats.bytes_sent / max(1, worker.stats.messages_sent)
worker.await_finish()
model.load_state_dict(worker.mean_model())                  # on all ranks: each has its part of the mean
with torch.no_grad():
    x, y = images("t10k")
    right = 100 * (model(x).argmax(1) == y).float().mean()
if replicas.index == 0 and len(sys.argv) > 3:
    dcp.save({"model": model.state_dict()}, checkpoint_id=sys.argv[3])   # whole weights, for any number of ranks
if fast.rank() == 0:
    size = sum(one.numel() * one.element_size() for one in model.parameters())
    print(f"{replicas.count} replicas of {replicas.shards} ranks: a rank sends {sent:.0f} of {size} bytes to a neighbor in a "
          f"round; the mean model tells {right:.1f} % right")
