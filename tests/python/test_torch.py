"""Modules of PyTorch."""
import fast_decentralized as fast
import numpy as np
import pytest

torch = pytest.importorskip("torch")


def net(seed=0):
    generator = torch.Generator().manual_seed(seed)
    made = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        made[1].running_mean.copy_(torch.randn(3, generator=generator))
        made[1].num_batches_tracked.fill_(seed)
    return made


def test_parameters_and_buffers_are_averaged_in_place():
    def work():
        module = net(fast.rank())
        places = [tensor.data_ptr() for tensor in module.state_dict().values()]
        worker = fast.Worker(module, "complete", initial="as_is")
        with worker.round():
            pass
        assert [tensor.data_ptr() for tensor in module.state_dict().values()] == places
        return module.state_dict()

    states = fast.local.run(3, work)
    initial = [net(rank).state_dict() for rank in range(3)]
    for rank, state in enumerate(states):
        for name, tensor in state.items():
            if name == "1.num_batches_tracked":
                assert tensor == rank
            else:
                expected = sum(one[name] for one in initial) / 3
                np.testing.assert_allclose(tensor.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("of_a_dict", [False, True])
def test_integers_and_booleans_stay_with_their_worker(of_a_dict):
    def work():
        module = torch.nn.Linear(2, 2)
        module.register_buffer("mask", torch.ones(2, 2).tril().bool() if fast.rank() else torch.zeros(2, 2).bool())
        module.register_buffer("count", torch.tensor(fast.rank()))
        model = {name: tensor.detach() for name, tensor in module.state_dict().items()} if of_a_dict else module
        with torch.no_grad():
            module.weight.fill_(fast.rank())
        worker = fast.Worker(model, "complete", initial="as_is", deadline=20)
        with worker.round():
            pass
        worker.await_finish()
        mean = worker.mean_model()
        return module.weight[0, 0].item(), [int(state["mask"].sum()) for state in (module.state_dict(), mean)], int(mean["count"])

    assert fast.local.run(2, work) == [(0.5, [0, 0], 0), (0.5, [3, 3], 1)]


def test_training_agrees_with_averaged_gradient_descent():
    """Complete averaging of plain SGD after the step is gradient descent on the mean of the losses."""
    x, y = torch.randn(12, 4, generator=torch.Generator().manual_seed(7)).double(), torch.arange(12) % 2

    def train(module, parts, worker=None):
        for _ in range(5):
            loss = sum(torch.nn.functional.cross_entropy(module(x[part]), y[part]) for part in parts) / len(parts)
            if worker is None:
                step(module, loss)
            else:
                worker.step(lambda: step(module, loss))
        return [p.detach().numpy() for p in module.parameters()]

    def step(module, loss):
        module.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in module.parameters():
                p -= 0.1 * p.grad
        return loss.item()

    def work():
        module = torch.nn.Linear(4, 2).double()
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(torch.ones_like(p) * (fast.rank() + 1))
        worker = fast.Worker(module, "complete", algorithm="atc")
        return train(module, [slice(fast.rank() * 3, fast.rank() * 3 + 3)], worker)

    workers = fast.local.run(4, work)
    central = torch.nn.Linear(4, 2).double()
    with torch.no_grad():
        for p in central.parameters():
            p.fill_(1)
    expected = train(central, [slice(3 * i, 3 * i + 3) for i in range(4)])
    for found in workers:
        for mine, other in zip(found, expected):
            np.testing.assert_allclose(mine, other, rtol=1e-10)


def test_the_mean_model_is_a_state_dict():
    def work():
        module = net(fast.rank())
        worker = fast.Worker(module, "ring", initial="as_is", algorithm="none")
        worker.await_finish()
        mean = worker.mean_model()
        fresh = net(9)
        fresh.load_state_dict(mean)
        return fresh[0].weight.detach().numpy()

    expected = (net(0)[0].weight + net(1)[0].weight).detach().numpy() / 2
    for found in fast.local.run(2, work):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


class OwnState(torch.nn.Module):
    """Its state_dict() gives what ``entry_of`` makes of the module's tensors."""

    def __init__(self, value, entry_of):
        super().__init__()
        self.entry_of = entry_of
        self.a, self.b = torch.nn.Linear(2, 3, bias=False), torch.nn.Linear(2, 3, bias=False)
        self.b.weight = self.a.weight
        self.alone = torch.nn.Parameter(torch.full((2,), 8.0 * value))
        self.register_buffer("statistic", torch.full((2,), 2.0 * value))
        self.register_buffer("count", torch.tensor(5 + value))
        torch.nn.init.constant_(self.a.weight, value)

    def state_dict(self, *arguments, **options):
        return {name: self.entry_of(entry) for name, entry in super().state_dict(*arguments, **options).items()}


def mean_and_own(entry_of):
    def work():
        module = OwnState(fast.rank(), entry_of)
        worker = fast.Worker(module, "complete", initial="as_is", algorithm="none", participates=lambda name: name != "alone", deadline=20)
        worker.await_finish()
        return worker.mean_model(), module.a.weight[0, 0].item()

    return fast.local.run(3, work)


@pytest.mark.parametrize("entry_of", [lambda x: x, lambda x: x.clone(), lambda x: x.to(torch.float64), lambda x: x.half(),
                                      lambda x: torch.nn.Parameter(x.float().clone())])
def test_the_mean_model_is_the_mean_where_state_dict_gives_copies(entry_of):
    for rank, (mean, own) in enumerate(mean_and_own(entry_of)):
        form = entry_of(torch.zeros(1))
        assert list(mean) == ["alone", "statistic", "count", "a.weight", "b.weight"] and own == rank
        assert mean["a.weight"].dtype == form.dtype
        assert mean["a.weight"].tolist() == mean["b.weight"].tolist() == [[1.0] * 2] * 3 and mean["statistic"].tolist() == [2.0] * 2
        assert mean["alone"].tolist() == [8.0 * rank] * 2 and mean["count"].item() == 5 + rank, "what takes no part is the worker's"


@pytest.mark.parametrize("entry_of, text", [(lambda x: x.to(torch.int8), r"Tensor \[.*\] torch.int8"), (lambda x: x[:1] if x.dim() else x, r"Tensor \[1"),
                                            (lambda x: x.numpy(), "ndarray .* float32"), (lambda x: x.to_sparse(), "Tensor"),
                                            (lambda x: x.to(torch.complex64), r"Tensor .* torch.complex64"), (str, "str")])
def test_a_state_dict_that_cannot_take_the_mean_is_refused_by_name(entry_of, text):
    with pytest.raises(fast.MismatchError, match=f"state_dict\\(\\) gives \"(a.weight|statistic)\" as {text}.*, which cannot take the mean"):
        mean_and_own(entry_of)


def test_tied_weights_stay_tied():
    def work():
        module = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3, bias=False), "b": torch.nn.Linear(3, 3, bias=False)})
        module["b"].weight = module["a"].weight
        with torch.no_grad():
            module["a"].weight.fill_(fast.rank())
        worker = fast.Worker(module, "complete", initial="as_is")
        with worker.round():
            pass
        worker.await_finish()
        mean = worker.mean_model()
        return module["b"].weight[0, 0].item(), mean["b.weight"][0, 0].item(), set(mean)

    assert fast.local.run(2, work) == [(0.5, 0.5, {"a.weight", "b.weight"})] * 2


def test_parameters_of_the_same_memory_and_another_shape_stay_tied():
    def work():
        module = torch.nn.Module()
        module.a = torch.nn.Parameter(torch.full((2, 3), float(fast.rank())))
        module.b = torch.nn.Parameter(module.a.data.view(6))
        worker = fast.Worker(module, "complete", initial="as_is", deadline=20)
        with worker.round():
            pass
        worker.await_finish()
        mean = worker.mean_model()
        return mean["a"][0, 0].item(), mean["b"].tolist()

    assert fast.local.run(2, work) == [(0.5, [0.5] * 6)] * 2


def test_bfloat16_and_float16_are_averaged():
    def work(dtype):
        module = torch.nn.Linear(3, 1, bias=False).to(dtype)
        with torch.no_grad():
            module.weight.fill_(fast.rank() * 2)
        worker = fast.Worker(module, "complete", initial="as_is")
        with worker.round():
            pass
        return module.weight[0, 0].item()

    for dtype in (torch.bfloat16, torch.float16):
        assert fast.local.run(2, work, dtype) == [1, 1]


def test_a_loss_tensor_is_looked_at():
    def work():
        worker = fast.Worker(net())
        worker.step(lambda: torch.tensor(float("inf")))

    with pytest.raises(fast.NumericError, match="is inf"):
        fast.local.run(1, work)


def test_a_module_that_moved_is_told_by_name():
    def work():
        module = net()
        worker = fast.Worker(module)
        module.double()
        with worker.round():
            pass

    with pytest.raises(fast.MismatchError, match='"0.weight" is not where it was; call worker.rebind'):
        fast.local.run(1, work)


def other_memory(module):
    module[2].bias.data = module[2].bias.data.clone()


def replaced(module):
    module[2].bias = torch.nn.Parameter(module[2].bias.detach().clone())


def of_another_part(module):
    module[2] = torch.nn.Linear(3, 2)


def other_dict(module):
    module[2]._parameters = {"weight": module[2].weight, "bias": torch.nn.Parameter(torch.zeros(2))}


def added(module):
    module.further = torch.nn.Parameter(torch.zeros(2))


def removed(module):
    module[2].bias = None


MOVED = "is not where it was; call worker.rebind"


@pytest.mark.parametrize("change, name, what", [
    (other_memory, "2.bias", MOVED), (replaced, "2.bias", MOVED), (of_another_part, "2.weight", MOVED), (other_dict, "2.bias", MOVED),
    (added, "further", "came after the worker was made; make a new Worker"), (removed, "2.bias", "went after the worker was made")])
@pytest.mark.parametrize("where", ["step", "between"])
def test_tensors_that_were_replaced_are_told_by_name(change, name, what, where):
    def work():
        module = net()
        worker = fast.Worker(module)
        for step in range(3):
            if where == "between" and step == 2:
                change(module)
            with worker.round():
                if where == "step" and step == 2:
                    change(module)

    with pytest.raises(fast.MismatchError, match=f'"{name}" {what}'):
        fast.local.run(1, work)


def test_tensors_that_are_not_averaged_may_be_replaced():
    def work():
        module = net(fast.rank())
        worker = fast.Worker(module, "complete", initial="as_is", participates=lambda name: not name.startswith("2."))
        for _ in range(3):
            with worker.round():
                module[1].num_batches_tracked = module[1].num_batches_tracked + 1
                replaced(module)
        return module[0].bias[0].item()

    first, second = fast.local.run(2, work)
    assert first == pytest.approx(second) == pytest.approx((net(0)[0].bias[0] + net(1)[0].bias[0]).item() / 2)


def test_a_module_that_moved_may_be_rebound():
    def work():
        module = net(fast.rank())
        worker = fast.Worker(module, "complete", initial="as_is")
        for p in module.parameters():
            p.data = p.data.clone()
        worker.rebind()
        with worker.round():
            pass
        return module[0].bias[0].item()

    first, second = fast.local.run(2, work)
    assert first == pytest.approx(second) == pytest.approx((net(0)[0].bias[0] + net(1)[0].bias[0]).item() / 2)


def test_after_a_refused_rebind_no_round_averages_the_old_memory():
    """The program drops the error."""
    def work():
        module = torch.nn.Linear(2, 1, bias=False)
        worker = fast.Worker(module, "complete", deadline=20)
        module.double()
        with pytest.raises(fast.MismatchError, match="rebind: the tensors handed over"):
            worker.rebind()
        with worker.round():
            pass

    with pytest.raises(fast.Error, match="a call of this worker has failed .rebind: the tensors handed over"):
        fast.local.run(1, work)


@pytest.mark.parametrize("make", [
    lambda: torch.nn.Conv2d(2, 3, (2, 3)).to(memory_format=torch.channels_last),
    lambda: torch.nn.Conv2d(8, 16, (1, 3)).to(memory_format=torch.channels_last)])
def test_modules_in_another_memory_format_are_averaged_and_keep_it(make):
    def values(rank, shape):
        return torch.randn(shape, generator=torch.Generator().manual_seed(rank))

    def work():
        module = make()
        shape, strides = module.weight.shape, module.weight.stride()
        with torch.no_grad():
            module.weight.copy_(values(fast.rank(), shape))
        worker = fast.Worker(module, "complete", initial="as_is", deadline=20)
        with worker.round():
            pass
        worker.await_finish()
        mean = worker.mean_model()["weight"]
        assert module.weight.stride() == strides and mean.is_contiguous(memory_format=torch.channels_last)
        return module.weight.detach(), mean

    for found in sum(fast.local.run(2, work), ()):
        expected = (values(0, found.shape) + values(1, found.shape)) / 2
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_weights_that_are_transposes_of_each_other_stay_tied():
    def work():
        module = torch.nn.Module()
        module.a = torch.nn.Parameter((torch.arange(12.0) * (fast.rank() + 1)).view(3, 4).t())
        module.b = torch.nn.Parameter(module.a.data.t())
        worker = fast.Worker(module, "complete", initial="as_is", deadline=20)
        with worker.round():
            pass
        worker.await_finish()
        mean = worker.mean_model()
        mean["b"][2, 3] += 100
        return mean["a"].t().tolist() == mean["b"].tolist(), mean["a"][:, 1].tolist(), module.a[3, 2].item()

    assert fast.local.run(2, work) == [(True, [6.0, 7.5, 9.0, 10.5], 16.5)] * 2


def test_a_parameter_with_gaps_is_refused_by_name():
    def work():
        module = torch.nn.Module()
        module.w = torch.nn.Parameter(torch.zeros(3, 4)[:, ::2])
        fast.Worker(module)

    with pytest.raises(fast.ArgumentError, match="w.*contiguous"):
        fast.local.run(1, work)


def test_flat_parameters_that_train_are_one_block_and_stay_what_they_were():
    def work():
        module = torch.nn.Sequential(net(fast.rank()), torch.nn.Conv2d(2, 3, 2).to(memory_format=torch.channels_last),
                                     torch.nn.LSTM(2, 2), torch.nn.Linear(2, 2).double())
        torch.nn.init.constant_(module[0][2].weight, 0.5).requires_grad_(False)
        module.tied = torch.nn.Parameter(module[0][0].weight.detach().t())
        before = [(one, one.detach().clone(), one.stride(), one.requires_grad) for one in module.parameters()]
        left_alone = [*module[2].parameters(), module[0][2].weight]
        places = [one.data_ptr() for one in left_alone]
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        worker = fast.Worker(module, "complete", initial="as_is", flat=True)
        for (one, value, stride, trains), now in zip(before, module.parameters()):
            assert now is one and one.stride() == stride and one.requires_grad == trains and torch.equal(one, value)
        assert [one.data_ptr() for one in left_alone] == places
        assert module.tied.data_ptr() == module[0][0].weight.data_ptr()
        blocks = [one for name, one in module.named_parameters()
                  if one.requires_grad and not name.startswith(("2.", "3.")) and one is not module.tied]
        ends = [one.data_ptr() + one.numel() * one.element_size() for one in blocks]
        assert sorted(one.data_ptr() for one in blocks)[1:] == sorted(ends)[:-1]
        with worker.round():
            module[0](torch.ones(5, 4)).sum().backward()
            optimizer.step()
        return module[0][0].weight.detach().clone()

    first, second = fast.local.run(2, work)
    assert torch.allclose(first, second, rtol=1e-6, atol=1e-7)


def test_flat_is_for_modules():
    with pytest.raises(fast.ArgumentError, match="flat=True is for a module of PyTorch, a dict was given"):
        fast.local.run(1, lambda: fast.Worker({"x": np.zeros(3, np.float32)}, flat=True))
