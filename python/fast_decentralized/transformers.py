"""A callback for the Trainer of Hugging Face Transformers: workers average their weights with their neighbors only.

    from fast_decentralized.transformers import FastCallback

    trainer = Trainer(model, TrainingArguments("out", use_cpu=True), train_dataset=data)
    trainer.add_callback(FastCallback(trainer, topology="torus2d"))
    trainer.train()

Start the program by ``mpiexec -n 4 python train.py``: one process is one worker. Import this module before
TrainingArguments are made: it sets MASTER_ADDR and MASTER_PORT for torch.distributed, which the Trainer uses for all but
gradients (parts of the data, metrics).
"""
from __future__ import annotations

import functools
from typing import Any

from . import _core, loops

loops.require("torch", "2.0", __name__)
loops.require("accelerate", "1.0", __name__)
loops.require("transformers", "4.46", __name__)

import transformers  # noqa: E402

from .accelerate import require_all_processes  # noqa: E402
from .worker import Worker  # noqa: E402

__all__ = ["FastCallback"]

_base: Any = transformers.TrainerCallback


class FastCallback(_base):  # type: ignore[misc,unused-ignore]
    """Each process is a worker, which averages its weights with its neighbors in each step of the optimizer.

    trainer
        Its model is not wrapped in DistributedDataParallel any more.
    topology, and further keyword arguments
        As those of ``fast_decentralized.Worker``: ``FastCallback(trainer, "ring", staleness=1)``.
    timeout_s
        Seconds that a worker waits for the others where all meet, as before an evaluation.

    Add it after all other callbacks. Evaluations and checkpoints are those of the mean of all workers, and after
    ``train()`` the model of every worker is the mean.
    """

    def __init__(self, trainer: Any, topology: Any = "torus2d", *, timeout_s: float = loops.TIMEOUT_S,
                 **options: Any) -> None:
        require_all_processes(trainer.accelerator, "use TrainingArguments(use_cpu=True), and import "
                                                   "fast_decentralized.transformers before they are made")
        self._trainer, self._topology, self._options, self._timeout_s = trainer, topology, options, timeout_s
        self._loop: loops.Loop | None = None
        trainer.accelerator.prepare_model = functools.partial(trainer.accelerator.prepare_model, evaluation_mode=True)

    @property
    def worker(self) -> Worker:
        """The worker of this process, while ``train()`` runs."""
        return self._require_loop().worker

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        """All workers take the weights of worker 0."""
        if model is not self._trainer.model_wrapped and hasattr(self._trainer.model_wrapped, "no_sync"):
            raise _core.ArgumentError(f"FastCallback: the model is in a {type(self._trainer.model_wrapped).__name__}; add "
                                      "the callback before the first call of train()")
        if self._loop is not None:
            self._loop.close()
        self._loop = loops.Loop(model, self._topology, self._options, self._timeout_s)

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """A round begins."""
        self._require_loop().begin_round()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, optimizer: Any = None, **others: Any) -> None:
        """The round ends."""
        self._require_loop().end_round(float(optimizer.param_groups[0]["lr"]))

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """An evaluation and a checkpoint are those of the mean."""
        if control.should_evaluate or control.should_save:
            self._require_loop().use_mean()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """As on_step_end()."""
        self.on_step_end(args, state, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The model becomes the mean, unless the Trainer has loaded the best one."""
        has_best = args.load_best_model_at_end and state.best_model_checkpoint is not None
        self._require_loop().finish(keep_weights=has_best)
        self._require_loop().close()

    def _require_loop(self) -> loops.Loop:
        if self._loop is None:
            raise _core.ArgumentError("FastCallback: training has not begun")
        return self._loop
