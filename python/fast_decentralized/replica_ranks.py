"""Replicas of several ranks, each of which has a part of the model: who they are, and how they end together."""
from __future__ import annotations

import os
import pickle
import socket
import sys
from typing import Any, Callable, TypeVar

from . import _core, runtime
from .tensors import is_mesh

Result = TypeVar("Result")
_newest: Replicas | None = None
os.register_at_fork(after_in_child=lambda: runtime.keep(_newest))  # threads are those of the parent


class Replicas:
    """All ranks, as replicas of ``shards`` consecutive ranks each. ``fast.replicas()`` makes it, and ``Worker(replicas=mesh)``
    of a DeviceMesh of all ranks.

    index, count
        The number of this rank's replica, from 0 on, and how many there are.
    shard, shards
        The number of this rank in its replica, from 0 on, and how many ranks a replica has.
    mesh
        A DeviceMesh of the ranks of this replica, for ``fully_shard(module, mesh=replicas.mesh)``. For one with several
        sides, call ``torch.distributed.device_mesh.init_device_mesh``: torch.distributed knows these ranks only. Or the
        mesh that was given.
    inside
        The Group of the ranks of this replica.
    across
        The Group of the ranks that have the same part in all replicas; its ranks are the numbers of the replicas.
    """

    def __init__(self, shards: int, device: str | None, mesh: Any = None) -> None:
        world = runtime.world()
        self.shards = shards
        self.index, self.count, self.shard = _core.place_in_replicas(world.rank, world.size, shards)
        self.inside, self.across = world.split(self.index), world.split(self.shard)
        self._watch = _core.ReplicaWatch(runtime.apart(), self.inside, self.across, shards, _tell, runtime.end_after_failure)
        self.has_given_mesh = mesh is not None
        self.mesh = mesh if self.has_given_mesh else self._open(device)

    def __repr__(self) -> str:
        return f"<fast_decentralized.Replicas: replica {self.index} of {self.count}, shard {self.shard} of {self.shards}>"

    # torch.distributed ---------------------------------------------------------------------------

    def _open(self, device: str | None) -> Any:
        """The process group, whose store ends with this replica."""
        import torch
        from torch import distributed
        from torch.distributed.device_mesh import init_device_mesh

        kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
        if kind == "cuda":
            torch.cuda.set_device(runtime.local_rank() % torch.cuda.device_count())
        distributed.init_process_group("cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo", store=self._store(),
                                       rank=self.shard, world_size=self.shards)
        return init_device_mesh(kind, (self.shards,), mesh_dim_names=("shard",))

    def rank_of(self, shard: int) -> int:
        """The number that torch.distributed has for this shard of the own replica."""
        return self.index * self.shards + shard if self.has_given_mesh else shard

    def require_alike(self, copies: list[Any]) -> None:
        """Collective over all ranks, with a mesh: groups are made by all of them in the same order."""
        if not self.has_given_mesh:
            return
        found = [pickle.loads(one) for one in runtime.apart().all_gather(pickle.dumps(copies))]
        for other, theirs in enumerate(found):
            if theirs != found[0]:
                raise _core.MismatchError(f"Worker: the ranks of replica 0 have other copies of tensors than those of replica "
                                          f"{other // self.shards}; build the same model with the same mesh on all ranks")

    def group_of(self, shards: tuple[int, ...]) -> Any:
        """A process group of these shards of the own replica. Collective over all ranks that torch.distributed knows."""
        from torch import distributed

        if not self.has_given_mesh:
            return distributed.group.WORLD if len(shards) == self.shards else distributed.new_group(list(shards))
        groups = [distributed.new_group([replica * self.shards + shard for shard in shards]) for replica in range(self.count)]
        return groups[self.index]

    def _store(self) -> Any:
        from torch.distributed import TCPStore

        from . import loops

        names = [name.decode() for name in self.inside.all_gather(socket.gethostname().encode())]
        on_one_host = len(set(self.inside.hosts)) == 1
        store, told = None, b""
        if self.shard == 0:
            host = "127.0.0.1" if on_one_host else loops.address_for(names[1:]) or names[0]
            store = TCPStore(host, 0, self.shards, True, wait_for_workers=False)
            told = f"{host} {store.port}".encode()
        host, port = self.inside.all_gather(told)[0].decode().split()
        loops.set_interface(host, on_one_host)
        return store or TCPStore(host, int(port), self.shards, False)

    # Agreement -----------------------------------------------------------------------------------

    def together(self, part: Callable[[], Result]) -> Result:
        """Collective over all ranks. What the part raises on any rank, all raise, and one prints."""
        result, own, failure = None, b"", None
        try:
            result = part()
        except Exception as error:
            failure = error
            known = isinstance(error, _core.Error)
            own = pickle.dumps((type(error).__name__, str(error)) if known else ("ArgumentError", f"Worker: {type(error).__name__}: {error}"))
        found = [one for one in runtime.apart().all_gather(own) if one]
        if not found:
            return result  # type: ignore[return-value]
        if isinstance(failure, _core.Error) and own == found[0]:
            raise of_all(failure)
        name, text = pickle.loads(found[0])
        raise of_all(getattr(_core, name)(text)) from failure

    def set_agreeing(self, agrees: bool) -> None:
        """While it is true, a failure of one rank is no failure of others: the ranks call ``together()``."""
        self._watch.set_agreeing(agrees)

    # Failures ------------------------------------------------------------------------------------

    def note_failure(self, error: BaseException | None) -> bool:
        """This rank ends by that error. Whether no other rank has failed before; else that one tells of it. Where a rank
        of this replica is lost, this one ends here."""
        kind = error.kind if isinstance(error, _core.Error) else ""
        may_follow = kind in ("deadline", "mpi") if kind else isinstance(error, (RuntimeError, OSError))
        is_first: bool = self._watch.note_failure(may_follow, kind == "peer_failed")
        if not is_first:
            runtime.end_quietly()
        return is_first

    def end(self) -> None:
        """Before MPI ends."""
        self._watch.stop()
        if not self.has_given_mesh:
            _close_process_group()


def replicas(shards: int = 2, *, device: str | None = None) -> Replicas:
    """Collective over all ranks: makes replicas of so many consecutive ranks each, for models that one rank does not
    hold. In each replica it calls ``torch.distributed.init_process_group``. Shard the model by ``fully_shard`` or by
    tensor parallelism, or wrap it in DistributedDataParallel; then give the result to ``Worker(replicas=...)``.

    ``device`` is "cpu" or "cuda"; None: "cuda" where there is a GPU. A rank that is lost ends its replica, and the other
    replicas go on, if fastrun has started them.
    """
    asked = _agreed(shards, _fault_of(shards) or _fault_of_process_group())
    return _made(asked, device)


def replicas_of(given: Any) -> Replicas | None:
    """Collective over all ranks, with a mesh. None for what is neither ``Replicas`` nor a DeviceMesh."""
    if given is None or isinstance(given, Replicas):
        return given
    if not is_mesh(given):
        return None
    shards = given.size() // given.size(0)
    shards = _agreed(shards, _fault_of(shards) or _fault_of_mesh(given))
    if _newest is not None and _newest.has_given_mesh and _newest.mesh == given:
        return _newest
    return _made(shards, None, given)


def _agreed(shards: Any, fault: str | None) -> int:
    asked = [pickle.loads(one) for one in runtime.apart().all_gather(pickle.dumps((shards, fault)))]
    for other, (found, fault) in enumerate(asked):
        if fault is None and found != asked[0][0]:
            fault = f"rank 0 asks for {asked[0][0]} shards, rank {other} for {found}; give the same number"
        if fault is not None:
            raise of_all(_core.ArgumentError(f"replicas: {fault}"))
    return int(shards)


def _made(shards: int, device: str | None, mesh: Any = None) -> Replicas:
    global _newest
    if _newest is not None:
        _newest.end()
    else:
        runtime.before_leaving(lambda: _newest.end() if _newest is not None else None)
    _newest = Replicas(shards, device, mesh)
    return _newest


def _fault_of(shards: Any) -> str | None:
    from . import loops

    size = runtime.size()
    if runtime.thread.group is not None:
        return "these workers are threads, and torch.distributed has one process group in a process; start ranks by fastrun"
    if not isinstance(shards, int) or isinstance(shards, bool):
        return f"shards is {shards!r}; a whole number, 1 or more, is required"
    try:
        _core.place_in_replicas(runtime.rank(), size, shards)
    except _core.ArgumentError as error:
        return str(error).removeprefix("Replicas: ").replace("is alone,", "is alone, as each process of torch.multiprocessing.spawn is,")
    try:
        loops.require("torch", "2.6", "fast.replicas")
    except ImportError as error:
        return str(error)
    return None


def _fault_of_process_group() -> str | None:
    from torch import distributed

    if distributed.is_initialized() and (_newest is None or _newest.has_given_mesh):
        return "torch.distributed has a process group already; leave out init_process_group(), which replicas() calls for " \
               "each replica, or call destroy_process_group() before, or give Worker(replicas=) a DeviceMesh of all ranks"
    return None


def _fault_of_mesh(mesh: Any) -> str | None:
    from torch import distributed

    if _newest is not None and not _newest.has_given_mesh:
        return "a DeviceMesh after fast.replicas(); give what that has returned"
    if mesh.ndim < 2:
        return f"the mesh has one side, of {mesh.size()} ranks; the first side counts the replicas and the others their ranks, as in " \
               "init_device_mesh(kind, (replicas, shards))"
    if mesh.size() != runtime.size():
        return f"the mesh has {mesh.size()} ranks of {runtime.size()}; give the whole mesh, whose first side counts the replicas"
    if mesh.mesh.flatten().tolist() != list(range(mesh.size())):
        return "the mesh has its ranks in another order than 0, 1, 2, ...; make it by init_device_mesh"
    if distributed.get_rank() != runtime.rank():
        return f"rank {runtime.rank()} of the job is rank {distributed.get_rank()} of torch.distributed; give init_process_group " \
               "rank=fast.rank()"
    return None


def of_all(error: _core.Error) -> _core.Error:
    """All ranks raise it, and the first one prints it."""
    error.everywhere, error.rank = True, runtime.rank()
    return error


def _tell(line: str) -> None:
    """This replica ends, and with it the process, on any thread."""
    if line:
        print(f"fast_decentralized: {line}", file=sys.stderr)
    runtime.flush()


def _close_process_group() -> None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_initialized():
        try:
            distributed.destroy_process_group()
        except RuntimeError:  # of a rank that is gone
            pass


def require_parts_suffice(stops: bool, grows: bool, watches_mean: bool) -> None:
    """Raises ArgumentError for what a Worker of a part cannot do. The library knows which of its options need the whole model."""
    if watches_mean:
        raise _core.ArgumentError("Worker: on_mean with replicas: all ranks of a replica make the mean model together; call mean_model() on them")
    if grows:
        raise _core.ArgumentError("Worker: allow_growth with replicas: a spare is one rank, and a replica has several; leave it out")
    if stops:
        raise _core.ArgumentError("Worker: fast.on_stop() with replicas: each part of the model would stop after a round of its "
                                  "own; save in the loop, and leave out on_stop()")
