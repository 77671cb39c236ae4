"""A worker in a training loop that belongs to another framework. Lightning, Accelerate and Transformers share this."""
from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import itertools
import os
import pickle
import re
import socket
import struct
import sys
import time
from typing import Any, Iterator, Mapping

from . import _core, runtime
from .calls import is_end
from .worker import Worker

TIMEOUT_S = 1800.0  # as torch.distributed
ROUND_BITS = 40  # of a word of the board; the others number the meeting
PART_VALUES = 1 << 19  # of a model, that all workers reduce at once


_meetings = itertools.count(1)  # of all loops, equally many on all ranks


def require(package: str, least: str, used_by: str) -> None:
    """Raises ImportError when a package is missing or too old."""
    wish = f"{used_by} needs {package} {least} or newer; run  pip install '{package}>={least}'"
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(wish) from None
    if _numbers(found) < _numbers(least):
        raise ImportError(f"{wish}; {found} is installed")


def _numbers(version: str) -> list[int]:
    leading = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return [int(part) for part in leading[0].split(".")] if leading else []


def meet(where: str, own: bytes = b"", timeout_s: float = TIMEOUT_S) -> list[bytes]:
    """Collective. The bytes of all workers, by rank. ``where`` is for the error that all raise when others are elsewhere
    in their program."""
    parts = [part.split(b"\n", 1) for part in runtime.apart().all_gather(where.encode() + b"\n" + own, timeout_s)]
    require_same([place.decode() for place, _ in parts], "is at \"{}\"",
                 "let all make the same calls, after as many batches")
    return [bytes_of_one for _, bytes_of_one in parts]


def require_same(values: list[Any], text: str, remedy: str, caller: str = "") -> None:
    """Of the values of all workers, by rank: raises MismatchError on all of them when one differs from the first."""
    if len(set(values)) == 1:
        return
    other = next(rank for rank, value in enumerate(values) if value != values[0])
    error = _core.MismatchError(f"{caller}worker 0 {text.format(values[0])}, worker {other} {text.format(values[other])}; "
                                f"{remedy}")
    error.everywhere, error.rank = True, runtime.rank()
    raise error


def gather(value: Any, timeout_s: float = TIMEOUT_S, where: str = "gather") -> list[Any]:
    """Collective. The values of all workers, by rank."""
    return [pickle.loads(part) for part in meet(where, pickle.dumps(value), timeout_s)]


def gather_means(tensors: list[Any], timeout_s: float = TIMEOUT_S) -> list[Any]:
    """Collective. New tensors with the means of all workers' ones, of floating types, which have the same shapes
    everywhere. Sums are of 64 bits, and the same on all workers."""
    import torch

    meet("the mean of all workers", b"", timeout_s)
    means = [tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in tensors]
    all_reduce = _core.Means(runtime.apart(), PART_VALUES, timeout_s)
    for part in _parts([mean.view(-1) for mean in means]):
        values = torch.cat([piece.cpu().double() for piece in part])
        all_reduce.average(values.data_ptr(), values.numel())
        for piece, mean in zip(part, values.split([piece.numel() for piece in part])):
            piece.copy_(mean)
    return means


def _parts(vectors: list[Any]) -> Iterator[list[Any]]:
    """Pieces of them in turn, together of PART_VALUES at most."""
    part: list[Any] = []
    room = PART_VALUES
    for vector in vectors:
        for piece in vector.split(PART_VALUES):
            if piece.numel() > room:
                yield part
                part, room = [], PART_VALUES
            if piece.numel() > 0:
                part.append(piece)
                room -= piece.numel()
    if part:
        yield part


def gather_tensors(tensor: Any, timeout_s: float = TIMEOUT_S) -> list[Any]:
    """Collective. The tensors of all workers, by rank, on the device of the own one. Those of others may have any."""
    return [one.to(tensor.device) for one in gather(tensor.detach().cpu(), timeout_s, "gather of a tensor")]


def broadcast(value: Any, source: int = 0, timeout_s: float = TIMEOUT_S) -> Any:
    """Collective. The value of one worker."""
    own = pickle.dumps(value) if runtime.rank() == source else b""
    return pickle.loads(meet("broadcast", own, timeout_s)[source])


def set_rendezvous() -> None:
    """Collective. Sets MASTER_ADDR and MASTER_PORT, which mpiexec does not, so that torch.distributed can begin."""
    if runtime.size() == 1 or all(name in os.environ for name in ("MASTER_ADDR", "MASTER_PORT")):
        return
    on_one_host = len(set(runtime.world().hosts)) == 1
    names = gather(socket.gethostname())
    place = None
    if runtime.rank() == 0:
        address = "127.0.0.1" if on_one_host else address_for(names[1:]) or names[0]
        with socket.socket() as probe:
            probe.bind(("", 0))
            place = address, str(probe.getsockname()[1])
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = broadcast(place)
    set_interface(os.environ["MASTER_ADDR"], on_one_host)


def set_interface(address: str, on_one_host: bool) -> None:
    """Sets the interface by which gloo reaches that address. Gloo alone resolves the host's name, which may take long, and
    which Debian makes 127.0.1.1."""
    interface = "lo" if on_one_host else _interface_of(_source_towards(address))
    if interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)


def set_gpu() -> None:
    """Sets RANK, WORLD_SIZE and LOCAL_RANK, which mpiexec does not, where PyTorch finds GPUs: Accelerate then finds the
    processes. Those of a host take its GPUs in turn."""
    import torch

    if runtime.size() > 1 and torch.cuda.is_available():
        os.environ.setdefault("RANK", str(runtime.rank()))
        os.environ.setdefault("WORLD_SIZE", str(runtime.size()))
        os.environ.setdefault("LOCAL_RANK", str(runtime.local_rank() % torch.cuda.device_count()))


def address_for(hosts: list[str]) -> str | None:
    """Of this host, as others reach it: the source of a route to one of them. None: no such route is known."""
    own = socket.gethostname()
    found = (_source_towards(host) for host in dict.fromkeys(hosts) if host != own)
    return next((address for address in found if address is not None), None)


def _source_towards(host: str) -> str | None:
    """The address with which packets to a host begin. Nothing is sent. None: the host is not known, or only on this
    machine."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))
            address = str(probe.getsockname()[0])
    except OSError:
        return None
    return None if address.startswith("127.") else address


def _interface_of(address: str | None) -> str | None:
    """Its name, as "eth0"."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                request = struct.pack("256s", name.encode())
                found = fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24]  # SIOCGIFADDR
            except OSError:
                continue
            if socket.inet_ntoa(found) == address:
                return name
    return None


def tensors_of(module: Any) -> dict[str, Any]:
    """Parameters and buffers, by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def fill(module: Any, values: Mapping[str, Any]) -> None:
    """Sets parameters and buffers of these names, in their place."""
    import torch

    with torch.no_grad():
        for name, tensor in tensors_of(module).items():
            if name in values:
                tensor.copy_(values[name])


class Loop:
    """A worker whose rounds another framework's loop begins and ends. Meanwhile ``use_mean()`` puts the mean of all
    workers' weights into the module, and ``use_own()`` this worker's. Calls are collective, but for use_own()."""

    def __init__(self, module: Any, topology: Any, options: Mapping[str, Any], timeout_s: float = TIMEOUT_S) -> None:
        self.module, self._timeout_s = module, timeout_s
        self._board = runtime.board()  # later, its first call would meet those of a rank that has failed
        self._begun = 0  # rounds, those without a step among them
        self._learning_rate = 0.0  # of the last round
        self._first_meeting = next(_meetings)
        self._tell(self._first_meeting)
        if options.get("replicas") is not None:
            raise _core.ArgumentError("replicas: Lightning, Accelerate and Transformers have one rank for each replica here; "
                                      "use fast.Worker(replicas=...) in a loop of your own")
        self._waits = options.get("staleness", 0) not in ("inf", float("inf"))
        self.worker = Worker(module, topology, **options)
        self._own: dict[str, Any] | None = None  # this worker's weights while the module has the mean
        self._handled = sys.exc_info()[1]  # training may be a part of an except block
        self._is_in_round = self._has_finished = False

    # Rounds --------------------------------------------------------------------------------------

    def begin_round(self) -> None:
        """If none has begun."""
        self.use_own()
        self._handled = sys.exc_info()[1]
        if not self._is_in_round:
            self._begin()
            self._is_in_round = True

    def end_round(self, learning_rate: float) -> None:
        """The one that has begun, or a whole one."""
        self.begin_round()
        self._is_in_round = False
        self._learning_rate = learning_rate
        self.worker.end_round(learning_rate=learning_rate)

    def _begin(self) -> None:
        self._begun += 1
        self._tell(self._meeting)
        self.worker.begin_round()

    # Meetings ------------------------------------------------------------------------------------

    def join(self, where: str) -> None:
        """Waits until all workers have come to this meeting, after different numbers of rounds. Where another one has begun
        a round, for which it waits for this worker, this worker makes it without a step."""
        if self._own is not None or self._has_finished or self._is_in_round:  # all are at the same place already
            return
        self._tell(next(_meetings))
        last, pause_s = time.monotonic() + self._timeout_s, 1e-4
        while (missing := self._missing()) or self._begun < self._furthest():
            if self._begun < self._furthest():
                self._begin()
                self.worker.end_round(learning_rate=self._learning_rate)
                last, pause_s = time.monotonic() + self._timeout_s, 1e-4
                continue
            if time.monotonic() > last:
                raise _core.DeadlineError(f"worker {self.worker.rank} is at \"{where}\" and has waited {self._timeout_s:g} s for worker "
                                          f"{missing[0]}, which has begun no further round; look for what it does, or give a longer "
                                          "timeout_s")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.005)

    def _tell(self, meeting: int) -> None:
        """To all workers: to which meeting this one has come last, and how many rounds it has begun."""
        self._meeting = meeting
        self._board.set(meeting << ROUND_BITS | self._begun)

    def _missing(self) -> list[int]:
        """The workers that have not come to this worker's meeting."""
        return [rank for rank, word in enumerate(self._board.words()) if word >> ROUND_BITS < self._meeting]

    def _furthest(self) -> int:
        """The most rounds that a worker has begun. Words of an earlier loop may still be there."""
        if not self._waits:
            return self._begun
        return max(word & (1 << ROUND_BITS) - 1 for word in self._board.words() if word >> ROUND_BITS >= self._first_meeting)

    # Weights -------------------------------------------------------------------------------------

    def use_mean(self, on: int | None = None) -> None:
        """On all workers, or on that one alone."""
        if self._own is not None or self._has_finished:
            return
        if self._is_in_round:
            raise _core.ArgumentError("the mean of all workers was asked for between backward() and the optimizer's "
                                      "step; ask after the step")
        self.join("the mean of all workers")
        self.worker._look()
        averaged = self._averaged()
        means = gather_means(list(averaged.values()), self._timeout_s)
        self._own = {}
        if on in (None, self.worker.rank):
            self._own = {name: tensor.detach().clone() for name, tensor in tensors_of(self.module).items() if name in averaged}
            self._fill(dict(zip(averaged, means)))

    def use_own(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            fill(self.module, own)

    def _averaged(self) -> dict[str, Any]:
        """By name, the memory of the tensors that are averaged, in the order and the shapes that the library has."""
        return {name: tensor for name, tensor, _, _ in self.worker._model.tensors()}

    def _fill(self, values: Mapping[str, Any]) -> None:
        import torch

        with torch.no_grad():
            for name, tensor in self._averaged().items():
                tensor.copy_(values[name])

    @contextlib.contextmanager
    def mean(self, on: int | None = None) -> Iterator[None]:
        """``with loop.mean():`` around an evaluation."""
        had_mean = self._own is not None
        self.use_mean(on)
        try:
            yield
        finally:
            if not had_mean:
                self.use_own()

    def own_tensors(self) -> dict[str, Any]:
        """The same of this worker, also while the module has the mean."""
        return {**{name: tensor.detach() for name, tensor in tensors_of(self.module).items()}, **(self._own or {})}

    # The end -------------------------------------------------------------------------------------

    def finish(self, keep_weights: bool = False) -> None:
        """Waits for all workers. Afterwards the module of each has the mean, or the weights that it has now. While an
        exception passes, as in a finally block, the worker is announced as failed instead, and nobody waits."""
        if self._has_finished:
            return
        passing = self._passing()
        if passing is not None:
            self.fail(passing)
            runtime.remember_failure(passing)
            self._has_finished = True
            return
        if keep_weights:
            self._own = None
        self.use_own()
        self.worker.await_finish()
        if not keep_weights:
            self._fill(self.worker._mean_tensors())
        self._has_finished = True

    def _passing(self) -> BaseException | None:
        """What was raised since the last round began. Iterators and programs end well by an exception, too."""
        error = sys.exc_info()[1]
        return None if error is self._handled or is_end(error) else error

    def fail(self, error: BaseException) -> None:
        """This worker has failed, which ends the others."""
        if getattr(error, "everywhere", False):
            self.worker.abandon()  # all raise it
        else:
            self.worker._fail(error)

    @property
    def has_finished(self) -> bool:
        return self._has_finished

    def close(self) -> None:
        if not self.worker.is_closed:
            self.worker.close()
