"""Ranks that raise, are killed or are stopped: one message, and every rank ends."""
import pathlib
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from fast_decentralized import implementation

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


def require_mpi4py():
    try:
        from mpi4py import rc
        rc.initialize = False  # the ranks of the tests are other processes
        from mpi4py import MPI  # noqa: F401
    except (ImportError, RuntimeError) as error:  # not installed, or for another MPI
        pytest.skip(str(error))


@pytest.mark.parametrize("how, ranks, text", [
    ("raise", 3, "ValueError: no more batches"), ("between", 2, "ValueError: no more batches"),
    ("shape", 3, "MismatchError: Worker: worker 0 has 7 f64"), ("option", 2, "MismatchError"),
    ("topology", 2, 'TopologyError: topology: there is no "taurus"')])
def test_a_failure_is_told_once_and_ends_all_ranks(started, how, ranks, text):
    done = started(ranks, "fails.py", how, status=1)
    assert done.stderr.count(text) == 1, done.stderr
    assert done.stderr.count("Traceback") == 1 and "ended" not in done.stdout, done.stderr


def test_a_failure_before_the_first_worker_ends_all_ranks(started):
    """The library waits 10 s for ranks that may fail alike. So both runs are at the same time."""
    with ThreadPoolExecutor() as threads:
        raised, left = threads.map(lambda how: started(3, "fails.py", how, status=1), ["early", "early exit"])
    assert raised.stderr.count("ValueError: no data") == raised.stderr.count("Traceback") == 1, raised.stderr
    assert left.stderr.count("no data") == 1 and "Traceback" not in left.stderr, left.stderr
    assert "ended" not in raised.stdout + left.stdout


def test_a_failure_that_another_hook_prints_ends_all_ranks(started):
    done = started(3, "fails.py", "hook", status=1)
    assert done.stderr.count("hook: no more batches") == 1, done.stderr
    assert done.stderr.count("Traceback") == 0 and "ended" not in done.stdout, done.stderr


def statuses_of(ranks, program, *arguments):
    """What each rank ends with."""
    rank = 'python -B "$@"; status=$?; echo "rank ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} ended with $status" >&2; exit $status'
    done = subprocess.run(["mpiexec", "-n", str(ranks), "sh", "-c", rank, "sh", PROGRAMS / program, *arguments],
                          capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    found = re.findall(r"^rank (\d) ended with (\d+)$", done.stderr, re.MULTILINE)
    return done, {int(rank): int(status) for rank, status in found}


def are_those(statuses, expected):
    """Of a run that fails. Open MPI's launcher ends the other ranks when the first one has failed."""
    if implementation.of_this_package() == "Open MPI":
        return bool(statuses) and statuses.items() <= expected.items()
    return statuses == expected


@pytest.mark.parametrize("how, ranks, status, text", [
    ("raise", 3, 3, "rank 1 of 3 ends with status 3"), ("exit", 2, 3, "rank 1 of 2 ends with status 3"),
    ("derived", 2, 3, "rank 1 of 2 ends with status 3"), ("text", 2, 1, "no more batches"), ("other", 2, 1, "(3, 4)")])
def test_a_system_exit_between_rounds_ends_all_ranks(how, ranks, status, text):
    done, statuses = statuses_of(ranks, "exits.py", how)
    assert done.returncode != 0 and done.stderr.count(text) == 1, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    if "Abort(" not in done.stderr:  # where the others do not come within 10 s, the launcher ends all
        assert are_those(statuses, {**dict.fromkeys(range(ranks), 1), 1: status}), done.stderr


@pytest.mark.parametrize("how", ["well", "none"])
def test_a_system_exit_of_status_0_is_a_good_end(how):
    done, statuses = statuses_of(2, "exits.py", how)
    assert done.returncode == 0 and statuses == {0: 0, 1: 0}, done.stderr
    assert len(done.stderr.splitlines()) == 2, done.stderr


def test_an_exit_that_is_caught_ends_nothing(started):
    done = started(2, "fails.py", "caught exit")
    assert done.stdout.count("ended: 300 rounds") == 2 and done.stderr == "", done.stderr


@pytest.mark.parametrize("how", ["kill", "kill between two averages"])
def test_the_others_go_on_when_a_rank_is_killed(started, how):
    done = started(3, "fails.py", how, launcher="fastrun")
    assert "signal 9" in done.stderr + done.stdout
    for rank in (0, 2):
        assert f"rank {rank} ended: 300 rounds, skipped True" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["stop", "stop between two averages"])
def test_a_rank_that_was_stopped_comes_back(started, how):
    done = started(3, "fails.py", how)
    assert "rank 0 ended: 1000 rounds, skipped True" in done.stdout, done.stdout + done.stderr
    assert re.search("rank 1 ended: 1000 rounds, skipped (True|False), rejoined True", done.stdout), done.stdout + done.stderr


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


@pytest.mark.parametrize("how", ["exit", "raise", "status", "close", "round", "multiprocessing"])
def test_the_end_of_a_forked_child_ends_nothing(started, how):
    done = started(2, "forks.py", how)
    assert done.stdout.count("ended: 201 rounds") == 2, done.stdout + done.stderr
    assert done.stdout.count("this process was forked from the one that has the worker") == 1, done.stdout
    assert done.stderr.count("Traceback") == (how in ("raise", "round")), done.stderr


def test_a_forked_child_ends_by_a_signal_that_would_stop_its_parent(started):
    done = started(2, "forks.py", "terminate")
    assert done.stdout.count("ended: 201 rounds") == 2, done.stdout + done.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_that_was_started_anew_knows_its_place_and_has_no_worker(started, method):
    """MPI would begin as the same rank a second time."""
    done = started(2, "children.py", method)
    error = "this process was started by multiprocessing from a rank of MPI, whose place it cannot take; use the worker in that rank"
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} has 0.5; its child: 0, {rank} of 2, {error}" for rank in range(2)], \
        done.stdout + done.stderr


@pytest.mark.parametrize("launcher", ["mpiexec", "fastrun"])
@pytest.mark.parametrize("method", ["subprocess", "environment", "system"])
def test_a_program_that_a_rank_starts_is_no_rank(started, method, launcher):
    """It inherits the variables of the rank, and by os.system() also the rank's connection to the process manager."""
    done = started(2, "starts.py", method, launcher=launcher)
    assert done.stderr.count("ArgumentError: Environment: this process was started by rank 0 of 2 (process ") == 1, done.stderr
    assert "or start this program by mpiexec -n 1" in done.stderr, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0 has 0.5", "rank 1 has 0.5", "status 1"], done.stdout + done.stderr


def test_ranks_of_mpiexec_that_a_rank_starts_are_ranks(started):
    done = started(2, "starts.py", "mpiexec")
    assert sorted(done.stdout.splitlines()) == ["child 0 of 2", "child 1 of 2", "rank 0 has 0.5", "rank 1 has 0.5", "status 0"], \
        done.stdout + done.stderr


@pytest.mark.parametrize("how, ranks, text", [
    ("comm", 2, "ArgumentError: Worker: comm is a int"), ("observer", 2, "ArgumentError: Observer: Listener has on_phases"),
    ("topology", 3, 'TopologyError: topology: there is no "nope"'), ("state", 2, "DataError: load_state_dict"),
    ("damaged", 2, "DataError: load_state_dict: tensor 0"), ("rebind", 3, "MismatchError: rebind"),
    ("scalar", 2, 'ArgumentError: Worker: scalar "x"'), ("moved", 2, 'MismatchError: Worker: tensor "x" is not where it was')])
def test_an_error_of_all_ranks_is_told_once(how, ranks, text):
    done, statuses = statuses_of(ranks, "fails_alike.py", how)
    assert done.stderr.count(text) == done.stderr.count("Traceback") == 1, done.stderr
    assert are_those(statuses, dict.fromkeys(range(ranks), 1)) and "ended" not in done.stdout, done.stderr


@pytest.mark.parametrize("how", ["step", "between", "closed"])
def test_a_failure_in_a_thread_ends_all_ranks(how):
    done, statuses = statuses_of(3, "fails_in_a_thread.py", how)
    assert are_those(statuses, {0: 1, 1: 1, 2: 1}), done.stderr
    assert done.stderr.count("ValueError: no more batches") == done.stderr.count("Traceback") == 1, done.stderr
    assert "trained" not in done.stdout and done.stdout.count("at the end") == 3, done.stdout


def test_a_worker_that_fails_at_the_end_of_the_program_ends_all_ranks():
    done, statuses = statuses_of(3, "fails_at_the_end.py")
    assert are_those(statuses, {0: 1, 1: 1, 2: 1}), done.stderr
    assert done.stderr.count("RuntimeError: a kernel failed") == done.stderr.count("Traceback") == 1, done.stderr


@pytest.mark.parametrize("how, text", [("round", "ValueError: no more batches"),
                                       ("call", "ArgumentError: Worker: scalar \"loss\" is a str ('no more batches')")])
def test_an_error_that_the_program_drops_is_told_at_its_end(started, how, text):
    done = started(2, "drops.py", how, status=1)
    assert done.stderr.count(text) == done.stderr.count("rank 1 of 2 ended its worker while an exception passed") == 1, done.stderr
    assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("how", ["exit in a round", "exit in a with statement", "generator"])
def test_an_exit_of_status_0_and_the_close_of_a_generator_end_a_worker_well(how):
    done, statuses = statuses_of(2, "drops.py", how)
    assert statuses == {0: 0, 1: 0} and len(done.stderr.splitlines()) == 2, done.stderr


@pytest.mark.parametrize("end, how, ranks, text", [
    ("finish", "round", 1, "ArgumentError: Worker: begin_round() was called after finish()"),
    ("await_finish", "round", 2, "ArgumentError: Worker: begin_round() was called after finish()"),
    ("await_finish", "scalar", 2, 'ArgumentError: Worker: scalar "loss" is a str'),
    ("finish", "with", 2, "ValueError: of the program")])
def test_an_error_after_the_end_of_training_is_told_once(end, how, ranks, text):
    done, statuses = statuses_of(ranks, "fails_after.py", end, how)
    assert done.stderr.count(text) == (ranks if how == "with" else 1), done.stderr
    assert done.stdout == "" and are_those(statuses, dict.fromkeys(range(ranks), 1)), done.stderr


@pytest.mark.parametrize("how", ["ranks", "local"])
def test_a_program_that_ends_while_a_daemon_thread_trains_says_so(how):
    ranks = 3 if how == "ranks" else 1
    done, statuses = statuses_of(ranks, "daemon.py", how)
    assert are_those(statuses, dict.fromkeys(range(ranks), 1)), done.stderr
    assert done.stderr.count("ends while a daemon thread trains") == 1 and "Traceback" not in done.stderr, done.stderr


def test_a_daemon_thread_that_has_trained_may_go_on():
    done, statuses = statuses_of(3, "daemon.py", "finished")
    assert statuses == {0: 0, 1: 0, 2: 0} and done.stdout.count("finished") == 3, done.stderr
