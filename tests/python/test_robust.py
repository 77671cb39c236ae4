"""Robust averaging against NumPy: the formulas of He, Karimireddy, Jaggi 2022 and of the trimmed mean."""
import fast_decentralized as fast
import numpy as np
import pytest

ROUNDS = 3


def start(workers, dtype):
    """The last worker is bad."""
    values = np.random.default_rng(7).normal(size=(workers, 1000)).astype(dtype)
    values[-1] *= 500
    return values


def clipped(own, others, weight):
    distances = np.linalg.norm(others - own, axis=1)
    radius = np.sort(distances)[::-1][(len(others) + 1) // 3]
    shares = np.minimum(1, radius / distances)
    return own + weight * (shares[:, None] * (others - own)).sum(axis=0)


def trimmed(own, others, weight):
    values = np.sort(np.vstack([own, others]), axis=0)
    trim = len(values) // 3
    return values[trim:len(values) - trim].mean(axis=0)


def neighbors_of(topology, workers, me):
    if topology == "complete":
        return [j for j in range(workers) if j != me]
    return sorted({(me - 1) % workers, (me + 1) % workers})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("topology", ["ring", "complete"])
@pytest.mark.parametrize("workers", [3, 4, 7])
@pytest.mark.parametrize("robust, oracle", [("clip", clipped), ("trimmed_mean", trimmed)])
def test_rounds_are_those_of_numpy(dtype, topology, workers, robust, oracle):
    def work():
        x = start(workers, dtype)[fast.rank()].copy()
        this = fast.Worker({"x": x}, topology, robust=robust, initial="as_is", deadline=30)
        for _ in range(ROUNDS):
            with this.round():
                pass
        shares = this.stats.shares
        this.await_finish()
        return x, [(of.worker, of.reads, of.clipped, of.kept) for of in shares]

    results = fast.local.run(workers, work)
    expected = start(workers, dtype).astype(np.float64)
    for _ in range(ROUNDS):
        expected = np.stack([oracle(expected[i], expected[hood], 1 / (len(hood) + 1))
                             for i in range(workers) for hood in [neighbors_of(topology, workers, i)]])
    # Rounds add differences to own values: the bad worker rounds its next ones as its large ones, and others may take them.
    tolerance = 2 * ROUNDS * np.finfo(dtype).eps * np.abs(start(workers, dtype)).max()
    for me in range(workers - 1):
        found, shares = results[me]
        assert np.abs(found - expected[me]).max() < tolerance
        assert [of[0] for of in shares] == neighbors_of(topology, workers, me)
        assert all(of[1] == ROUNDS for of in shares)
        if robust == "clip" and shares[-1][0] == workers - 1:
            assert shares[-1][2] >= 1


def test_it_is_off_by_default_and_refused_with_a_reason():
    def work(**options):
        return fast.local.run(2, lambda: fast.Worker({"x": np.zeros(3)}, **options).stats.shares)

    assert work(topology="ring") == [[], []]
    with pytest.raises(fast.TopologyError, match="two neighbors"):
        work(topology="ring", robust="clip")
    with pytest.raises(fast.ArgumentError, match="robust averaging with algorithm push_sum"):
        work(topology="ring", robust="clip", algorithm="push_sum")
    with pytest.raises(fast.ArgumentError, match="none, clip or trimmed_mean"):
        work(topology="ring", robust="median")
