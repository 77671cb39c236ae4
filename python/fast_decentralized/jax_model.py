"""A pytree of JAX arrays as a model. The worker averages in memory that JAX has made for it."""
from __future__ import annotations

import ctypes
import functools
from typing import Any, Callable, Iterable

from . import _core
from .models import Chosen, Replica
from .tensors import Tensor, tensor_of, why_it_stays


class JaxReplica(Replica):
    """A pytree of arrays that do not change. Each round has arrays of its own. The library changes them before the
    user gets them, and never afterwards."""

    def __init__(self, params: Any, buffers: set[str], chosen: Chosen | None) -> None:
        import jax
        import numpy as np

        super().__init__()
        self._jax, self._np = jax, np
        paths, self._tree = jax.tree_util.tree_flatten_with_path(params)
        self._require_values((leaf for _, leaf in paths), "Worker")
        self._names = [".".join(_key(part) for part in path) or "params" for path, _ in paths]
        self._buffers = buffers
        leaves = [leaf for _, leaf in paths]
        chosen_names = {name for name, leaf in zip(self._names, leaves) if chosen is None or chosen(name, leaf)}
        self._places = [place for place, (name, leaf) in enumerate(zip(self._names, leaves))
                        if self._takes_part(leaf) and name in chosen_names and why_it_stays(leaf, name in buffers, name not in buffers) is None]
        self._numbers = {place for place, (name, leaf) in enumerate(zip(self._names, leaves))
                         if isinstance(leaf, (int, float, np.generic)) and name in chosen_names}
        self._own = self._copied(leaves, donate=False)
        self._initial = [array.copy() for array in self._own.memory]
        self._rest = self._others(leaves)
        self._adopted = False  # whether steps begin with the weights that all workers have
        self._taken = False  # whether combine() has brought what this round's step has made

    def tensors(self) -> list[Tensor]:
        return self._of(self._own)

    def rebind(self, core: _core.Worker) -> None:
        if self._own.addresses is None:
            super().rebind(core)
        else:
            core.rebind_to(self._own.addresses, self._own)

    def copy(self) -> tuple[Callable[[], Any], list[Tensor]]:
        copies = self._own.copy()
        return lambda: self._pytree(copies), self._of(copies)

    def has_started(self) -> None:
        initial, self._initial = self._initial, []
        self._adopted = all(self._np.array_equal(before, array, equal_nan=True)
                            for before, array in zip(initial, self._own.memory))

    def give(self) -> Any:
        self._adopted = True
        return self._pytree(self._own)

    def take(self, params: Any, donate: bool) -> None:
        if not self._adopted:
            raise _core.ArgumentError("Worker.combine: this step began with other weights than those of worker 0; take "
                                      "params = worker.params after making the worker, or give initial=\"as_is\"")
        self._move(params, "combine", donate)
        self._taken = True

    def follow_step(self) -> bool:
        if not self._taken:
            raise _core.ArgumentError("Worker: JAX arrays do not change in place; use params = worker.combine(params) "
                                      "instead of worker.round(), worker.step() and worker.end_round()")
        self._taken = False
        return False

    def move_to(self, params: Any | None) -> None:
        if params is not None:
            self._move(params, "rebind", donate=False)
            self._adopted = True

    def _move(self, params: Any, call: str, donate: bool) -> None:
        """To arrays with the weights of a pytree like the one at the start."""
        leaves, tree = self._jax.tree_util.tree_flatten(params)
        if tree == self._tree and (following := self._own.next(leaves, donate)) is not None:
            self._own = following
            return
        if tree != self._tree:
            raise _core.MismatchError(f"Worker.{call}: the pytree is {tree}, the worker was made with {self._tree}")
        self._require_values(leaves, f"Worker.{call}")
        for place in sorted(self._numbers):
            if self._takes_part(leaves[place]):
                raise _core.MismatchError(f"Worker.{call}: \"{self._names[place]}\" was a number when the worker was made, which "
                                          "takes no part, and is an array now; make it an array from the beginning, as by "
                                          "jax.numpy.asarray, or leave it out by participates")
        for place, own in zip(self._places, self._own.memory):
            leaf = self._array_of(leaves[place])
            if leaf.shape != own.shape or leaf.dtype != own.dtype:
                raise _core.MismatchError(f"Worker.{call}: \"{self._names[place]}\" is {leaf.dtype}{list(leaf.shape)}; "
                                          f"{own.dtype}{list(own.shape)} is required, as the worker was made")
        self._rest = self._others(leaves)
        self._own = self._copied(leaves, donate)

    def _require_values(self, leaves: Iterable[Any], call: str) -> None:
        if any(isinstance(leaf, self._jax.core.Tracer) for leaf in leaves):
            raise _core.ArgumentError(f"{call}: JAX traces the arrays (jit, grad, vmap or scan), which have no values then; call "
                                      "it outside of the traced function")

    def _takes_part(self, leaf: Any) -> bool:
        """Arrays of floating-point and complex numbers. Numbers of Python, functions and texts stay as they are."""
        return (isinstance(leaf, (self._jax.Array, self._np.ndarray))
                and self._jax.numpy.issubdtype(leaf.dtype, self._jax.numpy.inexact))

    def _others(self, leaves: list[Any]) -> dict[int, Any]:
        """By place, the leaves that do not take part. They are copies: a step may free the arrays that it is given
        (donate_argnums)."""
        return {place: leaf.copy() if isinstance(leaf, self._jax.Array) else leaf
                for place, leaf in enumerate(leaves) if place not in self._places}

    def _array_of(self, leaf: Any) -> Any:
        """With the element type that JAX gives it: float64 of NumPy is float32 by default."""
        return leaf if isinstance(leaf, self._jax.Array) else self._jax.numpy.asarray(leaf)

    def _copied(self, leaves: list[Any], donate: bool) -> _Weights:
        return _Weights.copied([self._array_of(leaves[place]) for place in self._places], donate)

    def _of(self, weights: _Weights) -> list[Tensor]:
        return [tensor_of(self._names[place], array, self._names[place] in self._buffers)
                for place, array in zip(self._places, weights.memory)]

    def _pytree(self, weights: _Weights) -> Any:
        if len(self._places) == len(self._names):
            return self._jax.tree_util.tree_unflatten(self._tree, weights.arrays())
        leaves = self._others([self._rest.get(place) for place in range(len(self._names))])
        leaves.update(zip(self._places, weights.arrays()))
        return self._jax.tree_util.tree_unflatten(self._tree, [leaves[place] for place in range(len(self._names))])


class _Weights:
    """Arrays whose memory the library may change until arrays() is called."""

    def __init__(self, arrays: list[Any], memory: list[Any] | None, shardings: list[Any] | None = None) -> None:
        self._arrays = arrays  # of JAX, over this memory unless that is a copy of NumPy's
        self._memory = memory  # arrays of NumPy; None: not asked for yet
        self._shardings = shardings  # of the arrays that the memory is a copy of
        self.addresses: list[int] | None = None
        if shardings is None:
            import numpy as np

            self._held = [np.asarray(array) for array in arrays]  # when they are ready; a step that frees an array leaves its memory
            self.addresses = [array.unsafe_buffer_pointer() for array in arrays]

    @classmethod
    def copied(cls, arrays: list[Any], donate: bool) -> _Weights:
        """``donate`` uses up the arrays: JAX then copies none that nothing else refers to."""
        import numpy as np

        if _are_on_one_processor(arrays):
            made = cls._moved(arrays, donate)
            if all(one is not None for one in made.memory):
                return made
            arrays = made._arrays
        return cls([], [np.array(array) for array in arrays], [_sharding_of(array) for array in arrays])

    @classmethod
    def _moved(cls, arrays: list[Any], donate: bool) -> _Weights:
        return cls(_copier(donate)(_apart(arrays) if donate else arrays), None)

    def next(self, leaves: list[Any], donate: bool) -> _Weights | None:
        """As copied(). None: these may be others than the arrays of JAX that the last ones were made of."""
        if self.addresses is None or len(leaves) != len(self._arrays) or not all(
                type(leaf) is type(own) and leaf.aval == own.aval and leaf.sharding == own.sharding
                for leaf, own in zip(leaves, self._arrays)):
            return None
        return self._moved(leaves, donate)

    @property
    def memory(self) -> list[Any]:
        if self._memory is None:
            self._memory = [_memory_of(array) for array in self._arrays]
        return self._memory

    def copy(self) -> _Weights:
        if self._shardings is not None:
            return _Weights([], [array.copy() for array in self.memory], self._shardings)
        return _Weights.copied(self._arrays, donate=False)

    def arrays(self) -> list[Any]:
        if self._shardings is None:
            return self._arrays
        return [_array_at(sharding, array) for sharding, array in zip(self._shardings, self.memory)]


@functools.lru_cache(maxsize=None)
def _copier(donate: bool) -> Callable[[list[Any]], list[Any]]:
    """One call of JAX for all arrays. It waits for those who still read what is donated."""
    import jax

    def copied(arrays: list[Any]) -> list[Any]:
        return [jax.numpy.copy(array) for array in arrays]

    compiled: Callable[[list[Any]], list[Any]] = jax.jit(copied, donate_argnums=0 if donate else ())
    return compiled


def _sharding_of(array: Any) -> Any:
    """The devices that the user has chosen for an array. None: JAX has."""
    is_chosen = array.committed if hasattr(array, "committed") else array._committed
    return array.sharding if is_chosen else None


def _array_at(sharding: Any, array: Any) -> Any:
    import jax

    return jax.numpy.array(array) if sharding is None else jax.device_put(array, sharding)


def _apart(arrays: list[Any]) -> list[Any]:
    """Each with memory of its own: JAX refuses to use up the same memory twice."""
    first: dict[int, int] = {}
    return [array if first.setdefault(array.unsafe_buffer_pointer(), place) == place else array.copy()
            for place, array in enumerate(arrays)]


def _are_on_one_processor(arrays: list[Any]) -> bool:
    devices = {device for array in arrays for device in array.devices()}
    return len(devices) == 1 and all(device.platform == "cpu" for device in devices)


def _memory_of(array: Any) -> Any:
    """An array of NumPy over the memory of one of JAX, which it keeps. It may be written to. None: NumPy has a copy."""
    import numpy as np

    view = np.asarray(array)
    if view.size == 0:
        return view
    place = view.__array_interface__["data"][0]
    if place != array.unsafe_buffer_pointer() or not view.flags.c_contiguous:
        return None
    block: Any = (ctypes.c_char * view.nbytes).from_address(place)
    block.owner = view
    return np.frombuffer(block, view.dtype).reshape(view.shape)


def _key(part: Any) -> str:
    """Of a part of a path in a pytree: its key, index or name."""
    for name in ("key", "idx", "name"):
        if hasattr(part, name):
            return str(getattr(part, name))
    return str(part)
