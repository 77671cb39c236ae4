"""Decentralized least squares in NumPy, and a model in PyTorch that notes the samples that it sees."""
import pickle

import fast_decentralized as fast
import numpy as np

RATE = 0.05
INITIAL = np.ones(3)  # worker 0's weights


def gathered(value):
    return [pickle.loads(part) for part in fast.world().all_gather(pickle.dumps(value))]


def samples(count, seed=1):
    random = np.random.default_rng(seed)
    return random.normal(size=(count, 3)), random.normal(size=count)


def gradient(weights, x, y):
    """Of the mean of (x·w - y)²."""
    return 2 / len(y) * x.T @ (x @ weights - y)


def trajectories(topology, initial, steps_of_ranks, algorithm="awc"):
    """The weights of all ranks after each step. ``steps_of_ranks[rank][t]`` lists the batches of a step."""
    rule, size = fast.topologies.topology(topology), len(steps_of_ranks)
    weights, found = np.stack([initial] * size), []
    for t in range(len(steps_of_ranks[0])):
        matrix = np.array(rule.at(size, t).mixing_matrix())
        moves = np.stack([-RATE * np.mean([gradient(own, x, y) for x, y in steps[t]], axis=0)
                          for own, steps in zip(weights, steps_of_ranks)])
        weights = matrix @ weights + moves if algorithm == "awc" else matrix @ (weights + moves)
        found.append(weights)
    return np.stack(found)


def in_steps(batches, accumulate):
    return [batches[first:first + accumulate] for first in range(0, len(batches), accumulate)]


def same_everywhere(value):
    """Asserts that all ranks have the same arrays."""
    for other in gathered(value):
        np.testing.assert_array_equal(value, other)
    return value
