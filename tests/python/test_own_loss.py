"""Losses and measures of one's own: a loop of one's own has any. Each with a closed form."""
import json
import pathlib
import re
import subprocess
import sys

import fast_decentralized as fast
import numpy as np
import pytest

WORKERS = 3


def train(model, gradients, rounds, rate):
    """Plain steps on model["w"]. With "atc" on a complete graph, each round is a step on the mean of all gradients."""
    worker = fast.Worker(model, "complete", algorithm="atc", deadline=60)
    for _ in range(rounds):
        with worker.round() as this:
            this.loss, slope = gradients(model["w"])
            model["w"] -= rate * slope
    worker.await_finish()
    return worker.mean_model()["w"]


def test_a_regression_finds_the_least_squares_solution_of_all_workers_samples():
    random = np.random.default_rng(5)
    x = np.column_stack([random.normal(size=(60, 2)), np.ones(60)])
    y = x @ [3, -2, 1] + random.normal(size=60)
    expected = np.linalg.lstsq(x, y, rcond=None)[0]

    def work():
        mine = slice(fast.rank(), None, WORKERS)

        def gradients(w):
            apart = x[mine] @ w - y[mine]
            return float(np.mean(apart**2)), 2 * x[mine].T @ apart / len(apart)

        return train({"w": np.zeros(3)}, gradients, 400, 0.1)

    for found in fast.local.run(WORKERS, work):
        assert found == pytest.approx(expected, abs=1e-9)


def test_the_example_finds_the_quantile_and_its_metrics_have_the_measure(tmp_path):
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/python/own_loss.py"
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    percent = int(re.match(r"(\d+) % of the values are up to 0\.\d\d\n", done.stdout)[1])
    assert 70 <= percent <= 80
    for rank in range(4):
        lines = (tmp_path / f"run/metrics/{rank}.jsonl").read_text().splitlines()
        epoch, end = [json.loads(line) for line in lines][-2:]
        assert epoch["kind"] == "epoch" and 100 * epoch["test_covered"] == pytest.approx(percent, abs=0.51)
        assert end["kind"] == "end" and end["test_covered"] == epoch["test_covered"]


@pytest.mark.parametrize("name", ["seconds", "step", "time", "kind", "phases"])
def test_a_result_with_a_name_that_each_line_has_is_refused(tmp_path, name):
    def work():
        metrics = fast.observe.Metrics(tmp_path)
        worker = fast.Worker({"w": np.zeros(1)}, "complete", observer=metrics, deadline=60)
        with worker.round():
            pass
        with pytest.raises(ValueError, match=f"own {name}; choose another name, as my_{name}"):
            metrics.epoch(samples=1, loss=1.0, **{name: 0.5})
        metrics.epoch(samples=1, loss=1.0, **{f"my_{name}": 0.5})
        worker.await_finish()

    fast.local.run(2, work)
    for rank in range(2):
        lines = [json.loads(line) for line in (tmp_path / f"metrics/{rank}.jsonl").read_text().splitlines()]
        epochs = [line for line in lines if line["kind"] == "epoch"]
        assert [(line["epoch"], line["step"], line[f"my_{name}"]) for line in epochs] == [(1, 1, 0.5)]


def test_a_label_for_each_step_is_learned_down_to_the_entropy():
    labels = np.array([[0, 1, 0], [2, 0, 1], [1, 0, 0]])  # of a worker each; 5, 3 and 1 of 9
    shares = np.bincount(labels.ravel()) / labels.size

    def work():
        mine = np.eye(3)[labels[fast.rank()]]  # steps x classes

        def gradients(logits):
            p = np.exp(logits) / np.exp(logits).sum()
            return -float(np.mean(mine @ np.log(p))), p - mine.mean(0)

        return train({"w": np.zeros(3)}, gradients, 400, 1.0)

    for logits in fast.local.run(WORKERS, work):
        assert np.exp(logits) / np.exp(logits).sum() == pytest.approx(shares, abs=1e-6)
