"""Signals while a rank waits for others: handlers of Python run, and the statuses of all ranks fit each other."""
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from test_failures import statuses_of


def interrupted(folder, wait, name):
    done, statuses = statuses_of(2, "interrupted.py", folder, wait, name)
    assert "the handler has not run" not in done.stderr, done.stderr
    return done, statuses


@pytest.mark.parametrize("wait", ["round", "finish", "end"])
def test_a_handler_that_exits_well_ends_its_rank_well_and_the_others_go_on(tmp_path, wait):
    done, statuses = interrupted(tmp_path, wait, "SIGTERM")
    assert statuses == {0: 0, 1: 0}, done.stderr
    assert done.returncode == 0 and "end 0" in done.stdout and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("wait, text", [
    ("allreduce", "rank 1 of 2 ended its worker while an exception passed, which ends the others: SystemExit"),
    ("constructor", "rank 1 of 2 ends within a call in which the others wait for it; its status is 1"),
    ("barrier", "rank 1 of 2 ends within a call in which the others wait for it; its status is 1")])
def test_a_handler_that_exits_where_all_are_needed_ends_all_with_a_status(tmp_path, wait, text):
    done, statuses = interrupted(tmp_path, wait, "SIGTERM")
    assert done.returncode != 0 and done.stderr.count(text) == 1, done.stderr
    assert 0 not in statuses.values() and "end" not in done.stdout, (statuses, done.stderr)


@pytest.mark.parametrize("wait", ["round", "finish", "barrier"])
def test_an_interrupt_ends_the_wait(tmp_path, wait):
    done, statuses = interrupted(tmp_path, wait, "SIGINT")
    assert done.returncode != 0 and done.stderr.count("\nKeyboardInterrupt") == 1, done.stderr
    assert statuses.get(1, 1) != 0 and "end 1" not in done.stdout, (statuses, done.stderr)


@pytest.mark.parametrize("wait, is_good", [("round", True), ("allreduce", False)])
def test_fastrun_has_the_status_of_the_ranks(started, tmp_path, wait, is_good):
    done = started(2, "interrupted.py", tmp_path, wait, "SIGTERM", launcher="fastrun", status=0 if is_good else 1)
    assert ("end 0" in done.stdout) == is_good, done.stdout + done.stderr


INTERRUPTED = """
import fast_decentralized as fast
import numpy as np
worker = fast.Worker({"x": np.zeros(1)}, "complete")
print("ready\\n", end="", flush=True)
while True:
    with worker.round():
        pass
"""


@pytest.mark.parametrize("launcher", ["mpiexec", "fastrun"])
def test_an_interrupt_of_all_ranks_is_told_once(launcher):
    if shutil.which(launcher) is None:
        pytest.skip(f"{launcher} is not in the path")
    ranks = subprocess.Popen([launcher, "-n", "4", sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, text=True, start_new_session=True)
    for _ in range(4):
        assert ranks.stdout.readline() == "ready\n"
    os.killpg(ranks.pid, signal.SIGINT)  # as a terminal does
    _, errors = ranks.communicate(timeout=300)
    assert ranks.returncode != 0 and len(re.findall("^KeyboardInterrupt", errors, re.MULTILINE)) == 1, errors
