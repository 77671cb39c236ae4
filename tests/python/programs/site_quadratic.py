"""A site that goes down a quadratic: site_quadratic.py NAME URL FOLDER OPTIONS. OPTIONS, as JSON: those of fast.Site, and
"steps" and "seed". Each rank writes its weights before the first step and after each one to FOLDER/NAME.RANK.npy."""
import json
import sys

import fast_decentralized as fast
import numpy as np

ELEMENTS, RATE = 700, 0.1


def quadratic(name, seed):
    """Where a site would begin alone, its curvatures and its minimum."""
    draw = np.random.default_rng([seed, ord(name[0])])
    return draw.normal(size=ELEMENTS), draw.uniform(0.5, 2, ELEMENTS), draw.normal(size=ELEMENTS)


if __name__ == "__main__":
    name, url, folder, options = *sys.argv[1:4], json.loads(sys.argv[4])
    steps, seed = options.pop("steps"), options.pop("seed")
    x, curvature, minimum = quadratic(name, seed)
    # Minima of ranks differ by what has the sum 0.
    minimum = minimum + 0.5 * (fast.rank() - (fast.size() - 1) / 2)
    algorithm = "allreduce" if fast.size() > 1 else "none"
    topology = {"topology": "complete"} if fast.size() > 1 else {}
    with fast.Worker({"x": x}, algorithm=algorithm, site=fast.Site(name, url, **options), **topology) as worker:
        path = [x.copy()]
        for _ in range(steps):
            with worker.round():
                x -= RATE * curvature * (x - minimum)
            path.append(x.copy())
    np.save(f"{folder}/{name}.{fast.rank()}.npy", path)
