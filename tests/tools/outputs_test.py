"""A file that a program cannot write to its end leaves the one that was there, and no other file.

    outputs_test.py PROGRAM...

The room that the disk has is drawn from a seed (FAST_TEST_SEED), FAST_OUTPUT_DRAWS times for each output.
"""
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile

DEADLINE_S = 120
SEED = int(os.environ.get("FAST_TEST_SEED", random.randrange(1 << 30)))
DRAWS = int(os.environ.get("FAST_OUTPUT_DRAWS", 1))
draw = random.Random(SEED)
failures = []


def check(title, holds, text=""):
    if not holds:
        failures.append(title)
        print("FAILED:", title, text)


def disk_of(size):
    """For preexec_fn: no file of the program grows beyond that size."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


full_disk = disk_of(20)


def run(command, **more):
    # MPI's shared memory are files, too. A program of one process does without them: MPICH by the first variable, Open MPI by
    # the others.
    environment = dict(os.environ, UCX_TLS="self", OMPI_MCA_btl="self", PMIX_MCA_gds="hash")
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=DEADLINE_S, **more)


def checkpoints_fail(train, directory, model_bytes):
    """A disk with room for the model, and not for a checkpoint, which has the optimizer's state too."""
    for limit, status in ((model_bytes + 2000, 1), (1 << 24, 0)):
        made = os.path.join(directory, f"run-{limit}")
        summary = made + ".json"
        done = run([*train, "--momentum", "0.9", "--checkpoint-every", "4", "--out", made, "--summary-json", summary], preexec_fn=disk_of(limit))
        check(f"checkpoints and {limit} bytes: status", done.returncode == status, f"{done.returncode}: {done.stdout}")
        check(f"checkpoints and {limit} bytes: the model", os.path.exists(os.path.join(made, "mean-model.safetensors")), done.stdout)
        with open(summary) as file:
            unsaved = json.load(file)["unsaved"]
        check(f"checkpoints and {limit} bytes: the summary", unsaved.startswith("no checkpoint: ") == bool(status), unsaved)
        if status:
            check(f"checkpoints and {limit} bytes: the message", "error: not saved: no checkpoint: " in done.stdout, done.stdout)


def main():
    print("seed", SEED)
    program = {os.path.basename(path): path for path in sys.argv[1:]}
    with tempfile.TemporaryDirectory() as directory:
        made = os.path.join(directory, "run")
        train = [program["fast-train"], "--exchange", "local", "--workers", "2", "--samples", "240", "--model", "mlp:8",
                 "--batch-size", "12", "--epochs", "1", "--quiet", "--trace", "--out", made]
        done = run(train)
        if done.returncode != 0:
            print("the run that the others read failed:", done.stdout)
            return 1
        model = os.path.join(made, "mean-model.safetensors")
        table = os.path.join(directory, "table.csv")
        with open(table, "w") as file:
            file.write("a,b,kind\n" + "1,2,x\n3,4,y\n" * 50)
        topology = [program["fast-topology"], "show", "ring", "-n", "4"]
        outputs = {
            "svg": [*topology, "--svg"], "dot": [*topology, "--dot"], "toml": [*topology, "--save"],
            "mtx": [*topology, "--save"], "onnx": [program["fast-model"], "export", model, "--to"],
            "safetensors": [program["fast-model"], "export", model, "--to"],
            "csv": [program["fast-model"], "predict", model, "--data", "fashion-mnist", "--to"],
            "conf.toml": [program["fast-train"], "--write-config"],
            "html": [program["fast-report"], made, "--overwrite", "--html"],
            "json": [*train[:-3], "--summary-json"],
            "pftrace": [program["fast-trace"], "merge", made, "--to"],
        }
        for ending, command in outputs.items():
            title = " ".join([os.path.basename(command[0]), command[-1], ending])
            folder = os.path.join(directory, "of-" + ending)
            os.mkdir(folder)
            path = os.path.join(folder, "file." + ending)
            with open(path, "w") as file:
                file.write("before")
            done = run([*command, path], preexec_fn=full_disk)
            check(title + ": status", done.returncode == 1, f"{done.returncode}: {done.stdout}")
            check(title + ": the message", path in done.stdout and "cannot be written" in done.stdout, done.stdout)
            check(title + ": the old file", open(path).read() == "before")
            check(title + ": nothing else", os.listdir(folder) == [os.path.basename(path)], str(os.listdir(folder)))
            done = run([*command, path])
            check(title + ": with room", done.returncode == 0 and os.path.getsize(path) > 20, done.stdout)
            for _ in range(DRAWS):
                with open(path, "rb") as file:
                    whole = file.read()
                room = draw.randrange(len(whole) // 2)  # the next output may be a little smaller
                done = run([*command, path], preexec_fn=disk_of(room))
                with open(path, "rb") as file:
                    check(f"{title}, room {room}: as before", done.returncode == 1 and file.read() == whole, f"{done.returncode}: {done.stdout}")
        checkpoints_fail(train[:-3], directory, os.path.getsize(model))
        folder = os.path.join(directory, "packed")
        done = run([program["fast-data"], "convert", table, "--target", "kind", folder], preexec_fn=full_disk)
        check("fast-data convert: status", done.returncode == 1, done.stdout)
        check("fast-data convert: no shard", not os.path.exists(folder) or not os.listdir(folder))
    print(len(failures), "failures")
    return 1 if failures else 0


sys.exit(main())
