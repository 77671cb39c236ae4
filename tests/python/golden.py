"""Golden trajectories (tests/data/golden.json.gz) through the Python package."""
import gzip
import json
import pathlib
import tempfile

import fast_decentralized as fast
import numpy as np

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
REPLACE_MOMENTUM = ("quasi_global_momentum", "decentlam")


def cases():
    return [case for name in ("golden.json.gz", "golden_outer.json.gz", "golden_rules.json.gz") for case in json.loads(gzip.decompress((DATA / name).read_bytes()))]


def title(case):
    return f"{case['algorithm']}-{case['workers']}-{len(case['weights'])}"


def topology_of(case):
    """Matrices, one a round; or a file of sites, which says what each round is."""
    if "sites" in case:
        sites = case["sites"]
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(f"schedule = 'sites'\nevery = {sites['every']}\nworkers_per_site = {sites['workers']}\n"
                       f"links = {sites['links']}\n")
            file.flush()
            return fast.topologies.topology(file.name)
    rounds = [np.array(matrix) for matrix in case["weights"]]
    return rounds if len(rounds) > 1 else rounds[0]


def run(case, tolerance=1e-10):
    """One worker's part. Returns the largest difference, relative to the largest value of its round."""
    me, parameters = fast.rank(), dict(case["parameters"])
    if "inner_momentum" in case:
        momentum = case["inner_momentum"]
    else:
        momentum = 0.0 if case["algorithm"] in REPLACE_MOMENTUM else parameters.pop("momentum", 0.0)
    a, b, x = (np.array(case[name][me]) for name in ("a", "b", "start"))
    moved, worst = np.zeros_like(x), 0.0
    rates = case.get("rates", [case["lr"]] * case["rounds"])
    worker = fast.Worker({"x": x}, topology_of(case), algorithm=case["algorithm"],
                         algorithm_option=parameters, initial="as_is", deadline=30)
    for t in range(case["rounds"]):
        with worker.round(learning_rate=rates[t]):
            moved[:] = momentum * moved + a * (x - b)
            x -= rates[t] * moved
        expected = np.array(case["trajectory"][t + 1])
        worst = max(worst, np.abs(x - expected[me]).max() / np.abs(expected).max())
        assert worst <= tolerance, f"{title(case)}: worker {me} after round {t + 1}: {x} instead of {expected[me]}"
    return worst
