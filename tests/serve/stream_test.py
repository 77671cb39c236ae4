#!/usr/bin/env python3
"""fast-serve answers the messages of a stream: each once, through a new model, a kill -9 and a restart of the server.

  stream_test.py FAST_SERVE FAST_TRAIN
"""
import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy here; apt-get install python3-numpy")
    sys.exit(77)

import nats
import programs
from programs import PATIENCE_S, check, skip, wait_for

SERVE, TRAIN = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent
DATASET = pathlib.Path("/usr/share/datasets/fashion-mnist")


class Scorer(programs.Program):
    def __init__(self, server, *options):
        self.port = None
        super().__init__(SERVE, "m=run", "--port", "0", "--poll", "0.05", "--stream", server.url, "--subject", "images.>",
                         "--answers", "labels", *options)
        for line in self.process.stdout:
            if line.startswith("listening"):
                self.port = int(line.rsplit(":", 1)[1])
                return
        sys.exit(f"FAILED: fast-serve has not started: {self.stderr()}")


def refused(*arguments, text):
    programs.refused(SERVE, *arguments, text=text)


def read_idx(path, header):
    packed = path.with_name(path.name + ".gz")
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    return np.frombuffer(data, np.uint8)[header:]


class Offline:
    """The model of a file, computed by NumPy."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        head = json.loads(data[8:8 + length])
        note = head.pop("__metadata__")
        self.tensors = {}
        for name, facts in head.items():
            begin, end = facts["data_offsets"]
            self.tensors[name] = np.frombuffer(data[8 + length + begin:8 + length + end],
                                               np.float32).reshape(facts["shape"]).astype(np.float64)
        self.mean, self.stddev = float(note["fast.mean"]), float(note["fast.stddev"])

    def logits(self, images):
        x = (images / 255 - self.mean) / self.stddev
        t = self.tensors
        hidden = np.maximum(x @ t["fc1.weight"].T + t["fc1.bias"], 0)
        return hidden @ t["fc2.weight"].T + t["fc2.bias"]


def answers_of(client):
    """By the number of their message; each once."""
    answers = collections.defaultdict(list)
    for message in client.messages("ANSWERS"):
        answers[int(message.headers["X-Answer-To"])].append(message)
    twice = [number for number, all_of_it in answers.items() if len(all_of_it) > 1]
    check(not twice, f"{len(twice)} messages are answered more than once: {twice[:5]}")
    return {number: all_of_it[0] for number, all_of_it in answers.items()}


def is_settled(client, count):
    state = client.consumer("QUESTIONS", "fast-serve-m")
    return state["num_pending"] == 0 and state["num_ack_pending"] == 0 and client.stored("ANSWERS") >= count


def add_streams(client):
    client.add_stream("QUESTIONS", ["images.>"])
    client.add_stream("ANSWERS", ["labels"], duplicate_window=120 * 10**9)


def publish_images(client, images, begin, end):
    """Most as bytes, every 50th as JSON."""
    for i in range(begin, end):
        if i % 50 == 0:
            client.publish("images.json", json.dumps({"instances": [images[i].tolist()], "type": "u8"}).encode(),
                           {"X-Tensor-Output": "logits"})
        else:
            client.publish("images.raw", images[i].tobytes(),
                           {"Content-Type": "application/octet-stream", "X-Tensor-Type": "u8"})


def logits_of(message):
    if message.headers["Content-Type"] == "application/json":
        answer = json.loads(message.body)
        return answer["predictions"][0]["logits"], answer["model_version"]
    return struct.unpack("<10f", message.body), message.headers["X-Model-Version"]


def version_in(text):
    return re.search(r"version ([0-9a-f]{16})", text)[1]


def test_each_message_is_answered_once(images, labels):
    """A new model, a kill -9 and a restart of the NATS server come in between."""
    server = nats.Server("store")
    client = nats.Client(server)
    add_streams(client)
    offline = [Offline("run/mean-model.safetensors"), Offline("next/mean-model.safetensors")]
    scorer = Scorer(server, "--ack-wait", "1")
    first, second = len(images) * 2 // 5, len(images)
    publish_images(client, images, 0, first)
    wait_for(lambda: client.stored("ANSWERS") >= first // 2, "the first answers")
    shutil.copy("next/mean-model.safetensors", "run/mean-model.safetensors")
    wait_for(lambda: "version" in scorer.stderr(), "the new model")
    publisher = threading.Thread(target=publish_images, args=(client, images, first, second))
    publisher.start()
    watcher = nats.Client(server)
    wait_for(lambda: watcher.stored("ANSWERS") > first + len(images) // 10, "answers of the new model")
    scorer.end(signal.SIGKILL)
    at_kill = watcher.stored("ANSWERS")
    check(at_kill < len(images), "the scorer was killed in its work")
    publisher.join()
    scorer = Scorer(server, "--ack-wait", "1")
    wait_for(lambda: watcher.stored("ANSWERS") > at_kill + len(images) // 10, "answers of the next scorer")
    server.stop()
    server.start()
    client = nats.Client(server)
    at_restart = client.stored("ANSWERS")
    wait_for(lambda: is_settled(client, len(images)), "all answers")
    answers = answers_of(client)
    check(sorted(answers) == list(range(1, len(images) + 1)), f"{len(answers)} of {len(images)} are answered")
    found = np.array([logits_of(answers[i + 1])[0] for i in range(len(images))])
    versions = [logits_of(answers[i + 1])[1] for i in range(len(images))]
    names = list(dict.fromkeys(versions))
    check(len(names) == 2, f"two versions have answered: {names}")
    is_second = np.array([version == names[-1] for version in versions])
    expected = np.where(is_second[:, None], offline[1].logits(images), offline[0].logits(images))
    check(np.abs(found - expected).max() < 1e-4, f"the logits differ by {np.abs(found - expected).max()}")
    right, right_offline = (int((values.argmax(1) == labels).sum()) for values in (found, expected))
    print(f"{len(images)} images, {at_kill} answers at the kill, {at_restart} at the server's restart, {int(is_second.sum())} of the new model, "
          f"{right} right, offline {right_offline}")
    check(right == right_offline, f"{right} right, offline {right_offline}")
    check(scorer.end() == 0, f"SIGTERM ends with 0: {scorer.stderr()}")
    server.stop()


def test_bad_messages_and_the_end(image):
    """A malformed message has an answer that says why, and others are answered."""
    server = nats.Server("store2")
    client = nats.Client(server)
    add_streams(client)
    scorer = Scorer(server)
    raw = {"Content-Type": "application/octet-stream", "X-Tensor-Type": "u8"}
    cases = [(b"{", {}, "400", "not JSON"), (b"", {}, "400", "JSON"), (b"abc", raw, "400", "samples of 784 bytes"),
             (b"{}", {"Content-Type": "text/plain"}, "415", "content type"),
             (b'{"instances": []}', {}, "400", "no instances"),
             (image, {**raw, "X-Model-Version": "0"}, "404", "no version"),
             (image, {**raw, "Nats-Msg-Id": "own"}, "200", None),
             (image, {**raw, "X-Tensor-Output": "probabilities"}, "200", None)]
    for body, headers, _, _ in cases:
        client.publish("images.a", body, headers)
    wait_for(lambda: is_settled(client, len(cases)), "all answers")
    answers = answers_of(client)
    for i, (body, _, status, text) in enumerate(cases):
        answer = answers[i + 1]
        check(answer.headers["X-Status"] == status, f"case {i}: {answer.headers} {answer.body}")
        check(text is None or text in json.loads(answer.body)["error"], f"case {i}: {answer.body} has not {text!r}")
        check("X-Model-Version" in answer.headers or status in ("404", "415"), f"case {i}: {answer.headers}")
    check(answers[7].headers["X-Message-Id"] == "own", "the message's own id")
    check(abs(sum(struct.unpack("<10f", answers[8].body)) - 1) < 1e-6, "probabilities")

    client.api("STREAM.UPDATE.ANSWERS", **{**client.api("STREAM.INFO.ANSWERS")["config"], "max_msg_size": 2000})
    check(scorer.end() == 0, "SIGTERM ends with 0")
    scorer = Scorer(server)
    client.publish("images.a", json.dumps({"instances": [[0] * 784] * 50}).encode(), {})
    wait_for(lambda: is_settled(client, len(cases) + 1), "an answer that the stream does not take")
    too_long = answers_of(client)[len(cases) + 1]
    check(too_long.headers["X-Status"] == "413" and "send fewer instances" in json.loads(too_long.body)["error"], too_long.body)

    for i in range(300):
        client.publish("images.a", image, raw)
    check(scorer.end() == 0, "SIGTERM ends with 0")
    wait_for(lambda: client.consumer("QUESTIONS", "fast-serve-m")["num_ack_pending"] == 0, "all that was taken is answered")
    state = client.consumer("QUESTIONS", "fast-serve-m")
    check(client.stored("ANSWERS") == state["ack_floor"]["stream_seq"], "no answer is missing")
    server.stop()


def test_lost_connection(image):
    """The server comes back, and its streams with it. Then it does not."""
    server = nats.Server("store3")
    client = nats.Client(server)
    add_streams(client)
    scorer = Scorer(server, "--ack-wait", "1", "--stream-patience", "20")
    raw = {"Content-Type": "application/octet-stream", "X-Tensor-Type": "u8"}
    client.publish("images.a", image, raw)
    wait_for(lambda: client.stored("ANSWERS") == 1, "the first answer")
    server.stop()
    wait_for(lambda: "is lost" in scorer.stderr(), "the loss is reported")
    server.start()
    client = nats.Client(server)
    client.publish("images.a", image, raw)
    wait_for(lambda: client.stored("ANSWERS") == 2, "the second answer")
    lines = scorer.stderr().strip().split("\n")
    check(len(lines) == 2 and "connected again" in lines[1], f"one line of each: {lines}")
    check(scorer.end() == 0, f"SIGTERM ends with 0: {scorer.stderr()}")

    scorer = Scorer(server, "--stream-patience", "0.5")
    server.stop()
    check(scorer.process.wait(PATIENCE_S) == 1, "a server that is gone ends the scorer with 1")
    check("lost for 0.5" in scorer.stderr(), scorer.stderr())


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
    except ConnectionError:
        return False
    return True


def test_end_without_a_stream_of_answers(image):
    """An answer waits for its stream, which was deleted. Clients over HTTP are refused at once."""
    server = nats.Server("store7")
    client = nats.Client(server)
    add_streams(client)
    scorer = Scorer(server, "--grace", "15")
    client.api("STREAM.DELETE.ANSWERS")
    client.publish("images.a", image, {"Content-Type": "application/octet-stream", "X-Tensor-Type": "u8"})
    wait_for(lambda: client.consumer("QUESTIONS", "fast-serve-m")["num_ack_pending"] == 1, "the message is taken")
    check(accepts(scorer.port), "clients are accepted before the end")
    scorer.process.send_signal(signal.SIGTERM)
    wait_for(lambda: "then ends" in scorer.stderr(), "the end has begun")
    time.sleep(1.5)
    check(scorer.process.poll() is None, "the answer waits for its stream")
    check(not accepts(scorer.port), "no client is accepted at the end")
    check(scorer.process.wait(PATIENCE_S) == 1, "messages that are not answered are status 1")
    check("messages of the stream are not answered" in scorer.stderr() and "cut off" not in scorer.stderr(), scorer.stderr())
    server.stop()


def test_long_outage(image):
    """Scorer and server are killed. The server has lost acknowledgments, and the stream has forgotten identities."""
    count, window_s = 6000, 0.5
    server = nats.Server("store6")
    client = nats.Client(server)
    client.add_stream("QUESTIONS", ["images.>"])
    client.add_stream("ANSWERS", ["labels"], duplicate_window=int(window_s * 10**9))
    for _ in range(count):
        client.publish("images.a", image, {"Content-Type": "application/octet-stream", "X-Tensor-Type": "u8"})
    wait_for(lambda: client.stored("QUESTIONS") == count, "all messages")
    scorer = Scorer(server, "--ack-wait", "1", "--stream-batch", "200")
    wait_for(lambda: client.stored("ANSWERS") > count // 2, "the first answers")
    server.kill()
    scorer.end(signal.SIGKILL)
    time.sleep(2 * window_s)
    server.start()
    client = nats.Client(server)
    at_start, floor = client.stored("ANSWERS"), client.consumer("QUESTIONS", "fast-serve-m")["ack_floor"]["stream_seq"]
    print(f"{at_start} answers at the kill, {floor} of them acknowledged")
    scorer = Scorer(server, "--ack-wait", "1", "--stream-batch", "50")
    wait_for(lambda: is_settled(client, count), "all answers")
    check(sorted(answers_of(client)) == list(range(1, count + 1)), "each message is answered")
    check(scorer.end() == 0, f"SIGTERM ends with 0: {scorer.stderr()}")
    server.stop()


def test_password_in_a_file(image):
    """It is in no list of processes."""
    password, file = "p@ss/word:1", pathlib.Path("secret").resolve()
    server = nats.Server("store8", user=("me", password))
    client = nats.Client(server)
    add_streams(client)
    os.environ["FAST_NATS_PASSWORD_FILE"] = str(file)
    file.write_text("another\n")
    refused("m=run", "--port", "0", "--stream", server.url, "--subject", "images.a", "--answers", "labels", text="no connection")
    file.write_text(password + "\n")
    scorer = Scorer(server)
    client.publish("images.a", image, {"Content-Type": "application/octet-stream", "X-Tensor-Type": "u8"})
    wait_for(lambda: client.stored("ANSWERS") == 1, "the answer")
    command = pathlib.Path(f"/proc/{scorer.process.pid}/cmdline").read_bytes()
    check(server.url.encode() in command and password.encode() not in command, f"the command line: {command}")
    check(scorer.end() == 0, f"SIGTERM ends with 0: {scorer.stderr()}")
    check(password not in scorer.stderr(), scorer.stderr())
    del os.environ["FAST_NATS_PASSWORD_FILE"]
    server.stop()


def test_refusals():
    server = nats.Server("store4")
    client = nats.Client(server)
    client.add_stream("QUESTIONS", ["images.>"])
    stream = ("m=run", "--port", "0", "--stream")
    both = ("--subject", "images.a", "--answers", "labels")
    refused(*stream, f"nats://127.0.0.1:{nats.free_port()}", *both, text="no connection")
    refused(*stream, "http://127.0.0.1", *both, text="nats://HOST:PORT is required")
    refused(*stream, "nats://127.0.0.1:99999", *both, text="nats://HOST:PORT is required")
    refused(*stream, server.url, *both, text="no stream has the subject labels")
    refused(*stream, server.url, "--subject", "other", "--answers", "labels", text="no stream has the subject other")
    refused(*stream, server.url, "--subject", "images.a", text="--subject and --answers are required")
    refused(*stream, server.url, "--subject", "images.>", "--answers", "images.b", text="choose another subject")
    refused("m=run", "--port", "0", *both, text="add --stream")
    client.add_stream("ANSWERS", ["labels"])
    client.api("CONSUMER.DURABLE.CREATE.QUESTIONS.fast-serve-m", stream_name="QUESTIONS",
               config={"durable_name": "fast-serve-m", "ack_policy": "explicit", "filter_subject": "images.b"})
    refused(*stream, server.url, *both, text="has the subject images.b, not images.a; choose another name")
    refused("m=run", "n=next", "--port", "0", "--stream", server.url, *both, text="--stream-model")
    server.stop()
    server = nats.Server("store5", streams=False)
    refused(*stream, server.url, *both, text="start it with JetStream")
    server.stop()


def main():
    if not nats.is_installed():
        skip("no nats-server (apt-get install nats-server)")
    with tempfile.TemporaryDirectory(prefix="fast-stream-") as folder:
        os.chdir(folder)
        data = DATASET
        if not DATASET.exists():
            data = pathlib.Path("data")
            subprocess.run([sys.executable, HERE / "../docs/make_data.py", "idx", "data"], check=True)
        name = "fashion-mnist" if DATASET.exists() else "data"
        programs.train(TRAIN, "run", name, "--samples", "12800")
        programs.train(TRAIN, "next", name, "--samples", "12800", "--seed", "2")
        probe = subprocess.run([SERVE, "m=run", "--port", "0", "--stream", "nats://127.0.0.1:1", "--subject", "a",
                                "--answers", "b"], capture_output=True, text=True, timeout=PATIENCE_S)
        if "built without streams" in probe.stderr:
            skip("fast-serve was built without streams (apt-get install libnats-dev)")
        images = read_idx(data / "t10k-images-idx3-ubyte", 16).reshape(-1, 784)
        labels = read_idx(data / "t10k-labels-idx1-ubyte", 8)
        repeat = -(-10000 // len(images))
        images, labels = np.tile(images, (repeat, 1))[:10000], np.tile(labels, repeat)[:10000]
        image = images[0].tobytes()
        status = programs.run_all([(test_refusals, ()), (test_bad_messages_and_the_end, (image,)),
                                   (test_lost_connection, (image,)), (test_password_in_a_file, (image,)),
                                   (test_long_outage, (image,)),
                                   (test_end_without_a_stream_of_answers, (image,)),
                                   (test_each_message_is_answered_once, (images, labels))])
        os.chdir("/")
    return status


sys.exit(main())
