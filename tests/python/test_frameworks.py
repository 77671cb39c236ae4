"""Lightning, Accelerate and Transformers: what is missing, ranks that fail, examples. ranks/ has the rest."""
import importlib.metadata
import pathlib
import re
import subprocess
import sys

import pytest
from fast_decentralized import _core
from test_sites import server  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = {"lightning": "lightning", "accelerate": "accelerate", "trainer": "transformers"}


def require(*packages):
    for package in packages:
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed; scripts/python_integrations.sh installs it")


def has_gpu():
    """In another process: CUDA does not go with children that are forked."""
    code = "import sys, torch; sys.exit(torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL).returncode == 1


def imported(module, versions):
    """Imports the module where packages have these versions; None: not installed."""
    code = f"""
import importlib.metadata
versions, plain = {versions!r}, importlib.metadata.version
def version(name):
    found = versions[name] if name in versions else plain(name)
    if found is None:
        raise importlib.metadata.PackageNotFoundError(name)
    return found
importlib.metadata.version = version
import {module}
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("module, versions, text", [
    ("lightning", {"torch": "1.13.1"}, "needs torch 2.0 or newer; run  pip install 'torch>=2.0'; 1.13.1 is installed"),
    ("lightning", {"torch": "2.1.0+cpu", "lightning": None}, "needs lightning 2.1 or newer; run  pip install 'lightning>=2.1'"),
    ("lightning", {"torch": "2.1", "lightning": "2.0.9"}, "needs lightning 2.1 or newer"),
    ("accelerate", {"torch": None}, "needs torch 2.0 or newer"),
    ("accelerate", {"torch": "2.10", "accelerate": "0.34.2"}, "needs accelerate 1.0 or newer"),
    ("transformers", {"torch": "2.10", "accelerate": "1.0.0", "transformers": "4.9"}, "needs transformers 4.46 or newer")])
def test_packages_that_are_missing_or_too_old_are_named(module, versions, text):
    done = imported(f"fast_decentralized.{module}", versions)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith(f"ImportError: fast_decentralized.{module} {text}"), done.stderr


@pytest.mark.parametrize("framework, where", [("lightning", "step"), ("lightning", "between"), ("lightning", "validation"),
                                              ("accelerate", "step"), ("accelerate", "between"),
                                              ("accelerate", "gathers"), ("accelerate", "finally"),
                                              ("trainer", "step"), ("trainer", "between")])
def test_a_rank_that_raises_ends_all(started, framework, where):
    require("torch", PACKAGES[framework])
    done = started(3, "frameworks.py", framework, where, status=1, timeout=400)
    assert done.stderr.count("ValueError: no more batches") == 1, done.stderr
    assert done.stderr.count("Traceback") == 1 and "ended" not in done.stdout, done.stderr


def test_a_failure_that_the_program_swallows_is_told_once(started):
    require("torch", "accelerate")
    done = started(3, "frameworks.py", "accelerate", "swallowed", status=1, timeout=400)
    assert done.stderr.count("fast_decentralized: rank 1 of 3 ended its worker while an exception passed") == 1, done.stderr
    assert done.stderr.count("ValueError: no more batches") == 1 and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("framework", ["accelerate", "trainer"])
def test_processes_that_do_not_know_each_other_are_refused(started, framework):
    require("torch", PACKAGES[framework])
    if has_gpu():
        pytest.skip("with a GPU, Accelerate finds the processes without cpu=True")
    done = started(2, "frameworks.py", framework, "processes", status=1, timeout=400)
    assert done.stderr.count("ArgumentError: Accelerate has found 1 processes, this run has 2 workers; use ") == 1, done.stderr
    assert done.stderr.count("Traceback") == 1, done.stderr


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("framework", PACKAGES)
def test_weights_end_as_the_mean_on_the_device_of_the_framework(started, framework, device, ranks):
    require("torch", PACKAGES[framework])
    if device == "gpu" and not (_core.has_cuda and has_gpu()):
        pytest.skip("a GPU that PyTorch can use, and a package built with fast::cuda, are required")
    done = started(ranks, "gpu_frameworks.py", framework, device, timeout=200)
    place = "cuda" if device == "gpu" else "cpu"
    found = re.findall(rf"^{place} \[(-[0-9.]+)\]$", done.stdout, re.MULTILINE)
    assert len(found) == ranks, done.stdout + done.stderr
    mean_gradient = (ranks + 1) / 2
    assert [float(value) for value in found] == [pytest.approx(-6 * 0.1 * mean_gradient, rel=1e-6)] * ranks


@pytest.mark.parametrize("framework", PACKAGES)
def test_frameworks_train_at_two_sites(server, framework):  # noqa: F811
    """After an exchange with the last step, all have the mean of the sites, whose ranks average in each step."""
    require("torch", PACKAGES[framework])
    program = [sys.executable, ROOT / "tests/python/programs/gpu_frameworks.py", framework, "cpu"]
    sites = [subprocess.Popen(["mpiexec", "-n", count, *program, name, f"{server.url}/{framework}"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True) for name, count in (("a", "2"), ("b", "1"))]
    texts = [site.communicate(timeout=400)[0] for site in sites]
    found = [float(value) for value in re.findall(r"^cpu \[(-[0-9.]+)\]$", "\n".join(texts), re.MULTILINE)]
    assert found == [pytest.approx(-6 * 0.1 * (1.5 + 11) / 2, rel=1e-6)] * 3, texts


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("framework, least", [("lightning", 95), ("accelerate", 95), ("trainer", 80)])
def test_the_example_trains(framework, least, ranks):
    require("torch", "scikit-learn", PACKAGES[framework])
    example = ROOT / f"examples/python/train_{framework}.py"
    done = subprocess.run(["mpiexec", "-n", str(ranks), sys.executable, example], capture_output=True, text=True,
                          timeout=300, stdin=subprocess.DEVNULL)
    found = re.findall(r"(\d) workers: the mean model tells ([0-9.]+) % right\n", done.stdout)
    assert done.returncode == 0 and [count for count, _ in found] == [str(ranks)], done.stdout + done.stderr
    assert float(found[0][1]) >= least, done.stdout


LORA = ROOT / "examples/python/train_lora.py"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_example_of_adapters_is_as_good_as_an_all_reduce(seed):
    require("torch", "transformers", "peft")
    if not pathlib.Path("/usr/share/common-licenses/GPL-3").exists() or not list(pathlib.Path("/usr/lib").glob("*/perl-base/Carp.pm")):
        pytest.skip("the texts of Debian's base-files and perl-base are not there")
    assert len(LORA.read_text().splitlines()) <= 100
    done = subprocess.run(["mpiexec", "-n", "4", sys.executable, LORA, str(seed)], capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = re.findall(r"^(.+): (\d+) bytes a round, (\d+) in the adapter, the base is as before$", done.stdout, re.MULTILINE)
    assert [name for name, sent, size in lines if sent == size] == ["neighbors", "neighbors, A frozen"], done.stdout
    assert int(lines[1][1]) < int(lines[0][1])
    found = {name: float(value) for name, value in re.findall(r"[:,] ([a-zA-Z, -]+) ([0-9.]+)(?=,|$)", done.stdout.splitlines()[-1])}
    base, ours, central = (found[name] for name in ("base", "neighbors", "all-reduce"))
    print(f"seed {seed}: {found}")
    assert max(ours, central, found["neighbors, A frozen"]) < 0.9 * base and abs(ours / central - 1) < 0.005, done.stdout


def test_the_cost_of_a_round_in_jax_is_measured(tmp_path):
    require("jax")
    import json

    file = tmp_path / "figures.json"
    done = subprocess.run([sys.executable, ROOT / "bench/python_step.py", "--only", "jax", "--repeats", "2", "--steps", "2",
                           "--workers", "2", "--json", file], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(file.read_text())
    assert [(row["ranks"], row["method"]) for row in rows] == [(2, name) for name in ("alone", "combine", "combine, donated")]
    assert all(row["step_ms"]["low"] > 0 for row in rows)


def test_the_comparison_with_other_libraries_runs():
    require("torch", "decent-dp")
    import json
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "figures.json"
        done = subprocess.run([sys.executable, ROOT / "bench/python_step.py", "--repeats", "3", "--steps", "4", "--workers",
                               "1", "--ranks", "2", "--json", file], capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr
        rows = json.loads(file.read_text())
    found = {(row["table"], row["ranks"], row["method"]) for row in rows if row["table"] != "import"}
    peers = ["alone", "fast, ring", "fast, complete", "DDP, gloo", "decent-dp, ring", "decent-dp, complete"]
    alone = ["alone", "round", "round, staleness 1"]
    found = {row for row in found if row[0] != "jax"}
    assert found == {*(("step", 1, name) for name in alone), *(("peers", 2, name) for name in peers)}
    assert all(row["step_ms"]["low"] > 0 for row in rows if row["table"] != "import")
    own = [row for row in rows if row.get("method") == "DDP, gloo"]
    assert own[0]["throughput_ratio"] == own[0]["processor_ratio"] == {"median": 1, "low": 1, "high": 1}
    assert all(row["processor_ms"]["low"] > 0 for row in rows if row["table"] != "import")
