"""LeNet on Fashion-MNIST in PyTorch.   mpiexec -n 4 python examples/python/train_torch.py [EPOCHS] [SAMPLES]"""
import gzip, sys
import numpy as np, torch
import fast_decentralized as fast

def images(part, count=None):
    def read(kind, header):
        with gzip.open(f"/usr/share/datasets/fashion-mnist/{part}-{kind}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)
    x = torch.tensor(read("images-idx3", 16).reshape(-1, 1, 28, 28)[:count] / np.float32(255) - np.float32(0.3))
    return x, torch.tensor(read("labels-idx1", 8)[:count].astype(np.int64))

epochs, samples = [int(n) for n in (sys.argv[1:] + ["2", "60000"][len(sys.argv) - 1:])]
torch.set_num_threads(1)
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(6, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
    torch.nn.Linear(400, 120), torch.nn.ReLU(), torch.nn.Linear(120, 84), torch.nn.ReLU(), torch.nn.Linear(84, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)

worker = fast.Worker(net, topology="torus2d")                                  # line 1
x, y = (part[worker.rank::worker.size] for part in images("train", samples))   # this worker's
for epoch in range(epochs):
    for batch in torch.randperm(len(x) // 32 * 32).split(32):
        with worker.round():                                                   # line 2
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x[batch]), y[batch])
            loss.backward()
            optimizer.step()

worker.await_finish()
net.load_state_dict(worker.mean_model())
if worker.rank == 0:
    x, y = images("t10k")
    with torch.no_grad():
        print(f"{worker.size} workers: the mean model tells {100 * (net(x).argmax(1) == y).float().mean():.1f} % right")
