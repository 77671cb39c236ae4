"""What fast-sim says of a run."""
import json
import subprocess


class SimulationFailed(Exception):
    pass


def round_s(command, limit_s=None):
    """Seconds of a round. Raises subprocess.TimeoutExpired after limit_s."""
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, timeout=limit_s)
    if done.returncode != 0:
        raise SimulationFailed(f"{' '.join(command)}: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    return found["seconds"] / found["rounds"]
