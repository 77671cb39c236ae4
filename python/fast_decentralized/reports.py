"""Which rank prints a failure, and what is said at the end of one that nothing has printed."""
from __future__ import annotations

import sys

from . import _core

_place: tuple[int, int] | None = None  # of this process, once it is known
_failure: BaseException | None = None  # of a worker, in a program that may go on nevertheless
_follower: BaseException | None = None  # of a program some other rank of which had failed before


def set_place(rank: int, size: int) -> None:
    global _place
    _place = rank, size


def name_of_place(unknown: str = "a rank") -> str:
    return unknown if _place is None else f"rank {_place[0]} of {_place[1]}"


def is_elsewhere(error: BaseException) -> bool:
    """Whether another rank prints this error. Of an error that all workers of a group raise, it is their first."""
    if not isinstance(error, _core.Error):
        return error is _follower
    place = error.rank if error.rank is not None else 0 if _place is None else _place[0]
    return error.kind == "peer_failed" or (error.everywhere and place != 0)


def remember(error: BaseException) -> None:
    """A worker was announced as failed while this exception passed. If nothing prints it, nobody else tells of it."""
    global _failure
    _failure = _failure or error


def leave_to_others(error: BaseException) -> None:
    """Another rank had failed before. Ctrl-C interrupts all ranks of a terminal, and one tells of it."""
    global _follower
    if isinstance(error, KeyboardInterrupt):
        _follower = error


def forget(error: BaseException | None = None) -> None:
    """It has been printed, or all workers go on. None: whatever it is."""
    global _failure
    if error is None or error is _failure:
        _failure = None


def tell() -> None:
    """At the end of the program."""
    if _failure is None or _failure is getattr(sys, "last_value", None) or is_elsewhere(_failure):
        return
    sys.stdout.flush()
    print(f"fast_decentralized: {name_of_place()} ended its worker while an exception passed, which ends the others: "
          f"{type(_failure).__name__}: {_failure}", file=sys.stderr, flush=True)
    forget()
