#!/usr/bin/env python3
"""Sites that reach each other by a NATS server alone:  nats_test.py SOURCE BIN

The library's sites are equal to workers of one job. fast-train at three places trains one model; one that comes later takes part;
one that is killed holds nobody; mistakes have one line.
"""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

SOURCE, BIN = (pathlib.Path(path).resolve() for path in sys.argv[1:])
sys.path.insert(0, str(SOURCE / "tests/serve"))
import nats  # noqa: E402

PATIENCE_S = 120
faults = []


def check(holds, text):
    print(("ok: " if holds else "FAILED: ") + text, flush=True)
    if not holds:
        faults.append(text)


def table(path):
    draw = random.Random(1)
    with open(path, "w") as file:
        file.write("a,b,class\n")
        for _ in range(600):
            x, y = draw.gauss(0, 1), draw.gauss(0, 1)
            file.write(f"{x:.4f},{y:.4f},{int(x + y > 0)}\n")


class Site:
    def __init__(self, folder, name, url, *options, epochs=20, ranks=1):
        self.out, self.name = folder / f"run-{name}-{random.randrange(10**6)}", name
        self.log = open(f"{self.out}.txt", "w+")
        launcher = ["mpiexec", "-n", ranks] if ranks > 1 else []
        command = [*launcher, BIN / "fast-train", "--data", folder / "data.csv", "--target", "class", "--model", "mlp:16", "--batch-size", "10",
                   "--epochs", epochs, "--out", self.out, "--site", name, "--site-url", url, "--site-every", "20", *options]
        self.process = subprocess.Popen(list(map(str, command)), stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)

    def wait(self):
        return self.process.wait(PATIENCE_S)

    def text(self):
        return pathlib.Path(self.log.name).read_text()

    def await_line(self, text):
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.text():
            if time.monotonic() > deadline or self.process.poll() is not None:
                return False
            time.sleep(0.05)
        return True


def accuracy(site):
    found = re.findall(r"accuracy[^0-9]*([0-9.]+) ?%", site.text())
    return float(found[-1]) if found else None


def main():
    if not nats.is_installed():
        print("skipped: nats-server is not installed; apt-get install nats-server")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        table(folder / "data.csv")
        server = nats.Server(folder / "streams", streams=False)
        url = f"{server.url}/run"
        library = subprocess.run([BIN / "sites_nats_test"], env={**os.environ, "SITES_TEST_URL": f"{server.url}/library.with.dots"}, timeout=PATIENCE_S)
        check(library.returncode == 0, "the library's sites over NATS are equal to workers of one job")

        sites = [Site(folder, name, url, "--site-expect", "3", "--site-topology", "complete") for name in ("a", "b", "c")]
        codes = [site.wait() for site in sites]
        check(codes == [0, 0, 0], f"three sites end well: {codes}")
        check(all("takes part from exchange 0 on, with 2 other sites" in site.text() for site in sites), "each begins with two others")
        check(not any("left out" in site.text() for site in sites), "nobody is left out")

        # Sites of several ranks.
        sites = [Site(folder, name, url, "--site-expect", "3", "--site-topology", "complete", ranks=ranks)
                 for name, ranks in (("a", 2), ("b", 3), ("c", 1))]
        codes = [site.wait() for site in sites]
        check(codes == [0, 0, 0], f"sites of 2, 3 and 1 ranks end well: {codes}")
        for site, code in zip(sites, codes):
            if code != 0:
                print(site.text()[-2000:])
        check(all(site.text().count("takes part from exchange 0 on, with 2 other sites") == 1 for site in sites), "one rank of each tells of it")
        wrong = Site(folder, "a b", url, ranks=3)
        code, said = wrong.wait(), wrong.text()
        check(code != 0 and said.count("is no name") == 1, f"of several ranks, one tells of a mistake, and the status is {code}")

        # Never waiting; one comes later, one is killed.
        loose = ("--site-staleness", "inf", "--step-ms", "5")
        first = Site(folder, "a", url, *loose)
        check(first.await_line("takes part"), "a first site begins alone")
        second = Site(folder, "b", url, *loose, epochs=400)
        check(second.await_line("has taken over the weights of site a"), "a second one takes over its weights")
        second.process.send_signal(signal.SIGKILL)
        second.process.wait()
        check(first.wait() == 0, "the first one goes on when the second one is killed")

        # Mistakes.
        lasting = Site(folder, "a", url, *loose, epochs=400)
        lasting.await_line("takes part")
        for text, *options in (
            ("a site of this name takes part in the run already", "--site", "a", *loose),
            ("has another model or other options", "--site", "b", *loose, "--model", "mlp:17"),
            ("has another model or other options", "--site", "b", *loose, "--site-every", "21"),
            ("needs staleness 0", "--site", "b", *loose, "--site-algorithm", "diloco", "--site-topology", "complete"),
            ("sites come and go", "--site", "b", "--site-topology", "hypercube"),
            ("is no name", "--site", "a b"),
            ("no connection", "--site", "b", "--site-url", f"nats://127.0.0.1:{nats.free_port()}/run"),
            ("names no run", "--site", "b", "--site-url", server.url),
        ):
            wrong = Site(folder, "b", url, *options)
            code, said = wrong.wait(), wrong.text()
            lines = [line for line in said.splitlines() if text in line]
            check(code != 0 and len(lines) == 1, f"one line, and status {code}: {text}")
            if len(lines) != 1:
                print(said[-2000:])
        check(lasting.process.poll() is None, "mistakes of others disturb nobody")
        lasting.process.send_signal(signal.SIGTERM)
        check(lasting.wait() in (0, 143), "SIGTERM ends a site")
        server.stop()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
