#!/usr/bin/env python3
"""Exports a model of a file of layers, whose tensors have the names and shapes of a perceptron with ReLU.

  fast_model_test.py FAST_MODEL FAST_TRAIN
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

MODEL, TRAIN = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
LAYERS = """layers = [
  {type = "dense", units = 8},
  {type = "silu"},
  {type = "dropout", rate = 0.2},
  {type = "dense"},
]
"""
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=50)


def train():
    rows = [f"{i % 7},{i % 5},{'xy'[i % 2]}" for i in range(80)]
    pathlib.Path("points.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    pathlib.Path("silu.toml").write_text(LAYERS)
    data = ("--data", "points.csv", "--target", "label", "--test-share", "0.2", "--batch-size", "8")
    run(TRAIN, "--exchange", "local", "--workers", "2", *data, "--model", "silu.toml", "--epochs", "1",
        "--checkpoint-every", "2", "--quiet", "--out", "run")


def read(path):
    """The header and the bytes of the tensors."""
    data = pathlib.Path(path).read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:end]), data[end:]


def metadata_of(path):
    return read(path)[0].get("__metadata__", {})


def test_onnx():
    """The names of operators are text in the file. SiLU is x times its sigmoid."""
    for source in ("run/mean-model.safetensors", "run/checkpoints"):
        run(MODEL, "export", source, "--to", "model.onnx")
        written = pathlib.Path("model.onnx").read_bytes()
        check(b"Sigmoid" in written and b"Relu" not in written, f"{source}: another network")
        for part in (b"normalization.scale", b"fast.features", b'["x","y"]'):
            check(part in written, f"{source}: no {part}")


def test_safetensors():
    wanted = metadata_of("run/mean-model.safetensors")
    names = {key: json.loads(wanted.get("fast." + key, "null")) for key in ("features", "class_names")}
    check(names == {"features": ["a", "b"], "class_names": ["x", "y"]}, f"the names of the table: {names}")
    check(wanted.get("fast.input") == "2" and wanted.get("fast.layers") == LAYERS, f"the run's note: {wanted}")
    for source in ("run/mean-model.safetensors", "run/checkpoints"):
        run(MODEL, "export", source, "--to", "model.safetensors")
        check(metadata_of("model.safetensors") == wanted, f"{source}: {metadata_of('model.safetensors')}")


def test_no_note():
    """Files that name no model are recognized by their tensors."""
    header, tensors = read("run/mean-model.safetensors")
    del header["__metadata__"]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path("bare.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + tensors)
    run(MODEL, "export", "bare.safetensors", "--to", "bare.onnx")
    check(b"Relu" in pathlib.Path("bare.onnx").read_bytes(), "the tensors of a perceptron")


def said(*words, status=0):
    done = subprocess.run(words, capture_output=True, text=True, timeout=50)
    check(done.returncode == status, f"{words}: status {done.returncode}: {done.stderr}")
    return done.stderr if status else done.stdout


def test_run():
    """A run's directory is its mean model or, without one, its newest checkpoint."""
    model = said(MODEL, "info", "run/mean-model.safetensors")
    check(said(MODEL, "info", "run") == "run/mean-model.safetensors\n" + model, "the mean model of a run")
    exported = said(MODEL, "export", "run", "--to", "model.onnx")
    size = pathlib.Path("model.onnx").stat().st_size
    check(exported == f"model.onnx: silu.toml, {size} bytes\n", f"what export says: {exported}")
    pathlib.Path("early").mkdir()
    pathlib.Path("early/checkpoints").symlink_to(pathlib.Path("run/checkpoints").resolve())
    newest = said(MODEL, "info", "run/checkpoints").split("\n")[1:]
    check(said(MODEL, "info", "early").split("\n")[1:] == newest, "the newest checkpoint of a run")
    onnx = said(MODEL, "info", "model.onnx", status=1)
    check("is not a safetensors file: it looks like ONNX" in onnx and onnx.count("\n") == 1, f"an ONNX file: {onnx}")


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    train()
    test_onnx()
    test_safetensors()
    test_no_note()
    test_run()
    os.chdir("/")
sys.exit(1 if failures else 0)
