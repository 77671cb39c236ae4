#!/usr/bin/env python3
"""bench_training on float targets, with a model of a file, adamw and --out.

  training_test.py BENCH_TRAINING FAST_TRAIN MPIEXEC

One worker must compute what fast-train does. Losses are those that NumPy finds by the saved model.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("skipped: apt-get install python3-numpy")
    sys.exit(77)

PROGRAM, TRAIN = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
MPIEXEC = sys.argv[3]
del sys.argv[1:4]
LAYERS = """name = "line"
input = [3]
layers = [{type = "dense"}]
"""
SAMPLES, TESTS, INPUTS, OUTPUTS = 128, 40, 3, 2


def write_line(path):
    """Targets that are a linear function of the inputs."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(SAMPLES + TESTS, INPUTS)).astype(np.float32)
    return write(path, x, (x @ rng.uniform(-1, 1, (INPUTS, OUTPUTS)) + 0.3).astype(np.float32))


def write_labels(path, largest):
    """0 or `largest`, by the sign of a linear function of the inputs."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(SAMPLES + TESTS, INPUTS)).astype(np.float32)
    return write(path, x, np.where(x @ rng.uniform(-1, 1, INPUTS) > 0, largest, 0).astype(np.int32))


def write(path, x, y):
    """The test part."""
    np.savez(path, x_train=x[:SAMPLES], y_train=y[:SAMPLES], x_test=x[SAMPLES:], y_test=y[SAMPLES:])
    return x[SAMPLES:], y[SAMPLES:]


def read(path):
    """Tensors and metadata of a safetensors file."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__")
    tensors = {name: np.frombuffer(data[begin:][slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
               for name, entry in header.items()}
    return tensors, metadata


def outputs(model, x):
    tensors, metadata = model
    mean, stddev = (np.array(metadata[f"fast.{key}"].split(","), float) for key in ("mean", "stddev"))
    return (x - mean) / stddev @ tensors["fc1.weight"].T + tensors["fc1.bias"]


def huber(difference):
    size = np.abs(difference)
    return np.where(size <= 1, size**2 / 2, size - 0.5)


class TrainingTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        (self.place / "line.toml").write_text(LAYERS)
        self.x, self.y = write_line(self.place / "line.npz")

    def run_program(self, name, command, workers, options):
        done = subprocess.run(
            [*command, "--data", self.place / "line.npz", "--model", self.place / "line.toml", "--optimizer", "adamw",
             "--weight-decay", "0.1", "--lr", "0.05", "--seed", "3", "--batch-size", str(32 // workers),
             "--out", self.place / name, *options],
            capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        return read(self.place / name / "mean-model.safetensors")

    def train(self, method, workers, *options):
        """The saved model, and the row."""
        rows = self.place / "rows.json"
        model = self.run_program(method, [MPIEXEC, "-n", str(workers), PROGRAM, "--method", method, "--json", rows], workers, options)
        return model, json.loads(rows.read_text())[0]

    def assert_same(self, model, other):
        self.assertEqual(model.keys(), other.keys())
        for name, values in model.items():
            np.testing.assert_allclose(values, other[name], atol=1e-5, err_msg=name)

    def test_one_worker_is_fast_train(self):
        for loss in ("mse", "huber"):
            options = ["--loss", loss, "--epochs", "5"]
            alone = self.run_program(f"fast-train-{loss}", [TRAIN, "--exchange", "local", "--workers", "1", "--quiet"], 1, options)
            (tensors, metadata), _ = self.train("none", 1, *options)
            self.assert_same(tensors, alone[0])
            self.assertEqual(metadata, alone[1])

    def test_rows_have_the_loss_of_the_saved_model(self):
        for loss, of in (("mse", np.square), ("huber", huber)):
            model, row = self.train("server", 2, "--loss", loss, "--epochs", "3")
            self.assertAlmostEqual(row["test_loss_mean_model"], np.mean(of(outputs(model, self.x) - self.y)), places=5)

    def test_labels_of_binary_cross_entropy_have_a_loss_in_the_row(self):
        x, y = write_labels(self.place / "line.npz", 1)
        model, row = self.train("none", 1, "--loss", "binary_cross_entropy", "--epochs", "3")
        logits = outputs(model, x)[:, 0]
        self.assertAlmostEqual(row["test_loss_mean_model"], np.mean(np.logaddexp(0, logits) - logits * y), places=5)
        self.assertNotIn("test_accuracy_mean_model", row)

    def test_labels_of_cross_entropy_may_be_above_those_of_automatic_classes(self):
        x, y = write_labels(self.place / "line.npz", 1000)
        model, row = self.train("none", 1, "--loss", "cross_entropy", "--epochs", "20")
        accuracy = np.mean(outputs(model, x).argmax(1) == y)
        self.assertAlmostEqual(row["test_accuracy_mean_model"], accuracy)
        self.assertGreater(accuracy, 0.5)

    def test_float_targets_are_learned_by_mse(self):
        model, row = self.train("none", 1, "--epochs", "1")
        self.assertEqual(model[1]["fast.loss"], "mse")
        self.assertNotIn("test_accuracy_mean_model", row)

    def test_a_server_that_waits_for_all_is_an_all_reduce(self):
        (served, _), _ = self.train("server", 2, "--epochs", "5")
        (reduced, _), _ = self.train("mpi_allreduce", 2, "--epochs", "5")
        self.assert_same(served, reduced)

    def test_both_servers_learn(self):
        for method in ("server", "server_async"):
            _, row = self.train(method, 2, "--epochs", "40")
            self.assertLess(row["test_loss_mean_model"], 0.1 * np.mean(np.square(self.y)), method)


if __name__ == "__main__":
    unittest.main()
