"""Replicas of several ranks: each rank has a part of the model, as by FSDP2, tensor parallelism or DDP within a replica."""
import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys

import fast_decentralized as fast
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests/python/programs"
LINE = re.compile(r"^(\S+): (\S+) from unsharded, mean (\S+), copies (\w+), (\d+) bytes, unsharded (\d+), .*$", re.MULTILINE)

#: Rules that treat each element by itself: the parts of a model are those of the same run of whole models.
#: test_rule_tables.py compares these tables with the library, also without PyTorch.
ELEMENTWISE = {
    "none": "", "awc": "", "atc": "", "local": ",rule.period=2", "gossip_pga": ",rule.period=3", "gradient_tracking": "", "d2": "",
    "edm": "", "gut": "", "relay_sum": ",topology=grid1d", "a2cid2": ",topology=alternating_pairs",
    "quasi_global_momentum": "", "averaged_momentum": "", "decentlam": "", "push_sum": "", "pairwise": ",topology=random_matchings",
    "diloco": ",topology=complete,rule.period=3", "noloco": ",topology=random_matchings,rule.period=3", "gasloc": ",rule.period=2",
    "allreduce": "", "gradient_exchange": "",
}
#: They choose entries, of each part by itself: other ones than of the whole model.
BY_PARTS = {"choco": ",rule.fraction=0.2", "sparta": ",rule.fraction=0.2"}
NEEDS_SITES = {"awc_gasloc"}
REFUSED = {"event_triggered"}


@pytest.fixture(autouse=True)
def current_pytorch():
    try:
        found = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("PyTorch is not installed")
    if tuple(int(part) for part in re.findall(r"[0-9]+", found)[:2]) < (2, 6):
        pytest.skip(f"PyTorch 2.6 or newer is required, {found} is installed")


def compared(started, ranks, shards, cases, timeout=300):
    done = started(ranks, "sharded.py", shards, *cases, launcher="fastrun", timeout=timeout)
    found = LINE.findall(done.stdout)
    assert [case for case, *_ in found] == list(cases), done.stdout + done.stderr
    return [(case, float(error), float(mean), copies, int(sent), int(whole)) for case, error, mean, copies, sent, whole in found]


@pytest.mark.parametrize("ranks", [4, 6])
@pytest.mark.parametrize("dtype, bound", [("float64", 1e-12), ("float32", 1e-6)])
def test_parts_are_those_of_whole_models(started, ranks, dtype, bound):
    cases = [f"fsdp,{dtype},{rule}{options}" for rule, options in ELEMENTWISE.items()]
    if ranks == 6:  # three replicas have no pairs
        cases = [case for case in cases if "random_matchings" not in case and "pairs" not in case]
    if dtype == "float32":  # it adds the steps of all neighbors, and so lets differences grow
        cases = [case for case in cases if "gradient_exchange" not in case]
    for case, error, mean, copies, sent, whole in compared(started, ranks, 2, cases):
        assert max(error, mean) <= bound and copies == "equal", case
        assert whole <= sent <= 1.01 * whole + 1000, case  # scalars of messages, once for each part


@pytest.mark.parametrize("ranks, shards, kinds", [(4, 2, ["fsdp", "tp", "ddp"]), (8, 4, ["fsdp_tp"]), (3, 1, ["fsdp"])])
def test_one_mesh_of_all_ranks(started, tmp_path, monkeypatch, ranks, shards, kinds):
    monkeypatch.setenv("MEETING", str(tmp_path / "meeting"))
    cases = [f"{kind},float64,{rule}" for kind in kinds for rule in ("awc", "d2", "gasloc,rule.period=2")]
    for case, error, mean, copies, sent, whole in compared(started, ranks, f"mesh{shards}", cases):
        assert max(error, mean) <= 1e-12 and copies == "equal" and sent <= 1.01 * whole + 1000, case


MISTAKES_WITH_MESHES = {
    "one side": "ArgumentError: replicas: the mesh has one side, of 4 ranks; the first side counts the replicas",
    "a part": "ArgumentError: replicas: the mesh has one side, of 2 ranks",
    "order": "ArgumentError: replicas: the mesh has its ranks in another order than 0, 1, 2, ...; make it by init_device_mesh",
    "hsdp": 'tensor "0.weight" lies on ranks of other replicas (HSDP), which makes all replicas equal; shard on the sides',
    "ddp of all": 'module "" is a DistributedDataParallel over ranks of other replicas, which makes all replicas equal',
    "copies": "MismatchError: Worker: the ranks of replica 0 have other copies of tensors than those of replica 1",
    "shards": "ArgumentError: replicas: rank 0 asks for 2 shards, rank 3 for 1; give the same number",
    "comm": "replicas and comm are given; give what fast.replicas() has returned or a DeviceMesh of all ranks, and no comm",
}


def test_each_mistake_with_a_mesh_has_an_error_of_its_own(started, tmp_path, monkeypatch):
    monkeypatch.setenv("MEETING", str(tmp_path / "meeting"))
    done = started(4, "mesh_mistakes.py", *MISTAKES_WITH_MESHES, "right", timeout=200)
    for how, text in MISTAKES_WITH_MESHES.items():
        told = [line for line in done.stdout.splitlines() if line.startswith(f"{how}: ")]
        assert len(told) == 1 and text in told[0], (how, told, done.stderr)
    assert done.stdout.count("made") == 1 and "made right" in done.stdout and "Traceback" not in done.stderr


def test_a_rule_for_sites(started, tmp_path):
    file = tmp_path / "sites.toml"
    file.write_text("schedule = 'sites'\nevery = 3\nworkers_per_site = 2\n")
    for case, error, mean, copies, *_ in compared(started, 8, 2, [f"fsdp,float64,awc_gasloc,topology={file}"]):
        assert max(error, mean) <= 1e-12 and copies == "equal", case


@pytest.mark.parametrize("ranks, shards, kinds", [(4, 2, ["tp", "ddp"]), (8, 4, ["fsdp", "fsdp_tp", "tp", "ddp"]), (3, 1, ["fsdp", "ddp"])])
def test_kinds_of_parts(started, ranks, shards, kinds):
    cases = [f"{kind},float64,{rule}" for kind in kinds for rule in ("awc", "d2", "gasloc,rule.period=2", "awc,mix_every=3")]
    for case, error, mean, copies, sent, whole in compared(started, ranks, shards, cases):
        assert max(error, mean) <= 1e-12 and copies == "equal" and sent <= 1.01 * whole + 1000, case


def test_copies_stay_equal_where_parts_are_apart(started):
    cases = [f"{kind},float32,{rule}{options}" for kind in ("fsdp", "tp", "ddp") for rule, options in BY_PARTS.items()]
    cases += [f"{kind},float32,awc,{option}" for kind in ("fsdp", "tp", "ddp")
              for option in ("codec=int8", "codec=bf16_stochastic", "staleness=2", "staleness=inf")]
    cases += ["ddp,float32,diloco,topology=complete,rule.period=2,rule.fraction=0.2"]
    for case, error, mean, copies, *_ in compared(started, 4, 2, cases):
        assert max(error, mean) < 2 and copies == "equal", case


def test_a_lost_rank_ends_its_replica_alone(started, tmp_path):
    done = started(6, "replica_fails.py", "kill", tmp_path, launcher="fastrun", timeout=200)
    assert done.stderr.count("replica 1 of 3 ends: rank 2 was lost; the other replicas go on") == 1, done.stderr
    assert sorted(re.findall(r"^rank (\d) ended: 60 rounds, skipped True, rejoined 0$", done.stdout, re.MULTILINE)) == list("0145")
    after = float(re.search(r"^rank 3 ended after ([0-9.]+) s$", done.stdout, re.MULTILINE)[1])
    print(f"the other rank of the replica ended {after} s after the loss")
    assert after < 2, done.stdout


def test_a_rank_that_is_stopped_ends_its_replica(started, tmp_path):
    done = started(6, "replica_fails.py", "stop", tmp_path, launcher="fastrun", timeout=200)
    assert done.stderr.count("replica 1 of 3 ends: rank 2 has given no sign of life for 1.5 s; the other replicas go on") == 1, done.stderr
    assert sorted(re.findall(r"^rank (\d) ended: 60 rounds", done.stdout, re.MULTILINE)) == list("0145"), done.stdout + done.stderr


@pytest.mark.parametrize("launcher", ["fastrun", "mpiexec"])
@pytest.mark.parametrize("how, text", [("raise", "ValueError: no more batches"), ("between", "ValueError: no more batches"),
                                       ("together", "RuntimeError: the shapes do not fit")])
def test_an_error_is_told_once_and_ends_all(started, tmp_path, launcher, how, text):
    done = started(6, "replica_fails.py", how, tmp_path, launcher=launcher, status=1, timeout=200)
    assert done.stderr.count(text) == 1 and done.stderr.count("Traceback") == 1, done.stderr
    assert "ended" not in done.stdout and "Abort(" not in done.stderr, done.stderr


MISTAKES = {
    "initialized": "torch.distributed has a process group already; leave out init_process_group()",
    "odd": "ArgumentError: replicas: 4 ranks are not divisible by 3 shards; start a multiple of 3, as by  fastrun -n 6",
    "text": "ArgumentError: replicas: shards is 'two'; a whole number, 1 or more, is required",
    "other": "ArgumentError: replicas: rank 0 asks for 2 shards, rank 3 for 4; give the same number",
    "forgotten": "is a DTensor with Shard(dim=0) on 2 ranks: each has another part, so their average is nothing; make replicas",
    "comm": "replicas and comm are given; give what fast.replicas() has returned or a DeviceMesh of all ranks, and no comm",
    "mesh": "replicas: a DeviceMesh after fast.replicas(); give what that has returned",
    "event": "algorithm event_triggered with replicas: it compares the distance that the whole model has moved",
    "clip": "robust clip with replicas: it compares the distances of whole models",
    "trimmed": "robust trimmed_mean with replicas: a publication that is not finite is left out as a whole",
    "partial": 'tensor "0.weight" has the placements (Partial(sum),); sums that were not made cannot be averaged',
    "heal": "on_nonfinite heal with replicas: one rank would take back its part of a step",
    "seed": 'parameter "weight" of shard 0 and that of shard 1 are copies by their placements, and differ, in replica 0',
    "fsdp1": 'module "" is a FullyShardedDataParallel (FSDP1), whose flat parameters do not say',
    "dict": "the model is a dict; with replicas, a torch.nn.Module is required",
    "zero3": 'parameter "0.weight" is a part of DeepSpeed\'s ZeRO stage 3',
    "placement": 'worker 0 has tensor "0.weight" [4, 4] Shard(dim=0) on 2 ranks, worker 1 has tensor "0.weight" [4, 4] Shard(dim=1)',
    "another model": 'worker 0 has tensor "0.weight" [4, 4] Shard(dim=0) on 2 ranks, worker 1 has tensor "weight" [4, 4] Shard(dim=0)',
    "option": "MismatchError: Worker: worker 0 has staleness 0, worker 1 has staleness 1",
    "one rank": '"0.weight" has [4, 4] torch.float32 Shard(dim=0) on 2 ranks on shard 0, and [4, 4] torch.float32 on shard 1',
    "growth": "allow_growth with replicas: ",
    "mean": "on_mean with replicas: all ranks of a replica make the mean model together",
    "site": "a site with replicas: each part of the model would join as a site of its own",
    "stops": "fast.on_stop() with replicas: each part of the model would stop after a round of its own",
    "flat": "flat=True with replicas: the parts of a model are laid out by fully_shard",
}


def test_each_mistake_has_an_error_of_its_own(started):
    done = started(4, "replica_mistakes.py", *MISTAKES, timeout=300)
    for how, text in MISTAKES.items():
        told = [line for line in done.stdout.splitlines() if line.startswith(f"{how}: ")]
        assert len(told) == 1 and text in told[0], (how, told, done.stderr)
    assert not re.search("^made", done.stdout, re.MULTILINE) and "Traceback" not in done.stderr


REBIND = "ArgumentError: Worker.rebind: other parameters train now, and replicas have several ranks; make a new Worker"  # after which the worker has failed


@pytest.mark.parametrize("how", ["odd", "forgotten", "placement", "one rank", "rebind"])
def test_a_mistake_is_told_once(started, how):
    done = started(4, "replica_mistakes.py", how, status=1, timeout=200)
    assert done.stderr.count({**MISTAKES, "rebind": REBIND}[how]) == 1 == done.stderr.count("Traceback"), done.stderr


def test_threads_are_refused():
    with pytest.raises(fast.ArgumentError, match="these workers are threads, and torch.distributed has one process group"):
        fast.local.run(2, lambda: fast.replicas(shards=2))


def test_a_run_that_is_resumed_is_the_same_and_whole_weights_go_on_with_other_shards(started, tmp_path):
    done = started(4, "replica_resumes.py", tmp_path / "run", timeout=200)
    assert done.stdout.splitlines() == ["whole weights go on in replicas of 4", "whole weights go on in replicas of 1",
                                        "the same end"], done.stdout + done.stderr


def test_processes_of_torchrun_make_replicas():
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "4", str(PROGRAMS / "sharded.py"), "2", "fsdp,float64,awc"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and len(LINE.findall(done.stdout)) == 1, done.stdout + done.stderr


def test_a_process_of_pytorch_alone_is_told_how_to_start():
    program = "import fast_decentralized as fast; fast.replicas(shards=2)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL)
    assert "1 rank is alone, as each process of torch.multiprocessing.spawn is, and not divisible by 2 shards" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("ranks", [4, 6])
def test_the_example_trains(ranks):
    example = ROOT / "examples/python/train_fsdp.py"
    assert len(example.read_text().splitlines()) <= 60
    if shutil.which("fastrun") is None:
        pytest.skip("fastrun is not in the path")
    done = subprocess.run(["fastrun", "-n", str(ranks), sys.executable, example, "1", "20000"], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL)
    found = re.search(r"^(\d) replicas of 2 ranks: .* tells ([0-9.]+) % right$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and int(found[1]) == ranks // 2, done.stdout + done.stderr
    assert float(found[2]) >= 80, done.stdout
