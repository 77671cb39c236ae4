"""How workers end with their thread or process."""
import re
import threading
import types

import fast_decentralized as fast
import pytest
from fast_decentralized import loops, runtime


class Recorded:
    """In place of a worker: notes when it is closed."""

    def __init__(self, name, closed, thread=None):
        self._name, self._closed, self._thread = name, closed, thread or threading.get_ident()
        self.is_closed = False

    def close(self):
        self.is_closed = True
        self._closed.append(self._name)


def test_workers_end_in_the_same_order_on_all_ranks_the_newest_first():
    closed = []
    workers = [Recorded(name, closed) for name in range(20)]
    other = Recorded("of another thread", closed, thread=-1)
    for worker in [*workers, other]:
        runtime.remember(worker)
    workers.pop(7)  # forgotten by its owner
    runtime.close_all(threading.get_ident())
    assert closed == [name for name in range(19, -1, -1) if name != 7]
    runtime.close_all(-1)
    runtime.close_all()
    assert closed[19:] == ["of another thread"]


def test_threads_remember_workers_while_others_end_theirs():
    def work(failures):
        try:
            for _ in range(300):
                worker = Recorded("", [])
                runtime.remember(worker)
                runtime.close_all(threading.get_ident())
                assert worker.is_closed
        except BaseException as error:
            failures.append(error)

    failures = []
    threads = [threading.Thread(target=work, args=(failures,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_rank_may_ask_for_the_hosts_alone(started):
    """world() is there since MPI began. Else rank 0 would wait for the others, which are in another collective call."""
    said = started(3, "rendezvous.py").stdout  # mpiexec may join lines
    found = re.findall(r"rank (\d) meets at (127\.0\.0\.1:\d{4,5})(?!\d)", said)
    assert sorted(rank for rank, _ in found) == ["0", "1", "2"] and len({place for _, place in found}) == 1, said


def test_hosts_meet_at_an_address_that_others_reach(monkeypatch):
    """Debian gives a host's own name the address 127.0.1.1."""
    sources = {"self": "127.0.0.1", "unknown": None, "other": "10.1.2.3", "here": "127.0.0.1"}

    class Probe:
        def __init__(self, *_): pass
        def __enter__(self): return self
        def __exit__(self, *_): pass

        def connect(self, place):
            if sources[place[0]] is None:
                raise OSError("Name or service not known")
            self.source = sources[place[0]]

        def getsockname(self):
            return self.source, 1

    monkeypatch.setattr(loops.socket, "socket", Probe)
    monkeypatch.setattr(loops.socket, "gethostname", lambda: "self")
    assert loops.address_for(["self", "unknown", "here", "other"]) == "10.1.2.3"
    assert loops.address_for(["self", "unknown", "here"]) is None  # the others are given this host's name


@pytest.mark.parametrize("hosts", [[0, 1, 0, 1], [0, 0, 2, 2], [0, 1, 1, 0, 1, 0, 0], [0]])
def test_the_workers_of_a_host_are_counted_however_they_were_dealt(monkeypatch, hosts):
    """Else workers 0 and 2 of two hosts in turn would both take the first one of two GPUs."""
    counts = {}
    for rank, host in enumerate(hosts):
        world = types.SimpleNamespace(rank=rank, hosts=hosts)
        monkeypatch.setattr(runtime, "world", lambda world=world: world)
        counts.setdefault(host, []).append(fast.local_rank())
    assert all(found == list(range(len(found))) for found in counts.values())


def test_threads_are_workers_of_one_host():
    assert fast.local.run(3, fast.local_rank) == [0, 1, 2]


def test_the_interface_of_an_address_is_known():
    assert loops._interface_of("127.0.0.1") == "lo"
    assert loops._interface_of("192.0.2.77") is None and loops._interface_of(None) is None
