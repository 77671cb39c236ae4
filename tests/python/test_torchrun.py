"""Ranks that torchrun starts, and ranks with its variables alone."""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

import fast_decentralized as fast
import pytest
from fast_decentralized import implementation, reports, torchrun
from fast_decentralized.process_manager import Server

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs/averages.py"
WORLD = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def is_of_a_launcher(name):
    return name.startswith(("PMI_", "PMIX_", "OMPI_", "HYDI_", "MPI_LOCAL", "FASTRUN")) or name in WORLD


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def require_mpich():
    if implementation.of_this_package() == "Open MPI":
        pytest.skip("torchrun connects ranks of MPICH only")


def start(rank, ranks, port, *arguments, **changes):
    environment = {name: value for name, value in os.environ.items() if not is_of_a_launcher(name)}
    environment |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    environment |= changes
    return subprocess.Popen([sys.executable, PROGRAM, *arguments], env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(ranks, *arguments, **changes):
    """The last rank comes first."""
    require_mpich()
    port = free_port()
    processes = [start(rank, ranks, port, *arguments, **changes) for rank in reversed(range(ranks))][::-1]
    try:
        outputs = [process.communicate(timeout=100) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], *map("".join, zip(*outputs))


def test_four_ranks_find_each_other_by_the_variables():
    statuses, output, errors = run(4)
    assert statuses == [0] * 4 and errors == "", output + errors
    assert sorted(output.splitlines()) == [f"rank {rank} of 4 has 1.5" for rank in range(4)]


@pytest.mark.parametrize("how, text, own", [("raise", "ValueError: no more batches", 1),
                                            ("exit", "rank 2 of 4 ends with status 3", 3)])
def test_a_rank_that_fails_ends_all(how, text, own):
    statuses, output, errors = run(4, how)
    assert 0 not in statuses and ("Abort(" in errors or statuses == [1, 1, own, 1]), output + errors
    assert errors.count(text) == 1 and "of 4 has" not in output, output + errors


@pytest.mark.parametrize("how", ["", "raise"])
def test_torchrun_starts_four_ranks(tmp_path, how):
    """PyTorch 1.13 on Python 3.11 needs --redirects and --tee, for one rank at least."""
    require_mpich()
    torch = pytest.importorskip("torch")
    redirects = ["--redirects", "0:1", "--tee", "0:1", "--log_dir", tmp_path] if torch.__version__.startswith("1.") else []
    environment = {name: value for name, value in os.environ.items() if not is_of_a_launcher(name)}
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nnodes", "1",
                           "--nproc_per_node", "4", *redirects, PROGRAM, *how.split()],
                          env=environment, capture_output=True, text=True, timeout=150,
                          stdin=subprocess.DEVNULL)
    if how:
        assert done.returncode != 0 and done.stderr.count("ValueError: no more batches") == 1, done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    lines = re.findall(r"rank \d of 4 has .*", done.stdout)
    assert sorted(lines) == [f"rank {rank} of 4 has 1.5" for rank in range(4)], done.stdout + done.stderr


def test_two_jobs_of_torchrun_at_neighboring_ports_do_not_meet(tmp_path):
    """The second one listens at the first port above that of the first one, as the first one did."""
    require_mpich()
    torch = pytest.importorskip("torch")
    environment = {name: value for name, value in os.environ.items() if not is_of_a_launcher(name)}
    port, jobs = free_ports_in_a_row(2), []
    for job in range(2):
        redirects = ["--redirects", "0:1", "--tee", "0:1", "--log_dir", tmp_path / str(job)] if torch.__version__.startswith("1.") else []
        jobs.append(subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc_per_node", "2",
                                      "--master_addr", "127.0.0.1", "--master_port", str(port + job), *redirects, PROGRAM],
                                     env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     text=True))
        if job == 0:  # its ranks are about to listen
            wait_until_it_listens(port)
    try:
        outputs = [job.communicate(timeout=150) for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    for job, (output, errors) in zip(jobs, outputs):
        lines = re.findall(r"rank \d of 2 has .*", output)
        assert job.returncode == 0 and sorted(lines) == ["rank 0 of 2 has 0.5", "rank 1 of 2 has 0.5"], output + errors


def free_ports_in_a_row(count):
    """The first of them."""
    for _ in range(100):
        first = free_port()
        with contextlib.ExitStack() as taken, contextlib.suppress(OSError):
            for port in range(first, first + count):
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    pytest.skip("no ports in a row are free")


def wait_until_it_listens(port):
    last = time.monotonic() + 60
    while not answers("127.0.0.1", port):
        assert time.monotonic() < last, f"nothing listens at port {port}"
        time.sleep(0.05)


def test_ranks_with_variables_alone_leave_the_port_above_to_others_once_all_have_come():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        server = Server(listening, 2, "mine")
        connections = []
        for rank, (run, expected) in enumerate([("other", b""), ("mine", b"cmd=joined rc=0\n"), ("mine", b"cmd=joined rc=0\n")]):
            assert answers("127.0.0.1", port)
            connection = socket.create_connection(("127.0.0.1", port), timeout=20)
            connection.sendall(f"cmd=join run={run} rank={max(0, rank - 1)}\n".encode())
            assert connection.recv(100) == expected  # a job of another name is not let in
            connections.append(connection)
        last = time.monotonic() + 20
        while answers("127.0.0.1", port) and time.monotonic() < last:
            time.sleep(0.05)
        socket.create_server(("127.0.0.1", port)).close()
        server.close()


@pytest.mark.skipif(implementation.of_this_package() != "Open MPI", reason="for Open MPI")
def test_ranks_of_open_mpi_are_refused():
    process = start(0, 2, free_port())
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 1 and errors.count("torchrun: this package uses Open MPI") == 1, errors


@pytest.mark.parametrize("change, expected", [({}, True), ({"WORLD_SIZE": "1"}, False), ({"PMI_RANK": "0"}, False),
                                              ({"OMPI_COMM_WORLD_RANK": "0"}, False), ({"MASTER_PORT": None}, False),
                                              ({"OMPI_MCA_coll_hcoll_enable": "0"}, True), ({"PMIX_MCA_gds": "hash"}, True),
                                              ({"OMPI_ALLOW_RUN_AS_ROOT": "1"}, True)])
def test_other_launchers_come_first(change, expected):
    environment = {name: value for name, value in {**WORLD, **change}.items() if value is not None}
    assert torchrun.is_launcher(environment) == expected


def answers(address, port):
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        return False
    return True


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def listening(monkeypatch, host, local_world_size):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", local_world_size)
    return torchrun._listen(host, [free_port()])


def test_ranks_of_other_hosts_reach_rank_0_whose_own_name_means_loopback(monkeypatch):
    """As on Debian, which has 127.0.1.1 for the name of the host. Another address stands for one of the network."""
    with listening(monkeypatch, "127.0.1.1", "2") as found:
        assert answers("127.0.1.1", found.getsockname()[1]) and answers("127.0.0.1", found.getsockname()[1])


def test_rank_0_listens_at_its_name_alone_if_no_rank_is_elsewhere(monkeypatch):
    with listening(monkeypatch, "127.0.1.1", "4") as found:
        assert answers("127.0.1.1", found.getsockname()[1]) and not answers("127.0.0.1", found.getsockname()[1])


def test_rank_0_listens_at_any_address_if_its_name_is_no_address_of_its_own(monkeypatch):
    with listening(monkeypatch, "192.0.2.1", "4") as found:  # of documentation: nobody's
        assert answers("127.0.0.1", found.getsockname()[1])


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
@pytest.mark.parametrize("local_world_size", ["2", "4"])
def test_rank_0_listens_at_an_address_of_ipv6(monkeypatch, local_world_size):
    with listening(monkeypatch, "::1", local_world_size) as found:
        assert answers("::1", found.getsockname()[1])
        assert answers("127.0.0.1", found.getsockname()[1]) == (local_world_size == "2")


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_two_ranks_find_each_other_at_an_address_of_ipv6():
    statuses, output, errors = run(2, MASTER_ADDR="::1")
    assert statuses == [0] * 2 and errors == "", output + errors


def text_of(name, value, required):
    return f'torchrun: {name} is "{value}"; a whole number from {required} is required'


def test_a_variable_that_is_no_number_is_told_once():
    name, value, required = "WORLD_SIZE", "two", "1 to 2147483647"
    statuses, output, errors = run(2, **{name: value})
    assert statuses == [1, 1] and output == "", output + errors
    assert errors.count("ArgumentError: " + text_of(name, value, required)) == errors.count("Traceback") == 1, errors


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("name, value, required", [
    ("WORLD_SIZE", "-3", "1 to 2147483647"), ("WORLD_SIZE", "", "1 to 2147483647"), ("MASTER_PORT", "http", "0 to 65519"),
    ("MASTER_PORT", "65530", "0 to 65519"), ("RANK", "2", "0 to 1")])
def test_a_variable_out_of_its_range_is_refused(monkeypatch, name, value, required, rank):
    """Rank 0 alone prints what all ranks find."""
    require_mpich()
    for variable in [variable for variable in os.environ if is_of_a_launcher(variable)]:
        monkeypatch.delenv(variable)
    for variable, text in {**WORLD, "RANK": str(rank), name: value}.items():
        monkeypatch.setenv(variable, text)
    with pytest.raises(fast.ArgumentError) as caught:
        torchrun.join()
    assert text_of(name, value, required) in str(caught.value)
    assert reports.is_elsewhere(caught.value) == (rank == 1 and name != "RANK")


class SlowConnection:
    """Of a rank whose answer is sent when ``go`` is set."""

    def __init__(self):
        self.begun, self.go, self.sent = threading.Event(), threading.Event(), b""

    def sendall(self, line):
        self.begun.set()
        assert self.go.wait(20)
        self.sent += line


class GoneConnection:
    def sendall(self, line):
        raise BrokenPipeError


@pytest.mark.parametrize("other", [SlowConnection, GoneConnection])
def test_the_server_ends_after_its_last_answer(other):
    """It closes all connections then. A rank without its answer fails in MPI_Finalize."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server, slow, last = Server(listening, 2, "run"), SlowConnection(), other()
        ending = threading.Thread(target=server._finalize, args=(slow, 1, {}))
        ending.start()
        assert slow.begun.wait(20)
        if other is SlowConnection:
            last.go.set()
        server._finalize(last, 0, {})
        assert not server.wait(0.2)
        slow.go.set()
        assert server.wait(20) and slow.sent == b"cmd=finalize_ack rc=0\n"
        ending.join(20)
        server.close()
