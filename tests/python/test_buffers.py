"""Tensors that need more than a pass of averaging: complex ones, buffers that cannot be averaged, buffers that are replaced."""
import logging

import fast_decentralized as fast
import numpy as np
import pytest

torch = pytest.importorskip("torch")
WORKERS = 2  # halves are exact
MEAN = (WORKERS - 1) / 2


def net(**buffers):
    """Its weight is the worker's rank."""
    module = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        module.weight.fill_(fast.rank())
    for name, buffer in buffers.items():
        module.register_buffer(name, buffer)
    return module


def after_a_round(module, **options):
    """The module's tensors, and those of the mean of all workers."""
    worker = fast.Worker(module, "complete", initial="as_is", deadline=20, **options)
    with worker.round():
        pass
    assert module.weight.tolist() == [[MEAN] * 2]
    worker.await_finish()
    return module.state_dict(), worker.mean_model()


# Complex numbers ---------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("make", [
    lambda x: x, lambda x: x.conj(), lambda x: x.t(), lambda x: x.t().conj(), lambda x: x[0, 0]],
    ids=["plain", "conjugate", "transposed", "transposed conjugate", "scalar"])
@pytest.mark.parametrize("is_parameter", [True, False])
def test_complex_tensors_are_averaged_where_they_are(dtype, make, is_parameter):
    def value(rank):
        return make(torch.randn(2, 3, dtype=dtype, generator=torch.Generator().manual_seed(rank)))

    def work():
        mine = value(fast.rank())
        module = net(**({} if is_parameter else {"c": mine}))
        if is_parameter:
            module.c = torch.nn.Parameter(mine)
        place = module.c.data_ptr()
        state, mean = after_a_round(module)
        assert module.c.data_ptr() == place
        return [one["c"].detach().resolve_conj().numpy() for one in (state, mean)]

    expected = sum(value(rank).resolve_conj().numpy() for rank in range(WORKERS)) / WORKERS
    for found in sum(fast.local.run(WORKERS, work), []):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("array", [lambda x: x, lambda x: x[0], lambda x: np.array(x[0, 0])])
def test_complex_arrays_of_numpy_are_averaged_where_they_are(array):
    def work():
        x = array(np.full((2, 3), fast.rank() * (1 - 2j)))
        worker = fast.Worker({"x": x}, "complete", initial="as_is", deadline=20)
        with worker.round():
            x += 1j
        worker.await_finish()
        np.testing.assert_allclose(worker.mean_model()["x"], x)
        return x.ravel()[-1]

    np.testing.assert_allclose(fast.local.run(WORKERS, work), [MEAN * (1 - 2j) + 1j] * WORKERS)


# Buffers that stay -------------------------------------------------------------------------------

def sparse():
    return torch.eye(3).to_sparse() * (fast.rank() + 1)


STAY = {
    "empty": lambda: torch.zeros(0, 3), "infinite": lambda: torch.tensor([float("inf"), fast.rank()]), "sparse": sparse,
    "with gaps": lambda: (torch.zeros(2, 4) + fast.rank())[:, ::2],
    "expanded": lambda: torch.tensor([float(fast.rank())]).expand(4),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2) * fast.rank(), 0.1, 0, torch.qint8),
    "integers": lambda: torch.tensor([fast.rank()]),
    "infinite complex": lambda: torch.full((2,), complex(0, float("inf")))}
STAY |= {name: (lambda dtype: lambda: torch.full((3,), 1.0 + fast.rank()).to(dtype))(getattr(torch, name))
         for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)}


def values(tensor):
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.to_dense()
    return (tensor.dequantize() if tensor.is_quantized else tensor.to(torch.complex64)).tolist()


@pytest.mark.parametrize("kind", STAY)
@pytest.mark.parametrize("role", ["buffer", "frozen"])
def test_what_cannot_be_averaged_and_is_not_trained_stays_with_its_worker(kind, role):
    """As integers do. The other tensors are averaged, and the mean of all workers has this worker's own."""
    if role == "frozen" and "infinite" in kind:
        pytest.skip("infinite parameters are a mistake of the program")

    def work():
        mine = STAY[kind]()
        module = net(**({"b": mine} if role == "buffer" else {}))
        if role == "frozen":
            module.b = torch.nn.Parameter(mine, requires_grad=False)
        before = values(mine)
        state, mean = after_a_round(module, frozen=lambda name: False)  # they differ on purpose
        assert values(state["b"]) == values(mean["b"]) == before

    fast.local.run(WORKERS, work)


def test_a_buffer_of_a_dict_that_cannot_be_averaged_stays_with_its_worker():
    types = pytest.importorskip("ml_dtypes")

    def work():
        model = {"w": np.full(2, float(fast.rank())), "low": np.full(2, fast.rank(), types.float8_e4m3fn),
                 "mask": np.full(2, -np.inf), "empty": np.zeros((0, 2))}
        worker = fast.Worker(model, "complete", initial="as_is", buffers=["low", "mask"], deadline=20)
        with worker.round():
            pass
        assert model["w"].tolist() == [MEAN] * 2 and model["mask"].tolist() == [-np.inf] * 2
        return model["low"].astype(float).tolist()

    assert fast.local.run(WORKERS, work) == [[rank] * 2 for rank in range(WORKERS)]


def test_a_model_of_which_nothing_can_be_averaged_says_why():
    def work():
        fast.Worker(torch.nn.Linear(4, 0), deadline=20)

    with pytest.raises(fast.ArgumentError, match='none of 2 tensors can be averaged: "weight" has no elements'):
        fast.local.run(2, work)


@pytest.mark.skipif(not hasattr(torch, "float8_e4m3fn"), reason="this PyTorch has no numbers of 8 bits")
def test_a_trained_parameter_that_cannot_be_averaged_is_named_with_its_type_and_a_remedy():
    def work():
        module = net()
        module.low = torch.nn.Parameter(torch.zeros(3).to(torch.float8_e4m3fn))
        fast.Worker(module, deadline=20)

    with pytest.raises(fast.ArgumentError, match='"low" has elements of torch.float8_e4m3fn; .*an eighth apart.*participates=lambda name: name != "low"'):
        fast.local.run(2, work)


# Buffers that are replaced -----------------------------------------------------------------------

@pytest.mark.parametrize("where", ["step", "between", "before the end"])
@pytest.mark.parametrize("how", ["assigned", "data"])
def test_a_buffer_that_was_replaced_is_averaged_where_it_is_now(where, how):
    """A worker averages its buffer after the step with its neighbor's before the step. Between rounds, the values stay."""
    def replace(module, added):
        new = module.b + added
        if how == "data":
            module.b.data = new
        else:
            module.b = new

    def work():
        module = net(b=torch.full((3,), float(fast.rank())))
        worker = fast.Worker(module, "complete", initial="as_is", deadline=20)
        for step in range(3):
            if where == "between" and step == 1:
                replace(module, 0)
            with worker.round():
                if where == "step":
                    replace(module, fast.rank())
        if where == "before the end":
            replace(module, 0)
        worker.await_finish()
        return module.b.tolist(), worker.mean_model()["b"].tolist()

    expected = np.arange(2.0)
    for _ in range(3):
        expected = (expected + np.arange(2) * (where == "step") + expected[::-1]) / 2
    for rank, (own, mean) in enumerate(fast.local.run(WORKERS, work)):
        assert own == [expected[rank]] * 3 and mean == [expected.mean()] * 3


def test_a_buffer_that_is_replaced_in_each_step_is_averaged():
    """As an exponential average of the worker's rank; with adapt-then-combine on a complete graph all have the mean's."""
    def work():
        module = net(b=torch.zeros(2))
        worker = fast.Worker(module, "complete", algorithm="atc", deadline=20)
        for _ in range(20):
            with worker.round():
                module.b = 0.5 * module.b + 0.5 * fast.rank()
        return module.b.tolist()

    for found in fast.local.run(WORKERS, work):
        np.testing.assert_allclose(found, MEAN * (1 - 0.5**20), rtol=1e-5)


@pytest.mark.parametrize("change", ["grows", "resized", "other type", "goes", "comes", "becomes infinite"])
def test_a_buffer_that_becomes_another_one_stays_with_its_worker_from_then_on(change, caplog):
    """As a table that is made anew for longer texts. One worker alone changes it; the others go on."""
    changed = {"grows": lambda b: torch.arange(5.0), "resized": None, "other type": lambda b: b.double(), "goes": lambda b: None,
               "comes": None, "becomes infinite": lambda b: torch.full((3,), float("inf"))}[change]

    def work():
        module = net(b=torch.full((3,), 7.0))
        worker = fast.Worker(module, "complete", initial="as_is", deadline=20)
        for step in range(4):
            with worker.round():
                if step == 1 and fast.rank() == 1:
                    if change == "comes":
                        module.register_buffer("late", torch.ones(2))
                    elif change == "resized":
                        module.b.resize_(6).fill_(7)
                    else:
                        module.b = changed(torch.full((3,), 7.0))
        worker.await_finish()
        mean = worker.mean_model()
        return None if module.b is None else module.b.tolist(), module.weight.tolist(), mean.get("b"), module.state_dict().get("late")

    with caplog.at_level(logging.WARNING, "fast_decentralized"):
        results = fast.local.run(WORKERS, work)
    for rank, (b, weight, mean, late) in enumerate(results):
        assert weight == [[MEAN] * 2]
        if rank == 1 and change != "comes":
            own = {"grows": [0.0, 1, 2, 3, 4], "resized": [7.0] * 6, "other type": [7.0] * 3, "goes": None,
                   "becomes infinite": [float("inf")] * 3}[change]
            assert b == own and (mean is None if own is None else mean.tolist() == own)
        else:
            assert b == mean.tolist() == [7.0] * 3 and (late is not None) == (rank == 1 and change == "comes")
    said = [record for record in caplog.records if 'buffer "b" has another shape' in record.getMessage()]
    assert len(said) == (change != "comes")


def test_quantization_aware_training_runs_and_averages_the_weights():
    """Its observers begin with empty and infinite buffers, and resize them in the first step."""
    quantization = pytest.importorskip("torch.ao.quantization")

    def work():
        torch.manual_seed(fast.rank())
        module = torch.nn.Sequential(quantization.QuantStub(), torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                     torch.nn.Linear(4 * 36, 2), quantization.DeQuantStub())
        module.qconfig = quantization.get_default_qat_qconfig("fbgemm")
        quantization.prepare_qat(module.train(), inplace=True)
        worker = fast.Worker(module, "complete", algorithm="atc", deadline=60, log=lambda *_: None)
        optimizer = torch.optim.SGD(module.parameters(), 0.01)
        for _ in range(4):
            with worker.round() as this:
                loss = module(torch.randn(4, 1, 8, 8)).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                this.loss = loss
        return module[1].weight.tolist(), module[1].weight_fake_quant.scale.shape

    (first, shape), *others = fast.local.run(2, work)
    assert shape == (4,) and all(np.allclose(first, other, rtol=1e-6) for other, _ in others)
