"""A site that goes down a quadratic: site_quadratic.py NAME URL FOLDER OPTIONS. OPTIONS, as JSON: those of fast.Site, and
"steps" and "seed". Each rank writes its weights before the first step and after each one to FOLDER/NAME.RANK.npy.

"dies": after so many steps, its process ends without a word. "joins": it comes later. "meets": it goes on, slowly, until the one
that joins is there, and makes the steps from then on. That one writes the rounds with which it begins to FOLDER/begins."""
import json
import os
import pathlib
import sys
import time

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
    dies, joins, meets = options.pop("dies", None), options.pop("joins", False), options.pop("meets", False)
    begins = pathlib.Path(folder) / "begins"
    x, curvature, minimum = quadratic(name, seed)
    # Minima of ranks differ by what has the sum 0.
    minimum = minimum + 0.5 * (fast.rank() - (fast.size() - 1) / 2)
    algorithm = "allreduce" if fast.size() > 1 else "none"
    topology = {"topology": "complete"} if fast.size() > 1 else {}
    with fast.Worker({"x": x}, algorithm=algorithm, site=fast.Site(name, url, **options), **topology) as worker:
        path = [x.copy()]
        if meets:
            begins.with_name(f"{name}.trains").touch()
        if joins:
            begins.with_suffix(".new").write_text(str(worker.rounds))
            begins.with_suffix(".new").rename(begins)
        while steps > 0:
            if meets and not begins.exists():
                time.sleep(0.02)
            else:
                steps -= 1
            with worker.round():
                x -= RATE * curvature * (x - minimum)
            path.append(x.copy())
            if dies == len(path) - 1:
                np.save(f"{folder}/{name}.{fast.rank()}.npy", path)
                time.sleep(1.5)  # the others read its last message
                os._exit(0)
    np.save(f"{folder}/{name}.{fast.rank()}.npy", path)
