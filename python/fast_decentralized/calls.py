"""The calls of a worker, and what follows when one has failed."""
from __future__ import annotations

import threading
from typing import Any, Callable

from . import _core, memory, models, reports, runtime, topologies
from .hooks import Hooks
from .observe import Ready
from .replica_ranks import Replicas

CoreWorker = _core.Worker  # the class below has a member _core
NO_MORE_ROUNDS = 2**63 - 1  # of a worker that has left, and of a spare that was not needed
ENDS_OF_LOOPS = (StopIteration, StopAsyncIteration, GeneratorExit)  # they pass where a loop over batches ends


def is_end(error: BaseException | None) -> bool:
    """Whether the program, or a loop of it, ends well by this exception."""
    return isinstance(error, ENDS_OF_LOOPS) or (isinstance(error, SystemExit) and runtime.is_good_status(error.code))


class Calls:
    """What calls the library. After a call that has failed there are no more."""
    _core: CoreWorker | None
    _model: models.Replica
    _hooks: Hooks
    _place: int  # in the group
    _replicas: Replicas | None = None

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._stop = runtime.thread.stop
        self._ready: list[Ready] = []
        self._begun = self._failed = self._has_left = self._is_of_parent = False
        self._calls = 0  # that have begun and not ended
        self._failure: _core.Error | None = None  # of calls after one that has failed

    def _open(self) -> CoreWorker:
        if self._is_of_parent:
            raise _core.ArgumentError("Worker: this process was forked from the one that has the worker; use it there")
        if self._core is None:
            raise _core.ArgumentError("Worker: it has been closed")
        return self._core

    def _calling(self, part: Callable[..., Any], *arguments: Any, settles: bool = True, looks: bool = True) -> Any:
        """A call after whose failure the worker cannot go on. Without ``settles`` it does not touch the tensors, without
        ``looks`` it finds out itself where they are."""
        try:
            core = self._core or self._open()
            if self._failure is not None:
                raise self._failure
            self._calls += 1
            try:
                topologies.raised.error = None  # what an earlier call has left
                if settles:
                    self._model.settle()
                    if looks and self._model.follow():
                        self._rebind_to_model(core)
                return part(core, *arguments)
            finally:
                self._calls -= 1
        except BaseException as error:
            if isinstance(error, _core.Error) and error.__cause__ is None:
                error.__cause__ = topologies.take_raised()
            if self._ends_well(error):
                self._failure = _core.ArgumentError("Worker: the program was ended within a call of this worker; only close() "
                                                    "is possible")
            else:
                self._fail(error)
            raise

    def _ends_well(self, error: BaseException) -> bool:
        """Whether the program ends with status 0 within a call, as by sys.exit() of a signal handler. The worker then finishes
        at the end of the program, and the others go on without it, if they can."""
        ends = isinstance(error, SystemExit) and runtime.is_good_status(error.code)
        return ends and self._core is not None and not self._failed and not self._core.needs_everybody

    def _look(self) -> None:
        """The model's tensors may be elsewhere since the last call."""
        self._calling(lambda core: None)

    def _rebind_to_model(self, core: CoreWorker) -> None:
        """The library gets the tensors that the model has now. It frees those of before, whose memory other threads may then
        have."""
        self._note_model()
        if core.rounds != NO_MORE_ROUNDS:
            self._model.rebind(core)

    def _note_model(self) -> None:
        if runtime.thread.group is not None:
            memory.take(self, self._model.memory())
        notices, self._model.notices = self._model.notices, []
        for level, text in notices:
            self._hooks.log(level, text)

    def _trains(self) -> bool:
        """Whether its thread is in a round, or will call it again: local.run() closes its workers."""
        return self._calls > 0 or (not self._failed and (self._begun or self._stop is not None))

    def _is_in_call(self) -> bool:
        return self._calls > 0

    def _leave_to_the_parent(self) -> CoreWorker | None:
        """In a process that was forked. Gives what must not be freed there."""
        core, self._core, self._is_of_parent = self._core, None, True
        return core

    def _abandon(self, error: BaseException | None) -> bool:
        first_of_replicas = None if self._replicas is None else self._replicas.note_failure(error)
        self._failed = True
        ready, self._ready = self._ready, []
        for observer in ready:
            observer.fail("abandoned" if error is None else f"{type(error).__name__}: {error}")
        first = self._core.abandon() if self._core is not None else True
        return first if first_of_replicas is None else first_of_replicas

    def _fail(self, error: BaseException) -> None:
        """Announces the failure. An error that follows from another worker's becomes PeerFailedError."""
        if isinstance(error, _core.Error):
            error.rank = self._place
        if self._failed:
            return
        has_others = self._core is not None and not self._has_left and self._core.size > 1
        is_first = self._abandon(error)
        runtime.remember_failed_thread(self._thread)
        if is_first and has_others:
            runtime.remember_failure(error)
            if is_end(error):
                runtime.end_badly()
        if not is_first:
            reports.leave_to_others(error)
        text = str(error) if isinstance(error, _core.Error) else f"{type(error).__name__}: {error}"
        kind = _core.PeerFailedError if getattr(error, "kind", "") == "peer_failed" or not is_first else _core.ArgumentError
        self._failure = kind(f"Worker: a call of this worker has failed ({text}); make a new Worker")
        if not is_first and isinstance(error, _core.Error) and error.kind != "peer_failed":
            raise _core.PeerFailedError(str(error)) from error
