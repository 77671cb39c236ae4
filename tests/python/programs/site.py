"""A site: site.py NAME URL ROUNDS [OPTION=VALUE...]. Prints its first weight after each exchange, then what it has done."""
import sys

import fast_decentralized as fast
import numpy as np

name, url, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = {key: int(value) if value.isdigit() else float(value) if value == "inf" else value
           for key, value in (option.split("=") for option in sys.argv[4:])}
x = np.zeros(1000)
folder = options.pop("load", None)
site = fast.Site(name, url, every=options.pop("every", 5), **options)
goal = float(ord(name[0]) - ord("a"))
with fast.Worker({"x": x}, algorithm="none", site=site) as worker:
    begun = worker.rounds
    print(f"site {name} begins in round {begun} at {x[0]:.6f}", flush=True)
    if folder is not None:
        print(f"site {name} has loaded {worker.load(folder)}", flush=True)
    while worker.rounds < rounds:
        with worker.round():
            x -= 0.1 * (x - goal)
    if folder is not None:
        worker.save(folder, worker.rounds)
    print(f"site {name} ends at {x[0]!r} after {worker.site_stats['exchanges']} exchanges, {worker.site_stats['left_out']} left out")
