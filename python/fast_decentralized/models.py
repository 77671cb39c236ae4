"""What the library needs of a framework's model: the memory of its tensors, by name."""
from __future__ import annotations

import sys
from typing import Any, Callable, Iterable, Iterator

from . import _core

#: (name, array, whether it is a buffer, element type of memory that NumPy does not name)
Tensor = tuple[str, Any, bool, "str | None"]
Chosen = Callable[[str], bool]


class Replica:
    """A model as a Worker sees it."""

    def tensors(self) -> list[Tensor]:
        """The tensors that take part. Their memory stays where it is, but see require_in_place()."""
        raise NotImplementedError

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

    def require_in_place(self) -> None:
        """Raises MismatchError when tensors are not where they were."""

    def settle(self) -> None:
        """Waits until what was begun on the tensors has ended. The library's work on a GPU runs on a stream of its own,
        and has ended when a call of the library returns."""

    def require_step(self) -> None:
        """At the end of a round: raises an Error when the worker cannot see what the step has made."""
        self.require_in_place()

    def has_started(self) -> None:
        """All workers have their initial weights."""

    def has_changed(self) -> None:
        """The library has written to the tensors."""

    def memory(self) -> dict[int, str]:
        """The addresses that the library writes to, with the tensors' names."""
        return {}


def replica_of(model: Any, buffers: set[str], chosen: Chosen) -> Replica:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return TorchReplica(model, chosen)
    jax = sys.modules.get("jax")
    if jax is not None and any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(model)):
        from .jax_model import JaxReplica

        return JaxReplica(model, buffers, chosen)
    if isinstance(model, dict):
        return ArrayReplica(model, buffers, chosen)
    raise _core.ArgumentError(f"Worker: the model is a {type(model).__name__}; give a torch.nn.Module, a pytree of JAX "
                              "arrays or a dict of arrays")


class InPlaceReplica(Replica):
    """A model whose tensors change in place."""

    def settle(self) -> None:
        if self._devices:
            _settle(self._devices)

    def has_changed(self) -> None:
        if self._graphs:
            _tell_autograd(self._graphs)

    def memory(self) -> dict[int, str]:
        return {address: name for name, (address, count) in self._places.items() if count > 0}

    def _note(self, places: dict[str, tuple[int, int]], tensors: list[tuple[str, Any]]) -> None:
        """`places`: of the tensors that take part."""
        self._places = places
        self._devices = _devices_of(tensor for _, tensor in tensors)
        self._graphs = _known_to_autograd(tensor for name, tensor in tensors if name in places)


class ArrayReplica(InPlaceReplica):
    """A dict of arrays that change in place, also of dicts of arrays."""

    def __init__(self, model: dict[str, Any], buffers: set[str], chosen: Chosen) -> None:
        self._model, self._buffers, self._chosen = model, buffers, chosen
        self._note_places()

    def tensors(self) -> list[Tensor]:
        return self._of(self._model)

    def copy(self) -> tuple[Callable[[], Any], list[Tensor]]:
        copied = _copied(self._model)
        return lambda: copied, self._of(copied)

    def give(self) -> dict[str, Any]:
        return self._model

    def move_to(self, model: dict[str, Any] | None) -> None:
        self._model = self._model if model is None else _of_kind(model, dict, self._model)
        self._note_places()

    def require_in_place(self) -> None:
        found = self._found()
        if found == self._places:
            return
        names = {name for name, _ in found.items() ^ self._places.items()}
        first = next(name for name in [*self._places, *found] if name in names)
        raise _core.MismatchError(f"Worker: tensor \"{first}\" is not where it was; change arrays in place "
                                  "(w -= step, w[:] = values), or call worker.rebind() after they were replaced")

    def _note_places(self) -> None:
        self._note(self._found(), list(_flat(self._model, "")))

    def _found(self) -> dict[str, tuple[int, int]]:
        return {name: _place(array) for name, array in _flat(self._model, "")
                if self._chosen(name) and "float" in str(getattr(array, "dtype", ""))}

    def _of(self, model: dict[str, Any]) -> list[Tensor]:
        return [tensor_of(name, array, name in self._buffers) for name, array in _flat(model, "")
                if self._chosen(name) and not _counts(array)]


class TorchReplica(InPlaceReplica):
    """A module's parameters and buffers, which change in place. Buffers that have infinities at the start, as masks of
    attention, stay with their worker: the difference of two infinities is no number."""

    _members: _Members | None

    def __init__(self, module: Any, chosen: Chosen) -> None:
        self._module, self._chosen = module, chosen
        self._infinite = {name for name, buffer in module.named_buffers() if buffer.is_floating_point() and chosen(name)
                          and not buffer.is_meta and bool(buffer.isinf().any())}
        self._note_places()

    def tensors(self) -> list[Tensor]:
        return [tensor_of(name, tensor, buffer) for name, tensor, buffer in self._named() if not _counts(tensor)]

    def copy(self) -> tuple[Callable[[], Any], list[Tensor]]:
        copies: dict[Any, Any] = {}

        def copied(tensor: Any) -> Any:  # tied tensors stay tied, also those of another shape
            plain = tensor.detach()
            order = _order_of_memory(plain)
            if order is None or plain.numel() == 0:
                return copies.setdefault(id(tensor), plain.clone())
            ordered = plain.permute(order)
            flat = copies.setdefault((*_place(plain), plain.dtype), ordered.reshape(-1).clone())
            return flat.view(ordered.shape).permute([order.index(side) for side in range(plain.dim())])

        tensors = [tensor_of(name, copied(tensor), buffer) for name, tensor, buffer in self._named() if not _counts(tensor)]
        state = {name: copied(tensor) if hasattr(tensor, "data_ptr") else tensor
                 for name, tensor in self._module.state_dict().items()}
        return lambda: state, tensors

    def give(self) -> Any:
        return self._module

    def move_to(self, model: Any | None) -> None:
        self._module = self._module if model is None else _of_kind(model, sys.modules["torch"].nn.Module, self._module)
        self._note_places()

    def require_in_place(self) -> None:
        """In each round, so that it looks for names only where something differs."""
        if self._members is not None and self._members.are_the_same():
            return
        found = self._found()
        if found == self._places:  # integers, or what does not take part
            self._note_places()
            return
        names = {name for name, _ in found.items() ^ self._places.items()}
        first = next(name for name in [*self._places, *found] if name in names)
        raise _core.MismatchError(f"Worker: tensor \"{first}\" is not where it was; call worker.rebind() after the "
                                  "module was moved, loaded again or changed")

    def _note_places(self) -> None:
        self._note(self._found(), [(name, tensor) for name, tensor, _ in self._named()])
        self._members = _Members.of(self._module, set(self._places))

    def _named(self) -> Iterator[tuple[str, Any, bool]]:
        for name, tensor in self._module.named_parameters():
            if self._chosen(name):
                yield name, tensor, False
        for name, tensor in self._module.named_buffers():
            if self._chosen(name) and name not in self._infinite:
                yield name, tensor, True

    def _found(self) -> dict[str, tuple[int, int]]:
        return {name: _place(tensor) for name, tensor, _ in self._named() if tensor.is_floating_point()}


class _Members:
    """The members of a module and of its parts, and the memory of some of its tensors."""

    KINDS = ("_parameters", "_buffers", "_modules")

    def __init__(self, parts: list[dict[str, Any]], tensors: list[Any]) -> None:
        self._owners = [part for part in parts for _ in self.KINDS]
        self._kinds = [*self.KINDS] * len(parts)
        self._values = [list(owner[kind].values()) for owner, kind in zip(self._owners, self._kinds)]
        self._tensors, self._places = tensors, [_place(tensor) for tensor in tensors]

    @classmethod
    def of(cls, module: Any, names: set[str]) -> _Members | None:
        """None for modules that keep their members in another way."""
        parts = [vars(part) for part in module.modules()]
        if not all(isinstance(part.get(kind), dict) for part in parts for kind in cls.KINDS):
            return None
        named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return cls(parts, [named[name] for name in names])

    def are_the_same(self) -> bool:
        return _core.are_the_same(self._owners, self._kinds, self._values, self._tensors, self._places)


def _devices_of(tensors: Iterable[Any]) -> set[Any]:
    """The GPUs that tensors of PyTorch are on."""
    return {tensor.device for tensor in tensors if getattr(tensor, "is_cuda", False)}


def _settle(devices: set[Any]) -> None:
    """As any call of PyTorch, the worker follows what the thread's current stream has; PyTorch makes that stream wait for
    what backward() has begun on others."""
    for device in devices:
        sys.modules["torch"].cuda.current_stream(device).synchronize()


def _of_kind(model: Any, kind: type, before: Any) -> Any:
    if not isinstance(model, kind):
        raise _core.ArgumentError(f"Worker.rebind: a {type(model).__name__} was given, the worker was made with a "
                                  f"{type(before).__name__}; give such a model, or nothing")
    return model


def _known_to_autograd(tensors: Iterable[Any]) -> list[Any]:
    """Tensors without elements that share the version with those of a module. Autograd compares versions."""
    torch = sys.modules.get("torch")
    known = [] if torch is None else [tensor for tensor in tensors
                                      if isinstance(tensor, torch.Tensor) and not tensor.is_inference()]
    return [_in_memory_order(tensor.detach()).reshape(-1)[:0] for tensor in known if _order_of_memory(tensor) is not None]


def _tell_autograd(graphs: list[Any]) -> None:
    """The library has written to the tensors, of which PyTorch does not know. A later backward() of a graph that was made
    before raises an error, as after any change in place."""
    sys.modules["torch"]._foreach_zero_(graphs)


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
        place, count = _place(value)
        is_contiguous = value.is_contiguous() if hasattr(value, "is_contiguous") else value.flags.c_contiguous
        if count == 0 or not is_contiguous:
            return own
        return made.setdefault((place, count, value.dtype), own).reshape(value.shape)

    return {key: of(value) for key, value in model.items()}


def _place(array: Any) -> tuple[int, int]:
    """Where an array of NumPy or PyTorch has its memory, and how many elements there are."""
    if hasattr(array, "data_ptr"):
        try:
            return array.data_ptr(), array.numel()
        except RuntimeError:  # sparse
            return id(array), 0
    if hasattr(array, "__array_interface__"):
        return array.__array_interface__["data"][0], array.size
    return id(array), 0


def _order_of_memory(tensor: Any) -> list[int] | None:
    """Of a tensor of PyTorch, its sides from the one with the largest stride to that with the smallest; sides of 1 stay
    where they are. None: there are gaps, or the tensor has no strides."""
    if str(tensor.layout) != "torch.strided":
        return None
    order, strides = list(range(tensor.dim())), tensor.stride()
    above_1 = [side for side in order if tensor.shape[side] > 1]
    for place, side in zip(above_1, sorted(above_1, key=lambda one: -strides[one])):
        order[place] = side
    return order if tensor.permute(order).is_contiguous() else None


def _in_memory_order(tensor: Any) -> Any:
    """Contiguous views of transposed tensors, and of those in channels_last. Other tensors are returned as they are."""
    order = None if not hasattr(tensor, "permute") or tensor.is_contiguous() else _order_of_memory(tensor)
    return tensor if order is None else tensor.permute(order)


def _counts(array: Any) -> bool:
    """Whether these are integers or booleans, which stay with their worker."""
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind is not None:
        return kind in "biu"
    return hasattr(array, "is_complex") and not (array.is_floating_point() or array.is_complex())


def tensor_of(name: str, array: Any, is_buffer: bool) -> Tensor:
    """Without what keeps a framework from sharing memory."""
    if getattr(array, "is_meta", False):
        raise _core.ArgumentError(f"Worker: tensor \"{name}\" is on the device meta, which has no memory; give it memory before "
                                  "the worker is made, as by module.to_empty(device=\"cpu\"), and load the weights")
    if hasattr(array, "detach"):
        return name, _in_memory_order(array.detach()), is_buffer, None
    if getattr(getattr(array, "dtype", None), "name", "") == "bfloat16" and hasattr(array, "view"):
        return name, array.view("uint16"), is_buffer, "bf16"  # NumPy has no such type of its own
    if hasattr(array, "__cuda_array_interface__"):
        raise _core.ArgumentError(f"Worker: \"{name}\" is a {type(array).__name__} in the memory of a GPU; tensors of PyTorch "
                                  "are required there, such as torch.from_dlpack(array), which has the same memory")
    return name, array, is_buffer, None
