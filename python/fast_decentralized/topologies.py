"""Topologies from names, files, graphs of networkx, matrices and functions."""
from __future__ import annotations

import threading
from typing import Any, Callable, Sequence

from . import _core

__all__ = ["from_function", "from_matrix", "from_networkx", "names", "topology"]


def names() -> dict[str, str]:
    """The names that a Worker knows, each with its help."""
    return dict(_core.topology_names())


def topology(source: Any, hosts: Sequence[int] = ()) -> _core.TopologyRule:
    """Of a name ("torus2d"), a file, a graph of networkx, a matrix of NumPy or SciPy, or a list of these:
    a schedule that repeats them in turn. ``hosts``: ``Group.hosts``, which some names follow."""
    if isinstance(source, _core.TopologyRule):
        return source
    if isinstance(source, _core.Topology):
        return _core.TopologyRule.constant(source)
    if hasattr(source, "__fspath__"):
        source = source.__fspath__()
    if isinstance(source, str):
        return _core.TopologyRule.load(source, list(hosts))
    if isinstance(source, (list, tuple)) and not _is_matrix(source):
        rounds = [_one(each) for each in source]
        if not rounds:
            raise _core.TopologyError("topology: an empty list; give at least one round")
        return _core.TopologyRule.function("rounds", rounds[0].workers, len(rounds), lambda t: rounds[t % len(rounds)])
    return _core.TopologyRule.constant(_one(source))


def from_function(at_round: Callable[[int], Any], workers: int, period: int = 0, name: str = "function") -> _core.TopologyRule:
    """A schedule: ``at_round(t)`` gives the graph or matrix of round t. It depends on t alone and is called
    by every worker. ``period`` rounds repeat; 0: never."""
    def called(t: int) -> _core.Topology:
        try:
            return _one(at_round(t))
        except Exception as error:  # the library keeps its text alone
            raised.error = error
            raise

    return _core.TopologyRule.function(name, workers, period, called)


class _Raised(threading.local):
    """What a function of the user has raised in this thread."""
    error: Exception | None = None


raised = _Raised()


def take_raised() -> Exception | None:
    """With its traceback, for the error that the library makes of it."""
    error, raised.error = raised.error, None
    return error


def from_networkx(graph: Any, name: str = "networkx") -> _core.Topology:
    """Nodes become workers 0, 1, ... in their order. In a directed graph, v reads u if there is an edge u → v."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    readers = graph.predecessors if graph.is_directed() else graph.neighbors
    lists = [sorted(number[other] for other in readers(node) if other != node) for node in graph.nodes]
    return _core.Topology(name, lists)


def from_matrix(matrix: Any, name: str = "matrix") -> _core.Topology:
    """Of a square matrix of NumPy or SciPy. Entry (i, j) is the weight with which i combines what it reads
    of j, and rows or columns sum to 1. A matrix of zeros and ones alone that sums to something else is an
    adjacency matrix: i reads j where it is 1, and the library chooses the weights."""
    import numpy as np

    dense = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=float)
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1]:
        raise _core.TopologyError(f"topology: a matrix of shape {dense.shape}; a square one is required")
    lists = [[int(j) for j in np.flatnonzero(row) if j != i] for i, row in enumerate(dense)]
    sums = np.concatenate([dense.sum(0), dense.sum(1)])
    if np.isin(dense, (0, 1)).all() and not np.allclose(sums, 1):
        return _core.Topology(name, lists)
    weights = [[float(dense[i, j]) for j in row] for i, row in enumerate(lists)]
    return _core.Topology(name, lists, weights, [float(value) for value in dense.diagonal()])


def _is_matrix(source: Sequence[Any]) -> bool:
    return bool(source) and all(isinstance(row, (list, tuple)) and all(isinstance(value, (int, float)) for value in row)
                                for row in source)


def _one(source: Any) -> _core.Topology:
    if isinstance(source, _core.Topology):
        return source
    if hasattr(source, "is_directed") and hasattr(source, "nodes"):
        return from_networkx(source)
    is_list = isinstance(source, (list, tuple)) and _is_matrix(source)
    if hasattr(source, "shape") or hasattr(source, "toarray") or is_list:
        return from_matrix(source)
    raise _core.ArgumentError(f"topology: a {type(source).__name__}; give a name, a file, a graph of networkx, a "
                              "square matrix or a list of these")
