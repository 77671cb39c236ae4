"""What the library needs of a framework's model: the memory of its tensors, by name."""
from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable, Collection, Iterable, Iterator

from . import _core
from .tensors import (EMPTY, INTEGERS, OF_ANOTHER, Tensor, bytes_of, flat_start_of, have_the_same_form, is_dtensor, is_sharded,
                      local_of, order_of_memory, place_of, tensor_of, why_it_stays, with_local)

Chosen = Callable[[str, Any], bool]


def chosen_by(function: Callable[..., bool] | None) -> Chosen | None:
    """The user's function takes a tensor's name, or the name and the tensor."""
    if function is None:
        return None
    if not callable(function):
        raise _core.ArgumentError(f"Worker: participates and frozen take a function of a tensor's name, a {type(function).__name__} "
                                  "was given; give such as  lambda name: name in names")
    try:
        wanted = [one for one in inspect.signature(function).parameters.values()
                  if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and one.default is one.empty]
    except (TypeError, ValueError):  # functions of C do not say what they take
        wanted = []
    return function if len(wanted) > 1 else lambda name, tensor: function(name)


class Replica:
    """A model as a Worker sees it."""

    members: _core.Members | None = None  # while these are the same, follow() would find nothing
    devices: Collection[Any] = ()  # the GPUs that its tensors are on

    def __init__(self) -> None:
        self.notices: list[tuple[str, str]] = []  # levels and texts for the worker's log

    def tensors(self) -> list[Tensor]:
        """The tensors that take part. Their memory stays where it is, but see follow()."""
        raise NotImplementedError

    def rebind(self, core: _core.Worker) -> None:
        """Gives the library tensors(), which are elsewhere now."""
        core.rebind(self.tensors())

    def copy(self) -> tuple[Callable[[], Any], list[Tensor]]:
        """A function that gives a copy of the model, and the tensors to fill before it is called."""
        raise NotImplementedError

    def give(self) -> Any:
        """The model as users have it."""
        raise NotImplementedError

    def take(self, params: Any, donate: bool) -> None:
        """What a step has made, which is in tensors() then. Models that change in place have none."""
        raise _core.ArgumentError("Worker.combine: the model changes in place; use worker.round() or worker.step()")

    def move_to(self, model: Any | None) -> None:
        """The tensors are elsewhere from now on."""

    def follow(self) -> bool:
        """Whether tensors() has others than before, which the library is to get. Raises MismatchError when tensors that it
        cannot follow are not where they were."""
        return False

    def settle(self) -> None:
        """Waits until what was begun on the tensors has ended. The library's work on a GPU runs on a stream of its own,
        and has ended when a call of the library returns, except for the end of a round."""

    def queue(self) -> int | None:
        """The stream of a GPU that a step's work is on. The end of a round follows what it has, and what it is given later
        follows the end of the round, without a wait on the host. None: the tensors are in host memory."""
        return None

    def follow_step(self) -> bool:
        """As follow(), at the end of a round. Raises an Error when the worker cannot see what the step has made."""
        return self.follow()

    def frozen(self, chosen: Chosen | None) -> list[Tensor]:
        """Of those chosen, the parameters that neither train nor take part: all workers have worker 0's."""
        return []

    def has_another_choice(self) -> bool:
        """Whether other tensors would take part if the worker were made now."""
        return False

    def choose_again(self, means: dict[str, Any]) -> None:
        """Makes that choice. Parameters that no longer take part get the means of all workers."""

    def has_started(self) -> None:
        """All workers have their initial weights."""

    def has_changed(self) -> None:
        """The library has written to the tensors."""

    def divide(self) -> str:
        """Collective in a replica of several ranks, which choose who averages what. Returns what must be equal on the ranks
        that have the same part of other replicas, besides names and shapes."""
        return ""

    def open_copies(self) -> None:
        """After divide(), on all ranks: opens what spread() needs."""

    def spread(self) -> None:
        """Collective in a replica of several ranks: its copies of a tensor become that of the rank that averages it."""

    def memory(self) -> dict[int, str]:
        """The addresses that the library writes to, with the tensors' names."""
        return {}


def replica_of(model: Any, buffers: set[str], chosen: Chosen | None) -> Replica:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        require_whole_parameters(model)
        _refuse_shards([*model.named_parameters(), *model.named_buffers()])
        return TorchReplica(model, chosen)
    jax = sys.modules.get("jax")
    if jax is not None and any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(model)):
        from .jax_model import JaxReplica

        return JaxReplica(model, buffers, chosen)
    if isinstance(model, dict):
        _refuse_shards(_flat(model, ""))
        return ArrayReplica(model, buffers, chosen)
    raise _core.ArgumentError(f"Worker: the model is a {type(model).__name__}; give a torch.nn.Module, a pytree of JAX "
                              "arrays or a dict of arrays")


def _refuse_shards(named: Iterable[tuple[str, Any]]) -> None:
    """They have equal names and shapes on all ranks, as the weights of whole models have, and are not to be averaged."""
    for name, tensor in named:
        if is_sharded(tensor):
            placements = ", ".join(map(repr, tensor.placements))
            raise _core.ArgumentError(f"Worker: tensor \"{name}\" is a DTensor with {placements} on {tensor.device_mesh.size()} ranks: "
                                      "each has another part, so their average is nothing; make replicas of several ranks by "
                                      "replicas = fast.replicas(shards=...), shard on replicas.mesh, and give the Worker "
                                      "replicas=replicas")


def has_base(module: Any, name: str) -> bool:
    """Whether a class of that name is among the module's classes. Its package need not be loaded."""
    return any(kind.__name__ == name for kind in type(module).__mro__)


def require_whole_parameters(model: Any) -> None:
    """Raises ArgumentError for modules without memory yet, and for those whose parameters are parts that nothing tells from whole
    ones."""
    for name, module in model.named_modules():
        if has_base(module, "FullyShardedDataParallel"):
            raise _core.ArgumentError(f"Worker: module \"{name}\" is a FullyShardedDataParallel (FSDP1), whose flat parameters do not "
                                      "say which parts of which weights they are; use torch.distributed.fsdp.fully_shard "
                                      "(FSDP2) with fast.replicas()")
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if hasattr(tensor, "materialize"):
            raise _core.ArgumentError(f"Worker: \"{name}\" of a lazy module has no shape yet; call the model with a batch before the "
                                      "worker is made")
        if hasattr(tensor, "ds_id"):
            raise _core.ArgumentError(f"Worker: parameter \"{name}\" is a part of DeepSpeed's ZeRO stage 3; use fully_shard (FSDP2) "
                                      "with fast.replicas(), or a lower stage")


class InPlaceReplica(Replica):
    """A model whose tensors change in place. Buffers may be replaced, which the library follows. Those that it cannot
    average stay with their worker."""

    _model: Any
    REMEDY: str

    def __init__(self, model: Any, chosen: Chosen | None) -> None:
        super().__init__()
        self._model, self._chosen = model, chosen
        self._choose()

    def _choose(self) -> None:
        self._choice: dict[str, bool] = {}  # by name, whether a tensor takes part
        self._given: dict[str, Tensor] = {}  # what the library has, in its order
        self._places: dict[str, tuple[int, int]] = {}  # of these, without _left
        self._left: dict[str, Tensor] = {}  # in place of buffers that have another shape or type now
        self._apart = {name: why for name, array, is_buffer in self._chosen_ones()
                       if (why := why_it_stays(local_of(array), is_buffer, self._is_trained(array, is_buffer))) is not None}
        self._note_places()
        self._require_some()
        self.notices += [("info", f"Worker: \"{name}\" stays with its worker: it {why}") for name, why in self._apart.items()
                         if why not in (INTEGERS, EMPTY)]

    def tensors(self) -> list[Tensor]:
        return list(self._given.values())

    def give(self) -> Any:
        return self._model

    def settle(self) -> None:
        for device in self.devices:
            _stream_of(device).synchronize()

    def queue(self) -> int | None:
        for device in self.devices:  # one: the library refuses more
            return int(_stream_of(device).cuda_stream)
        return None

    def has_changed(self) -> None:
        """PyTorch does not know. A later backward() of a graph that was made before raises an error, as after any change in
        place."""
        if self._graphs:
            _counting()(self._graphs)

    def memory(self) -> dict[int, str]:
        return {address: name for name, (address, count) in self._places.items() if count > 0}

    def follow(self) -> bool:
        found = self._found()
        places = {name: place_of(array) for name, (array, _) in found.items()}
        if places == self._places:
            return False
        changed = [name for name in {**self._places, **places} if self._places.get(name) != places.get(name)]
        for name in changed:
            self._require_buffer(name, *found.get(name, (None, True)))
        for name in changed:
            self._follow(name, *found.get(name, (None, True)))
        self._note_places()
        return True

    def _follow(self, name: str, array: Any, is_buffer: bool) -> None:
        """A buffer that was replaced, is new or is gone (None)."""
        before = self._given.get(name)
        if before is None:
            self._apart[name] = "came after the start"
        elif array is None or why_it_stays(array, True, False) is not None or \
                not have_the_same_form(before[1], tensor_of(name, array, True)[1]):
            # Of one that was resized in place, the old memory is gone.
            self._left[name] = _copies({name: before})[name] if array is self._arrays[name] else before
            self._apart[name] = "has changed its shape or type"
            self.notices.append(("warning", f"Worker: buffer \"{name}\" has another shape, type or device now, or is gone; from now "
                                            "on it stays with its worker"))

    def _require_buffer(self, name: str, array: Any, is_buffer: bool) -> None:
        """The library cannot follow a parameter: optimizers and gradients have the old one."""
        before = self._given.get(name)
        if not is_buffer or (before is not None and not before[2]):
            if before is None or array is None:
                raise _core.MismatchError(f"Worker: tensor \"{name}\" {'came' if before is None else 'went'} after the worker was made; "
                                          "make a new Worker of the model as it is now")
            raise _core.MismatchError(f"Worker: tensor \"{name}\" is not where it was; {self.REMEDY}")

    def _note_places(self) -> None:
        found = self._found()
        self._arrays = {name: array for name, (array, _) in found.items()}
        self._places = {name: place_of(array) for name, array in self._arrays.items()}
        self._given = self._in_order({name: tensor_of(name, *one) for name, one in found.items()}, self._left)
        self.devices = _devices_of(array for _, array, _ in self._chosen_ones())
        self._graphs = _known_to_autograd(self._arrays.values())

    def _in_order(self, tensors: dict[str, Tensor], left: dict[str, Tensor]) -> dict[str, Tensor]:
        """As they were given to the library first. Tensors that it does not know are the last ones."""
        ours = {**tensors, **left}
        return {name: ours[name] for name in {**self._given, **ours} if name in ours}

    def _found(self) -> dict[str, tuple[Any, bool]]:
        """The arrays that are averaged, and whether these are buffers."""
        return {name: (local_of(array), is_buffer) for name, array, is_buffer in self._chosen_ones() if name not in self._apart}

    def _chosen_ones(self) -> Iterator[tuple[str, Any, bool]]:
        """A choice holds until choose_again(): programs that train parts in turn set requires_grad in each step."""
        for name, array, is_buffer in self._all(self._model):
            if name not in self._choice:
                self._choice[name] = self._would_choose(name, array, is_buffer)
            if self._choice[name]:
                yield name, array, is_buffer

    def _would_choose(self, name: str, array: Any, is_buffer: bool) -> bool:
        return self._chosen is None or bool(self._chosen(name, array))

    def _all(self, model: Any) -> Iterator[tuple[str, Any, bool]]:
        raise NotImplementedError

    def _is_trained(self, array: Any, is_buffer: bool) -> bool:
        return not is_buffer

    def _require_some(self) -> None:
        if self._chosen is not None and self._choice and not any(self._choice.values()):
            raise _core.ArgumentError(f"Worker: participates has chosen none of {len(self._choice)} tensors, as \"{next(iter(self._choice))}\"; "
                                      "let it be true for some names")
        if not self._given and self._apart:
            name, why = next(iter(self._apart.items()))
            raise _core.ArgumentError(f"Worker: none of {len(self._apart)} tensors can be averaged: \"{name}\" {why}; let at least "
                                      "one of floating-point numbers take part")


class ArrayReplica(InPlaceReplica):
    """A dict of arrays that change in place, also of dicts of arrays."""

    REMEDY = "change arrays in place (w -= step, w[:] = values), or call worker.rebind() after they were replaced"

    def __init__(self, model: dict[str, Any], buffers: set[str], chosen: Chosen | None) -> None:
        self._buffers = buffers
        super().__init__(model, chosen)

    def copy(self) -> tuple[Callable[[], Any], list[Tensor]]:
        copied = _copied(self._model)
        tensors = {name: tensor_of(name, array, is_buffer) for name, array, is_buffer in self._all(copied)
                   if name in self._places}
        return lambda: copied, [*self._in_order(tensors, _copies(self._left)).values()]

    def move_to(self, model: dict[str, Any] | None) -> None:
        self._model = self._model if model is None else _of_kind(model, dict, self._model)
        self._note_places()

    def _all(self, model: Any) -> Iterator[tuple[str, Any, bool]]:
        return ((name, array, name in self._buffers) for name, array in _flat(model, ""))


class TorchReplica(InPlaceReplica):
    """A module's parameters and buffers."""

    REMEDY = "call worker.rebind() after the module was moved, loaded again or changed"

    def copy(self) -> tuple[Callable[[], Any], list[Tensor]]:
        copies: dict[Any, Any] = {}

        def once(key: Any, clone: Callable[[], Any]) -> Any:
            if key not in copies:
                copies[key] = clone()
            return copies[key]

        def copied(tensor: Any) -> Any:  # tied tensors stay tied, also those of another shape
            if is_dtensor(tensor):
                return with_local(tensor, copied(local_of(tensor)))
            plain = tensor.detach()
            if plain.is_conj():  # a clone has no such view of its memory
                return copied(plain.conj()).conj()
            order = order_of_memory(plain)
            if order is None or plain.numel() == 0:
                return once(id(tensor), plain.clone)
            ordered = plain.permute(order)
            flat = once((*place_of(plain), plain.dtype), lambda: ordered.reshape(-1).clone())
            return flat.view(ordered.shape).permute([order.index(side) for side in range(plain.dim())])

        tensors = {name: tensor_of(name, copied(tensor), buffer) for name, (tensor, buffer) in self._found().items()}
        given = self._model.state_dict()
        state = {name: copied(tensor) if hasattr(tensor, "data_ptr") else tensor for name, tensor in given.items()}
        means = {name: copied(tensor) for name, tensor in self._averaged_by_name()
                 if name in given and not _have_one_memory(tensor, given[name])}
        return lambda: _filled(self._whole(state, copied), means), [*self._in_order(tensors, _copies(self._left)).values()]

    def _averaged_by_name(self) -> Iterator[tuple[str, Any]]:
        """As state_dict() names them: tied ones several times."""
        averaged = {place_of(local_of(one)) for name, one, _ in self._chosen_ones() if self._apart.get(name) in (None, OF_ANOTHER)}
        for above, part in self._model.named_modules(remove_duplicate=False):
            for name, tensor in (*part._parameters.items(), *part._buffers.items()):
                if tensor is not None and place_of(local_of(tensor)) in averaged:
                    yield f"{above}.{name}" if above else name, tensor

    def _whole(self, state: dict[str, Any], copied: Callable[[Any], Any]) -> dict[str, Any]:
        """When the copies are filled of the tensors that take part."""
        return state

    def frozen(self, chosen: Chosen | None) -> list[Tensor]:
        taking_part = {address for address, _ in self._places.values()}
        found = [bytes_of(name, local_of(tensor)) for name, tensor in self._resting()
                 if (chosen is None or chosen(name, tensor)) and place_of(local_of(tensor))[0] not in taking_part]
        return [one for one in found if one is not None]

    def has_another_choice(self) -> bool:
        return any(self._would_choose(name, tensor, False) != self._choice[name]
                   for name, tensor in self._model.named_parameters() if name in self._choice)

    def choose_again(self, means: dict[str, Any]) -> None:
        self._choose()
        for name, tensor in self._resting():
            if name in means:
                tensor_of(name, tensor, False)[1].copy_(means[name])

    def move_to(self, model: Any | None) -> None:
        self._model = self._model if model is None else _of_kind(model, sys.modules["torch"].nn.Module, self._model)
        self._note_places()

    def follow(self) -> bool:
        """In each round, so that it looks for names only where something differs."""
        if self.members is not None and self.members.are_the_same():
            return False
        for name, tensor in self._model.named_parameters():
            if tensor.requires_grad and self._choice.get(name) is False and self._would_choose(name, tensor, False):
                raise _core.MismatchError(f"Worker: parameter \"{name}\" trains now (requires_grad=True), and took no part when the "
                                          "worker was made; call worker.rebind() on every worker after requires_grad has changed")
        has_followed = super().follow()
        if not has_followed:  # integers, or what does not take part
            self._note_places()
        return has_followed

    def _note_places(self) -> None:
        super()._note_places()
        self.members = _members_of(self._model, set(self._places), [tensor for _, tensor in self._resting()])

    def _resting(self) -> list[tuple[str, Any]]:
        """The parameters that neither take part nor train."""
        return [(name, tensor) for name, tensor in self._model.named_parameters()
                if not tensor.requires_grad and name not in self._places]

    def _would_choose(self, name: str, array: Any, is_buffer: bool) -> bool:
        return super()._would_choose(name, array, is_buffer) if self._chosen is not None else is_buffer or bool(array.requires_grad)

    def _require_some(self) -> None:
        super()._require_some()
        names = [name for name, _ in self._resting()]
        if self._chosen is None and names and not any(self._choice[name] for name, _ in self._model.named_parameters()):
            raise _core.ArgumentError(f"Worker: none of {len(names)} parameters trains: \"{names[0]}\" has requires_grad=False; let "
                                      "one train before the worker is made, or choose what takes part by participates")

    def _all(self, model: Any) -> Iterator[tuple[str, Any, bool]]:
        for name, tensor in model.named_parameters():
            yield name, tensor, False
        for name, tensor in model.named_buffers():
            yield name, tensor, True

    def _is_trained(self, array: Any, is_buffer: bool) -> bool:
        return not is_buffer and bool(array.requires_grad)


def _have_one_memory(tensor: Any, entry: Any) -> bool:
    return hasattr(entry, "data_ptr") and tensor.dtype == entry.dtype and place_of(local_of(tensor)) == place_of(local_of(entry))


def _filled(state: dict[str, Any], means: dict[str, Any]) -> dict[str, Any]:
    """Entries that a state_dict() of the user's has copied, as to another type, get the means."""
    for name, mean in means.items():
        entry = state[name]
        if not hasattr(entry, "data_ptr") or _kind_of(entry) != _kind_of(mean):
            raise _core.MismatchError(f"Worker.mean_model: the module's state_dict() gives \"{name}\" as {_described(entry)}, which cannot "
                                      f"take the mean, {_described(mean)}; let it give the parameters and buffers, or copies of "
                                      "the same shape of floating-point numbers")
        entry.copy_(mean)
    return state


def _kind_of(tensor: Any) -> tuple[Any, ...]:
    return tensor.shape, tensor.layout, is_dtensor(tensor), tensor.is_floating_point(), tensor.is_complex()


def _described(entry: Any) -> str:
    return f"{type(entry).__name__} {list(getattr(entry, 'shape', []))} {getattr(entry, 'dtype', '')}"


AT_ONCE = 512  # tensors whose memory is looked at in a round; those of larger models in turn


def _members_of(module: Any, names: set[str], resting: list[Any]) -> _core.Members | None:
    """None for modules that keep their members in another way."""
    parts = [vars(part) for part in module.modules()]
    if not all(isinstance(part.get(kind), dict) for part in parts for kind in ("_parameters", "_buffers", "_modules")):
        return None
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    tensors = [local_of(named[name]) for name in names]
    locals_ = [(one, local_of(one)) for one in named.values() if is_dtensor(one)]
    return _core.Members(parts, tensors, [place_of(tensor) for tensor in tensors], resting, locals_, AT_ONCE)


def lay_flat(model: Any) -> None:
    """Gives the parameters of a module that train one block of memory for each type of elements. The parameters stay the same
    objects, with their shapes and strides; those that have memory in common keep it in common. Parts that lay out their memory
    themselves, as recurrent ones for cuDNN do, are left alone."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        raise _core.ArgumentError(f"Worker: flat=True is for a module of PyTorch, a {type(model).__name__} was given; leave it out")
    _refuse_shards(model.named_parameters())
    alone = {id(one) for part in model.modules() if hasattr(part, "flatten_parameters") for one in part.parameters()}
    blocks: dict[Any, dict[Any, list[Any]]] = {}
    for one in model.parameters():
        if id(one) not in alone and one.numel() > 0 and not one.is_meta and order_of_memory(one.detach()) is not None:
            blocks.setdefault((one.device, one.dtype), {}).setdefault(place_of(one.detach()), []).append(one)
    for (device, dtype), places in blocks.items():
        training = [(count, same) for (_, count), same in places.items() if any(one.requires_grad for one in same)]
        block, at = torch.empty(sum(count for count, _ in training), dtype=dtype, device=device), 0
        for count, same in training:
            for one in same:
                laid = block[at:at + count].as_strided(one.shape, one.stride())
                laid.copy_(one.detach())
                one.data = laid
            at += count


def _devices_of(tensors: Iterable[Any]) -> set[Any]:
    """The GPUs that tensors of PyTorch are on."""
    return {tensor.device for tensor in tensors if getattr(tensor, "is_cuda", False)}


def _stream_of(device: Any) -> Any:
    """As any call of PyTorch, the worker follows what the thread's current stream has; PyTorch makes that stream wait for
    what backward() has begun on others."""
    return sys.modules["torch"].cuda.current_stream(device)


def _of_kind(model: Any, kind: type, before: Any) -> Any:
    if not isinstance(model, kind):
        raise _core.ArgumentError(f"Worker.rebind: a {type(model).__name__} was given, the worker was made with a "
                                  f"{type(before).__name__}; give such a model, or nothing")
    return model


MOST_KNOWN = 512


@functools.cache
def _counting() -> Callable[[list[Any]], Any]:
    """What changes the versions of tensors. That of PyTorch from 2.6 on does nothing else."""
    torch = sys.modules["torch"]
    counting: Callable[[list[Any]], Any] | None = getattr(torch.autograd.graph, "increment_version", None)
    try:
        if counting is not None:
            counting([])
    except (TypeError, RuntimeError):  # it takes one tensor
        counting = None
    return counting or torch._foreach_zero_


def _known_to_autograd(tensors: Iterable[Any]) -> list[Any]:
    """Tensors without elements that share the version with those of a module. Autograd compares versions. Of large models some
    are taken, from all parts: to change a version takes longer than to average a small tensor."""
    torch = sys.modules.get("torch")
    known = [] if torch is None else [tensor for tensor in tensors
                                      if isinstance(tensor, torch.Tensor) and not tensor.is_inference()]
    known = known[::-(-len(known) // MOST_KNOWN) or 1]
    return [flat_start_of(tensor) for tensor in known if order_of_memory(tensor.detach()) is not None]


def _copies(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: (name, array.clone() if hasattr(array, "clone") else array.copy(), is_buffer, kind)
            for name, (_, array, is_buffer, kind) in tensors.items()}


def _flat(model: dict[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, value in model.items():
        name = f"{above}{key}"
        if isinstance(value, dict):
            yield from _flat(value, name + ".")
        else:
            yield name, value


def _copied(model: dict[str, Any], copies: dict[Any, Any] | None = None) -> dict[str, Any]:
    """Arrays of the same memory have a copy in common, as the library takes them for one."""
    made = {} if copies is None else copies

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return _copied(value, made)
        own = value.detach().clone() if hasattr(value, "detach") else value.copy()
        place, count = place_of(value)
        is_contiguous = value.is_contiguous() if hasattr(value, "is_contiguous") else value.flags.c_contiguous
        if count == 0 or not is_contiguous:
            return own
        return made.setdefault((place, count, value.dtype), own).reshape(value.shape)

    return {key: of(value) for key, value in model.items()}
