"""What bench/curves.py trains: models, and exchanges on a number of workers."""
import dataclasses
import statistics

from runs import epochs_to

ALONE = "alone"


@dataclasses.dataclass
class Model:
    parameters: int  # for Fashion-MNIST
    rates: tuple  # of one worker; of several, the best is taken
    target: float  # accuracy, to which epochs and seconds are counted


MODELS = {
    "lenet": Model(61706, (0.01,), 0.85),
    "lstm": Model(24458, (0.02, 0.05, 0.1, 0.2), 0.8),
    "resnet20": Model(272186, (0.02,), 0.8),
}


@dataclasses.dataclass
class Exchange:
    label: str
    train: list  # options of fast-train; None: another program
    simulate: list  # options of fast-sim
    fewest: int  # workers


EXCHANGES = {
    "ring": Exchange("`awc`, ring", ["--topology", "ring"], ["--topology", "ring"], 2),
    "torus": Exchange("`awc`, torus", ["--topology", "torus2d"], ["--topology", "torus2d"], 8),  # below, it is a ring
    "one-peer": Exchange("`awc`, one peer", ["--topology", "one_peer_exponential"], ["--topology", "one_peer_exponential"], 4),
    "all-reduce": Exchange("all-reduce", ["--algorithm", "allreduce"], ["--exchange", "ring"], 2),
    "ddp": Exchange("PyTorch DDP, gloo", None, ["--exchange", "ring"], 2),
}


def label_of(exchange):
    return EXCHANGES[exchange].label if exchange in EXCHANGES else "one worker"


class Cell:
    """All seeds of an exchange on a number of workers."""

    def __init__(self, model, exchange, workers, runs):
        """`runs`: of each seed the summary, and the accuracy (0 to 1) of the mean model after each epoch."""
        self.model, self.exchange, self.workers = model, exchange, workers
        self.summaries = [summary for summary, _ in runs]
        self.curves = [curve for _, curve in runs]

    def final(self):
        """% after the last epoch, of each seed."""
        return [100 * curve[-1] for curve in self.curves]

    def epochs(self):
        """To the model's target, the mean over seeds. None unless all seeds reach it."""
        reached = self.reached()
        return statistics.mean(reached) if all(reached) else None

    def reached(self):
        return [epochs_to(curve, MODELS[self.model].target) for curve in self.curves]

    def curve(self):
        """% after each epoch, the mean over seeds."""
        return [100 * statistics.mean(at) for at in zip(*self.curves)]

    def rounds(self):
        """Of an epoch."""
        return self.summaries[0]["rounds"] / self.summaries[0]["epochs"]
