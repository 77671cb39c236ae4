"""What happens in a worker, for Python code that wants to know."""
from __future__ import annotations

from . import _core


class Observer:
    """Base class. Override what you need; methods that a class does not have cost nothing.
    Events of sites are told to observers of C++ alone.

    Methods are called from the thread in which something happens, and must return soon. An exception
    in one is printed, and the observer is not called any more.
    """
    # The methods stand in the type stub alone: an observer is asked for those that it has.


METHODS = {"on_phase", "on_message", "on_peer", "on_scalar"}


def require_known_methods(kind: type) -> None:
    """Of an observer that a Worker is given: there all ranks hear of the error, and one prints it."""
    unknown = {name for one in kind.__mro__ if issubclass(one, Observer) for name in vars(one) if name.startswith("on_")}
    unknown -= METHODS
    if unknown:
        raise _core.ArgumentError(f"Observer: {kind.__name__} has {', '.join(sorted(unknown))}; "
                                  f"choose {', '.join(sorted(METHODS))}")
