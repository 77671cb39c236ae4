"""Ranks that raise, are killed or are stopped: one message, and every rank ends."""
import re

import pytest


def require_mpi4py():
    try:
        from mpi4py import rc
        rc.initialize = False  # the ranks of the tests are other processes
        from mpi4py import MPI  # noqa: F401
    except (ImportError, RuntimeError) as error:  # not installed, or for another MPI
        pytest.skip(str(error))


@pytest.mark.parametrize("how, text", [
    ("raise", "ValueError: no more batches"), ("between", "ValueError: no more batches"),
    ("early", "ValueError: no data"),
    ("shape", "MismatchError: Worker: worker 0 has 7 f64"), ("option", "MismatchError"),
    ("topology", 'TopologyError: topology: there is no "taurus"')])
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_failure_is_told_once_and_ends_all_ranks(started, ranks, how, text):
    done = started(ranks, "fails.py", how, status=1)
    assert done.stderr.count(text) == 1, done.stderr
    assert done.stderr.count("Traceback") == 1 and "ended" not in done.stdout, done.stderr


@pytest.mark.parametrize("how, text", [("exit", "rank 1 of 3 ends with status 3"), ("early exit", "no data"),
                                       ("hook", "hook: no more batches")])
def test_a_rank_that_ends_in_another_way_ends_all_ranks(started, how, text):
    done = started(3, "fails.py", how, status=1)
    assert done.stderr.count(text) == 1, done.stderr
    assert done.stderr.count("Traceback") == 0 and "ended" not in done.stdout, done.stderr


def test_an_exit_that_is_caught_ends_nothing(started):
    done = started(2, "fails.py", "caught exit")
    assert done.stdout.count("ended: 300 rounds") == 2 and done.stderr == "", done.stderr


def test_the_others_go_on_when_a_rank_is_killed(started):
    done = started(3, "fails.py", "kill", launcher="fastrun")
    assert "signal 9" in done.stderr + done.stdout
    for rank in (0, 2):
        assert f"rank {rank} ended: 300 rounds, skipped True" in done.stdout, done.stdout + done.stderr


def test_a_rank_that_was_stopped_comes_back(started):
    done = started(3, "fails.py", "stop")
    assert "rank 0 ended: 300 rounds, skipped True" in done.stdout, done.stdout + done.stderr
    assert re.search("rank 1 ended: 300 rounds, skipped (True|False), rejoined True", done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize("group", ["threads", "comm"])
def test_an_error_of_a_part_of_the_ranks_is_told_once(started, group):
    if group == "comm":
        require_mpi4py()
    done = started(3, "fails_in_part.py", group, status=1)
    assert done.stderr.count("MismatchError: Worker: worker 0 has 3 f64") == 1, done.stderr
    assert done.stderr.count("Traceback") == 1, done.stderr


def test_ranks_outside_a_communicator_need_no_worker(started):
    require_mpi4py()
    done = started(3, "part.py")
    assert sorted(done.stdout.splitlines()) == ["rank 1 has 1.5", "rank 2 has 1.5"], done.stdout + done.stderr
