"""Run by every rank of mpiexec: averages on 1, 2, 3 and 4 ranks against NumPy."""
import fast_decentralized as fast
import golden
import numpy as np
import pytest


def test_a_round_of_complete_averaging_gives_the_mean():
    x = np.full(1000, fast.rank(), np.float32)
    worker = fast.Worker({"x": x}, "complete", initial="as_is", deadline=30)
    with worker.round():
        pass
    np.testing.assert_allclose(x, (fast.size() - 1) / 2, rtol=1e-6)


@pytest.mark.parametrize("topology", ["ring", "torus2d", "one_peer_exponential", "exponential"])
@pytest.mark.parametrize("algorithm", ["awc", "atc"])
def test_trajectories_are_those_of_the_mixing_matrix(topology, algorithm):
    size, rank = fast.size(), fast.rank()
    rule = fast.topologies.topology(topology)
    x = np.random.default_rng(rank).normal(size=7)
    all_x = np.stack([np.random.default_rng(r).normal(size=7) for r in range(size)])
    goals = np.arange(size)[:, None]
    worker = fast.Worker({"x": x}, topology, algorithm=algorithm, initial="as_is", deadline=30)
    for t in range(6):
        with worker.round():
            x -= 0.1 * (x - rank)
        w, step = np.array(rule.at(size, t).mixing_matrix()), -0.1 * (all_x - goals)
        all_x = w @ all_x + step if algorithm == "awc" else w @ (all_x + step)
        np.testing.assert_allclose(x, all_x[rank], rtol=1e-10, atol=1e-12)
    worker.await_finish()
    np.testing.assert_allclose(worker.mean_model()["x"], all_x.mean(0), rtol=1e-10, atol=1e-12)
    assert worker.stats.rounds == 6


@pytest.mark.parametrize("case", golden.cases(), ids=golden.title)
def test_golden_trajectories(case):
    if case["workers"] != fast.size():
        pytest.skip(f"the case is one of {case['workers']} workers")
    golden.run(case)


def test_staleness_bounds_the_age_of_what_is_combined():
    x = np.zeros(3)
    worker = fast.Worker({"x": x}, "complete", staleness=2, deadline=30)
    for _ in range(50):
        with worker.round():
            pass
    assert sum(worker.stats.ages[3:]) == 0
    assert worker.stats.reads + worker.stats.skipped == 50 * (fast.size() - 1)


@pytest.mark.parametrize("change", ["shape", "type", "option", "name"])
def test_workers_that_differ_are_refused_on_every_rank(change):
    last = fast.rank() == fast.size() - 1 > 0
    model = {"w" if change != "name" or not last else "v":
             np.zeros(4 + (last and change == "shape"), np.float32 if change == "type" and last else np.float64)}
    options = {"staleness": 1} if change == "option" and last else {}
    if fast.size() == 1:
        fast.Worker(model, deadline=30, **options)
        return
    with pytest.raises(fast.MismatchError):
        fast.Worker(model, deadline=30, **options)


def test_an_array_that_one_rank_cannot_share_is_refused_on_every_rank():
    last = fast.rank() == fast.size() - 1
    with pytest.raises(fast.ArgumentError, match="cannot be shared") as caught:
        fast.Worker({"w": "text" if last else np.zeros(3)}, deadline=30)
    assert caught.value.everywhere


def test_bytes_of_all_ranks_are_gathered():
    assert fast.world().all_gather(b"x" * fast.rank()) == [b"x" * rank for rank in range(fast.size())]


@pytest.mark.parametrize("kind, text", [("freed", "COMM_NULL, or was freed"), ("null", "COMM_NULL"),
                                        ("inter", "an intercommunicator"), ("derived", None)])
def test_communicators_that_make_no_group_are_named(kind, text):
    try:
        from mpi4py import MPI
    except ImportError as error:  # not installed, or for another MPI
        pytest.skip(str(error))
    if kind == "inter" and fast.size() == 1:
        pytest.skip("an intercommunicator has two sides")
    comm = MPI.COMM_WORLD.Dup()
    if kind == "freed":
        comm.Free()
    if kind == "null":
        comm = MPI.COMM_NULL
    if kind == "inter":
        side = fast.rank() % 2
        comm = MPI.COMM_WORLD.Split(side).Create_intercomm(0, MPI.COMM_WORLD, 1 - side)
    if kind == "derived":
        comm = type("Mine", (MPI.Intracomm,), {})(comm)
        assert fast.Worker({"x": np.zeros(2)}, "complete", comm=comm, deadline=30).size == fast.size()
        return
    with pytest.raises(fast.ArgumentError, match=text):
        fast.Worker({"x": np.zeros(2)}, "complete", comm=comm, deadline=30)


def test_communicators_of_mpi4py_make_groups():
    try:
        from mpi4py import MPI
    except ImportError as error:  # not installed, or for another MPI
        pytest.skip(str(error))
    half = MPI.COMM_WORLD.Split(fast.rank() % 2, fast.rank())
    x = np.array([float(fast.rank())])
    worker = fast.Worker({"x": x}, "complete", comm=half, initial="as_is", deadline=30)
    with worker.round():
        pass
    assert worker.size == half.size and x[0] == np.mean(range(fast.rank() % 2, fast.size(), 2))


def test_a_part_of_the_ranks_is_a_group():
    part = fast.world().split(fast.rank() % 2)
    assert part.all_gather(str(fast.rank()).encode()) == [str(rank).encode() for rank in range(fast.rank() % 2, fast.size(), 2)]
    assert part.rank == fast.rank() // 2 and part.died() == []
    x = np.full(3, float(fast.rank()))
    worker = fast.Worker({"x": x}, "complete", comm=part, initial="as_is")
    worker.step(lambda: None)
    assert np.allclose(x, np.mean(range(fast.rank() % 2, fast.size(), 2)))
    worker.close()


def test_a_part_of_the_threads_is_a_group():
    parts = fast.local.run(3, lambda: fast.world().split(fast.rank() % 2).all_gather(str(fast.rank()).encode()))
    assert parts == [[b"0", b"2"], [b"1"], [b"0", b"2"]]
