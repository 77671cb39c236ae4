"""The package itself: versions, the doctor, types, examples."""
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import fast_decentralized as fast
import pytest
from fast_decentralized import __main__, implementation

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(fast.__file__).parent


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=150, stdin=subprocess.DEVNULL, **options)


def test_the_version_is_that_of_the_library():
    assert f"project(fast VERSION {fast.__version__} " in (ROOT / "CMakeLists.txt").read_text()


def test_the_tutorial_names_the_extras_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (ROOT / "docs/tutorial/python.md").read_text()
    for extra in ("torch", "jax", "mpi4py", "networkx"):
        assert f"'.[{extra}]'" in text or f"`{extra}`" in text
        [requirement] = extras[extra]
        assert re.fullmatch(extra + r">=?[0-9.]+", requirement)


def test_the_doctor_prints_versions_and_findings():
    done = run(sys.executable, "-m", "fast_decentralized")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"fast-decentralized {fast.__version__} on Python" in done.stdout
    assert "ok    two processes average their weights" in done.stdout


def test_the_doctor_says_what_to_mend():
    own = implementation.of_this_package()
    done = run(sys.executable, "-m", "fast_decentralized", env={**os.environ, "PATH": "/nowhere"})
    assert done.returncode == 1 and f"FIX   mpiexec is in the path: install {own}" in done.stdout


def test_the_doctor_names_the_package_of_its_own_mpi(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    for own, package in (("Open MPI", "openmpi-bin"), ("MPICH", "mpich")):
        monkeypatch.setattr(implementation, "of_this_package", lambda own=own: own)
        __main__.Doctor().examine()
        assert f"FIX   mpiexec is in the path: install {own} (apt-get install {package})" in capsys.readouterr().out


@pytest.mark.parametrize("text, name", [
    ("HYDRA build details:\n    Version: 4.0.2", "MPICH"), ("mpiexec (OpenRTE) 4.1.4", "Open MPI"),
    ("mpirun (Open MPI) 5.0.3", "Open MPI"), ("MPICH Version:\t4.0.2", "MPICH"), ("Open MPI v4.1.4, package: Debian", "Open MPI"),
    ("something else", None)])
def test_implementations_of_mpi_are_known_by_their_texts(text, name):
    assert implementation.named_in(text) == name


def test_the_doctor_names_the_mpiexec_of_another_mpi(tmp_path):
    own = implementation.of_this_package()
    other, text = ("Open MPI", "mpiexec (OpenRTE) 4.1.4") if own == "MPICH" else ("MPICH", "HYDRA build details:")
    (tmp_path / "mpiexec").write_text(f"#!/bin/sh\necho '{text}'\n")
    (tmp_path / "mpiexec").chmod(0o755)
    done = run(sys.executable, "-m", "fast_decentralized", env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FIX   mpiexec is {own}'s: it is {other}'s, with which each rank would be rank 0 of 1" in done.stdout


def test_the_module_has_no_mpi_of_its_own():
    assert not [file for file in FOLDER.rglob("*") if "libmpi" in file.name]
    module = next(FOLDER.glob("_core*.so"))
    assert re.search(r"libmpi\w*\.so\S* => /", run("ldd", module).stdout)


def test_types_and_documentation_are_there():
    import ast

    assert (FOLDER / "py.typed").exists()
    options = ast.parse((FOLDER / "_options.pyi").read_text())
    names = {node.target.id for node in ast.walk(options) if isinstance(node, ast.AnnAssign)}
    assert names == {row["name"] for row in fast.options()} - {"algorithm"}
    ast.parse((FOLDER / "_core.pyi").read_text())
    for name in fast.__all__:
        assert getattr(fast, name).__doc__, name
    for name, member in vars(fast.Worker).items():
        assert name.startswith("_") or member.__doc__, name


def test_the_stub_has_all_of_the_compiled_module_and_nothing_else():
    import ast

    from fast_decentralized import _core

    def names_of(body):
        found = {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        found |= {node.target.id: node for node in body if isinstance(node, ast.AnnAssign)}
        found |= {target.id: node for node in body if isinstance(node, ast.Assign) for target in node.targets}
        return found

    def public(thing):
        return {name for name in vars(thing) if not name.startswith("_")}

    stub = names_of(ast.parse((FOLDER / "_core.pyi").read_text()).body)
    assert {name for name in stub if not name.startswith("_")} == public(_core)
    for name, node in stub.items():
        if isinstance(node, ast.ClassDef) and not issubclass(getattr(_core, name), Exception):
            assert {one for one in names_of(node.body) if not one.startswith("_")} == public(getattr(_core, name)), name
        elif isinstance(node, ast.ClassDef):
            assert [base.id for base in node.bases] == [base.__name__ for base in getattr(_core, name).__bases__], name


def test_the_first_example_finds_its_line():
    done = run(sys.executable, ROOT / "examples/python/first_steps.py")
    assert done.returncode == 0, done.stdout + done.stderr
    slope, offset = re.fullmatch(r"y = ([0-9.]+) x \+ ([0-9.]+)\n", done.stdout).groups()
    assert abs(float(slope) - 3) < 1e-3 and abs(float(offset) - 1) < 1e-3


def test_the_example_of_own_parts_averages_and_resumes():
    done = run(sys.executable, ROOT / "examples/python/own_parts.py")
    # Workers of ranks 0 to 3 agree on their mean; worker 0 goes on from round 1.
    assert done.stdout.splitlines() == [f"worker {rank}: 1.500" for rank in range(4)] + ["resumed after round 1"], done.stderr


def test_the_loop_that_came_from_ddp_learns(tmp_path):
    pytest.importorskip("torch")
    done = run("mpiexec", "-n", "2", sys.executable, ROOT / "examples/python/from_ddp.py", tmp_path / "model.pt")
    found = re.fullmatch(r"2 workers: the mean model tells ([0-9.]+) % right\n", done.stdout)
    assert done.returncode == 0 and found and float(found[1]) >= 80, done.stdout + done.stderr


def test_the_example_resumes_its_checkpoints_bit_for_bit(tmp_path):
    pytest.importorskip("torch")

    def sum_after(folder, epochs, begin=0):
        done = run("mpiexec", "-n", "2", sys.executable, ROOT / "examples/python/checkpoint_torch.py", tmp_path / folder, str(epochs))
        found = re.fullmatch(rf"epochs {begin} to {epochs}; the weights add up to (\S+)\n", done.stdout)
        assert done.returncode == 0 and found, done.stdout + done.stderr
        return found[1]

    sum_after("stopped", 1)
    assert sum_after("stopped", 2, begin=1) == sum_after("whole", 2)


def test_importing_brings_no_framework():
    done = run(sys.executable, "-c", "import sys, fast_decentralized; print({'torch', 'jax', 'mpi4py'} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stdout + done.stderr


@pytest.mark.parametrize("framework, samples, least", [("torch", 16000, 50), ("jax", 8000, 60)])
def test_the_example_trains_on_four_ranks(framework, samples, least):
    pytest.importorskip(framework)
    if not pathlib.Path("/usr/share/datasets/fashion-mnist").exists():
        pytest.skip("there is no Fashion-MNIST; apt-get install dataset-fashion-mnist")
    example = ROOT / f"examples/python/train_{framework}.py"
    assert len(example.read_text().splitlines()) <= 40
    done = run("mpiexec", "-n", "4", sys.executable, example, "1", str(samples))
    found = re.fullmatch(r"4 workers: the mean model tells ([0-9.]+) % right\n", done.stdout)
    assert done.returncode == 0 and found and float(found[1]) >= least, done.stdout + done.stderr
