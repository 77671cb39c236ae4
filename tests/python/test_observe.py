"""The ready observers: what they write of a run whose figures are known."""
import json
import re
import socket
import threading
import urllib.request

import fast_decentralized as fast
import numpy as np
import pytest

ROUNDS = 20


def train(observers, rounds=ROUNDS, after=None):
    """Two workers. observers() makes those of one."""
    def work():
        made = observers()
        worker = fast.Worker({"x": np.zeros(3)}, "complete", observer=made, deadline=60)
        for t in range(rounds):
            with worker.round():
                pass
            worker.scalar("train/loss", 1 / (t + 1))
            if after is not None:
                after(made, t)
        worker.await_finish()

    fast.local.run(2, work)


def metrics_of(directory, rank):
    return [json.loads(line) for line in (directory / f"metrics/{rank}.jsonl").read_text().splitlines()]


def test_a_timeline_has_the_rounds_and_numbers_of_its_worker(tmp_path):
    train(lambda: fast.observe.Trace(tmp_path))
    for rank in (0, 1):
        assert b"train/loss" in (tmp_path / f"trace-{rank}.0a.pftrace").read_bytes()


def test_a_timeline_leaves_out_rounds_that_were_not_chosen(tmp_path):
    train(lambda: fast.observe.Trace(tmp_path / "all"))
    train(lambda: fast.observe.Trace(tmp_path / "some", rounds=(3, 4)))
    sizes = [sum(file.stat().st_size for file in (tmp_path / name).iterdir()) for name in ("some", "all")]
    assert 0 < sizes[0] < sizes[1]


def test_event_files_have_the_numbers(tmp_path):
    train(lambda: fast.observe.TensorBoard(tmp_path))
    for rank in (0, 1):
        [events] = (tmp_path / f"worker-{rank}").iterdir()
        assert events.read_bytes().count(b"train/loss") >= ROUNDS


def test_prometheus_counts_the_rounds_of_each_worker():
    pages = {}

    def look(observer, t):
        if t == ROUNDS - 1:
            with urllib.request.urlopen(f"http://127.0.0.1:{port + fast.rank()}/metrics", timeout=60) as page:
                pages[fast.rank()] = page.read().decode()

    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    try:
        train(lambda: fast.observe.Prometheus(port), after=look)
    except fast.ResourceError as error:  # another program has taken a port meanwhile
        pytest.skip(str(error))
    for rank in (0, 1):
        assert f'fast_rounds_total{{worker="{rank}"}} {ROUNDS}' in pages[rank]
        assert re.search(rf'fast_scalar_train_loss{{worker="{rank}"}} 0.05', pages[rank])


def test_metrics_are_lines_as_those_of_fast_train(tmp_path):
    def after(metrics, t):
        if t in (9, 19):
            metrics.epoch(samples=640, loss=0.5 - t / 100, test_accuracy=t / 100)

    train(lambda: fast.observe.Metrics(tmp_path, model="three numbers"), after=after)
    for rank in (0, 1):
        lines = metrics_of(tmp_path, rank)
        start, *middle, end = lines
        assert {line["rank"] for line in lines} == {rank}
        assert (start["kind"], start["workers"], start["topology"], start["algorithm"], start["neighbors"]) == \
            ("start", 2, "complete", "awc", [1 - rank])
        assert start["model"] == "three numbers" and start["staleness"] == 0
        epochs = [line for line in middle if line["kind"] == "epoch"]
        assert [(e["epoch"], e["step"], e["samples"], e["loss"], e["test_accuracy"]) for e in epochs] == \
            [(1, 10, 640, 0.5 - 9 / 100, 0.09), (2, 20, 640, 0.5 - 19 / 100, 0.19)]
        assert all(epoch["age_max"] == 0 and epoch["samples_per_second"] > 0 for epoch in epochs)
        assert (end["kind"], end["state"], end["step"], end["test_accuracy"]) == ("end", "finished", 20, 0.19)


def test_metrics_of_a_worker_that_fails_say_so(tmp_path):
    def after(metrics, t):
        if t == 4 and fast.rank() == 1:
            raise ValueError("no more batches")

    with pytest.raises(ValueError):
        train(lambda: fast.observe.Metrics(tmp_path), after=after)
    event, end = metrics_of(tmp_path, 1)[-2:]
    assert (event["event"], event["text"]) == ("failed", "ValueError: no more batches") and end["state"] == "failed"


def test_several_observers_hear_the_same(tmp_path):
    heard = {0: [], 1: []}

    class Own(fast.Observer):
        def on_scalar(self, event):
            heard[event.worker].append((event.name, event.value, event.round))

    train(lambda: [Own(), fast.observe.Trace(tmp_path), fast.observe.TensorBoard(tmp_path / "board")], rounds=3)
    assert heard[0] == heard[1] == [("train/loss", 1 / (t + 1), t + 1) for t in range(3)]
    assert b"train/loss" in (tmp_path / "trace-0.0a.pftrace").read_bytes()


def test_one_observer_may_be_told_a_number_alone(tmp_path):
    alone = fast.observe.Trace(tmp_path, worker=3)
    alone.scalar("test/accuracy", 0.5, round=7)
    del alone
    assert b"test/accuracy" in (tmp_path / "trace-3.0a.pftrace").read_bytes()


def test_a_number_without_an_observer_is_heard_by_nobody():
    fast.local.run(1, lambda: fast.Worker({"x": np.zeros(2)}).scalar("train/loss", 1))


@pytest.mark.parametrize("make, error", [
    (lambda: fast.observe.Trace("/dev/null/traces", 0), fast.ResourceError),
    (lambda: fast.observe.TensorBoard("/dev/null/board", 0), fast.ResourceError),
    (lambda: fast.observe.Metrics("/dev/null/run", 0), fast.ResourceError),
    (lambda: fast.observe.Metrics("metrics", 0, tags=["a"]), fast.ArgumentError),
    (lambda: fast.observe.Metrics("metrics", 0, model=None), fast.ArgumentError),
    (lambda: fast.observe.Metrics("metrics", 0, seed=2**63), fast.ArgumentError),
    (lambda: fast.observe.Prometheus(70_000, 0), fast.ArgumentError),
    (lambda: fast.observe.Prometheus(9400, 0, listen="192.0.2.1"), fast.ResourceError)])
def test_observers_that_cannot_be_made_are_refused(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize("workers, algorithm", [(3, "awc"), (4, "awc"), (4, "atc")])
def test_the_mean_is_watched_while_all_go_on(workers, algorithm):
    """Worker j has the parabola (x - j^2)^2/2 and starts at 3j; gossip on the ring, computed here."""
    rate, rounds = 0.125, 20
    goal, mixing = np.arange(workers) ** 2.0, np.zeros((workers, workers))
    for j in range(workers):
        mixing[j, [j, j - 1, (j + 1) % workers]] = 1 / 3
    x = 3.0 * np.arange(workers)
    published = [x]
    for _ in range(rounds + workers):
        stepped = x + rate * (goal - x)
        x = mixing @ stepped if algorithm == "atc" else mixing @ x + rate * (goal - x)
        published.append(stepped if algorithm == "atc" else x)
    seen, watched = [], threading.Barrier(workers)

    def watch(t, mean, steps):
        assert sorted(steps) == list(range(workers)) and steps[0] == t
        expected = np.mean([published[steps[j]][j] for j in range(workers)])
        np.testing.assert_allclose(mean["x"], np.full(2, expected), rtol=1e-13)
        seen.append((t, (mean["x"][0] - goal.mean()) ** 2 / 2, max(steps.values()), min(steps.values())))

    def work():
        rank = fast.rank()
        x = np.full(2, 3.0 * rank)
        worker = fast.Worker({"x": x}, "ring", initial="as_is", algorithm=algorithm, deadline=60,
                             on_mean=(5, watch) if rank == 0 else None)
        for _ in range(rounds):
            worker.step(lambda: np.add(x, rate * (goal[rank] - x), out=x))
        watched.wait(60)  # final weights of atc, unlike what it publishes, are averaged
        worker.await_finish()
        return worker.mean_model()["x"][0]

    ends = fast.local.run(workers, work)
    assert [t for t, *_ in seen] == [5, 10, 15, 20]
    start = (1.5 * (workers - 1) - goal.mean()) ** 2 / 2
    for t, value, most, least in seen:
        if most == least == t:
            assert value == pytest.approx(start * (1 - rate) ** (2 * t), rel=1e-12)
    assert (ends[0] - goal.mean()) ** 2 / 2 == pytest.approx(start * (1 - rate) ** (2 * rounds), rel=1e-12)


@pytest.mark.parametrize("watch", [print, (0, print), (2, 3), (1.5, print)])
def test_what_is_no_watch_of_the_mean_is_refused(watch):
    with pytest.raises(fast.ArgumentError, match="on_mean is .*; a pair of a whole number, at least 1, and a function"):
        fast.local.run(2, lambda: fast.Worker({"x": np.zeros(3)}, on_mean=watch))
