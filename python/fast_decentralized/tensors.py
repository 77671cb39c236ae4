"""Arrays of NumPy, PyTorch and others as the library takes them: their elements, memory and order."""
from __future__ import annotations

from typing import Any

from . import _core

#: (name, array, whether it is a buffer, element type of memory that NumPy does not name)
Tensor = tuple[str, Any, bool, "str | None"]

AVERAGED = ("float32", "float64", "bfloat16", "float16")
PAIRS = ("complex32", "complex64", "complex128")  # averaged as pairs of real numbers

INTEGERS, EMPTY = "has integers", "has no elements"
OF_ANOTHER = "is averaged by another rank of the replica"


def is_dtensor(array: Any) -> bool:
    """Of PyTorch: a tensor of which each of several ranks has a part, or a copy."""
    return hasattr(array, "_local_tensor") and hasattr(array, "device_mesh")


def is_mesh(given: Any) -> bool:
    """A DeviceMesh of PyTorch."""
    return hasattr(given, "get_coordinate") and hasattr(given, "mesh_dim_names")


def local_of(array: Any) -> Any:
    """The array itself, but of a DTensor the part that this rank has, in its place."""
    return array._local_tensor if is_dtensor(array) else array


def with_local(array: Any, local: Any) -> Any:
    """As that DTensor, with another local tensor."""
    return type(array).from_local(local, array.device_mesh, array.placements, run_check=False, shape=array.shape,
                                  stride=array.stride())


def is_sharded(array: Any) -> bool:
    """Whether other ranks have other parts of it."""
    return is_dtensor(array) and any(not placement.is_replicate() and array.device_mesh.size(side) > 1
                                     for side, placement in enumerate(array.placements))


def tensor_of(name: str, array: Any, is_buffer: bool) -> Tensor:
    """Without what keeps a framework from sharing memory."""
    _require_memory(name, array)
    _require_type(name, array)
    if _type_of(array) in PAIRS:
        array = _as_pairs(array)
    if hasattr(array, "detach"):
        return name, _in_memory_order(array.detach()), is_buffer, None
    if _type_of(array) == "bfloat16" and hasattr(array, "view"):
        return name, array.view("uint16"), is_buffer, "bf16"  # NumPy has no such type of its own
    return name, array, is_buffer, None


def bytes_of(name: str, tensor: Any) -> Tensor | None:
    """A tensor of PyTorch of any elements, to compare and to send as it is. None: its memory is not in one piece."""
    plain = tensor.detach()
    if plain.is_meta or plain.is_quantized or plain.numel() == 0 or order_of_memory(plain) is None:
        return None
    plain = _in_memory_order(plain.conj() if plain.is_conj() else plain)
    if _type_of(plain) not in AVERAGED:
        import torch

        plain = plain.reshape(-1).view(torch.uint8)
    return name, plain, False, None


def why_it_stays(array: Any, is_buffer: bool, is_trained: bool) -> str | None:
    """Why an array stays with its worker, though it was chosen. None: it is averaged, or tensor_of() refuses it."""
    if counts(array):
        return INTEGERS
    if _element_count(array) == 0:
        return EMPTY
    if is_trained:
        return None
    if _has_other_type(array):
        return f"has elements of {array.dtype}"
    if hasattr(array, "layout") and not array.is_meta and order_of_memory(array.detach()) is None:
        return "is sparse or has gaps in its memory"
    return "has infinities" if is_buffer and _has_infinities(array) else None


def counts(array: Any) -> bool:
    """Whether these are integers or booleans, which stay with their worker."""
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind is not None:
        return kind in "biu"
    return hasattr(array, "is_complex") and not (array.is_floating_point() or array.is_complex())


def place_of(array: Any) -> tuple[int, int]:
    """Where an array of NumPy or PyTorch has its memory, and how many elements there are."""
    if hasattr(array, "data_ptr"):
        try:
            return array.data_ptr(), array.numel()
        except RuntimeError:  # sparse
            return id(array), 0
    if hasattr(array, "__array_interface__"):
        return array.__array_interface__["data"][0], array.size
    return id(array), 0


def have_the_same_form(one: Any, other: Any) -> bool:
    """Whether the library may use the memory of the other array in place of the first one's."""
    if type(one).__name__ != type(other).__name__ or one.dtype != other.dtype or \
            getattr(one, "device", None) != getattr(other, "device", None):
        return False
    if not hasattr(one, "detach"):
        return bool(one.shape == other.shape and other.flags.c_contiguous and other.flags.writeable)
    return order_of_memory(other.detach()) is not None and \
        _in_memory_order(one.detach()).shape == _in_memory_order(other.detach()).shape


def order_of_memory(tensor: Any) -> list[int] | None:
    """Of a tensor of PyTorch, its sides from the one with the largest stride to that with the smallest; sides of 1 stay
    where they are. None: there are gaps, or the tensor has no strides."""
    if str(tensor.layout) != "torch.strided":
        return None
    order = list(range(tensor.dim()))
    if tensor.is_contiguous():
        return order
    strides = tensor.stride()
    above_1 = [side for side in order if tensor.shape[side] > 1]
    for place, side in zip(above_1, sorted(above_1, key=lambda one: -strides[one])):
        order[place] = side
    return order if tensor.permute(order).is_contiguous() else None


def _in_memory_order(tensor: Any) -> Any:
    """Contiguous views of transposed tensors, and of those in channels_last. Other tensors are returned as they are."""
    order = None if not hasattr(tensor, "permute") or tensor.is_contiguous() else order_of_memory(tensor)
    return tensor if order is None else tensor.permute(order)


def flat_start_of(tensor: Any) -> Any:
    """A tensor of PyTorch without elements at the beginning of another one's memory, whose version it shares."""
    plain = _as_pairs(tensor) if tensor.is_complex() else _in_memory_order(tensor.detach())
    return plain.reshape(-1)[:0]


def _type_of(array: Any) -> str:
    """Of the elements, as "float32". "": the array names none."""
    dtype = getattr(array, "dtype", "")
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")


def _element_count(array: Any) -> int:
    count = array.numel() if hasattr(array, "numel") else getattr(array, "size", 1)
    return count if isinstance(count, int) else 1


def _has_other_type(array: Any) -> bool:
    """Numbers that the library cannot average, as float8, float128 of NumPy, or records. Objects have no such type."""
    if _type_of(array) in AVERAGED + PAIRS or counts(array):
        return False
    return hasattr(array, "is_complex") or getattr(getattr(array, "dtype", None), "kind", "") in ("f", "c", "V")


def _require_type(name: str, array: Any) -> None:
    if _has_other_type(array):
        why = ""
        if _type_of(array).startswith("float8"):
            why = " (neighbors among numbers of 8 bits are an eighth apart, which no step or average survives: give the worker " \
                  "the weights of 16 or 32 bits that the optimizer changes)"
        raise _core.ArgumentError(f"Worker: tensor \"{name}\" has elements of {array.dtype}; float32, float64, bfloat16, float16 "
                                  f"or complex numbers of these are required{why}, so convert it or leave it out by "
                                  f"participates=lambda name: name != \"{name}\"")


def _require_memory(name: str, array: Any) -> None:
    if getattr(array, "is_meta", False):
        raise _core.ArgumentError(f"Worker: tensor \"{name}\" is on the device meta, which has no memory; give it memory before "
                                  "the worker is made, as by module.to_empty(device=\"cpu\"), and load the weights")
    if not hasattr(array, "detach") and hasattr(array, "__cuda_array_interface__"):
        raise _core.ArgumentError(f"Worker: \"{name}\" is a {type(array).__name__} in the memory of a GPU; tensors of PyTorch "
                                  "are required there, such as torch.from_dlpack(array), which has the same memory")


def _as_pairs(array: Any) -> Any:
    """Complex numbers as real ones with one side of 2 more, over the same memory."""
    if hasattr(array, "detach"):
        import torch

        plain = _in_memory_order(array.detach())
        return torch.view_as_real(plain.conj() if plain.is_conj() else plain)
    import numpy as np

    real = np.asarray(array).real
    return np.lib.stride_tricks.as_strided(real, (*real.shape, 2), (*real.strides, real.itemsize))


def _has_infinities(array: Any) -> bool:
    if hasattr(array, "detach"):
        plain = _as_pairs(array) if _type_of(array) in PAIRS else array.detach()
        return not plain.is_meta and bool(plain.isinf().any())
    import numpy as np

    return hasattr(array, "__array__") and bool(np.isinf(np.asarray(array)).any())
