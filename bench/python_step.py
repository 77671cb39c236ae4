#!/usr/bin/env python3
"""What FAST costs in Python beside the bare step and beside other libraries: LeNet in PyTorch and a dense network in JAX,
random images.

  python bench/python_step.py                                 everything: the four tables below, one after another
  python bench/python_step.py --only import                   the time of importing the package, without a framework
  python bench/python_step.py --only step                     a step with and without a round, 1 and 2 workers
  python bench/python_step.py --only step --device cuda --network resnet50    the same on a GPU
  python bench/python_step.py --only jax                      the same in JAX, by combine(), with and without donated arrays
  python bench/python_step.py --only peers --ranks 2 4        FAST, DDP over gloo and decent-dp, in the same processes
  python bench/python_step.py --repeats 5 --steps 5           small, to see that it runs
  ... --json FILE                                             the figures as JSON

Run it in the environment of the package, on an idle machine with a core for each rank. Methods alternate in blocks of
steps, in an order that changes, within one run, so that all see the same disturbances. A block of several ranks takes as
long as its slowest rank. Processor time is that of all threads of a rank, the mean of the ranks; other programs disturb it
less. Ratios are those of blocks of the same repeat: the median, and the middle half. decent-dp (pip install decent-dp) and
JAX (pip install jax) are left out with the reason where they are missing.
"""
import argparse
import functools
import importlib.util
import json
import os
import pathlib
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")  # JAX, too, has a thread a rank
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this host, whose name a resolver may not know
RATE = 0.001
TABLES = {"step": ["alone", "round", "round, staleness 1"],
          "jax": ["alone", "combine", "combine, donated"],
          "peers": ["alone", "fast, ring", "fast, complete", "DDP, gloo", "decent-dp, ring", "decent-dp, complete"]}
# The method to compare with, and what of it: the time of a step, or samples a second.
BASE = {"step": ("alone", "time"), "jax": ("alone", "time"), "peers": ("DDP, gloo", "throughput")}
SHAPES = {"lenet": (1, 28, 28), "resnet20": (3, 32, 32), "resnet50": (3, 224, 224)}


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["import", *TABLES], help="one table")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="of the tables step and jax (%(default)s)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], help="of the table peers (%(default)s)")
    parser.add_argument("--repeats", type=int, default=40, help="blocks of each method (%(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="steps of a block (%(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="images of a rank's step (%(default)s)")
    parser.add_argument("--network", choices=SHAPES, default="lenet", help="of the tables step and peers (%(default)s)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of the table step (%(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the figures")
    parser.add_argument("--rank-of", choices=TABLES, help=argparse.SUPPRESS)  # a rank that this program has started
    options = parser.parse_args()
    if options.device != "cpu" and "step" not in (options.only, options.rank_of):
        parser.error("--device cuda is for --only step")
    if options.repeats < 2 or options.steps < 1 or options.batch < 1 or min(options.workers + options.ranks) < 1:
        parser.error("at least 2 repeats, and 1 of everything else, are required")
    return options


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "low": low, "high": high}


def shown(values, digits):
    return "{median:,.{d}f} ({low:,.{d}f} to {high:,.{d}f})".format(**spread(values), d=digits)


# The import ----------------------------------------------------------------------------------


def import_times(repeats):
    """Seconds beyond those of an interpreter that imports nothing, and of one that imports NumPy."""
    def seconds(code):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - began

    for code in ("import fast_decentralized", "import numpy"):
        seconds(code)  # files are in memory then
    return {base: [seconds(f"{base}; import fast_decentralized") - seconds(base) for _ in range(repeats)]
            for base in ("pass", "import numpy")}


# A rank --------------------------------------------------------------------------------------


class Missing(Exception):
    """A method that this machine does not have, or that does not fit the number of ranks."""


class Rank:
    """Methods on the same network and the same images."""

    def __init__(self):
        import fast_decentralized as fast

        self.fast = fast

    def method(self, name):
        """A function that makes one step. Collective."""
        raise NotImplementedError

    def seconds(self, work, steps):
        """Of a step on the slowest rank, and the processor time of a rank. Ranks meet first."""
        self.fast.world().barrier()
        began, processor_began = time.perf_counter(), time.process_time()
        for _ in range(steps):
            work()
        self.wait()
        own = (time.perf_counter() - began) / steps, (time.process_time() - processor_began) / steps
        wall, processor = zip(*map(pickle.loads, self.fast.world().all_gather(pickle.dumps(own))))
        return max(wall), statistics.mean(processor)

    def wait(self):
        """Until the device has done what was enqueued."""

    def times(self, names, repeats, steps):
        methods, missing = {}, {}
        for name in names:
            try:
                methods[name] = self.method(name)
            except Missing as error:
                missing[name] = str(error)
        for work in methods.values():
            self.seconds(work, max(steps, 3))  # decent-dp begins with its third step
        found = {name: [] for name in methods}
        order = list(methods)
        for repeat in range(repeats):
            turned = order[repeat % len(order):] + order[:repeat % len(order)]
            for name in turned if repeat % 2 == 0 else turned[::-1]:
                found[name].append(self.seconds(methods[name], steps))
        return found, missing

    def leave(self):
        pass


class TorchRank(Rank):
    def __init__(self, options):
        import torch

        super().__init__()
        torch.set_num_threads(1)
        self.torch, self.name, self.device = torch, options.network, torch.device(options.device)
        if options.device == "cuda":  # ranks take the GPUs in turn
            self.device = torch.device("cuda", self.fast.local_rank() % torch.cuda.device_count())
            torch.backends.cudnn.benchmark = True
        self.x = torch.randn(options.batch, *SHAPES[self.name], device=self.device)
        self.y = torch.arange(options.batch, device=self.device) % 10

    def wait(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def network(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
        import models

        self.torch.manual_seed(0)
        return getattr(models, self.name)().to(self.device)

    def optimizer(self, parameters):
        return self.torch.optim.SGD(parameters, RATE, momentum=0.9)

    def loss(self, network):
        return self.torch.nn.functional.cross_entropy(network(self.x), self.y)

    def plain_step(self, network):
        optimizer = self.optimizer(network.parameters())

        def step():
            optimizer.zero_grad()
            self.loss(network).backward()
            optimizer.step()
        return step

    def method(self, name):
        library, _, topology = name.partition(", ")
        if library == "round":
            return self.round(*self.in_common, "complete", staleness=int("staleness 1" in name))
        if library == "alone":
            return self.in_common[1]
        network = self.network()
        if library == "fast":
            return self.round(network, self.plain_step(network), topology)
        self.join_torch()
        if library == "DDP":
            network = self.torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
            return self.plain_step(network)
        return self.decent(network, topology)

    @functools.cached_property
    def in_common(self):
        """A network and its step. Where memory lies changes the time of a step by 1 %, so that the methods of the table
        step have the same."""
        network = self.network()
        return network, self.plain_step(network)

    def round(self, network, step, topology, **options):
        worker = self.fast.Worker(network, topology, **options)

        def work():
            with worker.round():
                step()
        return work

    def decent(self, network, topology):
        """Its hooks in backward() make the step."""
        try:
            from decent_dp.ddp import DecentralizedDataParallel
            from loguru import logger
        except ImportError as error:
            raise Missing(f"{error}; pip install decent-dp") from None
        logger.disable("decent_dp")
        if topology == "ring" and self.fast.size() % 2:
            raise Missing("its ring is for even numbers of ranks")
        network = DecentralizedDataParallel(network, lambda named: self.optimizer([one for _, one in named]),
                                            topology=topology, _local_world_size=self.fast.size())
        return lambda: self.loss(network).backward()

    def join_torch(self):
        import torch.distributed

        if torch.distributed.is_initialized():
            return
        folder = pickle.loads(self.fast.world().all_gather(pickle.dumps(tempfile.mkdtemp()))[0])
        self.folder = folder
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=self.fast.rank(),
                                             world_size=self.fast.size())

    def leave(self):
        import torch.distributed

        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
            if self.fast.rank() == 0:
                shutil.rmtree(self.folder, ignore_errors=True)


class JaxRank(Rank):
    def __init__(self, options):
        import jax

        super().__init__()
        self.jax = jax
        self.x, self.y = jax.random.normal(jax.random.PRNGKey(0), (options.batch, 784)), jax.numpy.arange(options.batch) % 10
        self.step = jax.jit(self.trained)

    def params(self):
        sides = [784, 512, 256, 10]
        keys = self.jax.random.split(self.jax.random.PRNGKey(1), len(sides) - 1)
        return [{"w": self.jax.random.normal(key, (ins, outs)) * (2 / ins) ** 0.5, "b": self.jax.numpy.zeros(outs)}
                for key, ins, outs in zip(keys, sides, sides[1:])]

    def loss(self, params):
        values = self.x
        for layer in params[:-1]:
            values = self.jax.nn.relu(values @ layer["w"] + layer["b"])
        logits = self.jax.nn.log_softmax(values @ params[-1]["w"] + params[-1]["b"])
        return -self.jax.numpy.take_along_axis(logits, self.y[:, None], 1).mean()

    def trained(self, params):
        return self.jax.tree_util.tree_map(lambda p, g: p - RATE * g, params, self.jax.grad(self.loss)(params))

    def method(self, name):
        worker = None if name == "alone" else self.fast.Worker(self.params(), "complete")
        state = [self.params() if worker is None else worker.params]

        def work():
            made = self.step(state[0])
            state[0] = made if worker is None else worker.combine(made, donate=name == "combine, donated")
            self.jax.block_until_ready(state[0])
        return work


def be_a_rank(options):
    rank = JaxRank(options) if options.rank_of == "jax" else TorchRank(options)
    found, missing = rank.times(TABLES[options.rank_of], options.repeats, options.steps)
    if rank.fast.rank() == 0:
        options.json.write_text(json.dumps({"seconds": found, "missing": missing}))
    rank.leave()


# Tables --------------------------------------------------------------------------------------


def measured(table, ranks, options):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "times.json"
        subprocess.run(["mpiexec", "-n", str(ranks), sys.executable, __file__, "--rank-of", table, "--repeats",
                        str(options.repeats), "--steps", str(options.steps), "--batch", str(options.batch), "--network",
                        options.network, "--device", options.device, "--json", file],
                       check=True, stdin=subprocess.DEVNULL)
        return json.loads(file.read_text())


def rows_of(table, ranks, result, batch):
    walls = {name: [wall for wall, _ in times] for name, times in result["seconds"].items()}
    processors = {name: [processor for _, processor in times] for name, times in result["seconds"].items()}
    base, kind = BASE[table]

    def ratios(of, name):
        return [own / other for own, other in zip(of[name], of[base])]

    for name, times in walls.items():
        compared = ratios(walls, name) if kind == "time" else [1 / one for one in ratios(walls, name)]
        ms, processor_ms = [1e3 * one for one in times], [1e3 * one for one in processors[name]]
        samples = [ranks * batch / one for one in times]
        processor_ratios = ratios(processors, name)
        row = {"table": table, "ranks": ranks, "method": name, "step_ms": spread(ms), "processor_ms": spread(processor_ms),
               "samples_per_second": spread(samples), f"{kind}_ratio": spread(compared),
               "processor_ratio": spread(processor_ratios)}
        cells = [str(ranks), name, shown(ms, 3), shown(samples, 0), shown(compared, 3), shown(processor_ms, 3),
                 shown(processor_ratios, 3)]
        print(f"| {' | '.join(cells)} |", flush=True)
        yield row
    for name, why in result["missing"].items():
        print(f"| {ranks} | {name} | skipped: {why} | | | | |")


def main():
    options = parsed()
    if options.rank_of:
        return be_a_rank(options)
    rows = []
    if options.only in (None, "import"):
        for base, times in import_times(max(options.repeats // 2, 2)).items():
            print(f"import fast_decentralized, beyond \"{base}\": {shown(times, 4)} s")
            rows.append({"table": "import", "beyond": base, "seconds": spread(times)})
    for table, counts in (("step", options.workers), ("jax", options.workers), ("peers", options.ranks)):
        if options.only not in (None, table):
            continue
        if table == "jax" and importlib.util.find_spec("jax") is None:
            print("\nskipped: there is no JAX; pip install jax")
            continue
        base, kind = BASE[table]
        network = "784-512-256-10 in JAX" if table == "jax" else f"{options.network} on {options.device}"
        print(f"\n{network}, batch {options.batch} a rank, {options.repeats} blocks of {options.steps} steps, "
              f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}\n\n| ranks | method | step, ms | "
              f"samples/s of all ranks | {kind} ÷ {base} | processor time of a step, ms | processor time ÷ {base} |\n"
              "|---|---|---|---|---|---|---|", flush=True)
        for ranks in counts:
            rows += rows_of(table, ranks, measured(table, ranks, options), options.batch)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
