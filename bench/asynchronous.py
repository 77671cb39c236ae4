#!/usr/bin/env python3
"""Rules with an outer step among workers of different speed that do not wait for each other, in virtual time.

  bench/asynchronous.py [--hidden N] [--lr RATE] [--seeds N] [--runs DIR] [--out FILE] [RULE ...]

The task is that of Liu et al. 2024, arXiv 2401.09135, as their public program has it: 32 Gaussians around centers of length 1
in 512 dimensions, 8 of each of 4 classes, 128,000 samples, a network 512-N-4 (N = 65000), batches of 32, AdamW that begins
anew in each turn, 4 workers of .58, .75, 1.51 and 3.33 s a step, 20 steps a turn, 8,000 steps of all workers together. With
seed 42, data and initial weights are theirs. `loss` is theirs: of 10,000 of the samples that are learned. `test` is that of
as many others.

Rules with a server are written here: `nesterov` makes a step of Nesterov's momentum for each turn of a worker, `delayed` is
theirs, in which the momentum moves once in as many turns as there are workers. For the other rules, the workers are threads
of fast_decentralized with staleness inf, of which one runs at a time: that with the earliest end of its turn.
A RULE is a name, a colon and settings, as gasloc:topology=fair,rate=2. With paced=1, slow workers make fewer steps a turn,
in proportion to their speed. The topology `fair` has weights by speed, see fair(). Runs that are in DIR are not repeated.
"""
import argparse
import functools
import heapq
import json
import math
import os
import pathlib
import random
import statistics
import threading

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np
import torch
from torch.nn import functional

STEP_S = (.58, .75, 1.51, 3.33)
WORKERS, TURN, STEPS, BATCH = len(STEP_S), 20, 8000, 32
CLASSES, CENTERS, DIMENSIONS, SAMPLES, WATCHED = 4, 32, 512, 128000, 10000
GRACE_S = .5  # turns that end so soon after another one begin anew together with it
RULES = ["nesterov", "delayed:paced=1", "gasloc:topology=fair,rate=2"]
DEFAULTS = {"nesterov": {"rate": .07, "momentum": .9}, "delayed": {"rate": .3, "momentum": .9}, "gasloc": {}, "noloco": {}}


class Samples:
    """Those of a seed, and the order in which they are learned."""

    def __init__(self, seed):
        drawn, order = np.random.RandomState(seed), random.Random(seed)
        centers = drawn.randn(CENTERS, DIMENSIONS)
        centers /= np.linalg.norm(centers, axis=1, keepdims=True)
        x, y = self.near(centers, drawn, SAMPLES)
        places, size = list(range(SAMPLES)), SAMPLES // WORKERS
        order.shuffle(places)
        watched = order.sample(range(SAMPLES), WATCHED)
        self.watched = {"loss": (x[watched], y[watched]), "test": self.near(centers, np.random.RandomState(seed + 1), WATCHED)}
        order, self.shards = random.Random(seed), []
        for shard in range(WORKERS):
            shuffled = np.concatenate([self.shuffled(size, order) for _ in range(4)])
            part = np.array(places[shard * size:(shard + 1) * size])
            self.shards.append((x[part], y[part], shuffled))

    @staticmethod
    def shuffled(size, order):
        places = np.arange(size)
        order.shuffle(places)
        return places

    @staticmethod
    def near(centers, drawn, count):
        each = count // CENTERS
        x = np.concatenate([(.5 * drawn.randn(each, DIMENSIONS) + center).astype(np.float32) for center in centers])
        return torch.from_numpy(x), torch.arange(CLASSES).repeat_interleave(len(x) // CLASSES)

    def batch(self, shard, step):
        x, y, order = self.shards[shard]
        places = order[step * BATCH:(step + 1) * BATCH]
        return x[places], y[places]


samples_of = functools.lru_cache(maxsize=1)(Samples)


class Task:
    """One training run: the network, what was learned, and the losses after about so many steps each."""

    def __init__(self, arguments, seed):
        self.samples, self.hidden, self.peak, self.every = samples_of(seed), arguments.hidden, arguments.lr, arguments.every
        self.drawn, self.visits, self.steps = np.random.RandomState(seed), [0] * WORKERS, [0] * WORKERS
        self.total, self.next, self.lines = 0, 0, []
        torch.manual_seed(seed)
        self.start = self.network().state_dict()

    def network(self):
        first, last = torch.nn.Linear(DIMENSIONS, self.hidden), torch.nn.Linear(self.hidden, CLASSES)
        return torch.nn.Sequential(first, torch.nn.ReLU(), last)

    def begin(self, steps):
        """The samples of a turn that begins now: of the shard that was taken least often."""
        fewest = np.where(np.array(self.visits) == min(self.visits))[0]
        shard = self.drawn.choice(fewest)
        self.visits[shard] += 1
        self.steps[shard] += steps
        return shard, self.steps[shard] - steps, self.steps[shard]

    def rate(self, step):
        return 1e-6 + (self.peak - 1e-6) * .5 * (1 + math.cos(math.pi * min(step * WORKERS / STEPS, 1)))

    def learn(self, model, turn):
        shard, first, last = turn
        optimizer = torch.optim.AdamW(model.parameters(), lr=self.peak, weight_decay=.01, fused=True)
        for step in range(first, last):
            if step > first:  # theirs begins each turn at the largest rate
                optimizer.param_groups[0]["lr"] = self.rate(step)
            gradients(model, *self.samples.batch(shard, step))
            optimizer.step()
        self.total += last - first

    def look_is_due(self):
        return self.total >= min(self.next, STEPS)

    @torch.no_grad()
    def look(self, time, model):
        if self.look_is_due():
            self.next += self.every
            losses = {name: sum(functional.cross_entropy(model(part), labels, reduction="sum").item()
                                for part, labels in zip(x.split(500), y.split(500))) / len(x)
                      for name, (x, y) in self.samples.watched.items()}
            self.lines.append({"steps": self.total, "seconds": round(time, 2), **losses})
            print(self.lines[-1], flush=True)


@torch.no_grad()
def gradients(model, x, y):
    """As backward() of the mean cross entropy, into the same memory each time: a third faster at this size."""
    first, _, last = model
    for p in model.parameters():
        p.grad = torch.empty_like(p) if p.grad is None else p.grad
    hidden = first(x).clamp_(min=0)
    slope = torch.softmax(last(hidden), 1).sub_(functional.one_hot(y, CLASSES)).div_(len(x))
    torch.mm(slope.t(), hidden, out=last.weight.grad)
    torch.sum(slope, 0, out=last.bias.grad)
    slope = (slope @ last.weight).mul_(hidden > 0)
    torch.mm(slope.t(), x, out=first.weight.grad)
    torch.sum(slope, 0, out=first.bias.grad)


def turn_steps(paced):
    return [max(1, int(TURN * min(STEP_S) / seconds)) if paced else TURN for seconds in STEP_S]


class Server:
    """The turns of workers arrive one by one."""

    def __init__(self, model, rule, rate, momentum):
        self.model, self.is_delayed, self.rate, self.momentum, self.arrived = model, rule == "delayed", rate, momentum, 0
        self.m = [torch.zeros_like(p) for p in model.parameters()]
        self.sums = [torch.zeros_like(p) for p in model.parameters()] if self.is_delayed else []

    @torch.no_grad()
    def take(self, changes):
        self.arrived += 1
        for number, (p, change) in enumerate(zip(self.model.parameters(), changes)):
            m = self.m[number]
            if not self.is_delayed:  # theirs counts a turn 1/sqrt(workers)
                change /= math.sqrt(WORKERS)
                m.mul_(self.momentum).add_(change)
                p.sub_(change.add_(m, alpha=self.momentum), alpha=self.rate)
                continue
            self.sums[number].add_(change, alpha=1 / WORKERS)
            p.sub_(change, alpha=self.rate / WORKERS)
            if self.arrived % WORKERS == 0:
                m.mul_(self.momentum).add_(self.sums[number])
                p.sub_(m, alpha=self.rate * self.momentum)
                self.sums[number].zero_()


def with_server(task, rule, paced=0, **options):
    model, local = task.network(), task.network()
    model.load_state_dict(task.start)
    server = Server(model, rule, **options)
    steps = turn_steps(paced)
    now, turns = 0., []
    task.look(now, model)

    def begin(worker):
        """A worker computes when its turn ends, from the weights with which the turn began."""
        begun = [p.detach().clone() for p in model.parameters()]
        heapq.heappush(turns, (now + steps[worker] * STEP_S[worker], worker, begun, task.begin(steps[worker])))

    for worker in range(WORKERS):
        begin(worker)
    while task.total < STEPS:
        first, idle = None, []
        while turns and task.total < STEPS and (first is None or turns[0][0] - first <= GRACE_S):
            now, worker, begun, turn = heapq.heappop(turns)
            first = now if first is None else first
            with torch.no_grad():
                for p, value in zip(local.parameters(), begun):
                    p.copy_(value)
            task.learn(local, turn)
            server.take([value - p.detach() for value, p in zip(begun, local.parameters())])
            idle.append(worker)
            task.look(now, model)
        for worker in sorted(idle):
            begin(worker)


class Turns:
    """Threads in virtual time: one runs, that whose time is the earliest, as soon as all others wait."""

    def __init__(self, workers):
        self.changed, self.times, self.workers = threading.Condition(), {}, workers

    def wait(self, worker, time):
        with self.changed:
            self.times[worker] = time
            self.changed.notify_all()
            self.changed.wait_for(lambda: len(self.times) == self.workers and self.first() == worker)
            del self.times[worker]

    def first(self):
        return min(self.times, key=lambda worker: (self.times[worker], worker))

    def end(self):
        with self.changed:
            self.workers -= 1
            self.changed.notify_all()


def fair(graph, turns):
    """The weights with which workers that do not wait pull each other alike: i reads j with w min(1, turn of i / turn of j)."""
    matrix = np.array(graph) * np.minimum(1, np.divide.outer(turns, turns))
    return matrix + np.diag(1 - matrix.sum(axis=1))


def with_library(task, rule, paced=0, topology=None, **options):
    import fast_decentralized as fast

    turns, steps = Turns(WORKERS), turn_steps(paced)
    topology = topology or ("random_matchings" if rule == "noloco" else "complete")
    if topology == "fair":
        topology = fair((1 - np.eye(WORKERS)) / WORKERS, np.multiply(steps, STEP_S))
    settings = ["period=1", *(f"{key}={value}" for key, value in options.items())]
    replicas, mean = [task.network() for _ in range(WORKERS)], task.network()

    def work():
        rank = fast.rank()
        model = replicas[rank]
        model.load_state_dict(task.start)
        worker = fast.Worker(model, topology, algorithm=rule, algorithm_option=settings, staleness="inf", deadline=1e5,
                             failure_timeout=1e5, log=lambda *_: None)

        def look(now):
            if task.look_is_due():
                mean.load_state_dict(worker.mean_model())
                task.look(now, mean)

        now = 0.
        turns.wait(rank, -1)
        if rank == 0:
            look(now)
        while task.total < STEPS:
            turn = task.begin(steps[rank])
            now += steps[rank] * STEP_S[rank]
            turns.wait(rank, now)
            if task.total < STEPS:
                worker.step(task.learn, model, turn)
                look(now)
        turns.end()
        worker.close()

    fast.local.run(WORKERS, work)


def settings_of(text):
    name, _, rest = text.partition(":")
    if name not in DEFAULTS:
        raise argparse.ArgumentTypeError(f"{name}: no rule has this name; there are {', '.join(DEFAULTS)}")
    given = dict(word.split("=") for word in rest.split(",") if word)
    return name, {**DEFAULTS[name], **{key: value if key == "topology" else float(value) for key, value in given.items()}}


def run(arguments, text, seed):
    file = arguments.runs / f"{text.replace(':', '-').replace('=', '')}-{arguments.hidden}-{arguments.lr:g}-{seed}.json"
    if file.exists():
        return json.loads(file.read_text())
    print(text, seed, flush=True)
    name, settings = settings_of(text)
    task = Task(arguments, seed)
    (with_server if name in ("nesterov", "delayed") else with_library)(task, name, **settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(task.lines))
    return task.lines


def row(text, runs):
    """Mean (lowest, highest) of the seeds."""
    def cell(name, at):
        values = [lines[at][name] for lines in runs]
        return f"{statistics.mean(values):.3f} ({min(values):.3f}, {max(values):.3f})"

    half = len(runs[0]) // 2
    return f"| `{text}` | {cell('loss', half)} | {cell('loss', -1)} | {cell('test', -1)} | {runs[0][-1]['seconds']:.0f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", default=RULES, metavar="RULE")
    parser.add_argument("--hidden", type=int, default=65000)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--every", type=int, default=800, help="steps between two looks at the losses")
    parser.add_argument("--first-seed", type=int, default=42)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("build/asynchronous"))
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    lines = ["| rule | loss at half of the steps | loss | test | seconds |", "|---|---|---|---|---|"]
    lines += [row(text, [run(arguments, text, seed) for seed in seeds]) for text in arguments.rules]
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
