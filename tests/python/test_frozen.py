"""Parameters that do not train: they need not be sent, and all workers have the same ones."""
import logging

import fast_decentralized as fast
import pytest

torch = pytest.importorskip("torch")


def net(value, kind=lambda x: x, size=3):
    """Its frozen layer has this value."""
    module = torch.nn.Module()
    module.base = torch.nn.Parameter(kind(torch.full((2, size), float(value))), requires_grad=False)
    module.adapter = torch.nn.Parameter(torch.full((2,), float(value)))
    module.own = torch.nn.Parameter(torch.full((2,), float(value)))  # trained, and left out on purpose
    return module


def work(value_of, kind=lambda x: x, **options):
    module = net(value_of(fast.rank()), kind)
    worker = fast.Worker(module, "complete", participates=lambda name: name == "adapter", deadline=20, **options)
    with worker.round():
        pass
    return module.base, module.own.tolist()


KINDS = [lambda x: x, lambda x: x.t(), lambda x: x.double(), lambda x: x.half(), lambda x: x.to(torch.int8), lambda x: x > 0.5,
         lambda x: x.to(torch.complex64).conj()]
KINDS += [lambda x: x.to(torch.float8_e4m3fn)] if hasattr(torch, "float8_e4m3fn") else []


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_parameters_that_are_left_out_are_worker_0s(kind):
    expected = kind(torch.full((2, 3), 1.0)).to(torch.complex64).tolist()
    for rank, (base, own) in enumerate(fast.local.run(3, work, lambda rank: 1.0 - rank, kind)):
        assert base.to(torch.complex64).resolve_conj().tolist() == expected and own == [1.0 - rank] * 2


def test_frozen_parameters_that_differ_are_named_where_weights_stay_as_they_are():
    with pytest.raises(fast.MismatchError, match=r'frozen tensors differ from worker 0\'s: "base" \[2x3\] f32 .*worker 1'):
        fast.local.run(3, lambda: work(float, initial="as_is"))
    fast.local.run(3, lambda: work(lambda rank: 1.0, initial="as_is"))


def test_frozen_parameters_may_differ_on_purpose():
    for rank, (base, _) in enumerate(fast.local.run(2, lambda: work(float, frozen=lambda name: name != "base"))):
        assert base.tolist() == [[float(rank)] * 3] * 2


def test_a_frozen_layer_that_threads_have_in_common_stays_where_it_is():
    base = torch.nn.Parameter(torch.ones(4), requires_grad=False)

    def work():
        module = torch.nn.Linear(2, 1)
        module.base = base
        fast.Worker(module, participates=lambda name: name != "base", deadline=20)

    fast.local.run(2, work)
    assert base.tolist() == [1.0] * 4


@pytest.mark.parametrize("size, participates, hinted", [
    (1 << 18, None, True), (1 << 18, lambda name: name != "base", False), (1 << 10, None, False)])
def test_frozen_parameters_that_take_part_give_one_hint(size, participates, hinted, caplog):
    with caplog.at_level(logging.WARNING, "fast_decentralized"):
        fast.local.run(2, lambda: fast.Worker(net(1, size=size), participates=participates, deadline=20).rank)
    said = [record.getMessage() for record in caplog.records if "do not train" in record.getMessage()]
    assert len(said) == hinted and all("2.1 MB of the 2.1 MB" in one and "participates=trained" in one for one in said), said
