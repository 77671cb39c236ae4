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


# Processes that Python starts import this file; they do not start workers of their own.
if __name__ == "__main__":
    mean = fast.local.run(4, main)[0]
    print(f"y = {mean['slope'][0]:.3f} x + {mean['offset'][0]:.3f}")
