"""fast-model evaluate and predict against NumPy, the run's own summary, fast-serve and ONNX Runtime.

    evaluate_test.py FAST_MODEL FAST_TRAIN FAST_SERVE

Needs NumPy; else 77. Without ONNX Runtime, the comparison with it is left out. FAST_ONNX_PYTHON names a python that has it.
"""
import csv
import gzip
import json
import os
import pathlib
import random
import re
import select
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

OTHER = os.environ.pop("FAST_ONNX_PYTHON", "")
if OTHER:
    os.execvp(OTHER, [OTHER, *sys.argv])
try:
    import numpy
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "docs"))
import make_data  # noqa: E402

MODEL, TRAIN, SERVE = (str(pathlib.Path(argument).resolve()) for argument in sys.argv[1:4])
SEED = int(os.environ.get("FAST_TEST_SEED", random.SystemRandom().randrange(1 << 30)))  # make_data has seeded the other
draw = numpy.random.default_rng(SEED)
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def close(found, wanted, what, tolerance=1e-6):
    wanted = numpy.asarray(wanted, dtype=float)
    found = numpy.asarray(found, dtype=float)
    good = found.shape == wanted.shape and bool(numpy.all(numpy.abs(found - wanted) <= tolerance * (1 + numpy.abs(wanted))))
    check(good, f"{what}: {found} in place of {wanted}")


def said(*words):
    done = subprocess.run([MODEL, *words], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"{words}: status {done.returncode}: {done.stderr}")
    return done.stdout


def refused(status, text, *words, program=MODEL):
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60)
    good = done.returncode == status and done.stderr.count("\n") == 1 and text in done.stderr and not done.stdout
    check(good, f"{words}: status {done.returncode}: {done.stderr}{done.stdout}")


def trained(out, *options):
    """The summary of a run."""
    subprocess.run([TRAIN, "--exchange", "local", "--workers", "2", "--epochs", "3", "--batch-size", "16", "--quiet", "--out", out,
                    "--summary-json", out + ".json", *options], check=True, timeout=100, stdout=subprocess.DEVNULL)
    return json.loads(pathlib.Path(out + ".json").read_text())


def evaluated(run, *options):
    table = said("evaluate", run, *options, "--json", "found.json")
    found = json.loads(pathlib.Path("found.json").read_text())
    check(json.loads(said("evaluate", run, *options, "--json", "-")) == found, f"{run}: JSON to standard output")
    return found, table


def predicted(run, *options):
    """The columns by their names."""
    said("predict", run, *options, "--to", "answers.csv")
    with open("answers.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    check(said("predict", run, *options) == pathlib.Path("answers.csv").read_text(), f"{run}: rows to standard output")
    return {name: [row[name] for row in rows] for name in rows[0]}


def tensors_of(path):
    data = pathlib.Path(path).read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    note = header.pop("__metadata__")
    return note, {name: numpy.frombuffer(data[end + each["data_offsets"][0]:end + each["data_offsets"][1]], "<f4").reshape(each["shape"])
                  for name, each in header.items()}


def perceptron(path, x):
    """The outputs of a model with one hidden layer, computed in 64 bits."""
    note, tensors = tensors_of(path)
    mean, deviation = (numpy.array(list(map(float, note["fast." + key].split(",")))) for key in ("mean", "stddev"))
    x = (x - mean) / deviation
    hidden = numpy.maximum(x @ tensors["fc1.weight"].astype(float).T + tensors["fc1.bias"], 0)
    return hidden @ tensors["fc2.weight"].astype(float).T + tensors["fc2.bias"]


def softmax(logits):
    powers = numpy.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def check_classes(found, labels, guesses, probabilities, names, what):
    """Against NumPy, by the definitions."""
    count = len(names)
    confusion = numpy.zeros((count, count), int)
    numpy.add.at(confusion, (labels, guesses), 1)
    check(found["confusion"] == confusion.tolist(), f"{what}: confusion {found['confusion']}, NumPy {confusion.tolist()}")
    close(found["accuracy"], (labels == guesses).mean(), f"{what}: accuracy")
    close(found["loss"], -numpy.log(probabilities[numpy.arange(len(labels)), labels]).mean(), f"{what}: loss", 1e-5)
    own = {"precision": [], "recall": [], "f1": []}
    for c, row in enumerate(found["classes"]):
        hits, true, taken = confusion[c, c], confusion[c].sum(), confusion[:, c].sum()
        check((row["class"], row["label"], row["samples"], row["predicted"]) == (c, names[c], true, taken), f"{what}: {row}")
        if true + taken == 0:
            check(row["precision"] is None and row["recall"] is None and row["f1"] is None, f"{what}: an empty class {row}")
            continue
        precision, recall = (hits / taken if taken else 0), (hits / true if true else 0)
        f1 = 2 * precision * recall / (precision + recall) if hits else 0
        for name, value in (("precision", precision), ("recall", recall), ("f1", f1)):
            own[name].append(value)
            close(row[name], value, f"{what}: {name} of {names[c]}")
    for name, values in own.items():
        close(found["macro_" + name], numpy.mean(values), f"{what}: macro {name}")


KINDS = ["blue, pale", "green", "red"]  # in the order of their bytes


def write_kinds(path, rows, with_kind=True):
    """Three classes of different size that overlap. The columns are in another order without the class."""
    labels = draw.choice(3, rows, p=[0.6, 0.3, 0.1])
    x = draw.normal(size=(rows, 2)) * [2, 300] + labels[:, None] * [3, -200] + [0, 5000]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["length", "kind", "weight"] if with_kind else ["weight", "length"])
        for (length, weight), label in zip(x.tolist(), labels):
            writer.writerow([length, KINDS[label], weight] if with_kind else [weight, length])
    return x, labels


def test_table():
    write_kinds("train.csv", 400)
    x, labels = write_kinds("test.csv", 211)
    summary = trained("kinds", "--data", "train.csv", "--test-data", "test.csv", "--target", "kind", "--model", "mlp:8",
                      "--learning-rate", "0.05")
    probabilities = softmax(perceptron("kinds/mean-model.safetensors", x.astype(numpy.float32)))
    found, table = evaluated("kinds", "--data", "test.csv")
    check_classes(found, labels, probabilities.argmax(1), probabilities, KINDS, "kinds")
    close(found["accuracy"], summary["test_accuracy_mean_model"], "kinds: the accuracy of the run")
    check(found["task"] == "classification" and found["samples"] == 211, f"kinds: {found}")
    check("classification, 3 classes: blue, pale, green, red" in table and "Confusion matrix" in table, table)
    check(found["accuracy"] > 0.5, f"kinds: the model has learned nothing: {found['accuracy']}")
    # Some of the classes, in another order: labels are known by their names.
    some = labels != 0
    with open("some.csv", "w") as file:
        file.write("weight,length,kind\n")
        file.writelines(f"{weight},{length},{KINDS[label]}\n" for (length, weight), label in zip(x[some].tolist(), labels[some]))
    found, _ = evaluated("kinds", "--data", "some.csv")
    check_classes(found, labels[some], probabilities[some].argmax(1), probabilities[some], KINDS, "some kinds")
    test_predictions(x)


def test_predictions(x):
    """Of a file without the class and with its columns in another order."""
    x, _ = write_kinds("new.csv", 57, with_kind=False)
    answers = predicted("kinds", "--data", "new.csv")
    check(list(answers) == ["sample", "label", *("probability_" + kind for kind in KINDS)], f"columns: {list(answers)}")
    check(answers["sample"] == [str(i) for i in range(57)], "the numbers of samples")
    logits = perceptron("kinds/mean-model.safetensors", x.astype(numpy.float32))
    check(answers["label"] == [KINDS[best] for best in logits.argmax(1)], "the labels")
    found = numpy.array([answers["probability_" + kind] for kind in KINDS], dtype=float).T
    close(found, softmax(logits), "the probabilities", 1e-5)
    instances = x.astype(numpy.float32).tolist()
    server = subprocess.Popen([SERVE, "m=kinds", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = next(int(match[1]) for line in server.stdout if (match := re.match(r"listening on http://127\.0\.0\.1:(\d+)$", line)))
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/models/m:predict", json.dumps({"instances": instances}).encode(),
                                         {"Content-Type": "application/json"})
        served = json.loads(urllib.request.urlopen(request, timeout=50).read())["predictions"]
        described = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models/m", timeout=50).read())
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    check([each["label"] for each in served] == answers["label"], "labels of fast-serve")
    check([KINDS[each["class"]] for each in served] == answers["label"], "numbers of fast-serve's labels")
    check(described["class_names"] == KINDS and described["features"] == ["length", "weight"] and described["target"] == "kind", f"{described}")
    probabilities = numpy.array([each["probabilities"] for each in served])
    check(bool((probabilities.astype(numpy.float32) == found.astype(numpy.float32)).all()), "fast-serve answers the same bits, in one pass")
    try:
        import onnxruntime
    except ImportError:
        print("left out: onnxruntime is not installed (pip install onnxruntime)")
        return
    said("export", "kinds", "--to", "kinds.onnx")
    session = onnxruntime.InferenceSession("kinds.onnx", providers=["CPUExecutionProvider"])
    close(softmax(session.run(None, {"input": x.astype(numpy.float32)})[0].astype(float)), found, "ONNX Runtime", 1e-5)


def test_numbers():
    for part, rows in (("numbers-train.csv", 300), ("numbers-test.csv", 101)):
        x = draw.normal(size=(rows, 3))
        y = x @ [1, -2, 0.5] + draw.normal(size=rows) * 0.3 + 4
        with open(part, "w") as file:
            file.write("a,b,c,price\n")
            file.writelines(",".join(map(str, [*row, target])) + "\n" for row, target in zip(x.tolist(), y.tolist()))
    summary = trained("numbers", "--data", "numbers-train.csv", "--test-data", "numbers-test.csv", "--target", "price", "--model", "mlp:8",
                      "--loss", "huber", "--huber-delta", "0.25", "--learning-rate", "0.02")
    outputs = perceptron("numbers/mean-model.safetensors", x.astype(numpy.float32)).ravel()
    found, table = evaluated("numbers", "--data", "numbers-test.csv")
    error = outputs - y.astype(numpy.float32)
    size = numpy.abs(error)
    close(found["mae"], size.mean(), "numbers: MAE", 1e-5)
    close(found["rmse"], numpy.sqrt((error**2).mean()), "numbers: RMSE", 1e-5)
    close(found["r2"], 1 - (error**2).sum() / ((y - y.mean())**2).sum(), "numbers: R²", 1e-5)
    close(found["loss"], numpy.where(size <= 0.25, error**2 / 2, 0.25 * (size - 0.125)).mean(), "numbers: the loss huber", 1e-5)
    close(found["mae"], summary["test_mae_mean_model"], "numbers: the run's MAE", 1e-5)
    check("regression, price" in table and "R²" in table, table)
    answers = predicted("numbers", "--data", "numbers-test.csv")
    check(list(answers) == ["sample", "price"], f"numbers: columns {list(answers)}")
    close([float(value) for value in answers["price"]], outputs, "numbers: the values", 1e-5)
    shared, _ = evaluated("numbers", "--data", "numbers-test.csv", "--test-share", "0.2")
    rest, _ = evaluated("numbers", "--data", "numbers-test.csv", "--test-share", "0.2", "--part", "train")
    check(shared["samples"] + rest["samples"] == 101 and shared["samples"] == 20, "numbers: the parts of a share")
    both = (shared["mae"] * shared["samples"] + rest["mae"] * rest["samples"]) / 101
    close(both, found["mae"], "numbers: both parts are the whole")


def test_scaled():
    """Targets far from 0: figures and answers have their units, whoever computes them."""
    x = draw.normal(size=(300, 3))
    y = 1e4 * (x @ [1, -2, 0.5] + draw.normal(size=300) * 0.3) + 5e5
    with open("scaled.csv", "w") as file:
        file.write("a,b,c,price\n")
        file.writelines(",".join(map(str, [*row, target])) + "\n" for row, target in zip(x.tolist(), y.tolist()))
    options = ["--data", "scaled.csv", "--test-data", "scaled.csv", "--target", "price", "--model", "mlp:8", "--epochs", "20"]
    summary = trained("scaled", *options, "--scale-targets", "--loss", "huber", "--huber-delta", "0.5", "--checkpoint-every", "20")
    note, _ = tensors_of("scaled/mean-model.safetensors")
    mean, deviation = float(note["fast.target_mean"]), float(note["fast.target_stddev"])
    close([mean, deviation], [y.mean(), y.std()], "scaled: the moments", 1e-6)
    outputs = perceptron("scaled/mean-model.safetensors", x.astype(numpy.float32)).ravel() * deviation + mean
    found, _ = evaluated("scaled", "--data", "scaled.csv")
    error = outputs - y.astype(numpy.float32)
    close(found["mae"], numpy.abs(error).mean(), "scaled: MAE", 1e-5)
    close(found["mae"], summary["test_mae_mean_model"], "scaled: the run's MAE", 1e-5)
    close(found["rmse"], summary["test_rmse_mean_model"], "scaled: the run's RMSE", 1e-5)
    close(found["rmse"], numpy.sqrt((error**2).mean()), "scaled: RMSE", 1e-5)
    size = numpy.abs(error) / deviation
    close(found["loss"], numpy.where(size <= 0.5, size**2 / 2, 0.5 * (size - 0.25)).mean(), "scaled: the loss is that of training", 1e-4)
    check(found["rmse"] < 0.3 * y.std(), f"scaled: learned {found['rmse']} of {y.std()}")
    answers = predicted("scaled", "--data", "scaled.csv")
    close([float(value) for value in answers["price"]], outputs, "scaled: the values", 1e-6)
    values = [each["values"][0] for each in served("scaled", x[:20].astype(numpy.float32).tolist())]
    close(values, outputs[:20], "scaled: the values of fast-serve", 1e-6)
    again = [TRAIN, "--exchange", "local", "--workers", "2", "--quiet", "--batch-size", "16", "--resume", "scaled/checkpoints", *options, "--loss", "huber"]
    done = subprocess.run([*again, "--huber-delta", "0.5"], capture_output=True, text=True, timeout=60)
    check(done.returncode == 2 and "were scaled; add --scale-targets" in done.stderr, f"scaled: resumed without the option: {done.stderr}")
    try:
        import onnxruntime
    except ImportError:
        print("left out: onnxruntime is not installed (pip install onnxruntime)")
        return
    said("export", "scaled", "--to", "scaled.onnx")
    session = onnxruntime.InferenceSession("scaled.onnx", providers=["CPUExecutionProvider"])
    close(session.run(None, {"input": x.astype(numpy.float32)})[0].ravel(), outputs, "scaled: ONNX Runtime", 1e-6)


def test_class_weights():
    """A rare class is found more often. Evaluations have the plain loss."""
    x = draw.normal(size=(600, 2))
    rare = x[:, 0] + draw.normal(size=600) > 1.9
    with open("rare.csv", "w") as file:
        file.write("a,b,kind\n")
        file.writelines(f"{a},{b},{'rare' if one else 'usual'}\n" for (a, b), one in zip(x.tolist(), rare))
    options = ["--data", "rare.csv", "--test-data", "rare.csv", "--target", "kind", "--model", "mlp:8", "--epochs", "6"]
    recall = {}
    counts = [int(rare.sum()), int(600 - rare.sum())]
    numbers = ",".join(str(600 / 2 / count) for count in counts)
    for name, more in (("plain", []), ("balanced", ["--class-weights", "balanced"]), ("numbers", ["--class-weights", numbers]),
                       ("smooth", ["--label-smoothing", "0.2"])):
        name = "rare-" + name
        trained(name, *options, *more)
        found, _ = evaluated(name, "--data", "rare.csv")
        recall[name] = found["classes"][0]["recall"]
        logits = perceptron(f"{name}/mean-model.safetensors", x.astype(numpy.float32))
        check_classes(found, (~rare).astype(int), logits.argmax(1), softmax(logits), ["rare", "usual"], name)
    check(recall["rare-plain"] + 0.2 < recall["rare-balanced"] == recall["rare-numbers"], f"recalls of the rare class: {recall}")
    for words, more in (("one a class", ["--class-weights", "1,2,3"]), ("balanced, or numbers", ["--class-weights", "1,-2"]),
                        ("all are 0", ["--class-weights", "0,0"]), ("option of --loss cross_entropy", ["--label-smoothing", "0.1", "--loss", "mse"]),
                        ("leave --scale-targets out", ["--scale-targets"])):
        refused(2, words, "--exchange", "local", "--workers", "2", "--quiet", *options, *more, program=TRAIN)


def test_binary():
    """One output for two classes with names."""
    x = draw.normal(size=(200, 2))
    with open("binary.csv", "w") as file:
        file.write("a,b,answer\n")
        file.writelines(f"{a},{b},{'yes' if a + b > 0.2 else 'no'}\n" for a, b in x.tolist())
    trained("binary", "--data", "binary.csv", "--target", "answer", "--loss", "binary_cross_entropy", "--model", "mlp:4")
    logits = perceptron("binary/mean-model.safetensors", x.astype(numpy.float32)).ravel()
    ones = 1 / (1 + numpy.exp(-logits))
    labels = (x.sum(1) > 0.2).astype(int)
    found, _ = evaluated("binary", "--data", "binary.csv", "--target", "answer")
    check_classes(found, labels, (logits > 0).astype(int), numpy.stack([1 - ones, ones], 1), ["no", "yes"], "binary")
    answers = predicted("binary", "--data", "binary.csv")
    check(list(answers) == ["sample", "label", "probability"], f"binary: columns {list(answers)}")
    check(answers["label"] == [["no", "yes"][int(each)] for each in logits > 0], "binary: labels")
    close([float(each) for each in answers["probability"]], ones, "binary: probabilities", 1e-5)


def served(run, instances):
    """The predictions of fast-serve, or the error that it answers."""
    server = subprocess.Popen([SERVE, f"m={run}", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = next(int(match[1]) for line in server.stdout if (match := re.match(r"listening on http://127\.0\.0\.1:(\d+)$", line)))
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/models/m:predict", json.dumps({"instances": instances}).encode(),
                                         {"Content-Type": "application/json"})
        return json.loads(urllib.request.urlopen(request, timeout=50).read())["predictions"]
    except urllib.error.HTTPError as error:
        return json.loads(error.read())["error"]
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def test_messy_table():
    """Categories, truths and missing values, with semicolons, decimal commas and gzip: training, predictions and requests alike."""
    colors, ages = ["blue", "green", "red; dark"], draw.normal(40, 10, 240).round(1)
    color, member = draw.integers(0, 3, 240), draw.integers(0, 2, 240)
    lacks_age, lacks_color = draw.random(240) < 0.2, draw.random(240) < 0.1
    label = (color == 1) | (member == 1)

    def cells(i):
        return ["" if lacks_age[i] else str(ages[i]).replace(".", ","), "NA" if lacks_color[i] else f'"{colors[color[i]]}"', ["no", "Yes"][member[i]]]

    with gzip.open("messy.csv.gz", "wt", encoding="utf-8-sig", newline="") as file:
        file.write("age;color;member;label\r\n")
        file.writelines(";".join([*cells(i), "1" if label[i] else "-1"]) + "\r\n" for i in range(240))
    trained("messy", "--data", "messy.csv.gz", "--target", "label", "--model", "mlp:8", "--learning-rate", "0.05", "--stratify", "--epochs", "10")
    path = "messy/mean-model.safetensors"
    note = tensors_of(path)[0]
    names = ["age", "age is missing", *("color=" + name for name in colors), "color is missing", "member"]
    check(json.loads(note["fast.features"]) == names, f"messy: features {note['fast.features']}")
    check("color=red; dark" in said("info", "messy"), "messy: fast-model info")
    mean = float(note["fast.mean"].split(",")[0])

    def encoded(i):
        of_color = [float(color[i] == c and not lacks_color[i]) for c in range(3)]
        return [mean if lacks_age[i] else ages[i], float(lacks_age[i]), *of_color, float(lacks_color[i]), float(member[i])]

    x = numpy.array([encoded(i) for i in range(240)], dtype=numpy.float32)
    probabilities = softmax(perceptron(path, x))
    found, _ = evaluated("messy", "--data", "messy.csv.gz")
    check_classes(found, label.astype(int), probabilities.argmax(1), probabilities, ["-1", "1"], "messy")
    check(found["accuracy"] > 0.75, f"messy: the model has learned nothing: {found['accuracy']}")
    # New rows, as another program writes them, with a color that training had not.
    with open("messy-new.csv", "w") as file:
        file.write("id,color,member,age\n" + "".join(
            f"{i},{'' if lacks_color[i] else colors[color[i]]},{bool(member[i])},{'' if lacks_age[i] else ages[i]}\n" for i in range(20)))
        file.write("20,violet,true,50\n")
    x = numpy.vstack([x[:20], [50, 0, 0, 0, 0, 0, 1]]).astype(numpy.float32)
    answers = predicted("messy", "--data", "messy-new.csv")
    close([float(each) for each in answers["probability_1"]], softmax(perceptron(path, x))[:, 1], "messy: new rows", 1e-5)
    rows = [{"id": i, "color": None if lacks_color[i] else colors[color[i]], "member": bool(member[i]), "age": None if lacks_age[i] else ages[i]}
            for i in range(20)] + [{"color": "violet", "member": "yes", "age": "50"}]
    for instances in (rows, x.tolist()):
        close([each["probabilities"][1] for each in served("messy", instances)], [float(each) for each in answers["probability_1"]],
              "messy: requests", 1e-5)
    check(served("messy", [{"color": "red"}]) == 'instance 0 has no member "age"; send null if its value is missing', "messy: a request without age")
    check('"age" is "old"' in served("messy", [{**rows[0], "age": "old"}]), "messy: a request with an age that is no number")
    with open("messy-bad.csv", "w") as file:
        file.write("color,member,age\nblue,no,old\n")
    refused(1, 'messy-bad.csv:2: column 3 (age): "old" is not a number', "predict", "messy", "--data", "messy-bad.csv")
    test_other_categories()


def test_other_categories():
    """A run goes on with the table that it began with, not with one of other categories."""
    rows = [(["red", "blue"][i % 2], i % 7 % 2) for i in range(64)]
    for name, first in (("colors.csv", "red"), ("others.csv", "pink")):
        pathlib.Path(name).write_text("color,y\n" + "".join(f"{first if color == 'red' else color},{y}\n" for color, y in rows))
    options = ["--target", "y", "--model", "mlp:4", "--checkpoint-every", "1"]
    trained("colors", "--data", "colors.csv", *options)
    trained("colors-on", "--data", "colors.csv", *options, "--epochs", "5", "--resume", "colors/checkpoints")
    done = subprocess.run([TRAIN, "--exchange", "local", "--workers", "2", "--batch-size", "16", "--quiet", "--out", "others", "--data", "others.csv",
                           "--epochs", "5", *options, "--resume", "colors/checkpoints"], capture_output=True, text=True, timeout=100)
    check(done.returncode == 1 and 'feature 2 of the data is "color=pink", that of' in done.stderr
          and 'is "color=red"; resume with the table of the run' in done.stderr, f"other categories: {done.returncode} {done.stderr}")


def test_digits():
    """Data with two parts. A model without names of classes has their numbers as labels."""
    summary = trained("numerals", "--data", "digits")
    found, _ = evaluated("numerals", "--data", "digits")
    check(found["samples"] == 360 and [row["label"] for row in found["classes"]] == list("0123456789"), f"digits: {found['samples']}")
    close(found["accuracy"], summary["test_accuracy_mean_model"], "digits: the accuracy of the run")
    train, _ = evaluated("numerals", "--data", "digits", "--part", "train")
    check(train["samples"] == 1437, "digits: the training part")
    answers = predicted("numerals", "--data", "digits")
    check(len(answers["label"]) == 360 and set(answers["label"]) <= set("0123456789"), "digits: answers")
    for words in (("evaluate", "--json", "-"), ("predict", "--to", "-")):  # in passes of 256 samples
        command = [MODEL, words[0], "numerals", "--data", "digits", "--part", "train", *words[1:]]
        core = min(os.sched_getaffinity(0))
        one, all_cores = (subprocess.run(command, check=True, capture_output=True, timeout=60, preexec_fn=prepare).stdout
                          for prepare in (lambda: os.sched_setaffinity(0, {core}), None))
        check(one == all_cores and len(one) > 1000, f"digits: {words[0]} says something else on one core")
    for threads in {1, min(3, len(os.sched_getaffinity(0)))}:
        command = [MODEL, "predict", "numerals", "--data", "digits", "--part", "train", "--threads", str(threads)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as waiting:  # more answers than its pipe has room for
            deadline, most = time.monotonic() + 60, 0
            tasks = pathlib.Path(f"/proc/{waiting.pid}/task")
            readable = select.select([waiting.stdout], [], [], 60)[0]
            while readable and most < threads and time.monotonic() < deadline:
                most = max(most, len(list(tasks.iterdir())))
            check(most == threads, f"digits: {most} threads with --threads {threads}")
            check(waiting.stdout.read() == all_cores, f"digits: other answers with --threads {threads}")


def test_named_images():
    """IDX files beside a list of names, which go with the model."""
    folder = pathlib.Path("shirts")
    folder.mkdir()
    for part, count in (("train", 64), ("t10k", 300)):
        labels = numpy.arange(count, dtype=numpy.uint8) % 3
        images = numpy.repeat(labels * 100, 16).astype(numpy.uint8)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(numpy.array([2051, count, 4, 4], ">i4").tobytes() + images.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(numpy.array([2049, count], ">i4").tobytes() + labels.tobytes())
    names = ["T-shirt/top", "Ankle boot", "a, b"]
    (folder / "classes.txt").write_text("\n".join(names) + "\n")
    refused(1, "classes.txt has 3 names, 3 of them different, for 10 classes", "--exchange", "local", "--data", "shirts", program=TRAIN)
    trained("clothes", "--data", "shirts", "--classes", "3", "--model", "mlp:4")
    found, _ = evaluated("clothes", "--data", "shirts")
    check([row["label"] for row in found["classes"]] == names, f"clothes: {found['classes']}")
    answers = predicted("clothes", "--data", "shirts")
    check(list(answers)[2:] == ["probability_" + name for name in names] and set(answers["label"]) <= set(names), f"clothes: {list(answers)}")
    check("3 classes: T-shirt/top, Ankle boot, a, b" in said("info", "clothes"), "clothes: info")
    said("export", "clothes", "--to", "clothes.onnx")
    check(json.dumps(names, separators=(",", ":")).encode() in pathlib.Path("clothes.onnx").read_bytes(), "clothes: ONNX")
    (folder / "classes.txt").write_text("a\nb\nc\n")
    (folder / "classes.txt").write_text("a\nb\n")
    refused(2, "its classes are a, b, those of the model", "evaluate", "clothes", "--data", "shirts")
    (folder / "classes.txt").write_text("a\nb\nc\n")
    refused(2, "its classes are a, b, c, those of the model of clothes/mean-model.safetensors are T-shirt/top", "evaluate", "clothes", "--data", "shirts")


def test_images():
    """Folders of classes, and a folder of photos without any, of which one is damaged."""
    folder = pathlib.Path("images")
    for part, count in (("train", 20), ("test", 12)):
        for index in range(count):
            name = ["cat", "dog"][index % 2]
            (folder / part / name).mkdir(parents=True, exist_ok=True)
            value = int(draw.integers(0, 90)) + 160 * (index % 2)
            (folder / part / name / f"{index:03}.png").write_bytes(make_data.png(bytes([value]) * (3 * 32 * 32), 32))
    summary = trained("pets", "--data", "images", "--model", "mlp:4", "--batch-size", "4", "--epochs", "6")
    for data in ("images", "images/test"):
        found, _ = evaluated("pets", "--data", data)
        check([row["label"] for row in found["classes"]] == ["cat", "dog"] and found["samples"] == 12, f"pets: {found}")
        close(found["accuracy"], summary["test_accuracy_mean_model"], f"pets: {data}")
    photos = pathlib.Path("photos")
    photos.mkdir()
    for path in sorted(folder.glob("test/*/*.png")):
        (photos / f"{path.stem}.png").write_bytes(path.read_bytes())
    (photos / "bad.png").write_bytes((photos / "000.png").read_bytes()[:60])
    answers = predicted("pets", "--data", "photos")
    check(answers["file"] == [f"photos/{index:03}.png" for index in range(12)], f"pets: files {answers['file']}")
    right = sum(label == ["cat", "dog"][index % 2] for index, label in enumerate(answers["label"]))
    check(abs(right / 12 - found["accuracy"]) < 1e-9, "pets: the labels of photos")
    refused(2, "its samples are 3x32x32, the model of numerals/mean-model.safetensors takes 1x8x8\n", "predict", "numerals", "--data", "photos")
    pathlib.Path("small").mkdir()
    for name, value in (("cat", 20), ("dog", 230)):
        (pathlib.Path("small") / f"{name}.png").write_bytes(make_data.png(bytes([value]) * (3 * 16 * 16), 16))
    refused(2, "takes 3x32x32; --resize model brings images to that size", "predict", "pets", "--data", "small")
    check(predicted("pets", "--data", "small", "--resize", "model")["file"] == ["small/cat.png", "small/dog.png"], "pets: other sizes")


def test_mistakes():
    refused(1, "nowhere: there is no such file or directory; give the directory of a run", "evaluate", "nowhere", "--data", "digits")
    refused(1, "no checkpoint in small: it has no round-.../manifest.json (small has no mean-model.safetensors either)", "evaluate", "small", "--data", "digits")
    refused(2, "the rows of a table are vectors, the model of numerals/mean-model.safetensors takes samples of 1x8x8", "predict", "numerals", "--data", "new.csv")
    refused(2, '"small/cat.png" is one image; give the folder', "predict", "pets", "--data", "small/cat.png")
    refused(2, "in one piece", "evaluate", "kinds", "--data", "train.csv", "--part", "train")
    refused(2, "--data", "evaluate", "kinds")
    refused(2, "neither a data set nor a directory", "evaluate", "kinds", "--data", "nowhere.dat")
    refused(2, "its samples are 1x8x8, the model of kinds/mean-model.safetensors takes 2 (length, weight)", "predict", "kinds", "--data", "digits")
    refused(2, 'there is no column "length"', "predict", "kinds", "--data", "numbers-test.csv")
    refused(2, 'there is no column "kind"', "evaluate", "kinds", "--data", "new.csv")
    with open("unknown.csv", "w") as file:
        file.write("length,weight,kind\n1,2,green\n1,2,violet\n")
    refused(1, 'unknown.csv:3: column 3 (kind): class "violet" is not among the 3 classes of the model', "evaluate", "kinds", "--data", "unknown.csv")
    refused(2, "its samples are 1x8x8, the model of numbers/mean-model.safetensors takes 3 (a, b, c)", "evaluate", "numbers", "--data", "digits")
    refused(2, "test or train", "evaluate", "numerals", "--data", "digits", "--part", "trian")
    refused(2, "in one piece", "evaluate", "numbers", "--data", "numbers-test.csv", "--part", "train")
    refused(1, "no/such/found.json", "evaluate", "kinds", "--data", "test.csv", "--json", "no/such/found.json")
    refused(1, "no/such/answers.csv", "predict", "kinds", "--data", "test.csv", "--to", "no/such/answers.csv")
    done = subprocess.run([MODEL, "evaluate", "kinds", "--data", "train.csv"], capture_output=True, text=True, timeout=60)
    check("trained on these data" in done.stderr and done.returncode == 0, f"the training data: {done.stderr}")


print("seed", SEED)
with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    for test in (test_table, test_numbers, test_scaled, test_class_weights, test_binary, test_messy_table, test_digits, test_named_images, test_images, test_mistakes):
        test()
    os.chdir("/")
print(len(failures), "failures")
sys.exit(1 if failures else 0)
