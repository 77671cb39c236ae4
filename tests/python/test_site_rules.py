"""What sites do, step by step, against the formulas of docs/reference/algorithms.md, in NumPy."""
import itertools
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from test_sites import server  # noqa: F401

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "programs"))

NAMES, EVERY, STEPS = "abc", 4, 21
CALM = {"every": EVERY, "expect": 3, "steps": STEPS}
PAIRS = list(itertools.combinations(range(3), 2))


def quadratics(seed):
    import site_quadratic
    return site_quadratic.RATE, [site_quadratic.quadratic(name, seed) for name in NAMES]


def train(server, folder, ranks, samples, options):
    """Weights by site, rank and step."""
    sites = []
    for name, count, counts in zip(NAMES, ranks, samples):
        launcher = ["mpiexec", "-n", str(count)] if count > 1 else []
        sites.append(subprocess.Popen([*launcher, sys.executable, HERE / "programs/site_quadratic.py", name, f"{server.url}/{folder.name}", folder,
                                       json.dumps(CALM | options | {"samples": counts})], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True))
    for site in sites:
        text, _ = site.communicate(timeout=120)
        assert site.returncode == 0, text
    return [[np.load(folder / f"{name}.{rank}.npy") for rank in range(count)] for name, count in zip(NAMES, ranks)]


def identity(u, _):
    return u


def bf16(u, _):
    bits = u.astype(np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def int8(u, lost):
    """In blocks of 256. What is lost is added to the next message."""
    told = (u + lost).astype(np.float32)
    result = np.empty_like(u)
    for first in range(0, len(u), 256):
        block = told[first:first + 256]
        scale = np.abs(block).max() / np.float32(127)
        result[first:first + 256] = np.rint(block / scale).astype(np.float32) * scale
    lost[:] = u + lost - result
    return result


CODECS = {"identity": identity, "bf16": bf16, "int8": int8}


class Oracle:
    """Three sites. `weights`: W, or None for any pairs, of which those are taken that explain `found`."""

    def __init__(self, seed, rule, weights, codec="identity", delay=0, blend=0, **options):
        self.rate, self.functions = quadratics(seed)
        self.x = np.stack([self.functions[0][0]] * 3)  # all take over the weights of the first
        self.rule, self.weights, self.code, self.delay, self.blend, self.options = rule, weights, CODECS[codec], delay, blend, options
        self.phi, self.momentum, self.before = self.x.copy(), np.zeros_like(self.x), None
        self.lost, self.pairs = np.zeros_like(self.x), []

    def publish(self):
        self.u = self.x.copy()
        if self.rule == "gasloc":
            self.u = self.phi + self.options.get("rate", 1) * (self.x - self.phi)
        self.told = np.stack([self.code(u, lost) for u, lost in zip(self.u, self.lost)])

    def outer(self, weights):
        """φ and the memory after the exchange. Rows of W sum to 1."""
        mixed = self.u + weights @ self.told - self.told
        get = self.options.get
        if self.rule == "gasloc":
            phi = self.u - get("consensus_step", 1) * (self.u - mixed)
            if self.before is not None:
                phi = phi + get("acceleration", 0) * (self.u - self.before)
            return phi, self.momentum
        if self.rule == "diloco":
            change, beta, eta = self.phi - mixed, get("momentum", 0.9), get("rate", 0.7)
            m = beta * self.momentum + change
            return self.phi - eta * (change + beta * m if get("nesterov", True) else m), m
        m = get("momentum", 0.5) * self.momentum + get("rate", 0.7) * (mixed - self.phi)
        return self.phi + m, m

    def candidates(self):
        if self.weights is not None:
            yield None, self.weights
            return
        for i, j in PAIRS:
            weights = np.eye(3)
            weights[[i, j, i, j], [i, j, j, i]] = 0.5
            yield (i, j), weights

    def step(self, t, found):
        self.x = np.stack([x - self.rate * curvature * (x - minimum) for x, (_, curvature, minimum) in zip(self.x, self.functions)])
        if (t + self.delay) % EVERY == 0:
            self.publish()
        if t % EVERY == 0:
            ends = [(pair, *self.outer(weights)) for pair, weights in self.candidates()]
            pair, self.phi, self.momentum = min(ends, key=lambda end: np.abs(self.after(end[1]) - found).max())
            self.pairs.append(pair)
            self.x, self.before = self.after(self.phi), self.u

    def after(self, phi):
        return self.blend * self.x + (1 - self.blend) * phi



def weights_of(samples):
    """Of the complete graph: rows sum to 1, and Σ samples_i x_i stays."""
    weights = np.array([[min(1, other / own) / 3 for other in samples] for own in samples])
    np.fill_diagonal(weights, 0)
    return weights + np.diag(1 - weights.sum(axis=1))


CASES = {
    "gasloc": ("gasloc", "ring", {}),
    "gasloc, accelerated": ("gasloc", "complete", {"rate": 0.8, "consensus_step": 0.7, "acceleration": 0.3}),
    "gasloc, delayed": ("gasloc", "ring", {"delay": 2, "blend": 0.3, "rate": 0.9}),
    "noloco": ("noloco", "random_matchings", {}),
    "noloco, delayed": ("noloco", "random_matchings", {"delay": 1, "momentum": 0.3}),
    "diloco": ("diloco", "complete", {}),
    "diloco, delayed": ("diloco", "complete", {"delay": 3, "nesterov": False, "momentum": 0.6, "blend": 0.2}),
}


def compare(server, folder, seed, case, ranks=(1, 1, 1), codec="identity", samples=(1, 1, 1)):
    rule, topology, options = CASES[case]
    found = train(server, folder, ranks, samples, dict(algorithm=rule, topology=topology, algorithm_options=options, codec=codec, seed=seed))
    oracle = Oracle(seed, rule, None if rule == "noloco" else weights_of(samples), codec, **options)
    for t in range(STEPS + 1):
        if t > 0:
            oracle.step(t, np.stack([site[0][t] for site in found]))
        for site, x in zip(found, oracle.x):
            for path in site:
                np.testing.assert_allclose(path[t], x, rtol=1e-12, atol=1e-12, err_msg=f"step {t}")
    return oracle


@pytest.mark.parametrize("case", CASES)
def test_sites_follow_their_rule(server, tmp_path, case):  # noqa: F811
    oracle = compare(server, tmp_path, 11, case)
    assert oracle.rule != "noloco" or len(set(oracle.pairs)) > 1


def test_samples_weigh_what_sites_take(server, tmp_path):  # noqa: F811
    compare(server, tmp_path, 14, "gasloc, accelerated", samples=(1, 4, 2))


@pytest.mark.parametrize("case", ["gasloc, accelerated", "diloco, delayed"])
def test_ranks_that_an_all_reduce_keeps_equal_are_as_one(server, tmp_path, case):  # noqa: F811
    compare(server, tmp_path, 12, case, ranks=(2, 1, 2))


@pytest.mark.parametrize("case, codec", [("gasloc, accelerated", "int8"), ("noloco, delayed", "int8"), ("diloco", "int8"), ("diloco", "bf16")])
def test_rules_take_their_own_message_and_coded_differences(server, tmp_path, case, codec):  # noqa: F811
    compare(server, tmp_path, 13, case, codec=codec)
