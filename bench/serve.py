#!/usr/bin/env python3
"""How fast fast-serve answers, beside evaluate() in a loop of the same model (bench_serve_loop).

  bench/serve.py [--build build/release] [--model lenet] [--seconds 5] [--repeats 5] [--json FILE]

Rows: raw batches of 64 with one client and with two, also with two computing threads (--threads 2), raw single images,
JSON single images; p50 and p99 of a request,
images per second, and the ratio of images per second to the loop's. Loop and server are measured in turn, `repeats`
times, so that what disturbs one disturbs the other; figures are medians. The ratio of images per second of processor
time, loop and server alone, depends less on other programs of the machine.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import tempfile
import threading
import time

CLASSES, PIXELS = 10, 28 * 28


def loop_images_per_s(build, model, seconds):
    """Per second, and per second of processor time."""
    before = os.times()
    done = subprocess.run([build / "bin/bench_serve_loop", "--model", model, "--seconds", str(seconds)],
                          capture_output=True, text=True, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return float(done.stdout), float(done.stdout) * seconds / used


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


def client(port, path, content_type, body, until, latencies):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while time.monotonic() < until:
        began = time.perf_counter()
        connection.request("POST", path, body=body, headers={"Content-Type": content_type})
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise SystemExit(f"status {response.status}")
        latencies.append(time.perf_counter() - began)


def measured(port, path, content_type, body, images, clients, seconds):
    """p50 and p99 in milliseconds, and images per second."""
    latencies = [[] for _ in range(clients)]
    until = time.monotonic() + seconds
    began = time.perf_counter()
    threads = [threading.Thread(target=client, args=(port, path, content_type, body, until, own)) for own in latencies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    all_of_them = sorted(latency for own in latencies for latency in own)
    p99 = all_of_them[min(len(all_of_them) - 1, int(0.99 * len(all_of_them)))]
    return 1e3 * statistics.median(all_of_them), 1e3 * p99, images * len(all_of_them) / took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--max-delay", default="2ms")
    parser.add_argument("--json")
    options = parser.parse_args()
    random.seed(1)
    image = [round(random.random(), 4) for _ in range(PIXELS)]
    raw = struct.pack(f"<{PIXELS}f", *image)
    predict, octets = "/v1/models/m:predict", "application/octet-stream"
    cases = [("raw, 64 images, 1 client", 1, octets, 64 * raw, 64, 1),
             ("raw, 64 images, 2 clients", 1, octets, 64 * raw, 64, 2),
             ("raw, 64 images, 2 clients, --threads 2", 2, octets, 64 * raw, 64, 2),
             ("raw, 1 image, 1 client", 1, octets, raw, 1, 1),
             ("raw, 1 image, 16 clients", 1, octets, raw, 1, 16),
             ("JSON, 1 image, 1 client", 1, "application/json", json.dumps({"instances": [image]}), 1, 1),
             ("JSON, 64 images, 1 client", 1, "application/json", json.dumps({"instances": 64 * [image]}), 64, 1)]
    with tempfile.TemporaryDirectory() as folder:
        weights = pathlib.Path(folder) / "m.safetensors"
        subprocess.run([options.build / "bin/bench_serve_loop", "--model", options.model, "--save", weights], check=True)
        servers = {threads: Server(options.build, weights, "--max-delay", options.max_delay, "--threads", str(threads))
                   for threads in (1, 2)}
        found = {name: [] for name, *_ in cases}
        for _ in range(options.repeats):
            for name, threads, content_type, body, images, clients in cases:
                server = servers[threads]
                loop, loop_processor = loop_images_per_s(options.build, options.model, options.seconds)
                used = -server.processor_s()
                p50, p99, rate = measured(server.port, predict, content_type, body, images, clients, options.seconds)
                used += server.processor_s()
                found[name].append((p50, p99, rate, rate / loop, loop, rate * options.seconds / used / loop_processor))
        for server in servers.values():
            server.end()
    rows = []
    print(f"load at the end {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    print("| request | p50 ms | p99 ms | images/s | ratio to evaluate() | of processor time |\n|---|---|---|---|---|---|")
    for name, figures in found.items():
        p50, p99, rate, ratio, loop, of_processor = (statistics.median(column) for column in zip(*figures))
        spread = [figure[3] for figure in figures]
        print(f"| {name} | {p50:.2f} | {p99:.2f} | {rate:.0f} | {ratio:.2f} ({min(spread):.2f} to {max(spread):.2f}) "
              f"| {of_processor:.2f} |")
        rows.append({"request": name, "p50_ms": p50, "p99_ms": p99, "images_per_s": rate, "ratio": ratio,
                     "lowest_ratio": min(spread), "highest_ratio": max(spread), "loop_images_per_s": loop,
                     "processor_ratio": of_processor})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


main()
