"""NATS servers with TLS, certificates that openssl makes in the current folder, and connection_program.

The first arguments of the tests are the sources and connection_program.
"""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

SOURCES, CONNECT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
SITES = SOURCES / "deploy/sites"
sys.path += [str(SOURCES / "tests/serve"), str(SITES)]
import nats
from programs import PATIENCE_S, check, run_all, skip

PASSWORD = 'p@ss/"word\\,1'


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
    return {**os.environ, **{f"FAST_NATS_{name.upper()}_FILE": str(pathlib.Path(file).resolve()) for name, file in named.items() if file}}


def write(name, text, mode=0o600):
    file = pathlib.Path(name)
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
        atexit.register(self.process.kill)
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


def run_here(tests, names=()):
    """Runs the tests in a folder of their own; those of the names, if there are any."""
    for program in ("nats-server", "openssl"):
        if shutil.which(program) is None:
            skip(f"no {program} (apt-get install {program})")
    with tempfile.TemporaryDirectory(prefix="fast-secure-") as folder:
        os.chdir(folder)
        certify("certificates", "server,localhost,127.0.0.1,::1", "elsewhere,nats.example.org", "client")
        certify("certificates", "old,localhost", days=-1)
        certify("strangers", "server,localhost,127.0.0.1", "client")
        status = run_all([(each, ()) for each in tests if not names or each.__name__ in names])
        os.chdir("/")
    return status
