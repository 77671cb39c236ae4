"""A process manager for MPI ranks that something else has started: the server of PMI version 1.

MPI's ranks ask it for their number and exchange addresses through it. mpiexec has one of its own. The protocol is
lines of ``key=value`` words, the first of which is ``cmd``; MPICH's sources describe it (src/pmi/simple).
"""
from __future__ import annotations

import contextlib
import socket
import threading
from typing import Callable, Iterator

KEY_MAX, VALUE_MAX = 64, 1024
Words = dict[str, str]


def words_of(line: str) -> Words:
    """``cmd=put key=a value=b c`` → the words; the last one, ``value``, may have spaces."""
    head, found, value = line.rstrip("\n").partition(" value=")
    words = dict(word.partition("=")[::2] for word in head.split())
    return {**words, "value": value} if found else words


def line_of(**words: object) -> bytes:
    return (" ".join(f"{key}={value}" for key, value in words.items()) + "\n").encode()


class Server:
    """Serves ``size`` ranks, each over a connection that begins with ``cmd=join run=RUN rank=N``. ``run`` is text
    that only this run's ranks know. If a rank is gone before it has said that it ends, all connections are closed, so
    that no rank waits for it."""

    def __init__(self, listening: socket.socket, size: int, run: str) -> None:
        self._listening, self._size, self._run = listening, size, run
        self._lock = threading.Lock()
        self._ranks: dict[int, socket.socket] = {}
        self._values: dict[str, str] = {}
        self._waiting: list[socket.socket] = []  # in the barrier
        self._ended: set[int] = set()
        self._over = threading.Event()
        self._thread(self._accept)

    def wait(self, seconds: float) -> bool:
        """Until all ranks have ended, or one is gone."""
        return self._over.wait(seconds)

    def close(self) -> None:
        """Ends all connections."""
        self._over.set()
        with self._lock:
            self._stop_listening()
            for connection in self._ranks.values():
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()

    def _stop_listening(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # which ends accept()
        self._listening.close()

    @staticmethod
    def _thread(work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True, name="fast_decentralized.pmi").start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._listening.accept()
                self._thread(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        lines = connection.makefile("r", encoding="utf-8", errors="replace")
        rank = None
        with contextlib.suppress(OSError, ValueError, LookupError):
            rank = self._joined(connection, lines)
            if rank is not None:
                for line in lines:
                    self._answer(connection, rank, words_of(line))
        if rank is None:
            connection.close()
        elif rank not in self._ended:
            self.close()

    def _joined(self, connection: socket.socket, lines: Iterator[str]) -> int | None:
        """The rank; None for what is no rank of this run."""
        words = words_of(next(lines, "").strip())
        if words.get("cmd") != "join" or words.get("run") != self._run:
            return None
        rank = int(words["rank"])
        with self._lock:
            if not 0 <= rank < self._size or rank in self._ranks:
                return None
            self._ranks[rank] = connection
            all_have = len(self._ranks) == self._size
        if all_have:  # the port is free for others
            self._stop_listening()
        connection.sendall(line_of(cmd="joined", rc=0))
        return rank

    def _answer(self, connection: socket.socket, rank: int, words: Words) -> None:
        answer = getattr(self, "_" + words.get("cmd", ""), None) if words.get("cmd") in COMMANDS else None
        if answer is None:
            return connection.sendall(line_of(cmd=words.get("cmd"), rc=-1, msg="unknown_command"))
        answer(connection, rank, words)

    def _initack(self, connection: socket.socket, rank: int, words: Words) -> None:
        """Of ranks that do not know their number."""
        lines = [line_of(cmd="initack", rc=0)]
        lines += [line_of(cmd="set", **{name: value}) for name, value in (("size", self._size), ("rank", rank), ("debug", 0))]
        connection.sendall(b"".join(lines))

    def _init(self, connection: socket.socket, rank: int, words: Words) -> None:
        connection.sendall(line_of(cmd="response_to_init", pmi_version=1, pmi_subversion=1, rc=0))

    def _get_maxes(self, connection: socket.socket, rank: int, words: Words) -> None:
        connection.sendall(line_of(cmd="maxes", kvsname_max=256, keylen_max=KEY_MAX, vallen_max=VALUE_MAX))

    def _get_appnum(self, connection: socket.socket, rank: int, words: Words) -> None:
        connection.sendall(line_of(cmd="appnum", appnum=0))

    def _get_universe_size(self, connection: socket.socket, rank: int, words: Words) -> None:
        connection.sendall(line_of(cmd="universe_size", size=self._size))

    def _get_my_kvsname(self, connection: socket.socket, rank: int, words: Words) -> None:
        connection.sendall(line_of(cmd="my_kvsname", kvsname="fast"))

    def _put(self, connection: socket.socket, rank: int, words: Words) -> None:
        with self._lock:
            self._values[words["key"]] = words["value"]
        connection.sendall(line_of(cmd="put_result", rc=0, msg="success"))

    def _get(self, connection: socket.socket, rank: int, words: Words) -> None:
        with self._lock:
            value = self._values.get(words["key"])
        found = dict(rc=0, msg="success", value=value) if value is not None else dict(rc=-1, msg="unknown_key")
        connection.sendall(line_of(cmd="get_result", **found))

    def _barrier_in(self, connection: socket.socket, rank: int, words: Words) -> None:
        with self._lock:
            self._waiting.append(connection)
            if len(self._waiting) < self._size:
                return
            leaving, self._waiting = self._waiting, []
        for each in leaving:
            each.sendall(line_of(cmd="barrier_out", rc=0))

    def _finalize(self, connection: socket.socket, rank: int, words: Words) -> None:
        with contextlib.suppress(OSError):  # it has gone without waiting for the answer
            connection.sendall(line_of(cmd="finalize_ack", rc=0))
        with self._lock:  # after the answer: all connections are closed once all ranks have ended
            self._ended.add(rank)
            all_have = len(self._ended) == self._size
        if all_have:
            self._over.set()

    def _abort(self, connection: socket.socket, rank: int, words: Words) -> None:
        self.close()


COMMANDS = ("initack", "init", "get_maxes", "get_appnum", "get_universe_size", "get_my_kvsname", "put", "get", "barrier_in",
            "finalize", "abort")
