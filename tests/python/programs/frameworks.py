"""A run of a framework in which rank 1 fails.   mpiexec -n 3 python3 frameworks.py lightning|accelerate|trainer WHERE

WHERE is "step" or "between" two of them. For Accelerate also "gathers": in a step after which the others gather by
torch.distributed; "finally" and "swallowed": in a step, and the program ends its worker then.
"""
import sys
import tempfile

import fast_decentralized as fast

framework, where = sys.argv[1:]
culprit = fast.rank() == 1


def fail(place):
    if culprit and where == place:
        raise ValueError("no more batches")


def lightning():
    import lightning
    import torch
    from fast_decentralized.lightning import FastStrategy

    class Line(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def training_step(self, batch, index):
            if index == 5:
                fail("step")
            return self.layer(batch[0]).mean()

        def on_train_batch_end(self, *_):
            if self.global_step == 6:
                fail("between")

        def validation_step(self, batch, _):
            fail("validation")

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(300, 3)))
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu", strategy=FastStrategy("ring", deadline=100), max_epochs=1000, enable_progress_bar=False,
            logger=False, default_root_dir=folder, num_sanity_val_steps=0, val_check_interval=20,
            callbacks=[lightning.pytorch.callbacks.ModelCheckpoint(folder, save_on_exception=True)])
        trainer.fit(Line(), data, data)


def accelerate():
    import torch
    from fast_decentralized.accelerate import FastAccelerator

    accelerator = FastAccelerator(cpu=where != "processes", topology="ring", worker_options={"deadline": 100})
    layer = torch.nn.Linear(3, 1)
    layer, optimizer = accelerator.prepare(layer, torch.optim.SGD(layer.parameters(), 0.1))
    try:
        for step in range(10**9):
            loss = layer(torch.ones(1, 3)).mean()
            accelerator.backward(loss)
            if step == 5:
                fail("step")
                fail("gathers")
                fail("finally")
                fail("swallowed")
            optimizer.step()
            if where == "gathers":
                accelerator.gather(loss.detach())
            if step == 5:
                fail("between")
    except ValueError:
        if where != "swallowed":
            raise
        accelerator.end_training()
    finally:
        if where == "finally":
            accelerator.end_training()


def trainer():
    import torch
    from fast_decentralized.transformers import FastCallback
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Line(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.steps = torch.nn.Linear(3, 1), 0

        def forward(self, x):
            self.steps += 1
            if self.steps == 6:
                fail("step")
            return {"loss": self.layer(x).mean()}

    class Ends(TrainerCallback):
        def on_step_end(self, args, state, control, **others):
            if state.global_step == 6:
                fail("between")

    with tempfile.TemporaryDirectory() as folder:
        one = Trainer(Line(), TrainingArguments(folder, use_cpu=where != "processes", report_to="none", disable_tqdm=True,
                                                save_strategy="no", num_train_epochs=10**6),
                      train_dataset=[{"x": torch.ones(3)}] * 1000)
        one.add_callback(FastCallback(one, "ring", deadline=100))
        one.add_callback(Ends())
        one.train()


{"lightning": lightning, "accelerate": accelerate, "trainer": trainer}[framework]()
print("ended")
