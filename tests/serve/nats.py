"""A NATS server for tests, and as much of a client as they need: streams, messages with headers, requests."""
import atexit
import json
import queue
import shutil
import socket
import ssl
import subprocess
import threading
import time

PATIENCE_S = 30


def is_installed():
    return shutil.which("nats-server") is not None


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """nats-server on the loopback, its streams in `folder`. `user`: name and password. `more`: options, and `environment`
    for them. `ca`: a file with the authority's certificate, of a server with TLS."""

    def __init__(self, folder, streams=True, user=None, more=(), ca=None, port=None, environment=None):
        self.folder, self.streams, self.user, self.port = folder, streams, user, port or free_port()
        self.more, self.ca, self.environment = more, ca, environment
        self.url = f"{'tls' if ca else 'nats'}://{user[0] + '@' if user else ''}127.0.0.1:{self.port}"
        self.process = None
        self.start()

    def start(self):
        store = ["-js", "-sd", str(self.folder)] if self.streams else []
        login = ["--user", self.user[0], "--pass", self.user[1]] if self.user else []
        place = [] if "-c" in self.more else ["-a", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(["nats-server", *place, *store, *login, *map(str, self.more)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)
        atexit.register(self.process.kill)  # of a test that fails
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise SystemExit("FAILED: nats-server has not started")
                time.sleep(0.02)

    def stop(self):
        """It writes down what it has acknowledged. After SIGKILL, the last moments would be lost."""
        self.process.terminate()
        self.process.wait(PATIENCE_S)

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)


class Message:
    def __init__(self, subject, headers, body):
        self.subject, self.headers, self.body = subject, headers, body


class Client:
    """One thread publishes; another reads what comes. `certificate`: its file, and that of its key."""

    def __init__(self, server, certificate=None):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        info = b""  # before TLS begins, and not a byte more
        while not info.endswith(b"\n"):
            info += self.socket.recv(1)
        self.info = json.loads(info[len(b"INFO "):])
        if server.ca:
            context = ssl.create_default_context(cafile=server.ca)
            if certificate:
                context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.file = self.socket.makefile("rb")
        self.lock = threading.Lock()
        self.inboxes, self.count = {}, 0
        login = {"user": server.user[0], "pass": server.user[1]} if server.user else {}
        self.send(b"CONNECT %b\r\n" % json.dumps({"verbose": False, "headers": True, "no_responders": True, **login}).encode())
        threading.Thread(target=self.read, daemon=True).start()

    def send(self, data):
        with self.lock:
            self.socket.sendall(data)

    def read(self):
        try:
            while line := self.file.readline():
                words = line.split()
                if line.startswith(b"PING"):
                    self.send(b"PONG\r\n")
                elif words and words[0] in (b"MSG", b"HMSG"):
                    self.take(words)
        except (OSError, ValueError):
            pass

    def take(self, words):
        total = int(words[-1])
        data = self.file.read(total + 2)[:total]
        headers, body = {}, data
        if words[0] == b"HMSG":
            length = int(words[-2])
            for line in data[:length].decode().split("\r\n")[1:]:
                if ": " in line:
                    name, value = line.split(": ", 1)
                    headers[name] = value
            body = data[length:]
        inbox = self.inboxes.get(words[2].decode())
        if inbox is not None:
            inbox.put(Message(words[1].decode(), headers, body))

    def subscribe(self, subject):
        self.count += 1
        self.inboxes[str(self.count)] = inbox = queue.Queue()
        self.send(f"SUB {subject} {self.count}\r\n".encode())
        return inbox

    def publish(self, subject, body, headers=None, reply=""):
        if headers:
            head = ("NATS/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode()
            line = f"HPUB {subject} {reply} {len(head)} {len(head) + len(body)}\r\n".encode()
            self.send(line + head + body + b"\r\n")
        else:
            self.send(f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")

    def request(self, subject, body=b"", headers=None):
        reply = f"_INBOX.request.{self.count}"
        inbox = self.subscribe(reply)
        self.publish(subject, body, headers, reply)
        return inbox.get(timeout=PATIENCE_S)

    def api(self, path, **arguments):
        answer = json.loads(self.request(f"$JS.API.{path}", json.dumps(arguments).encode()).body)
        if "error" in answer:
            raise SystemExit(f"FAILED: {path}: {answer['error']}")
        return answer

    def add_stream(self, name, subjects, **more):
        return self.api(f"STREAM.CREATE.{name}", name=name, subjects=subjects, retention="limits", storage="file",
                        max_msgs=-1, max_bytes=-1, max_age=0, num_replicas=1, discard="old", **more)

    def stored(self, stream):
        """How many messages the stream has."""
        return self.api(f"STREAM.INFO.{stream}")["state"]["messages"]

    def consumer(self, stream, name):
        return self.api(f"CONSUMER.INFO.{stream}.{name}")

    def messages(self, stream):
        """All that the stream has."""
        subject = f"_INBOX.all.{self.count}"
        inbox = self.subscribe(subject)
        count = self.stored(stream)
        self.api(f"CONSUMER.CREATE.{stream}", stream_name=stream,
                 config={"deliver_subject": subject, "deliver_policy": "all", "ack_policy": "none",
                         "replay_policy": "instant"})
        return [inbox.get(timeout=PATIENCE_S) for _ in range(count)]
