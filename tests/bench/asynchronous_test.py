#!/usr/bin/env python3
"""bench/asynchronous.py: its weights and turns by closed forms, its rules and gradients by PyTorch's own."""
import importlib.util
import pathlib
import sys
import threading
import unittest

if importlib.util.find_spec("torch") is None:
    print("skipped: apt-get install python3-torch")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import asynchronous
import numpy as np
import torch

RATE, MOMENTUM = .3, .9


def server(rule):
    """Of a small model, with a copy of it that PyTorch's Nesterov moves."""
    torch.manual_seed(1)
    model, copy = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    copy.load_state_dict(model.state_dict())
    optimizer = torch.optim.SGD(copy.parameters(), lr=RATE, momentum=MOMENTUM, nesterov=True)
    return model, copy, asynchronous.Server(model, rule, RATE, MOMENTUM), optimizer


def turns_of(model):
    return [[torch.randn_like(p) for p in model.parameters()] for _ in range(asynchronous.WORKERS)]


class AsynchronousTest(unittest.TestCase):
    def assert_equal(self, model, copy):
        for p, q in zip(model.parameters(), copy.parameters()):
            torch.testing.assert_close(p, q)

    def test_fair_weights_let_two_workers_pull_each_other_alike_in_the_same_time(self):
        turns = np.array([1, 2, 3.5])
        weights = asynchronous.fair((1 - np.eye(3)) / 3, turns)
        np.testing.assert_allclose(weights.sum(axis=1), 1)
        pulls = weights / turns[:, None]
        np.testing.assert_allclose(pulls, pulls.T)

    def test_equal_turns_leave_the_weights_as_they_are(self):
        np.testing.assert_allclose(asynchronous.fair((1 - np.eye(4)) / 4, [2] * 4), np.full((4, 4), .25))

    def test_the_delayed_momentum_is_that_of_the_mean_of_as_many_turns_as_workers(self):
        model, copy, delayed, optimizer = server("delayed")
        for _ in range(3):
            turns = turns_of(model)
            for p, parts in zip(copy.parameters(), zip(*turns)):
                p.grad = sum(parts) / asynchronous.WORKERS
            for changes in turns:
                delayed.take(changes)
            optimizer.step()
            self.assert_equal(model, copy)

    def test_the_other_rule_makes_a_step_for_each_turn(self):
        model, copy, each, optimizer = server("nesterov")
        for changes in turns_of(model):
            for p, change in zip(copy.parameters(), changes):
                p.grad = change / 2  # 1 / sqrt(workers)
            each.take(changes)
            optimizer.step()
            self.assert_equal(model, copy)

    def test_gradients_are_those_of_backward(self):
        torch.manual_seed(2)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, asynchronous.CLASSES))
        x, y = torch.randn(10, 6), torch.randint(0, asynchronous.CLASSES, (10,))
        torch.nn.functional.cross_entropy(model(x), y).backward()
        expected = [p.grad.clone() for p in model.parameters()]
        asynchronous.gradients(model, x, y)
        for p, grad in zip(model.parameters(), expected):
            torch.testing.assert_close(p.grad, grad)

    def test_threads_run_by_their_time_and_then_by_their_number(self):
        periods, ran = [3, 2, 6], []
        turns = asynchronous.Turns(len(periods))

        def work(worker):
            for time in range(periods[worker], 13, periods[worker]):
                turns.wait(worker, time)
                ran.append((time, worker))
            turns.end()

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(len(periods))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(ran, sorted((time, worker) for worker, period in enumerate(periods) for time in range(period, 13, period)))


if __name__ == "__main__":
    unittest.main()
