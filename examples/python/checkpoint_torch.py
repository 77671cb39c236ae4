"""Saves after each epoch, and resumes.   mpiexec -n 4 python examples/python/checkpoint_torch.py FOLDER [EPOCHS]"""
import os, pathlib, sys
import fast_decentralized as fast
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

folder, epochs = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
folder.mkdir(parents=True, exist_ok=True)
torch.set_num_threads(1)
torch.manual_seed(1)
label = torch.randint(3, (3000,))  # of three clouds of points
data = TensorDataset(torch.randn(3000, 4) + 2 * torch.eye(3, 4)[label], label)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


def file_of(epoch, rank):
    return folder / f"epoch-{epoch}-worker-{rank}.pt"


def save(epoch):
    file, temporary = file_of(epoch, fast.rank()), folder / f"temporary-{fast.rank()}"
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(),
                "worker": worker.state_dict()}, temporary)
    os.replace(temporary, file)  # a kill leaves no half of a file


# The newest epoch of which the files of all workers are there; 0: none.
done = max((epoch for epoch in range(1, epochs + 1)
            if all(file_of(epoch, rank).exists() for rank in range(fast.size()))), default=0)
if done:
    saved = torch.load(file_of(done, fast.rank()))
    net.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
worker = fast.Worker(net, "ring", initial="as_is" if done else "broadcast")
if done:
    worker.load_state_dict(saved["worker"])

sampler = DistributedSampler(data, num_replicas=fast.size(), rank=fast.rank())
for epoch in range(done, epochs):
    sampler.set_epoch(epoch)  # other batches in each epoch, the same after a resume
    for batch, target in DataLoader(data, batch_size=10, sampler=sampler):
        with worker.round() as r:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(batch), target)
            loss.backward()
            optimizer.step()
            r.loss = loss.item()
    save(epoch + 1)

worker.await_finish()
if fast.rank() == 0:
    torch.save(worker.mean_model(), folder / "mean-model.pt")
    total = sum(float(tensor.double().sum()) for tensor in worker.mean_model().values())
    print(f"epochs {done} to {epochs}; the weights add up to {total:.9f}")
