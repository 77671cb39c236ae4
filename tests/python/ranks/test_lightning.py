"""Run by every rank of mpiexec: the strategy for Lightning against NumPy."""
import pathlib
import warnings

import fast_decentralized as fast
import numpy as np
import oracle
import pytest

lightning = pytest.importorskip("lightning", reason="Lightning is not installed; scripts/python_integrations.sh installs it")
torch = pytest.importorskip("torch")
from fast_decentralized import loops  # noqa: E402
from fast_decentralized.lightning import FastStrategy  # noqa: E402

torch.set_num_threads(1)
warnings.filterwarnings("ignore", module="lightning")


class Line(lightning.LightningModule):
    """Notes what it sees: samples in training, weights in training and in validation."""

    def __init__(self, momentum=0.0):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1, bias=False).double()
        with torch.no_grad():
            self.layer.weight.copy_(torch.full((1, 3), float(fast.rank() + 1)))  # worker 0's are the initial ones
        self.momentum, self.seen, self.weights, self.validated = momentum, [], [], []

    def vector(self):
        return self.layer.weight.detach().numpy().reshape(-1).copy()

    def training_step(self, batch, _):
        x, y = batch
        self.seen.append((x.numpy().copy(), y.numpy().copy()))
        return ((self.layer(x)[:, 0] - y) ** 2).mean()

    def on_train_batch_end(self, *_):
        self.weights.append(self.vector())

    def validation_step(self, batch, _):
        self.validated.append(self.vector())
        self.log("rank", torch.tensor(float(fast.rank())), sync_dist=True)
        self.log("most", torch.tensor(float(fast.rank())), sync_dist=True, reduce_fx="max")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), oracle.RATE, momentum=self.momentum)


@pytest.fixture
def folder(tmp_path):
    """The same for all ranks."""
    return pathlib.Path(oracle.gathered(str(tmp_path))[0])


def loader(count, batch=4, **options):
    x, y = oracle.samples(count)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=batch,
                                       **options)


def trainer_with(strategy, **options):
    options = {"logger": False, "enable_checkpointing": False, "max_epochs": 1, **options}
    return lightning.Trainer(accelerator="cpu", strategy=strategy, enable_progress_bar=False, enable_model_summary=False,
                             **options)


@pytest.mark.parametrize("topology, algorithm, accumulate", [("ring", "awc", 1), ("complete", "atc", 1), ("ring", "awc", 2),
                                                             ("one_peer_exponential", "awc", 3)])
def test_training_is_that_of_the_mixing_matrix(topology, algorithm, accumulate):
    rounds = []
    model = Line()
    trainer = trainer_with(FastStrategy(topology, algorithm=algorithm, deadline=60, on_round=rounds.append),
                           accumulate_grad_batches=accumulate, max_epochs=2)
    trainer.fit(model, loader(fast.size() * 4 * 4, shuffle=True))
    steps = 2 * -(-4 // accumulate)  # of an epoch's four batches, the rest is a step as well
    assert trainer.global_step == len(rounds) == steps
    by_rank = [[step for first in (0, 4) for step in oracle.in_steps(seen[first:first + 4], accumulate)]
               for seen in oracle.gathered(model.seen)]
    if accumulate == 3:  # Lightning divides by 3 also where one batch is left
        by_rank = [[step if len(step) == 3 else [(x / 3 ** 0.5, y / 3 ** 0.5) for x, y in step] for step in steps_of_one]
                   for steps_of_one in by_rank]
    expected = oracle.trajectories(topology, oracle.INITIAL, by_rank, algorithm)
    after_step = [batch for batch in range(8) if (batch % 4 + 1) % accumulate == 0 or batch % 4 == 3]
    found = np.stack(model.weights)[after_step]
    np.testing.assert_allclose(found, expected[:, fast.rank()], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(oracle.same_everywhere(model.vector()), expected[-1].mean(0), rtol=1e-9, atol=1e-12)


def test_each_worker_has_its_own_part_of_the_data():
    model = Line()
    trainer_with(FastStrategy(deadline=60)).fit(model, loader(fast.size() * 8))
    parts = [{tuple(row) for x, _ in seen for row in x} for seen in oracle.gathered(model.seen)]
    assert set().union(*parts) == {tuple(row) for row in oracle.samples(fast.size() * 8)[0]}
    assert [len(part) for part in parts] == [8] * fast.size()


def test_validation_sees_the_mean_and_training_goes_on_with_own_weights():
    model = Line()
    trainer = trainer_with(FastStrategy("ring", deadline=60), val_check_interval=2, num_sanity_val_steps=0)
    trainer.fit(model, loader(fast.size() * 4 * 6), loader(fast.size() * 4))
    all_weights = np.stack(oracle.gathered(np.stack(model.weights)))
    np.testing.assert_allclose(np.stack(model.validated), all_weights.mean(0)[[1, 3, 5]], rtol=1e-12, atol=1e-14)
    by_rank = [oracle.in_steps(seen, 1) for seen in oracle.gathered(model.seen)]
    np.testing.assert_allclose(all_weights.swapaxes(0, 1), oracle.trajectories("ring", oracle.INITIAL, by_rank), rtol=1e-9)
    assert trainer.callback_metrics["rank"] == np.mean(range(fast.size()))
    assert trainer.callback_metrics["most"] == fast.size() - 1


@pytest.mark.parametrize("algorithm", ["diloco", "gradient_tracking", "none"])
def test_validation_and_checkpoints_have_the_mean_whatever_the_rule_publishes(folder, algorithm):
    model = Line()
    saves = Saves(folder / "half.ckpt", 3)
    trainer = trainer_with(FastStrategy("complete", algorithm=algorithm, deadline=60), callbacks=[saves],
                           num_sanity_val_steps=0)
    trainer.fit(model, loader(fast.size() * 4 * 4), loader(fast.size() * 4))
    mean = np.stack(oracle.gathered(np.stack(model.weights))).mean(0)
    np.testing.assert_allclose(model.validated[0], mean[3], rtol=1e-15)
    fast.world().barrier()
    saved = torch.load(saves.file, weights_only=False)["state_dict"]["layer.weight"].numpy()[0]
    np.testing.assert_allclose(saved, mean[2], rtol=1e-15)


def test_the_check_before_training_sees_the_initial_weights_of_worker_0():
    model = Line()
    trainer_with(FastStrategy("ring", deadline=60), limit_train_batches=0, limit_val_batches=1).fit(
        model, loader(fast.size() * 4), loader(fast.size() * 4))
    assert [list(weights) for weights in model.validated] == [list(oracle.INITIAL)] * len(model.validated) != []


class Saves(lightning.Callback):
    def __init__(self, file, at):
        self.file, self.at, self.own = file, at, None

    def on_train_batch_end(self, trainer, module, *_):
        if trainer.global_step == self.at:
            trainer.save_checkpoint(self.file)
            self.own = module.vector()


def test_a_checkpoint_is_the_mean_and_one_worker_writes_it(folder):
    written = []

    class Counts(lightning.pytorch.plugins.TorchCheckpointIO):
        def save_checkpoint(self, checkpoint, path, storage_options=None):
            written.append(path)
            super().save_checkpoint(checkpoint, path, storage_options)

    model, saves = Line(), Saves(folder / "half.ckpt", 3)
    trainer_with(FastStrategy("ring", deadline=60, checkpoint_io=Counts()), callbacks=[saves]).fit(
        model, loader(fast.size() * 4 * 5))
    assert [len(each) for each in oracle.gathered(written)] == [1] + [0] * (fast.size() - 1)
    saved = torch.load(saves.file, weights_only=False)
    own = np.stack(oracle.gathered(saves.own))
    np.testing.assert_array_equal(saves.own, model.weights[2])  # the worker has its own weights again
    np.testing.assert_allclose(saved["state_dict"]["layer.weight"].numpy()[0], own.mean(0), rtol=1e-12, atol=1e-14)

    resumed = Line()
    trainer_with(FastStrategy("ring", deadline=60)).fit(resumed, loader(fast.size() * 4 * 5), ckpt_path=saves.file)
    assert len(resumed.weights) == 2  # of the five batches
    move = np.stack([-oracle.RATE * oracle.gradient(own.mean(0), x, y) for x, y in oracle.gathered(resumed.seen[0])])
    np.testing.assert_allclose(np.stack(oracle.gathered(resumed.weights[0])), own.mean(0) + move, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["awc", "gradient_tracking"])
def test_workers_that_save_their_own_go_on_bit_for_bit(folder, algorithm):
    class SavesAtTheEnd(lightning.Callback):
        def on_train_epoch_end(self, trainer, module):
            trainer.save_checkpoint(folder / f"epoch-{trainer.current_epoch}.ckpt")

    def fit(callbacks=(), path=None):
        model, strategy = Line(momentum=0.9), FastStrategy("ring", deadline=60, save_workers=True, algorithm=algorithm)
        trainer = trainer_with(strategy, max_epochs=3, callbacks=list(callbacks))
        trainer.fit(model, loader(fast.size() * 4 * 3, shuffle=True), ckpt_path=path)
        return model

    model = fit([SavesAtTheEnd()])
    fast.world().barrier()
    resumed = fit(path=folder / "epoch-0.ckpt")
    np.testing.assert_array_equal(np.stack(resumed.weights), np.stack(model.weights)[3:])
    assert len(list(folder.glob("epoch-0.ckpt.worker-*"))) == fast.size()


def fit_three_epochs(folder, name, **options):
    model, last = Line(momentum=0.9), lightning.pytorch.callbacks.ModelCheckpoint(folder / name, save_last="link")
    trainer = trainer_with(FastStrategy("ring", deadline=60, save_workers=True), max_epochs=options.pop("epochs", 3),
                           callbacks=[last], enable_checkpointing=True)
    trainer.fit(model, loader(fast.size() * 4 * 3), **options)
    fast.world().barrier()
    return model


def test_a_link_to_a_checkpoint_leads_to_the_files_of_the_workers(folder):
    model = fit_three_epochs(folder, "whole")
    fit_three_epochs(folder, "half", epochs=1)
    assert (folder / "half/last.ckpt").is_symlink()
    resumed = fit_three_epochs(folder, "rest", ckpt_path=folder / "half/last.ckpt")
    np.testing.assert_array_equal(np.stack(resumed.weights), np.stack(model.weights)[3:])


def test_a_run_whose_workers_have_no_files_says_so(folder, recwarn):
    fit_three_epochs(folder, "half", epochs=1)
    for file in (folder / "half").glob(f"*.worker-{fast.rank()}"):
        file.unlink()
    fast.world().barrier()
    fit_three_epochs(folder, "rest", ckpt_path=folder / "half/last.ckpt")
    told = [str(warning.message) for warning in recwarn if "has no file of its own" in str(warning.message)]
    assert len(told) == (fast.rank() == 0) and all("all workers begin with the mean" in text for text in told)


def test_best_checkpoints_are_agreed_on_and_superfluous_files_removed(folder):
    model = Line()
    keep = lightning.pytorch.callbacks.ModelCheckpoint(folder / "best", monitor="rank", save_top_k=1, every_n_epochs=1)
    trainer = trainer_with(FastStrategy("ring", deadline=60, save_workers=True), callbacks=[keep], enable_checkpointing=True,
                           max_epochs=3, num_sanity_val_steps=0)
    trainer.fit(model, loader(fast.size() * 8), loader(fast.size() * 4))
    fast.world().barrier()
    assert len(list((folder / "best").glob("*.ckpt"))) == 1
    assert len(list((folder / "best").glob("*.worker-*"))) == fast.size()


def test_buffers_of_batch_norm_are_averaged():
    class Normed(Line):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(3).double()

        def training_step(self, batch, index):
            x, y = batch
            self.seen.append((x.numpy().copy(), y.numpy().copy()))
            return ((self.layer(self.norm(x))[:, 0] - y) ** 2).mean()

    model = Normed()
    trainer_with(FastStrategy("complete", algorithm="atc", deadline=60)).fit(model, loader(fast.size() * 4 * 3))
    mean = np.zeros(3)
    for t in range(3):  # complete averaging after each step
        mean = np.mean([0.9 * mean + 0.1 * seen[t][0].mean(0) for seen in oracle.gathered(model.seen)], axis=0)
    np.testing.assert_allclose(oracle.same_everywhere(model.norm.running_mean.numpy()), mean, rtol=1e-9)
    assert model.norm.num_batches_tracked == 3


class Single(Line):
    """With numbers of 32 bits."""

    def __init__(self):
        super().__init__()
        self.float()

    def training_step(self, batch, _):
        x, y = (part.to(self.layer.weight.dtype) for part in batch)
        return ((self.layer(x)[:, 0] - y) ** 2).mean()

    def on_train_batch_end(self, *_):
        self.weights.append(self.layer.weight.detach().float().numpy().copy())


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_lower_precision_and_clipping(precision):
    model = Single()
    trainer = trainer_with(FastStrategy("ring", deadline=60), precision=precision, gradient_clip_val=0.1, max_epochs=3)
    trainer.fit(model, loader(fast.size() * 16))
    assert trainer.global_step == 12
    assert model.layer.weight.dtype == (torch.bfloat16 if precision == "bf16-true" else torch.float32)
    longest = max(np.linalg.norm(after - before) for before, after in zip(model.weights, model.weights[1:]))
    others = oracle.gathered(np.stack(model.weights))
    apart = max(np.abs(one - other).max() for one in others for other in others)
    assert longest <= 0.1 * oracle.RATE + apart + 0.01  # a clipped step, and the way to the neighbors
    weights = oracle.same_everywhere(model.layer.weight.detach().float().numpy())
    assert np.isfinite(weights).all() and (weights != 0).any()


def test_metrics_of_torchmetrics_are_of_all_workers():
    import torchmetrics

    class Counts(Line):
        def __init__(self):
            super().__init__()
            self.total = torchmetrics.SumMetric()

        def validation_step(self, batch, _):
            self.total.update(float(len(batch[0])))

        def on_validation_epoch_end(self):
            self.log("total", self.total)

    trainer = trainer_with(FastStrategy(deadline=60), num_sanity_val_steps=0)
    trainer.fit(Counts(), loader(fast.size() * 4), loader(fast.size() * 12))
    assert trainer.callback_metrics["total"] == fast.size() * 12
    assert trainer.validate(Counts(), loader(fast.size() * 6), verbose=False)[0]["total"] == fast.size() * 6


def test_manual_optimization_makes_a_round_in_each_step():
    class Manual(Line):
        automatic_optimization = False

        def training_step(self, batch, index):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(super().training_step(batch, index))
            optimizer.step()

    model = Manual()
    trainer_with(FastStrategy("ring", deadline=60)).fit(model, loader(fast.size() * 4 * 3))
    by_rank = [oracle.in_steps(seen, 1) for seen in oracle.gathered(model.seen)]
    expected = oracle.trajectories("ring", oracle.INITIAL, by_rank)
    np.testing.assert_allclose(np.stack(model.weights), expected[:, fast.rank()], rtol=1e-9, atol=1e-12)


def test_files_of_loggers_are_written_once(folder):
    logger = lightning.pytorch.loggers.CSVLogger(folder, name="run")
    trainer = trainer_with(FastStrategy(deadline=60), logger=logger, num_sanity_val_steps=0)
    trainer.fit(Line(), loader(fast.size() * 4), loader(fast.size() * 4))
    fast.world().barrier()
    assert [file.name for file in (folder / "run").iterdir()] == ["version_0"]


@pytest.mark.parametrize("staleness", [0, "inf"])
def test_workers_with_other_numbers_of_batches(staleness):
    """Are refused, unless nobody waits for them."""
    model, data = Line(), loader(4 * (1 + fast.rank()))
    trainer = trainer_with(FastStrategy("complete", deadline=60, staleness=staleness), use_distributed_sampler=False)
    if staleness == 0 and fast.size() > 1:
        with pytest.raises(fast.MismatchError, match="worker 0 has 1 batches an epoch, worker 1 has 2"):
            trainer.fit(model, data)
        return
    trainer.fit(model, data)
    assert trainer.global_step == 1 + fast.rank()
    oracle.same_everywhere(model.vector())


@pytest.mark.parametrize("options, what", [
    ({"val_check_interval": 1}, "a validation within epochs"), ({"max_steps": 9, "max_epochs": -1}, "the end of max_steps"),
    ({"max_time": "00:01:00:00"}, "the end of max_time"), ({"every_n_train_steps": 2}, "a checkpoint within epochs")])
def test_workers_that_would_meet_after_other_numbers_of_steps_are_refused(folder, options, what):
    """Nobody waits in rounds, but all meet within epochs."""
    options = dict(options)
    if "every_n_train_steps" in options:
        options = {"callbacks": [lightning.pytorch.callbacks.ModelCheckpoint(folder, **options)], "enable_checkpointing": True}
    trainer = trainer_with(FastStrategy("complete", deadline=60, staleness="inf"), use_distributed_sampler=False,
                           num_sanity_val_steps=0, **options)
    data = loader(4 * (2 + fast.rank())), loader(4)
    if fast.size() == 1:
        return
    with pytest.raises(fast.MismatchError, match=f"worker 0 has 2 batches an epoch, worker 1 has 3 .* come to {what}"):
        trainer.fit(Line(), *data)


def test_workers_that_are_elsewhere_hear_where_the_others_are():
    if fast.size() == 1:
        return
    from fast_decentralized import loops
    with pytest.raises(fast.MismatchError, match='worker 0 is at "barrier here", worker 1 is at "broadcast"'):
        loops.broadcast(1) if fast.rank() == 1 else loops.meet("barrier here")
    assert loops.gather(fast.rank()) == list(range(fast.size()))


def test_training_after_a_search_for_the_learning_rate_is_that_of_the_mixing_matrix(monkeypatch):
    """The search ends training once, and puts the initial weights back."""
    model = Line()
    model.lr = oracle.RATE
    finder = lightning.pytorch.callbacks.LearningRateFinder(num_training_steps=8, min_lr=1e-3)
    trainer = trainer_with(FastStrategy("ring", deadline=60), callbacks=[finder])
    trainer.fit(model, loader(fast.size() * 4 * 4))
    assert trainer.global_step == 4
    monkeypatch.setattr(oracle, "RATE", trainer.optimizers[0].param_groups[0]["lr"])
    by_rank = [oracle.in_steps(seen[-4:], 1) for seen in oracle.gathered(model.seen)]
    expected = oracle.trajectories("ring", oracle.INITIAL, by_rank)
    np.testing.assert_allclose(np.stack(model.weights[-4:]), expected[:, fast.rank()], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(oracle.same_everywhere(model.vector()), expected[-1].mean(0), rtol=1e-9, atol=1e-12)


def test_a_process_is_one_worker():
    trainer = trainer_with(FastStrategy(deadline=60), devices=2)
    with pytest.raises(fast.ArgumentError, match="a process is one worker on one CPU or GPU, so use "):
        trainer.fit(Line(), loader(fast.size() * 4))


def test_the_name_is_known_to_the_trainer():
    trainer = trainer_with("fast")
    trainer.fit(Line(), loader(fast.size() * 4))
    assert trainer.world_size == fast.size() and trainer.global_rank == fast.rank()


class Uneven(torch.utils.data.IterableDataset):
    """As many batches as the worker's rank says, which nobody knows before."""

    def __iter__(self):
        return iter([torch.ones(3)] * (3 + 4 * fast.rank()))


class Plain(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, batch, index):
        return self.layer(batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def test_workers_with_other_numbers_of_batches_meet_at_the_checkpoint_of_each_epoch(tmp_path):
    module = Plain()
    trainer = lightning.Trainer(accelerator="cpu", strategy=FastStrategy("ring", deadline=60, timeout_s=60), max_epochs=3,
                                enable_progress_bar=False, logger=False, default_root_dir=tmp_path,
                                callbacks=[lightning.pytorch.callbacks.ModelCheckpoint(tmp_path, every_n_epochs=1)])
    trainer.fit(module, torch.utils.data.DataLoader(Uneven(), batch_size=1))
    assert trainer.global_step == 3 * (3 + 4 * fast.rank())
    assert len(set(loops.gather(str(module.layer.weight.tolist())))) == 1


class Thawed(Line):
    """Its base begins to train with the second epoch."""

    def __init__(self):
        super().__init__()
        self.base = torch.nn.Parameter(torch.full((3,), fast.rank() + 2.0).double(), requires_grad=False)
        self.bases = []

    def training_step(self, batch, index):
        self.bases.append(self.base.detach().clone())
        x, y = batch
        return super().training_step((x, y), index) + (self.base - fast.rank()).pow(2).sum()

    def on_train_epoch_start(self):
        if self.current_epoch == 1:
            self.base.requires_grad_(True)
            self.trainer.strategy.worker.rebind()


def test_layers_are_worker_0s_until_they_train_and_in_each_checkpoint(folder):
    model = Thawed()
    trainer = trainer_with(FastStrategy("complete", algorithm="atc", deadline=60), max_epochs=2)
    trainer.fit(model, loader(fast.size() * 4 * 3))
    trainer.save_checkpoint(folder / "end.ckpt")
    assert [one.tolist() for one in model.bases[:4]] == [[2.0] * 3] * 4
    expected = 2.0
    for _ in range(3):
        expected -= oracle.RATE * 2 * (expected - (fast.size() - 1) / 2)
    np.testing.assert_allclose(oracle.same_everywhere(model.base.detach().numpy()), [expected] * 3, rtol=1e-9)
    fast.world().barrier()
    saved = torch.load(folder / "end.ckpt", weights_only=False)["state_dict"]
    np.testing.assert_array_equal(saved["base"].numpy(), model.base.detach().numpy())


def test_a_module_of_which_nothing_trains_is_validated_with_worker_0s_weights():
    model = Line()
    model.requires_grad_(False)
    trainer_with(FastStrategy("ring", deadline=60)).validate(model, loader(fast.size() * 4), verbose=False)
    assert [list(weights) for weights in model.validated] == [list(oracle.INITIAL)] * len(model.validated) != []
