"""Spares: ranks that take the place of lost workers, or join."""
import re
import shutil
import subprocess
import sys
import pathlib

import fast_decentralized as fast
import numpy as np
import pytest
from fast_decentralized import _core

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


def has_gpu():
    if not _core.has_cuda:
        return False
    torch = pytest.importorskip("torch")
    return torch.cuda.is_available()


@pytest.fixture(params=["host", "gpu"])
def python(request):
    """What runs a program, its weights being there."""
    if request.param == "host":
        return [sys.executable]
    if not has_gpu():
        pytest.skip("a GPU that PyTorch can use, and a package with fast::cuda, are required")
    return [sys.executable, PROGRAMS / "on_gpu.py"]


def fastrun(*options):
    if shutil.which("fastrun") is None:
        pytest.skip("fastrun is not in the path")
    done = subprocess.run(["fastrun", *options], capture_output=True, text=True, timeout=150, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stdout + done.stderr


def test_a_spare_joins_and_the_mean_goes_to_the_optimum_of_all(python):
    """The mean of the targets 0, 10 and 20 is 10; without the newcomer it is 5."""
    output, all_output = fastrun("-n", "2", "--spares", "1", "--grow-at", "0.3", *python, PROGRAMS / "grows.py")
    lines = sorted(re.findall("seat .*", output))
    assert len(lines) == 3, all_output
    for seat, line in enumerate(lines):
        first = 3 if seat == 2 else 2
        assert line == f"seat {seat} of 3: mean 10.000000, joined [2], began with {first}", all_output


def test_a_spare_takes_the_seat_of_a_rank_that_was_killed(python):
    """The mean stays that of all three targets: 10."""
    output, all_output = fastrun("-n", "3", "--spares", "1", "--min-workers", "2", *python, PROGRAMS / "replaced.py")
    lines = sorted(re.findall("rank .* on seat .*", output))
    assert lines == [f"rank {rank} on seat {seat}: mean 10.000000, replaced [1]" for rank, seat in ((0, 0), (2, 2), (3, 1))], \
        all_output


def test_a_spare_that_is_not_needed_has_no_seat():
    def work():
        group = fast.with_spares(spares=1)
        x = np.full(2, float(fast.rank()))
        worker = fast.Worker({"x": x}, "complete", comm=group, initial="as_is", deadline=60)
        while worker.rounds < 30:
            with worker.round():
                pass
        worker.await_finish()
        return group.has_seat, group.size, group.spares, group.joined(), group.replaced(), x[0]

    trained = (True, 2, 1, [], [], 0.5)
    assert fast.local.run(3, work) == [trained, trained, (False, *trained[1:5], 2.0)]


def test_more_spares_than_ranks_are_refused():
    with pytest.raises(fast.ArgumentError, match="spares: 2 of 2 ranks"):
        fast.local.run(2, lambda: fast.with_spares(spares=2))


def test_without_spares_growth_is_allowed_and_does_nothing():
    def work():
        worker = fast.Worker({"x": np.zeros(2)}, "complete", allow_growth=(3, 5), deadline=60)
        for _ in range(20):
            with worker.round():
                pass
        return worker.size

    assert fast.local.run(2, work) == [2, 2]
