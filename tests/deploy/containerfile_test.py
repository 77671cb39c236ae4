#!/usr/bin/env python3
"""What deploy/container/Containerfile must hold: its stages, and the user, labels and health check of the runtime image.
Each rule finds a file that breaks it."""
import os
import pathlib
import re
import subprocess
import unittest

import containerfile

FOLDER = containerfile.PATH.parent
LABELS = {"title", "description", "licenses", "version", "revision"}
# The shell of a RUN has these beside the arguments of its stage.
OF_THE_SHELL = {"PATH", "HOME"}
RUNTIME = r"(AS runtime[\s\S]*?)"  # before a pattern: the place in the last stage


def used(text):
    """Names of variables that a shell or the builder replaces. ${Package} and others in single quotes are no such names."""
    return set(re.findall(r"\$\{?([A-Za-z_]\w*)", re.sub(r"'[^']*'", "", text)))


def assigned(text):
    return set(re.findall(r"(?:^|[;\s])([A-Za-z_]\w*)=", text)) | set(re.findall(r"\bfor (\w+) in", text))


def of_stages(stages, before):
    names = [stage.name for stage in stages]
    if names != ["toolkit", "build", "development", "runtime"]:
        yield f"the stages are {names}; runtime is the last one, which is built without --target"
    if before.get("BASE") != "docker.io/library/debian:12-slim":
        yield "the argument BASE is not debian:12-slim"
    for position, stage in enumerate(stages):
        if stage.name == "toolkit":  # --build-context puts a folder in its place
            if stage.base != "scratch" or stage.instructions:
                yield "toolkit: it is not empty without --build-context"
            continue
        if stage.base != "${BASE}" and stage.base not in names[:position]:
            yield f"{stage.name}: its base {stage.base} is neither the argument nor an earlier stage"
        for text in stage.all("COPY") + stage.all("RUN"):
            source = re.search(r"--from=(\S+)|--mount=\S*\bfrom=([^,\s]+)", text)
            if source and (source[1] or source[2]) not in names[:position]:
                yield f"{stage.name}: it takes files from {source[1] or source[2]}, which is no earlier stage"


def of_arguments(stages, before):
    for stage in stages:
        known = stage.arguments() | set(stage.pairs("ENV")) | OF_THE_SHELL
        for keyword, text in stage.instructions:
            own = assigned(text) if keyword == "RUN" else set()
            for name in sorted(used(text) - known - own) if keyword != "ARG" else ():
                yield f"{stage.name}: {keyword} uses {name}, which no ARG of this stage declares"


def of_commands(stages, before):
    for stage in stages:
        for text in (re.sub(r"^(--mount=\S+ )*", "", run) for run in stage.all("RUN")):
            if not text.startswith("set -e;"):
                yield f"{stage.name}: a RUN goes on after an error: {text[:40]}"
            if subprocess.run(["sh", "-n", "-c", text], capture_output=True, check=False).returncode:
                yield f"{stage.name}: no shell reads this RUN: {text[:40]}"
            for options in re.findall(r"apt-get install((?: -\S+)*)", text):
                if "--no-install-recommends" not in options:
                    yield f"{stage.name}: recommended packages are installed"


def of_copies(stages, before):
    for text in (text for stage in stages for text in stage.all("COPY") if "--from=" not in text):
        for source in [word for word in text.split() if not word.startswith("--")][:-1]:
            if not (FOLDER.parents[1] / source).exists():
                yield f"{source} is copied and not there"


def of_runtime(stages, before):
    stage = stages[-1]
    labels = {name.rpartition(".")[2] for name, value in stage.pairs("LABEL").items()
              if name.startswith("org.opencontainers.image.") and value}
    if LABELS - labels:
        yield f"runtime: no label {', '.join(sorted(LABELS - labels))}"
    user = stage.last("USER", "")
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", user):  # Kubernetes compares numbers: runAsNonRoot
        yield f"runtime: the user \"{user}\" is no number other than 0"
    elif f"useradd --uid {user.partition(':')[0]} " not in " ".join(stage.all("RUN")):
        yield f"runtime: no user {user} is made"
    health = re.search(r'CMD \["([\w-]+)"\]$', stage.last("HEALTHCHECK", ""))
    if not health:
        yield "runtime: no health check"
    elif not any(f"deploy/container/{health[1]} " in text and text.endswith(" /usr/bin/") for text in stage.all("COPY")):
        yield f"runtime: the health check {health[1]} is not in the image"
    elif not os.access(FOLDER / health[1], os.X_OK):
        yield f"runtime: the health check {health[1]} cannot be run"


def of_size(stages, before):
    """The runtime image has neither compilers nor lists of packages, and keys of no host."""
    text = " ".join(stages[-1].all("RUN"))
    for word in re.findall(r"\S*(?:g\+\+|gcc|cmake|-dev)(?=[_\s])\S*", text):
        yield f"runtime: it installs {word}"
    for path in ("/var/lib/apt/lists/*", "/etc/ssh/ssh_host_*", "/tmp/packages"):
        if path not in text:
            yield f"runtime: it keeps {path}"


def of_ssh(stages, before):
    """ssh from and to the image works as elsewhere; what pods need is asked for by their jobs."""
    if any("/etc/ssh/" in text for text in stages[-1].all("COPY")):
        yield "runtime: ssh of every use is changed"


def of_secrets(stages, before):
    for stage in stages:
        for name in sorted(stage.arguments() | set(stage.pairs("ENV"))):
            if re.search(r"PASSWORD|TOKEN|SECRET|_KEY", name):
                yield f"{stage.name}: {name} would stay in the image"


def of_cuda(stages, before):
    """One argument sets the version, and its packages come to the images that run and that compile."""
    for name, kind in (("build", "build"), ("runtime", "run")):
        stage = next((each for each in stages if each.name == name), containerfile.Stage("", name))
        if "CUDA" not in stage.arguments():
            yield f"{name}: no argument CUDA"
        if f'nvidia-packages "$CUDA" {kind};' not in " ".join(stage.all("RUN")):
            yield f"{name}: NVIDIA's packages are not installed"
        if 'CUDA=""' not in stage.all("ARG"):
            yield f"{name}: without the argument, CUDA is not left out"


RULES = (of_stages, of_arguments, of_commands, of_copies, of_runtime, of_size, of_ssh, of_secrets, of_cuda)


def faults(text):
    stages, before = containerfile.read(text)
    return [fault for rule in RULES for fault in rule(stages, before)]


class ContainerfileTest(unittest.TestCase):
    text = containerfile.PATH.read_text()

    def broken(self, *changes):
        """The faults after (PATTERN, TEXT) replaced the first place each; each is there."""
        text = self.text
        for pattern, replacement in changes:
            self.assertRegex(text, pattern)
            text = re.sub(pattern, replacement, text, count=1)
        return faults(text)

    def test_the_file_keeps_all_rules(self):
        self.assertEqual(faults(self.text), [])

    def test_each_rule_finds_what_breaks_it(self):
        for change, fault in (
                ((r"AS runtime", "AS image"), "the stages are"),
                ((r"debian:12-slim", "debian:latest"), "BASE is not debian:12-slim"),
                ((r"FROM \$\{BASE\} AS runtime", "FROM debian:12 AS runtime"), "its base debian:12 is neither"),
                ((r"--from=build", "--from=builder"), "builder, which is no earlier stage"),
                ((r"ARG REVISION=\w+\n", ""), "LABEL uses REVISION"),
                ((r",from=toolkit", ",from=toolkits"), "toolkits, which is no earlier stage"),
                ((r"AS toolkit\n", "AS toolkit\nCOPY deploy /mnt\n"), "toolkit: it is not empty"),
                ((r"RUN set -e;", "RUN"), "a RUN goes on after an error"),
                ((r"target=/mnt set -e;", "target=/mnt"), "a RUN goes on after an error"),
                ((r"\n    fi\n", "\n    true\n"), "no shell reads this RUN"),
                ((r"deploy/container/sshd_config", "deploy/container/sshd_settings"), "sshd_settings is copied and not there"),
                ((r"/home/fast/\.sshd_config", "/etc/ssh/sshd_config"), "runtime: ssh of every use is changed"),
                ((RUNTIME + r"image\.licenses", r"\1image.vendor"), "no label licenses"),
                ((r"install -y -qq --no-install-recommends", "install -y"), "recommended packages"),
                ((r"USER 1000:1000", "USER fast"), 'the user "fast" is no number'),
                ((r"USER 1000:1000", "USER 0:0"), 'the user "0:0" is no number'),
                ((r"USER 1000:1000\n", ""), 'the user "" is no number'),
                ((r"--uid 1000", "--uid 1001"), "no user 1000:1000 is made"),
                ((r"HEALTHCHECK [^\n]*\n", ""), "no health check"),
                ((r"deploy/container/fast-health ", ""), "fast-health is not in the image"),
                ((r"openssh-server >", "openssh-server g++ >"), "it installs g++"),
                ((RUNTIME + r"/var/lib/apt/lists/\* ", r"\1"), "it keeps /var/lib/apt/lists/*"),
                ((r'ARG LOCKED=""', 'ARG LOCKED=""\nARG NPM_TOKEN'), "NPM_TOKEN would stay"),
                ((r'"\$CUDA" run;', '"$CUDA" build;'), "runtime: NVIDIA's packages are not installed"),
                ((r'ARG CUDA=""', "ARG CUDA=12-6"), "build: without the argument, CUDA is not left out")):
            with self.subTest(fault=fault, change=change):
                self.assertTrue(any(fault in found for found in self.broken(change)), self.broken(change))

    def test_the_pods_run_as_the_user_of_the_image(self):
        user, _, group = containerfile.read(self.text)[0][-1].last("USER").partition(":")
        job = (FOLDER.parent / "kubernetes/job/job.yaml").read_text()
        self.assertEqual((re.search(r"runAsUser: (\d+)", job)[1], re.search(r"runAsGroup: (\d+)", job)[1]), (user, group))

    def test_the_script_gives_arguments_that_the_file_has(self):
        script = (FOLDER.parents[1] / "scripts/container.sh").read_text()
        stages, before = containerfile.read(self.text)
        known = set(before).union(*(stage.arguments() for stage in stages))
        given = set(re.findall(r'--build-arg "?([A-Z]+)=', script))
        self.assertEqual(given - known, set())
        self.assertEqual({"BASE", "CUDA", "LOCKED", "VERSION", "REVISION"} - given, set())

    def test_the_readers_of_variables(self):
        self.assertEqual(used("a $B ${C%%-*} '${D}' \"$e\""), {"B", "C", "e"})
        self.assertEqual(assigned("set -e; f=1; G=2 h; for i in x"), {"f", "G", "i"})


if __name__ == "__main__":
    unittest.main()
