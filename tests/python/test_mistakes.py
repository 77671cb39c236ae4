"""Loops with usual mistakes: an error or a warning says what to do, or the result is right all the same."""
import copy
import importlib
import pickle
import sys
import warnings

import fast_decentralized as fast
import numpy as np
import pytest


def numbers():
    return {"x": np.full(2, float(fast.rank()))}


# Rounds ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("inner", [lambda worker: worker.begin_round(), lambda worker: worker.step(lambda: None)])
def test_a_round_within_a_round_is_refused(inner):
    def work():
        worker = fast.Worker(numbers(), deadline=20)
        with worker.round():
            inner(worker)

    with pytest.raises(fast.ArgumentError, match="a round has begun already"):
        fast.local.run(2, work)


def test_the_end_of_no_round_is_refused():
    with pytest.raises(fast.ArgumentError, match="no round had begun; call begin_round"):
        fast.local.run(2, lambda: fast.Worker(numbers(), deadline=20).end_round())


@pytest.mark.parametrize("name", ["loss", "learning_rate"])
def test_what_belongs_to_a_round_is_no_attribute_of_its_worker(name):
    def work():
        worker = fast.Worker(numbers(), deadline=20)
        with worker.round():
            with pytest.raises(AttributeError, match=f"r.{name} = "):
                setattr(worker, name, 0.5)
        assert not hasattr(worker, name)

    fast.local.run(1, work)


def test_a_round_that_is_not_entered_is_told():
    def work():
        worker = fast.Worker(numbers(), deadline=20)
        with pytest.warns(RuntimeWarning, match="alone does nothing; put the step within") as told:
            worker.round()
        assert [warning.filename for warning in told] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with worker.round():
                pass
        return worker.rounds

    assert fast.local.run(1, work) == [1]


def test_a_round_that_was_made_without_init_says_nothing(monkeypatch):
    """As torch.compile makes one."""
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    object.__new__(fast.worker.Round)
    assert not told


def batches_by_break(worker, batches):
    iterator = iter(batches)
    while True:
        with worker.round():
            batch = next(iterator, None)
            if batch is None:
                break
            yield batch


def batches_by_exception(worker, batches):
    iterator = iter(batches)
    while True:
        try:
            with worker.round():
                batch = next(iterator)
                yield batch
        except StopIteration:
            return


@pytest.mark.parametrize("way", [batches_by_break, batches_by_exception])
def test_a_loop_may_end_within_a_round(way):
    """The round ends as any other: both workers have 3 steps of +1, +2 and a round without a step."""
    def work():
        model = numbers()
        worker = fast.Worker(model, "complete", initial="as_is", deadline=20)
        for batch in way(worker, [1, 1, 1]):
            model["x"] += batch + fast.rank()
        worker.await_finish()
        return worker.rounds, model["x"].tolist()

    assert fast.local.run(2, work) == [(4, [5.0, 5.0])] * 2


def test_a_generator_that_is_dropped_within_a_round_ends_the_round():
    def work():
        model = numbers()
        worker = fast.Worker(model, "complete", initial="as_is", deadline=20)

        def rounds():
            while True:
                with worker.round():
                    yield

        for step, _ in enumerate(rounds()):
            if step == 2:
                break
        assert worker.rounds == 3
        kept = rounds()
        next(kept)
        worker.close()
        kept.close()
        return model["x"].tolist()

    assert fast.local.run(2, work) == [[0.5, 0.5]] * 2


def test_a_rank_with_fewer_batches_ends_and_the_others_go_on():
    def work():
        model = numbers()
        worker = fast.Worker(model, "complete", initial="as_is", deadline=20)
        for _ in range(10 if fast.rank() == 0 else 4):
            with worker.round():
                pass
        worker.await_finish()
        np.testing.assert_allclose(model["x"], 1, rtol=1e-12)
        return worker.rounds

    assert fast.local.run(3, work) == [10, 4, 4]


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_a_model_that_threads_have_in_common_is_refused(framework):
    x = np.zeros(3)
    model = {"w": {"x": x}}
    if framework == "torch":
        torch = pytest.importorskip("torch")
        model = torch.nn.Linear(3, 1)

    with pytest.raises(fast.ArgumentError, match='has the memory of another thread\'s model; make a model in each thread'):
        fast.local.run(3, lambda: fast.Worker(model, deadline=20))
    fast.local.run(1, lambda: fast.Worker(model))  # one after another they may


def test_threads_may_have_in_common_what_takes_no_part():
    common = np.full(2, 7.0)

    def work():
        model = {"x": np.full(2, float(fast.rank())), "frozen": common}
        worker = fast.Worker(model, "complete", initial="as_is", participates=lambda name: name == "x", deadline=20)
        with worker.round():
            pass
        return model["x"].tolist()

    assert fast.local.run(2, work) == [[0.5, 0.5]] * 2
    assert common.tolist() == [7.0, 7.0]


def test_memory_that_a_worker_has_left_may_be_used_by_another_thread():
    memory = np.zeros((2, 2))

    def work():
        worker = fast.Worker({"x": memory[fast.rank()]}, "complete", deadline=20)
        worker.rebind({"x": np.zeros(2)})
        fast.world().barrier(20)
        other = fast.Worker({"x": memory[1 - fast.rank()]}, "complete", deadline=20)
        other.close()
        return worker.rounds

    assert fast.local.run(2, work) == [0, 0]


def test_memory_that_a_rebind_frees_is_no_longer_the_workers(monkeypatch):
    """Another thread may get it at once."""
    memory = importlib.import_module("fast_decentralized.memory")
    taken = []
    monkeypatch.setattr(memory, "take", lambda worker, places: taken.append(set(places)))

    class Freeing:
        def __init__(self, core):
            self._core = core

        def __getattr__(self, name):
            return getattr(self._core, name)

        def rebind(self, tensors):
            assert taken[-1] == {tensor[1].__array_interface__["data"][0] for tensor in tensors}
            self._core.rebind(tensors)

    def work():
        model = numbers()
        worker = fast.Worker(model, deadline=20)
        worker._core = Freeing(worker._core)
        model["x"] = model["x"].copy()
        worker.rebind()
        worker._core = worker._core._core
        return len(taken)

    assert fast.local.run(1, work) == [3]  # at the start, in its end, and by rebind()


def test_a_worker_is_not_copied():
    """The end of a copy would end the worker."""
    def work():
        worker = fast.Worker(numbers(), deadline=20)
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="a Worker belongs to one thread .* cannot be copied or pickled"):
                copied(worker)
        with worker.round():
            pass
        return worker.rounds

    assert fast.local.run(2, work) == [1, 1]


@pytest.mark.parametrize("other", [3, "torch"])
def test_rebind_names_what_is_no_model(other):
    if other == "torch":
        other = pytest.importorskip("torch").nn.Linear(2, 1)
    with pytest.raises(fast.ArgumentError, match="Worker.rebind: a (int|Linear) was given, the worker was made with a dict"):
        fast.local.run(1, lambda: fast.Worker(numbers()).rebind(other))


@pytest.mark.parametrize("given, text", [
    ({"participates": ["x"]}, "a list was given; give such as"), ({"frozen": {"x"}}, "a set was given; give such as"),
    ({"participates": lambda name: name == "y"}, 'participates has chosen none of 1 tensors, as "x"'),
    ({"algorithm": fast.Rule}, r"algorithm is the class Rule; give an object, Rule\(\)")])
def test_arguments_of_another_kind_are_named(given, text):
    with pytest.raises(fast.ArgumentError, match=f"Worker: .*{text}"):
        fast.local.run(2, lambda: fast.Worker(numbers(), deadline=20, **given))


# PyTorch -----------------------------------------------------------------------------------------

def layer(value):
    torch = pytest.importorskip("torch")
    made = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.fill_(value)
    return torch, made


@pytest.mark.parametrize("kind", ["module", "dict"])
def test_backward_after_the_round_of_its_forward_is_refused(kind):
    """The weights are others by then. PyTorch would use them, and give a gradient of neither."""
    def work():
        torch, net = layer(1.0 + fast.rank())
        model = net if kind == "module" else dict(net.named_parameters())
        worker = fast.Worker(model, "complete", initial="as_is", deadline=20)
        with worker.round():
            loss = net(torch.ones(1, 2)).sum()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
        with worker.round():
            net(torch.ones(1, 2)).sum().backward()
        return net[1].weight.grad.tolist()

    assert fast.local.run(2, work) == [[[4.5, 4.5]]] * 2  # 1.5 (1 + 1) + 1.5


def test_a_mask_of_infinities_stays_as_it_is():
    """The difference of two infinities is no number."""
    def work():
        torch, net = layer(float(fast.rank()))
        net.register_buffer("mask", torch.full((3, 3), float("-inf")).triu(1))
        net.register_buffer("scale", torch.full((1,), 2.0 * fast.rank()))
        worker = fast.Worker(net, "complete", initial="as_is", deadline=20)
        for _ in range(2):
            with worker.round():
                pass
        worker.await_finish()
        expected = torch.full((3, 3), float("-inf")).triu(1)
        assert net.mask.equal(expected) and worker.mean_model()["mask"].equal(expected)
        return net[0].bias.tolist(), net.scale.item(), worker.mean_model()["scale"].item()

    assert fast.local.run(2, work) == [([0.5, 0.5], 1.0, 1.0)] * 2


def test_rebind_names_what_is_no_module():
    def work():
        _, net = layer(1.0)
        fast.Worker(net).rebind(net.state_dict())

    with pytest.raises(fast.ArgumentError, match="Worker.rebind: a OrderedDict was given, the worker was made with a Sequential"):
        fast.local.run(1, work)


@pytest.mark.parametrize("layers", ["LazyLinear", "Linear LazyLinear", "Linear LazyBatchNorm1d"])
def test_a_lazy_module_that_has_no_shapes_yet_is_named(layers):
    nn = pytest.importorskip("torch").nn

    def work():
        made = [nn.Linear(2, 2) if name == "Linear" else getattr(nn, name)(*[2][:name == "LazyLinear"]) for name in layers.split()]
        fast.Worker(nn.Sequential(*made), deadline=20)

    place = len(layers.split()) - 1
    with pytest.raises(fast.ArgumentError, match=f'Worker: "{place}.weight" of a lazy module has no shape yet; call the model'):
        fast.local.run(2, work)


@pytest.mark.parametrize("kind, text", [("meta", "is on the device meta, which has no memory; give .*to_empty"),
                                        ("sparse", "is a Tensor whose memory cannot be shared")])
def test_tensors_without_memory_of_their_own_are_named(kind, text):
    torch = pytest.importorskip("torch")

    def work():
        net = torch.nn.Linear(2, 2, device="meta" if kind == "meta" else None)
        if kind == "sparse":
            net.weight = torch.nn.Parameter(torch.eye(2).to_sparse())
        fast.Worker(net, deadline=20)

    with pytest.raises(fast.ArgumentError, match=f'tensor "weight" {text}'):
        fast.local.run(2, work)


# JAX ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("transformation", ["jit", "vmap", "grad"])
def test_combine_within_a_traced_function_is_refused(transformation):
    jax = pytest.importorskip("jax")

    def work():
        mine = {"x": jax.numpy.zeros((2, 2))}
        worker = fast.Worker(mine, deadline=20)
        traced = getattr(jax, transformation)(lambda p: worker.combine(p)["x"].sum())
        traced(mine)

    with pytest.raises(fast.ArgumentError, match="Worker.combine: JAX traces the arrays .* call it outside"):
        fast.local.run(2, work)


def test_a_worker_within_a_traced_function_is_refused():
    jax = pytest.importorskip("jax")
    with pytest.raises(fast.ArgumentError, match="Worker: JAX traces the arrays .* call it outside"):
        fast.local.run(2, lambda: jax.jit(lambda p: fast.Worker(p).rank)({"x": jax.numpy.zeros(2)}))


@pytest.mark.parametrize("number", [0.0, 0, np.float32(0)])
def test_a_number_that_a_step_has_made_an_array_is_told(number):
    """It took no part, so each worker would train its own."""
    jax = pytest.importorskip("jax")
    step = jax.jit(lambda p: jax.tree_util.tree_map(lambda leaf: leaf + 1.5, p))

    def work(chosen):
        mine = {"w": jax.numpy.zeros(2), "b": number}
        worker = fast.Worker(mine, "complete", participates=chosen, deadline=20)
        return worker.combine(step(mine))["b"].item()

    with pytest.raises(fast.MismatchError, match='"b" was a number when the worker was made'):
        fast.local.run(2, work, None)
    assert fast.local.run(2, work, lambda name: name == "w") == [1.5] * 2


def test_keys_of_random_numbers_stay_with_their_worker():
    jax = pytest.importorskip("jax")
    if not hasattr(jax.random, "key"):
        pytest.skip("this JAX has no keys of a type of their own")

    def work():
        mine = {"x": jax.numpy.full(2, float(fast.rank())), "key": jax.random.key(fast.rank())}
        worker = fast.Worker(mine, "complete", initial="as_is", deadline=20)
        mine = worker.combine(mine)
        return mine["x"].tolist(), jax.random.key_data(mine["key"]).tolist()

    keys = [jax.random.key_data(jax.random.key(rank)).tolist() for rank in range(2)]
    assert fast.local.run(2, work) == [([0.5, 0.5], key) for key in keys]
