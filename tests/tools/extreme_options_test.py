#!/usr/bin/env python3
"""Gives each option of each program numbers at the ends of all ranges and beyond: the program ends with one line that says
why, or does what the number means. It never crashes, and it ends when it is asked to.

  extreme_options_test.py PROGRAM...      a few, drawn from FAST_TEST_SEED; FAST_EXTREME_OPTIONS=all: all of them.
                                          fast-train must be among the programs.
"""
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile

EXTREMES = ["0", "-1", "1", "2147483647", "2147483648", "1099511627776", "4611686018427387904", "9223372036854775807",
            "9223372036854775808", "18446744073709551615", "5e-324", "1e-300", "0.9999999999999999", "1e18", "1e19", "1e300",
            "1.7976931348623157e308", "inf", "nan"]
DRAWN = 24
ASKED_TO_END_AFTER_S, ENDS_WITHIN_S = 4, 60
MEMORY_BYTES = 12 << 30
programs = {pathlib.Path(path).name: path for path in sys.argv[1:]}
TRAIN = ["--exchange", "local", "--workers", "2", "--data", "tiny.csv", "--target", "y", "--model", "mlp:4", "--batch-size", "4",
         "--topology", "ring", "--progress", "none"]
#: What a program is started with. The options of the help of the first words are tried.
COMMANDS = {
    "fast-train": [(["--epochs", "1", *TRAIN], [])],
    "fast-sim": [(["--topology", "ring", "--rounds", "3"], [])],
    "fast-sites": [(["wait", "nats://127.0.0.1:1/run", "--sites", "2"], ["wait"])],
    "fast-topology": [(["show", "ring", "-n", "4"], ["show"]), (["plan", "-n", "4"], ["plan"])],
    "fast-data": [(["info", "tiny.csv", "--target", "y"], ["info"]),
                  (["convert", "tiny.csv", "made.packed", "--target", "y"], ["convert"])],
    "fast-model": [(["evaluate", "run", "--data", "tiny.csv"], ["evaluate"])],
    "fastrun": [(["-n", "2", "true"], [])],
}
#: Without these, an option has no effect in the run.
COMPANIONS = {"huber-delta": ["--loss", "huber", "--target-type", "numbers"], "beta1": ["--optimizer", "adam"],
              "beta2": ["--optimizer", "adam"], "trace-size": ["--trace", "--out", "o"], "checkpoint-every": ["--out", "o"],
              "trace-rounds": ["--trace", "--out", "o"], "keep": ["--out", "o", "--checkpoint-every", "1"],
              "evaluate-every": ["--out", "o"], "codec-seed": ["--codec", "int8_stochastic"], "patience": ["--validation", "0.3"],
              "split-seed": ["--test-share", "0.3"]}
#: They sleep, start work on other machines, or have no value that is a number.
LEFT_OUT = {"slow", "step-ms",  # these are steps that sleep for so long
            "mpiexec", "mpiexec-option", "host", "hosts", "hostfile", "config", "ssh", "listen", "resume", "exchange", "data", "device"}
failures = []


def options_of(path, words):
    """Names of the options that take a value."""
    text = subprocess.run([path, *words, "--help"], capture_output=True, text=True, timeout=60).stdout
    return [name for name in re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)[ =][A-Z<]", text, re.M) if name not in LEFT_OUT]


def files_in(directory):
    rows = ["a,b,y"] + [f"{i % 7},{(3 * i) % 5},{i % 2}" for i in range(40)]
    (directory / "tiny.csv").write_text("\n".join(rows) + "\n")
    done = subprocess.run([programs["fast-train"], "--epochs", "1", *TRAIN, "--out", "run"], cwd=directory, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, directory):
    """Status and standard error. A program that goes on for long is asked to end."""
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               preexec_fn=limit_memory, errors="replace")
    asked = False
    try:
        errors = process.communicate(timeout=ASKED_TO_END_AFTER_S)[1]
    except subprocess.TimeoutExpired:
        asked = True
        process.send_signal(signal.SIGTERM)
        try:
            errors = process.communicate(timeout=ENDS_WITHIN_S)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            return None, process.communicate()[1], asked
    return process.returncode, errors, asked


def check(name, base, option, value):
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        for file in files.iterdir():
            if file.is_file():
                (directory / file.name).symlink_to(file)
        words = [f"--{option}={value}", *COMPANIONS.get(option, [])]
        end = len(base) - 1 if name == "fastrun" else len(base)  # before the program that it starts
        command = [programs[name], *base[:end], *words, *base[end:]]
        status, errors, asked = run(command, directory)
    shown = " ".join([name, *command[1:]])
    lines = [line for line in errors.splitlines() if line.strip()]
    if status is None:
        failures.append(f"{shown}: it does not end {ENDS_WITHIN_S} s after SIGTERM")
    elif status < 0 and not (asked and status == -signal.SIGTERM):
        failures.append(f"{shown}: ended by {signal.Signals(-status).name}: {errors[-300:]}")
    elif status not in (0, 1, 2) and not asked:
        failures.append(f"{shown}: status {status}: {errors[-300:]}")
    elif status in (1, 2) and not asked:
        told = [line for line in lines if "error" in line.lower() or name in line]
        one = len(told) == 1 or (name == "fastrun" and told)  # which tells of its ranks, too
        if not one or re.search(r"terminate called|bad_alloc|length_error|std::|vector::|basic_string|stoi|bad_array", errors):
            failures.append(f"{shown}: status {status}, not one clear line: {errors[-500:]}")


seed = int(os.environ.get("FAST_TEST_SEED", "20261126"))
print(f"FAST_TEST_SEED={seed}")
with tempfile.TemporaryDirectory() as place:
    files = pathlib.Path(place)
    files_in(files)
    cases = []
    for name in (name for name in COMMANDS if name in programs):
        for base, words in COMMANDS[name]:
            found = options_of(programs[name], words)
            assert found, f"{name} {words}: its help has no option with a value"
            cases += [(name, base, option, value) for option in found for value in EXTREMES]
    if os.environ.get("FAST_EXTREME_OPTIONS") != "all":
        cases = random.Random(seed).sample(cases, DRAWN)
    for case in cases:
        check(*case)
print(f"{len(cases)} cases")
for failure in failures:
    print("FAILED:", failure)
sys.exit(1 if failures else 0)
