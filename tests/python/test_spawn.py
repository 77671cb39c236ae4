"""Workers as processes, from Python."""
import subprocess
import sys

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


def test_a_script_that_does_not_guard_its_start_is_told_in_one_line(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text("import fast_decentralized as fast\n\n\ndef work():\n    return fast.rank()\n\n\nfast.spawn(2, work)\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1, done.stderr
    last = done.stderr.rstrip().split("\n")[-1]
    assert last.startswith("RuntimeError: spawn: ") and 'if __name__ == "__main__":' in last, done.stderr


def test_counters_are_printed_with_their_names():
    results = fast.local.run(1, lambda: fast.Worker({"x": np.zeros(3)}, deadline=30).stats)
    text = repr(results[0])
    assert text.startswith("WorkerStats(rounds=0, step_s=0.0, wait_s=") and "mean_drift_weight=0.0, shares=[])" in text
    assert f"ages={[0] * 16}" in text


def exit_on(rank):
    if fast.rank() == rank:
        sys.exit(0)
    return fast.rank()


def test_a_rank_without_a_result_is_an_error():
    with pytest.raises(RuntimeError, match="worker 1 ended without a result; let the function return"):
        fast.spawn(2, exit_on, 1)


def test_of_fastrun_such_a_rank_has_none():
    assert fast.spawn(2, exit_on, 1, launcher="fastrun") == [0, None]
