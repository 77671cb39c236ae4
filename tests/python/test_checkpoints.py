"""Checkpoints of a loop: which files stay, and what is refused."""
import pathlib

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
    files = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.glob("round-*/*"))
    assert files == [f"round-{t}/worker-{rank}-of-2.pickle" for t in (2, 3) for rank in (0, 1)]
    (tmp_path / "round-3" / "worker-1-of-2.pickle").unlink()
    for resumed, one in zip(counted(tmp_path, 3), whole):
        assert resumed[0] == {"at": 2} and resumed[1] == 5 and resumed[3] == 5
        np.testing.assert_array_equal(resumed[2], one[2])


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
