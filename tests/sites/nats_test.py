#!/usr/bin/env python3
"""Sites that reach each other by a NATS server alone:  nats_test.py SOURCE BIN

The library's sites are equal to workers of one job. fast-train at three places trains one model; one that comes later takes part;
one that is killed holds nobody; mistakes have one line. fast-sites looks at them.
"""
import importlib.util
import json
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

DEPLOYED = SOURCE / "deploy/sites"

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
    def __init__(self, folder, name, url, *options, epochs=20, ranks=1, launcher=("mpiexec", "-n")):
        self.out, self.name = folder / f"run-{name}-{random.randrange(10**6)}", name
        self.log = open(f"{self.out}.txt", "w+")
        start = [*launcher, ranks] if ranks > 1 else []
        command = [*start, BIN / "fast-train", "--data", folder / "data.csv", "--target", "class", "--model", "mlp:16", "--batch-size", "10",
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


def fast_sites(*words, environment=None):
    """Status, standard output, and lines of standard error."""
    done = subprocess.run(list(map(str, [BIN / "fast-sites", *words])), capture_output=True, text=True, timeout=PATIENCE_S,
                          env={**os.environ, **(environment or {})})
    return done.returncode, done.stdout, done.stderr.splitlines()


def refuses(expected, text, *words, environment=None):
    code, _, lines = fast_sites(*words, environment=environment)
    check(code == expected and len(lines) == 1 and text in lines[0], f"fast-sites {words[0]}: one line, status {expected}: {text}")
    if code != expected or len(lines) != 1 or text not in lines[0]:
        print(code, lines)


def tensors_in(path):
    """{name: (dtype, shape)} of a safetensors file, and its metadata."""
    content = pathlib.Path(path).read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    return {name: (tensor["dtype"], tensor["shape"]) for name, tensor in header.items()}, metadata, content[8 + length:]


def look_from_outside(folder, server):
    """The three commands of docs/how-to/sites.md, and mistakes."""
    url = f"{server.url}/run7"
    refuses(1, 'no site of the run "run7" is there', "status", url)
    code, said, lines = fast_sites("status", url, "--json")
    check(code == 1 and json.loads(said)["sites"] == [] and len(lines) == 1, f"as JSON, no site: {said!r} {lines}")
    refuses(1, "0 of 1 sites take part after 0.5 s", "wait", url, "--sites", "1", "--timeout", "0.5")
    refuses(1, 'no site of the run "run7" is there', "fetch", url, "--out", folder / "m.safetensors")
    loose = ("--site-staleness", "inf", "--step-ms", "2", "--site-topology", "complete")
    sites = [Site(folder, name, url, *loose, epochs=4000) for name in ("berlin", "oslo")]
    code, said, lines = fast_sites("wait", url, "--sites", 2, "--round", 60, "--timeout", PATIENCE_S)
    check((code, said, lines) == (0, "", []), f"wait ends well and says nothing: {code} {lines}")
    code, said, lines = fast_sites("status", url)
    rows = said.splitlines()
    check(code == 0 and not lines and len(rows) == 4, f"status has two sites: {said!r} {lines}")
    check(all(re.fullmatch(rf"{name} +\d+ +\d+  trains +1  \d+\.\d s ago", row) for name, row in zip(("berlin", "oslo"), rows[1:3])),
          f"a line for each: {rows}")
    check(rows[-1].startswith("all: 82 f32 parameters"), f"what they train: {rows[-1]}")
    code, said, lines = fast_sites("status", url, "--json")
    found = json.loads(said)
    check(code == 0 and [site["name"] for site in found["sites"]] == ["berlin", "oslo"] and found["about"] == found["sites"][0]["about"]
          and all(site["state"] == "trains" and site["round"] >= 60 and site["samples"] == 1 for site in found["sites"]), f"as JSON: {found}")

    out = folder / "now.safetensors"
    code, said, lines = fast_sites("fetch", url, "--out", out)
    check(code == 0 and not lines and re.search(r"now.safetensors: site (berlin|oslo), round \d+, 4 tensors, 82 elements", said), f"fetch: {said.strip()} {lines}")
    tensors, metadata, data = tensors_in(out)
    check(sorted(shape for _, shape in tensors.values()) == [[2], [2, 16], [16], [16, 2]], f"the model's tensors: {tensors}")
    check(len(data) == 4 * 82 and metadata["fast.run"] == "run7", f"the file is whole: {len(data)} {metadata}")
    shown = subprocess.run([BIN / "fast-model", "info", out], capture_output=True, text=True, timeout=PATIENCE_S)
    check(shown.returncode == 0 and "4 tensors, 82 elements" in shown.stdout, "fast-model reads it")
    code, said, lines = fast_sites("fetch", url, "--out", out, "--site", "oslo")
    check(code == 0 and "site oslo" in said, f"fetch of a site: {said.strip()} {lines}")

    file = ("--out", folder / "m.safetensors")
    refuses(1, "site rome is not there; there are: berlin, oslo", "fetch", url, *file, "--site", "rome")
    refuses(2, "is no name", "fetch", url, *file, "--site", "a b")
    refuses(2, "its ending names no format", "fetch", url, "--out", folder / "m.npz")
    refuses(1, "cannot be written", "fetch", url, "--out", folder / "nowhere/m.safetensors")
    refuses(1, "cannot be written", "fetch", url, "--out", "/proc/m.safetensors")
    refuses(1, "2 of 3 sites take part", "wait", url, "--sites", 3, "--timeout", 5)
    refuses(1, "0 of 2 sites have made 1000000000 rounds", "wait", url, "--sites", 2, "--round", 10**9, "--timeout", 5)
    refuses(1, 'no site of the run "run8" is there', "status", f"{server.url}/run8")
    refuses(2, "names no run", "status", server.url)
    refuses(2, "is not the address of a stream", "status", "http://127.0.0.1/run7")
    refuses(1, "no connection", "status", f"nats://127.0.0.1:{nats.free_port()}/run7")
    refuses(2, "cannot be used", "status", url, "--credentials", folder / "none.creds")
    check(not (folder / "m.safetensors").exists() and not list(folder.glob("*.tmp-*")), "what fails leaves no file")
    check(all(site.process.poll() is None and "onlooker" not in site.text() for site in sites), "sites do not hear of it")

    sites[0].process.send_signal(signal.SIGKILL)
    sites[0].process.wait()
    time.sleep(2.5)  # of silence
    code, said, lines = fast_sites("status", url)
    check(code == 0 and said.splitlines()[-1] == "not there any more: berlin", f"the dead site is named: {said!r}")
    sites[1].process.send_signal(signal.SIGTERM)
    sites[1].wait()


def look_with_a_login(folder):
    """The onlooker's user of deploy/sites may read a model, and sends nothing else."""
    users = folder / "users"
    subprocess.run([DEPLOYED / "make_sites.py", users, "run7", "berlin", "me:onlooker"], check=True)
    port = nats.free_port()
    (users / "server.conf").write_text(f'listen: "127.0.0.1:{port}"\ninclude sites.conf\n')
    server = nats.Server(folder / "streams", streams=False, more=("-c", users / "server.conf"), port=port)
    url = f"{server.url}/run7"
    refuses(1, "the server wants to know who logs in", "status", url)
    os.environ["FAST_NATS_NKEY_FILE"] = str(users / "berlin.nkey")
    site = Site(folder, "berlin", url, "--site-staleness", "inf", "--step-ms", "2", epochs=4000)
    del os.environ["FAST_NATS_NKEY_FILE"]
    me = {"FAST_NATS_NKEY_FILE": str(users / "me.nkey")}
    code, _, lines = fast_sites("wait", url, "--sites", 1, "--round", 20, "--timeout", PATIENCE_S, environment=me)
    check(code == 0 and not lines, f"an onlooker with a login waits: {lines}")
    code, said, lines = fast_sites("fetch", url, "--out", folder / "login.safetensors", environment=me)
    check(code == 0 and not lines and "site berlin" in said, f"an onlooker with a login fetches: {said.strip()} {lines}")
    site.process.send_signal(signal.SIGTERM)
    site.wait()
    server.stop()


def pid_of_rank(site, rank):
    """Of the fast-train that has this rank."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"fast-train") and str(site.out).encode() in words and f"PMI_RANK={rank}".encode() in variables:
            return int(entry.name)
    return None


def small_payloads(folder, loose):
    """A server that takes messages of 32 KiB only would lose weights without a word."""
    (folder / "small.conf").write_text("max_payload: 32KB\n")
    small = nats.Server(folder / "streams", streams=False, more=("--config", folder / "small.conf"))
    site = Site(folder, "a", f"{small.url}/run", *loose, ranks=2)
    code, said = site.wait(), site.text()
    check(code != 0 and said.count("takes messages of at most 32768 bytes, and sites send up to 66560; set its max_payload") == 1,
          f"a small max_payload is refused in one line, with status {code}")
    usual = nats.Server(folder / "streams", streams=False)
    site = Site(folder, "a", f"{usual.url},{small.url}/run", *loose, epochs=4000)
    check(site.await_line("takes part"), "a site begins at the first of two servers")
    usual.kill()
    code, said = site.wait(), site.text()
    check(code != 0 and said.count("set its max_payload") == 1, f"it ends with one line at the second, whose max_payload is small: {code}")
    small.stop()


def lost_gateway(folder, url, loose):
    """A rank of a site is killed, once the one that has the connection. The others go on for it."""
    other = Site(folder, "a", url, *loose, epochs=4000)
    other.await_line("takes part")
    site = Site(folder, "b", url, *loose, epochs=200, ranks=3, launcher=(BIN / "fastrun", "--watch", "-n"))
    check(site.await_line("takes part from exchange"), "a site of three ranks takes part")
    watched = re.compile(r"fastrun:   site a: seen \d\.\d s ago, delay \d+ ms, round \d+, age -?\d+\n")
    deadline = time.monotonic() + PATIENCE_S
    while not watched.search(site.text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    check(watched.search(site.text()), "fastrun --watch has a line of the other site")
    os.kill(pid_of_rank(site, 0), signal.SIGKILL)
    check(site.await_line("another rank of this job goes on for the lost one"), "its next rank goes on when the first is killed")
    check(other.await_line("site b is not there"), "the other site notices")
    deadline = time.monotonic() + PATIENCE_S
    while other.text().count("site b takes part") < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    check(other.text().count("site b takes part") == 2, "and hears of it again")
    code = site.wait()
    check(code == 0, f"the site ends with status {code}")
    if code != 0:
        print(site.text()[-3000:])
    other.process.send_signal(signal.SIGTERM)
    other.wait()


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

        sites = [Site(folder, name, url, "--site-expect", "3", "--site-topology", "complete", "--trace") for name in ("a", "b", "c")]
        codes = [site.wait() for site in sites]
        check(codes == [0, 0, 0], f"three sites end well: {codes}")
        check(all("takes part from exchange 0 on, with 2 other sites" in site.text() for site in sites), "each begins with two others")
        check(not any("is left out" in site.text() for site in sites), "nobody is left out")
        check(all(re.search(r"exchanges between sites +\d{2}, \d{2} publications read, 0 left out", site.text()) for site in sites),
              "the closing table has the exchanges")
        lines = [json.loads(line) for line in (sites[0].out / "metrics.jsonl").read_text().splitlines()]
        last = [line for line in lines if line["kind"] == "epoch"][-1]["site"]
        check(last["exchanges"] >= 10 and last["left_out"] == 0 and last["bytes_received"] > 0, f"metrics have them: {last}")

        merged = subprocess.run([BIN / "fast-trace", "merge", *(site.out for site in sites)], capture_output=True, text=True, timeout=PATIENCE_S)
        timeline = sites[0].out / "traces" / "sites.pftrace"
        found = re.search(re.escape(str(timeline)) + r": 3 workers, \d+ events, (\d+) reads with their publications\n", merged.stdout)
        read = sum(int(re.search(r"exchanges between sites +\d+, (\d+)", site.text())[1]) for site in sites)
        check(merged.returncode == 0 and found and int(found[1]) == read and "not known" not in merged.stdout,
              f"their timelines have an arrow for each of {read} reads: {merged.stdout}{merged.stderr}")

        if importlib.util.find_spec("perfetto"):
            names = [f"{site.name} worker 0" for site in sites]
            checked = subprocess.run([sys.executable, SOURCE / "tests/observe/check_trace.py", timeline, *names], timeout=PATIENCE_S)
            check(checked.returncode == 0, "Perfetto's schema reads them")

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

        lost_gateway(folder, url, loose)
        small_payloads(folder, loose)

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
        look_from_outside(folder, server)
        look_with_a_login(folder)
        server.stop()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
