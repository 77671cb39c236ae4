#!/usr/bin/env python3
"""bench/curves.py, local_steps.py and time_to.py: their figures by closed forms, and a small study of curves.py.

  curves_test.py FOLDER_OF_PROGRAMS [TEST...]
"""
import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "peers")]

import curves
import local_steps
from accuracy import data, report, seconds
from accuracy.cases import EXCHANGES, MODELS, Cell

if not data.SOURCE.exists():
    print("skipped: apt-get install dataset-fashion-mnist")
    sys.exit(77)

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
SIMULATES = subprocess.run([PROGRAMS / "fast-sim", "--workers", "2", "--rounds", "1"], capture_output=True).returncode == 0
needs_simgrid = unittest.skipUnless(SIMULATES, "fast-sim was built without SimGrid")
SUMMARY = {"rounds": 100, "epochs": 2}


def cell(*all_curves, exchange="ring", workers=4):
    return Cell("lenet", exchange, workers, [(SUMMARY, curve) for curve in all_curves])


def options(**changes):
    return types.SimpleNamespace(**{"exchanges": list(EXCHANGES), "ddp_workers": 16, **changes})


class FiguresTest(unittest.TestCase):
    def test_epochs_to_the_target_are_the_mean_of_seeds_that_all_reach_it(self):
        self.assertEqual(cell([0.8, 0.86], [0.85, 0.9]).epochs(), 1.5)
        self.assertIsNone(cell([0.8, 0.86], [0.8, 0.84]).epochs())

    def test_a_curve_is_the_mean_over_seeds(self):
        for found, expected in zip(cell([0.5, 0.8], [0.7, 0.9]).curve(), [60, 85]):
            self.assertAlmostEqual(found, expected)

    def test_seconds_are_epochs_times_rounds_times_seconds_of_a_round(self):
        rounds = types.SimpleNamespace(seconds=lambda _: 0.02)
        self.assertAlmostEqual(seconds.to_target(cell([0.8, 0.86]), rounds), 2 * 50 * 0.02)
        self.assertIsNone(seconds.to_target(cell([0.8, 0.84]), rounds))
        self.assertIsNone(seconds.to_target(cell([0.8, 0.86]), types.SimpleNamespace(seconds=lambda _: None)))

    @needs_simgrid
    def test_a_simulated_all_reduce_takes_two_times_n_minus_1_messages(self):
        rounds = seconds.Simulated(PROGRAMS / "fast-sim", 0.01, 1.25e8, 1e-4)
        message_s = 2 * 1e-4 + 4 * 61706 / 8 / 1.25e8
        for exchange in ("all-reduce", "ddp"):
            found = rounds.seconds(cell([0.9], exchange=exchange, workers=8))
            self.assertAlmostEqual(found, 0.01 + 14 * message_s, delta=0.05 * 14 * message_s)
        self.assertEqual(rounds.seconds(cell([0.9], exchange="alone", workers=1)), 0.01)

    def test_measured_rounds_are_those_of_the_same_workers_and_method(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, round_ms in (("n4.ring", 12), ("n8.ring", 13), ("n1.none", 10)):
                pathlib.Path(folder, f"{name}.json").write_text(json.dumps({"rows": [{"round_ms": round_ms}]}))
            rounds = seconds.Measured(folder)
            self.assertEqual([rounds.seconds(each) for each in (cell([0.9]), cell([0.9], exchange="alone", workers=1),
                                                                cell([0.9], exchange="torus"))], [0.012, 0.01, None])

    def test_an_exchange_that_is_another_one_on_few_workers_is_left_out(self):
        no_ddp = [name for name in EXCHANGES if name != "ddp"]
        found = {n: curves.exchanges_of(options(exchanges=no_ddp), n) for n in (1, 2, 4, 8)}
        self.assertEqual(found, {1: ["alone"], 2: ["ring", "all-reduce"], 4: ["ring", "one-peer", "all-reduce"],
                                 8: ["ring", "torus", "one-peer", "all-reduce"]})

    def test_the_table_has_a_row_an_exchange_and_a_column_a_number_of_workers(self):
        cells = [cell([0.9], [0.8]), cell([0.7], exchange="alone", workers=1)]
        self.assertEqual(report.table(cells, [1, 4], lambda each: report.spread(each.final())),
                         ["| exchange | 1 | 4 |", "|---|---|---|", "| one worker | 70.0 | – |",
                          "| `awc`, ring | – | 85.0 (80.0 – 90.0) |"])

    def test_the_rate_is_the_best_one_of_one_worker(self):
        class Known(curves.Runs):
            def run(self, name, exchange, workers, seed, rate, epochs):
                assert (exchange, workers, epochs) == ("alone", 1, 5)
                return SUMMARY, [0.9, {0.02: 0.5, 0.05: 0.7, 0.1: 0.6}[rate]]

        chosen = Known(types.SimpleNamespace(lr=[0.02, 0.05, 0.1], epochs=20, test_samples=0, colored=False), "lstm")
        self.assertEqual(chosen.rate, 0.05)

    def test_seconds_of_local_steps_count_all_rounds_of_an_epoch(self):
        comparison = object.__new__(local_steps.Comparison)
        comparison.task = types.SimpleNamespace(reaches=lambda value: value >= 85)
        comparison.rules = {"diloco": ("DiLoCo", ())}
        runs = [({"rounds": 100, "closing_rounds": 24, "epochs": 2}, [(1, 80), (2, 86)])]
        lines = comparison.seconds_table({"diloco": {"runs": runs}}, {"link": {"diloco": 200}})
        self.assertEqual(lines[-1], "| DiLoCo | 20 |")  # 2 epochs of 50 rounds of 0.2 s

    def test_times_are_over_the_first_run_only(self):
        with tempfile.TemporaryDirectory() as folder:
            def run(name, *accuracies):
                metrics = pathlib.Path(folder, name, "metrics")
                metrics.mkdir(parents=True)
                lines = [{"kind": "epoch", "seconds_training": 10 * (k + 1), "test_accuracy": accuracy, "test_samples": 5}
                         for k, accuracy in enumerate(accuracies)]
                (metrics / "0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
                return metrics.parent

            def ratios(*runs):
                done = subprocess.run([sys.executable, BENCH / "time_to.py", "80", *runs], capture_output=True, text=True,
                                      check=True)
                return [line.split()[2] for line in done.stdout.splitlines()[1:]]

            never, late, soon = run("never", 0.5, 0.7), run("late", 0.5, 0.8), run("soon", 0.9)
            self.assertEqual(ratios(never, late, soon), ["-", "-", "-"])
            self.assertEqual(ratios(late, never, soon), ["1.00", "-", "0.50"])

    def test_a_cut_file_has_the_first_samples_and_says_how_many(self):
        pixels = bytes(range(256)) * 13
        whole = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (4, 28, 28)) + pixels
        self.assertEqual(data.cut(whole, 3, 784), whole[:4] + (3).to_bytes(4, "big") + whole[8:16] + pixels[:3 * 784])
        labels = bytes([0, 0, 8, 1, 0, 0, 0, 4, 7, 8, 9, 1])
        self.assertEqual(data.cut(labels, 2, 1), bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 8]))


@unittest.skipUnless(HAS_TORCH, "apt-get install python3-torch")
class DdpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import ddp_epochs
        cls.ddp = ddp_epochs
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.data = data.with_tests(pathlib.Path(cls.folder.name, "data"), 500)

    def test_models_have_the_parameters_of_the_library(self):
        for name, model in self.ddp.MODELS.items():
            trained = sum(p.numel() for p in model().parameters() if p.requires_grad)
            self.assertEqual(trained, MODELS[name].parameters, name)

    def test_initial_weights_have_the_variance_of_the_library(self):
        import torch
        torch.manual_seed(3)
        lstm, lenet = (self.ddp.models.initialize(self.ddp.MODELS[name]()) for name in ("lstm", "lenet"))
        for weight, variance in ((lstm[1].layer.weight_ih_l0, 2 / 92), (lstm[1].layer.weight_hh_l0, 2 / 92),
                                 (lstm[2].weight, 1 / 64), (lenet[3].weight, 2 / 150), (lenet[7].weight, 2 / 400),
                                 (lenet[11].weight, 1 / 84)):
            self.assertAlmostEqual(weight.std().item() / math.sqrt(variance), 1, delta=0.1)
        for biases in (lstm[1].layer.bias_ih_l0, lstm[1].layer.bias_hh_l0, lenet[0].bias):
            self.assertEqual(biases.abs().sum().item(), 0)

    def test_the_rate_rises_for_an_epoch_and_then_falls_by_a_cosine(self):
        ten, two = types.SimpleNamespace(lr=0.1, epochs=10), types.SimpleNamespace(lr=0.1, epochs=2)
        for settings, done, expected in ((ten, 0.5, 0.05), (ten, 1, 0.1), (ten, 5.5, 0.05), (ten, 10, 0),
                                         (ten, 4, 0.075), (two, 0.25, 0.05), (two, 0.5, 0.1), (two, 2, 0)):
            self.assertAlmostEqual(self.ddp.rate_at(done, settings), expected)

    def run_ddp(self, ranks, batch, model, samples=640, folder=None):
        out = pathlib.Path(self.folder.name, f"{model}-{ranks}")
        program = [sys.executable, BENCH / "peers" / "ddp_epochs.py", "--model", model, "--data", folder or self.data, "--samples", samples]
        training = ["--ranks", ranks, "--batch-size", batch, "--epochs", 2, "--out", out, "--summary-json", out / "summary.json"]
        return out, subprocess.run([*map(str, program + training)], capture_output=True, text=True, timeout=120,
                                   stdin=subprocess.DEVNULL)

    def last_loss(self, ranks, batch, model):
        out, done = self.run_ddp(ranks, batch, model)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads((out / "summary.json").read_text()), {"rounds": 640 // ranks // batch * 2, "epochs": 2})
        last = [json.loads(file.read_text().splitlines()[-1]) for file in (out / "metrics").glob("*.jsonl")]
        self.assertEqual(sum(line["test_samples"] for line in last), 500)
        return sum(line["test_loss"] * line["test_samples"] for line in last) / 500

    def test_three_ranks_learn_as_one_rank_with_their_batches_joined(self):
        for model in ("lenet", "lstm"):
            with self.subTest(model):
                alone = self.last_loss(1, 48, model)
                self.assertLess(alone, 2.3)
                self.assertAlmostEqual(alone, self.last_loss(3, 16, model), delta=1e-3)

    def test_color_images_are_scaled_by_the_moments_of_the_training_set(self):
        import numpy
        made = data.colored(pathlib.Path(self.folder.name), 50, 20)
        (images, labels), (tests, test_labels) = self.ddp.sets(made, 40)
        self.assertEqual((tuple(images.shape), tuple(tests.shape)), ((40, 3, 32, 32), (20, 3, 32, 32)))
        file = numpy.fromfile(made / "data_batch_2.bin", numpy.uint8).reshape(10, 3073)
        self.assertEqual(labels[10:20].tolist(), file[:, 0].tolist())
        scales = []
        for channel in range(3):
            self.assertAlmostEqual(images[:, channel].mean().item(), 0, places=5)
            self.assertAlmostEqual(images[:, channel].std().item(), 1, places=5)
            pixels = file[:, 1 + 1024 * channel:][:, :1024].astype(float)
            found = images[10:20, channel].reshape(10, 1024).numpy()
            scale, offset = numpy.polyfit(pixels.ravel(), found.ravel(), 1)
            self.assertLess(numpy.abs(scale * pixels + offset - found).max(), 1e-4)
            scales.append((scale, offset))
        test_file = numpy.fromfile(made / "test_batch.bin", numpy.uint8).reshape(20, 3073)
        self.assertEqual(test_labels.tolist(), test_file[:, 0].tolist())
        expected = scales[2][0] * test_file[:, 2049:].astype(float) + scales[2][1]
        self.assertLess(numpy.abs(tests[:, 2].reshape(20, 1024).numpy() - expected).max(), 1e-4)

    def test_a_network_for_gray_images_refuses_color_by_one_line(self):
        made = data.colored(pathlib.Path(self.folder.name), 50, 20)
        out, done = self.run_ddp(1, 10, "lenet", 50, made)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("resnet20", done.stderr)

    def test_too_few_samples_are_refused_by_one_line(self):
        _, done = self.run_ddp(3, 300, "lenet")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("3 ranks need 900", done.stderr)


class StudyTest(unittest.TestCase):
    EXCHANGES = ["ring", "all-reduce"] + ["ddp"] * HAS_TORCH

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runs = pathlib.Path(folder.name)

    def study(self, *more, program=PROGRAMS / "fast-train"):
        command = [sys.executable, BENCH / "curves.py", "--program", program, "--samples", 640, "--test-samples", 500,
                   "--epochs", 2, "--workers", 1, 2, "--seeds", 2, "--one-seed", "ddp", "--exchanges", *self.EXCHANGES,
                   "--runs", self.runs]
        return subprocess.run([*map(str, command), *more], capture_output=True, text=True, timeout=150, stdin=subprocess.DEVNULL)

    def times(self):
        return {file: file.stat().st_mtime_ns for file in self.runs.glob("*/summary.json")}

    @needs_simgrid
    def test_a_small_study_has_all_rows_and_repeats_nothing(self):
        done = self.study("--models", "lenet", "lstm", "--lr", "0.02", "0.05")
        self.assertEqual(done.returncode, 0, done.stderr)
        for model in ("lenet", "lstm"):
            found = json.loads((self.runs / f"curves-{model}.json").read_text())
            self.assertIn(found["settings"]["lr"], (0.02, 0.05))
            seeds = {(row["exchange"], row["workers"]): len(row["accuracy"]) for row in found["cells"]}
            self.assertEqual(seeds, {("alone", 1): 2, **{(name, 2): 1 if name == "ddp" else 2 for name in self.EXCHANGES}})
            for row in found["cells"]:
                self.assertTrue(all(len(curve) == 2 and 0.15 < curve[-1] <= 1 for curve in row["accuracy"]), row)
            rows = (self.runs / f"curves-{model}.md").read_text().splitlines()
            self.assertEqual(sum(line.startswith("| `awc`, ring | – | ") for line in rows), 3)
            for name in (f"curves-{model}.svg", f"curves-{model}-workers.svg"):
                self.assertEqual((self.runs / name).exists(), HAS_MATPLOTLIB)
        first = self.times()
        again = self.study("--models", "lenet", "--lr", "0.02", "0.05")
        self.assertEqual((again.returncode, self.times()), (0, first), again.stderr)
        self.known_runs_are_shown()

    def known_runs_are_shown(self):
        before = self.times()
        (self.runs / "lenet-ring-2-1" / "summary.json").unlink()
        for seed in (1, 2):
            (self.runs / f"lenet-alone-1-{seed}" / "summary.json").unlink()
        done = self.study("--models", "lenet", "--lr", "0.02", "0.05", "--known")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((self.runs / "curves-lenet.json").read_text())["cells"]
        self.assertEqual({row["exchange"]: len(row["accuracy"]) for row in found},
                         {name: 2 if name == "all-reduce" else 1 for name in self.EXCHANGES})
        self.assertEqual(len(before) - 3, len(self.times()))
        none = self.study("--models", "lenet", "--lr", "0.07", "--known")
        self.assertEqual((none.returncode, none.stderr.count("\n")), (1, 1), none.stderr)

    def test_a_missing_program_gives_one_line(self):
        done = self.study("--models", "lenet", program=self.runs / "none")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("none", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
