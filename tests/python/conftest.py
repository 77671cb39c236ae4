import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture
def started():
    """started(RANKS, PROGRAM, launcher="mpiexec") runs a program of programs/ and returns what it did."""
    def run(ranks, program, *arguments, launcher="mpiexec", status=0, timeout=300):
        if shutil.which(launcher) is None:
            pytest.skip(f"{launcher} is not in the path")
        command = [launcher, "-n", str(ranks), sys.executable, str(HERE / "programs" / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        assert (done.returncode == 0) == (status == 0), f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
