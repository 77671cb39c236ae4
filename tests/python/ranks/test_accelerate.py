"""Run by every rank of mpiexec: Accelerate against NumPy."""
import pathlib

import fast_decentralized as fast
import numpy as np
import oracle
import pytest

pytest.importorskip("accelerate", reason="Accelerate is not installed; scripts/python_integrations.sh installs it")
torch = pytest.importorskip("torch")
from fast_decentralized import loops  # noqa: E402
from fast_decentralized.accelerate import FastAccelerator  # noqa: E402

torch.set_num_threads(1)


class Run:
    """A line fitted with Accelerate."""

    def __init__(self, topology="ring", accumulate=1, batches=6, momentum=0.0, **worker_options):
        self.accelerator = FastAccelerator(cpu=True, topology=topology, gradient_accumulation_steps=accumulate,
                                           worker_options={"deadline": 60, **worker_options})
        layer = torch.nn.Linear(3, 1, bias=False).double()
        with torch.no_grad():
            layer.weight.copy_(torch.full((1, 3), float(fast.rank() + 1)))  # worker 0's are the initial ones
        x, y = oracle.samples(fast.size() * 4 * batches)
        data = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
        optimizer = torch.optim.SGD(layer.parameters(), oracle.RATE, momentum=momentum)
        self.layer, self.optimizer, self.loader = self.accelerator.prepare(
            layer, optimizer, torch.utils.data.DataLoader(data, batch_size=4))
        self.seen, self.weights = [], []

    def vector(self):
        return self.layer.weight.detach().numpy().reshape(-1).copy()

    def loss(self, x, y):
        return ((self.layer(x)[:, 0] - y) ** 2).mean()

    def epoch(self):
        for x, y in self.loader:
            self.seen.append((x.numpy().copy(), y.numpy().copy()))
            with self.accelerator.accumulate(self.layer):
                self.accelerator.backward(self.loss(x, y))
                self.optimizer.step()
                self.optimizer.zero_grad()
            self.weights.append(self.vector())
        return self

    def expected(self, accumulate=1, topology="ring", algorithm="awc"):
        by_rank = [oracle.in_steps(seen, accumulate) for seen in oracle.gathered(self.seen)]
        return oracle.trajectories(topology, oracle.INITIAL, by_rank, algorithm)


@pytest.fixture
def folder(tmp_path):
    """The same for all ranks."""
    return pathlib.Path(oracle.gathered(str(tmp_path))[0])


@pytest.mark.parametrize("topology, algorithm, accumulate", [("ring", "awc", 1), ("complete", "atc", 1), ("ring", "awc", 2)])
def test_training_is_that_of_the_mixing_matrix(topology, algorithm, accumulate):
    run = Run(topology, accumulate, algorithm=algorithm).epoch()
    expected = run.expected(accumulate, topology, algorithm)
    found = np.stack(run.weights)[accumulate - 1::accumulate]
    np.testing.assert_allclose(found, expected[:, fast.rank()], rtol=1e-9, atol=1e-12)
    assert run.accelerator.worker.rounds == 6 // accumulate
    parts = [{tuple(row) for x, _ in seen for row in x} for seen in oracle.gathered(run.seen)]
    assert sum(map(len, parts)) == len(set().union(*parts)) == fast.size() * 24  # each has its own part
    run.accelerator.finish()
    np.testing.assert_allclose(oracle.same_everywhere(run.vector()), expected[-1].mean(0), rtol=1e-9, atol=1e-12)
    assert not isinstance(run.layer, torch.nn.parallel.DistributedDataParallel)


def test_a_scheduler_may_be_made_after_prepare():
    """It wraps the optimizer's step()."""
    run = Run()
    scheduler = torch.optim.lr_scheduler.StepLR(run.optimizer, 1, gamma=1.0)
    run.epoch()
    scheduler.step()
    np.testing.assert_allclose(np.stack(run.weights), run.expected()[:, fast.rank()], rtol=1e-9, atol=1e-12)
    assert run.accelerator.worker.rounds == 6
    run.accelerator.finish()


def test_the_mean_model_is_there_for_a_while():
    run = Run().epoch()
    own = run.vector()
    with run.accelerator.mean_model():
        mean = oracle.same_everywhere(run.vector())
    np.testing.assert_allclose(mean, np.mean(oracle.gathered(own), axis=0), rtol=1e-12)
    np.testing.assert_array_equal(run.vector(), own)
    run.accelerator.finish()


TOPOLOGIES = {"diloco": "complete", "allreduce": "complete", "pairwise": "random_matchings", "noloco": "random_matchings",
              "a2cid2": "random_matchings", "relay_sum": "grid1d", "awc_gasloc": "sites"}


@pytest.mark.parametrize("algorithm", fast._core.algorithm_names)
def test_the_mean_is_that_of_the_models_whatever_the_rule_publishes(algorithm):
    run = Run(TOPOLOGIES.get(algorithm, "ring"), algorithm=algorithm).epoch()
    own = run.vector()
    with run.accelerator.mean_model():
        mean = oracle.same_everywhere(run.vector())
    np.testing.assert_allclose(mean, np.mean(oracle.gathered(own), axis=0), rtol=1e-15)
    assert (np.abs(mean - oracle.INITIAL) > 0.01).any()
    run.accelerator.finish()


def test_the_mean_of_large_and_of_empty_tensors_of_several_types(monkeypatch):
    monkeypatch.setattr(loops, "PART_VALUES", 8)
    own = [torch.arange(50, dtype=torch.float32).reshape(5, 10).t() * (fast.rank() + 1), torch.zeros(0, 3),
           torch.tensor(fast.rank(), dtype=torch.float64), torch.full((70,), fast.rank() + 1, dtype=torch.bfloat16)]
    means = loops.gather_means(own)
    middle = (fast.size() + 1) / 2
    np.testing.assert_allclose(means[0].numpy(), np.arange(50).reshape(5, 10).T * middle, rtol=1e-7)
    assert means[1].shape == (0, 3) and means[2] == middle - 1 and (means[3].float() == middle).all()
    assert [mean.dtype for mean in means] == [tensor.dtype for tensor in own]


def test_a_saved_state_is_the_mean_and_can_be_loaded(folder):
    run = Run(momentum=0.9).epoch()
    own = run.vector()
    run.accelerator.save_state(str(folder / "saved"))
    run.accelerator.wait_for_everyone()
    np.testing.assert_array_equal(run.vector(), own)
    mean = np.mean(oracle.gathered(own), axis=0)
    run.epoch()
    run.accelerator.load_state(str(folder / "saved"))
    np.testing.assert_allclose(oracle.same_everywhere(run.vector()), mean, rtol=1e-12)
    run.seen.clear()
    run.epoch()  # neighbors have the loaded weights, too
    state = run.optimizer.state_dict()["state"]
    assert len(state) == 1 and np.isfinite(run.vector()).all()
    run.accelerator.finish()


def test_rounds_after_loading_begin_with_the_loaded_weights(folder):
    """The first round: W·m of equal m is m, and then each worker's own step."""
    run = Run().epoch()
    run.accelerator.save_state(str(folder / "saved"))
    run.accelerator.wait_for_everyone()
    run.epoch()
    run.accelerator.load_state(str(folder / "saved"))
    mean, before = run.vector(), len(run.weights)
    run.epoch()
    x, y = run.seen[before]
    np.testing.assert_allclose(run.weights[before], mean - oracle.RATE * oracle.gradient(mean, x, y), rtol=1e-9)
    run.accelerator.finish()


def test_two_models_and_optimizers_average_in_each_step():
    accelerator = FastAccelerator(cpu=True, topology="complete", worker_options={"deadline": 60})
    layers = [torch.nn.Linear(2, 1, bias=False).double() for _ in range(2)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    optimizers = [torch.optim.SGD(layer.parameters(), 1.0) for layer in layers]
    *layers, first, second = accelerator.prepare(*layers, *optimizers)
    for layer, optimizer, slope in ((layers[0], first, 1.0), (layers[1], second, 2.0)):
        accelerator.backward((layer.weight * slope * fast.rank()).sum())
        optimizer.step()
        optimizer.zero_grad()
    assert accelerator.worker.rounds == 2
    accelerator.finish()
    middle = (fast.size() - 1) / 2
    np.testing.assert_allclose(layers[0].weight.detach().numpy(), 1 - middle, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(layers[1].weight.detach().numpy(), 1 - 2 * middle, rtol=1e-12, atol=1e-12)


def test_a_further_model_is_refused():
    run = Run()
    with pytest.raises(fast.ArgumentError, match="a further model was given"):
        run.accelerator.prepare(torch.nn.Linear(2, 2))
    run.accelerator.finish()


@pytest.mark.parametrize("call", ["free_memory", "clear"])
def test_models_can_be_prepared_anew_after_the_memory_was_freed(call):
    run = Run().epoch()
    expected = run.expected()[-1].mean(0)
    before = run.accelerator.worker
    getattr(run.accelerator, call)()
    assert before.is_closed
    np.testing.assert_allclose(oracle.same_everywhere(run.vector()), expected, rtol=1e-9, atol=1e-12)
    layer = torch.nn.Linear(3, 1, bias=False).double()
    torch.nn.init.ones_(layer.weight)
    run.layer, run.optimizer, run.loader = run.accelerator.prepare(
        layer, torch.optim.SGD(layer.parameters(), oracle.RATE), torch.utils.data.DataLoader(run.loader.dataset, batch_size=4))
    run.seen, run.weights = [], []
    run.epoch()
    np.testing.assert_allclose(np.stack(run.weights), run.expected()[:, fast.rank()], rtol=1e-9, atol=1e-12)
    run.accelerator.finish()


def test_bfloat16_by_autocast():
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state()
    accelerator = FastAccelerator(cpu=True, topology="ring", mixed_precision="bf16", worker_options={"deadline": 60})
    layer = torch.nn.Linear(3, 1)
    layer, optimizer = accelerator.prepare(layer, torch.optim.AdamW(layer.parameters(), 0.1))
    for _ in range(5):
        accelerator.backward(((layer(torch.ones(4, 3)) - fast.rank()) ** 2).mean())
        accelerator.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.finish()
    assert np.isfinite(oracle.same_everywhere(layer.weight.detach().numpy())).all()
    AcceleratorState._reset_state()


def test_what_does_not_train_is_worker_0s_in_means_and_in_saved_states(folder):
    accelerator = FastAccelerator(cpu=True, topology="ring", worker_options={"deadline": 60})
    layer = torch.nn.Linear(3, 1).double()
    with torch.no_grad():
        layer.weight.fill_(fast.rank() + 2.0)
    layer.weight.requires_grad_(False)
    layer, optimizer = accelerator.prepare(layer, torch.optim.SGD(layer.parameters(), 0.1))
    for _ in range(3):
        before = accelerator.worker.stats
        accelerator.backward(layer(torch.full((1, 3), float(fast.rank())).double()).sum())
        optimizer.step()
        optimizer.zero_grad()
        after = accelerator.worker.stats
        assert after.bytes_sent - before.bytes_sent == 8 * (after.messages_sent - before.messages_sent)
    with accelerator.mean_model():
        assert oracle.same_everywhere(layer.weight.detach().numpy()).tolist() == [[2.0] * 3]
    accelerator.save_state(str(folder / "saved"))
    accelerator.finish()
    from safetensors.numpy import load_file
    saved = load_file(folder / "saved/model.safetensors")
    assert saved["weight"].tolist() == layer.weight.tolist() == [[2.0] * 3]
    np.testing.assert_allclose(saved["bias"], layer.bias.detach().numpy(), rtol=1e-12)
