"""A stop that saves: one signal to any rank, and all workers stop after the same round."""
from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterable

from . import _core

if TYPE_CHECKING:
    from .worker import Worker

_save: Callable[[Worker], Any] | None = None
_before: dict[int, Any] = {}  # handlers, by signal
_of_thread = threading.local()  # its mask of signals, while it forks


def on_stop(save: Callable[[Worker], Any] | None = None,
            signals: Iterable[int] = (signal.SIGTERM, signal.SIGUSR2)) -> None:
    """From now on these signals stop the workers, instead of killing the process. A signal to one rank stops all: at
    staleness 0 after the same round.

    With ``save``, each worker then calls ``save(worker)`` at the end of that round, and the program ends with status 0,
    as by ``sys.exit()``. Without it, ``worker.stop_requested`` becomes True, and the loop ends itself. A second signal has
    the effect that it had before. Call it on the main thread, on every rank, before the Worker is made. In forked processes
    SIGTERM has the effect that it had before.
    """
    global _save
    if threading.current_thread() is not threading.main_thread():
        raise _core.ArgumentError("on_stop: Python sets signal handlers on the main thread alone; call it there, before the "
                                  "workers are made")
    _save = save
    _core.want_stops()
    for number in signals:
        before = signal.signal(number, _ask)
        if before is not _ask:
            _before[number] = before


def are_wanted() -> bool:
    """Whether this process has called on_stop()."""
    return bool(_before)


def _ask(number: int, frame: Any) -> None:
    """A handler from C, which Python does not know, is None."""
    _core.ask_to_stop()
    _put_back(number)


def _put_back(number: int) -> None:
    signal.signal(number, signal.SIG_DFL if _before[number] is None else _before[number])


def _before_fork() -> None:
    """A signal to the child waits until its handler is that of before."""
    _of_thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _before)


def _after_fork() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _of_thread.mask)


def _in_child() -> None:
    """It is ended by SIGTERM, as by Process.terminate(). Other signals to all processes of a job are not to end it."""
    if signal.SIGTERM in _before and signal.getsignal(signal.SIGTERM) is _ask:
        _put_back(signal.SIGTERM)
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def stop(worker: Worker) -> None:
    """At the end of the round in which all stop."""
    if _save is not None:
        _save(worker)
        raise SystemExit(0)
