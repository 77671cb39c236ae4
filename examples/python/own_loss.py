"""A loss and a measure of one's own: the quantile 3/4 by the pinball loss.   python examples/python/own_loss.py"""
import fast_decentralized as fast
import numpy as np

VALUES = np.random.default_rng(1).uniform(size=200)


def main():
    mine = VALUES[fast.rank()::fast.size()]
    metrics = fast.observe.Metrics("run")
    model = {"quantile": np.zeros(1)}
    worker = fast.Worker(model, "complete", algorithm="atc", observer=metrics)
    for t in range(1000):
        with worker.round() as this:
            above = mine - model["quantile"]
            this.loss = np.mean(np.maximum(0.75 * above, -0.25 * above))
            model["quantile"] -= 0.05 * np.mean(np.where(above > 0, -0.75, 0.25))
    worker.await_finish()
    mean = worker.mean_model()["quantile"][0]
    metrics.epoch(samples=1000 * len(mine), loss=this.loss, test_covered=np.mean(VALUES <= mean))
    return mean


if __name__ == "__main__":
    mean = fast.local.run(4, main)[0]
    print(f"{100 * np.mean(VALUES <= mean):.0f} % of the values are up to {mean:.2f}")
