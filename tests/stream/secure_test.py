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
import tempfile
import threading
import time

SOURCES, CONNECT, DATA, TRAIN, SERVE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:6])
SITES = SOURCES / "deploy/sites"
sys.path += [str(SOURCES / "tests/serve"), str(SITES)]
import make_sites
import nats
from programs import PATIENCE_S, check, run_all, skip, wait_for
from relay import Relay

MARK = b"these bytes are weights"
SIDE = 28
PASSWORD = 'p@ss/"word\\,1'
HERE = pathlib.Path  # files of the test's folder


def certify(folder, *names, days=365):
    subprocess.run([SITES / "make_certificates.sh", folder, *names], check=True, timeout=PATIENCE_S,
                   env={**os.environ, "DAYS": str(days)})


def tls(name="server", folder="certificates", verify=False):
    """Options of a server with TLS."""
    return ("--tls", f"--tlscert={folder}/{name}.pem", f"--tlskey={folder}/{name}-key.pem",
            *(["--tlsverify", f"--tlscacert={folder}/ca.pem"] if verify else []))


def secure_server(folder, name="server", verify=False, **more):
    return nats.Server(folder, more=tls(name, verify=verify), ca="certificates/ca.pem", **more)


def variables(**files):
    """The environment with FAST_NATS_..._FILE; the authority's certificate unless it is None."""
    named = {"ca": "certificates/ca.pem", **files}
    return {**os.environ, **{f"FAST_NATS_{name.upper()}_FILE": str(HERE(file).resolve()) for name, file in named.items() if file}}


def write(name, text, mode=0o600):
    file = HERE(name)
    file.write_text(text)
    file.chmod(mode)
    return file


def of_port(port, host="localhost", scheme="tls"):
    return f"{scheme}://{host}:{port}"


class Connection:
    """connection_program, and the lines that it has said."""

    def __init__(self, address, *options, **files):
        self.lines, self.changed = [], threading.Condition()
        self.process = subprocess.Popen([CONNECT, address, *map(str, options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=variables(**files))
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.strip())
                self.changed.notify_all()

    def has(self, begin):
        with self.changed:
            return any(line.startswith(begin) for line in self.lines)

    def wait(self, begin, seconds=PATIENCE_S):
        with self.changed:
            found = self.changed.wait_for(lambda: any(line.startswith(begin) for line in self.lines), seconds)
        if not found:
            sys.exit(f"FAILED: no line {begin!r} within {seconds} s: {self.lines}")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self.wait(f"done {line}")

    def end(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.flush()
        return self.process.wait(PATIENCE_S)


def refused(address, *texts, status=1, **files):
    """One line that says all of `texts`."""
    began = time.monotonic()
    done = subprocess.run([CONNECT, address], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                          env=variables(**files))
    lines = done.stderr.strip().split("\n")
    print(f"  {done.returncode} {lines[0]}")
    check(done.returncode == status and len(lines) == 1 and all(text in lines[0] for text in texts) and "up" not in done.stdout,
          f"{address}: status {done.returncode}: {done.stdout!r} {done.stderr!r} has not {texts}")
    check(PASSWORD not in done.stderr, f"the password is told: {done.stderr}")
    check(time.monotonic() - began < 30, "it is refused soon")


def accepted(address, *options, **files):
    connection = Connection(address, *options, **files)
    connection.wait("up ")
    return connection


def test_the_server_proves_who_it_is():
    certify("certificates", "server,localhost,127.0.0.1,::1", "elsewhere,nats.example.org")
    certify("certificates", "old,localhost", days=-1)
    certify("strangers", "server,localhost,127.0.0.1")
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
    certify("certificates", "client")
    certify("strangers", "client")
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
    shown = HERE(f"/proc/{connection.process.pid}/cmdline").read_bytes()
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
    HERE("key.der").write_bytes(bytes.fromhex("302e020100300506032b657004220420") + raw)
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
    nats.Client(second).publish("a", b"hello")
    both.wait("got a hello")
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
    check(took < 8, f"{took:.1f} s; with the usual interval, it would be 15 s")
    relay.stopped.clear()
    connection.wait(f"log tls://localhost:{relay.port}: connected again")
    check(connection.end() == 0, "it ends")
    relay.close()
    server.stop()


def deployed(name, routes, folder="deployed", **ports):
    """A server by a file of deploy/sites, with other ports and the loopback's address. `folder`: of its certificates."""
    text = (SITES / name).read_text().replace("_file: ", f"_file: {folder}/")
    for number, port in ports.items():
        text = text.replace(f"0.0.0.0:{number[1:]}", f"127.0.0.1:{port}")
    for i, port in enumerate(routes):
        text = text.replace(f"nats-{i + 1}.example.org:6222", f"127.0.0.1:{port}")
    file = write(f"deployed/{ports['p4222']}.conf", text)
    return nats.Server("store", streams=False, more=("-c", file), port=ports["p4222"], ca=f"{folder}/ca.pem",
                       environment={**os.environ, "NAME": f"nats-{ports['p4222']}"})


def test_deployed_servers():
    """Three servers of deploy/sites: who may log in, and say and hear what."""
    subprocess.run([SITES / "make_sites.py", "deployed", "run7", "alpha", "beta"], check=True)
    before = HERE("deployed/alpha.nkey").read_text()
    subprocess.run([SITES / "make_sites.py", "deployed", "run7", "alpha", "beta", "cluster:password"], check=True)
    check(HERE("deployed/alpha.nkey").read_text() == before, "nkeys stay")
    for file in ("ca.pem", "server.pem", "server-key.pem"):
        shutil.copy(f"certificates/{file}", "deployed")
    routes, leaves = [nats.free_port() for _ in range(3)], [nats.free_port() for _ in range(3)]
    servers = [deployed("server.conf", routes, p4222=nats.free_port(), p6222=routes[i], p7422=leaves[i]) for i in range(3)]
    urls = [of_port(server.port) for server in servers]
    alpha = accepted(",".join(urls), 500, "_INBOX_alpha", nkey="deployed/alpha.nkey")
    beta = accepted(",".join(urls[1:]), 500, "_INBOX_beta", nkey="deployed/beta.nkey")
    refused(urls[0], "the server wants to know who logs in")
    refused(urls[1], "does not accept this login", password=write("password", "x\n"))
    refused(f"tls://cluster@localhost:{servers[2].port}", "does not accept this login", password="password")
    refused(urls[2], "unable to get local issuer", ca=None, nkey="deployed/alpha.nkey")

    beta.tell("listen run7.beat.alpha")
    beta.tell("listen run7.data.*.beta")
    wait_for(lambda: alpha.tell("send run7.beat.alpha hello") or beta.has("got run7.beat.alpha hello"), "alpha is heard")
    alpha.tell("send run7.data.alpha.beta weights")
    beta.wait("got run7.data.alpha.beta weights")
    alpha.tell("answer run7.ask.alpha")
    wait_for(lambda: beta.tell("request run7.ask.alpha please") or beta.has("answered answer"), "alpha answers")
    for line, text in (("send run7.beat.beta x", 'Publish to "run7.beat.beta"'), ("send run7.data.beta.x x", "run7.data.beta.x"),
                       ("send other x", 'Publish to "other"'), ("listen _INBOX_beta.>", 'Subscription to "_INBOX_beta.>"'),
                       ("listen >", 'Subscription to ">"')):
        alpha.tell(line)
        wait_for(lambda: any("Permissions Violation" in each and text in each for each in alpha.lines), f"{line} is refused")

    servers[0].kill()
    alpha.wait(f"log {','.join(urls)}: connected again")
    alpha.tell("send run7.beat.alpha again")
    beta.wait("got run7.beat.alpha again")

    login_node(leaves, alpha, beta)
    more_servers(routes, beta)
    check(alpha.end() == 0 and beta.end() == 0, "they end")
    for server in servers[1:]:
        server.kill()


def login_node(leaves, alpha, beta):
    """A leaf server logs in as a site; jobs of the cluster log in there."""
    password = HERE("deployed/cluster.password").read_text().strip()
    write("deployed/urls.conf", "urls: [ " + ", ".join(f'"tls://cluster:{password}@localhost:{port}"' for port in leaves) + " ]\n")
    everybody = HERE("deployed/sites.conf").read_text()
    subprocess.run([SITES / "make_sites.py", "deployed", "run7", "cluster"], check=True)  # on the login node
    leaf = deployed("leaf.conf", (), p4222=nats.free_port())
    HERE("deployed/sites.conf").write_text(everybody)
    job = accepted(of_port(leaf.port), 500, "_INBOX_cluster", nkey="deployed/cluster.nkey")
    refused(of_port(leaf.port), "the server wants to know who logs in")
    job.tell("listen run7.beat.alpha")
    beta.tell("listen run7.beat.cluster")
    wait_for(lambda: alpha.tell("send run7.beat.alpha leaf") or job.has("got run7.beat.alpha leaf"), "the leaf hears alpha")
    wait_for(lambda: job.tell("send run7.beat.cluster leaf") or beta.has("got run7.beat.cluster leaf"), "the leaf is heard")
    check(job.end() == 0, "it ends")
    leaf.kill()


def more_servers(routes, beta):
    """A server with a certificate of another authority is not linked with the others; one of theirs is."""
    for folder in ("strangers", "certificates"):
        one = deployed("server.conf", routes, folder, p4222=nats.free_port(), p6222=nats.free_port(), p7422=nats.free_port())
        client = accepted(of_port(one.port), ca=f"{folder}/ca.pem", nkey="deployed/alpha.nkey")
        heard = lambda: client.tell(f"send run7.beat.alpha {folder}") or beta.has(f"got run7.beat.alpha {folder}")
        if folder == "certificates":
            wait_for(heard, "a fourth server is heard")
        else:
            time.sleep(2)
            check(not heard() and not time.sleep(0.5) and not heard(), "a stranger's server is heard")
        check(client.end() == 0, "it ends")
        one.kill()


def write_idx(folder, count):
    """Images of the mark's bytes."""
    HERE(folder).mkdir()
    image = (MARK * SIDE * SIDE)[:SIDE * SIDE]
    for name in ("train", "t10k"):
        (HERE(folder) / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, SIDE, SIDE) + image * count)
        (HERE(folder) / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + bytes(i % 10 for i in range(count)))


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
    check(process.wait(PATIENCE_S) == 0, f"fast-serve: {HERE('errors.txt').read_text()}")


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


def main():
    for program, package in (("nats-server", "nats-server"), ("openssl", "openssl")):
        if shutil.which(program) is None:
            skip(f"no {program} (apt-get install {package})")
    tests = (test_the_server_proves_who_it_is, test_silent_and_strange_servers, test_the_client_proves_who_it_is,
             test_passwords_and_tokens, test_nkeys_and_credentials, test_the_next_server_of_the_list,
             test_a_silent_server_is_noticed, test_deployed_servers, test_streams_over_tls, test_programs_refuse_in_one_line)
    with tempfile.TemporaryDirectory(prefix="fast-secure-") as folder:
        os.chdir(folder)
        status = run_all([(each, ()) for each in tests if not sys.argv[6:] or each.__name__ in sys.argv[6:]])
        os.chdir("/")
    return status


sys.exit(main())
