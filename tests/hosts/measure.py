#!/usr/bin/env python3
"""Measures a link between two hosts.
    measure.py answer                     answers on this host until it is killed
    measure.py delay HOST COUNT           median and standard deviation of the way there and back, in ms
    measure.py loss HOST COUNT            share of datagrams that no answer came for
    measure.py rate HOST BYTES            Mbit/s of a stream
    measure.py expect LOW VALUE HIGH WHAT     status 1 and a line unless the value is between"""
import socket
import statistics
import sys
import threading
import time

PORT = 9099


def answer_datagrams():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("", PORT))
    while True:
        data, sender = server.recvfrom(64)
        server.sendto(data, sender)


def answer():
    threading.Thread(target=answer_datagrams, daemon=True).start()
    server = socket.create_server(("", PORT))
    while True:
        connection, _ = server.accept()
        while connection.recv(1 << 16):
            pass
        connection.close()  # the end of the stream is the answer


def datagrams(host):
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect((host, PORT))
    return client


def delay(host, count):
    client = datagrams(host)
    client.settimeout(5)
    times_ms = []
    for number in range(count + 1):
        began = time.monotonic()
        client.send(b"%d" % number)
        client.recv(64)
        times_ms.append(1e3 * (time.monotonic() - began))
    print(f"{statistics.median(times_ms[1:]):.3f} {statistics.stdev(times_ms[1:]):.3f}")


def loss(host, count):
    client = datagrams(host)
    answered = set()

    def collect(seconds):
        client.settimeout(seconds)
        try:
            answered.add(client.recv(64))
        except (socket.timeout, BlockingIOError):
            return False
        return True

    for number in range(count):
        client.send(b"%d" % number)
        while collect(0):
            pass
        time.sleep(0.0005)
    while len(answered) < count and collect(1):
        pass
    print(f"{1 - len(answered) / count:.4f}")


def rate(host, size):
    client = socket.create_connection((host, PORT), timeout=60)
    began = time.monotonic()
    client.sendall(bytes(size))
    client.shutdown(socket.SHUT_WR)
    client.recv(1)
    print(f"{8e-6 * size / (time.monotonic() - began):.3f}")


def expect(low, value, high, what):
    good = float(low) <= float(value) <= float(high)
    print(f"{'ok' if good else 'FAILED'}: {what}: {value}, between {low} and {high} was asked for")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "answer":
        answer()
    elif command == "expect":
        expect(*arguments)
    else:
        {"delay": delay, "loss": loss, "rate": rate}[command](arguments[0], int(arguments[1]))
