"""A module of which each rank of a replica has a part: its own shards, and copies of what all have.

Shards take part as the tensors that they are. Of copies, one rank of the replica averages each, and the others get its
values afterwards. So a replica sends each weight once, and its copies stay equal, whichever neighbors are there.
"""
from __future__ import annotations

import pickle
import zlib
from typing import Any, Callable, NamedTuple

from . import _core
from .models import Chosen, TorchReplica, has_base, require_whole_parameters
from .replica_ranks import Replicas
from .tensors import EMPTY, OF_ANOTHER, Tensor, is_dtensor, local_of, order_of_memory, tensor_of

NOTHING = "nothing, as this rank has no part of the model"
AT_ONCE_BYTES = 1 << 20  # smaller copies are sent together


class Row(NamedTuple):
    """What the ranks of a replica tell each other of a tensor."""
    name: str
    text: str  # equal on all ranks that have a tensor of this name
    part: tuple[Any, ...]  # equal on ranks that have copies
    size: int  # in bytes
    digest: int | None  # of parameters


class Copies(NamedTuple):
    """The tensors of which these ranks have copies, and the first one averages."""
    source: int
    group: Any
    names: list[str]


class ShardedModel(TorchReplica):
    """A module in a replica of several ranks."""

    def __init__(self, model: Any, chosen: Chosen | None, replicas: Replicas) -> None:
        self._replicas = replicas
        self._copies: list[Copies] = []
        self._names_of_copies: dict[Any, list[str]] = {}
        require_whole_parameters(model)
        _require_own_meshes(model, replicas)
        super().__init__(model, chosen)

    # What takes part -----------------------------------------------------------------------------

    def divide(self) -> str:
        rows = [self._row(*one) for one in self._chosen_ones() if self._apart.get(one[0], EMPTY) == EMPTY]
        ranks = [pickle.loads(one) for one in self._replicas.inside.all_gather(pickle.dumps(rows))]
        _require_same_tensors(ranks, self._replicas)
        holders: dict[Any, list[int]] = {}
        for rank, rows in enumerate(ranks):
            for row in rows:
                if row.size > 0:
                    holders.setdefault((row.name, row.part, row.size), []).append(rank)
        owners = _owners_of(holders, len(ranks))
        own = self._replicas.shard
        for (name, _, _), among in holders.items():
            if own in among and owners[name, tuple(among)] != own:
                self._apart[name] = OF_ANOTHER
        self._names_of_copies = _names_of(holders, owners)
        self._given = {}
        self._note_places()
        lines = [f"shard {own} of {self._replicas.shards}"]
        lines += [f"tensor \"{name}\" {list(array.shape)} {_layout(array)}" for name, array, _ in self._chosen_ones() if is_dtensor(array)]
        return "\n".join(lines)

    def _row(self, name: str, array: Any, is_buffer: bool) -> Row:
        local, text = local_of(array), f"{list(array.shape)} {array.dtype}"
        part: tuple[Any, ...] = (tuple(local.shape),)
        if is_dtensor(array):
            text += f" {_layout(array)}"
            part += (tuple(coordinate for coordinate, placement in zip(array.device_mesh.get_coordinate() or (), array.placements)
                           if not placement.is_replicate()),)
        return Row(name, text, part, local.numel() * local.element_size(), None if is_buffer else _digest(local))

    def open_copies(self) -> None:
        """After divide(). Collective over all ranks that torch.distributed knows."""
        names = self._names_of_copies
        self._replicas.require_alike([(source, ranks) for source, ranks in names])
        groups: dict[tuple[int, ...], Any] = {}
        for _, ranks in names:
            if ranks not in groups:
                groups[ranks] = self._replicas.group_of(ranks)
        self._copies = [Copies(self._replicas.rank_of(source), groups[ranks], names[source, ranks]) for source, ranks in names
                        if self._replicas.shard in ranks]

    def tensors(self) -> list[Tensor]:
        return super().tensors() or [self._nothing()]

    def copy(self) -> tuple[Callable[[], Any], list[Tensor]]:
        self._reshard()
        whole, tensors = super().copy()
        return whole, tensors or [self._nothing()]

    def _nothing(self) -> Tensor:
        import torch

        return tensor_of(NOTHING, torch.zeros(1, device=self._replicas.mesh.device_type), False)

    def _require_some(self) -> None:
        """A rank may have empty shards only, and average nothing."""

    # Copies --------------------------------------------------------------------------------------

    def has_started(self) -> None:
        self.spread()

    def spread(self) -> None:
        self._spread(lambda tensor: tensor)

    def _whole(self, state: dict[str, Any], copied: Callable[[Any], Any]) -> dict[str, Any]:
        self._spread(copied)
        return state

    def _spread(self, tensor_for: Callable[[Any], Any]) -> None:
        """Collective in the replica. ``tensor_for`` gives the tensor to fill for one of the model's."""
        if not self._copies:  # of FSDP2 alone: the module is not looked through in each round
            return
        named = {**dict(self._model.named_parameters()), **dict(self._model.named_buffers())}
        for copies in self._copies:
            tensors = [tensor_for(local_of(named[name])).detach() for name in copies.names]
            _broadcast(tensors, copies.source, copies.group)

    # Where it is ---------------------------------------------------------------------------------

    def follow(self) -> bool:
        """Of FSDP, a forward without backward leaves whole weights in the place of shards."""
        if self.members is not None and self.members.are_the_same():
            return False
        self._reshard()
        return super().follow()

    def _reshard(self) -> None:
        for module in self._model.modules():
            if has_base(module, "FSDPModule"):
                module.reshard()

    def _require_buffer(self, name: str, array: Any, is_buffer: bool) -> None:
        """The memory of a DTensor may move: the optimizer has the DTensor."""
        now = {one: tensor for one, tensor, _ in self._chosen_ones()}
        if name not in self._dtensors or now.get(name) is not self._dtensors[name]:
            super()._require_buffer(name, array, is_buffer)

    def _note_places(self) -> None:
        super()._note_places()
        self._dtensors = {name: array for name, array, _ in self._chosen_ones() if is_dtensor(array)}


def _require_own_meshes(model: Any, replicas: Replicas) -> None:
    own = {replicas.rank_of(shard) for shard in range(replicas.shards)}
    for name, module in model.named_modules():
        if has_base(module, "DistributedDataParallel"):
            from torch import distributed

            if not own.issuperset(distributed.get_process_group_ranks(module.process_group)):
                raise _core.ArgumentError(f"Worker: module \"{name}\" is a DistributedDataParallel over ranks of other replicas, which "
                                          "makes all replicas equal; give it process_group=mesh.get_group(...) of a replica")
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if not is_dtensor(tensor):
            continue
        if not own.issuperset(tensor.device_mesh.mesh.flatten().tolist()):
            raise _core.ArgumentError(f"Worker: tensor \"{name}\" lies on ranks of other replicas (HSDP), which makes all replicas "
                                      "equal; shard on the sides of the mesh within a replica, as fully_shard(module, mesh=mesh[\"shard\"])")
        if any(placement.is_partial() for placement in tensor.placements):
            raise _core.ArgumentError(f"Worker: tensor \"{name}\" has the placements {tensor.placements}; sums that were not made "
                                      "cannot be averaged, so make them by tensor.redistribute()")


def _layout(array: Any) -> str:
    return f"{', '.join(map(repr, array.placements))} on {'x'.join(map(str, array.device_mesh.shape))} ranks"


def _digest(local: Any) -> int:
    import torch

    plain = local.detach().resolve_conj().cpu().contiguous().reshape(-1)
    return zlib.crc32(plain.view(torch.uint8).numpy())


def _require_same_tensors(ranks: list[list[Row]], replicas: Replicas) -> None:
    """On all ranks of the replica alike."""
    first: dict[str, tuple[int, Row]] = {}
    copies: dict[tuple[str, Any], tuple[int, Row]] = {}
    for rank, rows in enumerate(ranks):
        for row in rows:
            other, before = first.setdefault(row.name, (rank, row))
            if row.text != before.text:
                raise _core.MismatchError(f"Worker: \"{row.name}\" has {before.text} on shard {other}, and {row.text} on shard {rank} "
                                          f"of replica {replicas.index}; build the same model with the same mesh on all ranks of a "
                                          "replica, or give parts of it other names")
            other, before = copies.setdefault((row.name, row.part), (rank, row))
            if row.digest != before.digest:
                raise _core.MismatchError(f"Worker: parameter \"{row.name}\" of shard {other} and that of shard {rank} are copies by "
                                          f"their placements, and differ, in replica {replicas.index}; make copies equal, as by "
                                          "torch.manual_seed() before the model, and parts DTensors or of other names")


def _names_of(holders: dict[Any, list[int]], owners: dict[Any, int]) -> dict[Any, list[str]]:
    """Of tensors with copies, by the rank that averages them and the ranks that have them."""
    names: dict[Any, list[str]] = {}
    for (name, _, _), among in sorted(holders.items()):
        if len(among) > 1:
            names.setdefault((owners[name, tuple(among)], tuple(among)), []).append(name)
    return names


def _owners_of(holders: dict[Any, list[int]], count: int) -> dict[tuple[str, tuple[int, ...]], int]:
    """The rank that has the least to average gets the largest of the copies that are left."""
    load = [sum(size for (_, _, size), among in holders.items() if among == [rank]) for rank in range(count)]
    owners = {}
    for (name, _, size), among in sorted(holders.items(), key=lambda one: (-one[0][2], one[0][0], one[1])):
        owner = min(among, key=lambda rank: (load[rank], rank))
        owners[name, tuple(among)] = owner
        load[owner] += size if len(among) > 1 else 0
    return owners


def _broadcast(tensors: list[Any], source: int, group: Any) -> None:
    """The values of the rank ``source`` come to these tensors of all ranks, in their memory."""
    import torch
    from torch import distributed

    plain = [tensor if (order := order_of_memory(tensor)) is None else tensor.permute(order) for tensor in tensors]
    alone = [tensor for tensor in plain if tensor.is_contiguous() and tensor.numel() * tensor.element_size() >= AT_ONCE_BYTES]
    works = [distributed.broadcast(tensor, source, group=group, async_op=True) for tensor in alone]
    known = {id(tensor) for tensor in alone}
    small: dict[Any, list[Any]] = {}
    for tensor in plain:
        if id(tensor) not in known:
            small.setdefault(tensor.dtype, []).append(tensor)
    for several in small.values():
        together = torch.cat([tensor.reshape(-1) for tensor in several])
        distributed.broadcast(together, source, group=group)
        if distributed.get_rank() != source:
            for tensor, piece in zip(several, together.split([tensor.numel() for tensor in several])):
                tensor.copy_(piece.view(tensor.shape))
    for work in works:
        work.wait()
