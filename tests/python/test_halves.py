"""Weights of 16 bits, weights of 32 bits that an optimizer keeps beside them, and steps that a GradScaler leaves out."""
import fast_decentralized as fast
import pytest

torch = pytest.importorskip("torch")
ROUNDS = 200


def line(dtype, value=1.0):
    module = torch.nn.Linear(5, 1, bias=False).to(dtype)
    with torch.no_grad():
        module.weight.fill_(value)
    return module


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_small_pulls_on_16_bit_weights_add_up(dtype):
    """Each round pulls by less than half of what separates two numbers of the type."""
    unit = torch.finfo(dtype).eps

    def work():
        module = line(dtype, 1 + 10 * unit * fast.rank())
        worker = fast.Worker(module, "complete", algorithm="awc", algorithm_option={"consensus": 0.02}, initial="as_is")
        for _ in range(ROUNDS):
            with worker.round():
                pass
        worker.await_finish()
        return module.weight[0, 0].item()

    for weight in fast.local.run(2, work):
        assert abs(weight - (1 + 5 * unit)) <= unit


def test_masters_of_16_bit_weights_take_part():
    """Steps of 1e-4 are lost in bfloat16, and are not in the masters."""
    def work():
        model = line(torch.bfloat16)
        masters = {name: one.detach().float() for name, one in model.named_parameters()}
        optimizer = torch.optim.SGD(masters.values(), lr=1e-4 * (1 + fast.rank()))
        worker = fast.Worker(masters, "complete")             # not the model
        for _ in range(ROUNDS):
            with worker.round():
                model.zero_grad()
                model(torch.ones(1, 5, dtype=torch.bfloat16)).sum().backward()
                for name, one in model.named_parameters():
                    masters[name].grad = one.grad.float()
                optimizer.step()
            with torch.no_grad():                             # after the round
                for name, one in model.named_parameters():
                    one.copy_(masters[name])
        worker.await_finish()
        return worker.mean_model()["weight"][0].tolist(), model.weight[0].tolist()

    mean_step = 1e-4 * (1 + 2) / 2
    for mean, weights in fast.local.run(2, work):
        assert mean == pytest.approx([1 - ROUNDS * mean_step] * 5, abs=1e-5)
        assert weights == pytest.approx(mean, abs=2**-8)


@pytest.mark.skipif(not hasattr(getattr(torch, "amp", None), "GradScaler"), reason="this PyTorch scales on GPUs only")
def test_a_step_that_a_grad_scaler_leaves_out_is_a_step_of_0():
    """One worker's gradient overflows once: its weights stay finite, and the workers average on."""
    def work():
        model = line(torch.float32)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        worker = fast.Worker(model, "complete", algorithm="atc")
        for number in range(3):
            with worker.round():
                optimizer.zero_grad()
                loss = model(torch.full((1, 5), 0.25)).sum()
                scaler.scale(loss).backward()
                if number == 1 and fast.rank() == 0:
                    model.weight.grad.fill_(float("inf"))
                scaler.step(optimizer)
                scaler.update()
        worker.await_finish()
        return scaler.get_scale(), model.weight[0].tolist()

    steps_made = 3 - 0.5  # on average
    expected = [1 - steps_made * 0.5 * 0.25] * 5
    assert fast.local.run(2, work) == [(4.0, pytest.approx(expected)), (8.0, pytest.approx(expected))]
