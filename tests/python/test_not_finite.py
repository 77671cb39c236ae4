"""Values that are not finite end the worker that has them, before another worker can read them."""
import fast_decentralized as fast
import numpy as np
import pytest
from fast_decentralized import _core

ROUNDS, ILL_ROUND = 12, 4


def train(x, spoil, algorithm="awc", **options):
    topology = {"pairwise": "random_matchings", "noloco": "random_matchings", "a2cid2": "random_matchings",
                "relay_sum": "grid1d", "diloco": "complete"}.get(algorithm, "ring")
    worker = fast.Worker({"x": x}, topology, algorithm=algorithm, deadline=20, **options)
    for step in range(ROUNDS):
        with worker.round(learning_rate=0.1):
            x += 0.1 * (1 - x)
            if fast.rank() == 1 and step == ILL_ROUND:
                spoil(x)
    worker.await_finish()
    return worker.mean_model()["x"]


def spoiled(x):
    x[3] = np.nan


@pytest.mark.parametrize("algorithm", [name for name in _core.algorithm_names if name != "awc_gasloc"])
def test_with_every_rule_nobody_is_infected(algorithm):
    others = []

    def work():
        x = np.zeros(9, np.float32)
        try:
            train(x, spoiled, algorithm)
        finally:
            if fast.rank() != 1:
                others.append(x)

    with pytest.raises(fast.NumericError, match='tensor "x".* is not finite'):
        fast.local.run(3, work)
    assert len(others) == 2 and all(np.isfinite(x).all() for x in others)


def test_infinity_is_not_finite_and_heal_keeps_its_meaning():
    def infinite(x):
        x[3] = -np.inf

    with pytest.raises(fast.NumericError, match="the option nan=heal"):
        fast.local.run(2, lambda: train(np.zeros(9), infinite))
    means = fast.local.run(2, lambda: train(np.zeros(9), infinite, nan="heal"))
    assert np.isfinite(means).all()


@pytest.mark.parametrize("end", ["close", "finish", "exit"])
def test_weights_that_are_not_finite_at_the_end_are_not_published(end):
    def work():
        x = np.zeros(9)
        with fast.Worker({"x": x}, "ring", deadline=20) as worker:
            with worker.round():
                pass
            if fast.rank() == 1:
                spoiled(x)
            if end != "exit":
                getattr(worker, end)()

    with pytest.raises(fast.NumericError, match='tensor "x"'):
        fast.local.run(2, work)


def test_a_loop_of_another_framework_looks_at_weights_though_it_gives_no_loss():
    torch = pytest.importorskip("torch")
    from fast_decentralized.loops import Loop

    def work():
        net = torch.nn.Linear(4, 1)
        loop = Loop(net, "ring", {"deadline": 20})
        for step in range(ROUNDS):
            loop.begin_round()
            if fast.rank() == 1 and step == ILL_ROUND:
                with torch.no_grad():
                    net.weight[0, 0] = float("nan")
            loop.end_round(0.1)

    with pytest.raises(fast.NumericError, match='tensor "weight"'):
        fast.local.run(2, work)
