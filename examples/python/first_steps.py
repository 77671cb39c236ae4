"""The Python package with NumPy alone: four threads are the workers.   python examples/python/first_steps.py"""
import fast_decentralized as fast
import numpy as np


# Each worker sees its own points of the line y = 3x + 1.
def main():
    random = np.random.default_rng(fast.rank())
    model = {"slope": np.zeros(1), "offset": np.zeros(1)}
    worker = fast.Worker(model, topology="torus2d")
    for _ in range(2000):
        with worker.round():
            x = random.uniform(-1, 1)
            error = model["slope"] * x + model["offset"] - (3 * x + 1)
            model["slope"] -= 0.1 * error * x
            model["offset"] -= 0.1 * error
    worker.await_finish()
    return worker.mean_model()


mean = fast.local.run(4, main)[0]
print(f"y = {mean['slope'][0]:.3f} x + {mean['offset'][0]:.3f}")


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


for rank, (value, waited_for) in enumerate(fast.local.run(4, extended)):
    print(f"worker {rank}: {value:.3f}")


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


print("resumed after round", fast.local.run(2, save_and_resume)[0])
