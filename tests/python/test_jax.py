"""Pytrees of JAX arrays: functional."""
import os
import pathlib
import subprocess
import sys

import fast_decentralized as fast
import numpy as np
import pytest
from fast_decentralized import jax_model

jax = pytest.importorskip("jax")
jnp = jax.numpy


def params(seed):
    return {"layers": [{"w": jnp.full((2, 3), float(seed)), "b": jnp.zeros(3)}], "scale": jnp.array(1.0), "count": 3}


def test_combined_params_are_new_arrays():
    def work():
        mine = params(fast.rank())
        worker = fast.Worker(mine, "complete", initial="as_is")
        combined = worker.combine(mine)
        again = worker.combine(combined)
        assert mine["layers"][0]["w"][0, 0] == fast.rank() and isinstance(combined["layers"][0]["w"], jax.Array)
        return combined["layers"][0]["w"].tolist(), combined["count"], again["layers"][0]["w"].tolist()

    assert fast.local.run(2, work) == [([[0.5] * 3] * 2, 3, [[0.5] * 3] * 2)] * 2


def test_a_step_is_added_to_the_average():
    def work():
        mine = {"x": jnp.array([float(fast.rank())])}
        worker = fast.Worker(mine, "complete", initial="as_is")
        return worker.combine(jax.tree_util.tree_map(lambda p: p + 10 * fast.rank(), mine))["x"].item()

    assert fast.local.run(2, work) == [0.5, 10.5]


def test_all_begin_with_the_params_of_worker_0():
    def work():
        worker = fast.Worker({"x": jnp.full(2, float(fast.rank() + 4))})
        return worker.combine(worker.params)["x"].tolist()

    assert fast.local.run(3, work) == [[4, 4]] * 3


def test_steps_from_other_params_are_refused():
    def work():
        mine = {"x": jnp.full(2, float(fast.rank()))}
        worker = fast.Worker(mine)
        worker.combine(mine)

    with pytest.raises(fast.ArgumentError, match="take params = worker.params"):
        fast.local.run(2, work)


def test_bfloat16_is_averaged():
    def work():
        mine = {"x": jnp.full(3, float(2 * fast.rank()), jnp.bfloat16)}
        combined = fast.Worker(mine, "complete", initial="as_is").combine(mine)["x"]
        return combined.tolist(), str(combined.dtype)

    assert fast.local.run(2, work) == [([1.0] * 3, "bfloat16")] * 2


def test_the_mean_model_is_a_pytree():
    def work():
        mine = params(fast.rank())
        worker = fast.Worker(mine, "ring", initial="as_is", algorithm="none")
        worker.await_finish()
        mean = worker.mean_model()
        assert jax.tree_util.tree_structure(mean) == jax.tree_util.tree_structure(mine)
        return mean["layers"][0]["w"][0, 0].item()

    assert fast.local.run(4, work) == [1.5] * 4


@pytest.mark.parametrize("changed, text", [
    (lambda p: {"y": p["x"]}, "the pytree is"), (lambda p: {"x": p["x"][:1]}, '"x" is float32'),
    (lambda p: {"x": p["x"].astype(jnp.float16)}, '"x" is float16')])
def test_other_params_than_at_the_start_are_refused(changed, text):
    def work():
        mine = {"x": jnp.zeros(2)}
        fast.Worker(mine).combine(changed(mine))

    with pytest.raises(fast.MismatchError, match=text):
        fast.local.run(1, work)


def test_a_model_that_changes_in_place_has_no_combine():
    with pytest.raises(fast.ArgumentError, match="changes in place"):
        fast.local.run(1, lambda: fast.Worker({"x": np.zeros(2)}).combine({}))


def test_leaves_that_are_no_arrays_stay_with_their_worker():
    def work():
        mine = {"x": jnp.full(2, float(fast.rank())), "f64": np.full(2, fast.rank() + 0.1), "rate": 0.1 * fast.rank(),
                "number": np.float64(fast.rank()), "function": jnp.tanh, "text": "relu", "none": None,
                "indices": np.full(2, fast.rank())}
        worker = fast.Worker(mine, "complete", initial="as_is", deadline=20)
        once = worker.combine(mine)
        twice = worker.combine(once)
        assert twice["function"] is jnp.tanh and twice["text"] == "relu" and twice["none"] is None
        assert twice["f64"].dtype == jnp.asarray(np.zeros(2)).dtype
        assert type(twice["rate"]) is float and type(twice["number"]) is np.float64
        np.testing.assert_allclose(once["f64"], 0.6, rtol=1e-6)
        np.testing.assert_allclose(twice["f64"], 0.6, rtol=1e-6)
        return twice["x"].tolist(), twice["rate"], twice["number"], twice["indices"].tolist()

    assert fast.local.run(2, work) == [([0.5] * 2, 0.1 * rank, rank, [rank] * 2) for rank in range(2)]


@pytest.mark.parametrize("round_of", ["round", "step", "halves", "combine within"])
def test_a_round_without_combine_is_refused(round_of):
    def work():
        mine = {"x": jnp.zeros(2)}
        worker = fast.Worker(mine, deadline=20)
        mine = worker.combine(mine)
        if round_of == "step":
            worker.step(lambda: 0.5)
        elif round_of == "halves":
            worker.begin_round()
            worker.end_round()
        else:
            with worker.round():
                mine = worker.combine(mine) if round_of == "combine within" else {"x": mine["x"] + 1}

    with pytest.raises(fast.ArgumentError, match="use params = worker.combine"):
        fast.local.run(2, work)


def test_combine_may_be_the_second_half_of_a_round():
    def work():
        worker = fast.Worker({"x": jnp.full(2, float(fast.rank()))}, "complete", initial="as_is", deadline=20)
        worker.begin_round()
        return worker.combine({"x": jnp.full(2, fast.rank() + 1.0)})["x"].tolist(), worker.rounds

    assert fast.local.run(2, work) == [([1.5] * 2, 1)] * 2


def test_rebind_takes_other_params():
    def work():
        worker = fast.Worker({"x": jnp.zeros(2)}, "complete", deadline=20)
        loaded = {"x": jnp.full(2, float(4 * fast.rank()))}
        worker.rebind(loaded)
        worker.republish()
        return worker.combine(loaded)["x"].tolist()

    assert fast.local.run(2, work) == [[2.0] * 2] * 2


def test_rebind_refuses_what_is_another_model():
    with pytest.raises(fast.MismatchError, match="Worker.rebind: the pytree is"):
        fast.local.run(1, lambda: fast.Worker({"x": jnp.zeros(2)}).rebind({"y": jnp.zeros(2)}))


@pytest.mark.parametrize("chosen", [None, lambda name: name == "x"])
def test_a_step_may_free_the_arrays_that_it_is_given(chosen):
    """By donate_argnums. "count" does not take part, nor does "h" if it is not chosen."""
    step = jax.jit(lambda p: jax.tree_util.tree_map(lambda leaf: leaf + 1, p), donate_argnums=0)

    def work():
        mine = {"x": jnp.zeros(3), "h": jnp.zeros(3), "count": jnp.zeros((), int), "key": jax.random.PRNGKey(0)}
        worker = fast.Worker(mine, "complete", initial="as_is", participates=chosen, deadline=20)
        mine = step(mine)
        assert worker.mean_model()["count"].item() == 0
        for _ in range(3):
            mine = step(worker.combine(mine))
            assert not any(leaf.is_deleted() for leaf in worker.mean_model().values())
        mean = worker.mean_model()
        made = step(mine)
        mine = worker.combine(made)
        step(made)
        mean_of_now = worker.mean_model()
        return [int(tree["count"]) for tree in (mean, mine, mean_of_now)], mean["h"].tolist(), mine["h"].tolist()

    assert [found[0] for found in fast.local.run(2, work)] == [[3, 5, 5]] * 2


def test_types_that_are_not_averaged_are_refused_by_name():
    with pytest.raises(fast.ArgumentError, match='tensor "c" has elements of float8_e4m3fn; float32, float64'):
        fast.local.run(2, lambda: fast.Worker({"x": jnp.zeros(2), "c": jnp.zeros(2, "float8_e4m3fn")}))


def test_complex_arrays_are_averaged_and_others_stay_with_their_worker():
    def work():
        mine = {"c": jnp.full((2, 1), fast.rank() + 2j * fast.rank()), "empty": jnp.zeros((0, 3)),
                "low": jnp.full(2, 1.0 + fast.rank(), "float8_e4m3fn")}
        worker = fast.Worker(mine, "complete", initial="as_is", buffers=["low"], deadline=20)
        mine = worker.combine(mine)
        worker.await_finish()
        mean = worker.mean_model()
        assert mine["empty"].shape == mean["empty"].shape == (0, 3)
        return mine["c"].tolist(), mean["c"].tolist(), mine["low"].astype("float32").tolist()

    expected = [[0.5 + 1j]] * 2
    assert fast.local.run(2, work) == [(expected, expected, [1.0 + rank] * 2) for rank in range(2)]


def test_initial_weights_that_are_no_numbers_are_refused():
    def work():
        mine = {"x": jnp.full(3, jnp.nan), "y": jnp.full(2, jnp.nan, jnp.bfloat16), "z": jnp.ones(1)}
        with pytest.raises(fast.NumericError, match="not finite"):
            fast.Worker(mine, "complete", initial="as_is", deadline=20)

    fast.local.run(2, work)


def places(params):
    return {name: leaf.unsafe_buffer_pointer() for name, leaf in params.items()}


def test_donated_params_are_averaged_where_they_are():
    def work():
        mine = {"x": jnp.arange(1000.0) + fast.rank(), "h": jnp.full(3, float(2 * fast.rank()), jnp.bfloat16)}
        worker = fast.Worker(mine, "complete", initial="as_is", deadline=20)
        before = places(mine)
        combined = worker.combine(mine, donate=True)
        assert all(leaf.is_deleted() for leaf in mine.values())
        assert places(combined) == before
        return combined["x"].tolist(), combined["h"].tolist()

    assert fast.local.run(2, work) == [([k + 0.5 for k in range(1000)], [1.0] * 3)] * 2


def test_donated_params_that_something_else_refers_to_are_copied():
    def work():
        mine = {"x": jnp.arange(100.0) + fast.rank()}
        seen = np.asarray(mine["x"])
        combined = fast.Worker(mine, "complete", initial="as_is", deadline=20).combine(mine, donate=True)
        return seen.tolist() == [k + fast.rank() for k in range(100)], combined["x"].tolist()

    assert fast.local.run(2, work) == [(True, [k + 0.5 for k in range(100)])] * 2


def test_work_that_still_reads_donated_params_sees_them_as_they_were():
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 200, lambda _, y: jnp.sin(y @ y / 300), x).sum() * 0 + x.sum())

    def work():
        made = {"x": jnp.full((300, 300), float(fast.rank()))}
        worker = fast.Worker(made, "complete", initial="as_is", deadline=20)
        total = slow(made["x"])
        combined = worker.combine(made, donate=True)
        return total.item(), combined["x"][0, 0].item()

    assert fast.local.run(2, work) == [(0.0, 0.5), (90000.0, 0.5)]


@pytest.mark.parametrize("donate", [False, True])
@pytest.mark.parametrize("algorithm", ["awc", "gradient_tracking", "local"])
def test_arrays_that_the_worker_has_given_do_not_change(donate, algorithm):
    step = jax.jit(lambda p: jax.tree_util.tree_map(lambda leaf: leaf + 1, p))

    def work():
        worker = fast.Worker({"x": jnp.full(3, float(fast.rank()))}, "complete", initial="as_is", algorithm=algorithm,
                             deadline=20)
        kept = [worker.params]
        for _ in range(4):
            kept.append(worker.combine(step(kept[-1]), learning_rate=0.1, donate=donate))
            kept += [worker.params, worker.mean_model()]
            seen = [params["x"].tolist() for params in kept]
            worker.begin_round()
            kept.append(worker.combine({"x": jnp.full(3, 100.0)}, learning_rate=0.1, donate=donate))
            assert [params["x"].tolist() for params in kept[:-1]] == seen
        worker.finish()
        assert [params["x"].tolist() for params in kept[:len(seen)]] == seen

    fast.local.run(2, work)


def test_leaves_that_are_the_same_array_are_averaged_apart():
    def work():
        one = jnp.full(3, float(fast.rank()))
        worker = fast.Worker({"a": one, "b": one}, "complete", initial="as_is", deadline=20)
        combined = worker.combine({"a": one, "b": one})
        combined = worker.combine({"a": combined["a"], "b": combined["a"] + 1})
        return combined["a"].tolist(), combined["b"].tolist()

    assert fast.local.run(2, work) == [([0.5] * 3, [1.5] * 3)] * 2


def test_leaves_that_are_the_same_array_may_be_donated():
    def work():
        one = jnp.full(3, float(fast.rank()))
        worker = fast.Worker({"a": one, "b": one, "c": one + 1}, "complete", initial="as_is", deadline=20)
        combined = worker.combine({"a": one, "b": one, "c": one + 1}, donate=True)
        assert one.is_deleted()
        combined = worker.combine({"a": combined["a"], "b": combined["a"] + 1, "c": combined["a"]}, donate=True)
        return [combined[name].tolist() for name in "abc"]

    assert fast.local.run(2, work) == [[[0.5] * 3, [1.5] * 3, [0.5] * 3]] * 2


def test_donated_params_whose_memory_numpy_does_not_share_are_averaged_in_copies(monkeypatch):
    monkeypatch.setattr(jax_model, "_memory_of", lambda array: None)

    def work():
        mine = {"x": jnp.full(3, float(fast.rank()))}
        return fast.Worker(mine, "complete", initial="as_is", deadline=20).combine(mine, donate=True)["x"].tolist()

    assert fast.local.run(2, work) == [[0.5] * 3] * 2


@pytest.mark.parametrize("donate", [False, True])
def test_arrays_elsewhere_are_averaged_in_copies(donate, monkeypatch):
    """As those of a GPU, or of several devices."""
    monkeypatch.setattr(jax_model, "_are_on_one_processor", lambda arrays: False)

    def work():
        mine = {"x": jnp.full(3, float(fast.rank())), "h": jnp.full(2, float(2 * fast.rank()), jnp.bfloat16)}
        worker = fast.Worker(mine, "complete", initial="as_is", deadline=20)
        once = worker.combine(mine, donate=donate)
        twice = worker.combine({"x": once["x"] + fast.rank(), "h": once["h"]}, donate=donate)
        assert mine["x"].tolist() == [fast.rank()] * 3
        worker.await_finish()
        return [(one["x"].tolist(), one["h"].tolist()) for one in (once, twice, worker.mean_model())]

    def weights(x):
        return [x] * 3, [1.0] * 2

    assert fast.local.run(2, work) == [[weights(0.5), weights(0.5 + rank), weights(1.0)] for rank in range(2)]


def test_arrays_return_to_the_devices_that_they_were_on():
    """JAX has as many devices as it is told at its start."""
    program = pathlib.Path(__file__).resolve().parent / "programs" / "shards.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL,
                          env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=3"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["x [0.5, 0.5, 0.5, 0.5] [0, 2] True", "y [0.5, 0.5] [1] True", "z [0.5, 0.5] [0] False"] * 2
