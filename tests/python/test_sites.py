"""Sites over a NATS server on the loopback: processes that have nothing else in common."""
import math
import pathlib
import re
import subprocess
import sys

import fast_decentralized as fast
import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "serve"))
import nats  # noqa: E402


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if not nats.is_installed():
        pytest.skip("nats-server is not installed; apt-get install nats-server")
    running = nats.Server(tmp_path_factory.mktemp("nats"), streams=False)
    yield running
    running.stop()


def begin(*arguments):
    return subprocess.Popen([sys.executable, HERE / "programs/site.py", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            stdin=subprocess.DEVNULL, text=True)


def ended(process, status=0):
    text, _ = process.communicate(timeout=120)
    assert (process.returncode == 0) == (status == 0), text
    return text


def test_sites_follow_gasloc(server):
    """On the complete graph of three sites, θ ← mean of θ every five rounds: the closed form of the goals' mean."""
    url = f"{server.url}/follow"
    names = ("a", "b", "c")
    sites = [begin(name, url, 42, "expect=3", "topology=complete") for name in names]
    ends = [float(re.search(r"ends at (?:np\.float64\()?([-+.e\d]+)", ended(site))[1]) for site in sites]
    x = np.zeros(3)
    for t in range(1, 43):
        x -= 0.1 * (x - np.arange(3.0))
        if t % 5 == 0:
            x[:] = x.mean()
    np.testing.assert_allclose(ends, x, rtol=1e-12)


def test_one_that_comes_later_takes_part(server, tmp_path):
    url = f"{server.url}/late"
    first = begin("a", url, 20_000_000, "staleness=inf")
    assert "begins in round 0" in first.stdout.readline()
    second, third = (ended(begin("c", url, 0, "staleness=inf", f"load={tmp_path}")) for _ in range(2))
    first.kill()
    first.wait()
    begun = re.search(r"begins in round (\d+) at (\S+)", second)
    assert int(begun[1]) > 0, second
    assert abs(float(begun[2])) < 1e-6  # the goal of the first
    assert "has loaded None" in second
    assert f"has loaded {begun[1]}" in third


@pytest.mark.parametrize("change, text", [
    ({"name": "a b"}, "is no name"),
    ({"url": "nats://127.0.0.1:1/run"}, "no connection"),
    ({"url": "http://127.0.0.1/run"}, "is not the address"),
    ({"url": ""}, "needs the address"),
    ({"staleness": 3}, "math.inf is required"),
    ({"every": 0}, "site_every"),
    ({"algorithm": "awc"}, "gasloc"),
    ({"algorithm": "diloco", "staleness": math.inf}, "needs staleness 0"),
    ({"topology": "hypercube"}, "sites come and go"),
    ({"credentials": "missing.creds"}, "missing.creds"),
])
def test_mistakes_have_one_line(change, text):
    values = {"name": "a", "url": "nats://127.0.0.1:1/run"} | change
    with pytest.raises(fast.Error, match=re.escape(text)):
        fast.Worker({"x": np.zeros(3)}, site=fast.Site(values.pop("name"), values.pop("url"), **values))


def test_a_site_is_no_text():
    with pytest.raises(fast.ArgumentError, match="give a fast.Site"):
        fast.Worker({"x": np.zeros(3)}, site="laptop")


def test_a_worker_without_sites_has_no_figures_of_one():
    with fast.Worker({"x": np.zeros(3)}) as worker:
        assert worker.site_stats is None
