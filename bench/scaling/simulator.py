"""What fast-sim says of a run."""
import json
import subprocess


class SimulationFailed(Exception):
    pass


def result(command, limit_s=None):
    """What fast-sim --json prints. Raises subprocess.TimeoutExpired after limit_s."""
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, timeout=limit_s)
    if done.returncode != 0:
        raise SimulationFailed(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def round_s(command, limit_s=None):
    """Seconds of a round, until the last worker has finished."""
    found = result(command, limit_s)
    return found["seconds"] / found["rounds"]


def seconds_per_round(command):
    """By name: "mean" until the last worker has finished, "worker" in the mean over the workers, and more."""
    return result(command)["seconds_per_round"]
