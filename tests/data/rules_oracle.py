#!/usr/bin/env python3
"""Reference trajectories of edm, gut, relay_sum, a2cid2 and averaged_momentum, in float64 NumPy: golden_rules.json.gz.

Run:  tests/data/rules_oracle.py     (needs python3-numpy)

Checks itself first, then writes the cases. Written from the formulas of the papers only, in the papers' variables.
Problem, rounds and matrices are those of outer_oracle.py. Round t (from 0) uses weights[t % len(weights)].
    edm        m = beta m + (1 - beta) g, psi' = x - alpha m, phi = psi' + x - psi, x = W phi; alpha = lr / (1 - beta).
    gut        delta = g(W x) - (W x - x)/lr, y = delta + mu (sum_j W_ij y_j + sum_j W_ij (x_i - x_j)/lr - delta of before),
               where y_j is (x_j - x_j')/lr and x those of before; b = beta b + y, x = x - lr b. With momentum, the second
               sum counts 1 + beta times, as in the authors' code. A replica is W x, at which gradients are taken; the
               first one is x.
    relay_sum  along edges of a tree: messages are sums, beside their counts; the average is over those counted.
    a2cid2     x and x~ take the gradient's step; a pair's x meet half-way, x~ moves by alpha~ of the difference; then
               both mix for a time of 1.
    averaged_momentum  m_i = g_i + beta sum_j W_ij m_j, x_i = sum_j W_ij x_j - lr m_i; with atc, neighbors average what
               momentum SGD, m_i = g_i + beta m_i and x_i = x_i - lr m_i, has made.
"""
import gzip
import json
import pathlib
import sys

import numpy as np
from outer_oracle import complete, matchings, metropolis, problem, ring


def chain(n):
    return [sorted({i - 1, i + 1} & set(range(n))) for i in range(n)]


def tree(parents):
    """Worker i + 1 and parents[i] are neighbors."""
    near = [[] for _ in range(len(parents) + 1)]
    for child, parent in enumerate(parents, 1):
        near[child].append(parent)
        near[parent].append(child)
    return near


def pairs_on_a_ring(n):
    rounds = []
    for odd in range(2):
        w = np.eye(n)
        for i in range(odd, n, 2):
            j = (i + 1) % n
            w[[i, i, j, j], [i, j, i, j]] = 0.5
        rounds.append(w)
    return rounds


def one_peer(n):
    """Each round, worker i averages with worker i + 2^t alone."""
    return [(np.eye(n) + np.roll(np.eye(n), 1 << t, axis=1)) / 2 for t in range(n.bit_length() - 1)]


def directed_ring(n):
    return (np.eye(n) + np.roll(np.eye(n), -1, axis=1)) / 2


def weighted_ring(rng, n):
    """Symmetric, with other weights on each edge."""
    w = np.zeros((n, n))
    for i in range(n):
        w[i, (i + 1) % n] = w[(i + 1) % n, i] = rng.uniform(0.1, 0.3)
    return w + np.diag(1 - w.sum(axis=1))


def edm(case, grad, par):
    w, beta, x = np.array(case["weights"][0]), par["beta"], np.array(case["start"])
    alpha = case["lr"] / (1 - beta)
    m, psi = np.zeros_like(x), x.copy()
    for _ in range(case["rounds"]):
        m = beta * m + (1 - beta) * grad(x)
        moved = x - alpha * m
        x, psi = w @ (moved + x - psi), moved
        yield x


def gut(case, grad, par):
    w, lr = np.array(case["weights"][0]), case["lr"]
    beta, mu = par["beta"], par["mu"]
    x = np.array(case["start"])
    mixed, before, mixed_before = x, x, x
    buffer, delta_before = np.zeros_like(x), np.zeros_like(x)
    for _ in range(case["rounds"]):
        delta = grad(mixed) - (mixed - x) / lr
        tracked = (mixed_before - mixed) / lr + (1 + beta) * (before - mixed_before) / lr
        y = delta + mu * (tracked - delta_before)
        buffer = beta * buffer + y
        before, mixed_before, delta_before = x, mixed, delta
        x = x - lr * buffer
        mixed = w @ x
        yield mixed


def relay_sum(case, grad, par):
    x = np.array(case["start"])
    n, inner, step = len(x), par["momentum"], np.zeros_like(x)
    near = [[j for j in range(n) if j != i and case["weights"][0][i][j] != 0] for i in range(n)]
    edges = [(i, j) for i in range(n) for j in near[i]]
    sums = {edge: np.zeros(x.shape[1]) for edge in edges}
    counts = {edge: 0 for edge in edges}
    for _ in range(case["rounds"]):
        step = inner * step + grad(x)
        half = x - case["lr"] * step
        relayed = {(i, j): half[i] + sum((sums[k, i] for k in near[i] if k != j), np.zeros(x.shape[1])) for i, j in edges}
        counts = {(i, j): 1 + sum(counts[k, i] for k in near[i] if k != j) for i, j in edges}
        sums = relayed
        for i in range(n):
            x[i] = (half[i] + sum(sums[j, i] for j in near[i])) / (1 + sum(counts[j, i] for j in near[i]))
        yield x


def constants(weights):
    """chi_1 and chi_2: the paper's Laplacian has the rates at which edges are used."""
    laplacian = 2 * (np.eye(len(weights[0])) - np.mean(weights, axis=0))
    inverse = np.linalg.pinv(laplacian)
    n = len(laplacian)
    used = [(i, j) for i in range(n) for j in range(i) if laplacian[i, j] != 0]
    resistance = max((inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]) / 2 for i, j in used)
    return 1 / np.linalg.eigvalsh(laplacian)[1], resistance


def a2cid2(case, grad, par):
    x = np.array(case["start"])
    chi = constants(np.array(case["weights"]))
    eta = par.get("eta", 1 / (2 * np.sqrt(chi[0] * chi[1])))
    alpha = par.get("alpha", np.sqrt(chi[0] / chi[1]) / 2)
    # exp of [[-eta, eta], [eta, -eta]], by its eigenvectors (1, 1) and (1, -1)
    mix = np.array([[1, 1], [1, 1]]) / 2 + np.exp(-2 * eta) * np.array([[1, -1], [-1, 1]]) / 2
    inner, step, tilde = par["momentum"], np.zeros_like(x), x.copy()
    for t in range(case["rounds"]):
        step = inner * step + grad(x)
        w = np.array(case["weights"][t % len(case["weights"])])
        difference = 2 * (w @ x - x)  # to the partner
        moved = x + difference / 2 - case["lr"] * step
        other = tilde + alpha * difference - case["lr"] * step
        x, tilde = mix[0, 0] * moved + mix[0, 1] * other, mix[1, 0] * moved + mix[1, 1] * other
        yield x


def averaged_momentum(case, grad, par):
    x = np.array(case["start"])
    m = np.zeros_like(x)
    for t in range(case["rounds"]):
        w = np.array(case["weights"][t % len(case["weights"])])
        if "atc" in par:
            m = grad(x) + par["beta"] * m
            m, x = w @ m, w @ (x - case["lr"] * m)
        else:
            m = grad(x) + par["beta"] * (w @ m)
            x = w @ x - case["lr"] * m
        yield x


RULES = dict(edm=edm, gut=gut, relay_sum=relay_sum, a2cid2=a2cid2, averaged_momentum=averaged_momentum)


def run(case):
    a, b = np.array(case["a"]), np.array(case["b"])
    steps = RULES[case["algorithm"]](case, lambda x: a * (x - b), case["parameters"])
    return [case["start"]] + [x.tolist() for x in steps]


def cases(seed=17, dim=5, rounds=30):
    rng, drawn = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    lazy = lambda w: (np.eye(len(w)) + w) / 2
    plain = lambda **values: dict(momentum=0.0, **values)
    table = [
        ("edm", 5, [metropolis(ring(5))], dict(beta=0.9)),
        ("edm", 6, [lazy(metropolis(ring(6)))], dict(beta=0.5)),
        ("edm", 8, [lazy(weighted_ring(rng, 8))], dict(beta=0.8)),
        ("edm", 4, complete(4), dict(beta=0.0)),
        ("gut", 5, [metropolis(ring(5))], dict(beta=0.9, mu=0.06)),
        ("gut", 8, [metropolis(ring(8))], dict(beta=0.0, mu=0.9)),
        ("gut", 8, [weighted_ring(rng, 8)], dict(beta=0.6, mu=0.3)),
        ("gut", 5, [lazy(weighted_ring(rng, 5))], dict(beta=0.0, mu=0.5)),
        ("relay_sum", 4, [metropolis(chain(4))], plain()),
        ("relay_sum", 5, [metropolis(chain(5))], dict(momentum=0.6)),
        ("relay_sum", 8, [metropolis(chain(8))], plain()),
        ("a2cid2", 8, pairs_on_a_ring(8), plain()),
        ("a2cid2", 6, pairs_on_a_ring(6), dict(momentum=0.7)),
        ("a2cid2", 5, matchings(rng, 5, 9), plain()),
        ("a2cid2", 6, matchings(rng, 6, 7), plain(eta=0.2, alpha=0.8)),
        ("relay_sum", 5, [metropolis(tree([0, 0, 0, 0]))], plain()),
        ("relay_sum", 7, [metropolis(tree([0, 0, 1, 1, 2, 2]))], dict(momentum=0.6)),
        ("relay_sum", 9, [metropolis(tree([drawn.integers(i) for i in range(1, 9)]))], plain()),
        ("averaged_momentum", 5, [metropolis(ring(5))], dict(beta=0.9)),
        ("averaged_momentum", 8, one_peer(8), dict(beta=0.9)),
        ("averaged_momentum", 7, [directed_ring(7)], dict(beta=0.6)),
        ("averaged_momentum", 4, complete(4), dict(beta=0.8)),
        ("averaged_momentum", 5, [metropolis(ring(5))], dict(beta=0.9, atc=True)),
        ("averaged_momentum", 8, one_peer(8), dict(beta=0.9, atc=True)),
        ("averaged_momentum", 7, [directed_ring(7)], dict(beta=0.6, atc=True)),
        ("averaged_momentum", 3, [metropolis(chain(3))], dict(beta=0.8, atc=True)),
    ]
    for name, n, weights, par in table:
        case = dict(algorithm=name, workers=n, lr=0.05, rounds=rounds, parameters=par,
                    weights=[np.asarray(w).tolist() for w in weights], **problem(rng, n, dim))
        yield dict(case, trajectory=run(case))


def for_library(case):
    names = dict(edm=dict(beta="momentum"), gut=dict(beta="momentum", mu="mu"), relay_sum={},
                 a2cid2=dict(eta="mixing_rate", alpha="second_step"),
                 averaged_momentum=dict(beta="momentum", atc="atc"))[case["algorithm"]]
    options = {names[key]: value for key, value in case["parameters"].items() if key in names}
    degree = (np.array(case["weights"][0]) > 0).sum(axis=0).max().item() - 1
    if case["algorithm"] == "relay_sum" and degree > 2:
        options["degree"] = degree
    inner = 0.0 if "beta" in case["parameters"] else case["parameters"]["momentum"]
    return dict(case, parameters=options, inner_momentum=inner)


# ---- checks --------------------------------------------------------------------------------------
def like(case, **changes):
    return np.array(run(dict(case, **changes)))


def optimum(case):
    a, b = np.array(case["a"]), np.array(case["b"])
    return (a * b).sum(axis=0) / a.sum(axis=0)


def check(log, made):
    for case in made:
        x, par, name = np.array(case["trajectory"]), case["parameters"], case["algorithm"]
        assert np.isfinite(x).all() and np.abs(x).max() < 20, name
        for key, value in par.items():
            if value is True:
                other = {other: par[other] for other in par if other != key}
            else:
                other = dict(par, **{key: value * 1.001 + (0.001 if value == 0 else 0)})
            assert np.abs(like(case, parameters=other) - x).max() > 1e-6, (name, key)
        if len(case["weights"]) > 1 and name != "averaged_momentum":  # whose rounds commute
            assert np.abs(like(case, weights=case["weights"][::-1]) - x).max() > 1e-3
        still = like(case, lr=1e-9, a=np.zeros_like(case["a"]), rounds=400)
        if name == "relay_sum":  # delays: workers agree, on a value between the ones at first
            assert np.ptp(still[-1], axis=0).max() < 1e-6
        else:  # W keeps the mean
            assert np.abs(still.mean(axis=1) - still[0].mean(axis=0)).max() < 1e-6
            assert np.ptp(still[-1], axis=0).max() < 1e-3, name
        far = np.abs(like(case, rounds=6000)[-1] - optimum(case)).max()
        if name in ("edm", "relay_sum"):
            assert far < 1e-8, (name, far)
        else:
            assert 1e-4 < far < 0.5, (name, far)
    log("  edm and relay_sum end at the optimum itself; the others near it; without steps all agree")
    case = next(case for case in made if case["algorithm"] == "gut" and case["parameters"]["beta"] == 0)
    near = [np.abs(like(case, parameters=dict(beta=0.0, mu=mu), rounds=6000)[-1] - optimum(case)).max() for mu in (0.0, 0.5, 0.9)]
    log(f"  gut: {near[0]:.2g}, {near[1]:.2g} and {near[2]:.2g} from the optimum with mu 0, 0.5 and 0.9")
    assert 1.5 * near[1] < near[0] < 2.5 * near[1] and 6 * near[2] < near[0] < 11 * near[2]  # as 1 - mu
    # without momentum, edm is d2: x = W (2x - x of before - lr (g - g of before))
    case = next(case for case in made if case["algorithm"] == "edm" and case["parameters"]["beta"] == 0)
    a, b, w = np.array(case["a"]), np.array(case["b"]), np.array(case["weights"][0])
    x = [np.array(case["start"])]
    x.append(w @ (x[0] - case["lr"] * a * (x[0] - b)))
    while len(x) <= case["rounds"]:
        x.append(w @ (2 * x[-1] - x[-2] - case["lr"] * a * (x[-1] - x[-2])))
    assert np.abs(np.array(x) - case["trajectory"]).max() < 1e-13
    log("  edm: without momentum it is d2")
    for n in (6, 8, 16):  # a ring whose pairs meet in every second round
        expected = 1 / (1 - np.cos(2 * np.pi / n)), (n - 1) / n
        assert np.allclose(constants(pairs_on_a_ring(n)), expected)
    log("  a2cid2: chi of rings as the closed forms")


if __name__ == "__main__":
    say = lambda text: print(text, file=sys.stderr)
    made = list(cases())
    check(say, made)
    path = pathlib.Path(__file__).resolve().parent / "golden_rules.json.gz"
    path.write_bytes(gzip.compress(json.dumps([for_library(case) for case in made]).encode(), mtime=0))
    say(f"{len(made)} cases in {path}")
