"""Workers as processes of this machine, started from Python."""
from __future__ import annotations

import copyreg
import multiprocessing.spawn
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import traceback
import types
from typing import Any, Callable

from . import _core, implementation

__all__ = ["spawn"]

# Variables of the launcher that started this process. Users set Open MPI's OMPI_MCA_ and OMPI_ALLOW_.
OF_LAUNCHERS = ("PMI_", "PMIX_", "MPI_LOCAL", "HYDI", "FASTRUN", "OMPI_")
OF_USERS = ("OMPI_MCA_", "OMPI_ALLOW_")


_is_preparing = False


class _Unguarded(RuntimeError):
    """A script without if __name__ == "__main__":."""


def _plain(values: dict[str, Any]) -> types.SimpleNamespace:
    return types.SimpleNamespace(**values)


def _reduced(result: Any) -> tuple[Any, ...]:
    """Counters of a worker, as spawn() returns them."""
    return _plain, ({name: getattr(result, name) for name in dir(result) if not name.startswith("_")},)


for _kind in (_core.NeighborShare, _core.WorkerStats, _core.Departures):
    copyreg.pickle(_kind, _reduced)


def spawn(workers: int, function: Callable[..., Any], *arguments: Any, launcher: str | None = None) -> list[Any]:
    """Calls ``function(*arguments)`` in so many new processes, each a worker, and returns the results by rank.

    ``launcher`` is the program that starts them: "mpiexec" (None), or "fastrun", with which the others go on
    when one dies; its result is then None. Function, arguments and results are pickled. As with multiprocessing,
    a script guards its own start by ``if __name__ == "__main__":``. Raises RuntimeError with the traceback of
    the first rank that raised.
    """
    if _is_preparing:
        raise _Unguarded('spawn: each new worker runs this script, and its call of spawn(), again; put the call under  '
                         'if __name__ == "__main__":')
    if workers < 1:
        raise _core.ArgumentError(f"spawn: {workers} workers were requested, at least 1 is required")
    program = shutil.which(launcher or "mpiexec")
    if program is None:
        remedy = "add its folder to PATH" if launcher else implementation.package()
        raise _core.ResourceError(f"spawn: {launcher or 'mpiexec'} is not in the path; {remedy}")
    with tempfile.TemporaryDirectory(prefix="fast-spawn-") as folder:
        place = pathlib.Path(folder)
        main = multiprocessing.spawn.get_preparation_data("fast_decentralized.spawn")
        main.pop("authkey", None)  # of multiprocessing's own connections; it refuses to be pickled
        (place / "task").write_bytes(pickle.dumps(main) + pickle.dumps((function, arguments)))
        environment = {name: value for name, value in os.environ.items()
                       if name.startswith(OF_USERS) or not name.startswith(OF_LAUNCHERS)}
        rank = f"from fast_decentralized.launch import _run; _run({folder!r})"
        status = subprocess.run([program, "-n", str(workers), sys.executable, "-c", rank],
                                env=environment, stdin=subprocess.DEVNULL).returncode
        errors = [file.read_text() for file in sorted(place.glob("error-*"))]
        if status != 0:
            raise RuntimeError(errors[0] if errors else f"spawn: {program} ended with status {status}")
        without = [rank for rank in range(workers) if not (place / f"result-{rank}").exists()]
        if without and pathlib.Path(program).name != "fastrun":
            raise RuntimeError(f"spawn: worker {without[0]} ended without a result; let the function return, instead of sys.exit()")
        return [_result(place / f"result-{rank}") for rank in range(workers)]


def _result(file: pathlib.Path) -> Any:
    return pickle.loads(file.read_bytes()) if file.exists() else None


def _prepare(main: dict[str, Any]) -> None:
    """Runs the script whose function a rank of spawn() is to call."""
    global _is_preparing
    _is_preparing = True
    try:
        multiprocessing.spawn.prepare(main)
    finally:
        _is_preparing = False


def _run(folder: str) -> None:
    """A rank of spawn()."""
    from . import reports, runtime

    place = pathlib.Path(folder)
    rank = runtime.rank()
    try:
        with open(place / "task", "rb") as file:
            _prepare(pickle.load(file))
            function, arguments = pickle.load(file)
        result = function(*arguments)
        (place / f"writing-{rank}").write_bytes(pickle.dumps(result))
        (place / f"writing-{rank}").rename(place / f"result-{rank}")
    except _Unguarded as error:
        (place / f"error-{rank:06}").write_text(str(error))
        runtime.end_quietly()
        raise
    except BaseException as error:
        if not reports.is_elsewhere(error):
            (place / f"error-{rank:06}").write_text(f"worker {rank}: {traceback.format_exc()}")
        runtime.end_quietly()
        raise
