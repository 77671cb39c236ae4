"""Arguments of users as the library takes them: texts of options, numbers, losses, saved states."""
from __future__ import annotations

import math
from typing import Any

from . import _core


def _is_flag(value: Any) -> bool:
    """Of Python, or of NumPy, whose type is "bool_" before version 2."""
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _text(value: Any) -> str:
    if _is_flag(value):
        return str(int(value))
    if isinstance(value, float):
        return "inf" if value == math.inf else str(int(value)) if value.is_integer() else float.__repr__(value)
    return str(value)


def texts_of(value: Any) -> list[str]:
    if isinstance(value, dict):  # of a rule, whose flags are true and false
        return [f"{key}={str(each).lower() if _is_flag(each) else _text(each)}" for key, each in value.items()]
    return [_text(each) for each in value] if isinstance(value, (list, tuple)) else [_text(value)]


def listed(value: Any) -> list[Any]:
    """None, one thing, or several."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def number_of(value: Any) -> int | str:
    """As in a line of metrics: infinity is a text."""
    return _text(float(value)) if value in (math.inf, "inf") else int(value)


def loss_of(result: Any) -> float | None:
    """A floating-point number, or an array of one, is the loss. So is the first of a tuple or list."""
    if isinstance(result, (tuple, list)) and result:
        result = result[0]
    if isinstance(result, float):
        return result
    shape = getattr(result, "shape", None)
    if isinstance(shape, tuple) and math.prod(shape) == 1 and "float" in str(getattr(result, "dtype", "")):
        return as_number(result, "the loss")
    return None


def as_number(value: Any, what: str) -> float:
    try:
        if math.prod(getattr(value, "shape", ())) == 1 and hasattr(value, "item"):
            return float(value.item())
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else f" ({value!r})"
        raise _core.ArgumentError(f"Worker: {what} is a {type(value).__name__}{shape}; a number, or an array of one, is "
                                  "required") from None


def saved_tensors_of(state: Any) -> list[Any]:
    """What state_dict() has put there. Files of the user may have anything."""
    tensors = state.get("tensors") if isinstance(state, dict) and state.get("format") == 1 else None
    if not isinstance(tensors, (list, tuple)):
        raise _core.DataError("load_state_dict: this is not what Worker.state_dict() returned")
    kinds: tuple[Any, ...] = (str, str, (list, tuple), bytes)
    for place, tensor in enumerate(tensors):
        is_whole = (isinstance(tensor, (list, tuple)) and len(tensor) == 4
                    and all(isinstance(part, kind) for part, kind in zip(tensor, kinds))
                    and all(isinstance(side, int) for side in tensor[2]))
        if not is_whole:
            raise _core.DataError(f"load_state_dict: tensor {place} is no name, element type, shape and bytes; the file is "
                                  "damaged")
    return list(tensors)


def checked_watch(value: Any) -> tuple[int, Any] | None:
    """Of on_mean: the rounds from one call to the next, and the function."""
    if value is None:
        return None
    is_pair = isinstance(value, (tuple, list)) and len(value) == 2
    if not is_pair or not hasattr(value[0], "__index__") or value[0] < 1 or not callable(value[1]):
        raise _core.ArgumentError(f"Worker: on_mean is {value!r}; a pair of a whole number, at least 1, and a function is required")
    return int(value[0]), value[1]
