"""Models that are exported as ONNX find in raw samples what the run found, to the last sample.

    onnx_accuracy_test.py FAST_MODEL FAST_TRAIN

Needs NumPy, and onnxruntime or onnx; else 77. FAST_ONNX_PYTHON names a python that has them.
"""
import csv
import json
import os
import random
import subprocess
import sys
import tempfile

OTHER = os.environ.pop("FAST_ONNX_PYTHON", "")
if OTHER:
    os.execvp(OTHER, [OTHER, *sys.argv])
try:
    import numpy
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)
try:
    import onnxruntime

    def evaluate(path, inputs):
        """The outputs and the metadata."""
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return session.run(None, {"input": inputs})[0], dict(session.get_modelmeta().custom_metadata_map)
except ImportError:
    try:
        import onnx
        from onnx.reference import ReferenceEvaluator
    except ImportError:
        print("skipped: neither onnxruntime nor onnx is installed (pip install onnxruntime)")
        sys.exit(77)

    def evaluate(path, inputs):
        model = onnx.load(path)
        return ReferenceEvaluator(model).run(None, {"input": inputs})[0], {p.key: p.value for p in model.metadata_props}

MODEL, TRAIN = sys.argv[1:3]
SEED = int(os.environ.get("FAST_TEST_SEED", random.randrange(1 << 30)))
draw = numpy.random.default_rng(SEED)
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def trained(name, *options):
    """The exported file and the run's summary."""
    run = [TRAIN, "--exchange", "local", "--workers", "2", "--epochs", "2", "--batch-size", "16", "--quiet", "--out", name,
           "--summary-json", name + ".json", *options]
    subprocess.run(run, check=True, timeout=100, stdout=subprocess.DEVNULL)
    subprocess.run([MODEL, "export", name, "--to", name + ".onnx"], check=True, timeout=50, stdout=subprocess.DEVNULL)
    with open(name + ".json") as file:
        return name + ".onnx", json.load(file)


def table(path, rows, numbers):
    """Columns of very different sizes. Without the normalization, a model finds nothing in them."""
    x = draw.normal(size=(rows, 3)) * [1e-3, 1, 5e4] + [0, 7, 1e6]
    score = (x - [0, 7, 1e6]) / [1e-3, 1, 5e4] @ [1, -2, 1.5]
    with open(path, "w") as file:
        writer = csv.writer(file)
        writer.writerow(["small", "middle", "large", "target"])
        for values, target in zip(x, score):
            writer.writerow([*map(float, values), float(target) if numbers else "high" if target > 0 else "low"])
    return x.astype(numpy.float32), score


def test_classes():
    table("train.csv", 600, False)
    x, score = table("test.csv", 211, False)
    path, summary = trained("classes", "--data", "train.csv", "--test-data", "test.csv", "--target", "target",
                            "--model", "mlp:16", "--learning-rate", "0.1")
    logits, metadata = evaluate(path, x)
    correct = int((logits.argmax(1) == (score <= 0)).sum())  # names in their order: high, low
    check(abs(correct / len(x) - summary["test_accuracy_mean_model"]) < 1e-9, f"classes: {correct} of {len(x)}, the run: {summary['test_accuracy_mean_model']}")
    check(correct > 0.8 * len(x), f"classes: the model has learned nothing: {correct}")
    check(json.loads(metadata["fast.class_names"]) == ["high", "low"], f"classes: {metadata}")
    check(json.loads(metadata["fast.features"]) == ["small", "middle", "large"], f"classes: {metadata}")


def test_numbers():
    table("train.csv", 600, True)
    x, score = table("test.csv", 211, True)
    path, summary = trained("numbers", "--data", "train.csv", "--test-data", "test.csv", "--target", "target",
                            "--model", "mlp:16", "--loss", "mse", "--learning-rate", "0.01")
    found = evaluate(path, x)[0].ravel()
    error = float(numpy.abs(found - score).mean())
    check(abs(error - summary["test_mae_mean_model"]) < 1e-4 * error, f"numbers: mean error {error}, the run: {summary['test_mae_mean_model']}")


def test_times():
    """Seconds since 1970 within a minute, of which 32-bit floats make one value: the file takes 64 bits."""
    for part, rows in (("train", 600), ("test", 211)):
        times = 1.7e9 + numpy.round(draw.uniform(0, 60, rows), 3)
        other = draw.normal(size=rows)
        late = times > 1.7e9 + 30
        with open(f"times-{part}.csv", "w") as file:
            file.write("time,other,late\n")
            file.writelines(f"{time:.3f},{float(x)},{bool(y)}\n" for time, x, y in zip(times, other, late))
    path, summary = trained("times", "--data", "times-train.csv", "--test-data", "times-test.csv", "--target", "late",
                            "--model", "mlp:16", "--learning-rate", "0.1")
    logits, metadata = evaluate(path, numpy.stack([numpy.array([float(f"{time:.3f}") for time in times]), other], 1))
    correct = int((logits.argmax(1) == late).sum())
    check(abs(correct / len(late) - summary["test_accuracy_mean_model"]) < 1e-9, f"times: {correct} of {len(late)}, the run: {summary['test_accuracy_mean_model']}")
    check(correct > 0.93 * len(late), f"times: the model has learned nothing: {correct}")
    check(metadata["fast.origins"].startswith("17000000"), f"times: {metadata}")


def test_images():
    """Pixels divided by 255, of an array and of bytes with several channels."""
    for name, shape, model in (("gray", (1, 28, 28), "lenet"), ("colors", (3, 32, 32), "resnet20")):
        means = draw.uniform(40, 200, (3, shape[0], 1, 1))

        def images(count):
            labels = draw.integers(0, 3, count)
            pixels = means[labels] + draw.normal(size=(count, *shape)) * 20
            return pixels.clip(0, 255).astype(numpy.uint8), labels

        folder = name + "-data"
        os.mkdir(folder)
        for part, count in (("train", 120), ("test", 57)):
            x, y = images(count)
            numpy.save(f"{folder}/x_{part}.npy", x)
            numpy.save(f"{folder}/y_{part}.npy", y)
        path, summary = trained(name, "--data", folder, "--model", model, "--learning-rate", "0.02")
        logits, _ = evaluate(path, x.astype(numpy.float32) / 255)
        correct = int((logits.argmax(1) == y).sum())
        check(abs(correct / len(x) - summary["test_accuracy_mean_model"]) < 1e-9, f"{name}: {correct} of {len(x)}, the run: {summary['test_accuracy_mean_model']}")


print("seed", SEED)
with tempfile.TemporaryDirectory() as directory:
    MODEL, TRAIN = os.path.abspath(MODEL), os.path.abspath(TRAIN)
    os.chdir(directory)
    test_classes()
    test_numbers()
    test_times()
    test_images()
    os.chdir("/")
print(len(failures), "failures")
sys.exit(1 if failures else 0)
