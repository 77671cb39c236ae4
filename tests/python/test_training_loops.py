"""Loops and modules as people have them: the worker needs no change of them, or says what it needs."""
import fast_decentralized as fast
import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional
WORKERS = 2


def net(seed=0):
    """All workers begin with the same weights."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module


def data(rank, rows=8):
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(rows, 3, generator=generator).double(), torch.randn(rows, 2, generator=generator).double()


def central(steps, rate=0.1):
    """Gradient descent on the mean of the workers' losses. Complete averaging of plain SGD after the step is the same."""
    module = net()
    for _ in range(steps):
        loss = sum(F.mse_loss(module(x), y) for x, y in map(data, range(WORKERS))) / WORKERS
        for parameter, gradient in zip(module.parameters(), torch.autograd.grad(loss, list(module.parameters()))):
            parameter.data -= rate * gradient
    return torch.nn.utils.parameters_to_vector(module.parameters()).detach()


def worker_of(module, **options):
    return fast.Worker(module, "complete", algorithm="atc", deadline=60, log=lambda *_: None, **options)


def vector(module):
    return torch.nn.utils.parameters_to_vector(module.parameters()).detach()


def require_central(work, steps):
    for found in fast.local.run(WORKERS, work):
        torch.testing.assert_close(found, central(steps))


def test_gradients_of_parts_of_a_batch_are_accumulated_in_a_round():
    def work():
        module, (x, y) = net(), data(fast.rank())
        optimizer, worker = torch.optim.SGD(module.parameters(), 0.1), worker_of(module)
        for _ in range(5):
            with worker.round():
                optimizer.zero_grad()
                for part in range(4):
                    rows = slice(2 * part, 2 * part + 2)
                    (F.mse_loss(module(x[rows]), y[rows]) / 4).backward()
                optimizer.step()
        assert worker.rounds == 5
        return vector(module)

    require_central(work, 5)


def test_gradients_are_accumulated_before_a_round():
    """No weights change between two rounds, so graphs of before have a backward()."""
    def work():
        module, (x, y) = net(), data(fast.rank())
        optimizer, worker = torch.optim.SGD(module.parameters(), 0.1), worker_of(module)
        for part in range(20):
            rows = slice(2 * (part % 4), 2 * (part % 4) + 2)
            (F.mse_loss(module(x[rows]), y[rows]) / 4).backward()
            if part % 4 == 3:
                with worker.round():
                    optimizer.step()
                    optimizer.zero_grad()
        return vector(module)

    require_central(work, 5)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch.compile needs PyTorch 2")
@pytest.mark.parametrize("given", ["the compiled module", "the module"])
def test_compiled_modules_are_averaged(given):
    compiled_of = [torch.compile(net(), backend="eager") for _ in range(WORKERS)]

    def work():
        compiled, (x, y) = compiled_of[fast.rank()], data(fast.rank())
        module = compiled._orig_mod
        worker = worker_of(compiled if given == "the compiled module" else module)
        optimizer = torch.optim.SGD(compiled.parameters(), 0.1)
        for _ in range(3):
            with worker.round():
                optimizer.zero_grad()
                F.mse_loss(compiled(x), y).backward()
                optimizer.step()
        worker.await_finish()
        other = compiled if given == "the compiled module" else module
        other.load_state_dict(worker.mean_model())
        return vector(module)

    require_central(work, 3)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch.compile needs PyTorch 2")
def test_a_module_that_one_worker_alone_has_compiled_is_told_by_name():
    def work():
        module = net()
        worker_of(torch.compile(module, backend="eager") if fast.rank() else module)

    with pytest.raises(fast.MismatchError, match="_orig_mod.0.weight"):
        fast.local.run(WORKERS, work)


def parametrized(name):
    """A layer whose weight is computed of other parameters, by each of PyTorch's two ways."""
    layer = torch.nn.Linear(3, 2).double()
    parametrizations = torch.nn.utils.parametrizations
    if name == "weight_norm by hooks":
        return torch.nn.utils.weight_norm(layer)
    if not hasattr(parametrizations, name):
        pytest.skip(f"this PyTorch has no parametrizations.{name}")
    return getattr(parametrizations, name)(layer)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["weight_norm by hooks", "weight_norm", "spectral_norm", "orthogonal"])
def test_parametrized_layers_average_what_they_are_computed_of(name):
    parametrized(name)

    def work():
        torch.manual_seed(1)
        module, (x, y) = parametrized(name), data(fast.rank())
        optimizer, worker = torch.optim.SGD(module.parameters(), 0.1), worker_of(module)
        for _ in range(5):
            with worker.round():
                optimizer.zero_grad()
                F.mse_loss(module(x), y).backward()
                optimizer.step()
        worker.await_finish()
        mean = worker.mean_model()
        module(x)
        module.load_state_dict(mean)
        module.eval()
        return vector(module), module(torch.ones(1, 3).double()).detach()

    (first, output), *others = fast.local.run(WORKERS, work)
    assert first.isfinite().all()
    for other, its_output in others:
        torch.testing.assert_close(other, first)
        torch.testing.assert_close(its_output, output)


@pytest.mark.parametrize("place", ["beside the module", "in the module"])
def test_moving_averages_of_weights_follow_what_the_worker_averages(place):
    """Each worker's own one beside the module. In the module it takes part as parameters that train do."""
    def work():
        module, (x, y) = net(), data(fast.rank())
        average = torch.optim.swa_utils.AveragedModel(module, avg_fn=lambda old, new, count: 0.5 * old + 0.5 * new)
        whole = torch.nn.ModuleList([module, average]) if place == "in the module" else module
        worker, expected = worker_of(whole), None
        for _ in range(6):
            with worker.round():
                F.mse_loss(module(x), y).backward()
                with torch.no_grad():
                    for parameter in module.parameters():
                        parameter -= 0.1 * parameter.grad
                        parameter.grad = None
            average.update_parameters(module)
            expected = vector(module) if expected is None else 0.5 * expected + 0.5 * vector(module)
        torch.testing.assert_close(vector(average), expected)
        assert int(average.n_averaged) == 6
        return vector(module)

    require_central(work, 6)


def test_several_optimizers_step_in_one_round():
    def work():
        module, (x, y) = net(), data(fast.rank())
        optimizers = [torch.optim.SGD(module[0].parameters(), 0.1), torch.optim.SGD(module[2].parameters(), 0.1)]
        worker = worker_of(module)
        for _ in range(5):
            with worker.round():
                module.zero_grad()
                F.mse_loss(module(x), y).backward()
                for optimizer in optimizers:
                    optimizer.step()
        return vector(module)

    require_central(work, 5)


def test_parts_that_train_in_turn_have_a_round_each():
    """As the networks of a GAN, whose other one is frozen meanwhile."""
    def work():
        module, (x, y) = net(), data(fast.rank())
        worker = worker_of(module)
        for _ in range(5):
            for part, other in [(module[0], module[2]), (module[2], module[0])]:
                other.requires_grad_(False)
                part.requires_grad_(True)
                with worker.round():
                    module.zero_grad()
                    F.mse_loss(module(x), y).backward()
                    torch.optim.SGD(part.parameters(), 0.1).step()
        return vector(module)

    first, other = fast.local.run(WORKERS, work)
    torch.testing.assert_close(first, other)
    assert not first.allclose(vector(net()))


def test_lbfgs_steps_in_a_round():
    """Its closure runs several times. What it remembers of earlier steps is of other weights than the averaged ones, so the
    program clears it. The workers' losses have equal curvature: the mean of their minima is the minimum of their mean."""
    def work():
        module = torch.nn.Linear(4, 1, bias=False).double()
        scale = torch.arange(1.0, 5.0).double()
        optimizer, worker = torch.optim.LBFGS(module.parameters(), lr=1, max_iter=8), worker_of(module)
        for _ in range(6):
            def closure():
                optimizer.zero_grad()
                loss = (scale * (module.weight - fast.rank()).pow(2)).sum()
                loss.backward()
                return loss

            optimizer.state.clear()
            worker.step(optimizer.step, closure)
        return module.weight.detach()

    for found in fast.local.run(WORKERS, work):
        torch.testing.assert_close(found, torch.full((1, 4), (WORKERS - 1) / 2).double(), atol=1e-2, rtol=0)


@pytest.mark.parametrize("staleness", [0, 1, "inf"])
def test_data_of_uneven_length_ends_uneven(staleness):
    """The last batch is smaller, and one worker has fewer batches. The others go on with its last weights."""
    def work():
        module = net()
        worker = fast.Worker(module, "complete", deadline=60, staleness=staleness)
        rows = 20 if fast.rank() == 0 else 31
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data(fast.rank(), rows)), batch_size=4)
        for x, y in loader:
            with worker.round():
                module.zero_grad()
                F.mse_loss(module(x), y).backward()
                torch.optim.SGD(module.parameters(), 0.1).step()
        rounds = worker.rounds
        worker.await_finish()
        module.load_state_dict(worker.mean_model())
        return rounds, vector(module)

    (first, mean), (second, its_mean) = fast.local.run(WORKERS, work)
    assert (first, second) == (5, 8) and mean.equal(its_mean) and mean.isfinite().all()


@pytest.mark.parametrize("optimizer_of", [lambda p: torch.optim.SGD(p, 0.5), lambda p: torch.optim.SparseAdam(list(p), 0.1)],
                         ids=["SGD", "SparseAdam"])
def test_sparse_gradients_change_dense_weights(optimizer_of):
    """Rows that a worker never sees come from its neighbor."""
    def work():
        module = torch.nn.Embedding(6, 2, sparse=True).double()
        torch.nn.init.zeros_(module.weight)
        optimizer, worker = optimizer_of(module.parameters()), worker_of(module)
        for _ in range(30):
            with worker.round():
                optimizer.zero_grad()
                rows = torch.tensor([fast.rank(), 2 + fast.rank()])
                (module(rows) - 1).pow(2).sum().backward()
                assert module.weight.grad.is_sparse
                optimizer.step()
        return module.weight.detach()

    first, other = fast.local.run(WORKERS, work)
    torch.testing.assert_close(first, other)
    torch.testing.assert_close(first[:4], torch.ones(4, 2).double(), atol=0.2, rtol=0)
    assert first[4:].eq(0).all()


def test_a_loader_with_forked_processes_brings_batches(started):
    done = started(2, "loader.py", timeout=200)
    assert sorted(done.stdout.splitlines()) == ["rank 0 ended", "rank 1 ended"], done.stdout + done.stderr
