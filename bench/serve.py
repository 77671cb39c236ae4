#!/usr/bin/env python3
"""How fast fast-serve answers, beside evaluate() in a loop of the same model (bench_serve_loop) and ONNX Runtime in a loop.

  bench/serve.py [--build build/release] [--model lenet] [--seconds 5] [--repeats 5] [--json FILE]

Prints a table in Markdown. Rows: evaluate() in one loop, and in two processes at once; raw batches with one client and with
two, also with two computing threads (--threads 2); raw single images; JSON; ONNX Runtime's Python loop with one thread,
with two, and in two processes. Rows without a number of images have 64 in a request or batch. p50 and p99 of a request or
of a batch, images per second, and two ratios of images per second: to one loop, and to as many loops at once as the row has
computing threads. Loops and server are measured in turn, `repeats` times, so that what disturbs one disturbs the other;
figures are medians. The last column compares images per second of processor time with that of as many loops: it depends
less on other programs.

ONNX Runtime comes from PyPI into a virtual environment (--venv). It runs the file of fast-model export; its logits and
those of fast-serve agree to 1e-5, or the benchmark fails. Without PyPI, its rows have the reason.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import typing

PIXELS, BATCH = 28 * 28, 64
PREDICT, OCTETS = "/v1/models/m:predict", "application/octet-stream"
ONNX_LOOP = pathlib.Path(__file__).resolve().parent / "serve_onnx.py"
HEAD = ("| request | p50 ms | p99 ms | images/s | ÷ one loop | ÷ as many loops | of processor time |\n"
        "|---|---|---|---|---|---|---|")


class Skipped(Exception):
    pass


class Sample(typing.NamedTuple):
    """One measurement of a row."""
    times_ms: list  # of each request or batch
    images_per_s: float
    images_per_processor_s: float


class Case(typing.NamedTuple):
    name: str
    threads: int  # that compute
    measure: typing.Callable  # seconds -> Sample


def loops(command, count):
    """`count` processes at once that print what bench_serve_loop prints."""
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    outputs = [process.communicate()[0].split() for process in running]
    if any(process.returncode for process in running):
        raise SystemExit(f"{command[0]} has failed")
    times = [float(ms) for output in outputs for ms in output[2:]]
    processor_s = sum(float(output[1]) for output in outputs)
    return Sample(times, sum(float(output[0]) for output in outputs), BATCH * len(times) / processor_s)


class Server:
    def __init__(self, build, weights, *options):
        self.process = subprocess.Popen([build / "bin/fast-serve", f"m={weights}", "--port", "0", *options],
                                        stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("listening"):
                self.port = int(line.rsplit(":", 1)[1])
                return
        raise SystemExit("fast-serve has not started")

    def processor_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        self.process.wait()


def answer(connection, content_type, body):
    connection.request("POST", PREDICT, body=body, headers={"Content-Type": content_type})
    response = connection.getresponse()
    found = response.read()
    if response.status != 200:
        raise SystemExit(f"status {response.status}")
    return found


def client(port, content_type, body, until):
    """The milliseconds of each request."""
    connection, found = http.client.HTTPConnection("127.0.0.1", port), []
    while time.monotonic() < until:
        began = time.perf_counter()
        answer(connection, content_type, body)
        found.append(1e3 * (time.perf_counter() - began))
    return found


def served(server, content_type, body, images, clients, seconds):
    used, began = -server.processor_s(), time.perf_counter()
    until = time.monotonic() + seconds
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        each = list(pool.map(lambda _: client(server.port, content_type, body, until), range(clients)))
    took = time.perf_counter() - began
    used += server.processor_s()
    times = [ms for own in each for ms in own]
    return Sample(times, images * len(times) / took, images * len(times) / used if used else float("nan"))


class OnnxRuntime:
    """A virtual environment with ONNX Runtime, and what its loop reads: a model, a batch and the logits of fast-serve."""
    def __init__(self, build, venv, weights, batch, logits):
        self.python = install(venv)
        model = weights.with_suffix(".onnx")
        subprocess.run([build / "bin/fast-model", "export", weights, "--to", model], stdout=subprocess.DEVNULL, check=True)
        files = [weights.with_suffix(suffix) for suffix in (".batch", ".logits")]
        for file, values in zip(files, (batch, logits)):
            file.write_bytes(values)
        self.command = [self.python, ONNX_LOOP, model, *files]
        subprocess.run(self.command, check=True)  # prints its version and how far logits agree

    def cases(self):
        def case(name, threads, count):
            options = ["--threads", str(threads // count)]
            return Case(name, threads, lambda s: loops([*self.command, *options, "--seconds", str(s)], count))
        return [case(name, threads, count) for name, threads, count in ONNX_ROWS]


ONNX_ROWS = [("ONNX, 1 thread", 1, 1), ("ONNX, 2 threads", 2, 1),
             ("ONNX, 2 processes", 2, 2)]


def install(venv):
    """The Python of a virtual environment with ONNX Runtime. Raises Skipped."""
    python = venv.absolute() / "bin/python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "--retries", "1", "--timeout", "20"]
    try:
        if not python.exists():
            called([sys.executable, "-m", "venv", venv])
        called([*pip, "install", "onnxruntime", "numpy"])
    except subprocess.CalledProcessError as error:
        raise Skipped((error.stdout.strip().splitlines() or ["no output"])[-1]) from None
    return python


def called(command):
    subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)


def requests(servers, images):
    """The cases of fast-serve. `servers` has one for each number of threads."""
    raw = struct.pack(f"<{BATCH * PIXELS}f", *(value for image in images for value in image))
    one, texts = raw[:4 * PIXELS], [json.dumps({"instances": some}) for some in (images[:1], images)]
    rows = [("raw, 1 client", 1, OCTETS, raw, BATCH, 1),
            ("raw, 2 clients", 1, OCTETS, raw, BATCH, 2),
            ("raw, 2 threads", 2, OCTETS, raw, BATCH, 2),
            ("raw, 1 image, 1 client", 1, OCTETS, one, 1, 1),
            ("raw, 1 image, 16 clients", 1, OCTETS, one, 1, 16),
            ("JSON, 1 image, 1 client", 1, "application/json", texts[0], 1, 1),
            ("JSON, 1 client", 1, "application/json", texts[1], BATCH, 1)]
    return raw, [Case(name, threads, lambda s, server=servers[threads], rest=rest: served(server, *rest, s))
                 for name, threads, *rest in rows]


def figures(sample, one, same):
    """`one`: one loop; `same`: as many loops at once as the sample has computing threads."""
    times = sorted(sample.times_ms)
    return {"p50_ms": statistics.median(times), "p99_ms": times[min(len(times) - 1, int(0.99 * len(times)))],
            "images_per_s": sample.images_per_s, "to_one_loop": sample.images_per_s / one.images_per_s,
            "to_as_many_loops": sample.images_per_s / same.images_per_s,
            "processor_ratio": sample.images_per_processor_s / same.images_per_processor_s}


def measured(cases, loop, seconds, repeats):
    """By row, the figures of each repeat. `loop`(count) measures evaluate(); its rows come first."""
    found = {"`evaluate()`, 1 loop": [], "`evaluate()`, 2 loops": []}
    one_row, two_row = found.values()
    for _ in range(repeats):
        for case in cases:
            one = two = loop(1)
            one_row.append(figures(one, one, one))
            if case.threads == 2:
                two = loop(2)
                two_row.append(figures(two, one, two))
            found.setdefault(case.name, []).append(figures(case.measure(seconds), one, two))
    return found


def row(name, all_figures):
    """Medians, and the lowest and highest ratio."""
    columns = {key: [each[key] for each in all_figures] for key in all_figures[0]}
    return {"request": name, **{key: statistics.median(values) for key, values in columns.items()},
            **{f"{end.__name__}_{key}": end(columns[key]) for key in ("to_one_loop", "to_as_many_loops") for end in (min, max)}}


def line(row):
    def ratio(key):
        low, high = row[f"min_{key}"], row[f"max_{key}"]
        return f"{row[key]:.2f} ({low:.2f} to {high:.2f})" if high >= 0.01 else "below 0.01"
    if "skipped" in row:
        return f"| {row['request']} | skipped: {row['skipped']} | | | | | |"
    return (f"| {row['request']} | {row['p50_ms']:.2f} | {row['p99_ms']:.2f} | {row['images_per_s']:.0f} "
            f"| {ratio('to_one_loop')} | {ratio('to_as_many_loops')} | {row['processor_ratio']:.2f} |")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--model", default="lenet", help="one for 28x28 images (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--max-delay", default="2ms")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path("build/serving/venv"))
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def rows_of(options, weights, servers):
    random.seed(1)
    images = [[round(random.random(), 4) for _ in range(PIXELS)] for _ in range(BATCH)]
    loop = [options.build / "bin/bench_serve_loop", "--model", options.model, "--seconds", str(options.seconds)]
    batch, cases = requests(servers, images)
    skipped = []
    try:
        logits = answer(http.client.HTTPConnection("127.0.0.1", servers[1].port), OCTETS, batch)
        cases += OnnxRuntime(options.build, options.venv, weights, batch, logits).cases()
    except Skipped as why:
        skipped = [{"request": name, "skipped": str(why)} for name, *_ in ONNX_ROWS]
    found = measured(cases, lambda count: loops(loop, count), options.seconds, options.repeats)
    return [row(name, all_figures) for name, all_figures in found.items()] + skipped


def main():
    options = parsed()
    with tempfile.TemporaryDirectory() as folder:
        weights = pathlib.Path(folder) / "m.safetensors"
        subprocess.run([options.build / "bin/bench_serve_loop", "--model", options.model, "--save", weights], check=True)
        servers = {threads: Server(options.build, weights, "--max-delay", options.max_delay, "--threads", str(threads))
                   for threads in (1, 2)}
        try:
            rows = rows_of(options, weights, servers)
        finally:
            for server in servers.values():
                server.end()
    print(f"load at the end {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    print(HEAD, *map(line, rows), sep="\n")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
