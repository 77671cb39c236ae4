"""What sites do, step by step, against the formulas of docs/reference/algorithms.md, in NumPy."""
import copy
import itertools
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest
from test_sites import server  # noqa: F401

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "programs"))

NAMES, EVERY, STEPS = "abc", 4, 21
CALM = {"every": EVERY, "expect": 3, "steps": STEPS}


def train(server, folder, ranks, samples, options, each):
    """Weights by site, rank and step, and the rounds with which each site begins. `each`: options of single sites."""
    running, begins = [], folder / "begins"

    def start(place):
        launcher = ["mpiexec", "-n", str(ranks[place])] if ranks[place] > 1 else []
        given = CALM | options | {"samples": samples[place]} | each[place]
        running.append(subprocess.Popen([*launcher, sys.executable, HERE / "programs/site_quadratic.py", NAMES[place], f"{server.url}/{folder.name}", folder, json.dumps(given)],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True))

    late = [place for place in range(3) if each[place].get("joins")]
    for place in range(3):
        if place not in late:
            start(place)
    deadline = time.monotonic() + 60
    while late and len(list(folder.glob("*.trains"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    for place in late:
        start(place)
    for site in running:
        text, _ = site.communicate(timeout=120)
        assert site.returncode == 0, text
    found = [[np.load(folder / f"{name}.{rank}.npy") for rank in range(count)] for name, count in zip(NAMES, ranks)]
    return found, [int(begins.read_text()) if place in late else 0 for place in range(3)]


def identity(u, _):
    return u


def bf16(u, _=None):
    bits = u.astype(np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def blocks(u):
    return [slice(first, first + 256) for first in range(0, len(u), 256)]


def in_steps(u, most):
    """One scale a block, of which the largest value has `most`."""
    result = np.empty_like(u)
    for block in blocks(u):
        told = u[block].astype(np.float32)
        scale = np.abs(told).max() / np.float32(most)
        result[block] = np.rint(told / scale).astype(np.float32) * scale
    return result


def int8(u, lost):
    """What is lost is added to the next message."""
    result = in_steps(u + lost, 127)
    lost[:] = u + lost - result
    return result


def int4(change):
    return in_steps(change, 7)


def int2(change):
    """Signs, and the means of the sizes below and above the block's mean."""
    result = np.empty_like(change)
    for block in blocks(change):
        told = change[block].astype(np.float32)
        size = np.abs(told).astype(np.float64)
        above = size > np.float32(size.mean())
        result[block] = np.sign(told) * np.where(above, np.float32(size[above].mean()), np.float32(size[~above].mean()))
    return result


CODECS = {"identity": identity, "bf16": bf16, "int8": int8}
DIFFERENCES = {"int4": int4, "int2": int2}


class State:
    """Of a site. `told`: its last message, as others have it."""

    def __init__(self, x, phi=None, momentum=0.0, before=None):
        self.x, self.phi, self.momentum, self.before = x, x if phi is None else phi, momentum, before
        self.lost, self.told, self.u, self.exchanges = np.zeros_like(x), None, None, 0


class Oracle:
    """Sites that come and go. Which sites an exchange has taken is known, but for the time in which one comes or goes: then, and
    for pairs, it is what explains the weights that were found."""

    def __init__(self, seed, rule, samples=(1, 1, 1), codec="identity", delay=0, blend=0, begins=(0, 0, 0), ends=(None, None, None), **options):
        import site_quadratic
        self.rate, self.functions = site_quadratic.RATE, [site_quadratic.quadratic(name, seed) for name in NAMES]
        self.rule, self.samples, self.codec, self.delay, self.blend, self.options = rule, samples, codec, delay, blend, options
        self.begins, self.ends, self.pairs, self.history = begins, ends, [], []
        self.sites = {place: State(self.functions[0][0]) for place in range(3) if begins[place] == 0}  # all take over those of the first
        self.unsettled = {begin // EVERY + k for begin in begins if begin for k in range(-1, 9)}  # it may begin some exchanges behind
        self.unsettled |= {end // EVERY + k for end in ends if end for k in range(-1, 2)}

    # Who takes what.

    def taken(self, number):
        """Lists, by site, of the ways in which it may take others: (sites that it takes part with, others that it takes)."""
        there = sorted(self.sites)
        pairs = self.rule == "noloco"
        if number in self.unsettled:
            ways = [(view, some) for size in (1, 2, 3) for view in itertools.combinations(range(3), size)
                    for count in range(size) for some in itertools.combinations(view, count)]
            yield {i: [(view, some) for view, some in ways if i in view and i not in some and set(some) <= set(there) and not (pairs and len(some) > 1)] for i in there}
        elif pairs:
            for pair in itertools.combinations(there, 2):
                yield {i: [(there, [j for j in pair if i in pair and j != i])] for i in there}
        else:
            yield {i: [(there, [j for j in there if j != i])] for i in there}

    def weight(self, i, j, view, some):
        if self.rule == "noloco":
            return 0.5
        # Metropolis and Hastings; the rest stays with the site, with diloco's mean with all that are taken.
        return min(1, self.samples[j] / self.samples[i]) / (len(some) + 1 if self.rule == "diloco" else len(view))

    # What is sent.

    def messages(self, number):
        """By site, one or two of (message, what is lost)."""
        result = {}
        for place, site in self.sites.items():
            if self.codec in CODECS:
                lost = site.lost.copy()
                result[place] = [(CODECS[self.codec](site.u, lost), lost)]
                continue
            whole = [(bf16(site.u), site.lost)]
            change = [] if site.told is None else [(site.told + DIFFERENCES[self.codec](site.u - site.told), site.lost)]
            is_new = site.exchanges < 2
            result[place] = whole + change if number in self.unsettled else whole if is_new else change
        return result

    def publish(self):
        for site in self.sites.values():
            site.u = site.phi + self.options.get("rate", 1) * (site.x - site.phi) if self.rule == "gasloc" else site.x

    def outer(self, site, mixed):
        """φ and the memory after the exchange."""
        get = self.options.get
        if self.rule == "gasloc":
            phi = site.u - get("consensus_step", 1) * (site.u - mixed)
            if site.before is not None:
                phi = phi + get("acceleration", 0) * (site.u - site.before)
            return phi, site.momentum
        if self.rule == "diloco":
            change, beta, eta = site.phi - mixed, get("momentum", 0.9), get("rate", 0.7)
            m = beta * site.momentum + change
            return site.phi - eta * (change + beta * m if get("nesterov", True) else m), m
        m = get("momentum", 0.5) * site.momentum + get("rate", 0.7) * (mixed - site.phi)
        return site.phi + m, m

    def after(self, site, phi):
        return self.blend * site.x + (1 - self.blend) * phi

    def exchange(self, number, found):
        best, messages = None, self.messages(number)
        for told in itertools.product(*(messages[i] for i in self.sites)):
            told = dict(zip(self.sites, told))
            for taken in self.taken(number):
                ends, error = {}, 0
                for i, site in self.sites.items():
                    ways = []
                    for view, some in taken[i]:
                        mixed = site.u + sum(self.weight(i, j, view, some) * (told[j][0] - told[i][0]) for j in some)
                        phi, momentum = self.outer(site, mixed)
                        ways.append((np.abs(self.after(site, phi) - found[i]).max(), phi, momentum, tuple(some)))
                    ends[i] = min(ways, key=lambda way: way[0])
                    error = max(error, ends[i][0])
                if best is None or error < best[0]:
                    best = error, ends, told
        _, ends, told = best
        self.pairs.append({i: some for i, (_, _, _, some) in ends.items()})
        for i, site in self.sites.items():
            _, site.phi, site.momentum, _ = ends[i]
            site.x, site.before = self.after(site, site.phi), site.u
            site.told, site.lost = told[i]
            site.exchanges += 1

    def join(self, place, found):
        """It has the weights and the memory that one of the others had after an exchange."""
        best = min((site for sites in self.history for site in sites), key=lambda site: np.abs(site.x - found).max())
        self.sites[place] = State(best.x, best.phi, best.momentum, best.before)

    def step(self, t, found):
        """`found`: the weights of those that are there."""
        for place in range(3):
            if self.ends[place] is not None and t == self.ends[place] + 1:
                del self.sites[place]
        for place, site in self.sites.items():
            _, curvature, minimum = self.functions[place]
            site.x = site.x - self.rate * curvature * (site.x - minimum)
        if (t + self.delay) % EVERY == 0:
            self.publish()
        if t % EVERY == 0:
            self.exchange(t // EVERY - 1, found)
            self.history.append([copy.copy(site) for site in self.sites.values()])
        for place in range(3):
            if t > 0 and t == self.begins[place]:
                self.join(place, found[place])


CASES = {
    "gasloc": ("gasloc", "ring", {}),
    "gasloc, accelerated": ("gasloc", "complete", {"rate": 0.8, "consensus_step": 0.7, "acceleration": 0.3}),
    "gasloc, slow": ("gasloc", "ring", {"consensus_step": 0.3}),
    "gasloc, delayed": ("gasloc", "ring", {"delay": 2, "blend": 0.3, "rate": 0.9}),
    "noloco": ("noloco", "random_matchings", {}),
    "noloco, delayed": ("noloco", "random_matchings", {"delay": 1, "momentum": 0.3}),
    "diloco": ("diloco", "complete", {}),
    "diloco, delayed": ("diloco", "complete", {"delay": 3, "nesterov": False, "momentum": 0.6, "blend": 0.2}),
}


def compare(server, folder, seed, case, ranks=(1, 1, 1), codec="identity", samples=(1, 1, 1), each=({}, {}, {}), **more):
    rule, topology, options = CASES[case]
    found, begins = train(server, folder, ranks, samples, dict(algorithm=rule, topology=topology, algorithm_options=options, codec=codec, seed=seed) | more, each)
    ends = [own.get("dies") for own in each]
    oracle = Oracle(seed, rule, samples, codec, begins=begins, ends=ends, **options)
    last = min(begin + len(site[0]) - 1 for begin, site, end in zip(begins, found, ends) if end is None)
    for t in range(last + 1):
        there = [i for i in range(3) if begins[i] <= t and (ends[i] is None or t <= ends[i])]
        if t > 0:
            oracle.step(t, {i: found[i][0][t - begins[i]] for i in there})
        for i in there:
            for path in found[i]:
                np.testing.assert_allclose(path[t - begins[i]], oracle.sites[i].x, rtol=1e-12, atol=1e-12, err_msg=f"site {NAMES[i]}, step {t}")
    return oracle


@pytest.mark.parametrize("case", CASES)
def test_sites_follow_their_rule(server, tmp_path, case):  # noqa: F811
    oracle = compare(server, tmp_path, 11, case)
    assert oracle.rule != "noloco" or len({str(pairs) for pairs in oracle.pairs}) > 1


@pytest.mark.parametrize("case", ["gasloc, accelerated", "diloco"])
def test_samples_weigh_what_sites_take(server, tmp_path, case):  # noqa: F811
    compare(server, tmp_path, 14, case, samples=(1, 4, 2))


@pytest.mark.parametrize("case", ["gasloc, accelerated", "diloco, delayed"])
def test_ranks_that_an_all_reduce_keeps_equal_are_as_one(server, tmp_path, case):  # noqa: F811
    compare(server, tmp_path, 12, case, ranks=(2, 1, 2))


@pytest.mark.parametrize("case, codec", [("gasloc, accelerated", "int8"), ("noloco, delayed", "int8"), ("diloco", "int8"), ("diloco", "bf16"),
                                         ("gasloc, accelerated", "int4"), ("gasloc, delayed", "int4"), ("gasloc, slow", "int2"), ("diloco", "int4"), ("diloco, delayed", "int2")])
def test_rules_take_their_own_message_and_coded_differences(server, tmp_path, case, codec):  # noqa: F811
    compare(server, tmp_path, 13, case, codec=codec)


@pytest.mark.parametrize("case, codec", [("gasloc, accelerated", "identity"), ("noloco", "identity"), ("diloco", "identity"), ("diloco", "int8"),
                                         ("gasloc, slow", "int4"), ("diloco", "int2")])
def test_one_that_joins_has_weights_and_memory_of_another(server, tmp_path, case, codec):  # noqa: F811
    oracle = compare(server, tmp_path, 15, case, codec=codec, each=({"meets": True}, {"meets": True}, {"joins": True}), expect=2, steps=61)
    both = [1, 2] if oracle.rule != "noloco" else [0, 1]
    assert len(oracle.sites) == 3 and all(len(some) in both for some in oracle.pairs[-1].values())


@pytest.mark.parametrize("case", ["gasloc, accelerated", "diloco"])
def test_the_others_go_on_without_one_that_dies(server, tmp_path, case):  # noqa: F811
    """With diloco, as one job of those that are left: whether it was expected in that exchange or not."""
    compare(server, tmp_path, 16, case, samples=(1, 2, 1), each=({}, {}, {"dies": 3 * EVERY - 1}))
