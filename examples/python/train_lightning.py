"""A convnet on scikit-learn's digits in Lightning.   mpiexec -n 4 python examples/python/train_lightning.py [EPOCHS]"""
import sys

import lightning, torch
from fast_decentralized.lightning import FastStrategy
from sklearn.datasets import load_digits


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Flatten(),
            torch.nn.Linear(512, 10))

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _):
        right = self.net(batch[0]).argmax(1) == batch[1]
        self.log("accuracy", right.float().mean(), sync_dist=True, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)


torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
train, test = torch.utils.data.random_split(torch.utils.data.TensorDataset(x, torch.tensor(digits.target)), [1437, 360],
                                            torch.Generator().manual_seed(0))
train_loader = torch.utils.data.DataLoader(train, batch_size=16, shuffle=True)
test_loader = torch.utils.data.DataLoader(test, batch_size=60)
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}

trainer = lightning.Trainer(accelerator="cpu", strategy=FastStrategy(topology="torus2d"),
                            max_epochs=int(sys.argv[1]) if len(sys.argv) > 1 else 10, **quiet)
trainer.fit(Digits(), train_loader, test_loader)
if trainer.is_global_zero:
    print(f"{trainer.world_size} workers: the mean model tells {100 * trainer.callback_metrics['accuracy']:.1f} % right")
