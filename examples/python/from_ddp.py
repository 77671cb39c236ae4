"""A loop for DistributedDataParallel, moved to FAST.   mpiexec -n 4 python examples/python/from_ddp.py [FILE]"""
import sys

import fast_decentralized as fast
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

file = sys.argv[1] if len(sys.argv) > 1 else "model.pt"
torch.set_num_threads(1)
torch.manual_seed(1)
label = torch.randint(3, (3000,))  # of three clouds of points
data = TensorDataset(torch.randn(3000, 4) + 2 * torch.eye(3, 4)[label], label)


def Net():
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
worker = fast.Worker(net, topology="torus2d")        # all take worker 0's weights
sampler = DistributedSampler(data, num_replicas=fast.size(), rank=fast.rank())
for batch, target in DataLoader(data, batch_size=10, sampler=sampler):
    with worker.round() as r:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(batch), target)
        loss.backward()
        optimizer.step()
        r.loss = loss.item()                         # not finite: all workers end with one error
                                                     # here the neighbors' weights are averaged
worker.await_finish()                                # the only wait for all workers
if fast.rank() == 0:
    torch.save(worker.mean_model(), file)

if fast.rank() == 0:
    net.load_state_dict(torch.load(file))
    x, y = data.tensors
    print(f"{fast.size()} workers: the mean model tells {100 * (net(x).argmax(1) == y).float().mean():.1f} % right")
