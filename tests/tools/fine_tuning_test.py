#!/usr/bin/env python3
"""A run begins with the weights of another: the body is that model's bit for bit, the head is its own.

  fine_tuning_test.py FAST_TRAIN
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

TRAIN = str(pathlib.Path(sys.argv[1]).resolve())
failures = []
# Steps that change no weight.
NO_STEP = ("--learning-rate", "1e-60", "--momentum", "0", "--epochs", "1")


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def train(out, *options, status=0):
    """What the run says."""
    done = subprocess.run([TRAIN, "--exchange", "local", "--workers", "2", "--topology", "ring", "--batch-size", "8", "--quiet", "--out", out,
                           *options], capture_output=True, text=True, timeout=60)
    check(done.returncode == status, f"{out}: status {done.returncode}: {done.stderr}")
    return done.stderr


def refused(status, text, *options):
    said = train("refused", *options, status=status)
    check(text in said and said.count("\n") == 1, f"{options}: {said}")


def tensors(path):
    data = pathlib.Path(path).read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {name: data[end + each["data_offsets"][0]:end + each["data_offsets"][1]] for name, each in header.items()}


def model_of(run):
    return tensors(f"{run}/mean-model.safetensors")


def write(path, named):
    header, data = {}, b""
    for name, values in named.items():
        header[name] = {"dtype": "F32", "shape": [len(values) // 4], "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def table(path, classes):
    with open(path, "w") as file:
        file.write("a,b,kind\n")
        file.writelines(f"{random.gauss(i % classes, 1)},{random.gauss(0, 1)},{'pqrst'[i % classes]}\n" for i in range(80))


def test_another_head():
    table("two.csv", 2)
    table("five.csv", 5)
    pathlib.Path("norm.toml").write_text('layers = [{type = "dense", units = 6}, {type = "relu"}, {type = "dense"}]\n')
    of_two = ("--data", "two.csv", "--target", "kind", "--model", "norm.toml")
    of_five = ("--data", "five.csv", "--target", "kind", "--model", "norm.toml")
    train("base", *of_two, "--epochs", "2", "--checkpoint-every", "5")
    train("plain", *of_five, *NO_STEP)
    said = train("tuned", *of_five, *NO_STEP, "--init-weights", "base")
    base, plain, tuned = map(model_of, ("base", "plain", "tuned"))
    for name in ("fc1.weight", "fc1.bias"):
        check(tuned[name] == base[name] != plain[name], f"the body: {name}")
    for name in ("fc2.weight", "fc2.bias"):
        check(tuned[name] == plain[name] and len(tuned[name]) != len(base[name]), f"the head: {name}")
    line = "initial weights: 2 of 4 tensors from base/mean-model.safetensors; of another shape, begin anew: fc2.weight [2x6] for [5x6], fc2.bias [2] for [5]\n"
    check(line in said, f"what is left out: {said}")
    said = train("same", *of_two, *NO_STEP, "--init-weights", "base/mean-model.safetensors")
    check(model_of("same") == base and "4 of 4 tensors from base/mean-model.safetensors\n" in said, f"the same model: {said}")
    # All workers begin with worker 0's weights; these come from the mean of a checkpoint, too.
    said = train("from-checkpoint", *of_two, *NO_STEP, "--init-weights", "base/checkpoints")
    check("4 of 4 tensors from base/checkpoints" in said, f"a checkpoint: {said}")
    test_names(base, of_two)
    refused(2, "leave one of --init-weights and --resume out", *of_two, "--init-weights", "base", "--resume", "base/checkpoints")
    refused(2, "add that, or leave it out", *of_two, "--init-map", "map.txt")
    refused(1, "there is no such file", *of_two, "--init-weights", "nowhere")
    write("other.safetensors", {"w": bytes(8)})
    refused(2, "--init-weights other.safetensors: none of its 1 tensors fits the model", *of_two, "--init-weights", "other.safetensors")


def test_names(base, of_two):
    """Names of others: with the same beginning, or by a table."""
    shapes = {"fc1.bias": base["fc1.bias"], "fc2.bias": base["fc2.bias"]}
    write("module.safetensors", {"module." + name: values for name, values in shapes.items()})
    said = train("module", *of_two, *NO_STEP, "--init-weights", "module.safetensors")
    found = model_of("module")
    check(all(found[name] == values for name, values in shapes.items()), "names with the same beginning")
    check("2 of 4 tensors" in said and "not there, begin anew: fc1.weight, fc2.weight" in said, f"what is not there: {said}")
    write("theirs.safetensors", {"encoder.b": base["fc1.bias"], "head.b": base["fc2.bias"], "extra": bytes(4)})
    pathlib.Path("map.txt").write_text("# theirs ours\nencoder.b fc1.bias\nhead.b fc2.bias\n")
    said = train("mapped", *of_two, *NO_STEP, "--init-weights", "theirs.safetensors", "--init-map", "map.txt")
    found = model_of("mapped")
    check(all(found[name] == values for name, values in shapes.items()), "names by a table")
    check("not used: extra" in said, f"what is not used: {said}")


seed = int(os.environ.get("FAST_TEST_SEED", random.randrange(1 << 30)))
print("seed", seed)
random.seed(seed)
with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    test_another_head()
    os.chdir("/")
print(len(failures), "failures")
sys.exit(1 if failures else 0)
