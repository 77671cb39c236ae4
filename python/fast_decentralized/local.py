"""Workers as threads of this process: quick starts, notebooks, tests. Needs no mpiexec."""
from __future__ import annotations

import threading
from typing import Any, Callable

from . import _core, runtime

__all__ = ["run"]


def run(workers: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Calls ``function(*arguments)`` on so many threads, each a worker, and returns the results by rank.

    In the function, ``rank()``, ``size()`` and ``Worker(model)`` are those of the thread. If a worker
    raises, the others end with PeerFailedError, and its exception is raised here. After Ctrl-C the
    workers end at their next round.
    """
    results: list[Any] = [None] * max(0, workers)
    stop, ended = threading.Event(), threading.Event()
    failure: list[BaseException] = []

    def work(group: _core.Group) -> None:
        runtime.thread.group, runtime.thread.stop = group, stop
        try:
            results[group.rank] = function(*arguments)
        except BaseException as error:
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
    runner.start()
    interrupt: KeyboardInterrupt | None = None
    while not ended.is_set():  # also after a second Ctrl-C: the workers use what this thread would close
        try:
            ended.wait()  # Python 3.11 forgets a thread whose join() is interrupted
        except KeyboardInterrupt as error:
            interrupt = error
            stop.set()
    runner.join()
    if interrupt is not None:
        raise interrupt
    if failure:
        if isinstance(failure[0], _core.Error):
            failure[0].everywhere = False  # all threads raised it, but this call alone raises it here
        raise failure[0]
    return results
