"""Options by the names of the library's table, and errors that carry its text."""
import fast_decentralized as fast
import numpy as np
import pytest


def worker(**options):
    return fast.local.run(1, lambda: fast.Worker({"x": np.zeros(3)}, **options))


@pytest.mark.parametrize("options, text", [
    ({"stalenes": 1}, 'option "stalenes" is unknown; choose .* did you mean "staleness"'),
    ({"staleness": -1}, "option staleness: -1; a whole number, 0 or more, or inf is required"),
    ({"staleness": "much"}, "option staleness"), ({"deadline": 0}, "option deadline: 0; a positive"),
    ({"codec": "zip"}, "option codec.*choose identity"), ({"algorithm": "sgd"}, "option algorithm.*choose none, awc"),
    ({"algorithm_option": {"period": 3}}, "period"), ({"nan": "ignore"}, "abort or heal"),
    ({"lazy_weights": "maybe"}, "lazy_weights")])
def test_bad_options_are_refused_with_the_text_of_the_library(options, text):
    with pytest.raises(fast.ArgumentError, match=text):
        worker(**options)


def test_every_option_of_the_table_is_taken_and_documented():
    for row in fast.options():
        if row["default"]:
            worker(**{row["name"]: row["default"]})
        assert row["name"] in fast.Worker.__doc__ and row["help"] in fast.Worker.__doc__


def test_values_of_python_become_those_of_the_library():
    worker(staleness=float("inf"), lazy_weights=np.bool_(True), deadline=2.5, suspect_after=3.0, mix_every=np.int64(2),
           remote_rate=np.float64(1.5), algorithm="local", algorithm_option={"period": 3})


def test_an_unknown_topology_lists_the_names():
    with pytest.raises(fast.TopologyError, match="torus2d"):
        fast.local.run(1, lambda: fast.Worker({"x": np.zeros(3)}, "taurus"))


def test_errors_are_python_errors_of_their_kinds():
    for name, kind, base in [("ArgumentError", "argument", ValueError), ("DeadlineError", "deadline", TimeoutError),
                             ("NumericError", "numeric", ArithmeticError), ("PeerFailedError", "peer_failed", RuntimeError)]:
        error = getattr(fast, name)
        assert issubclass(error, fast.Error) and issubclass(error, base) and error.kind == kind


def test_a_loss_that_is_not_finite_is_refused():
    def work():
        this = fast.Worker({"x": np.zeros(3)}, "ring", deadline=20)
        this.step(lambda: float("nan") if fast.rank() == 1 else 1.0)
        this.step(lambda: 1.0)

    with pytest.raises(fast.NumericError, match="the loss of worker 1 in round 0 is nan"):
        fast.local.run(2, work)


def test_bad_weights_are_healed_on_request():
    healed = []

    def work():
        x = np.ones(3)
        this = fast.Worker({"x": x}, "ring", nan="heal", on_healed=lambda: healed.append(fast.rank()))
        for t in range(3):
            with this.round():
                if t == 1 and fast.rank() == 0:
                    x[1] = np.nan
        assert np.isfinite(x).all()
        return this.stats.healed

    assert fast.local.run(2, work) == [1, 0] and healed == [0]


def test_functions_are_called_after_rounds_and_may_raise():
    seen = []

    def work():
        this = fast.Worker({"x": np.zeros(3)}, on_round=lambda n: seen.append(n) if n < 3 else 1 / 0)
        for _ in range(5):
            with this.round():
                pass

    with pytest.raises(ZeroDivisionError):
        fast.local.run(1, work)
    assert seen == [1, 2]
