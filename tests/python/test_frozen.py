"""Parameters that do not train: they are not sent, and all workers have the same ones."""
import re

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
    worker = fast.Worker(module, "complete", participates=lambda name, one: one.requires_grad and name != "own", deadline=20,
                         **options)
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
        fast.Worker(module, deadline=20)

    fast.local.run(2, work)
    assert base.tolist() == [1.0] * 4


# What takes part ----------------------------------------------------------------------------------

class Adapted(torch.nn.Module):
    """A layer that does not train, with a normalization, and an adapter that does. Its output is the layer's plus the
    adapter's."""

    def __init__(self, value=0.0, affine=True):
        super().__init__()
        self.base = torch.nn.Linear(4, 4, bias=False)
        self.norm = torch.nn.BatchNorm1d(4, affine=affine)
        self.a = torch.nn.Linear(4, 2, bias=False)
        self.b = torch.nn.Linear(2, 4, bias=False)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.arange(1.0, parameter.numel() + 1).view(parameter.shape) / 10 + value)
        self.base.requires_grad_(False)
        self.norm.requires_grad_(False)

    def forward(self, x):
        y = self.norm(self.base(x))
        return y + self.b(self.a(x))


BUFFERS = 2 * 4  # numbers of BatchNorm's statistics


def step(module, x):
    module.zero_grad()
    loss = module(x).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter -= 0.01 * parameter.grad
    return loss.item()


def data(rank, rows=8):
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(rank))


def bits(tensor):
    return tensor.detach().numpy().tobytes()


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("affine", [True, False])
def test_what_trains_and_buffers_are_sent_and_nothing_else(workers, affine):
    def work():
        module = Adapted(affine=affine)
        worker = fast.Worker(module, "complete", deadline=20)
        before, kept = worker.stats, [bits(one) for one in (*module.base.parameters(), *module.norm.parameters())]
        for _ in range(5):
            worker.step(step, module, data(fast.rank()))
        assert [bits(one) for one in (*module.base.parameters(), *module.norm.parameters())] == kept
        worker.await_finish()
        mean = worker.mean_model()
        assert set(mean) == set(module.state_dict()) and bits(mean["base.weight"]) == kept[0]
        return worker.stats.bytes_sent - before.bytes_sent, worker.stats.messages_sent - before.messages_sent

    for sent, messages in fast.local.run(workers, work):
        assert messages >= 5 * (workers - 1) and sent == messages * 4 * (8 + 8 + BUFFERS), (sent, messages)


def test_statistics_of_a_frozen_normalization_are_averaged_while_it_counts():
    """In train() it changes them on each worker's data, in eval() they stay."""
    def work(train):
        module = Adapted()
        module.train(train)
        worker = fast.Worker(module, "complete", algorithm="atc", deadline=20)
        worker.step(step, module, data(fast.rank()))
        return module.norm.running_mean.detach()

    expected = sum(0.1 * Adapted().base(data(rank)).mean(0) for rank in range(2)).detach() / 2
    for found in fast.local.run(2, work, True):
        torch.testing.assert_close(found, expected)
    for found in fast.local.run(2, work, False):
        assert found.tolist() == [0.0] * 4


def test_a_function_chooses_among_all_tensors_by_name_or_by_name_and_tensor():
    def names(participates):
        worker = fast.Worker(Adapted(), "complete", participates=participates, deadline=20)
        return sorted(name for name, *_ in worker._model.tensors())

    def chosen(participates):
        return fast.local.run(2, names, participates)[0]

    trained = ["a.weight", "b.weight"]
    statistics = ["norm.running_mean", "norm.running_var"]
    assert chosen(None) == trained + statistics
    assert chosen(set(trained).__contains__) == chosen(re.compile(r"[ab]\.").match) == trained
    assert chosen(lambda name, wanted=trained: name in wanted) == trained
    assert chosen(lambda name, tensor: tensor.requires_grad) == trained
    assert chosen(lambda name: True) == ["a.weight", "b.weight", "base.weight", "norm.bias", *statistics, "norm.weight"]


def test_a_module_of_which_nothing_trains_is_told():
    def work(**options):
        return fast.Worker(Adapted().requires_grad_(False), deadline=20, **options).rank

    with pytest.raises(fast.ArgumentError, match='none of 5 parameters trains: "base.weight" has requires_grad=False; let one'):
        fast.local.run(2, work)
    assert fast.local.run(2, lambda: work(participates=lambda name: True)) == [0, 1]


@pytest.mark.parametrize("frozen_is_first", [True, False])
def test_frozen_weights_that_are_tied_to_trained_ones_stay_tied_and_take_part(frozen_is_first):
    def work():
        module = torch.nn.Module()
        trained = torch.nn.Parameter(torch.full((2, 3), float(fast.rank())))
        frozen = torch.nn.Parameter(trained.data.t(), requires_grad=False)
        for name, one in [("a", frozen), ("b", trained)] if frozen_is_first else [("a", trained), ("b", frozen)]:
            module.register_parameter(name, one)
        worker = fast.Worker(module, "complete", initial="as_is", deadline=20)
        with worker.round():
            pass
        worker.await_finish()
        mean = worker.mean_model()
        assert frozen.data_ptr() == trained.data_ptr()
        return trained[0, 0].item(), frozen[0, 0].item(), mean["a"][0, 0].item(), mean["b"][0, 0].item()

    assert fast.local.run(3, work) == [pytest.approx((1.0,) * 4)] * 3


# What begins to train -----------------------------------------------------------------------------

@pytest.mark.parametrize("frozen_layers", [1, 700])  # of many some are looked at in each round
@pytest.mark.parametrize("participates", [None, lambda name, tensor: tensor.requires_grad])
def test_a_parameter_that_begins_to_train_is_named(frozen_layers, participates):
    def work():
        module = Adapted()
        module.rest = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(1), requires_grad=False) for _ in range(frozen_layers))
        worker = fast.Worker(module, "complete", participates=participates, deadline=20)
        with worker.round():
            pass
        module.rest[frozen_layers - 1].requires_grad_()
        for _ in range(3):
            with worker.round():
                pass

    with pytest.raises(fast.MismatchError, match=rf'parameter "rest.{frozen_layers - 1}" trains now .* call worker.rebind\(\) on every'):
        fast.local.run(2, work)


def test_parts_that_are_frozen_in_turn_need_no_call():
    """As the two networks of a GAN. All take part."""
    def work():
        module = Adapted(fast.rank())
        worker = fast.Worker(module, "complete", initial="as_is", frozen=lambda name: False, deadline=20)
        for round in range(4):
            module.a.requires_grad_(round % 2 == 0)
            module.norm.running_var = module.norm.running_var.clone()
            with worker.round():
                pass
        return module.a.weight[0, 0].item()

    assert fast.local.run(2, work) == pytest.approx([0.6, 0.6])


def test_a_choice_by_name_holds_whatever_trains():
    def work():
        module = Adapted(fast.rank())
        worker = fast.Worker(module, "complete", initial="as_is", participates=lambda name: name == "a.weight", deadline=20,
                             frozen=lambda name: False)
        module.base.requires_grad_(True)
        for _ in range(2):
            with worker.round():
                pass
        worker.rebind()
        with worker.round():
            pass
        return module.base.weight[0, 0].item(), module.a.weight[0, 0].item()

    assert [values for values in fast.local.run(2, work)] == [pytest.approx((0.1 + rank, 0.6)) for rank in range(2)]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_parameters_are_unfrozen_and_frozen_in_the_middle_of_training(started, ranks):
    done = started(ranks, "frozen.py", timeout=200)
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} ended" for rank in range(ranks)], done.stdout + done.stderr


@pytest.mark.parametrize("staleness", [0, 2])
def test_a_worker_that_changes_its_choice_alone_ends_all_within_its_deadline(staleness):
    def work():
        module = Adapted()
        worker = fast.Worker(module, "complete", deadline=8, staleness=staleness)
        for turn in range(10**6):
            if turn == 1 and fast.rank() == 1:
                module.base.requires_grad_(True)
                worker.rebind()
            with worker.round():
                pass

    with pytest.raises(fast.DeadlineError, match=r"not all workers have called rebind\(\); call it on every worker .* waited 4.* s"):
        fast.local.run(3, work)
