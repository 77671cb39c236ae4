#!/usr/bin/env python3
"""Three sites of 4, 2 and 1 workers against one job of 7: the test accuracy, over seeds.

  sites_accuracy.py BIN OUT [--seeds 5] [--every 10] [--passes 3]

BIN is the folder of the built programs. LeNet on the digits, scaled to 28 x 28; all workers make the same number of steps, of 10
samples each. Results are in OUT/results.jsonl: what is there is not run again. Needs nats-server and mpiexec.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/serve"))
import nats  # noqa: E402

SITES = {"a": 4, "b": 2, "c": 1}
KINDS = {"one job of 7": (), "sites, waiting": ("0", "identity"), "sites, int8": ("0", "int8"), "sites, never waiting": ("inf", "identity")}


def train(given, out, workers, passes, seed, *more):
    """A pass over the samples takes `workers` times as many steps in a job of one worker."""
    command = ["mpiexec", "-n", workers, given.bin / "fast-train", "--data", "digits", "--resize", "28x28", "--samples", 1400, "--model", "lenet",
               "--batch-size", 10, "--algorithm", "allreduce", "--epochs", passes * workers, "--lr", 0.01, "--lr-schedule", "constant", "--warmup", 0,
               "--seed", seed, "--quiet", "--summary-json", out, *more]
    with open(f"{out}.txt", "w") as log:
        return subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                env={**os.environ, "UCX_NET_DEVICES": "lo"})


def accuracy(process, out):
    if process.wait() != 0:
        sys.exit(f"sites_accuracy.py: {out}.txt: {pathlib.Path(f'{out}.txt').read_text()[-300:]}")
    return 100 * json.loads(out.read_text())["test_accuracy_mean_model"]


def run(given, server, kind, seed):
    """The accuracy of each site's mean model."""
    if not KINDS[kind]:
        out = given.out / f"job-{seed}.json"
        return [accuracy(train(given, out, sum(SITES.values()), given.passes, seed), out)]
    staleness, codec = KINDS[kind]
    outs = [given.out / f"{name}-{staleness}-{codec}-{seed}.json" for name in SITES]
    url = f"{server.url}/run-{staleness}-{codec}-{seed}"
    started = [train(given, out, workers, given.passes, seed, "--site", name, "--site-url", url, "--site-every", given.every, "--site-samples",
                     workers, "--site-expect", len(SITES), "--site-staleness", staleness, "--site-codec", codec,
                     "--step-ms", 40 if staleness == "inf" else 0)
               for (name, workers), out in zip(SITES.items(), outs)]
    return [accuracy(process, out) for process, out in zip(started, outs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--passes", type=int, default=3)
    given = parser.parse_args()
    if not nats.is_installed():
        sys.exit("sites_accuracy.py: nats-server is not installed")
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "results.jsonl"
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    server = nats.Server(given.out / "streams", streams=False)
    for seed in range(1, given.seeds + 1):
        for kind in KINDS:
            setting = {"kind": kind, "seed": seed, "every": given.every, "passes": given.passes}
            if any(setting.items() <= one.items() for one in done):
                continue
            done.append({**setting, "accuracies": run(given, server, kind, seed)})
            with open(file, "a") as out:
                out.write(json.dumps(done[-1]) + "\n")
    server.stop()
    for kind in KINDS:
        means = [statistics.mean(one["accuracies"]) for one in done
                 if (one["kind"], one["every"], one["passes"]) == (kind, given.every, given.passes)]
        spread = statistics.stdev(means) if len(means) > 1 else 0
        print(f"{kind:22} {statistics.mean(means):6.2f} % ± {spread:.2f} over {len(means)} seeds")


if __name__ == "__main__":
    main()
