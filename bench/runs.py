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


def trained(directory, program, options):
    """The summary of a run, and for each evaluation of the mean model the lines of all workers. `program`: the words before
    the options. It takes --out and --summary-json as fast-train does. A run of the same options in `directory` is not
    repeated."""
    directory.mkdir(parents=True, exist_ok=True)
    options = [str(option) for option in options]
    summary, known = directory / "summary.json", directory / "options"
    if not summary.exists() or not known.exists() or known.read_text() != shlex.join(options):
        summary.unlink(missing_ok=True)
        known.write_text(shlex.join(options))
        command = [*program, *options, "--out", str(directory), "--summary-json", str(directory / "new.json")]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            raise RunFailed(f"{shlex.join(command)}: {reason[-1]}")
        (directory / "new.json").rename(summary)
    return json.loads(summary.read_text()), list(zip(*metrics(directory)))


def fast_train(directory, program, workers, options):
    """A run whose workers are threads."""
    local = ["--exchange", "local", "--workers", workers, "--quiet", "--overwrite"]
    return trained(directory, [program], [*local, *options])


def epochs_to(accuracies, target):
    return next((epoch for epoch, reached in enumerate(accuracies, 1) if reached >= target), None)
