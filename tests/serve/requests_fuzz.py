#!/usr/bin/env python3
"""Random requests to fast-serve over the loopback. Each answer is compared with what a second implementation expects.

  requests_fuzz.py FAST_SERVE [--requests 1000000] [--seed 1] [--broken 0.1]

Connections are kept and have several requests on the way. The share `--broken` of the requests breaks the form of HTTP, on
connections of their own. A request that is right must be answered with the model's prediction, any other one with a status
from 400 to 499 and a reason (501 for unknown transfer encodings). Prints the first ten faults, and figures.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import re
import socket
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy here; apt-get install python3-numpy")
    sys.exit(77)

import programs
import random_requests
import reference

CONNECTIONS, ON_THE_WAY = 16, 8
MOST_INSTANCES, MOST_BYTES = 8, 20000
PATIENCE_S = 60
MOST_GROWTH_KIB = 16 << 10
LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n")


class Answer:
    def __init__(self, status, head, body):
        self.status, self.head, self.body = status, head, body
        self.is_last = b"\r\nConnection: close\r\n" in head

    def __str__(self):
        return f"{self.status} {self.body[:200]!r}"


class Connection:
    """`number` chooses the client's address: one address has few ports for connections that were closed lately."""

    def __init__(self, port, number=0):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S, (f"127.0.{number // 200 % 200}.{number % 200 + 1}", 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""

    def more(self):
        try:
            found = self.socket.recv(1 << 16)
        except ConnectionResetError:
            found = b""
        self.data += found
        return found

    def answer(self, has_body=True):
        """None: the server has closed the connection."""
        while (end := self.data.find(b"\r\n\r\n")) < 0:
            if not self.more():
                return None
        head, status = self.data[:end + 2], int(self.data[9:12])
        self.data = self.data[end + 4:]
        if status == 100:
            return self.answer(has_body)
        length = LENGTH.search(head)
        size = int(length[1]) if has_body and length else 0
        while len(self.data) < size:
            if not self.more():
                return None
        body, self.data = self.data[:size], self.data[size:]
        return Answer(status, head, body)

    def converse(self, data):
        """All answers until the server closes the connection."""
        try:
            self.socket.sendall(data)
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server has answered and closed already
        answers = []
        while (answer := self.answer()) is not None:
            answers.append(answer)
        self.socket.close()
        return answers


class Server(programs.Program):
    def __init__(self, program, model):
        super().__init__(program, f"m={model}", "--port", "0", "--max-delay", "200us", "--max-instances", str(MOST_INSTANCES),
                         "--max-request-bytes", str(MOST_BYTES), "--connections", "64")
        for line in self.process.stdout:
            if line.startswith("listening"):
                self.port = int(line.rsplit(":", 1)[1])
                return
        sys.exit(f"FAILED: fast-serve has not started: {self.stderr()}")

    def resident_kib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+)", status)[1])

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Checker:
    def __init__(self, model):
        self.model = model
        self.predictions, self.statuses, self.faults = [], {}, []

    def fault(self, what, sent, answer):
        self.faults.append(what)
        if len(self.faults) <= 10:
            print(f"FAILED: {what}\n  sent: {sent[:3000]!r}\n  answer: {answer}", flush=True)

    def count(self, status):
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def check_reason(self, answer, has_body, sent):
        """Of an answer from 400."""
        good = b"\r\nContent-Type: application/json\r\n" in answer.head
        if has_body and good:
            try:
                good = len(json.loads(answer.body)["error"]) > 3
            except (ValueError, KeyError, TypeError):
                good = False
        if not good:
            self.fault("a refusal without a reason", sent, answer)

    def check(self, request, verdict, answer, sent):
        """Of a request of good form."""
        if answer is None:
            return self.fault("no answer", sent, answer)
        self.count(answer.status)
        if answer.is_last != verdict.ends:  # requests behind it would have no answer
            self.fault(f"the connection {'ends' if answer.is_last else 'goes on'}", sent, answer)
        if answer.status >= 400:
            self.check_reason(answer, request.method != "HEAD", sent)
        if verdict.statuses:
            if answer.status not in verdict.statuses:
                self.fault(f"status {answer.status}; {sorted(verdict.statuses)} is right", sent, answer)
        elif verdict.prediction is None:
            if answer.status != 200:
                self.fault(f"status {answer.status} in place of 200", sent, answer)
        elif answer.status not in (200, 422):
            self.fault(f"status {answer.status} for a request that is right", sent, answer)
        else:
            self.predictions.append((verdict.prediction, answer, sent))

    def check_broken(self, answers, sent):
        """A request that is damaged may be right again. Its prediction is then that of what was sent."""
        self.count(answers[0].status if answers else "no answer")
        if not answers and b"\n" in sent[:8000]:
            self.fault("no answer", sent, None)
        for answer in answers:
            unknown_encoding = answer.status == 501 and is_chunked(sent)
            if answer.status >= 400:
                self.check_reason(answer, b"HEAD" not in sent[:8], sent)
            if answer.status != 200 and not 400 <= answer.status < 500 and not unknown_encoding:
                self.fault(f"status {answer.status}", sent, answer)
            if answer.status == 200 and b"\r\nX-Model-Version: " in answer.head and not is_chunked(sent):
                if not any(self.is_prediction(answer, reading) for reading in readings(sent, answer)):
                    self.fault("a prediction of something else than what was sent", sent, answer)

    def is_prediction(self, answer, reading):
        return wrong_prediction(reading, answer, *self.model.logits(reading.inputs)) is None

    def check_predictions(self):
        """Of all requests since the last call, in one computation of the model."""
        if not self.predictions:
            return
        logits, allowed = self.model.logits(np.concatenate([each.inputs for each, _, _ in self.predictions]))
        first = 0
        for prediction, answer, sent in self.predictions:
            last = first + len(prediction.inputs)
            if why := wrong_prediction(prediction, answer, logits[first:last], allowed[first:last]):
                self.fault(why, sent, answer)
            first = last
        self.predictions = []


def is_chunked(sent):
    """Whether it has this field. A line feed alone may end a line (RFC 9112, 2.2)."""
    return re.search(rb"\nTransfer-Encoding:", sent, re.IGNORECASE) is not None


def readings(sent, answer):
    """All predictions that `answer` may be, wherever the body begins."""
    is_raw = b"\r\nContent-Type: application/octet-stream\r\n" in answer.head
    said = [] if is_raw else json.loads(answer.body)["predictions"]
    count = len(answer.body) // (4 * reference.CLASSES) if is_raw else len(said)
    outputs = [name for name in ("logits", "probabilities") if is_raw or name in said[0]]
    for end in re.finditer(rb"\n(?=\r\n)", sent):
        for values, kind in values_at(sent[end.end() + 2:], count):
            for normalized, output in itertools.product((False, True), outputs):
                yield reference.Prediction(reference.network_inputs(values, kind, normalized), output, is_raw)


def values_at(body, count):
    """Of `count` samples with which the bytes begin, in each form."""
    try:
        yield reference.read_json(body, MOST_INSTANCES, may_go_on=True)[:2]
    except (ValueError, OverflowError):
        pass
    for kind, of_numpy, size in (("f32", np.float32, 4), ("u8", np.uint8, 1)):
        if len(body) >= count * reference.VALUES * size:
            yield np.frombuffer(body, of_numpy, count * reference.VALUES).reshape(count, -1), kind


def probabilities_of(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def wrong_prediction(prediction, answer, logits, allowed):
    """None: it is the model's."""
    if max(np.abs(prediction.inputs).max(), 1e5 * allowed.max()) > reference.LARGEST / 10:  # float32 may not hold the sums
        return None
    if answer.status != 200:
        return f"status {answer.status} for a request that is right"
    expected = logits
    if prediction.output == "probabilities":
        expected, allowed = probabilities_of(logits), np.minimum(1, 2 * allowed.max(axis=1, keepdims=True) + 1e-6)
    if prediction.is_raw:
        if len(answer.body) != 4 * expected.size:
            return f"{len(answer.body)} bytes for {len(expected)} samples"
        found = np.frombuffer(answer.body, np.float32).reshape(expected.shape)
    else:
        said = json.loads(answer.body)["predictions"]
        found = np.array([each[prediction.output] for each in said])
        if found.shape != expected.shape:
            return f"{len(said)} predictions for {len(expected)} samples"
        rows = np.arange(len(said))
        behind = expected.max(axis=1) - expected[rows, [each["label"] for each in said]]
        if not (behind <= 2 * np.max(allowed, axis=1)).all():
            return "a label that has not the largest output"
    off = np.abs(found - expected)
    return None if (off <= allowed).all() else f"values that are off by {off.max():.3g}"  # NaN is off


class Run:
    def __init__(self, options, server, model):
        self.options, self.server = options, server
        self.checker = Checker(model)
        self.judge = reference.Reference(MOST_INSTANCES, MOST_BYTES)
        self.connections = [None] * CONNECTIONS
        self.done = self.broken = self.opened = 0
        self.files = server.files()

    def open(self):
        self.opened += 1
        return Connection(self.server.port, self.opened)

    def send_round(self, generator):
        """Several requests on each connection, then all their answers."""
        sent = []
        for i in range(CONNECTIONS):
            self.connections[i] = self.connections[i] or self.open()
            requests = []
            while len(requests) < ON_THE_WAY:
                request = generator.request()
                verdict = self.judge.verdict(request)
                requests.append((request, verdict, request.bytes()))
                if verdict.ends:
                    break
            self.connections[i].socket.sendall(b"".join(data for _, _, data in requests))
            sent.append(requests)
        for i, requests in enumerate(sent):
            self.take_answers(i, requests)

    def take_answers(self, i, requests):
        answer = None
        for request, verdict, data in requests:
            answer = self.connections[i].answer(request.method != "HEAD")
            self.done += 1
            self.checker.check(request, verdict, answer, data)
            if answer is None or answer.is_last:
                break
        if answer is None or answer.is_last or verdict.ends:
            self.connections[i].socket.close()
            self.connections[i] = None

    def send_broken(self, generator):
        data = generator.broken()
        self.checker.check_broken(self.open().converse(data), data)
        self.done += 1
        self.broken += 1

    def go(self):
        """Each round has its own random numbers. Returns the growth of the server's memory after a fifth of the requests."""
        number, at_fifth = 0, None
        while self.done < self.options.requests and len(self.checker.faults) < 100 and self.server.process.poll() is None:
            generator = random_requests.Generator(random.Random(f"{self.options.seed} {number}"), MOST_INSTANCES, MOST_BYTES)
            self.send_round(generator)
            while self.broken < self.done * self.options.broken:
                self.send_broken(generator)
            self.checker.check_predictions()
            number += 1
            if at_fifth is None and 5 * self.done >= self.options.requests:
                at_fifth = self.server.resident_kib()
        return self.server.resident_kib() - at_fifth if at_fifth and self.server.process.poll() is None else 0


def check_end(run, server, growth):
    """The server still answers, has lost no memory and no files, and ends well."""
    check = programs.check
    check(server.process.poll() is None, f"the server has ended: {server.process.poll()}: {server.stderr()}")
    if server.process.poll() is not None:
        return
    for connection in run.connections:
        if connection:
            connection.socket.close()
    body = bytes(4 * reference.VALUES)
    answers = run.open().converse(random_requests.Request("POST", reference.PREDICT, headers=[("Content-Type", "application/octet-stream")],
                                                          body=body).bytes())
    run.checker.predictions = [(reference.Prediction((np.zeros((1, reference.VALUES)) - reference.MEAN) / reference.STDDEV, "logits", True),
                                answers[0], body)]
    run.checker.check_predictions()
    metrics = run.open().converse(b"GET /metrics HTTP/1.1\r\n\r\n")[0].body.decode()
    check(not re.search(r'code="5', metrics), "answers with a status from 500")
    check("fast_serve_waiting_samples 0\n" in metrics, "no sample waits")
    check(growth <= MOST_GROWTH_KIB, f"the memory of the server has grown by {growth} KiB")
    programs.wait_for(lambda: server.files() <= run.files, "all connections are closed")
    check(server.end() == 0, f"SIGTERM ends with 0: {server.stderr()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--requests", type=int, default=1000000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", type=float, default=0.1)
    options = parser.parse_args()
    program = options.program.resolve()
    with tempfile.TemporaryDirectory(prefix="fast-fuzz-") as folder:
        os.chdir(folder)
        model = reference.Model(options.seed)
        model.save(pathlib.Path("model.safetensors"))
        server = Server(program, "model.safetensors")
        run = Run(options, server, model)
        began = time.monotonic()
        try:
            with np.errstate(all="ignore"):  # there are values that are not finite
                growth = run.go()
            took = time.monotonic() - began
            check_end(run, server, growth)
        finally:
            server.process.kill()
            os.chdir("/")
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(run.checker.statuses.items(), key=str))
    print(f"seed {options.seed}: {run.done} requests, {run.broken} of them broken, {run.opened} connections, {took:.0f} s, "
          f"{run.done / took:.0f} a second, memory of the server {growth:+} KiB\nanswers: {statuses}")
    faults = len(run.checker.faults) + len(programs.failures)
    print(f"{faults} failures")
    return 1 if faults else 0


sys.exit(main())
