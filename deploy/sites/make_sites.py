#!/usr/bin/env python3
"""Writes who may log in at the servers of a run, and what each site may send and receive.

  make_sites.py FOLDER RUN SITE[:password|:onlooker]...

FOLDER/sites.conf is for the servers; they hold no secret. FOLDER/SITE.nkey is for the site SITE, and for nobody else:
FAST_NATS_NKEY_FILE names it. A leaf server logs in with a password: with SITE:password, FOLDER/SITE.password is written.
With NAME:onlooker, FOLDER/NAME.nkey is for somebody who looks at the run (fast-sites), and trains nothing.
Files that are there are kept, so that a later call adds sites.
"""
import base64
import binascii
import os
import pathlib
import re
import secrets
import subprocess
import sys

USER, SEED = 20 << 3, 18 << 3  # the letters U and S of an nkey


def openssl(*words, given=b""):
    return subprocess.run(["openssl", *words], input=given, check=True, capture_output=True).stdout


def encoded(data):
    """As nkeys are written: with a checksum, in base32."""
    return base64.b32encode(data + binascii.crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")


def new_nkey(kind=USER):
    """A seed and its public key. The last 32 bytes of OpenSSL's forms are those of the key."""
    secret = openssl("genpkey", "-algorithm", "ED25519", "-outform", "DER")
    public = openssl("pkey", "-inform", "DER", "-pubout", "-outform", "DER", given=secret)
    seed = bytes([SEED | kind >> 5, (kind & 31) << 3]) + secret[-32:]
    return encoded(seed), encoded(bytes([kind]) + public[-32:])


def write_secret(file, text):
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)


def nkey_of(file):
    if not file.exists():
        write_secret(file, "\n".join(new_nkey()) + "\n")
    return file.read_text().split()[1]


def hash_of(file):
    """bcrypt, by the system's C library."""
    if not file.exists():
        write_secret(file, secrets.token_hex(20) + "\n")
    salt = "$2b$10$" + base64.b64encode(secrets.token_bytes(18), b"./").decode()[:22]
    done = subprocess.run(["perl", "-e", "chomp($p = <STDIN>); print crypt($p, $ARGV[0])", salt], check=True,
                          input=file.read_text().split()[0], capture_output=True, text=True).stdout
    if not done.startswith("$2b$10$"):
        sys.exit("make_sites.py: the C library has no bcrypt; write a hash of  nats server passwd  into sites.conf")
    return done


def permissions(run, site, kind):
    if kind == "onlooker":
        return f"""          publish: [ "{run}.look.*", "{run}.ask.*" ]
          subscribe: [ "{run}.>" ]"""
    return f"""          publish: [ "{run}.beat.{site}", "{run}.new.{site}", "{run}.data.{site}.>", "{run}.get.*.{site}", "{run}.ask.*" ]
          subscribe: [ "{run}.>", "_INBOX_{site}.>" ]
          allow_responses: true"""


def user(folder, run, site, kind):
    login = (f'user: "{site}", password: "{hash_of(folder / f"{site}.password")}"' if kind == "password"
             else f'nkey: {nkey_of(folder / f"{site}.nkey")}')
    return f"""      {{ {login}
        permissions {{
{permissions(run, site, kind)}
        }} }}  # {site}
"""


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    folder, run = pathlib.Path(sys.argv[1]), sys.argv[2]
    sites = [site.partition(":") for site in sys.argv[3:]]
    for site, _, kind in sites:
        if kind not in ("", "password", "onlooker"):
            sys.exit(f'make_sites.py: {site}:{kind}: password or onlooker is required')
    for word in (run, *(site for site, _, _ in sites)):
        if not re.fullmatch(r"[A-Za-z0-9_-]+", word):
            sys.exit(f'make_sites.py: "{word}": letters, digits, - and _ are required')
    names = [site for site, _, _ in sites]
    for name in names:
        if len(name) > 40:
            sys.exit(f'make_sites.py: "{name}": at most 40 characters are allowed; it has {len(name)}')
        if names.count(name) > 1:
            sys.exit(f'make_sites.py: "{name}" is given {names.count(name)} times; each site needs a name of its own')
    folder.mkdir(parents=True, exist_ok=True)
    users = "".join(user(folder, run, site, kind) for site, _, kind in sites)
    (folder / "sites.conf").write_text(f"""# Of make_sites.py. Each user is in an account: without accounts, nats-server 2.9.10 may let anybody in.
accounts {{
  SITES {{
    users: [
{users}    ]
  }}
}}
""")


if __name__ == "__main__":
    main()
