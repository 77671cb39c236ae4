#!/usr/bin/env python3
"""Reference trajectories of rules that make local steps, in float64 NumPy: golden_outer.json.gz,
golden_extra.json.gz.

Run:  tests/data/outer_oracle.py     (needs python3-numpy)

Checks itself first (see check_*), then writes the cases. Written from the formulas only.

Each case is a set of N workers, worker i minimising
    f_i(x) = 1/2 (x - b_i)^T diag(a_i) (x - b_i),   g_i(x) = a_i * (x - b_i)
from its own start x_i(0).  A round is one local step; `trajectory[t][i]` is replica i after t rounds.
Rounds are counted from 1 below (t = 1 is the first local step).  With a period H, the k-th exchange
(k = 0, 1, ...) happens after the local step of round t = (k + 1) H and uses weights[k % len(weights)]:
the list advances by exchange.  Rules that exchange in every round
(sparta, awc) use weights[(t - 1) % len(weights)].

    theta_i  replica (what is trained)        phi_i  outer weights (what the outer step moves)

After every exchange of diloco, noloco, gasloc: theta = phi.  Parameters (letters of the formulas):
    period H, eta, beta, nesterov, fragments F, delay tau, alpha, gamma, a, p, consensus,
    momentum: of the worker's own optimizer, as in golden.json.gz; its buffer is never reset.
golden_extra.json.gz has cases with one of these keys:
    codec    bf16 or fp16, of sparta: q_i is x_i rounded, x_i + sum_j W_ij (q_j - q_i) the entries that travel;
             int8, int4 or int2, of sparse_diloco: of the entries that travel, in groups of 256;
             bf16 or fp16, of gasloc_coded: of the differences to what all know
    steps    local steps of each worker in a round (one where it is absent): t counts rounds
Cases of awc_gasloc have `sites`: the sizes with which the library makes the topology sites, `between`, whether a round
is one between sites, and weights[(t - 1) % len(weights)] of round t. They are in golden_outer.json.gz, without weights.
Extra keys of a case: `outer` (phi after the last round), `masks` (sparta: entries by round),
`rates` (learning rate by round; then `lr` is the largest), `consensus` (a_t by round).
"""
import copy
import gzip
import itertools
import json
import pathlib
import sys

import numpy as np


# ---- mixing matrices -----------------------------------------------------------------------------
def ring(n):
    return [sorted({(i - 1) % n, (i + 1) % n} - {i}) for i in range(n)]


def metropolis(neigh):
    n = len(neigh)
    w = np.zeros((n, n))
    for i in range(n):
        for j in neigh[i]:
            w[i, j] = 1.0 / (1 + max(len(neigh[i]), len(neigh[j])))
        w[i, i] = 1.0 - w[i].sum()
    return w


def one_peer_exponential(n):
    out = []
    for k in range(max(1, int(np.ceil(np.log2(n))))):
        w = np.eye(n) / 2
        for i in range(n):
            w[i, (i - 2**k) % n] += 0.5
        out.append(w)
    return out


def complete(n):
    return [np.full((n, n), 1.0 / n)]


def matchings(rng, n, count):
    """Random pairs with weights 1/2; with odd n the last of the permutation stays alone."""
    out = []
    for _ in range(count):
        order = rng.permutation(n)
        w = np.eye(n)
        for i, j in zip(order[0 : n - 1 : 2], order[1:n:2]):
            w[[i, i, j, j], [i, j, i, j]] = 0.5
        out.append(w)
    return out


# For 2, 3 and 4 sites, the rounds of Base-2 among them: partners and the weight with which they read each other.
BASE2 = {2: [{(0, 1): 0.5}], 3: [{(0, 1): 0.5}, {(0, 2): 2 / 3}, {(0, 1): 0.5}], 4: [{(0, 1): 0.5, (2, 3): 0.5}, {(0, 2): 0.5, (1, 3): 0.5}]}


def sites(count, size, every, links):
    """Of a whole period: matrices, and which rounds are between sites (docs/reference/topologies.md, Sites)."""
    among = BASE2[count]
    tail = 1 if size == 1 else 2  # rounds of an exchange: between sites, then within
    cycle = every * len(among)
    matrices, between = [], []
    for t in range(cycle * size):
        k = t % cycle // every  # the exchange
        first = t // cycle + k
        stands = [(place - first) % size < links for place in range(size)]
        left = every - t % every
        w = np.zeros((count * size, count * size))
        partners = {}
        for (s, other), v in among[k].items():
            partners.update({s: (other, v), other: (s, v)})
        for s in range(count):
            rows = slice(s * size, (s + 1) * size)
            other, v = partners.get(s, (None, None))
            reads = None if other is None else min(v * size / links, 1 - (1 - v) / size)
            if left == tail:
                w[rows, rows] = np.eye(size)
                for place in range(size):
                    if other is not None and stands[place]:
                        w[s * size + place, s * size + place] -= reads
                        w[s * size + place, other * size + place] = reads
            elif left == 1 and other is not None and links < size:
                w[rows, rows] = [v / reads / links if it else (1 - v / reads) / (size - links) for it in stands]
            else:
                w[rows, rows] = 1 / size
        matrices.append(w)
        between.append(left == tail)
    return matrices, between


# ---- 16-bit codes -----------------------------------------------------------------------------------
def rounded(x, codec):
    """To the nearest value of 16 bits, ties to even."""
    single = np.asarray(x, np.float32)
    if codec == "fp16":
        return single.astype(np.float16).astype(float)
    bits = single.view(np.uint32).astype(np.uint64)
    one, half = np.uint64(1), np.uint64(16)
    bits = (bits + np.uint64(0x7FFF) + (bits >> half & one)) & np.uint64(0xFFFF0000)
    return bits.astype(np.uint32).view(np.float32).astype(float)


# ---- codes of few bits -------------------------------------------------------------------------------
GROUP = 256  # entries that share scales


def coded_group(x, codec):
    """One group there and back, in floats of 32 bits as a message has them. x is not 0 everywhere."""
    x = np.asarray(x, np.float32)
    size = np.abs(x)
    if codec == "int2":  # sign, and whether the size is above the mean size: each half becomes its own mean size
        above = size > np.float32(size.sum(dtype=float) / size.size)
        back = np.zeros_like(x)
        for half in (above, ~above):
            if half.any():
                back[half] = np.float32(size[half].sum(dtype=float) / half.sum())
        return np.copysign(back, x).astype(float)
    most = np.float32(dict(int8=127, int4=7)[codec])
    scale = size.max() / most
    inverse = most / size.max() if codec == "int8" else np.float32(1) / scale
    return (scale * np.clip(np.rint(x * inverse), -most, most)).astype(float)


def coded(x, codec):
    return np.concatenate([coded_group(x[k : k + GROUP], codec) for k in range(0, len(x), GROUP)])


# ---- fragments of streaming diloco ---------------------------------------------------------------
def fragment(f, count, n):
    return slice(f * n // count, (f + 1) * n // count)


def exchanging(t, period, count):
    """The fragment that is applied after step t (from 1), or None."""
    part = period // count
    return (t // part - 1) % count if t % part == 0 else None


# ---- rules ---------------------------------------------------------------------------------------
def run(case, streaming=None):
    a, b = np.array(case["a"]), np.array(case["b"])
    x = np.array(case["start"])
    ws = [np.array(w) for w in case["weights"]]
    par, name = case["parameters"], case["algorithm"]
    n, dim = x.shape
    grad = case.get("gradient", lambda v: a * (v - b))
    inner = par.get("momentum", 0.0)
    period = par.get("period", 1)
    rates = case.get("rates", [case["lr"]] * case["rounds"])
    step = np.zeros_like(x)
    phi, m = x.copy(), np.zeros_like(x)
    previous = None  # u of the exchange before
    taken = {}  # fragment -> (Delta, theta when it was taken)
    hat = np.zeros_like(x)
    exchanges, largest = 0, 0.0
    fresh = True  # no round since the start or an exchange between sites
    trajectory, extra = [x.copy()], {}
    opt = dict(base="phi", outer="phi", merge="now", schedule="take-early", drift=False)
    opt.update(streaming or {})
    merged = x.copy()  # streaming, other readings only

    for t in range(1, case["rounds"] + 1):
        rate = rates[t - 1]
        if "steps" in case:
            moved = x.copy()
            for k in range(max(case["steps"])):
                here = np.array(case["steps"]) > k
                step[here] = inner * step[here] + grad(moved)[here]
                moved[here] -= rate * step[here]
            delta = moved - x
        else:
            step = inner * step + grad(x)
            delta = -rate * step
        w = ws[(t - 1) % len(ws)]  # of the rules that exchange in every round
        if name == "awc":
            largest = max(largest, rate)
            c = par["consensus"] if "consensus" in par else (rate / largest) ** par["p"]
            extra.setdefault("consensus", []).append(c)
            x = x + c * (w @ x - x) + delta
            trajectory.append(x.copy())
            continue
        if name == "awc_gasloc":
            pull = w @ x - x
            if case["between"][(t - 1) % len(ws)]:  # x is u
                phi = x + par["alpha"] * pull
                if previous is not None:
                    phi = phi + par["gamma"] * (x - previous)
                previous, x, fresh = x, phi + delta, True
            else:
                phi = phi + pull if fresh else phi
                x, fresh = x + pull + delta, False
            if case["between"][t % len(ws)]:
                x = phi + par["eta"] * (x - phi)
            trajectory.append(x.copy())
            continue
        x = x + delta
        if name == "sparta":
            sent, mask = rounded(x, case["codec"]) if "codec" in case else x, case["masks"][t - 1]
            mixed = x + (w @ sent - sent) if "codec" in case else w @ x
            x[:, mask] = mixed[:, mask]
        elif name == "none":
            pass
        elif name == "streaming_diloco":
            count, tau = par["fragments"], par["delay"]
            early = opt["schedule"] == "take-early"
            f = exchanging(t + tau if early else t, period, count)
            if f is not None:  # take Delta, after the local step
                s = fragment(f, count, dim)
                base = phi if opt["base"] == "phi" else merged
                taken[f] = ((base[:, s] - x[:, s]).mean(axis=0), x[:, s].copy())
            f = exchanging(t if early else t - tau, period, count)
            if f is not None and f in taken:  # apply it, after the local step
                s = fragment(f, count, dim)
                d, local = taken.pop(f)
                m[:, s] = par["beta"] * m[:, s] + d
                move = d + par["beta"] * m[:, s] if par["nesterov"] else m[:, s]
                start = phi if opt["outer"] == "phi" else merged
                phi[:, s] = start[:, s] - par["eta"] * move
                drift = x[:, s] - local if opt["drift"] else 0.0
                keep = x[:, s] if opt["merge"] == "now" else local
                x[:, s] = par["alpha"] * keep + (1 - par["alpha"]) * (phi[:, s] + drift)
                merged[:, s] = x[:, s]
        elif t % period == 0:
            w = ws[exchanges % len(ws)]  # advances by exchange
            exchanges += 1
            if name == "local":
                phi = w @ x
            elif name == "diloco":
                d = (phi - x).mean(axis=0)
                m = par["beta"] * m + d
                phi = phi - par["eta"] * (d + par["beta"] * m if par["nesterov"] else m)
            elif name == "sparse_diloco":
                m = par["beta"] * m + x - phi
                count = max(1, int(par["fraction"] * dim))
                q = np.zeros_like(m)
                for i in range(n):
                    largest = np.sort(np.argsort(-np.abs(m[i]))[:count])  # in the order in which they travel
                    q[i, largest] = coded(m[i, largest], case["codec"]) if "codec" in case else m[i, largest]
                m = m - q
                phi = phi + par["eta"] * q.mean(axis=0)
            elif name == "noloco":
                m = par["beta"] * m + par["a"] * (w @ x - phi)
                phi = phi + m
            elif name in ("gasloc", "gasloc_coded"):
                u = phi + par["eta"] * (x - phi)
                if name == "gasloc":
                    phi = u - par["alpha"] * (u - w @ u)
                else:  # differences to replicas that all know
                    hat = hat + (rounded(u - hat, case["codec"]) if "codec" in case else u - hat)
                    phi = u + par["alpha"] * (w @ hat - hat)
                if previous is not None:
                    phi = phi + par["gamma"] * (u - previous)
                previous = u
            else:
                raise SystemExit(f"oracle: unknown algorithm {name}")
            x = phi.copy()
        trajectory.append(x.copy())
    if name in ("diloco", "streaming_diloco", "noloco", "gasloc"):
        extra["outer"] = phi.tolist()
    return dict(case, trajectory=[v.tolist() for v in trajectory], **extra)


# ---- cases ---------------------------------------------------------------------------------------
def problem(rng, n, dim):
    return dict(
        a=rng.uniform(0.5, 2.0, (n, dim)).tolist(),
        b=rng.normal(0, 1, (n, dim)).tolist(),
        start=rng.normal(0, 1, (n, dim)).tolist(),
    )


def cosine(rounds, top, warmup):
    up = [top * (t + 1) / (warmup + 1) for t in range(warmup)]
    down = [top * (0.5 + 0.5 * np.cos(np.pi * t / (rounds - warmup))) for t in range(rounds - warmup)]
    return [float(v) for v in up + down]


def cases(seed=11, dim=5, rounds=45):
    rng = np.random.default_rng(seed)
    r5, r6, r8 = ([metropolis(ring(n))] for n in (5, 6, 8))
    e8 = one_peer_exponential(8)
    m5, m6, m8 = matchings(rng, 5, 7), matchings(rng, 6, 5), matchings(rng, 8, 5)
    outer = dict(eta=0.7, beta=0.9, nesterov=True)
    table = [
        ("diloco", 5, complete(5), dict(period=4, **outer), {}),
        ("diloco", 6, complete(6), dict(period=6, eta=0.6, beta=0.8, nesterov=False), {}),
        ("diloco", 8, complete(8), dict(period=4, eta=0.5, beta=0.6, nesterov=True, momentum=0.8), {}),
        ("streaming_diloco", 5, complete(5), dict(period=6, fragments=2, delay=0, alpha=0.0, **outer), {}),
        ("streaming_diloco", 6, complete(6), dict(period=6, fragments=3, delay=1, alpha=0.5, **outer), {}),
        ("streaming_diloco", 8, complete(8), dict(period=4, fragments=2, delay=1, alpha=0.25, eta=0.6, beta=0.7, nesterov=False), {}),
        # fragment 0 is empty: 0 // 6 = 5 // 6 = 0
        ("streaming_diloco", 5, complete(5), dict(period=6, fragments=6, delay=0, alpha=0.5, **outer), {}),
        ("streaming_diloco", 6, complete(6), dict(period=6, fragments=1, delay=4, alpha=0.3, momentum=0.6, **outer), {}),
        ("noloco", 6, m6, dict(period=4, a=0.7, beta=0.5), {}),
        ("noloco", 5, m5, dict(period=6, a=0.7, beta=0.5), {}),
        ("noloco", 8, m8, dict(period=4, a=0.5, beta=0.3, momentum=0.5), {}),
        ("gasloc", 6, r6, dict(period=4, eta=0.7, alpha=0.6, gamma=0.3), {}),
        # with H = 4 and three matrices, counting by step would give the same matrices: H = 6
        ("gasloc", 8, e8, dict(period=6, eta=0.9, alpha=0.8, gamma=0.5), {}),
        ("gasloc", 5, m5, dict(period=6, eta=0.7, alpha=0.5, gamma=0.4), {}),
        ("gasloc", 6, complete(6), dict(period=6, eta=1.0, alpha=1.0, gamma=0.2), {}),
        ("gasloc", 8, r8, dict(period=6, eta=1.2, alpha=1.0, gamma=0.0, momentum=0.7), {}),
        ("gasloc", 5, r5, dict(period=1, eta=1.0, alpha=0.9, gamma=0.3), {}),
        ("sparta", 6, r6, dict(), dict(run=2, seed=3)),
        ("sparta", 8, e8, dict(momentum=0.9), dict(run=4, seed=1)),
        ("sparta", 5, m5, dict(), dict(run=5, seed=8)),
        ("awc", 6, r6, dict(consensus=0.3), {}),
        ("awc", 8, e8, dict(consensus=0.6, momentum=0.9), {}),
        ("awc", 5, r5, dict(p=3.0), dict(rates=cosine(rounds, 0.08, 0))),
        ("awc", 8, e8, dict(p=2.0), dict(rates=cosine(rounds, 0.08, 6))),  # a_t = 1 while the rate rises
    ]
    for row in table:
        yield case_of(rng, rounds, dim, *row)


def extra_cases(seed=12, dim=7, rounds=40):
    rng = np.random.default_rng(seed)
    r5, r6 = ([metropolis(ring(n))] for n in (5, 6))
    m6, e8 = matchings(rng, 6, 5), one_peer_exponential(8)
    outer = dict(eta=0.7, beta=0.6, nesterov=True)
    s5, s6, s8 = [4, 2, 1, 1, 3], [1, 3, 2, 1, 1, 5], [2, 1, 1, 1, 6, 1, 3, 1]
    table = [
        ("sparta", 6, r6, dict(), dict(run=2, seed=3, codec="bf16")),
        ("sparta", 5, r5, dict(), dict(run=1, seed=5, codec="fp16")),
        ("sparta", 8, e8, dict(momentum=0.9), dict(run=4, seed=1, codec="bf16")),
        ("local", 6, r6, dict(period=3), dict(steps=s6)),
        ("diloco", 5, complete(5), dict(period=2, **outer), dict(steps=s5)),
        ("streaming_diloco", 5, complete(5), dict(period=4, fragments=1, delay=2, alpha=0.3, **outer), dict(steps=s5)),
        ("noloco", 6, m6, dict(period=2, a=0.7, beta=0.5, momentum=0.4), dict(steps=s6)),
        ("gasloc", 6, r6, dict(period=3, eta=0.9, alpha=0.7, gamma=0.3), dict(steps=s6)),
        ("gasloc", 8, e8, dict(period=1, eta=1.0, alpha=0.8, gamma=0.2, momentum=0.5), dict(steps=s8)),
        ("awc", 5, r5, dict(consensus=1.0), dict(steps=s5)),
        ("sparse_diloco", 5, complete(5), dict(period=4, eta=0.8, beta=0.9, fraction=0.3), {}),
        ("sparse_diloco", 6, complete(6), dict(period=2, eta=1.0, beta=0.5, fraction=0.01, momentum=0.4), {}),
        ("sparse_diloco", 5, complete(5), dict(period=3, eta=0.6, beta=0.95, fraction=0.6), dict(steps=s5)),
        ("sparse_diloco", 6, complete(6), dict(period=4, eta=0.7, beta=0.0, fraction=1.0), {}),
        ("sparse_diloco", 5, complete(5), dict(period=4, eta=0.8, beta=0.9, fraction=0.6), dict(codec="int2")),
        ("sparse_diloco", 6, complete(6), dict(period=2, eta=1.0, beta=0.95, fraction=0.5, momentum=0.4), dict(codec="int4")),
        ("sparse_diloco", 5, complete(5), dict(period=3, eta=0.7, beta=0.8, fraction=0.8), dict(codec="int8", steps=s5)),
    ]
    differences = [
        ("gasloc_coded", 6, r6, dict(period=4, eta=0.9, alpha=0.6, gamma=0.2), dict(codec="bf16")),
        ("gasloc_coded", 5, r5, dict(period=3, eta=1.0, alpha=0.7, gamma=0.0), dict(codec="fp16")),
    ]
    for row in table:
        yield case_of(rng, rounds, dim, *row)
    # 266 entries: two groups
    groups = dict(period=2, eta=0.9, beta=0.9, fraction=0.95)
    yield case_of(rng, 6, 280, "sparse_diloco", 2, complete(2), groups, dict(codec="int2"))
    for row in differences:
        yield case_of(rng, rounds, dim, *row)


def site_cases(seed=13, dim=5, rounds=45):
    rng = np.random.default_rng(seed)
    table = [  # sites, workers of a site, every, links
        ((2, 2, 4, 1), dict(eta=0.8, alpha=0.7, gamma=0.3)),
        ((4, 1, 3, 1), dict(eta=0.9, alpha=0.8, gamma=0.4)),
        ((2, 3, 3, 1), dict(eta=1.0, alpha=0.9, gamma=0.0)),
        ((3, 2, 3, 1), dict(eta=0.7, alpha=1.0, gamma=0.2)),
        ((4, 2, 5, 2), dict(eta=1.2, alpha=0.6, gamma=0.4, momentum=0.6)),
        ((3, 3, 4, 2), dict(eta=0.8, alpha=0.9, gamma=0.3)),
    ]
    for (count, size, every, links), par in table:
        ws, between = sites(count, size, every, links)
        more = dict(between=between, sites=dict(every=every, workers=size, links=links))
        yield case_of(rng, rounds, dim, "awc_gasloc", count * size, ws, par, more)


def case_of(rng, rounds, dim, name, n, ws, par, more):
    case = dict(
        algorithm=name,
        workers=n,
        lr=max(more.get("rates", [0.05])),
        rounds=rounds,
        parameters=par,
        weights=[np.asarray(w).tolist() for w in ws],
        **problem(rng, n, dim),
        **more,
    )
    if "run" in case:
        case["masks"] = [one_of_each_run(case["seed"], t, dim, case["run"]) for t in range(rounds)]
    if name.endswith("diloco"):  # replicas start equal
        case["start"] = [case["start"][0]] * n
    return case


# ---- the library's names and masks ---------------------------------------------------------------
def finalize(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def mix_seed(seed, a, b):
    """SplitMix64's finalizer over three numbers."""
    for number in (0, a, b):
        seed = finalize((seed + number + 0x9E3779B97F4A7C15) % 2**64)
    return seed


def one_of_each_run(seed, t, dim, length):
    """Of each run of entries one, drawn from seed, combination and run."""
    entries = []
    for r in range(-(-dim // length)):
        begin = r * length
        entries.append(begin + mix_seed(seed, t, r) % min(length, dim - begin))
    return entries


def for_library(case):
    """The case with the library's names of rules and options."""
    names = dict(eta="rate", a="rate", beta="momentum", alpha="blend", gamma="acceleration", p="power")
    if case["algorithm"].startswith("gasloc") or case["algorithm"] == "awc_gasloc":
        names["alpha"] = "consensus_step"
    inner = case["parameters"].get("momentum", 0.0)
    parameters = {names.get(k, k): v for k, v in case["parameters"].items() if k != "momentum"}
    if case["algorithm"] == "sparta":
        parameters = dict(fraction=1 / case["run"], seed=case["seed"])
    if case["algorithm"] == "gasloc_coded":
        parameters["changes"] = True
    keep = ("workers", "lr", "rounds", "weights", "a", "b", "start", "trajectory", "rates", "codec", "steps", "sites")
    if "sites" in case:
        case = dict(case, weights=[])
    name = case["algorithm"].removeprefix("streaming_").removeprefix("sparse_").removesuffix("_coded")
    return dict(algorithm=name, parameters=parameters,
                inner_momentum=inner, **{k: case[k] for k in keep if k in case})


# ---- checks --------------------------------------------------------------------------------------
def far(p, q):
    p, q = np.array(p["trajectory"]), np.array(q["trajectory"])
    return float(np.abs(p - q).max())


def like(case, name, par, **more):
    out = copy.deepcopy(case)
    out.update(algorithm=name, parameters=par, **more)
    return out


TORCHFT = dict(  # delay, alpha -> replica of fragment 0 and 1 after the steps of its exchange
    a=((0, 0.0), (-11, -35, -59), (-23, -47)),
    b=((1, 0.0), (-7, -27, -47), (-19, -39)),
    c=((0, 0.5), (-8, -24.5, -40.25), (-17, -32)),
)
# torchft's fixture mocked_updates_4 (delay 1, alpha 0.5)
FIXTURE = dict(d=((1, 0.5), (-6, -21.5, -35.75), (-15, -29)))


def worked(delay, alpha, reading):
    case = dict(
        algorithm="streaming_diloco", workers=2, lr=1.0, rounds=15, weights=[np.full((2, 2), 0.5)],
        parameters=dict(period=6, fragments=2, delay=delay, alpha=alpha, eta=2.0, beta=0.0, nesterov=False),
        a=[[0.0, 0.0]] * 2, b=[[0.0, 0.0]] * 2, start=[[1.0, 1.0]] * 2, gradient=lambda v: np.full_like(v, 2.0),
    )
    out = run(case, reading)
    x, phi = out["trajectory"], out["outer"]
    assert x[3][0] == x[3][1]
    return tuple(x[t][0][0] for t in (3, 9, 15)), tuple(x[t][0][1] for t in (6, 12)), phi[0]


def check_streaming(log):
    kinds = dict(base=("phi", "merged"), outer=("phi", "merged"), merge=("now", "taken"),
                 schedule=("take-early", "apply-late"), drift=(False, True))
    for values in itertools.product(*kinds.values()):
        reading = dict(zip(kinds, values))
        fits = {}
        for table, label in ((TORCHFT, "example"), (FIXTURE, "fixture")):
            fits[label] = all(worked(*key, reading)[:2] == (first, second) for key, first, second in table.values())
        if fits["example"]:
            log(f"  reading {reading}: the example's numbers fit; torchft's fixture: {fits['fixture']}")
    for h, count in ((6, 2), (6, 3), (4, 2), (6, 6), (6, 1)):
        for t in range(1, 50):
            for f in range(count):
                due = t % h == (f + 1) * h // count % h and t >= h // count * (f + 1)
                assert due == (exchanging(t, h, count) == f)
    for key, first, second in list(TORCHFT.values()) + list(FIXTURE.values()):
        assert worked(*key, None)[:2] == (first, second), key
    assert worked(0, 0.5, None)[2] == [-44.0, -35.0]  # phi after steps 15 and 12
    log("  streaming: all numbers of the worked example, exactly")


def check_rules(log, list_of_cases):
    tight = 1e-13
    by_name = {}
    for case in list_of_cases:
        by_name.setdefault(case["algorithm"], []).append(case)
    for case in by_name["gasloc"]:
        h = case["parameters"]["period"]
        plain = run(like(case, "gasloc", dict(period=h, eta=1.0, alpha=1.0, gamma=0.0)))
        assert far(plain, run(like(case, "local", dict(period=h)))) < tight
        assert far(plain, run(like(case, "noloco", dict(period=h, a=1.0, beta=0.0)))) < tight
        assert far(run(case), run(like(case, "gasloc_coded", case["parameters"]))) < tight
        # the mean of the workers does not see W or alpha
        off = run(like(case, "gasloc", dict(case["parameters"], alpha=0.0)))
        linear = dict(start=case["start"], a=[case["a"][0]] * case["workers"])
        one = run(like(case, "gasloc", case["parameters"], **linear))
        two = run(like(case, "gasloc", dict(case["parameters"], alpha=0.0), **linear))
        assert np.abs(np.mean(one["trajectory"], axis=1) - np.mean(two["trajectory"], axis=1)).max() < 1e-12
        assert far(run(case), off) > 1e-2
    log("  gasloc: eta = alpha = 1, gamma = 0 is local, and noloco with a = 1, beta = 0;")
    log("          coded differences with the identity are plain gasloc; W and alpha leave the mean alone")
    for case in by_name["diloco"]:
        h = case["parameters"]["period"]
        for eta in (1.0, 0.7):
            flat = [run(like(case, "diloco", dict(period=h, eta=eta, beta=0.0, nesterov=v))) for v in (True, False)]
            gossip = run(like(case, "gasloc", dict(period=h, eta=eta, alpha=1.0, gamma=0.0)))
            assert far(flat[0], flat[1]) == 0 and far(flat[0], gossip) < tight
        heavy = dict(period=h, eta=0.7, beta=0.5, nesterov=False)
        assert far(run(like(case, "diloco", heavy)), run(like(case, "noloco", dict(period=h, a=0.7, beta=0.5)))) < tight
        whole = dict(case["parameters"], fragments=1, delay=0, alpha=0.0)
        assert far(run(case), run(like(case, "streaming_diloco", whole))) < tight
        v = np.array(run(case)["trajectory"])[h::h]
        assert np.abs(v - v[:, :1]).max() < tight
    log("  diloco: beta = 0 on the complete graph is gasloc with alpha = 1, gamma = 0 (eta 1 and 0.7);")
    log("          plain momentum is noloco on the complete graph; one fragment, no delay, alpha 0 is streaming")
    for case in by_name["streaming_diloco"]:
        assert far(run(case), run(like(case, "streaming_diloco", dict(case["parameters"], alpha=1.0)))) > 1e-3
        alone = run(like(case, "streaming_diloco", dict(case["parameters"], alpha=1.0)))
        inner = {k: v for k, v in case["parameters"].items() if k == "momentum"}
        assert far(alone, run(like(case, "none", inner))) < tight
    log("  streaming: alpha = 1 never merges: every worker trains alone")
    for case in by_name["sparta"]:
        every = [list(range(5))] * case["rounds"]
        par = case["parameters"]
        atc = run(like(case, "local", dict(par, period=1)))
        assert far(run(like(case, "sparta", par, masks=every)), atc) < tight
        assert far(run(like(case, "sparta", par, masks=[[]] * case["rounds"])), run(like(case, "none", par))) == 0
    log("  sparta: all entries is atc, no entries is none")
    for case in by_name["awc"]:
        rest = {k: v for k, v in case["parameters"].items() if k == "momentum"}
        assert far(run(like(case, "awc", dict(rest, consensus=0.0))), run(like(case, "none", rest))) < tight
    assert run(by_name["awc"][2])["consensus"][0] == 1.0
    assert run(by_name["awc"][3])["consensus"][:7] == [1.0] * 7
    log("  awc: consensus 0 is none; a_t = 1 up to the largest rate")


def check_halves(log, list_of_cases):
    for value, bf16, fp16 in ((1 / 3, 0.333984375, 0.333251953125), (1 + 2**-8, 1.0, 1.00390625), (1 + 3 * 2**-8, 1.015625, 1.01171875)):
        assert rounded(value, "bf16") == bf16 and rounded(value, "fp16") == fp16, value
    for case in list_of_cases:
        if "codec" not in case or case["algorithm"] != "sparta":
            continue
        exact = {k: v for k, v in case.items() if k != "codec"}
        bound = 2.0**-7 if case["codec"] == "bf16" else 2.0**-10
        assert 1e-6 < far(run(case), run(exact)) < bound * np.abs(run(case)["trajectory"]).max() * 4
        other = dict(case, codec="fp16" if case["codec"] == "bf16" else "bf16")
        assert far(run(case), run(other)) > 1e-5
        # steps leave the mean alone: so does what travels, rounded or not
        still = run(dict(case, a=[[0.0] * len(case["a"][0])] * case["workers"]))
        means = np.mean(still["trajectory"], axis=1)
        assert np.abs(means - means[0]).max() < 1e-13
    log("  sparta in 16 bits: the mean stays without steps; worker's differ from exact ones by roundings")


def weighed(counts, rate, weights, rounds=4000):
    """Where x goes when each worker makes counts[i] steps on 1/2 (x - b_i)^2 and x becomes the weighted mean."""
    b, x = np.arange(len(counts), dtype=float) ** 2, 0.0
    for _ in range(rounds):
        ends = b + (1 - rate) ** np.array(counts) * (x - b)
        x = float(np.average(ends, weights=weights))
    return x


def check_steps(log, list_of_cases):
    for case in list_of_cases:
        if "steps" not in case:
            continue
        # all workers alike: rounds of k steps are k times as many rounds of one
        if case["algorithm"] in ("local", "diloco", "noloco", "gasloc"):
            k, par = 3, case["parameters"]
            several = run(dict(case, steps=[k] * case["workers"]))
            single = {key: v for key, v in case.items() if key != "steps"}
            single = run(dict(single, rounds=k * case["rounds"], parameters=dict(par, period=k * par["period"])))
            assert np.abs(np.array(several["trajectory"]) - np.array(single["trajectory"])[::k]).max() < 1e-12
        assert far(run(case), run(dict(case, steps=case["steps"][::-1]))) > 1e-3
    log("  steps: k of all workers in a round are one in each of k rounds")
    # The plain mean already counts each step once: weights by steps would count it by their number again.
    counts = np.array([4, 2, 1, 1, 3])
    goal = np.arange(5.0) ** 2
    by_samples, by_squares, alike = (float(np.average(goal, weights=w)) for w in (counts, counts**2, np.ones(5)))
    for rate in (1e-2, 1e-3):
        assert abs(weighed(counts, rate, np.ones(5)) - by_samples) < 20 * rate
        assert abs(weighed(counts, rate, counts) - by_squares) < 20 * rate
        assert abs(weighed(counts, rate, 1 / counts) - alike) < 20 * rate
    log("  steps: the plain mean of ends goes to the optimum of all samples, up to the rate")


def check_sparse(log, list_of_cases):
    for case in list_of_cases:
        if case["algorithm"] != "sparse_diloco":
            continue
        par = case["parameters"]
        plain = run(like(case, "diloco", dict(par, beta=0.0, nesterov=False)))
        exact = {k: v for k, v in case.items() if k != "codec"}
        assert far(run(like(exact, "sparse_diloco", dict(par, fraction=1.0))), plain) < 1e-13
        if par["fraction"] < 1:
            assert far(run(case), plain) > 1e-3
        if "codec" in case:
            assert far(run(case), run(exact)) > 1e-5
    log("  sparse: all entries is diloco without momentum")


def check_codes(log):
    assert coded([0.5, -1.0, 3.0, -4.0], "int2").tolist() == [0.75, -0.75, 3.5, -3.5]
    assert coded([7.0, -2.4, 0.4, 2.6], "int4").tolist() == [7.0, -2.0, 0.0, 3.0]
    assert coded([127.0, -2.4, 0.4], "int8").tolist() == [127.0, -2.0, 0.0]
    x = np.random.default_rng(3).normal(0, 1, 600)
    for codec in ("int8", "int4", "int2"):
        back = coded(x, codec)
        assert np.array_equal(back[256:512], coded(x[256:512], codec)) and np.linalg.norm(back - x) < np.linalg.norm(x)
    log("  codes: worked examples; groups of 256; an error smaller than the value")


def check_feedback(log):
    """What a code loses is in the memory: with beta = 1, all that traveled and the memory are all that was to travel."""
    rng = np.random.default_rng(5)
    for codec in ("int8", "int4", "int2"):
        memory, sent, given = np.zeros(300), np.zeros(300), np.zeros(300)
        for _ in range(50):
            change = rng.normal(0, 1, 300)
            given += change
            memory += change
            largest = np.sort(np.argsort(-np.abs(memory))[:30])
            q = np.zeros(300)
            q[largest] = coded(memory[largest], codec)
            memory -= q
            sent += q
        assert np.abs(sent + memory - given).max() < 1e-12 and np.abs(memory).max() < 10
    log("  codes: the memory keeps what they lose, and stays bounded")


def check_sites(log, list_of_cases):
    tight = 1e-13
    for case in list_of_cases:
        ws, size, par = np.array(case["weights"]), case["sites"]["workers"], case["parameters"]
        n = case["workers"]
        cycle = case["sites"]["every"] * len(BASE2[n // size])
        assert np.abs(ws.sum(axis=2) - 1).max() < tight and ws.min() >= 0
        assert np.abs(ws.sum(axis=0).sum(axis=0) - len(ws)).max() < 1e-11  # columns on average
        if case["sites"]["links"] == size:
            assert np.abs(ws.sum(axis=1) - 1).max() < tight
        product = np.eye(n)
        for w in ws[:cycle]:
            product = w @ product
        assert np.abs(product - 1 / n).max() < tight
        rest = {k: v for k, v in par.items() if k == "momentum"}
        plain = run(like(case, "awc_gasloc", dict(rest, eta=1.0, alpha=1.0, gamma=0.0)))
        assert far(plain, run(like(case, "awc", dict(rest, consensus=1.0)))) < tight
        still = run(dict(case, a=np.zeros_like(np.array(case["a"])).tolist()))
        means = np.mean(still["trajectory"], axis=1)
        assert np.abs(means - means[0]).max() < tight
        if size > 1:
            continue
        # with constant gradients an exchange is that of gasloc, of which the first step is made before the start
        drift = np.array(case["b"])
        one = run(like(case, "awc_gasloc", dict(par, eta=1.0), gradient=lambda v: drift))
        earlier = (np.array(case["start"]) + case["lr"] * drift).tolist()
        among = [w for w, it in zip(case["weights"], case["between"]) if it]
        two = run(like(case, "gasloc", dict(par, eta=1.0, period=case["sites"]["every"]), gradient=lambda v: drift,
                       weights=among, start=earlier))
        last = case["rounds"] - case["rounds"] % case["sites"]["every"]
        gap = np.array(one["trajectory"][last]) - np.array(two["trajectory"][last]) + case["lr"] * drift
        assert np.abs(gap).max() < tight
    log("  sites: a cycle gives the exact mean; eta = alpha = 1, gamma = 0 is awc; without steps the mean stays;")
    log("         with one worker a site and constant gradients, an exchange is that of gasloc")


def check_conventions(log, path):
    """The old cases of local, awc and atc: what a round is, and how weights are counted."""
    done = 0
    for old in json.load(gzip.open(path)):
        if old["algorithm"] not in ("local", "awc", "atc", "none"):
            continue
        par = dict(old["parameters"])
        if old["algorithm"] == "awc":
            par["consensus"] = 1.0
        name = "local" if old["algorithm"] == "atc" else old["algorithm"]
        again = run(like(old, name, dict(period=1, **par) if old["algorithm"] == "atc" else par))
        assert far(again, old) < 1e-12, old["algorithm"]
        done += 1
    log(f"  {done} old cases (local, awc, atc) come out the same: rounds, weights and momentum agree")


def check_sensitive(log, made):
    """A case must notice the mistakes that are easy to make."""
    for case in made:
        v = np.array(case["trajectory"])
        assert np.isfinite(v).all() and np.abs(v).max() < 20, case["algorithm"]
        par, name = case["parameters"], case["algorithm"]
        wrong = {}
        if len(case["weights"]) > 1:
            wrong["weights in reverse"] = run(like(case, name, par, weights=case["weights"][::-1]))
            if par.get("period", 1) > 1:  # as if the list advanced by step
                k = [case["weights"][(i * par["period"] - 1) % len(case["weights"])] for i in range(1, 50)]
                wrong["weights by step"] = run(like(case, name, par, weights=k))
        for key in ("eta", "beta", "alpha", "gamma", "a", "consensus", "p"):
            if key in par and par[key] != 0:
                wrong[key] = run(like(case, name, dict(par, **{key: par[key] * 1.001})))
        if "nesterov" in par:
            wrong["nesterov"] = run(like(case, name, dict(par, nesterov=not par["nesterov"])))
        if "delay" in par and par["delay"]:
            wrong["delay"] = run(like(case, name, dict(par, delay=par["delay"] - 1)))
        if name == "streaming_diloco" and par["alpha"]:
            wrong["base"] = run(case, dict(base="merged"))
            wrong["outer"] = run(case, dict(outer="merged"))
            if par["delay"]:
                wrong["merge"] = run(case, dict(merge="taken"))
        if name == "sparse_diloco" and "codec" in case:
            wrong["codec"] = run(dict(case, codec="int4" if case["codec"] == "int2" else "int2"))
        if "masks" in case:
            wrong["masks one round late"] = run(like(case, name, par, masks=[[]] + case["masks"][:-1]))
        if "rates" in case and case["rates"][0] < max(case["rates"]):
            c = [(r / max(case["rates"])) ** par["p"] for r in case["rates"]]
            assert abs(c[0] - case["consensus"][0]) > 0.5  # the largest of all rates is another rule
        for what, other in wrong.items():
            assert far(case, other) > 1e-5, (name, par, what, far(case, other))
    log(f"  {len(made)} cases stay below 20, and differ when a parameter or a convention is wrong")


if __name__ == "__main__":
    data = pathlib.Path(__file__).resolve().parent
    say = lambda text: print(text, file=sys.stderr)
    raw = list(cases())
    check_streaming(say)
    check_rules(say, raw)
    check_conventions(say, data / "golden.json.gz")
    extra = list(extra_cases())
    check_halves(say, extra)
    check_steps(say, extra)
    check_sparse(say, extra)
    check_codes(say)
    check_feedback(say)
    on_sites = list(site_cases())
    check_sites(say, on_sites)
    for name, some in (("golden_outer.json.gz", raw + on_sites), ("golden_extra.json.gz", extra)):
        result = [run(case) for case in some]
        check_sensitive(say, result)
        text = json.dumps([for_library(case) for case in result])
        (data / name).write_bytes(gzip.compress(text.encode(), mtime=0))
        say(f"{len(result)} cases in {data / name}")
