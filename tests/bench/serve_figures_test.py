#!/usr/bin/env python3
"""bench/serve.py: its ratios by closed forms, loops at once, and rows that are skipped."""
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import serve
from serve import Case, Sample


def sample(images_per_s, images_per_processor_s=1):
    return Sample([2, 4, 9], images_per_s, images_per_processor_s)


def loop_that_prints(text):
    return [sys.executable, "-c", f"print({text!r})"]


class FiguresTest(unittest.TestCase):
    def test_ratios_are_those_of_images_per_second(self):
        found = serve.figures(sample(1200, 300), one=sample(1000, 900), same=sample(1600, 600))
        self.assertEqual((found["to_one_loop"], found["to_as_many_loops"], found["processor_ratio"]), (1.2, 0.75, 0.5))
        self.assertEqual((found["p50_ms"], found["p99_ms"]), (4, 9))

    def test_two_computing_threads_are_compared_with_two_loops(self):
        loops = {1: sample(100), 2: sample(160)}
        cases = [Case("one", 1, lambda seconds: sample(90)), Case("two", 2, lambda seconds: sample(120))]
        *loop_rows, one, two = serve.measured(cases, loops.get, seconds=1, repeats=2).values()
        self.assertEqual([(each["to_one_loop"], each["to_as_many_loops"]) for each in one], 2 * [(0.9, 0.9)])
        self.assertEqual([(each["to_one_loop"], each["to_as_many_loops"]) for each in two], 2 * [(1.2, 0.75)])
        self.assertEqual([rows[0]["images_per_s"] for rows in loop_rows], [100, 160])

    def test_a_row_has_medians_and_the_lowest_and_highest_ratio(self):
        row = serve.row("raw", [serve.figures(sample(rate), sample(100), sample(200)) for rate in (80, 120, 90)])
        self.assertEqual(serve.line(row), "| raw | 4.00 | 9.00 | 90 | 0.90 (0.80 to 1.20) | 0.45 (0.40 to 0.60) | 1.00 |")


class LoopsTest(unittest.TestCase):
    def test_rates_of_loops_at_once_are_added(self):
        found = serve.loops(loop_that_prints("100 0.5\n2\n4"), 2)
        self.assertEqual(found, Sample([2, 4, 2, 4], 200, 4 * 64 / 1.0))

    def test_a_loop_that_fails_ends_the_benchmark(self):
        with self.assertRaises(SystemExit):
            serve.loops([sys.executable, "-c", "raise SystemExit(1)"], 2)


class OnnxRuntimeTest(unittest.TestCase):
    def test_without_pypi_it_is_skipped(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"PIP_NO_INDEX": "1"}):
            with self.assertRaises(serve.Skipped) as raised:
                serve.install(pathlib.Path(folder) / "venv")
        self.assertTrue(str(raised.exception))

    def test_a_skipped_row_has_the_reason_and_all_columns(self):
        line = serve.line({"request": "ONNX Runtime", "skipped": "no PyPI"})
        self.assertIn("skipped: no PyPI", line)
        self.assertEqual(line.count("|"), serve.HEAD.splitlines()[0].count("|"))


unittest.main()
