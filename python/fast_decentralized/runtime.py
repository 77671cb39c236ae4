"""The place of this process or thread among the workers, and how a rank leaves a run.

MPI begins with the first call that needs it, and ends with the interpreter. A rank that ends with
an exception or by sys.exit() with a status that is not 0 announces its workers as failed first, so
that the others end too. An error that every rank raises is printed by one of them.
"""
from __future__ import annotations

import atexit
import itertools
import signal
import sys
import threading
import weakref
from typing import Any, Callable, NoReturn

from . import _core

_mpi: _core.Mpi | None = None
_world: _core.Group | None = None
_failed = _quiet = False
_is_watching = False
_hook: Callable[..., None] | None = None  # what sys.excepthook was set to
_workers: dict[int, weakref.ref] = {}  # by the order in which they were made, which is that of all ranks
_made = itertools.count()
_lock = threading.Lock()


class _Thread(threading.local):
    """What a thread of local.run() knows; None elsewhere."""
    group: _core.Group | None = None
    stop: threading.Event | None = None


thread = _Thread()


def mpi() -> _core.Mpi:
    """MPI. The first call initializes it, on all ranks together."""
    global _mpi
    with _lock:
        if _mpi is None:
            _mpi = _core.Mpi()
            _watch()
    return _mpi


def world() -> _core.Group:
    """The workers of this run: the threads of ``local.run()``, or all ranks. Collective."""
    global _world
    if thread.group is not None:
        return thread.group
    if _world is None:
        _world = mpi().world()
    return _world


def rank() -> int:
    """The number of this worker, from 0 on. Collective in its first call."""
    return thread.group.rank if thread.group is not None else mpi().rank


def size() -> int:
    """How many workers there are. Collective in its first call."""
    return thread.group.size if thread.group is not None else mpi().size


def group_of(comm: Any) -> _core.Group:
    """None: world(). A Group, or a communicator of mpi4py over whose ranks it is collective."""
    if comm is None:
        return world()
    if isinstance(comm, _core.Group):
        return comm
    if type(comm).__module__.partition(".")[0] != "mpi4py":
        raise _core.ArgumentError(f"Worker: comm is a {type(comm).__name__}; give a Group, a communicator of mpi4py "
                                  "or nothing")
    from mpi4py import MPI
    theirs, ours = MPI.Get_library_version().split("\n")[0].replace("\t", " "), _core.mpi_library()
    if theirs.split()[:1] != ours.split()[:1]:
        raise _core.MpiError(f"Worker: mpi4py is linked with {theirs}, this package with {ours}; install an mpi4py "
                             "for the same MPI (pip install --no-binary mpi4py mpi4py)")
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        raise _core.MpiError("Worker: mpi4py has initialized MPI without MPI_THREAD_MULTIPLE, which is required; leave "
                             "mpi4py.rc.thread_level at \"multiple\"")
    with _lock:
        _watch()
    return _core.group_of_handle(MPI._addressof(comm))


def remember(worker: Any) -> None:
    """A worker that this process is to finish, or abandon, before it ends."""
    with _lock:
        _workers[next(_made)] = weakref.ref(worker)


def abandon_all(of_thread: int | None = None) -> bool:
    """Announces the workers (of a thread) as failed. False if another worker had failed before."""
    return all([worker.abandon() for worker in _remembered(of_thread)])


def close_all(of_thread: int | None = None) -> None:
    """Ends the workers (of a thread), the newest first."""
    for worker in _remembered(of_thread):
        worker.close()


def _remembered(of_thread: int | None) -> list[Any]:
    """The workers (of a thread) that have not been closed, the newest first."""
    with _lock:
        found = {number: reference() for number, reference in _workers.items()}
        for number in [number for number, worker in found.items() if worker is None or worker.is_closed]:
            del _workers[number]
    alive = [worker for _, worker in sorted(found.items(), reverse=True) if worker is not None and not worker.is_closed]
    return [worker for worker in alive if of_thread in (None, worker._thread)]


def is_reported_elsewhere(error: BaseException) -> bool:
    """Whether another rank prints this error. Of an error that all workers of a group raise, it is their first."""
    if not isinstance(error, _core.Error):
        return False
    place = error.rank if error.rank is not None else _mpi.rank if _mpi is not None else 0
    return error.kind == "peer_failed" or (error.everywhere and place != 0)


def _watch() -> None:
    """From now on workers end with the interpreter, and as failed ones after an exception."""
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    atexit.register(_leave)
    _watch_for_failure()
    _watch_for_exit()
    # MPICH's process manager sends it to the survivors of a death.
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def _watch_for_failure() -> None:
    global _hook
    before = sys.excepthook

    def failed(kind, error, trace):
        leave_as_failed()
        sys.stdout.flush()
        if not _quiet and not is_reported_elsewhere(error):
            before(kind, error, trace)

    sys.excepthook = _hook = failed


def _watch_for_exit() -> None:
    before = sys.exit

    def exit(status: Any = None, /) -> NoReturn:
        if threading.current_thread() is threading.main_thread() and isinstance(status, (int, str)):
            raise _Exit(status)
        before(status)

    exit.__doc__ = before.__doc__
    sys.exit = exit


class _Exit(SystemExit):
    """Of sys.exit(): knows when it ends the interpreter, which asks for the code when all frames have gone."""

    @property
    def code(self) -> Any:
        status = self.args[0]
        if status != 0 and sys._getframe().f_back is None:
            _exits(status)
        return status


def _exits(status: int | str) -> None:
    has_workers = bool(_remembered(None))
    is_first = leave_as_failed()
    if has_workers and is_first and not _quiet and isinstance(status, int):  # Python prints texts
        sys.stdout.flush()
        place = f"rank {_mpi.rank} of {_mpi.size}" if _mpi is not None else "a rank"
        print(f"fast_decentralized: {place} ends with status {status}", file=sys.stderr, flush=True)


def _leave() -> None:
    """At the end of the interpreter: the workers first, then MPI."""
    global _mpi, _world
    # Of an exception that has ended the program, though another hook has printed it.
    if sys.excepthook is not _hook and getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1"):
        leave_as_failed()
    close_all()
    _world = None
    if _mpi is not None:
        leaving, _mpi = _mpi, None
        leaving.leave(_failed)


def end_quietly() -> None:
    """The exception that ends this process is reported by another one."""
    global _quiet
    _quiet = True


def leave_as_failed() -> bool:
    """This process ends as failed: its workers and MPI do not wait. False if another worker had failed before."""
    global _failed
    _failed = True
    return abandon_all()
