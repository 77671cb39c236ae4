"""A round of a worker, as a with statement."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from .calls import is_end

if TYPE_CHECKING:
    from .worker import Worker


class Round:
    """What ``with worker.round() as r:`` gives. ``r.loss = loss`` lets the worker refuse one that is not finite."""
    __slots__ = ("_worker", "_is_used", "loss", "learning_rate")

    def __init__(self, worker: Worker, learning_rate: float) -> None:
        self._worker, self.learning_rate = worker, learning_rate
        self.loss: Any = None
        self._is_used = False

    def __enter__(self) -> Round:
        self._is_used = True
        self._worker.begin_round()
        return self

    def __del__(self) -> None:
        if not getattr(self, "_is_used", True):  # torch.compile makes objects without __init__
            warnings.warn("worker.round() alone does nothing; put the step within  with worker.round():", RuntimeWarning,
                          stacklevel=2)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self._worker.end_round(self.loss, self.learning_rate)
        elif is_end(error):
            self._worker._end_of_loop(self.loss, self.learning_rate)
        else:
            self._worker._fail(error)


class OfRound:
    """What a Round has, and users set at its Worker."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._text = (f"Worker has no attribute {name!r}; a round has it:  with worker.round() as r:  and within it  "
                      f"r.{name} = {name}")

    def __get__(self, worker: Worker | None, owner: type | None = None) -> Any:
        if worker is None:
            return self
        raise AttributeError(self._text)

    def __set__(self, worker: Worker, value: Any) -> NoReturn:
        raise AttributeError(self._text)
