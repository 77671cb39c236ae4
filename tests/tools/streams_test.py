"""Standard error that cannot be written does not hold up training; standard output that cannot be written is status 1.

    streams_test.py FASTRUN FAST_TRAIN PROGRAM...
"""
import fcntl
import os
import pty
import random
import signal
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 120
SEED = int(os.environ.get("FAST_TEST_SEED", random.randrange(1 << 30)))
draw = random.Random(SEED)
failures = []


def check(title, holds, text=""):
    if not holds:
        failures.append(title)
        print("FAILED:", title, text)


def status(command, **streams):
    return subprocess.run(command, stdin=subprocess.DEVNULL, timeout=DEADLINE_S, **streams).returncode


def full():
    return open("/dev/full", "w")


def closed(number):
    """For preexec_fn."""
    return lambda: os.close(number)


def full_pipe():
    """A pipe that has room for nothing, and its reader."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 512)
    except BlockingIOError:
        pass
    os.set_blocking(writer, True)
    return reader, writer


def train(train_program, out, *more):
    return [train_program, "--exchange", "local", "--workers", "2", "--samples", "240", "--model", "mlp:8", "--batch-size",
            "12", "--epochs", "2", "--step-ms", "20", "--out", out, *more]


def has_model(out):
    return os.path.exists(os.path.join(out, "mean-model.safetensors"))


def trains_without_stderr(program, directory):
    """Each way to lose standard error, with a bar and with lines."""
    def run(title, style, streams, after_start=None):
        out = os.path.join(directory, f"{title} {style}")
        began = time.monotonic()
        process = subprocess.Popen(train(program, out, "--progress", style), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, **streams)
        if after_start:
            time.sleep(draw.uniform(0, 1))  # in the start, in an epoch, at the end
            after_start()
        found = process.wait(DEADLINE_S)
        check(f"stderr: {title}, {style}", found == 0 and has_model(out), f"status {found}")
        return time.monotonic() - began

    for style in ("bar", "lines"):
        run("full disk", style, {"stderr": full()})
        run("closed", style, {"preexec_fn": closed(2)})
        ours, theirs = pty.openpty()
        run("closed terminal", style, {"stderr": theirs, "start_new_session": True},
            lambda: (os.close(theirs), os.close(ours)))
        reader, writer = full_pipe()
        run("a pipe that nobody reads", style, {"stderr": writer})
        run("a pipe whose reader leaves", style, {"stderr": writer}, lambda: os.close(reader))
        os.close(writer)
        ours, theirs = pty.openpty()
        run("a terminal that nobody reads", style, {"stderr": theirs})
        os.close(ours)
        os.close(theirs)


def tells_of_stdout(fastrun, train_program, programs, directory):
    out = os.path.join(directory, "output")
    check("the closing table", status(train(train_program, out, "--quiet"), stdout=full(), stderr=subprocess.DEVNULL) == 1)
    check("the closing table: the model", has_model(out))
    commands = [[program, "--help"] for program in programs] + [[program, "--version"] for program in programs]
    by_name = {os.path.basename(program): program for program in programs}
    commands += [[train_program, "--write-config", "-"], [by_name["fast-sim"], "-n", "4", "--rounds", "5", "--model", "recurrence", "--json"],
                 [by_name["fast-topology"], "show", "ring", "-n", "4"], [by_name["fast-topology"], "list"],
                 [by_name["fast-model"], "info", os.path.join(out, "mean-model.safetensors")],
                 [fastrun, "-n", "1", "sh", "-c", "echo text"]]
    for command in commands:
        name = " ".join([os.path.basename(command[0]), *command[1:]])
        check(f"{name}: a full disk", status(command, stdout=full(), stderr=subprocess.DEVNULL) == 1)
        if command[0] != fastrun:
            check(f"{name}: closed", status(command, stderr=subprocess.DEVNULL, preexec_fn=closed(1)) == 1)
        found = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               timeout=DEADLINE_S)
        check(f"{name}: written", found.returncode == 0 and found.stdout, f"status {found.returncode}")


def refuses_without_stderr(programs):
    for program in programs:
        for title, streams in (("full", {"stderr": full()}), ("closed", {"preexec_fn": closed(2)})):
            found = status([program, "--no-such-option"], stdout=subprocess.DEVNULL, **streams)
            check(f"{os.path.basename(program)}: refused, stderr {title}", found == 2, f"status {found}")


def stops(title, command, expected, ready, whom=lambda process: process.pid, after_s=1):
    """SIGTERM once it is ready; it must end by itself long before the deadline."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not ready() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
    time.sleep(after_s)
    os.kill(whom(process), signal.SIGTERM)
    try:
        said = process.communicate(timeout=60)[1].decode(errors="replace")
        check(title, process.returncode in expected, f"status {process.returncode}: {said}")
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[1].decode(errors="replace")
        check(title, False, "it goes on: " + said)
    return said


def heeds_sigterm(fastrun, train_program, directory):
    closing = ["--closing-rounds", "1000000000"]
    out = os.path.join(directory, "closing")
    trained = lambda where: lambda: os.path.exists(os.path.join(where, "logs/0.log")) and \
        "epoch 2 ended" in open(os.path.join(where, "logs/0.log")).read()
    said = stops("closing rounds on threads", train(train_program, out, *closing), [0], trained(out))
    check("closing rounds on threads: the model", has_model(out))
    check("closing rounds on threads: the log", "closing rounds" in said, said)
    # One of three ranks is asked.
    out = os.path.join(directory, "closing-ranks")
    pids = os.path.join(directory, "pid")
    script = os.path.join(directory, "rank.sh")
    with open(script, "w") as file:
        file.write(f'#!/bin/sh\necho $$ >{pids}$FASTRUN_RANK\nexec "$@"\n')
    os.chmod(script, 0o755)
    command = [fastrun, "-n", "3", script, *train(train_program, out, *closing)]
    for option in ("--exchange", "--workers"):
        at = command.index(option)
        del command[at:at + 2]
    stops("closing rounds on ranks", command, [0], trained(out), lambda _: int(open(pids + "1").read()))
    check("closing rounds on ranks: the model", has_model(out))
    # A table that takes a second to read. A program that has read it already stops as in training.
    table = os.path.join(directory, "table.csv")
    with open(table, "w") as file:
        file.write(",".join(f"c{column}" for column in range(101)) + "\n")
        for _ in range(60):
            file.write(("0.125," * 100 + "1\n" + "0.250," * 100 + "0\n") * 1000)
    stops("loading", [train_program, "--exchange", "local", "--data", table, "--target", "c100", "--model", "mlp:4"],
          [-signal.SIGTERM, 0], lambda: True, after_s=.3)


def main():
    print("seed", SEED)
    fastrun, train_program, *programs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        trains_without_stderr(train_program, directory)
        tells_of_stdout(fastrun, train_program, programs, directory)
        refuses_without_stderr(programs)
        heeds_sigterm(fastrun, train_program, directory)
    print(len(failures), "failures")
    return 1 if failures else 0


sys.exit(main())
