"""One worker of a run: two lines in an existing training loop."""
from __future__ import annotations

import logging
import os
import pathlib
import socket
from typing import Any, Callable, Iterable, NoReturn

from . import _core, checkpoints, memory, models, runtime, stops, topologies
from .arguments import as_number, checked_watch, listed, loss_of, number_of, saved_tensors_of, texts_of
from .calls import NO_MORE_ROUNDS, Calls, is_end
from .hooks import Hooks, WeakListener
from .observe import Ready
from .observers import require_known_methods
from .replica_ranks import Replicas, replicas_of, require_parts_suffice
from .rounds import OfRound, Round
from .rules import Rule
from .sites import Site, site_options
from .tensors import Tensor

__all__ = ["Round", "Worker", "options"]

_log = logging.getLogger("fast_decentralized")
_levels = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def options() -> list[dict[str, Any]]:
    """The options of a Worker as the C++ library has them: name, help, values and default of each."""
    return _core.worker_options()


class Worker(Calls):
    """One worker of a decentralized training run. The constructor is collective.

    model
        A ``torch.nn.Module``, a dict of NumPy arrays, or a pytree of JAX arrays. Modules and NumPy arrays
        are averaged in place, without a copy. JAX arrays do not change: use ``params = worker.params`` and
        ``params = worker.combine(params)``.
    topology
        Who reads whom: a name, a file, a graph, a matrix or a schedule; see ``topologies.topology``.
    comm
        A communicator of mpi4py, over whose ranks the constructor is collective, or a Group. None: the threads
        of ``local.run``, or all ranks.
    replicas
        What ``fast.replicas()`` has made, if a replica has several ranks: the worker averages this rank's part of the
        model with the same part of other replicas, ``rank`` is the number of the replica, and ``mean_model()`` is
        collective within the replica. Or a DeviceMesh of all ranks, whose first side counts the replicas.
    algorithm
        The rule that combines weights: a name, or a ``Rule``.
    buffers
        Names of a dict's arrays that are not trained, as running statistics.
    participates
        A function of a tensor's name, or of the name and the tensor: whether it takes part. None: of a module, the
        parameters that train (requires_grad=True) and all buffers; of other models, all.
    frozen
        A function of the name of a module's parameter, or of the name and the parameter, that neither trains nor takes
        part: whether it is the same on all workers. At the start these are compared, and get worker 0's values unless
        ``initial="as_is"``. None: all are.
    flat
        Whether the parameters of a module that train are moved to one block of memory first. They stay the same objects.
    site
        A ``Site``, if this is one of several places that train the model.
    observer
        An ``Observer``, one of ``fast.observe``, or a list of these.
    allow_growth
        True, or the rounds ``(first, every)``: as ``allow_growth()``, from the beginning.
    log
        A function of a level ("info", "warning", ...) and a text. None: Python's logging.
    on_mean
        ``(every, function)``: after each so many rounds, ``function(round, mean, steps)`` gets what mean_model() gives, and a
        dict of how many of its own steps each worker's weights have: where all are ``t``, it is the mean after round ``t``.
        Nobody waits. Give it to one worker: ``on_mean=(10, curve) if fast.rank() == 0 else None``.
    on_round, on_suspect, on_healed
        Functions to call after each round (its number), when a neighbor was left out (its rank), and when
        weights that were not finite have been replaced.

    Further keyword arguments are the options of the C++ library, below. Errors are ``fast.Error`` and its
    subclasses, with the text of the C++ library. A worker is used by one thread.
    """

    loss = OfRound()
    learning_rate = OfRound()
    _stops = _stop_requested = _has_stopped = False
    _on_mean: tuple[int, Callable[..., Any]] | None = None
    _loaded = -1  # the round of a state that was loaded
    _loaded_from: pathlib.Path | None = None  # the folder of load()

    def __init__(self, model: Any, topology: Any = "torus2d", *, comm: Any = None, replicas: Replicas | Any = None,
                 algorithm: str | Rule = "awc",
                 buffers: Iterable[str] = (), participates: Callable[..., bool] | None = None,
                 frozen: Callable[..., bool] | None = None, flat: bool = False, site: Site | None = None, observer: Any = None,
                 allow_growth: bool | tuple[int, int] = False,
                 log: Callable[[str, str], None] | None = None, on_round: Callable[[int], None] | None = None,
                 on_suspect: Callable[[int], None] | None = None, on_healed: Callable[[], None] | None = None,
                 on_mean: tuple[int, Callable[[int, Any, dict[int, int]], Any]] | None = None, **options: Any) -> None:
        super().__init__()
        self._has_ended = False
        self._folders: set[pathlib.Path] = set()  # whose checkpoints are of this run
        self._run = os.urandom(8).hex()
        is_group = runtime.is_group(comm)
        self._replicas = replicas_of(replicas)
        # All ranks hear of what is no group.
        group = runtime.group_of(comm if is_group else None) if self._replicas is None else self._replicas.across
        fault: Exception | None = None
        self._rule: Any = None
        self._values: dict[str, list[str]] = {}
        self._made_with: dict[str, Any] = {}
        try:
            if not is_group:
                raise _core.ArgumentError(f"Worker: comm is a {type(comm).__name__}; give a Group, a communicator of mpi4py "
                                          "or nothing")
            self._on_mean = checked_watch(on_mean)
            if flat and replicas is not None:
                raise _core.ArgumentError("Worker: flat=True with replicas: the parts of a model are laid out by fully_shard; leave it out")
            if flat:
                models.lay_flat(model)
            self._model = self._replica_of(model, set(buffers), models.chosen_by(participates), comm, replicas)
            self._rule = topologies.topology(topology, group.hosts)
            if isinstance(algorithm, type):
                raise _core.ArgumentError(f"Worker: algorithm is the class {algorithm.__name__}; give an object, {algorithm.__name__}()")
            if runtime.thread.group is not None:
                memory.take(self, self._model.memory())
            self._model.settle()
            self._values = {name: texts_of(value) for name, value in {**options, **site_options(site)}.items()}
            self._values |= {} if isinstance(algorithm, Rule) else {"algorithm": [str(algorithm)]}
            if self._replicas is not None:
                require_parts_suffice(stops.are_wanted(), bool(allow_growth), self._on_mean is not None)
            observers = listed(observer)
            for one in observers:
                require_known_methods(type(one))
            self._ready = [one for one in observers if isinstance(one, Ready)]
            self._hooks = Hooks(log or (lambda level, text: _log.log(_levels[level], text)), on_round, on_suspect,
                                 on_healed)
            listeners = [one._core if isinstance(one, Ready) else WeakListener(self._hooks, one) for one in observers]
            self._frozen = models.chosen_by(frozen)
            self._made_with = {**self._hooks.weak(), "observer": listeners}
            if isinstance(algorithm, Rule):
                self._made_with["algorithm"] = algorithm._handle(self._hooks)
        except Exception as error:  # the other workers are to hear of it
            fault = error
        self._place, self._group = group.rank, group
        core = self._make(fault) if self._replicas is None else self._make_in_parts(self._replicas, fault)
        runtime.remember(self)
        runtime.remember_group(group)
        self._model.has_started()
        self._note_model()
        self._stops = core.looks_for_stop and core.rounds != NO_MORE_ROUNDS
        self._stop_requested = self._stops and core.stop_is_due()
        if allow_growth:
            self.allow_growth(*(allow_growth if isinstance(allow_growth, (tuple, list)) else (0, 1)))
        if self._ready and group.has_seat:
            self._attach(self._rule, str(getattr(algorithm, "name", algorithm)), options)

    def _make(self, fault: Exception | None) -> _core.Worker:
        """Collective. The library's worker of the tensors that take part."""
        tensors: Any = None
        hooks: Any = None
        try:
            if fault is None:
                tensors, hooks = self._model.tensors(), {**self._made_with, "frozen": self._model.frozen(self._frozen)}
        except Exception as error:
            fault = error
        try:
            self._core = _core.Worker(self._group, self._rule, tensors, self._values, hooks, fault)
            return self._core
        except _core.Error as error:
            self._has_ended = True
            error.rank = self._place
            raised = topologies.take_raised()
            # An error of the library says all that the fault does.
            before = fault.__cause__ if isinstance(fault, _core.Error) else fault
            raise error from error.__cause__ or before or raised
        except BaseException:  # of a signal handler
            self._has_ended = True
            raise

    def _replica_of(self, model: Any, buffers: set[str], chosen: models.Chosen | None, comm: Any,
                    replicas: Any) -> models.Replica:
        if replicas is None:
            return models.replica_of(model, buffers, chosen)
        if self._replicas is None or comm is not None:
            given = "and comm are given" if comm is not None else f"is a {type(replicas).__name__}"
            raise _core.ArgumentError(f"Worker: replicas {given}; give what fast.replicas() has returned or a DeviceMesh of "
                                      "all ranks, and no comm")
        if not hasattr(model, "named_parameters"):
            raise _core.ArgumentError(f"Worker: the model is a {type(model).__name__}; with replicas, a torch.nn.Module is required")
        from .sharded_model import ShardedModel

        return ShardedModel(model, chosen, self._replicas)

    def _make_in_parts(self, replicas: Replicas, fault: Exception | None) -> _core.Worker:
        """Collective over all ranks, each of which has a part of a replica."""
        def check() -> None:
            if fault is not None:
                raise fault

        def divide() -> None:
            self._values["must_agree"] = ["\n".join([*self._values.get("must_agree", []), self._model.divide()])]

        made: list[_core.Worker] = []
        self._has_ended = True
        replicas.set_agreeing(True)
        try:
            for part in (check, divide, lambda: self._model.open_copies(), lambda: made.append(self._make(None))):
                replicas.together(part)
        except BaseException:
            self._has_ended = self._failed = True
            for core in made:
                core.abandon()
            raise
        finally:
            replicas.set_agreeing(False)
        self._has_ended = False
        return made[0]

    # A round -------------------------------------------------------------------------------------

    def round(self, learning_rate: float = 0.0) -> Round:
        """``with worker.round():`` around your own step (forward, backward, optimizer). Neighbors' weights
        arrive meanwhile, and are combined at the end, also where ``break`` leaves the step. An exception within ends all
        workers, except for StopIteration and GeneratorExit, by which loops over batches end."""
        return Round(self, learning_rate)

    def step(self, function: Callable[..., Any], *arguments: Any, learning_rate: float = 0.0) -> Any:
        """The same around ``function(*arguments)``, whose result it returns. A floating-point number, or an array of
        one, is the loss, which must be finite. Of a tuple or list the first is looked at."""
        with self.round(learning_rate) as this:
            result = function(*arguments)
            this.loss = loss_of(result)
        return result

    def begin_round(self) -> None:
        """The first half of a round, for loops that have no place for a with statement."""
        if self._stop is not None and self._stop.is_set():
            raise KeyboardInterrupt
        self._calling(self._begin, settles=False)
        self._begun = True

    def _begin(self, core: _core.Worker) -> None:
        if self._begun:
            raise _core.ArgumentError("Worker: a round has begun already; end it before another one begins, and put no "
                                      "worker.round() or worker.step() within another")
        core.begin_round()

    def end_round(self, loss: Any = None, learning_rate: float = 0.0) -> None:
        """The second half. ``loss`` must be finite; None: it is not looked at. Waits for neighbors."""
        begun, self._begun = self._begun, False
        self._calling(self._end, begun, loss, learning_rate, settles=False)
        if self._stop_requested and not self._has_stopped:
            self._stop_here()

    def _end(self, core: _core.Worker, begun: bool, loss: Any, learning_rate: float) -> None:
        model = self._model
        if not (model.members is not None and model.members.are_the_same()) and model.follow_step():
            self._rebind_to_model(core)
        if not begun:
            raise _core.ArgumentError("Worker: end_round() was called and no round had begun; call begin_round() before the step")
        core.end_round(None if loss is None else as_number(loss, "the loss"),
                       learning_rate if type(learning_rate) is float else as_number(learning_rate, "the learning rate"),
                       model.queue() if model.devices else None)
        model.has_changed()
        if self._replicas is not None and core.rounds % core.combines_every == 0:
            model.spread()
        for observer in self._ready:
            observer.after_round(core.rounds)
        if self._on_mean is not None and core.rounds != NO_MORE_ROUNDS and core.rounds % self._on_mean[0] == 0:
            result, tensors = self._model.copy()
            steps = dict(self._read_mean(tensors))
            self._on_mean[1](core.rounds, result(), steps)
        self._stop_requested = self._stops and core.rounds != NO_MORE_ROUNDS and core.stop_is_due()

    @property
    def stop_requested(self) -> bool:
        """Whether the workers are to stop here, after as many rounds on all of them (see ``fast.on_stop()``)."""
        if not self._stops and self._core is not None and self._core.rounds != NO_MORE_ROUNDS:
            raise _core.ArgumentError("Worker.stop_requested: no rank has called fast.on_stop() before the worker was made; "
                                      "call it at the beginning of the program")
        return self._stop_requested

    def _stop_here(self) -> None:
        self._has_stopped = True
        try:
            stops.stop(self)
        except BaseException as error:
            if not is_end(error):
                self._fail(error)
            raise

    def _end_of_loop(self, loss: Any, learning_rate: float) -> None:
        """As break within a round. A generator may end later than its worker."""
        if self._core is not None and not self._failed:
            self.end_round(loss, learning_rate)

    def combine(self, params: Any, loss: Any = None, learning_rate: float = 0.0, donate: bool = False) -> Any:
        """For a pytree of JAX arrays: the round around a step that has made ``params``. Returns the combined
        ones, as new arrays. With ``donate`` they take the memory of ``params``, whose arrays are deleted, as by
        ``donate_argnums`` of ``jax.jit``; else ``params`` are copied once."""
        try:
            if not self._begun:
                self.begin_round()
            self._model.take(params, donate)
            self._calling(self._rebind_to_model, looks=False)
            self.end_round(loss, learning_rate)
        except BaseException as error:
            if not is_end(error):
                self._fail(error)
            raise
        return self._model.give()

    # The model -----------------------------------------------------------------------------------

    @property
    def params(self) -> Any:
        """The weights as they stand: the module, the dict, or a pytree of JAX arrays. After the
        constructor these are worker 0's (or one's own with ``initial="as_is"``)."""
        return self._model.give()

    def mean_model(self) -> Any:
        """The average of all workers' newest publications: a state_dict of tensors for a module, else a copy of
        the dict or pytree. Exact after ``await_finish()``. Before the end, it is as recent and as precise as the
        publications: rules with a period, as diloco, publish in their outer steps only. Not collective."""
        result, tensors = self._model.copy()
        self._read_mean(tensors)
        return result()

    def _mean_tensors(self) -> dict[str, Any]:
        """The same by name, with all that takes part and nothing else."""
        _, tensors = self._model.copy()
        self._read_mean(tensors)
        return {name: tensor for name, tensor, _, _ in tensors}

    def _read_mean(self, tensors: list[Tensor]) -> list[tuple[int, int]]:
        core = self._open()
        self._model.settle()
        return core.mean_model(tensors)

    def consensus_distance(self) -> float:
        """sqrt(mean_i |x_i - mean|^2) over the same publications."""
        return self._open().consensus_distance()

    def republish(self) -> None:
        """Publishes the weights after they were changed by hand. At staleness 0 every worker calls it between
        the same rounds."""
        self._require_between_rounds("republish")
        self._calling(lambda core: core.republish())

    def rebind(self, model: Any | None = None) -> None:
        """The framework has moved the memory of the same tensors, as ``module.to()`` does. A pytree of JAX arrays
        is copied. Call republish() if the weights are others, too. After an error the worker has failed.

        Where requires_grad of parameters has changed, other tensors take part from now on. Every worker then calls it, after
        the same change: it waits for all, up to ``deadline``. Parameters that do not train any more get the mean of all
        workers. The rule, and the counters of ``stats`` but for rounds, begin anew."""
        self._calling(lambda core: self._rebind(core, model), looks=False)

    def _rebind(self, core: _core.Worker, model: Any | None) -> None:
        self._model.move_to(model)
        if not self._has_left and core.rounds != NO_MORE_ROUNDS and self._model.has_another_choice():
            self._choose_again(core)
            self._note_model()
        else:
            self._note_model()
            self._model.rebind(core)

    def _choose_again(self, core: _core.Worker) -> None:
        """Collective. In place of the library's worker comes one of other tensors, with the same weights and rounds."""
        if self._replicas is not None:
            raise _core.ArgumentError("Worker.rebind: other parameters train now, and replicas have several ranks; make a new Worker")
        self._require_all(core)
        counters = core.state()[:1]
        core.await_finish()
        self._require_none_gone(core.departed([]).lost, core)
        fault: Exception | None = None
        try:
            self._model.choose_again(self._mean_tensors())
        except Exception as error:  # the other workers are to hear of it
            fault = error
        core.close()
        self._core = None
        self._values["initial"] = ["as_is"]
        self._make(fault).restore(counters)

    def _require_none_gone(self, gone: list[int], core: _core.Worker) -> None:
        if gone := sorted({*gone, *core.departed([]).left}):
            raise _core.ArgumentError(f"Worker.rebind: other parameters train now, and workers {gone} are gone; all are required, so "
                                      "make a new Worker of those that are there")

    def _require_all(self, core: _core.Worker) -> None:
        """Collective, within the worker's deadline."""
        if self._begun:
            raise _core.ArgumentError("Worker.rebind: other parameters train now, and a round has begun; call it between two rounds")
        if self._group.spares > 0 or self._group.replaced() or self._group.joined():
            raise _core.ArgumentError("Worker.rebind: other parameters train now, and the group has spares, which do not learn of "
                                      "the change; start no spares")
        self._require_none_gone(self._group.died(), core)
        limit = float(self._values.get("deadline", [one["default"] for one in options() if one["name"] == "deadline"])[0])
        try:
            self._group.all_gather(b"", limit / 2)  # neighbors wait for as long as the limit
        except _core.DeadlineError as error:
            raise _core.DeadlineError("Worker.rebind: other parameters train now, and not all workers have called rebind(); call it on "
                                      f"every worker between the same rounds, after the same change ({error})") from error

    def set_topology(self, topology: Any) -> None:
        """Another topology from the next round on; every worker calls it between the same rounds. An error over a group
        with spares, which do not learn of the change."""
        self._require_between_rounds("set_topology")
        self._calling(self._set_topology, topology)

    def _set_topology(self, core: _core.Worker, topology: Any) -> None:
        self._rule = topologies.topology(topology, self._group.hosts)
        core.set_schedule(self._rule)

    # Observers -----------------------------------------------------------------------------------

    def scalar(self, name: str, value: Any) -> None:
        """Tells the observers of this worker a number of its round: ``worker.scalar("test/accuracy", 0.9)``."""
        self._calling(lambda core: core.scalar(name, as_number(value, f"scalar \"{name}\"")), settles=False)

    def _attach(self, rule: Any, algorithm: str, options: dict[str, Any]) -> None:
        facts = {"workers": self.size, "topology": rule.name, "algorithm": algorithm, "host": socket.gethostname(),
                 "neighbors": rule.at(self.size).in_neighbors(self.rank), "staleness": number_of(options.get("staleness", 0)),
                 "codec": str(options.get("codec", "identity"))}
        for observer in self._ready:
            observer.attach(self, facts)

    def _detach(self) -> None:
        ready, self._ready = self._ready, []
        for observer in ready:
            observer.detach(self.rounds)

    # Checkpoints ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What the worker carries from round to round besides the model's weights: counters, the rule's state,
        the message in force. Plain objects, for pickle or torch.save. Each worker saves its own."""
        self._require_between_rounds("state_dict")
        return {"format": 1, "tensors": self._open().state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Collective, before the first round: goes on where such a worker stood. The model has its saved weights
        already, and the worker was made with ``initial="as_is"``. At staleness 0 the rounds to come are the same
        bit for bit."""
        self._require_between_rounds("load_state_dict")
        self._calling(lambda core: core.restore(saved_tensors_of(state)))
        self._loaded = self.rounds

    def _require_between_rounds(self, call: str) -> None:
        if self._begun:
            self._refuse(f"Worker.{call}: a round has begun; call it after the round")

    def _refuse(self, text: str) -> NoReturn:
        """The others hear of it, and one prints."""
        error = _core.ArgumentError(text)
        self._fail(error)
        raise error

    def save(self, folder: str | os.PathLike[str], position: Any = None, **parts: Any) -> pathlib.Path:
        """A checkpoint of the whole loop: the model, this worker's state, the states of ``parts``, the random states of
        Python, NumPy and PyTorch, and ``position``, which may be any plain object (epoch, batch, keys of JAX). Each part has
        ``state_dict()`` and ``load_state_dict()``: ``worker.save("run", epoch, optimizer=optimizer)``. Every worker calls it
        after the same round, by its number where epochs differ in length, and writes its own file. Older ones are removed when
        all have a newer one. Not collective. Returns the file's name."""
        self._require_between_rounds("save")
        return checkpoints.save(self, folder, position, parts)

    @property
    def _ranks(self) -> _core.Group:
        """Those that save a file each."""
        return self._group if self._replicas is None else runtime.world()

    def load(self, folder: str | os.PathLike[str], **parts: Any) -> Any:
        """Collective, before the first round. Goes on from the newest round that all workers have saved, with
        ``staleness="inf"`` from the newest of each, and returns its position; None if there is none. The first save()
        into that folder removes later files of its own. Load files of your own only: they are pickled."""
        made = self.stats.rounds - max(self.stats.joined_at, 0)  # a site that joins begins at the round of the others
        if made > 0:
            self._refuse(f"Worker.load: {made} rounds have been made; call it before the first round")
        return checkpoints.load(self, folder, parts)

    # Its place and its end -----------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """The number of this worker."""
        return self._open().rank

    @property
    def size(self) -> int:
        """How many workers there are."""
        return self._open().size

    @property
    def rounds(self) -> int:
        """Rounds finished."""
        return self._open().rounds

    @property
    def stats(self) -> _core.WorkerStats:
        """Counters and times."""
        return self._open().stats

    @property
    def site_stats(self) -> dict[str, Any] | None:
        """What a site has done so far: exchanges, reads, left_out, waited_s, bytes_sent, bytes_received, mean_drift_weight,
        median_age (in rounds), and ``others``: for each site that it has met, seen_s, delay_s, round, reads, exchange and age. None: this worker is no site."""
        return self._open().site_stats

    def departed(self, ask: Iterable[int] = ()) -> _core.Departures:
        """The workers that have finished, are lost or have left."""
        return self._open().departed(list(ask))

    def finish(self) -> None:
        """Publishes the final weights and leaves training; the neighbors go on. The end of the program does it,
        too."""
        self._leave(lambda core: core.finish())

    def await_finish(self) -> None:
        """Waits until every worker has finished; then ``mean_model()`` is exact and equal everywhere."""
        self._leave(lambda core: core.await_finish())

    def allow_growth(self, first: int = 0, every: int = 1) -> None:
        """From now on a spare may join as one worker more when fastrun asks for it: before round ``first``,
        ``first + every`` and so on. Every worker calls it, with the same rounds. ``size`` changes between two
        rounds, so choose data by ``rank`` and ``size`` in each round, or again when ``size`` has changed. With
        ``every`` above 1 each further growth needs another call. Without spares it does nothing."""
        self._calling(lambda core: core.allow_growth(first, every))

    def leave(self) -> None:
        """Leaves training before its end, between rounds; the others go on without this worker's weights."""
        self._leave(lambda core: core.leave())

    def _leave(self, part: Callable[[_core.Worker], None]) -> None:
        """From then on, the library does not touch the tensors."""
        self._calling(part, looks=not self._has_left)
        self._has_left = True

    def abandon(self) -> bool:
        """Announces this worker as failed, which ends the others. False if another one had failed before."""
        return self._abandon(None)

    def close(self) -> None:
        """Finishes, and frees the memory of the exchange. Nothing can be called afterwards."""
        if self._calls > 0:
            raise _core.ArgumentError("Worker: close() was called within a call of this worker, as by its callback; call it "
                                      "between the calls")
        try:
            if self._core is not None and not self._failed:
                self._detach()
                self._model.settle()
                if not self._has_left and self._core.rounds != NO_MORE_ROUNDS:
                    if self._model.follow():
                        self._rebind_to_model(self._core)
                    self._core.finish()
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            core, self._core = self._core, None
            if core is not None:
                core.close()
            self._has_ended = True

    @property
    def is_closed(self) -> bool:
        """Whether close() was called."""
        return self._core is None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None and not is_end(error):
            self._fail(error)
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_core", None) is not None:  # the constructor may have failed
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Worker belongs to one thread of one process, so it cannot be copied or pickled; keep it out of models "
                        "and data, and save worker.state_dict()")

    def __repr__(self) -> str:
        if self._core is None:
            return "<fast_decentralized.Worker, closed>"
        return f"<fast_decentralized.Worker {self.rank} of {self.size} after {self.rounds} rounds>"


def _described() -> str:
    lines = [Worker.__doc__ or "", "    Options of the library:", ""]
    for row in options():
        default = f" Default: {row['default']}." if row["default"] else ""
        lines.append(f"    {row['name']}\n        {row['help']}. A value is {row['required']}.{default}")
    return "\n".join(lines)


Worker.__doc__ = _described()
