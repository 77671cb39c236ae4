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


def test_a_transposed_parameter_is_refused_by_name():
    def work():
        module = torch.nn.Module()
        module.w = torch.nn.Parameter(torch.zeros(3, 4).t())
        fast.Worker(module)

    with pytest.raises(fast.ArgumentError, match="w.*contiguous"):
        fast.local.run(1, work)
