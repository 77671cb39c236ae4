"""Checks, waits and programs of the tests of fast-serve. Their folder is the current one."""
import pathlib
import signal
import subprocess
import sys
import time

PATIENCE_S = 100
SKIPPED = 77
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"FAILED: {what}: not within {PATIENCE_S} s; {Program.stderr()}")
        time.sleep(0.005)


def train(program, out, data, *options):
    subprocess.run([program, "--exchange", "local", "--workers", "2", "--data", data, "--model", "mlp:8", "--quiet",
                    "--epochs", "1", "--out", out, *options], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_S)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


class Program:
    """One that runs. Its messages go to the file errors.txt."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open("errors.txt", "w"), text=True)

    @staticmethod
    def stderr():
        errors = pathlib.Path("errors.txt")
        return errors.read_text() if errors.exists() else ""

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def refused(*command, text):
    """It says one line and does nothing. Status 2: the options are wrong by themselves."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    lines = done.stderr.strip().split("\n")
    check(done.returncode in (1, 2) and len(lines) == 1 and text in lines[0] and not done.stdout,
          f"{command[1:]}: status {done.returncode}: {done.stdout!r} {done.stderr!r} has not {text!r}")


def run_all(tests):
    """`tests`: functions and their arguments. The exit status of the program."""
    for test, arguments in tests:
        print(test.__name__, flush=True)
        began = time.monotonic()
        test(*arguments)
        print(f"{time.monotonic() - began:.1f} s", flush=True)
    print(f"{len(failures)} failures")
    return 1 if failures else 0
