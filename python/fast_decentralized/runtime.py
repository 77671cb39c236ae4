"""The place of this process or thread among the workers, and how a rank leaves a run.

MPI begins with the first call that needs it, and ends with the interpreter. A rank that ends with
an exception, also SystemExit with a status that is not 0, announces its workers as failed first, so
that the others end too. An error that every rank raises is printed by one of them.
"""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import logging
import os
import signal
import sys
import threading
import time
import traceback
import weakref
from typing import Any, Callable, NoReturn

from . import _core, children, reports, torchrun

_mpi: _core.Mpi | None = None
_world: _core.Group | None = None
_apart: _core.Group | None = None
_board: _core.Board | None = None
_failed = _quiet = False
_has_failed_thread = False  # an exception has ended a thread that trains, or a worker's end, but not the program
_is_over = False  # the program has ended while a daemon thread trained
_is_interrupted = False  # the failure is a KeyboardInterrupt
_failed_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()  # whose workers were announced as failed
_is_watching = _is_to_leave = False
_hook: Callable[..., None] | None = None  # what sys.excepthook was set to
_workers: dict[int, weakref.ref[Any]] = {}  # by the order in which they were made, which is that of all ranks
_made = itertools.count()
_groups: list[_core.Group] = []  # with spares
_communicators: list[_core.Group] = []  # of mpi4py
_before_leaving: list[Callable[[], None]] = []
_lock = threading.Lock()
_is_child = False  # of a process that had initialized MPI, or might have


class _Thread(threading.local):
    """What a thread of local.run() knows; None elsewhere."""
    group: _core.Group | None = None
    stop: Any = None  # local.run() asks its workers to end
    failures: list[BaseException] = []  # of the workers of a local.run(), which sets it


thread = _Thread()


def _look_for_stop() -> None:
    """In waits of workers of local.run()."""
    if thread.stop is not None and thread.stop.is_set():
        raise KeyboardInterrupt


_core.set_wait_hook(_look_for_stop)
LIMIT_OF_THREADS_S = 10.0  # for which the end of the program waits for a daemon thread
PATIENCE_AFTER_FAILURE_S = 10.0  # with ranks that have not heard of it
PATIENCE_AFTER_INTERRUPT_S = 1.0


def mpi() -> _core.Mpi:
    """MPI. The first call initializes it, and makes world(), on all ranks together. So no later call of one rank alone,
    as of world().hosts, waits for the others."""
    global _mpi, _world
    with _lock:
        if _mpi is None:
            children.require_own_place()
            try:
                torchrun.join()
                _mpi = _core.Mpi()
                _world = _mpi.world()
                children.report_place(_mpi.place)
                reports.set_place(_mpi.rank, _mpi.size)
            finally:  # an error of all ranks is printed by one of them
                _watch()
    return _mpi


def world() -> _core.Group:
    """The workers of this run: the threads of ``local.run()``, or all ranks. Collective in its first call, as rank() and
    size() are."""
    if thread.group is not None:
        return thread.group
    mpi()
    assert _world is not None
    return _world


def apart() -> _core.Group:
    """As world(), for calls in the middle of training. A rank that fails leaves by calls of the world, which a call of
    another rank there would meet. Collective in its first call."""
    global _apart
    if thread.group is not None:
        return thread.group
    if _apart is None:
        _apart = mpi().apart()
    return _apart


def board() -> _core.Board:
    """Of all ranks. Collective in its first call."""
    global _board
    if _board is None:
        _board = _core.Board(apart())
    return _board


def rank() -> int:
    """The number of this worker, from 0 on. Collective in its first call."""
    return _place()[0]


def size() -> int:
    """How many workers there are. Collective in its first call."""
    return _place()[1]


def local_rank() -> int:
    """The number of this worker among those of its host, from 0 on, however the ranks were dealt over hosts. Workers that
    choose their GPU by it, as ``f"cuda:{fast.local_rank() % torch.cuda.device_count()}"``, use all GPUs of a host alike.
    Collective in its first call."""
    hosts, own = world().hosts, world().rank
    return hosts[:own].count(hosts[own])


def _place() -> tuple[int, int]:
    if thread.group is not None:
        return thread.group.rank, thread.group.size
    return (children.place_of_parent() if _mpi is None else None) or (mpi().rank, mpi().size)


def is_group(comm: Any) -> bool:
    """Whether group_of() knows what it is."""
    of_mpi4py = any(f"{kind.__module__}.{kind.__name__}" == "mpi4py.MPI.Comm" for kind in type(comm).__mro__)
    return comm is None or isinstance(comm, _core.Group) or of_mpi4py


def group_of(comm: Any) -> _core.Group:
    """None: world(). A Group, or a communicator of mpi4py over whose ranks it is collective."""
    if comm is None:
        return world()
    if isinstance(comm, _core.Group):
        return comm
    from mpi4py import MPI
    if comm == MPI.COMM_NULL:
        raise _core.ArgumentError("Worker: comm is MPI.COMM_NULL, or was freed; give a communicator to which this rank "
                                  "belongs, and make no Worker on the others")
    if comm.Is_inter():
        raise _core.ArgumentError("Worker: comm is an intercommunicator; give an intracommunicator, such as comm.Merge()")
    theirs, ours = MPI.Get_library_version().split("\n")[0].replace("\t", " "), _core.mpi_library()
    if theirs.split()[:1] != ours.split()[:1]:
        raise _core.MpiError(f"Worker: mpi4py is linked with {theirs}, this package with {ours}; install an mpi4py "
                             "for the same MPI (pip install --no-binary mpi4py mpi4py)")
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        raise _core.MpiError("Worker: mpi4py has initialized MPI without MPI_THREAD_MULTIPLE, which is required; leave "
                             "mpi4py.rc.thread_level at \"multiple\"")
    with _lock:
        _watch()
    group = _core.group_of_handle(MPI._addressof(comm))
    _communicators.append(group)
    return group


def with_spares(everyone: _core.Group | None = None, spares: int | None = None) -> _core.Group:
    """The workers of a run some of whose ranks are spares: the last ``spares`` ones, None: those that ``fastrun
    --spares`` has started. Collective over ``everyone``, None: world(). Give the result to ``Worker(comm=...)``. There
    a spare sleeps until it takes the place of a worker that was lost, or joins as one worker more. If it is not
    needed, the constructor returns when training has ended; ``group.has_seat`` is then False and ``worker.rounds``
    the largest number, so that loops over ``worker.rounds`` end."""
    return _core.with_spares(world() if everyone is None else everyone,
                             _core.spares_of_launcher() if spares is None else spares)


def _leave_to_the_parent() -> None:
    """In a child that os.fork() has made, as workers of data loaders are. The workers and MPI stay those of the parent:
    nothing is announced, and what could is never freed. rank() and size() are still known."""
    global _lock, _is_child
    _is_child = _is_child or _is_watching or _is_to_leave or _lock.locked()
    _lock = threading.Lock()  # another thread may have held it
    for worker in _remembered(None):
        keep(worker._leave_to_the_parent())
        keep(worker)
    for shared in [_mpi, _world, _apart, _board, *_groups, *_communicators]:
        keep(shared)
    _workers.clear()
    _groups.clear()


def keep(thing: Any) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


os.register_at_fork(after_in_child=_leave_to_the_parent)


def remember_group(group: _core.Group) -> None:
    """Of a worker. If its ranks have changed, nobody waits for all of them at the end."""
    with _lock:
        if thread.group is None and group.spares > 0 and group not in _groups:
            _groups.append(group)


def _give_up_changed_groups() -> None:
    for group in _groups:
        if group.replaced() or group.joined():
            group.give_up()
    _groups.clear()


def remember(worker: Any) -> None:
    """A worker that this process is to finish, or abandon, before it ends."""
    with _lock:
        _workers[next(_made)] = weakref.ref(worker)


def abandon_all(of_thread: int | None = None, error: BaseException | None = None) -> bool:
    """Announces the workers (of a thread) as failed. False if another worker had failed before."""
    return all([worker._abandon(error) for worker in _remembered(of_thread)])


def close_all(of_thread: int | None = None) -> None:
    """Ends the workers (of a thread), the newest first. When one raises, the others end all the same."""
    with contextlib.ExitStack() as ends:
        for worker in reversed(_remembered(of_thread)):
            ends.callback(worker.close)


def _remembered(of_thread: int | None) -> list[Any]:
    """The workers (of a thread) that have not been closed, the newest first."""
    with _lock:
        found = {number: reference() for number, reference in _workers.items()}
        for number in [number for number, worker in found.items() if worker is None or worker.is_closed]:
            del _workers[number]
    alive = [worker for _, worker in sorted(found.items(), reverse=True) if worker is not None and not worker.is_closed]
    return [worker for worker in alive if of_thread in (None, worker._thread)]


def _watch() -> None:
    """From now on workers end with the interpreter, and as failed ones after an exception."""
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    watch_end()
    _watch_for_failure()
    _watch_for_exit()
    # MPICH's process manager sends it to the survivors of a death.
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def watch_end() -> None:
    """From now on workers end with the interpreter."""
    global _is_to_leave
    if not _is_to_leave:
        _is_to_leave = True
        atexit.register(_leave)


def _watch_for_failure() -> None:
    global _hook
    before = sys.excepthook

    def failed(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if _is_child:
            before(kind, error, trace)
            return
        had_failed = any(worker._failed for worker in _remembered(None))
        if not leave_as_failed(error) and not had_failed:
            reports.leave_to_others(error)
        sys.stdout.flush()
        if _quiet or not reports.is_elsewhere(error):
            reports.forget()
        if not _quiet and not reports.is_elsewhere(error):
            before(kind, error, trace)

    sys.excepthook = _hook = failed
    before_in_thread = threading.excepthook

    def failed_in_thread(arguments: threading.ExceptHookArgs) -> None:
        global _has_failed_thread
        if _is_over:  # what it raises follows from the end of the program
            return
        error, place = arguments.exc_value, arguments.thread.ident if arguments.thread is not None else None
        trains = place is not None and (arguments.thread in _failed_threads or bool(_remembered(place)))
        if trains and error is not None and not _is_child and not isinstance(error, SystemExit):
            _has_failed_thread = True
            abandon_all(place, error)
            if reports.is_elsewhere(error):
                return
            reports.forget(error)
        before_in_thread(arguments)

    threading.excepthook = failed_in_thread


def _watch_for_exit() -> None:
    """Python asks the exception that ends the program for its code, when all frames have gone. This is how it is told
    from those that the program catches. sys.exit() of Python 3.11 makes no exception that could be asked."""
    plain, before = vars(SystemExit)["code"], sys.exit

    def code(error: SystemExit) -> Any:
        status = plain.__get__(error)
        ends = sys._getframe().f_back is None and threading.current_thread() is threading.main_thread()
        if ends and not _is_child and not is_good_status(status):
            _exits(status, error)
        return status

    def exit(status: Any = None, /) -> NoReturn:
        raise SystemExit(status)

    exit.__doc__ = before.__doc__
    sys.exit = exit
    _core.replace_member(SystemExit, "code", property(code, plain.__set__, plain.__delete__, plain.__doc__))


def is_good_status(status: Any) -> bool:
    """Of a SystemExit."""
    return status is None or (isinstance(status, int) and status == 0)


def _exits(status: Any, error: SystemExit) -> None:
    has_workers = bool(_remembered(None))
    is_first = leave_as_failed(error)
    if _quiet or not isinstance(status, int):  # Python prints it
        reports.forget(error)
    elif has_workers and is_first:
        sys.stdout.flush()
        print(f"fast_decentralized: {reports.name_of_place()} ends with status {status}", file=sys.stderr, flush=True)


def remember_failure(error: BaseException) -> None:
    """As reports.remember(). local.run() raises that of its threads."""
    if thread.group is None:
        reports.remember(error)
    else:
        thread.failures.append(error)


def remember_failed_thread(thread: int) -> None:
    """Its worker was announced as failed."""
    _failed_threads.update(one for one in threading.enumerate() if one.ident == thread)


def _end_with_status() -> None:
    """The last of all at the end of the interpreter, whose status is 0 though a thread that trains has failed."""
    if ((_has_failed_thread and not _failed) or _is_over) and not _is_child:
        flush()
        os._exit(1)


def flush() -> None:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


atexit.register(_end_with_status)


def _stop_threads() -> bool:
    """Only daemon threads are left at the end of the interpreter. One that trains has failed, as it cannot end its
    round. False if it does not leave the library soon."""
    global _has_failed_thread, _is_over
    workers = [worker for worker in _remembered(None) if worker._thread != threading.get_ident() and worker._trains()]
    if not workers:
        return True
    _is_over = True
    place = reports.name_of_place("the program")
    if not _failed:
        sys.stdout.flush()
        print(f"fast_decentralized: {place} ends while a daemon thread trains, which fails its worker; wait for the "
              "thread by join()", file=sys.stderr, flush=True)
    _has_failed_thread = True
    for worker in workers:
        worker._abandon(None)
    last = time.monotonic() + LIMIT_OF_THREADS_S
    while any(worker._is_in_call() for worker in workers) and time.monotonic() < last:
        time.sleep(0.01)
    return _mpi is not None and not any(worker._is_in_call() for worker in workers)


def _leave() -> None:
    """At the end of the interpreter: the workers first, then MPI."""
    global _mpi, _world, _apart, _board
    if _is_child:
        return
    # Of an exception that has ended the program, though another hook has printed it.
    if sys.excepthook is not _hook and getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1"):
        leave_as_failed()
        reports.forget()
    reports.tell()
    _look_at_others()
    if not _stop_threads():
        return  # without MPI_Finalize, as its memory is in use; _end_with_status() ends the process
    _close_at_end()
    for part in _before_leaving:
        part()
    _give_up_changed_groups()
    _world = _apart = _board = None
    _communicators.clear()
    if _mpi is not None:
        leaving, _mpi = _mpi, None
        _leave_mpi(leaving)
        torchrun.leave(_failed or _has_failed_thread)


def _leave_mpi(leaving: _core.Mpi) -> None:
    patience_s = PATIENCE_AFTER_INTERRUPT_S if _is_interrupted else PATIENCE_AFTER_FAILURE_S
    try:
        leaving.leave(patience_s if _failed or _has_failed_thread else None, _exits_well)
    except BaseException as error:  # of a signal handler, while this rank waited for the others
        _end_at_once(error)


def _exits_well(error: BaseException) -> bool:
    """A handler that exits with status 0 asks for what the program does already: the others need this rank until they end."""
    return isinstance(error, SystemExit) and is_good_status(error.code)


def _end_at_once(error: BaseException) -> NoReturn:
    """With the status that Python gives such a program. MPI is not finalized."""
    status = error.code if isinstance(error, SystemExit) else 1
    flush()
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    if status is None or isinstance(status, int):
        os._exit((status or 0) & 0xFF)
    os._exit(1)


def before_leaving(part: Callable[[], None]) -> None:
    """Calls it at the end of the program, when the workers have ended, and MPI has not."""
    _before_leaving.append(part)


def end_after_failure() -> NoReturn:
    """As a program that an exception has ended, which another rank reports, and from any thread: another one is in a call
    that does not end."""
    leave_as_failed()
    if _mpi is not None:
        _leave_mpi(_mpi)
        torchrun.leave(True)
    flush()
    os._exit(1)


def _close_at_end() -> None:
    """Python would go on after what a worker raises here, and end with status 0."""
    global _has_failed_thread
    try:
        close_all()
    except BaseException as error:
        _has_failed_thread = True
        if not reports.is_elsewhere(error):
            traceback.print_exception(error)


def end_badly() -> None:
    """This process announces a failure to the others though its program ends with status 0: its status becomes 1."""
    global _has_failed_thread
    _has_failed_thread = True


def _look_at_others() -> None:
    """A handler of a signal may have ended a call in which the others wait for this rank, as barrier()."""
    global _is_interrupted
    if not _core.has_left_others_waiting():
        return
    _is_interrupted = True
    if not _failed:
        end_badly()
        abandon_all()
        sys.stdout.flush()
        print(f"fast_decentralized: {reports.name_of_place()} ends within a call in which the others wait for it; its status "
              "is 1", file=sys.stderr, flush=True)


def end_quietly() -> None:
    """The exception that ends this process is reported by another one."""
    global _quiet
    _quiet = True


def leave_as_failed(error: BaseException | None = None) -> bool:
    """This process ends as failed: its workers and MPI do not wait. False if another worker had failed before."""
    global _failed, _is_interrupted
    _failed = True
    _is_interrupted = isinstance(error, KeyboardInterrupt)
    return abandon_all(error=error)
