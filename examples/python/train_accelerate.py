"""A convnet on scikit-learn's digits with Accelerate.   mpiexec -n 4 python examples/python/train_accelerate.py [EPOCHS]"""
import sys

import torch
from accelerate.utils import set_seed
from fast_decentralized.accelerate import FastAccelerator
from sklearn.datasets import load_digits

torch.set_num_threads(1)
set_seed(0)
digits = load_digits()
x = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
train, test = torch.utils.data.random_split(torch.utils.data.TensorDataset(x, torch.tensor(digits.target)), [1437, 360])
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Flatten(),
    torch.nn.Linear(512, 10))

loader = torch.utils.data.DataLoader(train, batch_size=16, shuffle=True)
test_loader = torch.utils.data.DataLoader(test, batch_size=60)
optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)

accelerator = FastAccelerator(cpu=True, topology="torus2d")
net, optimizer, loader, test_loader = accelerator.prepare(net, optimizer, loader, test_loader)
for epoch in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
    for images, labels in loader:
        optimizer.zero_grad()
        accelerator.backward(torch.nn.functional.cross_entropy(net(images), labels))
        optimizer.step()  # averages with the neighbors

accelerator.finish()  # net is the mean of all workers now
net.eval()
with torch.no_grad():
    right = [accelerator.gather_for_metrics(net(images).argmax(1) == labels) for images, labels in test_loader]
accelerator.print(f"{accelerator.num_processes} workers: the mean model tells "
                  f"{100 * torch.cat(right).float().mean():.1f} % right")
accelerator.end_training()
