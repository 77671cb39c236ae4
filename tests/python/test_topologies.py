"""Topologies from names, matrices, graphs and functions."""
import traceback

import fast_decentralized as fast
import numpy as np
import pytest

RING = np.array([[0.5, 0.25, 0, 0.25], [0.25, 0.5, 0.25, 0], [0, 0.25, 0.5, 0.25], [0.25, 0, 0.25, 0.5]])


def after(topology, workers=4, rounds=1):
    """The weights of workers that began with their ranks."""
    def work():
        x = np.array([float(fast.rank())])
        worker = fast.Worker({"x": x}, topology, initial="as_is", deadline=20)
        for _ in range(rounds):
            with worker.round():
                pass
        return x[0]

    return fast.local.run(workers, work)


def test_a_matrix_is_what_workers_average_with():
    np.testing.assert_allclose(after(RING, rounds=3), np.linalg.matrix_power(RING, 3) @ np.arange(4), rtol=1e-12)


def test_lists_are_matrices_too():
    np.testing.assert_allclose(after([[0.5, 0.5], [0.5, 0.5]], workers=2), [0.5, 0.5])


def test_zeros_and_ones_are_an_adjacency_matrix():
    adjacency = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])  # a star; Metropolis weights 1/3
    expected = [1.0, 2 / 3 * 1 + 0, 2 / 3 * 2 + 0]
    np.testing.assert_allclose(after(adjacency, workers=3), expected, rtol=1e-12)


def test_matrices_of_scipy_are_taken():
    sparse = pytest.importorskip("scipy.sparse")
    np.testing.assert_allclose(after(sparse.csr_matrix(RING)), RING @ np.arange(4), rtol=1e-12)


def test_matrices_in_turn_are_a_schedule():
    pairs = np.zeros((2, 4, 4))
    for a, b in ((0, 1), (2, 3)):
        pairs[0][np.ix_((a, b), (a, b))] = 0.5
    for a, b in ((1, 2), (3, 0)):
        pairs[1][np.ix_((a, b), (a, b))] = 0.5
    np.testing.assert_allclose(after(list(pairs), rounds=3), pairs[0] @ pairs[1] @ pairs[0] @ np.arange(4), rtol=1e-12)


def test_a_function_makes_a_schedule():
    def at_round(t):
        return np.roll(np.eye(3), 1 + t % 2, axis=1) / 2 + np.eye(3) / 2

    expected = at_round(1) @ at_round(0) @ np.arange(3)
    np.testing.assert_allclose(after(fast.topologies.from_function(at_round, 3), workers=3, rounds=2), expected, rtol=1e-12)


def test_graphs_of_networkx_are_taken():
    networkx = pytest.importorskip("networkx")
    ring = after("ring", workers=5)
    np.testing.assert_allclose(after(networkx.cycle_graph(5), workers=5), ring)
    np.testing.assert_allclose(after(networkx.cycle_graph(5), workers=5)[0], (0 + 1 + 4) / 3)


def test_an_edge_of_a_directed_graph_says_who_reads():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph([(0, 1), (1, 2), (2, 0)])  # 1 reads 0
    np.testing.assert_allclose(after(graph, workers=3), [1.0, 0.5, 1.5])


def test_a_file_is_loaded(tmp_path):
    file = tmp_path / "pairs.toml"
    file.write_text('edges = [[0, 1]]\n')
    rule = fast.topologies.topology(file)
    assert rule.at(2).in_neighbors(0) == [1]


@pytest.mark.parametrize("topology, error, text", [
    (np.ones((2, 3)), fast.TopologyError, "a square one is required"), ([], fast.TopologyError, "an empty list"),
    (3, fast.ArgumentError, "a int; give a name"), (np.full((2, 2), 0.7), fast.TopologyError, "sum"),
    (np.array([[1.5, -0.5], [-0.5, 1.5]]), fast.TopologyError, "negative")])
def test_what_is_no_topology_is_refused(topology, error, text):
    with pytest.raises(error, match=text):
        after(topology, workers=2)


def test_a_matrix_for_another_number_of_workers_is_refused():
    with pytest.raises(fast.TopologyError, match="4"):
        after(RING, workers=3)


def test_an_exception_in_a_schedules_function_is_told():
    def at_round(t):
        raise LookupError("no such round")

    with pytest.raises(fast.Error, match="no such round"):
        after(fast.topologies.from_function(at_round, 2), workers=2)


def test_the_topology_may_change_on_the_way():
    def work():
        x = np.array([float(fast.rank())])
        worker = fast.Worker({"x": x}, np.eye(2), initial="as_is")
        with worker.round():
            pass
        before = x[0]
        worker.set_topology("complete")
        with worker.round():
            pass
        return before, x[0]

    assert fast.local.run(2, work) == [(0, 0.5), (1, 0.5)]


def test_names_have_help():
    assert "ring" in fast.topologies.names() and all(fast.topologies.names().values())


def nothing(_):
    raise KeyError("no such round")


@pytest.mark.parametrize("first", [0, 2])
def test_the_traceback_of_a_function_that_raises_is_kept(first):
    def at_round(t):
        return nothing(t) if t >= first else np.full((2, 2), 0.5)

    def work():
        worker = fast.Worker({"x": np.zeros(2)}, fast.topologies.from_function(at_round, 2), deadline=20)
        for _ in range(4):
            with worker.round():
                pass

    with pytest.raises(fast.ArgumentError, match="no such round") as caught:
        fast.local.run(2, work)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "nothing" in "".join(traceback.format_exception(caught.value))


def test_the_traceback_of_participates_is_kept():
    with pytest.raises(fast.ArgumentError, match="no such round") as caught:
        fast.local.run(2, lambda: fast.Worker({"x": np.zeros(2)}, participates=nothing))
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_name_follows_the_hosts_it_is_given():
    rule = fast.topologies.topology("sharded_one_peer", [0, 1, 0, 1])
    assert rule.at(4).in_neighbors(0) == [2]
    assert rule.at(4, 1).in_neighbors(0) == [1]
    with pytest.raises(fast.TopologyError, match="the same number of workers"):
        fast.topologies.topology("sharded_one_peer", [0, 1, 1]).at(3)


def test_shards_come_to_the_mean_in_a_cycle():
    np.testing.assert_allclose(after("sharded_one_peer", workers=8, rounds=3), 3.5, rtol=1e-12)
