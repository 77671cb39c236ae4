"""Ready observers: files and a server that show what happens in workers.

    worker = fast.Worker(model, observer=[fast.observe.Metrics("run"), fast.observe.Trace("run/traces")])

Each worker makes its own, before its Worker. docs/how-to/look-at-training.md describes what they write.
"""
from __future__ import annotations

import logging
from typing import Any

from . import _core, runtime

__all__ = ["Metrics", "Prometheus", "Ready", "TensorBoard", "Trace"]

_log = logging.getLogger("fast_decentralized")
ALL_ROUNDS = (0, 2**63 - 1)
OF_EACH_LINE = {"kind", "time", "seconds", "rank", "epoch", "step", "samples_per_second", "phases", "waits", "age_mean", "age_max"}


def _warn(level: str, text: str) -> None:
    _log.log(getattr(logging, level.upper()), text)


def _require_fact(name: str, value: Any) -> None:
    """Raises ArgumentError for what a line of metrics cannot have."""
    if isinstance(value, list):
        fits = all(isinstance(one, int) and abs(one) < 2**31 for one in value)
    elif isinstance(value, int):
        fits = abs(value) < 2**63
    else:
        fits = isinstance(value, str) or hasattr(type(value), "__float__")
    if not fits:
        raise _core.ArgumentError(f"Metrics: {name} is {value!r}; give a number, a text or a list of whole numbers")


class Ready:
    """An observer of the C++ library. It costs no call of Python."""

    def __init__(self, core: _core.ReadyObserver, worker: int | None = None) -> None:
        self._core, self._worker = core, worker

    def scalar(self, name: str, value: float, round: int) -> None:
        """Tells this observer alone a number; ``Worker.scalar`` tells all observers of a worker."""
        self._core.scalar(name, float(value), runtime.rank() if self._worker is None else self._worker, round)

    def attach(self, worker: Any, facts: dict[str, Any]) -> None:
        """The worker has begun."""

    def after_round(self, round: int) -> None:
        """A round has ended."""

    def detach(self, round: int) -> None:
        """The worker has left training."""

    def fail(self, text: str) -> None:
        """The worker has failed."""


class Trace(Ready):
    """A timeline of this worker for Perfetto. ``fast-trace merge DIRECTORY`` joins those of all workers.
    ``size_bytes``: of the newest events, which are kept. ``rounds``: the first and the last one."""

    def __init__(self, directory: Any, worker: int | None = None, *, size_bytes: int = 64 << 20,
                 rounds: tuple[int, int] = ALL_ROUNDS) -> None:
        worker = runtime.rank() if worker is None else worker
        super().__init__(_core.trace(str(directory), worker, size_bytes, rounds, _warn), worker)


class TensorBoard(Ready):
    """An event file for TensorBoard in ``directory/worker-RANK``: scalars, phases, ages."""

    def __init__(self, directory: Any, worker: int | None = None) -> None:
        worker = runtime.rank() if worker is None else worker
        super().__init__(_core.tensorboard(f"{directory}/worker-{worker}", _warn), worker)


class Prometheus(Ready):
    """Serves http://127.0.0.1:PORT/metrics while a worker uses it. Worker 0 has ``port``, worker 1 the next one.

    Other hosts can scrape it if it listens on another address (``listen="0.0.0.0"``: all). There is no encryption and
    no password."""

    def __init__(self, port: int, worker: int | None = None, listen: str = "127.0.0.1") -> None:
        worker = runtime.rank() if worker is None else worker
        super().__init__(_core.prometheus(port + worker, worker, listen), worker)


class Metrics(Ready):
    """JSON lines in ``directory/metrics/RANK.jsonl``, as those of fast-train; ``fast-report DIRECTORY`` shows
    them. A line every 2 s, and one for each call of epoch(). ``facts`` are for the first line: the model, the
    data, the batch."""

    def __init__(self, directory: Any, worker: int | None = None, **facts: Any) -> None:
        worker = runtime.rank() if worker is None else worker
        for name, value in facts.items():
            _require_fact(name, value)
        self._lines = _core.Metrics(str(directory), worker, _warn)
        self._facts, self._round, self._epochs, self._samples = facts, 0, 0, 0.0
        self._results: dict[str, float] = {}
        super().__init__(self._lines.observer, worker)

    def epoch(self, samples: int = 0, **results: float) -> None:
        """An epoch has ended on this worker, with so many samples. Names of results are those of fast-train:
        loss, accuracy, test_loss, test_accuracy, learning_rate, consensus_distance. A measure of your own has a name
        such as test_mae; fast-report draws it. Names that each line has, as "seconds", raise ValueError."""
        taken = sorted(OF_EACH_LINE & results.keys())
        if taken:
            raise ValueError(f"Metrics.epoch: each line has its own {', '.join(taken)}; choose another name, as my_{taken[0]}")
        self._epochs, self._samples = self._epochs + 1, self._samples + samples
        self._results = {name: float(value) for name, value in results.items()}
        self._lines.after_round(self._round, self._epochs, self._samples)
        self._lines.end_epoch({"epoch": self._epochs, "step": self._round, **self._results})

    def attach(self, worker: Any, facts: dict[str, Any]) -> None:
        self._round = worker.rounds
        self._lines.start({**facts, **self._facts})

    def after_round(self, round: int) -> None:
        self._round = round
        self._lines.after_round(round, self._epochs + 1, self._samples)

    def detach(self, round: int) -> None:
        results = {name: value for name, value in self._results.items() if name.startswith("test_")}
        self._lines.end(self._round, results)

    def fail(self, text: str) -> None:
        self._lines.fail(text)
