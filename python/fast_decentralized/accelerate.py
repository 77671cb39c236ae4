"""Hugging Face Accelerate: workers average their weights with their neighbors only.

    from fast_decentralized.accelerate import FastAccelerator

    accelerator = FastAccelerator(cpu=True, topology="torus2d")
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

Start the program by ``mpiexec -n 4 python train.py``: one process is one worker. Accelerate's own calls (parts of the
data, ``gather``, printing on one process) use torch.distributed. Importing this module sets MASTER_ADDR and MASTER_PORT
for it, where mpiexec has started the processes. Without ``cpu=True`` the workers of a host take its GPUs in turn;
Accelerate's own calls use NCCL then, which needs a GPU for each process.
"""
from __future__ import annotations

import contextlib
import types
from typing import Any, Iterator, Mapping

from . import _core, loops, runtime

loops.require("torch", "2.0", __name__)
loops.require("accelerate", "1.0", __name__)

import accelerate  # noqa: E402

from .worker import Worker  # noqa: E402

__all__ = ["FastAccelerator"]

loops.set_rendezvous()
loops.set_gpu()
_base: Any = accelerate.Accelerator


def require_all_processes(accelerator: Any, remedy: str) -> None:
    """Raises ArgumentError when Accelerate has found other processes than this run has workers."""
    if accelerator.num_processes != runtime.size():
        error = _core.ArgumentError(f"Accelerate has found {accelerator.num_processes} processes, this run has "
                                    f"{runtime.size()} workers; {remedy}")
        error.everywhere, error.rank = True, runtime.rank()
        raise error


class FastAccelerator(_base):  # type: ignore[misc,unused-ignore]
    """Each process is a worker, which averages its weights with its neighbors in each step of an optimizer.

    topology
        As that of ``fast_decentralized.Worker``.
    worker_options
        Its further arguments: ``{"staleness": 1, "codec": "bf16"}``.
    timeout_s
        Seconds that a worker waits for the others where all meet, as before an evaluation.

    Further arguments are those of ``accelerate.Accelerator``. Give all models that are trained to one call of
    ``prepare()``. ``backward()`` begins a round, and the optimizer's ``step()`` ends it.
    """

    def __init__(self, *arguments: Any, topology: Any = "torus2d", worker_options: Mapping[str, Any] | None = None,
                 timeout_s: float = loops.TIMEOUT_S, **options: Any) -> None:
        super().__init__(*arguments, **options)
        require_all_processes(self, "use FastAccelerator(cpu=True), before anything else of Accelerate begins")
        self._averaging = topology, dict(worker_options or {}), timeout_s
        self._loop: loops.Loop | None = None

    @property
    def worker(self) -> Worker:
        """The worker of this process, after ``prepare()``."""
        return self._require_loop().worker

    def prepare(self, *arguments: Any, device_placement: Any = None) -> Any:
        """As of Accelerate. With the first model, all workers take the weights of worker 0."""
        result = super().prepare(*arguments, device_placement=device_placement)
        models = [model for model in self._models if any(one.requires_grad for one in model.parameters())]
        if models and self._loop is None:
            self._loop = self._loop_of(models)
            self._trained = models
        elif models and any(model not in self._trained for model in models):
            raise _core.ArgumentError("FastAccelerator: a further model was given to prepare(); give all models that are "
                                      "trained to its first call")
        return result

    def _loop_of(self, models: list[Any]) -> loops.Loop:
        import torch

        topology, options, timeout_s = self._averaging
        module = models[0] if len(models) == 1 else torch.nn.ModuleList(models)
        return loops.Loop(module, topology, options, timeout_s)

    def prepare_model(self, model: Any, device_placement: bool | None = None, evaluation_mode: bool = False) -> Any:
        """As of Accelerate, but without DistributedDataParallel."""
        return super().prepare_model(model, device_placement=device_placement, evaluation_mode=True)

    def prepare_optimizer(self, optimizer: Any, device_placement: bool | None = None) -> Any:
        """As of Accelerate. The optimizer's ``step()`` ends a round."""
        prepared = super().prepare_optimizer(optimizer, device_placement)
        if "step" not in vars(prepared):
            prepared._fast_round = self, prepared.step
            prepared.step = types.MethodType(_step_with_round, prepared)  # schedulers wrap a method
        return prepared

    def backward(self, loss: Any, **arguments: Any) -> None:
        """As of Accelerate. Unless gradients are accumulated, a round begins."""
        if self.sync_gradients and self._loop is not None:
            self._loop.begin_round()
        super().backward(loss, **arguments)

    @contextlib.contextmanager
    def mean_model(self) -> Iterator[None]:
        """``with accelerator.mean_model():`` the models have the mean of all workers, to evaluate or save it. All
        processes call it."""
        with self._require_loop().mean():
            yield

    def wait_for_everyone(self) -> None:
        """As of Accelerate. A process whose data has ended makes the others' rounds with them until they come, too."""
        self._join("wait_for_everyone")
        super().wait_for_everyone()

    def gather(self, tensor: Any) -> Any:
        """As of Accelerate, after ``wait_for_everyone()``."""
        self._join("gather")
        return super().gather(tensor)

    def reduce(self, *arguments: Any, **options: Any) -> Any:
        """As of Accelerate, after ``wait_for_everyone()``."""
        self._join("reduce")
        return super().reduce(*arguments, **options)

    def _join(self, where: str) -> None:
        if self._loop is not None:
            self._loop.join(where)

    def save_state(self, *arguments: Any, **options: Any) -> Any:
        """As of Accelerate, with the mean of all workers. All processes call it."""
        with self._loop.mean(on=0) if self._loop is not None else contextlib.nullcontext():
            return super().save_state(*arguments, **options)

    def load_state(self, *arguments: Any, **options: Any) -> None:
        """As of Accelerate. All processes call it."""
        if self._loop is not None:
            self._loop.use_own()
        super().load_state(*arguments, **options)
        if self._loop is not None:
            self._loop.worker.republish()

    def finish(self) -> None:
        """The end of training: waits for all workers. Afterwards the models have the mean, and there is no worker. While
        an exception passes, as in a finally block, it ends the other workers instead."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.finish()
            loop.close()

    def free_memory(self, *objects: Any) -> list[Any]:
        """As of Accelerate, after ``finish()``. Models may be given to ``prepare()`` anew."""
        self.finish()
        freed: list[Any] = super().free_memory(*objects)
        return freed

    def end_training(self) -> None:
        """As of Accelerate, after ``finish()``."""
        self.finish()
        super().end_training()

    def _require_loop(self) -> loops.Loop:
        if self._loop is None:
            raise _core.ArgumentError("FastAccelerator: there is no worker yet; call prepare() with the model first")
        return self._loop


def _step_with_round(optimizer: Any, closure: Any = None) -> None:
    """In place of an optimizer's step()."""
    accelerator, step = optimizer._fast_round
    loop = accelerator._loop
    if loop is None or not accelerator.sync_gradients:
        step(closure)
        return
    loop.begin_round()
    learning_rate = float(optimizer.param_groups[0]["lr"])
    step(closure)
    loop.end_round(learning_rate)
