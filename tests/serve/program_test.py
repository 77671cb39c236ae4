#!/usr/bin/env python3
"""fast-serve as a user calls it: a run is trained, served, reloaded and ended.

  program_test.py FAST_SERVE FAST_TRAIN
"""
import ctypes
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import programs
from programs import PATIENCE_S, check, wait_for

SERVE, TRAIN = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent


class Server(programs.Program):
    def __init__(self, *arguments):
        super().__init__(SERVE, *arguments, "--port", "0")
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.match(r"listening on http://127\.0\.0\.1:(\d+)$", line):
                self.port = int(found[1])
                return
        sys.exit(f"FAILED: no port: {self.stderr()}")

    def ask(self, method, path, body=None, content_type="application/json", connection=None):
        connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        headers = {"Content-Type": content_type} if body is not None else {}
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(), dict(response.getheaders())

    def version(self):
        return json.loads(self.ask("GET", "/v1/models/digits")[1])["versions"][0]["version"]


def refused(*arguments, text):
    programs.refused(SERVE, *arguments, text=text)


def train(out, *options):
    programs.train(TRAIN, out, "data", *options)


def test_refusals():
    pathlib.Path("text").write_text("no model")
    os.makedirs("empty", exist_ok=True)
    refused(text="no model is given")
    refused("m=nowhere", text="nowhere")
    refused("m=text", text="text")
    refused("m=empty", text="whole checkpoint")
    refused("m=run", "m=run", text="2 times")
    refused("m=run", "--split", "n=old:0.5,new:0.5", text="there is no model n")
    refused("m=run", "--split", "m=old:0.5", text="add up to 1")
    refused("m=run", "--max-dealy", "2ms", text='did you mean "--max-delay"?')
    refused("m=run", "--max-delay", "2", text="a time from 0ms to 10s")
    refused("m=run", "--port", "70000", text="0 to 65535")
    refused("m=run", "--listen", "192.0.2.1", text="cannot be listened on")
    refused("m=run", "--normalize", "0.5", text="MEAN:STDDEV")
    shown = subprocess.run([SERVE, "--help"], capture_output=True, text=True, check=True).stdout
    check(shown.count("  Example:") == 5 and "\nExample:" in shown and "--split" in shown, "the help")


def test_predictions_and_reload():
    with_bytes = bytes(range(256)) * 4
    image = with_bytes[:784]
    server = Server("digits=run", "--poll", "0.05")
    first = server.version()
    check(any("mlp 784-8-10" in line and first in line for line in server.lines), f"the opening lines: {server.lines}")
    status, body, _ = server.ask("POST", "/v1/models/digits:predict",
                                 json.dumps({"instances": [list(image)], "type": "u8"}))
    answer = json.loads(body)
    check(status == 200 and answer["model_version"] == first, f"a prediction: {status} {body}")
    probabilities = answer["predictions"][0]["probabilities"]
    check(abs(sum(probabilities) - 1) < 1e-6, "probabilities add up to 1")
    check(probabilities[answer["predictions"][0]["label"]] == max(probabilities), "the label")
    status, raw, headers = server.ask("POST", "/v1/models/digits:predict?type=u8&output=probabilities", image,
                                      "application/octet-stream")
    check(status == 200 and headers["X-Model-Version"] == first and headers["X-Tensor-Shape"] == "1x10", f"{headers}")
    import struct
    check(list(struct.unpack("<10f", raw)) == [struct.unpack("<f", struct.pack("<f", p))[0] for p in probabilities],
          "JSON and raw answers are the same")

    whole = pathlib.Path("next/mean-model.safetensors").read_bytes()
    pathlib.Path("run/mean-model.safetensors").write_bytes(whole[: len(whole) // 2])
    wait_for(lambda: "refused" in server.stderr(), "a half file is refused")
    check(server.version() == first, "the version before goes on")
    shutil.copy("next/mean-model.safetensors", "run/mean-model.safetensors")
    wait_for(lambda: server.version() != first, "the new model is served")
    check(server.stderr().count("refused") == 1, server.stderr())
    metrics = server.ask("GET", "/metrics")[1].decode()
    check('fast_serve_reloads_total{model="digits",result="installed"} 1' in metrics, "the metrics")
    check(server.end(signal.SIGINT) == 0, "SIGINT ends with 0")


def test_split():
    server = Server("digits=run", "digits=other", "--split", "digits=old:0.75,new:0.25")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    found = [server.ask("POST", "/v1/models/digits:predict?type=u8", bytes(784), "application/octet-stream",
                        connection)[2]["X-Model-Version"] for _ in range(40)]
    check(sorted(map(found.count, set(found))) == [10, 30], f"the shares: {[found.count(v) for v in set(found)]}")
    check(server.end() == 0, "SIGTERM ends with 0")


def test_end_in_flight():
    """A batch that never fills: all requests wait when the signal comes."""
    server = Server("digits=run", "--max-delay", "9s", "--max-batch", "1000")
    answers = []

    def ask():
        answers.append(server.ask("POST", "/v1/models/digits:predict?type=u8", bytes(784), "application/octet-stream"))

    clients = [threading.Thread(target=ask) for _ in range(20)]
    for client in clients:
        client.start()
    wait_for(lambda: b"fast_serve_waiting_samples 20\n" in server.ask("GET", "/metrics")[1], "all requests wait")
    check(not answers, "none is answered yet")
    check(server.end() == 0, "SIGTERM ends with 0")
    for client in clients:
        client.join()
    check([status for status, _, _ in answers] == [200] * 20, f"{len(answers)} are answered")


def test_grace():
    """A request that would wait for an hour is cut off."""
    server = Server("digits=run", "--max-delay", "10s", "--max-batch", "1000", "--grace", "0.2", "--threads", "1")
    lost = []

    def ask():
        try:
            server.ask("POST", "/v1/models/digits:predict?type=u8", bytes(784), "application/octet-stream")
        except (OSError, http.client.HTTPException) as error:
            lost.append(error)

    client = threading.Thread(target=ask)
    client.start()
    wait_for(lambda: b"fast_serve_waiting_samples 1\n" in server.ask("GET", "/metrics")[1], "the request waits")
    began = time.monotonic()
    check(server.end() == 1, "what is cut off gives 1")
    check(time.monotonic() - began < 8, "the end does not wait for the batch")
    client.join()
    check(len(lost) == 1 and "1 connections were cut off after 0.2 s" in server.stderr(), server.stderr())


def listener_of(server):
    """The socket that the server listens on, as one of this process; None: the system does not allow it."""
    pidfd = os.pidfd_open(server.process.pid)
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    for name in os.listdir(f"/proc/{server.process.pid}/fd"):
        copy = syscall(438, pidfd, int(name), 0)  # pidfd_getfd
        if copy < 0:
            return None
        try:
            found = socket.socket(fileno=copy)
            if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return found
            found.close()
        except OSError:
            pass
    return None


def test_lost_listener():
    server = Server("digits=run")
    listener = listener_of(server)
    if listener is None:
        print("skipped: the system does not allow to take another process's socket")
        server.end()
        return
    idle = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    server.ask("GET", "/healthz", connection=idle)
    listener.shutdown(socket.SHUT_RDWR)
    check(server.process.wait(PATIENCE_S) == 1, "a server that cannot be reached ends with 1")
    check("connections can be accepted no more" in server.stderr(), server.stderr())


def test_metrics_of_versions():
    server = Server("digits=copy", "--poll", "0.05")
    for weights in ("next", "other", "next", "other"):
        before = server.version()
        server.ask("POST", "/v1/models/digits:predict?type=u8", bytes(784), "application/octet-stream")
        shutil.copy(f"{weights}/mean-model.safetensors", "copy/mean-model.safetensors")
        wait_for(lambda: server.version() != before, "the new model is served")
        metrics = server.ask("GET", "/metrics")[1].decode()
        versions = set(re.findall(r'version="([^"]*)"', metrics))
        check(versions <= {"earlier", server.version()}, f"series of {versions}")
    check('fast_serve_instances_total{model="digits",version="earlier"} 4' in metrics, metrics)
    check(server.end() == 0, "SIGTERM ends with 0")


def test_live_run():
    """A run that has checkpoints only."""
    train("live", "--checkpoint-every", "5")
    os.remove("live/mean-model.safetensors")
    server = Server("digits=live")
    check(server.ask("POST", "/v1/models/digits:predict?type=u8", bytes(784), "application/octet-stream")[0] == 200,
          "the mean of a checkpoint")
    check(server.end() == 0, "SIGTERM ends with 0")


def main():
    with tempfile.TemporaryDirectory(prefix="fast-serve-") as folder:
        os.chdir(folder)
        subprocess.run([sys.executable, HERE / "../docs/make_data.py", "idx", "data"], check=True)
        train("run")
        train("next", "--seed", "2")
        train("other", "--seed", "3")
        shutil.copytree("run", "copy")
        tests = [test_refusals, test_predictions_and_reload, test_split, test_end_in_flight, test_grace,
                 test_lost_listener, test_metrics_of_versions, test_live_run]
        status = programs.run_all([(test, ()) for test in tests])
        os.chdir("/")
    return status


sys.exit(main())
