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


class ArrayReplica(Replica):
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
        self._model = self._model if model is None else model
        self._note_places()

    def settle(self) -> None:
        _settle(self._devices)

    def require_in_place(self) -> None:
        found = self._found()
        if found == self._places:
            return
        names = {name for name, _ in found.items() ^ self._places.items()}
        first = next(name for name in [*self._places, *found] if name in names)
        raise _core.MismatchError(f"Worker: tensor \"{first}\" is not where it was; change arrays in place "
                                  "(w -= step, w[:] = values), or call worker.rebind() after they were replaced")

    def _note_places(self) -> None:
        self._places = self._found()
        self._devices = _devices_of(array for _, array in _flat(self._model, ""))

    def _found(self) -> dict[str, Any]:
        return {name: _place(array) for name, array in _flat(self._model, "")
                if self._chosen(name) and "float" in str(getattr(array, "dtype", ""))}

    def _of(self, model: dict[str, Any]) -> list[Tensor]:
        return [tensor_of(name, array, name in self._buffers) for name, array in _flat(model, "")
                if self._chosen(name) and not _counts(array)]


class TorchReplica(Replica):
    """A module's parameters and buffers, which change in place."""

    _members: _Members | None

    def __init__(self, module: Any, chosen: Chosen) -> None:
        self._module, self._chosen = module, chosen
        self._note_places()

    def tensors(self) -> list[Tensor]:
        return [(name, tensor.detach(), buffer, None) for name, tensor, buffer in self._named() if not _counts(tensor)]

    def copy(self) -> tuple[Callable[[], Any], list[Tensor]]:
        copies: dict[Any, Any] = {}

        def copied(tensor: Any) -> Any:  # tied tensors stay tied, also those of another shape
            has_place = tensor.numel() > 0 and tensor.is_contiguous()
            key = (*_place(tensor), tensor.dtype) if has_place else id(tensor)
            if key not in copies:
                copies[key] = tensor.detach().clone()
            return copies[key].view(tensor.shape) if has_place else copies[key]

        tensors: list[Tensor] = [(name, copied(tensor), buffer, None) for name, tensor, buffer in self._named()
                                 if not _counts(tensor)]
        state = {name: copied(tensor) if hasattr(tensor, "data_ptr") else tensor
                 for name, tensor in self._module.state_dict().items()}
        return lambda: state, tensors

    def give(self) -> Any:
        return self._module

    def move_to(self, model: Any | None) -> None:
        self._module = self._module if model is None else model
        self._note_places()

    def settle(self) -> None:
        _settle(self._devices)

    def require_in_place(self) -> None:
        """Twice in each round, so that it looks for names only where something differs."""
        if self._members is not None and self._members.are_the_same():
            return
        found = self._found()
        if found == self._places:  # integers, or what does not take part
            self._members = _Members.of(self._module, set(found))
            return
        names = {name for name, _ in found.items() ^ self._places.items()}
        first = next(name for name in [*self._places, *found] if name in names)
        raise _core.MismatchError(f"Worker: tensor \"{first}\" is not where it was; call worker.rebind() after the "
                                  "module was moved, loaded again or changed")

    def _note_places(self) -> None:
        self._places = self._found()
        self._members = _Members.of(self._module, set(self._places))
        self._devices = _devices_of(tensor for _, tensor, _ in self._named())

    def _named(self) -> Iterator[tuple[str, Any, bool]]:
        for name, tensor in self._module.named_parameters():
            if self._chosen(name):
                yield name, tensor, False
        for name, tensor in self._module.named_buffers():
            if self._chosen(name):
                yield name, tensor, True

    def _found(self) -> dict[str, tuple[int, int]]:
        return {name: _place(tensor) for name, tensor, _ in self._named() if tensor.is_floating_point()}


class _Members:
    """The members of a module and of its parts, and the memory of some of its tensors."""

    KINDS = ("_parameters", "_buffers", "_modules")

    def __init__(self, parts: list[dict[str, Any]], tensors: list[Any]) -> None:
        self._parts, self._tensors = parts, tensors
        self._kept = [list(part[kind].values()) for part in parts for kind in self.KINDS]  # no other gets their ids
        self._ids, self._places = self._found()

    @classmethod
    def of(cls, module: Any, names: set[str]) -> _Members | None:
        """None for modules that keep their members in another way."""
        parts = [vars(part) for part in module.modules()]
        if not all(isinstance(part.get(kind), dict) for part in parts for kind in cls.KINDS):
            return None
        named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        return cls(parts, [named[name] for name in names])

    def are_the_same(self) -> bool:
        return self._found() == (self._ids, self._places)

    def _found(self) -> tuple[list[int], list[tuple[int, int]]]:
        ids = [id(value) for part in self._parts for kind in self.KINDS for value in part[kind].values()]
        return ids, [(tensor.data_ptr(), tensor.numel()) for tensor in self._tensors]


def _devices_of(tensors: Iterable[Any]) -> set[Any]:
    """The GPUs that tensors of PyTorch are on."""
    return {tensor.device for tensor in tensors if getattr(tensor, "is_cuda", False)}


def _settle(devices: set[Any]) -> None:
    """As any call of PyTorch, the worker follows what the thread's current stream has; PyTorch makes that stream wait for
    what backward() has begun on others."""
    for device in devices:
        sys.modules["torch"].cuda.current_stream(device).synchronize()


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
        return array.data_ptr(), array.numel()
    if hasattr(array, "__array_interface__"):
        return array.__array_interface__["data"][0], array.size
    return id(array), 0


def _counts(array: Any) -> bool:
    """Whether these are integers or booleans, which stay with their worker."""
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind is not None:
        return kind in "biu"
    return hasattr(array, "is_complex") and not (array.is_floating_point() or array.is_complex())


def tensor_of(name: str, array: Any, is_buffer: bool) -> Tensor:
    """Without what keeps a framework from sharing memory."""
    if hasattr(array, "detach"):
        return name, array.detach(), is_buffer, None
    if getattr(getattr(array, "dtype", None), "name", "") == "bfloat16" and hasattr(array, "view"):
        return name, array.view("uint16"), is_buffer, "bf16"  # NumPy has no such type of its own
    if hasattr(array, "__cuda_array_interface__"):
        raise _core.ArgumentError(f"Worker: \"{name}\" is a {type(array).__name__} in the memory of a GPU; tensors of PyTorch "
                                  "are required there, such as torch.from_dlpack(array), which has the same memory")
    return name, array, is_buffer, None
