"""A strategy for PyTorch Lightning: workers average their weights with their neighbors only.

    from fast_decentralized.lightning import FastStrategy

    trainer = Trainer(accelerator="cpu", strategy=FastStrategy(topology="torus2d"), max_epochs=3)

Start the program by ``mpiexec -n 4 python train.py``: one process is one worker. With ``accelerator="gpu"`` the workers
of a host take its GPUs in turn.
"""
from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any, Callable, Mapping

from . import _core, loops, runtime
from .worker import Worker

loops.require("torch", "2.0", __name__)
# Programs use one of two packages with equal classes of their own.
_base = "pytorch_lightning" if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules else "lightning"
loops.require(_base.replace("_", "-"), "2.1", __name__)

import torch  # noqa: E402
from lightning_utilities.core.rank_zero import rank_zero_only  # noqa: E402

_pytorch = importlib.import_module("pytorch_lightning" if _base == "pytorch_lightning" else "lightning.pytorch")
_fabric = "lightning_fabric" if _base == "pytorch_lightning" else "lightning.fabric"
_strategies = importlib.import_module(f"{_pytorch.__name__}.strategies")
_states = importlib.import_module(f"{_pytorch.__name__}.trainer.states")
_environments = importlib.import_module(f"{_fabric}.plugins.environments")
_base_strategy: Any = importlib.import_module(f"{_strategies.__name__}.parallel").ParallelStrategy
_base_environment: Any = _environments.ClusterEnvironment

__all__ = ["FastEnvironment", "FastStrategy"]


class FastEnvironment(_base_environment):  # type: ignore[misc,unused-ignore]
    """The place of this process among the workers, for Lightning."""

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        return os.environ.get("MASTER_ADDR", "127.0.0.1")

    @property
    def main_port(self) -> int:
        return int(os.environ.get("MASTER_PORT", "0"))

    @staticmethod
    def detect() -> bool:
        return False

    def world_size(self) -> int:
        return runtime.size()

    def set_world_size(self, size: int) -> None:
        pass

    def global_rank(self) -> int:
        return runtime.rank()

    def set_global_rank(self, rank: int) -> None:
        pass

    def local_rank(self) -> int:
        return runtime.local_rank()

    def node_rank(self) -> int:
        hosts = runtime.world().hosts
        return sorted(set(hosts)).index(hosts[runtime.rank()])


class FastStrategy(_base_strategy):  # type: ignore[misc,unused-ignore]
    """Each process is a worker, which averages its weights with its neighbors in each step of an optimizer.

    topology, and further keyword arguments
        As those of ``fast_decentralized.Worker``: ``FastStrategy("ring", staleness=1, codec="bf16")``.
    save_workers
        Checkpoint files have the mean of all workers, and the optimizer of worker 0. With True, each worker writes
        its own weights and optimizer as well, to ``FILE.worker-RANK``, and a resumed run goes on with these.
    timeout_s
        Seconds that a worker waits for the others where all meet, as before a validation.

    Validation uses the mean of all workers. After ``fit()`` the module of every worker has the mean. Buffers of
    floating-point numbers, as those of BatchNorm, are averaged as well.
    """

    strategy_name = "fast"

    def __init__(self, topology: Any = "torus2d", *, save_workers: bool = False, timeout_s: float = loops.TIMEOUT_S,
                 accelerator: Any = None, parallel_devices: Any = None, checkpoint_io: Any = None,
                 precision_plugin: Any = None, **options: Any) -> None:
        super().__init__(accelerator=accelerator, parallel_devices=parallel_devices, checkpoint_io=checkpoint_io,
                         cluster_environment=FastEnvironment(), precision_plugin=precision_plugin)
        if "comm" in options:
            raise _core.ArgumentError("FastStrategy: comm is not for Lightning, whose workers are all ranks")
        self._topology, self._options = topology, options
        self._save_workers, self._timeout_s = save_workers, timeout_s
        self._loop: loops.Loop | None = None
        self._resumed: dict[str, Any] | None = None  # of this worker's own file
        self._optimizer_states: list[Any] | None = None  # of the same
        self.set_world_ranks()

    # The place among the workers -----------------------------------------------------------------

    @property
    def is_distributed(self) -> bool:
        """Lightning then gives each worker its own part of the data."""
        return True

    @property
    def root_device(self) -> torch.device:
        """The workers of a host take its devices in turn."""
        devices = self.parallel_devices or [torch.device("cpu")]
        return torch.device(devices[self.local_rank % len(devices)])

    @property
    def distributed_sampler_kwargs(self) -> dict[str, Any]:
        return {"num_replicas": self.world_size, "rank": self.global_rank}

    def set_world_ranks(self) -> None:
        setattr(rank_zero_only, "rank", self.global_rank)

    def setup_environment(self) -> None:
        devices = self.parallel_devices or []
        kinds = {device.type for device in devices}
        if kinds - {"cpu", "cuda"} or ("cpu" in kinds and len(devices) > 1):
            raise _core.ArgumentError(f"FastStrategy: the devices are {', '.join(map(str, devices))}; a process is one "
                                      "worker on one CPU or GPU, so use Trainer(accelerator=\"cpu\", devices=1) or "
                                      "Trainer(accelerator=\"gpu\"), and start N workers by mpiexec -n N")
        super().setup_environment()

    def model_to_device(self) -> None:
        self.model.to(self.root_device)

    @property
    def worker(self) -> Worker:
        """The worker of this process, while ``fit()`` runs."""
        if self._loop is None:
            raise _core.ArgumentError("FastStrategy: training has not begun")
        return self._loop.worker

    # Collective calls ----------------------------------------------------------------------------

    def barrier(self, name: str | None = None) -> None:
        if not self._was_interrupted():
            where = "barrier" if name is None else f"barrier {name}"
            self._join(where)
            loops.meet(where, timeout_s=self._timeout_s)

    def broadcast(self, obj: Any, src: int = 0) -> Any:
        if self._was_interrupted():
            return obj
        self._join("broadcast")
        return loops.broadcast(obj, src, self._timeout_s)

    def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        if not isinstance(tensor, torch.Tensor) or self._was_interrupted():
            return tensor
        self._join("reduce")
        return _reduced(torch.stack(loops.gather_tensors(tensor, self._timeout_s)), _name_of(reduce_op))

    def all_gather(self, tensor: torch.Tensor, group: Any = None, sync_grads: bool = False) -> torch.Tensor:
        if sync_grads:
            raise _core.ArgumentError("FastStrategy: all_gather(sync_grads=True) is not available: gradients stay with "
                                      "their worker")
        if self._was_interrupted():
            return tensor
        self._join("all_gather")
        return torch.stack(loops.gather_tensors(tensor, self._timeout_s))

    def _join(self, where: str) -> None:
        """A worker whose data has ended makes the others' rounds with them until they come, too."""
        if self._loop is not None:
            self._loop.join(where)

    def _was_interrupted(self) -> bool:
        """By an exception of this worker, of which the others do not know yet."""
        trainer = getattr(self.lightning_module, "_trainer", None)
        return trainer is not None and trainer.state.status == _states.TrainerStatus.INTERRUPTED

    # Training ------------------------------------------------------------------------------------

    def setup(self, trainer: Any) -> None:
        super().setup(trainer)
        _synchronize_metrics(self.lightning_module)
        self._begin(trainer.state.fn == _states.TrainerFn.FITTING)

    def _begin(self, fitting: bool) -> None:
        resumed, self._resumed = self._resumed, None
        options = dict(self._options)
        if fitting and resumed is not None:
            loops.fill(self.lightning_module, resumed["weights"])
            options["initial"] = "as_is"
        if not fitting and not any(one.requires_grad for one in self.lightning_module.parameters()):
            options["participates"] = lambda name: True  # it is to have worker 0's weights and buffers
        self._loop = loops.Loop(self.lightning_module, self._topology, options, self._timeout_s)
        if fitting and resumed is not None:
            self._loop.worker.load_state_dict(resumed["worker"])
            self._optimizer_states = resumed["optimizer_states"]
        if not fitting:  # all have worker 0's weights
            self._close()

    def on_train_start(self) -> None:
        if self._loop is not None and self._loop.has_finished:  # by a search for a learning rate or a batch size
            self._close()
            self._begin(fitting=True)
        trainer = self.lightning_module.trainer
        known = loops.gather((trainer.num_training_batches, _meets_within_epochs(trainer)), self._timeout_s,
                             "the beginning of training")
        counts = [count for count, _ in known]
        remedy = f"give all as many, by a DistributedSampler, by drop_last=True or by Trainer(limit_train_batches={min(counts)})"
        if self._options.get("staleness", 0) in ("inf", float("inf")):
            within = next((what for _, what in known if what is not None), None)
            if within is None:
                return
            remedy = f"so workers would come to {within} at other times; leave it out, or {remedy}"
        loops.require_same(counts, "has {} batches an epoch", remedy, "FastStrategy: ")

    def optimizer_step(self, optimizer: Any, closure: Callable[[], Any], model: Any = None, **kwargs: Any) -> Any:
        """A round. Neighbors' weights arrive while the closure computes the gradients."""
        assert self._loop is not None
        learning_rate = float(optimizer.param_groups[0]["lr"])
        self._loop.begin_round()
        result = super().optimizer_step(optimizer, closure, model, **kwargs)
        self._loop.end_round(learning_rate)
        return result

    def on_validation_start(self) -> None:
        if self._loop is not None:
            self._loop.use_mean()

    def on_validation_end(self) -> None:
        if self._loop is not None:
            self._loop.use_own()

    def on_train_end(self) -> None:
        if self._loop is not None:
            self._loop.finish()

    def on_exception(self, exception: BaseException) -> None:
        if self._loop is not None:
            self._loop.fail(exception)

    def teardown(self) -> None:
        self._close()
        super().teardown()

    def _close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()

    # Checkpoints ---------------------------------------------------------------------------------

    def lightning_module_state_dict(self) -> dict[str, Any]:
        """Of the mean of all workers, on worker 0, which writes it."""
        if self._loop is None or self._was_interrupted():
            return dict(super().lightning_module_state_dict())
        with self._loop.mean(on=0):
            return {name: value.detach().clone() if isinstance(value, torch.Tensor) else value
                    for name, value in super().lightning_module_state_dict().items()}

    def save_checkpoint(self, checkpoint: dict[str, Any], filepath: Any, storage_options: Any = None) -> None:
        super().save_checkpoint(checkpoint, filepath, storage_options=storage_options)
        if self._save_workers and self._loop is not None and "optimizer_states" in checkpoint and not self._loop.worker._begun:
            own = {"workers": self.world_size, "weights": self._loop.own_tensors(), "worker": self._loop.worker.state_dict(),
                   "global_step": checkpoint["global_step"], "optimizer_states": checkpoint["optimizer_states"]}
            file = _file_of(filepath, self.global_rank)
            os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
            torch.save(own, file + ".writing")
            os.replace(file + ".writing", file)

    def remove_checkpoint(self, filepath: Any) -> None:
        super().remove_checkpoint(filepath)
        if os.path.exists(_file_of(filepath, self.global_rank)):
            os.remove(_file_of(filepath, self.global_rank))

    def load_checkpoint(self, checkpoint_path: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        checkpoint: dict[str, Any] = super().load_checkpoint(checkpoint_path, *args, **kwargs)
        own = _own_part(_file_of(_target_of(checkpoint_path), self.global_rank), self.world_size, checkpoint.get("global_step"))
        found = loops.gather(own is not None, self._timeout_s, "the load of a checkpoint")
        self._resumed = own if all(found) else None
        if not all(found) and (any(found) or (self._save_workers and self._is_fitting())) and self.is_global_zero:
            warnings.warn(f"FastStrategy: worker {found.index(False)} has no file of its own for {checkpoint_path}; all "
                          "workers begin with the mean", stacklevel=2)
        return checkpoint

    def _is_fitting(self) -> bool:
        trainer = getattr(self.lightning_module, "_trainer", None)
        return trainer is not None and trainer.state.fn == _states.TrainerFn.FITTING

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        states, self._optimizer_states = self._optimizer_states, None
        super().load_optimizer_state_dict(checkpoint if states is None else {**checkpoint, "optimizer_states": states})

    @classmethod
    def register_strategies(cls, strategy_registry: Any) -> None:
        if cls.strategy_name not in strategy_registry:
            strategy_registry.register(cls.strategy_name, cls, description="Workers average with their neighbors only")


FastStrategy.register_strategies(_strategies.StrategyRegistry)


def _file_of(path: Any, rank: int) -> str:
    return f"{os.fspath(path)}.worker-{rank}"


def _target_of(path: Any) -> str:
    """Of a link, as ModelCheckpoint(save_last="link") makes it, the file beside which the workers have theirs."""
    file = str(os.fspath(path))
    return os.path.realpath(file) if os.path.islink(file) else file


def _own_part(file: str, workers: int, global_step: Any) -> dict[str, Any] | None:
    """Of as many workers and of the same moment as the file with the mean."""
    if not os.path.exists(file):
        return None
    own: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=False)
    return own if (own["workers"], own["global_step"]) == (workers, global_step) else None


def _meets_within_epochs(trainer: Any) -> str | None:
    """What brings workers together after a number of steps, or of seconds. None: they meet at the ends of epochs only."""
    for callback in trainer.callbacks:
        if getattr(callback, "_every_n_train_steps", 0) >= 1 or getattr(callback, "_train_time_interval", None) is not None:
            return "a checkpoint within epochs (ModelCheckpoint)"
        if type(callback).__name__ == "Timer":
            return "the end of max_time"
    within = trainer.check_val_every_n_epoch is None or trainer.val_check_batch != trainer.num_training_batches
    if trainer.enable_validation and within:
        return "a validation within epochs (val_check_interval)"
    return "the end of max_steps" if trainer.max_steps not in (-1, None) else None


def _name_of(operation: Any) -> str:
    """Lightning gives names or members of torch's ReduceOp."""
    if operation is None:
        return "mean"
    if isinstance(operation, str):
        return operation.lower()
    return next(name for name in ("sum", "avg", "max", "min", "product")
                if operation == getattr(torch.distributed.ReduceOp, name.upper()))


def _reduced(values: torch.Tensor, operation: str) -> torch.Tensor:
    if operation in ("mean", "avg"):
        return values.double().mean(0).to(values.dtype)
    reductions: dict[str, Callable[[int], torch.Tensor]] = {"sum": values.sum, "max": values.amax, "min": values.amin,
                                                            "product": values.prod}
    return reductions[operation](0)


def _synchronize_metrics(module: torch.nn.Module) -> None:
    """Metrics of torchmetrics gather over all workers."""
    metric: Any = importlib.import_module("torchmetrics").Metric
    for part in module.modules():
        if isinstance(part, metric):
            part.dist_sync_fn, part.distributed_available_fn = _gathered, _has_others


def _gathered(tensor: torch.Tensor, group: Any = None) -> list[torch.Tensor]:
    return loops.gather_tensors(tensor)


def _has_others() -> bool:
    return runtime.size() > 1
