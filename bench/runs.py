"""Runs of training programs for the studies of accuracy: each is done once, and read again."""
import json
import shlex
import subprocess

from time_to import metrics


class RunFailed(Exception):
    pass


def words(text):
    """Of a setting, in which "rate=1" stands for an option of the rule."""
    for word in shlex.split(text):
        if "=" in word:
            yield "--algorithm-option"
        yield word


def is_known(directory, options):
    """Whether `directory` has a run of these options that came to its end."""
    known = directory / "options"
    return (directory / "summary.json").exists() and known.exists() and known.read_text() == shlex.join(options)


def trained(directory, program, options, may_run=True):
    """The summary of a run, and for each evaluation of the mean model the lines of all workers. `program`: the words before
    the options. It takes --out and --summary-json as fast-train does. A run of the same options in `directory` is not
    repeated. None if there is none, and it may not run."""
    options = [str(option) for option in options]
    summary = directory / "summary.json"
    if not is_known(directory, options):
        if not may_run:
            return None
        directory.mkdir(parents=True, exist_ok=True)
        summary.unlink(missing_ok=True)
        (directory / "options").write_text(shlex.join(options))
        command = [*program, *options, "--out", str(directory), "--summary-json", str(directory / "new.json")]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            raise RunFailed(f"{shlex.join(command)}: {reason[-1]}")
        (directory / "new.json").rename(summary)
    return json.loads(summary.read_text()), list(zip(*metrics(directory)))


def fast_train(directory, program, workers, options, may_run=True):
    """A run whose workers are threads."""
    local = ["--exchange", "local", "--workers", workers, "--quiet", "--overwrite"]
    return trained(directory, [program], [*local, *options], may_run)


def epochs_to(accuracies, target):
    return next((epoch for epoch, reached in enumerate(accuracies, 1) if reached >= target), None)
