"""Checkpoints of a loop: which files stay, and what is refused."""
import pathlib
import time

import fast_decentralized as fast
import numpy as np
import pytest

torch = pytest.importorskip("torch")


class Counter:
    def __init__(self):
        self.count = 0

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def saved_in(folder):
    """The rounds by worker."""
    found = {}
    for file in folder.glob("round-*/*.pickle"):
        found.setdefault(int(file.name.split("-")[1]), []).append(int(file.parent.name.removeprefix("round-")))
    return {rank: sorted(rounds) for rank, rounds in sorted(found.items())}


def wait_for(file):
    last = time.monotonic() + 50
    while not file.exists():
        assert time.monotonic() < last, file
        time.sleep(0.01)


def counted(folder, rounds, workers=2):
    def work():
        x, counter = np.full(4, float(fast.rank())), Counter()
        with fast.Worker({"x": x}, "complete", algorithm="d2", deadline=20) as worker:
            position = worker.load(folder, counter=counter)
            for _ in range(rounds):
                with worker.round():
                    x -= 0.1 * (x - fast.rank())
                    counter.count += 1
                worker.save(folder, {"at": worker.rounds}, counter=counter)
            return position, counter.count, x, worker.rounds

    return fast.local.run(workers, work)


def test_the_newest_round_that_all_have_is_taken(tmp_path):
    whole = counted(tmp_path / "whole", 5)
    assert [one[0] for one in counted(tmp_path, 3)] == [None, None]
    assert saved_in(tmp_path) == {0: [1, 2, 3], 1: [1, 2, 3]}
    (tmp_path / "round-3" / "worker-1-of-2.pickle").unlink()
    for resumed, one in zip(counted(tmp_path, 3), whole):
        assert resumed[0] == {"at": 2} and resumed[1] == 5 and resumed[3] == 5
        np.testing.assert_array_equal(resumed[2], one[2])


def test_rounds_that_another_worker_lacks_are_removed_before_other_ones_are_made(tmp_path):
    counted(tmp_path, 5)
    for t in (4, 5):
        (tmp_path / f"round-{t}" / "worker-1-of-2.pickle").unlink()

    before = saved_in(tmp_path)
    assert 5 in before[0] and 5 not in before[1]

    def resume():
        worker = fast.Worker({"x": np.zeros(4)}, "complete", algorithm="d2", deadline=20)
        position, loaded = worker.load(tmp_path, counter=Counter()), saved_in(tmp_path)
        fast.world().barrier()
        worker.save(tmp_path, counter=Counter())
        return position, loaded

    assert fast.local.run(2, resume) == [({"at": 3}, before)] * 2
    assert saved_in(tmp_path) == {0: [3], 1: [3]}


def test_a_folder_of_another_run_is_refused_and_keeps_its_files(tmp_path):
    counted(tmp_path / "a", 5)
    counted(tmp_path / "b", 2)
    before = saved_in(tmp_path / "a")

    def save(first, folder):
        worker = fast.Worker({"x": np.zeros(4)}, "complete", algorithm="d2", deadline=20)
        if first is not None:
            worker.load(first, counter=Counter())
        worker.save(folder, counter=Counter())

    for first in (None, tmp_path / "b"):
        with pytest.raises(fast.ArgumentError, match="has checkpoints that this run has not made, up to round 5; go on"):
            fast.local.run(2, save, first, tmp_path / "a")
        assert saved_in(tmp_path / "a") == before
    fast.local.run(2, save, tmp_path / "a", tmp_path / "b")  # as a run that keeps its best model apart


@pytest.mark.parametrize("options, lead, files", [({}, 3, 5), ({"algorithm": "local", "algorithm_option": {"period": 4}}, 9, 20),
                                                  ({"staleness": 2}, 9, 12)])
def test_a_round_of_all_is_left_where_one_falls_while_the_others_are_ahead(tmp_path, options, lead, files):
    """On a ring of six, worker 3 is ahead of worker 0 by three combinations, with staleness 2 by nine."""
    falls_after = 30

    def work(fails):
        worker = fast.Worker({"x": np.zeros(2)}, "ring", deadline=60, **options)
        if not fails:
            return worker.load(tmp_path)
        while True:
            with worker.round():
                if fast.rank() == 0 and worker.rounds == falls_after:
                    wait_for(tmp_path / f"round-{falls_after + lead}" / "worker-3-of-6.pickle")
                    raise RuntimeError("it falls")
            worker.save(tmp_path, worker.rounds)

    with pytest.raises(RuntimeError, match="it falls"):
        fast.local.run(6, work, True)
    assert all(len(rounds) <= files for rounds in saved_in(tmp_path).values())
    assert fast.local.run(6, work, False) == [falls_after] * 6


def test_news_may_need_more_combinations_than_there_are_workers(tmp_path):
    """Pairs (0, 1) and (2, 3) meet in each round, all four in each tenth one: two workers are ahead by up to ten."""
    rounds = [np.full((4, 4), .25)] + 9 * [np.kron(np.eye(2), np.full((2, 2), .5))]

    def work():
        worker = fast.Worker({"x": np.zeros(2)}, rounds, deadline=20)
        while True:
            with worker.round():
                if fast.rank() == 0 and worker.rounds == 31:
                    wait_for(tmp_path / "round-39" / "worker-3-of-4.pickle")
                    raise RuntimeError("it falls")
            worker.save(tmp_path, worker.rounds)

    with pytest.raises(RuntimeError, match="it falls"):
        fast.local.run(4, work)
    assert set.intersection(*map(set, saved_in(tmp_path).values()))


def test_a_run_that_keeps_its_best_model_apart_goes_on_after_it_fell(tmp_path):
    def work(epochs, falls):
        worker = fast.Worker({"x": np.zeros(2)}, "ring", deadline=20)
        for epoch in range(worker.load(tmp_path / "last") or 0, epochs):
            with worker.round():
                pass
            worker.save(tmp_path / "best", epoch + 1)
            if not falls or epoch + 1 < epochs:
                worker.save(tmp_path / "last", epoch + 1)
        return worker.rounds

    assert fast.local.run(2, work, 3, True) == [3, 3]  # best has round 3, last does not
    assert fast.local.run(2, work, 4, False) == [4, 4]
    with pytest.raises(fast.ArgumentError, match="checkpoints that this run has not made"):
        fast.local.run(2, lambda: fast.Worker({"x": np.zeros(2)}, "ring", deadline=20).save(tmp_path / "best"))


def test_workers_that_do_not_wait_save_into_one_folder(tmp_path):
    """One removes a folder of a round that another one makes."""
    def work():
        worker = fast.Worker({"x": np.zeros(2)}, "ring", staleness="inf", deadline=20)
        for _ in range(150):
            with worker.round():
                pass
            worker.save(tmp_path, worker.rounds)

    fast.local.run(4, work)
    assert saved_in(tmp_path) == {rank: [149, 150] for rank in range(4)}


def test_where_rounds_lie_far_apart_two_files_are_kept(tmp_path):
    def work():
        worker = fast.Worker({"x": np.zeros(2)}, "ring", deadline=20)
        for t in range(1, 41):
            with worker.round():
                pass
            if t % 10 == 0:
                worker.save(tmp_path)

    fast.local.run(4, work)
    assert saved_in(tmp_path) == {rank: [30, 40] for rank in range(4)}


def test_without_a_bound_on_staleness_each_worker_goes_on_from_its_own_newest_file(tmp_path):
    def work(rounds):
        worker = fast.Worker({"x": np.zeros(2)}, "ring", staleness="inf", deadline=20)
        position = worker.load(tmp_path)
        for _ in range(rounds):
            with worker.round():
                pass
            worker.save(tmp_path, worker.rounds)
        return position, worker.rounds

    fast.local.run(3, lambda: work(3 + 4 * fast.rank()))
    assert saved_in(tmp_path) == {0: [2, 3], 1: [6, 7], 2: [10, 11]}
    assert fast.local.run(3, work, 1) == [(3, 4), (7, 8), (11, 12)]


def test_epochs_of_other_lengths_have_no_round_in_common(tmp_path):
    def work(loads):
        worker = fast.Worker({"x": np.zeros(2)}, "ring", deadline=20)
        if loads:
            worker.load(tmp_path)
        for _ in range(2):
            for _ in range(10 + fast.rank()):
                with worker.round():
                    pass
            worker.save(tmp_path)

    fast.local.run(2, work, False)
    with pytest.raises(fast.DataError, match=r"no round is common to all \(worker 0: 10, 20; worker 1: 11, 22\); save after"):
        fast.local.run(2, work, True)


def test_a_late_load_is_refused_before_it_changes_the_weights(tmp_path):
    kept = {}

    def work():
        x = kept[fast.rank()] = np.zeros(4)
        worker = fast.Worker({"x": x}, "complete", deadline=20)
        worker.save(tmp_path)
        with worker.round():
            x += 7
        worker.load(tmp_path)

    with pytest.raises(fast.ArgumentError, match="Worker.load: 1 rounds have been made; call it before the first round"):
        fast.local.run(2, work)
    assert [x.tolist() for x in kept.values()] == [[7] * 4] * 2


IN_ROUND = {"save": lambda worker, folder: worker.save(folder), "state_dict": lambda worker, folder: worker.state_dict(),
            "load_state_dict": lambda worker, folder: worker.load_state_dict({}), "republish": lambda worker, folder: worker.republish(),
            "set_topology": lambda worker, folder: worker.set_topology("ring")}


@pytest.mark.parametrize("call", IN_ROUND)
def test_within_a_round_it_is_refused(tmp_path, call):
    def work():
        worker = fast.Worker({"x": np.zeros(2)}, "complete", deadline=20)
        with worker.round():
            IN_ROUND[call](worker, tmp_path)

    with pytest.raises(fast.ArgumentError, match=f"Worker.{call}: a round has begun; call it after the round"):
        fast.local.run(2, work)


def test_on_round_may_save(tmp_path):
    def work(folder, rounds, saves):
        x = np.full(4, float(fast.rank()))
        made = []  # the worker is not there yet
        worker = fast.Worker({"x": x}, "ring", deadline=20, on_round=lambda t: made[0].save(folder) if t == saves else None)
        made.append(worker)
        worker.load(folder)
        while worker.rounds < rounds:
            with worker.round():
                x -= 0.1 * (x - fast.rank())
        return x.tolist()

    whole = fast.local.run(3, work, tmp_path / "whole", 6, None)
    fast.local.run(3, work, tmp_path / "part", 4, 3)
    assert fast.local.run(3, work, tmp_path / "part", 6, None) == whole


@pytest.mark.parametrize("of", ["flat", "part"])
def test_a_part_of_a_larger_memory_is_written_alone(tmp_path, of):
    class Part:
        kept = torch.arange(100_000.0)

        def state_dict(self):
            return {"rows": [self.kept[k : k + 100] for k in range(10)]}

        def load_state_dict(self, state):
            self.rows = state["rows"]

    def work():
        net = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(20)])
        part = Part()
        worker = fast.Worker(net, flat=of == "flat", deadline=20)
        with worker.round():
            net[3].weight.data.fill_(3)
        file = worker.save(tmp_path, part=part)
        worker.close()
        other = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(20)])
        fast.Worker(other, deadline=20).load(tmp_path, part=part)
        same = all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters()))
        return file.stat().st_size, same, [row[0].item() for row in part.rows]

    [(size, same, rows)] = fast.local.run(1, work)
    assert same and rows == list(range(10))
    assert size < 3 * 20 * 33 * 32 * 4  # twice it is in memory: the model, and the message in force


def test_another_number_of_workers_a_damaged_file_and_other_parts_are_refused(tmp_path):
    counted(tmp_path, 1)
    with pytest.raises(fast.DataError, match="has checkpoints of 2 workers, this run has 3; start as many"):
        counted(tmp_path, 1, workers=3)

    def other():
        worker = fast.Worker({"x": np.zeros(4)}, "complete", algorithm="d2", deadline=20)
        worker.load(tmp_path)

    with pytest.raises(fast.ArgumentError, match="the same objects as to save"):
        fast.local.run(2, other)
    for file in pathlib.Path(tmp_path).glob("round-*/*"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(fast.DataError, match="cannot be read"):
        counted(tmp_path, 1)


def test_what_has_no_state_is_refused(tmp_path):
    def work():
        fast.Worker({"x": np.zeros(3)}, deadline=20).save(tmp_path, rate=0.1)

    with pytest.raises(fast.ArgumentError, match=r"rate is a float without state_dict\(\)"):
        fast.local.run(1, work)


def test_a_pytree_of_jax_is_saved_and_loaded(tmp_path):
    jax = pytest.importorskip("jax")

    def work(rounds):
        worker = fast.Worker({"w": jax.numpy.full(3, float(fast.rank()))}, "complete", deadline=20)
        position = worker.load(tmp_path)
        for _ in range(rounds):
            worker.combine({"w": worker.params["w"] + fast.rank()})
            worker.save(tmp_path, worker.rounds)
        return position, np.asarray(worker.params["w"]), worker.rounds

    first = fast.local.run(2, work, 2)
    again = fast.local.run(2, work, 0)
    for (_, weights, _), (position, loaded, rounds) in zip(first, again):
        assert position == rounds == 2
        np.testing.assert_array_equal(weights, loaded)
