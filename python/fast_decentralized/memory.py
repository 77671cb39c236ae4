"""The memory in which threads of local.run() average: each has a model of its own."""
from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from . import _core

_owners: dict[int, weakref.ref[Any]] = {}  # by address, the workers that write there
_lock = threading.Lock()


def take(worker: Any, memory: dict[int, str]) -> None:
    """Addresses that a worker writes to from now on, and no others, with names of tensors. Raises ArgumentError for one
    that a worker of another thread writes to: both would change it at the same time."""
    with _lock:
        for address, reference in list(_owners.items()):
            owner = reference()
            if owner is None or owner is worker or owner._has_ended:
                del _owners[address]
            elif address in memory and owner._thread != worker._thread:
                raise _core.ArgumentError(f"Worker: tensor \"{memory[address]}\" has the memory of another thread's model; make "
                                          "a model in each thread, or leave the tensor out by participates")
        _owners.update(dict.fromkeys(memory, weakref.ref(worker)))


def _leave_to_the_parent() -> None:
    """In a forked child, where another thread may have held the lock."""
    global _lock
    _lock = threading.Lock()
    _owners.clear()


os.register_at_fork(after_in_child=_leave_to_the_parent)
