#!/usr/bin/env python3
"""Connections to NATS servers over TLS, with certificates that openssl makes here, and logins of all kinds.

  secure_test.py SOURCES CONNECTION_PROGRAM FAST_DATA FAST_TRAIN FAST_SERVE [TEST...]
"""
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

from relay import Relay
from secure import PASSWORD, accepted, of_port, refused, run_here, secure_server, tls, variables, write
import make_sites
import nats
from programs import PATIENCE_S, check, wait_for

DATA, TRAIN, SERVE = (pathlib.Path(argument).resolve() for argument in sys.argv[3:6])
MARK = b"these bytes are weights"
SIDE = 28


def test_the_server_proves_who_it_is():
    good = secure_server("store", streams=False)
    check(accepted(of_port(good.port)).end() == 0, "a host by its name")
    check(accepted(of_port(good.port, "127.0.0.1")).end() == 0, "a host by its address")
    refused(of_port(good.port), "unable to get local issuer", "set FAST_NATS_CA_FILE", ca=None)
    refused(of_port(good.port), "unable to get local issuer", "FAST_NATS_CA_FILE", ca="strangers/ca.pem")
    refused(of_port(good.port, scheme="nats"), "unable to get local issuer", ca=None)
    refused(of_port(good.port), "there is no such file", "FAST_NATS_CA_FILE", status=2, ca="none.pem")
    refused(of_port(good.port), "rror loading trusted certificates", status=2, ca=write("empty.pem", "x\n"))
    good.stop()
    for name, text, what in (("old", "certificate has expired", "clock"), ("elsewhere", "hostname mismatch", "write the host")):
        bad = secure_server("store", name, streams=False)
        refused(of_port(bad.port), text, what)
        # Of several servers, the one that answers is told of, wherever it stands.
        refused(f"{of_port(bad.port)},{of_port(nats.free_port())}", text, what)
        bad.stop()
    plain = nats.Server("store", streams=False)
    refused(of_port(plain.port), "the server has no TLS, and tls:// requires it")
    plain.stop()
    refused(of_port(plain.port), "see whether the server runs there")


def test_silent_and_strange_servers():
    """What listens and says nothing, and what is no NATS server."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        refused(of_port(silent.getsockname()[1]), "Timeout")
    server = secure_server("store", streams=False)
    relay = Relay(server.port)
    relay.most = 1  # the server's first words pass, and nothing of the handshake
    refused(of_port(relay.port), "the server has stopped in the handshake of TLS")
    relay.most = None
    connection = accepted(of_port(relay.port), 500)
    relay.most = 1
    server.kill()
    connection.wait("log tls://localhost")
    server.start()
    wait_for(lambda: relay.connections > 2, "a handshake that stops")
    relay.most = None
    connection.wait(f"log tls://localhost:{relay.port}: connected again")
    check(connection.end() == 0, "it ends")
    relay.close()
    server.stop()


def test_the_client_proves_who_it_is():
    server = secure_server("store", verify=True, streams=False)
    pair = {"certificate": "certificates/client.pem", "key": "certificates/client-key.pem"}
    check(accepted(of_port(server.port), **pair).end() == 0, "a client with a certificate")
    refused(of_port(server.port), "FAST_NATS_CERTIFICATE_FILE")
    refused(of_port(server.port), "who signed the client's certificate", certificate="strangers/client.pem",
            key="strangers/client-key.pem")
    refused(of_port(server.port), "key", status=2, certificate="certificates/client.pem", key="strangers/client-key.pem")
    refused(of_port(server.port), "are required together", status=2, certificate="certificates/client.pem")
    readable = shutil.copy("certificates/client-key.pem", "shared-key.pem")
    os.chmod(readable, 0o644)
    connection = accepted(of_port(server.port), certificate="certificates/client.pem", key=readable)
    check(connection.has("notice address: everybody may read the file of the client's key"), f"{connection.lines}")
    check(connection.end() == 0, "the notice does not end it")
    server.stop()


def test_passwords_and_tokens():
    file, wrong = write("password", PASSWORD + "\n"), write("wrong", "wrong\n")
    server = secure_server("store", streams=False, user=("me", PASSWORD))
    address = f"tls://me@localhost:{server.port}"
    connection = accepted(address, password=file)
    shown = pathlib.Path(f"/proc/{connection.process.pid}/cmdline").read_bytes()
    check(PASSWORD.encode() not in shown, f"{shown}")
    check(connection.end() == 0, "user and password")
    refused(of_port(server.port), "the server wants to know who logs in", "FAST_NATS_PASSWORD_FILE")
    refused(address, "does not accept this login", password=wrong)
    refused(f"tls://me:x@localhost:{server.port}", "lists of processes show", status=2)
    refused(address, "there is no such file", "FAST_NATS_PASSWORD_FILE", status=2, password="none")
    os.chmod(wrong, 0)
    if not os.access(wrong, os.R_OK):  # root reads all
        refused(address, "Permission denied", status=2, password=wrong)
    server.stop()
    server = nats.Server("store", streams=False, more=(*tls(), "--auth", "t0ken"), ca="certificates/ca.pem")
    check(accepted(of_port(server.port), password=write("token", "t0ken\n")).end() == 0, "a token")
    refused(of_port(server.port), "does not accept this login", password=wrong if os.access(wrong, os.R_OK) else file)
    server.stop()


def signed(claims, seed_file, issuer):
    """A token (JWT) as nsc writes it."""
    part = lambda value: base64.urlsafe_b64encode(value).rstrip(b"=")
    text = part(b'{"typ":"JWT","alg":"ed25519-nkey"}') + b"." + part(json.dumps({"iss": issuer, "iat": 1, **claims}).encode())
    write("signed", text.decode())
    raw = base64.b32decode(seed_file + "=" * (-len(seed_file) % 8))[2:34]
    pathlib.Path("key.der").write_bytes(bytes.fromhex("302e020100300506032b657004220420") + raw)
    signature = make_sites.openssl("pkeyutl", "-sign", "-rawin", "-inkey", "key.der", "-keyform", "DER", "-in", "signed")
    return (text + b"." + part(signature)).decode()


def credentials(user_seed, user_key, account_seed, account_key):
    token = signed({"sub": user_key, "name": "u", "jti": "u", "nats": {"type": "user", "version": 2, "subs": -1, "data": -1,
                                                                       "payload": -1}}, account_seed, account_key)
    return (f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user_seed}\n------END USER NKEY SEED------\n")


def test_nkeys_and_credentials():
    seed, key = make_sites.new_nkey()
    other_seed, other_key = make_sites.new_nkey()
    write("me.nkey", f"{seed}\n{key}\n")
    write("nkeys.conf", f"accounts {{ A {{ users: [ {{ nkey: {key} }} ] }} }}\n")
    server = nats.Server("store", streams=False, more=(*tls(), "-c", "nkeys.conf", "-a", "127.0.0.1", "-p", port := nats.free_port()),
                         ca="certificates/ca.pem", port=port)
    check(accepted(of_port(server.port), nkey="me.nkey").end() == 0, "an nkey")
    refused(of_port(server.port), "does not accept this login", nkey=write("other.nkey", f"{other_seed}\n{other_key}\n"))
    refused(of_port(server.port), "FAST_NATS_NKEY_FILE", "public key", status=2, nkey=write("half.nkey", f"{seed}\n"))
    refused(of_port(server.port), "choose one", status=2, nkey="me.nkey", password=write("password", "x\n"))
    refused(of_port(server.port), "the server wants to know who logs in", "FAST_NATS_NKEY_FILE")
    server.stop()

    server = nats.Server("store", streams=False, port=(port := nats.free_port()), more=("-c", "nkeys.conf", "-a", "127.0.0.1", "-p", port))
    connection = accepted(of_port(server.port, scheme="nats"), nkey="me.nkey", ca=None)
    connection.tell("again 600")  # each signs something else
    check(connection.end() == 0, "many logins")
    server.stop()

    operator, account = make_sites.new_nkey(14 << 3), make_sites.new_nkey(0)
    limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
    operator_token = signed({"sub": operator[1], "name": "o", "jti": "o", "nats": {"type": "operator", "version": 2}}, *operator)
    account_token = signed({"sub": account[1], "name": "a", "jti": "a",
                            "nats": {"type": "account", "version": 2, "limits": limits}}, *operator)
    write("operator.conf", f"operator: {operator_token}\nresolver: MEMORY\nresolver_preload {{ {account[1]}: {account_token} }}\n")
    server = nats.Server("store", streams=False, port=(port := nats.free_port()), ca="certificates/ca.pem",
                         more=(*tls(), "-c", "operator.conf", "-a", "127.0.0.1", "-p", port))
    check(accepted(of_port(server.port), credentials=write("me.creds", credentials(seed, key, *account))).end() == 0, "credentials")
    refused(of_port(server.port), "does not accept this login",
            credentials=write("other.creds", credentials(seed, key, *make_sites.new_nkey(0))))
    refused(of_port(server.port), "FAST_NATS_CREDENTIALS_FILE", status=2, credentials="me.nkey")
    server.stop()


def cluster(count, *more):
    """Servers that are linked, and tell clients of each other."""
    routes = [nats.free_port() for _ in range(count)]
    links = ",".join(f"nats://127.0.0.1:{port}" for port in routes)
    servers = [nats.Server(f"store-{i}", streams=False,
                           more=("--cluster_name", "c", "--cluster", f"nats://127.0.0.1:{port}", "--routes", links, *more))
               for i, port in enumerate(routes)]
    wait_for(lambda: len(nats.Client(servers[0]).info.get("connect_urls", [])) == count, "the servers tell of each other")
    return servers


def test_the_next_server_of_the_list():
    """A client goes on at the next server of its list. One with a shorter list is not led to others."""
    first, second = cluster(2)
    both = accepted(f"{of_port(first.port, scheme='nats')},{of_port(second.port, scheme='nats')}")
    check(both.has(f"up nats://localhost:{first.port}"), f"the first server comes first: {both.lines}")
    alone = accepted(of_port(first.port, scheme="nats"))
    both.tell("listen a")
    first.kill()
    both.wait("log nats://localhost:")
    both.wait(f"log nats://localhost:{first.port},nats://localhost:{second.port}: connected again")
    client = nats.Client(second)  # which may be heard there before the subscription is
    wait_for(lambda: client.publish("a", b"hello") or both.has("got a hello"), "a message by the second server")
    alone.wait(f"log nats://localhost:{first.port}: the connection is lost")
    time.sleep(3)
    check(not alone.has(f"log nats://localhost:{first.port}: connected"), f"it is at a server of no list: {alone.lines}")
    first.start()
    alone.wait(f"log nats://localhost:{first.port}: connected again")
    check(both.end() == 0 and alone.end() == 0, "both end")
    for server in (first, second):
        server.kill()


def test_a_silent_server_is_noticed():
    """Nothing closes the connection: the relay passes nothing on."""
    server = secure_server("store", streams=False)
    relay = Relay(server.port)
    connection = accepted(of_port(relay.port), 500)
    began = time.monotonic()
    relay.stopped.set()
    connection.wait(f"log tls://localhost:{relay.port}: the connection is lost")
    took = time.monotonic() - began
    print(f"  noticed after {took:.1f} s")
    check(took < 13, f"{took:.1f} s; with the usual interval, it would be 15 s")
    relay.stopped.clear()
    connection.wait(f"log tls://localhost:{relay.port}: connected again")
    check(connection.end() == 0, "it ends")
    relay.close()
    server.stop()


def write_idx(folder, count):
    """Images of the mark's bytes."""
    pathlib.Path(folder).mkdir()
    image = (MARK * SIDE * SIDE)[:SIDE * SIDE]
    for name in ("train", "t10k"):
        (pathlib.Path(folder) / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, SIDE, SIDE) + image * count)
        (pathlib.Path(folder) / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + bytes(i % 10 for i in range(count)))


def run(*command, **files):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE_S, env=variables(**files))
    check(done.returncode == 0, f"{command}: status {done.returncode}: {done.stderr}")
    return done


def train_words(address, out):
    return (TRAIN, "--data", address, "--model", "mlp:8", "--batch-size", 16, "--epochs", 1, "--out", out, "--quiet",
            "--samples", 64, "--test-data", "images", "--exchange", "local", "--workers", 2)


def serve_one(address, client, image, **files):
    """fast-serve answers one message."""
    errors = open("errors.txt", "w")
    process = subprocess.Popen([SERVE, "m=run", "--port", "0", "--stream", address, "--subject", "images", "--answers", "labels"],
                               stdout=subprocess.DEVNULL, stderr=errors, env=variables(**files))
    client.publish("images", image, {"Content-Type": "application/octet-stream", "X-Tensor-Type": "u8"})
    wait_for(lambda: client.stored("ANSWERS") == 1, "the answer")
    process.send_signal(signal.SIGTERM)
    check(process.wait(PATIENCE_S) == 0, f"fast-serve: {pathlib.Path('errors.txt').read_text()}")


def test_streams_over_tls():
    """Publishing, training and serving. What passes shows nothing of samples and passwords; without TLS, it would."""
    write_idx("images", 64)
    image = (MARK * SIDE * SIDE)[:SIDE * SIDE]
    password = write("password", "opensesame\n")
    for scheme in ("tls", "nats"):
        server = nats.Server(f"store-{scheme}", user=("me", "opensesame"), more=tls(verify=True) if scheme == "tls" else (),
                             ca=None)
        server.ca = None if scheme == "nats" else "certificates/ca.pem"
        client = nats.Client(server, certificate=("certificates/client.pem", "certificates/client-key.pem"))
        client.add_stream("SAMPLES", ["samples"])
        client.add_stream("QUESTIONS", ["images"])
        client.add_stream("ANSWERS", ["labels"], duplicate_window=120 * 10**9)
        relay = Relay(server.port)
        files = {"password": password, "certificate": "certificates/client.pem", "key": "certificates/client-key.pem"}
        address = f"{scheme}://me@localhost:{relay.port}"
        said = run(DATA, "publish", "images", f"{address}/samples", **files).stdout
        check("64 samples stored" in said, said)
        check(client.stored("SAMPLES") == 64, "all are stored")
        shutil.rmtree("run", ignore_errors=True)
        run(*train_words(f"{address}/samples", "run"), **files)
        serve_one(address, client, image, **files)
        seen = bytes(relay.seen)
        count = seen.count(MARK), seen.count(b"opensesame")
        print(f"  {scheme}: {len(seen)} bytes passed; samples seen {count[0]} times, the password {count[1]} times")
        check(len(seen) > 3 * 64 * SIDE * SIDE, "all passes here")
        check(count == (0, 0) if scheme == "tls" else min(count) > 0, f"{scheme}: {count}")
        relay.close()
        server.stop()


def test_programs_refuse_in_one_line():
    server = nats.Server("store-refused")
    address = of_port(server.port)
    both = ("--subject", "images", "--answers", "labels")
    for command in ((DATA, "publish", "images", f"{address}/samples"), train_words(f"{address}/samples", "refused"),
                    (SERVE, "m=run", "--port", "0", "--stream", address, *both)):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE_S, env=variables())
        lines = done.stderr.strip().split("\n")
        check(done.returncode == 1 and len(lines) == 1 and "the server has no TLS" in lines[0],
              f"{command}: status {done.returncode}: {done.stderr}")
    server.stop()


sys.exit(run_here((test_the_server_proves_who_it_is, test_silent_and_strange_servers, test_the_client_proves_who_it_is,
                   test_passwords_and_tokens, test_nkeys_and_credentials, test_the_next_server_of_the_list,
                   test_a_silent_server_is_noticed, test_streams_over_tls, test_programs_refuse_in_one_line), sys.argv[6:]))
