#!/usr/bin/env python3
"""The servers of deploy/sites: who may log in, and send and receive what.

  deployed_servers_test.py SOURCES CONNECTION_PROGRAM [TEST...]
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time

from secure import SITES, accepted, of_port, refused, run_here, write
import nats
from programs import check, wait_for


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
    long = "a" * 41
    for names, text in ((("alpha", "alpha"), "alpha\" is given 2 times"), ((long,), "at most 40 characters are allowed; it has 41")):
        done = subprocess.run([SITES / "make_sites.py", "refused", "run7", *names], capture_output=True, text=True)
        check(done.returncode == 1 and done.stderr.count("\n") == 1 and text in done.stderr, f"make_sites.py refuses: {text}")
    check(not pathlib.Path("refused").exists(), "what is refused writes nothing")
    subprocess.run([SITES / "make_sites.py", "deployed", "run7", "alpha", "beta"], check=True)
    before = pathlib.Path("deployed/alpha.nkey").read_text()
    subprocess.run([SITES / "make_sites.py", "deployed", "run7", "alpha", "beta", "cluster:password", "me:onlooker"], check=True)
    check(pathlib.Path("deployed/alpha.nkey").read_text() == before, "nkeys stay")
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
    wait_for(lambda: alpha.tell("send run7.data.alpha.beta weights") or beta.has("got run7.data.alpha.beta weights"), "weights")
    alpha.tell("answer run7.ask.alpha")
    wait_for(lambda: beta.tell("request run7.ask.alpha please") or beta.has("answered answer"), "alpha answers")
    for line, text in (("send run7.beat.beta x", 'Publish to "run7.beat.beta"'), ("send run7.data.beta.x x", "run7.data.beta.x"),
                       ("send run7.get.alpha.beta x", "run7.get.alpha.beta"), ("send run7.look.beta x", "run7.look.beta"),
                       ("send other x", 'Publish to "other"'), ("listen _INBOX_beta.>", 'Subscription to "_INBOX_beta.>"'),
                       ("listen >", 'Subscription to ">"')):
        alpha.tell(line)
        wait_for(lambda: any("Permissions Violation" in each and text in each for each in alpha.lines), f"{line} is refused")

    onlooker(urls[1], alpha, beta)

    servers[0].kill()
    alpha.wait(f"log {','.join(urls)}: connected again")
    wait_for(lambda: alpha.tell("send run7.beat.alpha again") or beta.has("got run7.beat.alpha again"), "alpha is heard again")

    login_node(leaves, alpha, beta)
    more_servers(routes, beta)
    check(alpha.end() == 0 and beta.end() == 0, "they end")
    for server in servers[1:]:
        server.kill()


def onlooker(url, alpha, beta):
    """It hears all, may ask for weights, and sends nothing else."""
    me = accepted(url, 500, "_INBOX_me", nkey="deployed/me.nkey")
    for subject in ("run7.beat.alpha", "run7.data.*.me"):
        me.tell(f"listen {subject}")
    for subject in ("run7.ask.alpha", "run7.look.alpha"):
        alpha.tell(f"listen {subject}")
        wait_for(lambda: me.tell(f"send {subject} please") or alpha.has(f"got {subject} please"), f"{subject} is heard")
    wait_for(lambda: alpha.tell("send run7.beat.alpha here") or me.has("got run7.beat.alpha here"), "the onlooker hears alpha")
    wait_for(lambda: alpha.tell("send run7.data.alpha.me weights") or me.has("got run7.data.alpha.me weights"), "its weights")
    for subject in ("run7.beat.me", "run7.new.me", "run7.data.me.alpha", "run7.beat.alpha", "run7.get.alpha.me", "run7.get.alpha.beta"):
        me.tell(f"send {subject} x")
        wait_for(lambda: any("Permissions Violation" in line and subject in line for line in me.lines), f"{subject} is refused")
    check(me.end() == 0, "it ends")


def login_node(leaves, alpha, beta):
    """A leaf server logs in as a site; jobs of the cluster log in there."""
    password = pathlib.Path("deployed/cluster.password").read_text().strip()
    write("deployed/urls.conf", "urls: [ " + ", ".join(f'"tls://cluster:{password}@localhost:{port}"' for port in leaves) + " ]\n")
    everybody = pathlib.Path("deployed/sites.conf").read_text()
    subprocess.run([SITES / "make_sites.py", "deployed", "run7", "cluster"], check=True)  # on the login node
    leaf = deployed("leaf.conf", (), p4222=nats.free_port())
    pathlib.Path("deployed/sites.conf").write_text(everybody)
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


sys.exit(run_here((test_deployed_servers,), sys.argv[3:]))
