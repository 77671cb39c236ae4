"""Workers as threads of this process: quick starts, notebooks, tests. Needs no mpiexec."""
from __future__ import annotations

import signal
import threading
from typing import Any, Callable

from . import _core, runtime
from .calls import is_end

__all__ = ["run"]


class _Stop:
    """As an event that a signal handler may set at any moment: it has no lock."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set


class _Interrupts:
    """Within it, Ctrl-C sets ``stop`` and raises nothing: an exception could come between any two lines, or in a callback
    that drops it. Handlers of the program stay, and so do those of other threads."""

    def __init__(self, stop: _Stop) -> None:
        self._stop = stop
        is_main = threading.current_thread() is threading.main_thread()
        self._takes = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def __enter__(self) -> None:
        if self._takes:
            signal.signal(signal.SIGINT, lambda number, frame: self._stop.set())

    def __exit__(self, *_: object) -> None:
        if self._takes:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def run(workers: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Calls ``function(*arguments)`` on so many threads, each a worker, and returns the results by rank.

    In the function, ``rank()``, ``size()`` and ``Worker(model)`` are those of the thread. If a worker
    raises, the others end with PeerFailedError, and its exception is raised here. After Ctrl-C the
    workers end at their next round, or in their wait.
    """
    runtime.watch_end()
    results: list[Any] = [None] * max(0, workers)
    stop, ended = _Stop(), threading.Event()
    failure: list[BaseException] = []
    failures: list[BaseException] = []  # that a worker has seen pass

    def work(group: _core.Group) -> None:
        runtime.thread.group, runtime.thread.stop, runtime.thread.failures = group, stop, failures
        try:
            results[group.rank] = function(*arguments)
        except BaseException as error:
            if not is_end(error):
                runtime.abandon_all(threading.get_ident(), error)
            raise
        finally:
            runtime.close_all(threading.get_ident())  # tracebacks may hold them
            runtime.thread.group = runtime.thread.stop = None

    def run_all() -> None:
        try:
            _core.run_local(workers, work)
        except BaseException as error:
            failure.append(error)
        finally:
            ended.set()

    runner = threading.Thread(target=run_all, name="fast_decentralized.local")
    with _Interrupts(stop):  # also a second Ctrl-C does not end it: the workers use what this thread would close
        runner.start()
        ended.wait()  # Python 3.11 forgets a thread whose join() is interrupted
        runner.join()
    if stop.is_set():
        raise KeyboardInterrupt
    if failure:
        if failures and getattr(failure[0], "kind", "") == "peer_failed":  # the function has dropped it
            raise failures[0]
        if isinstance(failure[0], _core.Error):
            failure[0].everywhere = False  # all threads raised it, but this call alone raises it here
        raise failure[0]
    return results
