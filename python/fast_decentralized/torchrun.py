"""Ranks that torchrun has started, or anything else that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

MPI asks a process manager for its ranks, which torchrun is not. Rank 0 serves one to all ranks. Where torchrun has a
store, rank 0 listens at a port of the system's choice and tells it there. Else it listens at the first port above
MASTER_PORT that is free, until all ranks have come; each says of which run it is.
"""
from __future__ import annotations

import contextlib
import datetime
import os
import socket
import time
from typing import Any, Mapping

from . import _core, implementation
from .process_manager import Server, line_of

LAUNCHER = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Of ranks of mpiexec or srun. Images and users set others, as OMPI_MCA_btl, OMPI_ALLOW_RUN_AS_ROOT and PMIX_MCA_gds.
OTHERS = ("PMI_RANK", "PMI_FD", "PMI_PORT", "PMI_ID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "HYDI_CONTROL_FD")
PORTS = 16  # above MASTER_PORT; torchrun listens on that one, or torch.distributed does
MOST_RANKS, MOST_PORTS = 2**31 - 1, 2**16 - 1
START_UP_S, ANSWER_S, END_S, END_AFTER_FAILURE_S = 300.0, 10.0, 30.0, 10.0

_server: Server | None = None


def is_launcher(environment: Mapping[str, str]) -> bool:
    """Whether torchrun, and no process manager, has started this process as one of several."""
    if any(name in environment for name in OTHERS) or not all(name in environment for name in LAUNCHER):
        return False
    return _number(environment, "WORLD_SIZE", 1, MOST_RANKS) > 1


def join() -> None:
    """Gives this process its rank, before MPI begins. Does nothing without torchrun."""
    if is_launcher(os.environ):
        size = _number(os.environ, "WORLD_SIZE", 1, MOST_RANKS)
        _require_mpich()
        _number(os.environ, "MASTER_PORT", 0, MOST_PORTS - PORTS)
        connection = _connect(_number(os.environ, "RANK", 0, size - 1), size)
        os.environ.update(PMI_FD=str(connection.detach()), PMI_RANK=os.environ["RANK"],
                          PMI_SIZE=os.environ["WORLD_SIZE"])
        if os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]:
            os.environ.setdefault("MPI_LOCALNRANKS", os.environ["LOCAL_WORLD_SIZE"])


def leave(failed: bool) -> None:
    """After MPI has ended: rank 0 serves until all have, or one is gone."""
    global _server
    if _server is not None:
        _server.wait(END_AFTER_FAILURE_S if failed else END_S)
        _server.close()
        _server = None


def _number(environment: Mapping[str, str], name: str, least: int, most: int) -> int:
    value = environment[name].strip()
    if value.isdecimal() and least <= int(value) <= most:
        return int(value)
    error = _core.ArgumentError(f"torchrun: {name} is \"{environment[name]}\"; a whole number from {least} to {most} is "
                                "required; correct it, or unset it and start by mpiexec")
    rank = environment["RANK"].strip()
    error.everywhere = name != "RANK"  # the other ranks have the same value
    error.rank = int(rank) if rank.isdecimal() else 0
    raise error


def _require_mpich() -> None:
    """Ranks of Open MPI ask by another protocol (PMIx), which the server here does not have."""
    if implementation.of_this_package() == "Open MPI":
        error = _core.ArgumentError("torchrun: this package uses Open MPI, whose ranks torchrun cannot connect; start by "
                                    "mpiexec, or build the package with MPICH")
        error.everywhere, error.rank = True, _number(os.environ, "RANK", 0, MOST_RANKS)
        raise error


def _run() -> str:
    """Equal on all ranks of this run, and of this attempt of it."""
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT", "WORLD_SIZE")
    return "/".join(os.environ.get(name, "").replace(" ", "_") for name in names)


def _connect(rank: int, size: int) -> socket.socket:
    global _server
    host, last = os.environ["MASTER_ADDR"], time.monotonic() + START_UP_S
    ports, store = _ports_above_master(), _store(size)
    if rank == 0:
        listening = _listen(host, ports if store is None else [0])
        _server = Server(listening, size, _run())
        ports = [listening.getsockname()[1]]
        if store is not None:
            store.set(_key(), str(ports[0]))
    elif store is not None:
        ports = [_told_port(store, rank, size)]
    while time.monotonic() < last:
        for port in ports:
            connection = _joined(host, port, rank)
            if connection is not None:
                return connection
        time.sleep(0.05)
    raise _core.DeadlineError(f"torchrun: rank {rank} of {size} has not found rank 0 at {host}, ports {ports[0]} to "
                              f"{ports[-1]}, within {START_UP_S:.0f} s; open these ports, or start by mpiexec")


def _ports_above_master() -> list[int]:
    first = int(os.environ["MASTER_PORT"]) + 1
    return list(range(first, first + PORTS))


def _store(size: int) -> Any:
    """That of torchrun's agent. None: there is none, as with variables alone, or PyTorch is not here."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    try:
        from torch import distributed
    except ImportError:
        return None
    store: Any = distributed
    return store.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, False,
                    timeout=datetime.timedelta(seconds=START_UP_S))


def _key() -> str:
    return f"fast_decentralized/{_run()}"


def _told_port(store: Any, rank: int, size: int) -> int:
    try:
        return int(store.get(_key()))
    except RuntimeError as error:
        raise _core.DeadlineError(f"torchrun: rank {rank} of {size} has not heard from rank 0 by torchrun's store within "
                                  f"{START_UP_S:.0f} s ({error}); look for what rank 0 does, or start by mpiexec") from error


def _listen(host: str, ports: list[int]) -> socket.socket:
    """At the first of these ports that is free; 0: at any."""
    for port in ports:
        for family, address in _places(host):
            try:
                return socket.create_server((address, port), family=family, backlog=1024,
                                            dualstack_ipv6=not address and family == socket.AF_INET6)
            except OSError:
                continue
    raise _core.ResourceError(f"torchrun: the ports {ports[0]} to {ports[-1]} above MASTER_PORT are in use; give "
                              "torchrun another --master_port")


def _places(host: str) -> list[tuple[int, str]]:
    """Addresses to listen on, the best one first; "": all. On its own host, a name may mean 127.0.1.1, which ranks of
    other hosts cannot reach."""
    found = []
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]:  # all ranks are on this host
        with contextlib.suppress(OSError):
            found = [(int(family), str(address[0]))
                     for family, *_, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[:1]]
    if socket.has_dualstack_ipv6():
        found.append((socket.AF_INET6, ""))
    return [*found, (socket.AF_INET, "")]


def _joined(host: str, port: int, rank: int) -> socket.socket | None:
    """None where rank 0 of this run does not answer."""
    connection = None
    try:
        connection = socket.create_connection((host, port), timeout=ANSWER_S)
        connection.sendall(line_of(cmd="join", run=_run(), rank=rank))
        answer = b""
        while not answer.endswith(b"\n"):
            more = connection.recv(1)
            if not more:
                break
            answer += more
        if answer == line_of(cmd="joined", rc=0):
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
    except OSError:
        pass
    if connection is not None:
        connection.close()
    return None
