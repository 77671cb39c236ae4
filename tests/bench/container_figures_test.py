#!/usr/bin/env python3
"""bench/container.py: its ratios by closed forms, and the order of its runs."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import container
from container import BARE, IMAGE


class FiguresTest(unittest.TestCase):
    def test_ratios_are_those_of_pairs(self):
        found = container.figures({BARE: [(100, 4, 0.5), (200, 2, 0.5), (50, 8, 0.5)],
                                   IMAGE: [(90, 5, 0.5), (200, 2, 0.5), (60, 4, 0.5)]})
        self.assertEqual(found["ratio"], {"median": 1, "low": 0.9, "high": 1.2})
        self.assertEqual(found["command_ratio"], {"median": 1, "low": 0.8, "high": 2})
        self.assertEqual(found["samples_per_second"][BARE], {"median": 100, "low": 50, "high": 200})

    def test_programs_that_compute_something_else_are_not_compared(self):
        with self.assertRaisesRegex(SystemExit, "do not compute the same"):
            container.figures({BARE: [(100, 4, 0.5)], IMAGE: [(100, 4, 0.6)]})

    def test_each_pair_begins_with_the_other_one(self):
        order = []
        runs = {name: (lambda name=name: order.append(name) or len(order)) for name in (BARE, IMAGE)}
        found = container.measured(runs, 3)
        self.assertEqual(order[2:], [BARE, IMAGE, IMAGE, BARE, BARE, IMAGE])
        self.assertEqual(found, {BARE: [3, 6, 7], IMAGE: [4, 5, 8]})


if __name__ == "__main__":
    unittest.main()
