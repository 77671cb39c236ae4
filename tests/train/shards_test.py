#!/usr/bin/env python3
"""fast-train on shards larger than its memory: memory, resuming bit for bit, damaged samples.

  shards_test.py FAST_TRAIN FAST_DATA MPIEXEC [MEGABYTES]
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

TRAIN, DATA, MPIEXEC = sys.argv[1:4]
MEGABYTES = int(sys.argv[4]) if len(sys.argv) > 4 else 320
SAMPLE_BYTES = 28 * 28
WINDOW = 20_000
LIMIT_MB = WINDOW * SAMPLE_BYTES / 1e6 + 200
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED:", what)


def write_idx(folder, samples):
    """Images that tell their class: a row of one brightness, the rest noise."""
    folder.mkdir()
    noise = os.urandom(1 << 20)
    for name, count in (("train", samples), ("t10k", 200)):
        with open(folder / f"{name}-images-idx3-ubyte", "wb") as images:
            images.write(struct.pack(">4i", 2051, count, 28, 28))
            for i in range(count):
                at = i * 977 % (len(noise) - SAMPLE_BYTES)
                images.write(bytes([25 * (i % 10)]) * 280 + noise[at:at + SAMPLE_BYTES - 280])
        labels = bytes(i % 10 for i in range(count))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels)


def run(words):
    result = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=50 + MEGABYTES / 10)
    check(result.returncode == 0, f"{words}: {result.stdout}{result.stderr}")
    return result


def convert(source, to, shard_size):
    run([DATA, "convert", source, to, "--shard-size", shard_size])


def train(data, out, *options):
    return run([MPIEXEC, "-n", "2", TRAIN, "--data", data, "--model", "mlp:16", "--batch-size", "20",
                "--topology", "ring", "--out", out, *options])


def own_memory_mb(process):
    """RssAnon and RssShmem; pages of mapped files are the system's to take back."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    kinds = dict(line.split(":", 1) for line in status.splitlines())
    return sum(int(kinds.get(kind, "0").split()[0]) for kind in ("RssAnon", "RssShmem")) / 1e3 * 1.024


def workers_of(parent):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "exe") == os.path.realpath(TRAIN):
                fields = (process / "environ").read_bytes()
                if f"FAST_TEST={parent}".encode() in fields:
                    found.append(process.name)
        except OSError:
            pass
    return found


def check_memory(data, size_mb):
    environment = dict(os.environ, FAST_TEST=str(os.getpid()))
    words = [MPIEXEC, "-n", "2", TRAIN, "--data", data, "--model", "mlp:4", "--batch-size", "500",
             "--epochs", "1", "--window", WINDOW, "--quiet"]
    job = subprocess.Popen(list(map(str, words)), env=environment, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    peak, seen = 0, 0
    while job.poll() is None:
        for process in workers_of(os.getpid()):
            peak = max(peak, own_memory_mb(process))
            seen += 1
        time.sleep(0.02)
    check(job.returncode == 0, job.stdout.read())
    check(seen > 5, f"memory was read {seen} times")
    print(f"data {size_mb:.0f} MB, window {WINDOW} samples: a worker took at most {peak:.0f} MB")
    check(size_mb > LIMIT_MB, f"the data are {size_mb} MB, not more than the limit of {LIMIT_MB} MB")
    check(0 < peak < LIMIT_MB, f"a worker took {peak} MB, the limit is {LIMIT_MB} MB")


def check_resume(place, data):
    train(data, place / "whole", "--epochs", 3, "--window", 70, "--checkpoint-every", 7, "--keep", 50)
    checkpoints = sorted((place / "whole/checkpoints").iterdir())
    check(len(checkpoints) > 4, f"checkpoints: {checkpoints}")
    middle = checkpoints[len(checkpoints) // 2]
    train(data, place / "resumed", "--epochs", 3, "--window", 70, "--resume", middle)
    models = [(place / name / "mean-model.safetensors").read_bytes() for name in ("whole", "resumed")]
    check(models[0] == models[1], "the resumed run ends with another model")
    train(data, place / "other", "--epochs", 3, "--window", 71)
    check(models[0] != (place / "other/mean-model.safetensors").read_bytes(), "the window changes nothing")


def check_damage(place, data):
    shard = sorted(data.glob("train-*"))[1]
    contents = bytearray(shard.read_bytes())
    contents[64 + 5 * SAMPLE_BYTES] ^= 255
    shard.write_bytes(contents)
    result = train(data, place / "damaged", "--epochs", 4, "--window", 70)
    warnings = [line for line in result.stderr.splitlines() if "cannot be read" in line]
    check(0 < len(warnings) <= 2, f"{len(warnings)} warnings: {warnings}")
    check(all("sample 5 is damaged" in line for line in warnings), f"warnings: {warnings}")
    lines = [json.loads(line) for line in (place / "damaged/metrics.jsonl").read_text().splitlines()]
    skipped = {}
    for line in lines:
        if line["kind"] == "epoch":
            skipped[line["epoch"]] = skipped.get(line["epoch"], 0) + line["skipped_samples"]
    check(len(skipped) == 4 and max(skipped.values()) == 1, f"skipped in each epoch: {skipped}")


with tempfile.TemporaryDirectory() as name:
    place = pathlib.Path(name)
    write_idx(place / "few", 600)
    convert(place / "few", place / "packed-few", "100KB")
    check_resume(place, place / "packed-few")
    check_damage(place, place / "packed-few")
    write_idx(place / "many", MEGABYTES * 1_000_000 // SAMPLE_BYTES)
    convert(place / "many", place / "packed-many", "64MB")
    shutil.rmtree(place / "many")
    check_memory(place / "packed-many", MEGABYTES)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
