"""A process between a client and a server would see what they send: this one keeps it."""
import socket
import threading


class Relay:
    """Takes connections on a port of the loopback, and passes all on to another one. After `stop()`, nothing passes; no
    connection is closed."""

    def __init__(self, port):
        self.to, self.seen, self.lock = port, bytearray(), threading.Lock()
        self.stopped = threading.Event()
        self.connections = 0
        self.most = None  # bytes that pass from the server, of each connection
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                near.close()
                continue
            self.connections += 1
            for source, target, most in ((near, far, None), (far, near, self.most)):
                threading.Thread(target=self.pump, args=(source, target, most), daemon=True).start()

    def pump(self, source, target, most):
        passed = 0
        try:
            while data := source.recv(1 << 16):
                with self.lock:
                    self.seen += data
                if self.stopped.is_set() or (most is not None and passed >= most):
                    continue
                passed += len(data)
                target.sendall(data)
            if not self.stopped.is_set() and (most is None or passed < most):
                target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()
