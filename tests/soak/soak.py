#!/usr/bin/env python3
"""Trains without end while workers are stopped, slowed down and killed, and watches what each process holds.

soak.py FASTRUN FAST_TRAIN --seconds S [--seed N]

The time is divided into jobs. A job has events every few seconds: short and long pauses of one, several or all workers,
and a worker that is slow for a while. In two of three jobs one worker is killed. A job ends by SIGTERM, which saves; the next
one resumes from the checkpoints. Memory, file descriptors and threads of fastrun and of each survivor must not grow by more
than the slack below from the early part of a job to its last part. Exit status: 0, or 1 for a failure.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

WORKERS = 4
RESULTS = ('{"kind":"epoch"', '{"kind":"evaluation"')  # kinds of lines of metrics
SLACK = {"RssAnon": 4096, "RssShmem": 1024, "descriptors": 2, "threads": 1}  # KiB, KiB, number, number
EARLY, LATE = (0.25, 0.45), (0.8, 1.0)  # parts of a job that are compared
END_WITHIN_S = 60
START_WITHIN_S = 60


def figures_of(process):
    """What a process holds now; None if it has ended."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
        values = {key: int(re.search(rf"^{key}:\s+(\d+)", status, re.M)[1]) for key in ("RssAnon", "RssShmem", "Threads")}
        values["threads"] = values.pop("Threads")
        values["descriptors"] = len(os.listdir(f"/proc/{process}/fd"))
        return values
    except (OSError, TypeError):  # a zombie has no memory
        return None


class Watch:
    """Samples of what processes hold, by name."""

    def __init__(self):
        self.samples = collections.defaultdict(list)  # name: (share of the job, figures)

    def look(self, share, processes):
        for name, process in processes.items():
            values = figures_of(process)
            if values:
                self.samples[name].append((share, values))

    def part(self, name, bounds):
        return [values for share, values in self.samples[name] if bounds[0] <= share <= bounds[1]]

    def growths(self, names):
        """Of each figure: what the least late value is above the largest early one."""
        for name in names:
            early, late = self.part(name, EARLY), self.part(name, LATE)
            for key in SLACK:
                if early and late:
                    yield name, key, early[-1][key], late[-1][key], min(v[key] for v in late) - max(v[key] for v in early)


class Job:
    """A run of fast-train under fastrun."""

    def __init__(self, options, directory, number, rng):
        self.directory = directory
        self.log_path = directory / f"log-{number}"
        self.staleness = rng.choice(["0", "1", "inf"])
        for path in directory.glob("process-*"):
            path.unlink()
        checkpoints = directory / "out" / "checkpoints"
        command = [options.fastrun, "-n", str(WORKERS), str(directory / "rank"), options.fast_train,
                   "--samples", "2000", "--model", "mlp", "--batch-size", "20", "--epochs", "1000000", "--step-ms", "5",
                   "--lr-schedule", "constant", "--staleness", self.staleness, "--quiet", "--out", str(directory / "out"),
                   "--evaluate-every", "200", "--checkpoint-every", "2s"]
        if list(checkpoints.glob("round-*/manifest.json")):
            command += ["--resume", str(checkpoints)]
        self.first_line = len(self.metrics())
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.killed = set()
        self.stopped = set()

    def metrics(self):
        """Lines of epochs and of tests within one."""
        lines = []
        for path in sorted((self.directory / "out" / "metrics").glob("*.jsonl")):
            lines += [line for line in path.read_text().splitlines() if line.startswith(RESULTS)]
        return lines

    def await_start(self):
        deadline = time.monotonic() + START_WITHIN_S
        while time.monotonic() < deadline and self.process.poll() is None:
            if len(list(self.directory.glob("process-*"))) == WORKERS and len(self.metrics()) > self.first_line:
                self.ranks = {rank: int((self.directory / f"process-{rank}").read_text()) for rank in range(WORKERS)}
                return True
            time.sleep(0.05)
        return False

    def survivors(self):
        return {rank: process for rank, process in self.ranks.items() if rank not in self.killed}

    def processes(self):
        return {"fastrun": self.process.pid, **{f"rank {rank}": process for rank, process in self.survivors().items()}}

    def send(self, rank, number):
        try:
            os.kill(self.ranks[rank], number)
        except ProcessLookupError:
            pass

    def stop(self, ranks):
        for rank in ranks:
            self.stopped.add(rank)
            self.send(rank, signal.SIGSTOP)

    def resume(self):
        for rank in self.stopped:
            self.send(rank, signal.SIGCONT)
        self.stopped.clear()

    def end(self):
        """SIGTERM; the exit status, or None if the job does not end."""
        self.resume()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def kill(self):
        self.resume()
        for rank in getattr(self, "ranks", {}):
            self.send(rank, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def log(self):
        return self.log_path.read_text(errors="replace")


class Soak:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.rng = random.Random(options.seed)
        self.events, self.messages = collections.Counter(), collections.Counter()
        self.failures = []
        self.jobs = self.rounds = self.checkpoints = 0

    def event(self, job):
        """The ranks that stop now, and for how long. A slow worker stops again and again."""
        kind = self.rng.choice(["short pause", "short pause", "long pause", "pause of several", "pause of all", "slow"])
        alive = list(job.survivors())
        several = self.rng.sample(alive, min(2, len(alive)))
        ranks = {"pause of all": alive, "pause of several": several}.get(kind, several[:1])
        length = {"short pause": self.rng.uniform(0.1, 0.7), "slow": 0.1}.get(kind, self.rng.uniform(1, 3))
        self.events[kind] += 1
        return ranks, min(length, 0.1 * self.length), 10 if kind == "slow" else 1

    def rest(self, job, until):
        while time.monotonic() < min(until, self.began + self.length) and job.process.poll() is None:
            self.watch.look((time.monotonic() - self.began) / self.length, job.processes())
            time.sleep(0.1)

    def one_job(self, length):
        self.jobs += 1
        job = Job(self.options, self.directory, self.jobs, self.rng)
        try:
            self.run(job, length)
        finally:
            if job.process.poll() is None:
                job.kill()

    def run(self, job, length):
        self.watch, self.length = Watch(), length
        if not job.await_start():
            return self.fail(job, f"training has not begun within {START_WITHIN_S} s")
        self.began = time.monotonic()
        kill_at = self.began + length * self.rng.uniform(0.45, 0.6) if self.jobs % 3 != 0 else None
        while time.monotonic() < self.began + length and job.process.poll() is None:
            if kill_at and time.monotonic() > kill_at:
                kill_at = None
                rank = self.rng.choice(list(job.survivors()))
                job.killed.add(rank)
                job.send(rank, signal.SIGKILL)
                self.events["kill"] += 1
            ranks, pause_s, times = self.event(job)
            for _ in range(times):
                job.stop(ranks)
                self.rest(job, time.monotonic() + pause_s)
                job.resume()
                self.rest(job, time.monotonic() + 0.1)
            self.rest(job, time.monotonic() + self.rng.uniform(0.3, min(4, 0.15 * length)))
        self.judge(job)

    def judge(self, job):
        survivors = [f"rank {rank}" for rank in job.survivors()]
        if job.process.poll() is not None:
            return self.fail(job, f"the job has ended by itself with status {job.process.returncode}")
        status = job.end()
        if status is None:
            return self.fail(job, f"the job has not ended within {END_WITHIN_S} s after SIGTERM")
        if status != 0:
            self.fail(job, f"the job has ended with status {status}")
        log = job.log()
        newest = max((int(rounds) for rounds in re.findall(r"stopped after (\d+) rounds", log.replace(",", ""))), default=0)
        if newest <= self.rounds:
            self.fail(job, f"no round after round {self.rounds}")
        self.rounds = max(self.rounds, newest)
        for kind, pattern in {"suspected": "no sign of life", "back": "is back", "caught up": "taken over their average",
                              "broken checkpoints": "is missing|is broken"}.items():
            self.messages[kind] += len(re.findall(pattern, log))
        print(f"job {self.jobs}: staleness {job.staleness}, {WORKERS - len(job.survivors())} killed, up to round {newest}")
        for name, key, early, late, growth in self.watch.growths(["fastrun", *survivors]):
            print(f"  {name:8} {key:12} {early:9} -> {late:9}")
            if growth > SLACK[key]:
                self.fail(job, f"{name}: {key} has grown by {growth}, {SLACK[key]} are allowed")
        sys.stdout.flush()

    def fail(self, job, why):
        self.failures.append(f"job {self.jobs}: {why}")
        print(f"FAILED: job {self.jobs}: {why}\n" + "".join(f"  | {line}\n" for line in job.log().splitlines()[-30:]))

    def go(self):
        """At least two jobs, of a quarter of the time each, but 8 s at least and 15 minutes at most."""
        length = min(max(self.options.seconds / 4, 8), 900)
        ends = time.monotonic() + self.options.seconds
        while (time.monotonic() < ends or self.jobs < 2) and not self.failures:
            self.one_job(length)
        tally = ", ".join(f"{count} x {what}" for what, count in sorted(self.events.items()))
        print(f"{self.jobs} jobs, {self.rounds} rounds; events: {tally}")
        print("messages: " + ", ".join(f"{count} {what}" for what, count in self.messages.items()))
        print(f"{len(self.failures)} failures")
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fastrun")
    parser.add_argument("fast_train")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "rank").write_text(f'#!/bin/bash\necho $$ >{name}/new-$FASTRUN_RANK\n'
                                        f'mv {name}/new-$FASTRUN_RANK {name}/process-$FASTRUN_RANK\nexec "$@"\n')
        (directory / "rank").chmod(0o755)
        return Soak(options, directory).go()


if __name__ == "__main__":
    sys.exit(main())
