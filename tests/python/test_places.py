"""Tensors that were replaced or moved, and calls within calls."""
import gc
import weakref

import fast_decentralized as fast
import numpy as np
import pytest

torch = pytest.importorskip("torch")
ENDS = {"finish": lambda worker: worker.finish(), "await_finish": lambda worker: worker.await_finish(),
        "close": lambda worker: worker.close(), "republish": lambda worker: worker.republish(),
        "set_topology": lambda worker: worker.set_topology("complete")}


def replaced(model):
    model["x"] = model["x"] + 1


def shared(model):
    """In other memory, as before a torch.multiprocessing.Queue. What was there is freed."""
    model.share_memory()


def changed(model):
    model.weight = torch.nn.Parameter(model.weight.data + 1)


@pytest.mark.parametrize("call", ENDS)
@pytest.mark.parametrize("moves", [replaced, shared, changed])
def test_calls_that_would_use_the_old_memory_are_refused(call, moves):
    def work():
        model = {"x": np.zeros(1000)} if moves is replaced else torch.nn.Linear(1000, 1000)
        worker = fast.Worker(model, "ring", deadline=20)
        with worker.round():
            pass
        moves(model)
        ENDS[call](worker)

    with pytest.raises(fast.MismatchError, match='tensor "(x|weight)" is not where it was'):
        fast.local.run(2, work)


@pytest.mark.parametrize("call", ENDS)
def test_after_rebind_the_new_memory_is_used(call):
    def work():
        model = {"x": np.zeros(1000)}
        worker = fast.Worker(model, "complete", deadline=20)
        with worker.round():
            pass
        replaced(model)
        worker.rebind()
        ENDS[call](worker)
        if not worker.is_closed:
            worker.await_finish()
            np.testing.assert_array_equal(worker.mean_model()["x"], np.ones(1000))

    fast.local.run(2, work)


@pytest.mark.parametrize("end", ["finish", "await_finish", "leave"])
def test_after_the_end_tensors_may_move(end):
    def work():
        model = torch.nn.Linear(10, 10)
        worker = fast.Worker(model, "complete", deadline=20)
        getattr(worker, end)()
        shared(model)
        if end != "leave":
            worker.finish()
        worker.close()

    fast.local.run(2, work)


def test_autograd_hears_of_averages_after_a_parameter_of_the_same_memory():
    """It compares versions, which the new parameter has of its own."""
    def work():
        model = torch.nn.Linear(3, 1)
        worker = fast.Worker(model, "complete", deadline=20)
        with worker.round():
            model.weight = torch.nn.Parameter(model.weight.data)
        with worker.round():
            loss = (model.weight ** 2).sum()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()

    fast.local.run(2, work)


def test_a_callback_cannot_close_its_worker(monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", lambda what: told.append(str(what.exc_value)))

    def work():
        class Closes(fast.Observer):
            def on_message(self, message):
                if message.round == 2:
                    worker.close()

        worker = fast.Worker({"x": np.zeros(1000)}, "complete", observer=Closes(), deadline=20)
        for _ in range(5):
            with worker.round():
                pass
        return worker.rounds

    assert fast.local.run(2, work) == [5, 5]
    assert told and all("close() was called within a call of this worker" in text for text in told)


def test_what_a_thread_drops_is_raised_by_run():
    def work():
        worker = fast.Worker({"x": np.zeros(4)}, "complete", deadline=20)
        for t in range(20):
            try:
                with worker.round():
                    if fast.rank() == 1 and t == 5:
                        raise KeyError("no more batches")
            except KeyError:
                break

    with pytest.raises(KeyError, match="no more batches"):
        fast.local.run(2, work)


@pytest.mark.parametrize("raised, found", [(RuntimeError, False), (ValueError, None)])
def test_only_tensors_without_an_address_are_elsewhere(raised, found):
    class Sparse:
        def data_ptr(self):
            raise raised("no address")

    def look():
        return fast._core.Members([], [Sparse()], [(0, 0)], [], [], 1).are_the_same()

    if found is None:
        with pytest.raises(raised):
            look()
    else:
        assert look() is found


def test_all_members_are_looked_at_in_each_call():
    parts = [{"_parameters": {"w": object()}, "_buffers": {"b": object()}, "_modules": {"m": object()}} for _ in range(3)]
    members = fast._core.Members(parts, [], [], [], [], 1)
    assert all(members.are_the_same() for _ in range(5))
    for part in parts:
        for kept in part.values():
            (name, before), = kept.items()
            kept[name] = object()
            assert not members.are_the_same()
            kept[name] = before
            assert members.are_the_same()


@pytest.mark.parametrize("error", [TypeError, RuntimeError])
def test_a_pytorch_whose_versions_change_one_by_one_has_another_way(monkeypatch, error):
    def one_by_one(tensor):
        raise error("increment_version expect a Tensor as input")

    monkeypatch.setattr(torch.autograd.graph, "increment_version", one_by_one, raising=False)
    assert fast.models._counting.__wrapped__() is torch._foreach_zero_


def test_a_module_that_refers_to_its_worker_is_freed():
    def work():
        module = torch.nn.Linear(2, 1)
        module.worker = fast.Worker(module, "complete", deadline=20)
        with module.worker.round():
            pass
        return weakref.ref(module)

    reference, = fast.local.run(1, work)
    gc.collect()
    assert reference() is None
