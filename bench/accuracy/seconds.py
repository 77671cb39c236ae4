"""Seconds of a round, and of training to an accuracy."""
import pathlib

from accuracy.cases import ALONE, EXCHANGES, MODELS
from runs import RunFailed
from scaling.simulator import SimulationFailed, round_s
from scaling.tables import read


class Measured:
    """Rounds that bench/scaling/scaling.sh has measured, in a folder of its results."""

    def __init__(self, folder):
        self.source = f"measured by bench/scaling/scaling.sh in {folder}"
        self.rows = read(folder)

    def seconds(self, cell):
        """Of a round; None where it is not known."""
        row = self.rows.get(f"n{cell.workers}", {}).get("none" if cell.exchange == ALONE else cell.exchange)
        return row["round_ms"] / 1e3 if row else None


class Simulated:
    """Rounds by fast-sim: each worker has a host."""

    def __init__(self, program, step_s, bandwidth, latency_s):
        self.program, self.step_s = pathlib.Path(program), step_s
        self.links = ["--step", str(step_s), "--bandwidth", str(bandwidth), "--latency", str(latency_s)]
        self.source = (f"simulated by fast-sim: steps of {1e3 * step_s:g} ms, links of {bandwidth:g} bytes/s and "
                       f"{1e3 * latency_s:g} ms, a host a worker")
        if not self.program.exists():
            print(f"no seconds: {self.program} is missing; build fast-sim, or give --rounds")

    def command(self, cell):
        return [str(self.program), *EXCHANGES[cell.exchange].simulate, "--workers", str(cell.workers), "--payload",
                str(4 * MODELS[cell.model].parameters), *self.links, "--rounds", "40"]

    def seconds(self, cell):
        """Of a round; None without the program."""
        if cell.exchange == ALONE:
            return self.step_s
        if not self.program.exists():
            return None
        try:
            return round_s(self.command(cell))
        except SimulationFailed as reason:
            raise RunFailed(reason) from None


def of_epoch(cell, rounds):
    """None where the seconds of a round are not known."""
    round_s = rounds.seconds(cell)
    return None if round_s is None else cell.rounds() * round_s


def to_target(cell, rounds):
    """None where a seed does not reach the target, too."""
    epochs, epoch_s = cell.epochs(), of_epoch(cell, rounds)
    return None if epochs is None or epoch_s is None else epochs * epoch_s
