"""A rule, a topology and an observer of your own; a checkpoint.   python examples/python/own_parts.py"""
import fast_decentralized as fast
import numpy as np


# A rule of your own: each worker moves only a part of the way to its neighbors.
class Damped(fast.Rule):
    def combine(self, block):
        block.current += 0.5 * block.pull[0]


# A topology of your own: entry (i, j) is the weight of worker j in the average of worker i.
MATRIX = np.array([[0.50, 0.25, 0.00, 0.25],
                   [0.25, 0.50, 0.25, 0.00],
                   [0.00, 0.25, 0.50, 0.25],
                   [0.25, 0.00, 0.25, 0.50]])


# An observer: how long the worker waits for each of its neighbors.
class Waits(fast.Observer):
    def __init__(self):
        self.seconds = {}

    def on_phase(self, event):
        if event.phase == "wait":
            self.seconds[event.peer] = self.seconds.get(event.peer, 0) + event.ended - event.began


def extended():
    waits, x = Waits(), np.array([float(fast.rank())])
    worker = fast.Worker({"x": x}, MATRIX, algorithm=Damped(), observer=waits, initial="as_is")
    for _ in range(50):
        with worker.round():
            pass
    return x[0], sorted(waits.seconds)


# A checkpoint: the model's weights, and what the worker carries from round to round.
def save_and_resume():
    x = np.array([float(fast.rank())])
    worker = fast.Worker({"x": x}, "ring", initial="as_is")
    with worker.round():
        pass
    saved = {"x": x.copy(), "worker": worker.state_dict()}
    worker.close()

    x[:] = saved["x"]
    worker = fast.Worker({"x": x}, "ring", initial="as_is")
    worker.load_state_dict(saved["worker"])
    return worker.rounds


if __name__ == "__main__":
    for rank, (value, waited_for) in enumerate(fast.local.run(4, extended)):
        print(f"worker {rank}: {value:.3f}")
    print("resumed after round", fast.local.run(2, save_and_resume)[0])
