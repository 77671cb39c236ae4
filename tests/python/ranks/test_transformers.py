"""Run by every rank of mpiexec: the callback for the Trainer of Transformers against NumPy."""
import pathlib

import fast_decentralized as fast
import numpy as np
import oracle
import pytest

pytest.importorskip("transformers", reason="Transformers is not installed; scripts/python_integrations.sh installs it")
torch = pytest.importorskip("torch")
from fast_decentralized.transformers import FastCallback  # noqa: E402
from transformers import Trainer, TrainerCallback, TrainingArguments  # noqa: E402

torch.set_num_threads(1)


class Line(torch.nn.Module):
    """Notes what it sees: samples in training, weights in evaluations."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1, bias=False).double()
        with torch.no_grad():
            self.layer.weight.copy_(torch.full((1, 3), float(fast.rank() + 1)))  # worker 0's are the initial ones
        self.seen, self.evaluated = [], []

    def vector(self):
        return self.layer.weight.detach().numpy().reshape(-1).copy()

    def forward(self, x, labels):
        if self.training:
            self.seen.append((x.numpy().copy(), labels.numpy().copy()))
        else:
            self.evaluated.append(self.vector())
        found = self.layer(x)[:, 0]
        return {"loss": ((found - labels) ** 2).mean(), "logits": found}


class Notes(TrainerCallback):
    """The weights at the beginning of each step, and the one after the last."""

    def __init__(self):
        self.weights = []

    def on_step_begin(self, args, state, control, model=None, **others):
        self.weights.append(model.vector())


@pytest.fixture
def folder(tmp_path):
    """The same for all ranks."""
    return pathlib.Path(oracle.gathered(str(tmp_path))[0])


def data(count):
    x, y = oracle.samples(count)
    return [{"x": torch.tensor(row), "labels": float(value)} for row, value in zip(x, y)]


def collated(rows):
    return {"x": torch.stack([row["x"] for row in rows]), "labels": torch.tensor([row["labels"] for row in rows]).double()}


def trainer_of(model, folder, topology="ring", batches=6, callbacks=(), worker_options=(), **arguments):
    arguments = {"num_train_epochs": 1, "save_strategy": "no", "learning_rate": oracle.RATE, "lr_scheduler_type": "constant",
                 "max_grad_norm": 0.0, "optim": "sgd", "per_device_train_batch_size": 4, **arguments}
    trainer = Trainer(model, TrainingArguments(str(folder), use_cpu=True, report_to="none", disable_tqdm=True,
                                               logging_strategy="no", **arguments),
                      train_dataset=data(fast.size() * 4 * batches), eval_dataset=data(fast.size() * 8),
                      data_collator=collated)
    trainer.add_callback(FastCallback(trainer, topology, deadline=60, **dict(worker_options)))
    for callback in callbacks:
        trainer.add_callback(callback)
    return trainer


@pytest.mark.parametrize("topology, algorithm, accumulate", [("ring", "awc", 1), ("complete", "atc", 1), ("ring", "awc", 2)])
def test_training_is_that_of_the_mixing_matrix(folder, topology, algorithm, accumulate):
    model, notes = Line(), Notes()
    trainer = trainer_of(model, folder, topology, callbacks=[notes], worker_options={"algorithm": algorithm},
                         gradient_accumulation_steps=accumulate, num_train_epochs=2)
    trainer.train()
    by_rank = [oracle.in_steps(seen, accumulate) for seen in oracle.gathered(model.seen)]
    assert trainer.state.global_step == len(by_rank[0]) == 12 // accumulate
    expected = oracle.trajectories(topology, oracle.INITIAL, by_rank, algorithm)
    np.testing.assert_allclose(np.stack(notes.weights[1:]), expected[:-1, fast.rank()], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(oracle.same_everywhere(model.vector()), expected[-1].mean(0), rtol=1e-9, atol=1e-12)
    parts = [{tuple(row) for x, _ in seen for row in x} for seen in oracle.gathered(model.seen)]
    assert len(set().union(*parts)) == fast.size() * 24


def test_evaluations_and_checkpoints_are_those_of_the_mean(folder):
    model, notes = Line(), Notes()
    trainer = trainer_of(model, folder, callbacks=[notes], eval_strategy="steps", eval_steps=2, save_strategy="steps",
                         save_steps=3)
    trainer.train()
    own = np.stack(oracle.gathered(np.stack(notes.weights)))  # own[rank][t]: before step t + 1
    expected = oracle.trajectories("ring", oracle.INITIAL, [oracle.in_steps(seen, 1) for seen in oracle.gathered(model.seen)])
    np.testing.assert_allclose(own[:, 1:].swapaxes(0, 1), expected[:-1], rtol=1e-9, atol=1e-12)
    evaluated = [model.evaluated[place] for place in range(0, len(model.evaluated), len(model.evaluated) // 3)]
    np.testing.assert_allclose(np.stack(evaluated), expected[[1, 3, 5]].mean(1), rtol=1e-9, atol=1e-12)
    fast.world().barrier()
    from safetensors.numpy import load_file
    saved = load_file(folder / "checkpoint-3/model.safetensors")
    np.testing.assert_allclose(saved["layer.weight"][0], expected[2].mean(0), rtol=1e-9, atol=1e-12)


def test_a_resumed_run_begins_with_the_mean(folder):
    model = Line()
    trainer_of(model, folder, save_strategy="steps", save_steps=4).train()
    fast.world().barrier()
    resumed, notes = Line(), Notes()
    trainer = trainer_of(resumed, folder, callbacks=[notes], save_strategy="no")
    trainer.train(resume_from_checkpoint=str(folder / "checkpoint-4"))
    assert trainer.state.global_step == 6 and len(notes.weights) == 2
    from safetensors.numpy import load_file
    begun = load_file(folder / "checkpoint-4/model.safetensors")["layer.weight"][0]
    np.testing.assert_array_equal(notes.weights[0], begun)
    move = -oracle.RATE * oracle.gradient(begun, *resumed.seen[0])
    np.testing.assert_allclose(notes.weights[1], begun + move, rtol=1e-9, atol=1e-12)


def test_the_best_model_stays(folder):
    model = Line()
    trainer = trainer_of(model, folder, eval_strategy="steps", eval_steps=2, save_strategy="steps", save_steps=2,
                         load_best_model_at_end=True, metric_for_best_model="loss", learning_rate=2.0)  # it diverges
    trainer.train()
    from safetensors.numpy import load_file
    best = load_file(pathlib.Path(trainer.state.best_model_checkpoint) / "model.safetensors")["layer.weight"][0]
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-2")
    np.testing.assert_array_equal(oracle.same_everywhere(model.vector()), best)


def test_the_best_model_is_trained_where_the_rule_has_published_nothing_yet(folder):
    """The first outer step of diloco comes after more steps than these."""
    model = Line()
    trainer = trainer_of(model, folder, "complete", worker_options={"algorithm": "diloco"}, eval_strategy="steps",
                         eval_steps=3, save_strategy="steps", save_steps=3, load_best_model_at_end=True,
                         metric_for_best_model="loss")
    trainer.train()
    weights = np.tile(oracle.INITIAL, (fast.size(), 1))
    for batch in zip(*oracle.gathered(model.seen)):
        weights -= [oracle.RATE * oracle.gradient(own, x, y) for own, (x, y) in zip(weights, batch)]
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-6")
    np.testing.assert_allclose(oracle.same_everywhere(model.vector()), weights.mean(0), rtol=1e-9, atol=1e-12)


def test_train_can_be_called_again(folder):
    model = Line()
    trainer = trainer_of(model, folder)
    trainer.train()
    first = oracle.same_everywhere(model.vector())
    trainer.train()
    assert (oracle.same_everywhere(model.vector()) != first).any()


def test_bfloat16_and_clipping(folder):
    model = Line()
    trainer = trainer_of(model, folder, bf16=True, max_grad_norm=0.5)
    trainer.train()
    assert np.isfinite(oracle.same_everywhere(model.vector())).all()


def test_what_does_not_train_is_worker_0s_and_in_each_checkpoint(folder):
    model = Line()
    model.base = torch.nn.Parameter(torch.full((3,), fast.rank() + 2.0), requires_grad=False)
    trainer = trainer_of(model, folder, eval_strategy="steps", eval_steps=2, save_strategy="steps", save_steps=2,
                         load_best_model_at_end=True, metric_for_best_model="loss")
    trainer.train()
    from safetensors.numpy import load_file
    best = load_file(pathlib.Path(trainer.state.best_model_checkpoint) / "model.safetensors")
    np.testing.assert_array_equal(oracle.same_everywhere(model.vector()), best["layer.weight"][0])
    assert best["base"].tolist() == model.base.tolist() == [2.0] * 3
