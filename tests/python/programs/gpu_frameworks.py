"""Six steps of a line in a framework.   mpiexec -n N python3 gpu_frameworks.py lightning|accelerate|trainer cpu|gpu [SITE URL]

The gradient of worker r is r + 1, at any weights; 10 more at site b, which exchanges with site a after every two steps. Each worker prints where its weights are, and their values in the end.
"""
import os
import sys
import tempfile

import fast_decentralized as fast
import torch

framework, device, *place = sys.argv[1:]
STEPS, RATE = 6, 0.1
GRADIENT = fast.rank() + 1 + (10 if place[:1] == ["b"] else 0)
OPTIONS = {"deadline": 60} | ({"site": fast.Site(*place, every=2, topology="complete", expect=2)} if place else {})
if torch.cuda.device_count() == 1:
    os.environ["LOCAL_RANK"] = "0"  # all workers share the GPU


def line():
    layer = torch.nn.Linear(3, 1, bias=False)
    torch.nn.init.zeros_(layer.weight)
    return layer


def tell(weight, place=None):
    sys.stdout.write(f"{(place or weight.device).type} {sorted(set(weight.flatten().tolist()))}\n")


def lightning():
    import lightning
    from fast_decentralized.lightning import FastStrategy

    class Line(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = line()

        def training_step(self, batch, _):
            self.place = self.layer.weight.device  # after fit() Lightning moves the module to the host
            return GRADIENT * self.layer(batch[0]).mean()

        def validation_step(self, batch, _):
            self.log("rank", torch.tensor(float(fast.rank()), device=self.device), sync_dist=True)
            gathered = self.all_gather(self.layer.weight.detach())
            assert gathered.device == self.layer.weight.device and len(gathered) == fast.size()
            assert (gathered == gathered[0]).all()  # the mean of all workers

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), RATE)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(STEPS * fast.size(), 3)))
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(accelerator=device, devices=1, strategy=FastStrategy("complete", **OPTIONS),
                                    max_epochs=1, enable_progress_bar=False, logger=False, default_root_dir=folder)
        module = Line()
        trainer.fit(module, data, data)
        assert trainer.callback_metrics["rank"].item() == (fast.size() - 1) / 2
        tell(module.layer.weight, module.place)


def accelerate():
    from accelerate import InitProcessGroupKwargs
    from fast_decentralized.accelerate import FastAccelerator

    accelerator = FastAccelerator(cpu=device == "cpu", topology="complete", worker_options=OPTIONS,
                                  kwargs_handlers=[InitProcessGroupKwargs(backend="gloo")] if fast.size() > 1 else None)
    layer = line()
    layer, optimizer = accelerator.prepare(layer, torch.optim.SGD(layer.parameters(), RATE))
    for _ in range(STEPS):
        optimizer.zero_grad()
        accelerator.backward(GRADIENT * layer(torch.ones(1, 3, device=accelerator.device)).mean())
        optimizer.step()
    accelerator.end_training()
    tell(layer.weight)


def trainer():
    from fast_decentralized.transformers import FastCallback
    from transformers import Trainer, TrainingArguments

    class Line(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = line()

        def forward(self, x):
            return {"loss": GRADIENT * self.layer(x).mean()}

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, use_cpu=device == "cpu", ddp_backend="gloo" if fast.size() > 1 else None, report_to="none",
                                      disable_tqdm=True, save_strategy="no", logging_strategy="no", max_steps=STEPS,
                                      learning_rate=RATE, lr_scheduler_type="constant", optim="sgd", max_grad_norm=0)
        one = Trainer(Line(), arguments, train_dataset=[{"x": torch.ones(3)}] * 1000)
        one.add_callback(FastCallback(one, "complete", **OPTIONS))
        one.train()
        tell(one.model.layer.weight)


{"lightning": lightning, "accelerate": accelerate, "trainer": trainer}[framework]()
