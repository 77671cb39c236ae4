"""Decentralized training: each worker averages its weights with its neighbors only.

    import fast_decentralized as fast

    worker = fast.Worker(model, topology="torus2d")
    for batch in loader:
        with worker.round():
            loss = train_step(model, batch)

Start it by ``mpiexec -n 4 python train.py``; without mpiexec there is one worker. The model is a
``torch.nn.Module``, a pytree of JAX arrays, or a dict of NumPy arrays. ``fast.local.run(4, main)``
makes workers of threads, and ``fast.spawn(4, main)`` of processes.
"""
try:
    from . import _core
except ImportError as _error:
    if "libmpi" not in str(_error):
        raise
    raise ImportError(f"fast_decentralized: its MPI library is not here ({_error}); the wheel needs MPICH (pip install mpich, or "
                      "apt-get install mpich), a package built from source the MPI that it was built with") from None

from . import local, observe, topologies
from ._core import (ArgumentError, Block, DataError, DeadlineError, Departures, Error, Group, InternalError,
                    MessageEvent, MismatchError, MpiError, NeighborShare, NumericError, PeerEvent, PeerFailedError, PhaseEvent,
                    ResourceError, ScalarEvent, TopologyError, WorkerStats)
from ._core import version as __version__
from .launch import spawn
from .observers import Observer
from .replica_ranks import Replicas, replicas
from .rules import Rule
from .runtime import local_rank, rank, size, with_spares, world
from .sites import Site
from .stops import on_stop
from .worker import Worker, options

__all__ = ["ArgumentError", "Block", "DataError", "DeadlineError", "Departures", "Error", "Group", "InternalError",
           "MessageEvent", "MismatchError", "MpiError", "NeighborShare", "NumericError", "Observer", "PeerEvent", "PeerFailedError",
           "PhaseEvent", "Replicas", "ResourceError", "Rule", "ScalarEvent", "Site", "TopologyError", "Worker", "WorkerStats", "local", "local_rank",
           "observe", "on_stop", "options", "rank", "replicas", "size", "spawn", "topologies", "with_spares", "world", "__version__"]
