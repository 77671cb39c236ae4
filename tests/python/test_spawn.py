"""Workers as processes, from Python."""
import fast_decentralized as fast
import numpy as np
import pytest


def average(start):
    x = np.array([start + fast.rank()])
    worker = fast.Worker({"x": x}, "complete", initial="as_is", deadline=30)
    with worker.round():
        pass
    return float(x[0]), fast.size(), worker.stats, worker.departed()


def fail_on(rank):
    if fast.rank() == rank:
        raise ValueError(f"rank {rank} has no data")
    fast.Worker({"x": np.zeros(3)}, deadline=30)


@pytest.mark.parametrize("launcher", [None, "fastrun"])
def test_results_come_by_rank(launcher):
    results = fast.spawn(3, average, 5.0, launcher=launcher)
    assert [(*result[:2], result[2].rounds, result[3].lost) for result in results] == [(6.0, 3, 1, [])] * 3


def test_an_exception_of_a_rank_is_raised_with_its_traceback(capfd):
    with pytest.raises(RuntimeError, match="worker 1: (.|\n)*ValueError: rank 1 has no data"):
        fast.spawn(2, fail_on, 1)
    assert "Traceback" not in capfd.readouterr().err


def test_no_workers_and_no_launcher_are_refused():
    with pytest.raises(fast.ArgumentError, match="at least 1 is required"):
        fast.spawn(0, average, 0.0)
    with pytest.raises(fast.ResourceError, match="no_such is not in the path"):
        fast.spawn(1, average, 0.0, launcher="no_such")
