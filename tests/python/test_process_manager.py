"""The server of PMI version 1, without MPI: what a client reads, word by word."""
import contextlib
import socket

import pytest
from fast_decentralized.process_manager import Server, words_of


class Client:
    def __init__(self, port, rank, run="run"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.lines = self.socket.makefile("r")
        self.joined = self.ask(f"join run={run} rank={rank}")

    def ask(self, words):
        with contextlib.suppress(OSError):
            self.tell(words)
            return self.read()
        return ""

    def tell(self, words):
        self.socket.sendall(f"cmd={words}\n".encode())

    def read(self):
        with contextlib.suppress(OSError):
            return self.lines.readline().removeprefix("cmd=").rstrip("\n")
        return ""

    def close(self):
        self.lines.close()
        self.socket.close()


@pytest.fixture
def ranks():
    made = []

    def make(size, coming=None):
        listening = socket.create_server(("127.0.0.1", 0))
        made.append(Server(listening, size, "run"))
        port = listening.getsockname()[1]
        made.extend(Client(port, rank) for rank in range(size if coming is None else coming))
        return made[0], port, made[1:]

    yield make
    for each in made:
        each.close()


def test_ranks_join_and_hear_the_sizes(ranks):
    _, _, [first, second] = ranks(2)
    assert first.joined == second.joined == "joined rc=0"
    assert first.ask("init pmi_version=1 pmi_subversion=1") == "response_to_init pmi_version=1 pmi_subversion=1 rc=0"
    assert first.ask("get_maxes") == "maxes kvsname_max=256 keylen_max=64 vallen_max=1024"
    assert first.ask("get_appnum") == "appnum appnum=0"
    assert first.ask("get_universe_size") == "universe_size size=2"
    assert first.ask("get_my_kvsname") == "my_kvsname kvsname=fast"


def test_a_rank_may_ask_for_its_number(ranks):
    _, _, [_, second] = ranks(2)
    assert second.ask("initack pmiid=1") == "initack rc=0"
    assert [second.read() for _ in range(3)] == ["set size=2", "set rank=1", "set debug=0"]


def test_what_one_rank_puts_the_others_get(ranks):
    _, _, [first, second] = ranks(2)
    assert first.ask("put kvsname=fast key=a value=b c=d") == "put_result rc=0 msg=success"
    assert second.ask("get kvsname=fast key=a") == "get_result rc=0 msg=success value=b c=d"
    assert second.ask("get kvsname=fast key=b") == "get_result rc=-1 msg=unknown_key"


def test_a_barrier_lets_nobody_out_before_all_are_in(ranks):
    _, _, clients = ranks(3)
    for _ in range(20):
        for client in clients[:2]:
            client.tell("barrier_in")
        assert clients[2].ask("put kvsname=fast key=k value=v") == "put_result rc=0 msg=success"
        clients[0].socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            clients[0].socket.recv(1)
        clients[0].socket.settimeout(60)
        clients[2].tell("barrier_in")
        assert [client.read() for client in clients] == ["barrier_out rc=0"] * 3


def test_it_is_over_when_all_have_ended(ranks):
    server, _, clients = ranks(2)
    assert clients[0].ask("finalize") == "finalize_ack rc=0"
    clients[0].close()
    assert not server.wait(0)
    assert clients[1].ask("init pmi_version=1 pmi_subversion=1").startswith("response_to_init")
    assert clients[1].ask("finalize") == "finalize_ack rc=0"
    assert server.wait(60)


@pytest.mark.parametrize("how", ["gone", "abort"])
def test_nobody_waits_for_a_rank_that_is_gone(ranks, how):
    server, _, clients = ranks(3)
    for client in clients[:2]:
        client.tell("barrier_in")
    clients[2].close() if how == "gone" else clients[2].tell("abort exitcode=1")
    assert [client.read() for client in clients[:2]] == ["", ""] and server.wait(60)


def test_what_is_no_rank_of_the_run_is_sent_away(ranks):
    _, port, [only] = ranks(2, coming=1)  # it listens until all have come
    strangers = [Client(port, 0), Client(port, 2), Client(port, -1), Client(port, 0, run="another"), Client(port, "x")]
    assert [stranger.joined for stranger in strangers] == [""] * 5
    web = socket.create_connection(("127.0.0.1", port), timeout=60)
    web.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert web.recv(100) == b""
    for each in [*strangers, web]:
        each.close()
    assert only.ask("get_appnum") == "appnum appnum=0"


def test_unknown_commands_are_answered(ranks):
    _, _, [client] = ranks(1)
    assert client.ask("spawn") == "spawn rc=-1 msg=unknown_command"
    assert client.ask("serve") == "serve rc=-1 msg=unknown_command"


def test_words():
    assert words_of("cmd=put key=a value=b c=d\n") == {"cmd": "put", "key": "a", "value": "b c=d"}
    assert words_of("") == {}
