"""Processes that a rank of MPI has started anew, as workers of a data loader.

They have the variables of the rank, with which MPI would begin as the same rank a second time. The library refuses that;
those of multiprocessing know the rank's place. Forked ones have all that the rank had; runtime.py cares for them.
"""
from __future__ import annotations

import multiprocessing
import os

from . import _core

PLACE = "FAST_DECENTRALIZED_PLACE"  # a rank's process, rank and size, and more that the library looks at


def report_place(place: str) -> None:
    """To processes that this rank starts with os.environ. Others have the variable of the library already."""
    os.environ[PLACE] = place


def place_of_parent() -> tuple[int, int] | None:
    """The rank and the number of workers of the rank that has started this process. None: no rank has."""
    parent, words = multiprocessing.parent_process(), os.environ.get(PLACE, "").split()
    # While a child imports the program, it does not know its parent yet.
    is_starting = getattr(multiprocessing.current_process(), "_inheriting", False)
    if len(words) < 3 or not (is_starting or (parent is not None and words[0] == str(parent.pid))):
        return None
    return int(words[1]), int(words[2])


def require_own_place() -> None:
    """Before MPI begins."""
    if place_of_parent() is not None:
        raise _core.ArgumentError("this process was started by multiprocessing from a rank of MPI, whose place it cannot take; use "
                                  "the worker in that rank")
