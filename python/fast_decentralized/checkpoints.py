"""Checkpoints of a training loop: one file a worker, and all workers go on from the same round."""
from __future__ import annotations

import json
import math
import os
import pathlib
import pickle
import random
import re
import sys
from typing import TYPE_CHECKING, Any

from . import _core
from .arguments import saved_tensors_of

if TYPE_CHECKING:
    from .worker import Worker

_DEADLINE_S = 300.0


class _Pickler(pickle.Pickler):
    """A tensor that is a part of a larger memory, as with flat=True, is written without the rest."""

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None or type(value) is not torch.Tensor or value.layout != torch.strided \
                or getattr(value, "untyped_storage", value.storage)().nbytes() <= value.numel() * value.element_size():
            return NotImplemented
        return value.detach().clone().requires_grad_(value.requires_grad).__reduce_ex__(5)


def save(worker: Worker, folder: str | os.PathLike[str], position: Any, parts: dict[str, Any]) -> pathlib.Path:
    place, rounds, name = pathlib.Path(folder), worker.rounds, _name(worker._ranks)
    _require_own(worker, place, name)
    content = {"format": 1, "shards": _shards_of(worker), "model": _model_of(worker), "worker": worker.state_dict(), "position": position,
               "parts": {name: _state_of(name, part) for name, part in parts.items()}, "random": _random_states()}
    file, unfinished = place / f"round-{rounds}" / name, place / f"{name}.tmp"
    place.mkdir(parents=True, exist_ok=True)
    with open(unfinished, "wb") as out:
        _Pickler(out, protocol=5).dump(content)
        out.flush()
        os.fsync(out.fileno())
    _move(unfinished, file)
    _sync(file.parent)
    behind = rounds - _most_behind(worker)
    for old in [one for one in _rounds(place, name) if one <= behind][:-1]:
        _remove(place / f"round-{old}" / name)
    return file


def load(worker: Worker, folder: str | os.PathLike[str], parts: dict[str, Any]) -> Any:
    place, name = pathlib.Path(folder), _name(worker._ranks)
    newest = _newest_of_all(worker, place)
    if newest is None:
        return None
    file = place / f"round-{newest}" / name
    try:
        with open(file, "rb") as source:
            content = pickle.load(source)
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        raise _core.DataError(f"Worker.load: {file} cannot be read ({error}); remove the folder {file.parent} on all hosts, so "
                              "that the round before is taken") from error
    shards = content.get("shards", 1)
    if shards != _shards_of(worker):
        raise _core.ArgumentError(f"Worker.load: {file} is of replicas of {shards} ranks, this run has {_shards_of(worker)}; start it "
                                  "with as many shards, or load whole weights saved by torch.distributed.checkpoint")
    missing = sorted(set(parts) ^ set(content["parts"]))
    if missing:
        raise _core.ArgumentError(f"Worker.load: {file} has {sorted(content['parts'])}, given were {sorted(parts)}; give the "
                                  "same objects as to save()")
    _set_model(worker, content["model"])
    worker.load_state_dict({"format": 1, "tensors": saved_tensors_of(content["worker"])})
    for name, part in parts.items():
        part.load_state_dict(content["parts"][name])
    _set_random_states(content["random"])
    worker._loaded_from = place.resolve()
    worker._run = _run_of(place, name) or worker._run
    return content["position"]


def _name(group: _core.Group) -> str:
    return f"worker-{group.rank}-of-{group.size}.pickle"


def _shards_of(worker: Worker) -> int:
    """The ranks that a replica has."""
    return worker._ranks.size // worker._group.size


def _staleness(worker: Worker) -> float:
    return float(worker._values.get("staleness", ["0"])[0])


_MOST_HOPS = 1000  # combinations, besides one a worker: a search that takes longer removes nothing


def _most_behind(worker: Worker) -> int:
    """By so many rounds the newest file of another worker may be older, if all save after each round."""
    staleness = _staleness(worker)
    if math.isinf(staleness):  # each goes on from its own
        return 1
    every, size = worker._open().combines_every, worker.size
    last, heard, hops = worker.rounds // every, {worker.rank}, 0
    while len(heard) < size:  # a worker is 1 + staleness combinations behind its readers
        hops += 1
        if hops > min(last, _MOST_HOPS + size):
            return worker.rounds  # so that none is removed
        topology = worker._rule.at(size, last - hops)
        heard |= {other for one in heard for other in topology.in_neighbors(one)}
    return int(every * (hops * (1 + staleness) + 2) - 1)


def _require_own(worker: Worker, folder: pathlib.Path, name: str) -> None:
    """A later load() is not to find another run. A spare may find what the worker before it has saved."""
    place = folder.resolve()
    if place in worker._folders or worker.stats.joined_at > 0:
        return
    later = [one for one in _rounds(folder, name) if one > worker._loaded]
    if later and place != worker._loaded_from and _run_of(folder, name) != worker._run:
        worker._refuse(f"Worker.save: {folder} has checkpoints that this run has not made, up to round {later[-1]}; go on from "
                       "them by load(), or give another folder")
    for one in later:  # of this run before it fell; others may lack them, and rounds to come are not to meet them
        _remove(folder / f"round-{one}" / name)
    folder.mkdir(parents=True, exist_ok=True)
    _mark(folder, name).write_text(worker._run)
    worker._folders.add(place)


def _mark(folder: pathlib.Path, name: str) -> pathlib.Path:
    """A file that names the run whose checkpoints a worker has in a folder: it goes on after load()."""
    return (folder / name).with_suffix(".run")


def _run_of(folder: pathlib.Path, name: str) -> str:
    """Empty: the folder does not say."""
    mark = _mark(folder, name)
    return mark.read_text() if mark.exists() else ""


def _rounds(folder: pathlib.Path, name: str) -> list[int]:
    """That have such a file, ascending."""
    rounds = [re.fullmatch(r"round-([0-9]+)", file.parent.name) for file in folder.glob(f"round-*/{name}")]
    return sorted(int(found[1]) for found in rounds if found is not None)


def _newest_of_all(worker: Worker, folder: pathlib.Path) -> int | None:
    """Collective. The newest round that all workers have saved, with no bound on staleness all ranks of the replica; None: no
    worker has saved any."""
    ranks = worker._ranks
    sizes = {int(file.stem.rsplit("-", 1)[1]) for file in folder.glob("round-*/worker-*-of-*.pickle")}
    own = {"rounds": _rounds(folder, _name(ranks)), "sizes": sorted(sizes - {ranks.size})}
    everyone = [json.loads(one) for one in ranks.all_gather(json.dumps(own).encode(), _DEADLINE_S)]
    rounds = [one["rounds"] for one in everyone]
    together = _shards_of(worker) if math.isinf(_staleness(worker)) else ranks.size
    common = [set.intersection(*map(set, rounds[first:first + together])) for first in range(0, ranks.size, together)]
    if all(common):
        return int(max(common[ranks.rank // together]))
    others = {size for one in everyone for size in one["sizes"]}
    if not others and not any(rounds):
        return None
    behind, ahead = (at(range(ranks.size), key=lambda rank: max(rounds[rank], default=-1)) for at in (min, max))
    found = (f"it has checkpoints of {min(others)} workers, this run has {ranks.size}; start as many, or give another folder"
             if others else f"no round is common to all (worker {behind}: {_listed(rounds[behind])}; worker {ahead}: "
             f"{_listed(rounds[ahead])}); save after the same rounds, copy files to their hosts, or give another folder")
    error = _core.DataError(f"Worker.load: {folder}: {found}")
    error.everywhere, error.rank = True, ranks.rank
    raise error


def _listed(rounds: list[int]) -> str:
    return ", ".join(map(str, rounds if len(rounds) < 5 else [rounds[0], "...", rounds[-1]])) or "none"


def _model_of(worker: Worker) -> Any:
    params = worker.params
    if hasattr(params, "state_dict"):
        return params.state_dict()
    jax = sys.modules.get("jax")
    return params if jax is None else jax.tree_util.tree_map(_plain, params)


def _plain(leaf: Any) -> Any:
    return sys.modules["numpy"].asarray(leaf) if isinstance(leaf, sys.modules["jax"].Array) else leaf


def _set_model(worker: Worker, saved: Any) -> None:
    params = worker.params
    jax = sys.modules.get("jax")
    if hasattr(params, "load_state_dict"):
        params.load_state_dict(saved)
    elif jax is not None and any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(params)):
        worker.rebind(jax.tree_util.tree_map(_as_before, saved, params))
    else:
        _fill(params, saved)


def _as_before(saved: Any, own: Any) -> Any:
    jax = sys.modules["jax"]
    return jax.numpy.asarray(saved, dtype=own.dtype) if isinstance(own, jax.Array) else saved


def _fill(arrays: dict[str, Any], saved: dict[str, Any]) -> None:
    for name, value in saved.items():
        if isinstance(value, dict):
            _fill(arrays[name], value)
        else:
            arrays[name][...] = value


def _state_of(name: str, part: Any) -> Any:
    if not (hasattr(part, "state_dict") and hasattr(part, "load_state_dict")):
        raise _core.ArgumentError(f"Worker.save: {name} is a {type(part).__name__} without state_dict() and "
                                  "load_state_dict(); give its contents as the position")
    return part.state_dict()


def _random_states() -> dict[str, Any]:
    """Of Python, NumPy and PyTorch. JAX has keys instead, which are the program's."""
    states: dict[str, Any] = {"python": random.getstate()}
    if "numpy" in sys.modules:
        states["numpy"] = sys.modules["numpy"].random.get_state()
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def _set_random_states(states: dict[str, Any]) -> None:
    random.setstate(states["python"])
    if "numpy" in states:
        import numpy

        numpy.random.set_state(states["numpy"])
    if "torch" in states:
        import torch

        torch.set_rng_state(states["torch"])
        if len(states.get("cuda", ())) == torch.cuda.device_count() > 0:
            torch.cuda.set_rng_state_all(states["cuda"])


def _sync(folder: pathlib.Path) -> None:
    """The new name stays after a crash of the host."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _move(made: pathlib.Path, file: pathlib.Path) -> None:
    """To a folder that another worker may remove before the file is there."""
    for attempt in range(1000):
        try:
            file.parent.mkdir(exist_ok=True)
            os.replace(made, file)
            return
        except (FileExistsError, FileNotFoundError):
            if attempt == 999 or not made.exists():
                raise


def _remove(file: pathlib.Path) -> None:
    file.unlink(missing_ok=True)
    try:
        file.parent.rmdir()
    except OSError:  # others have files there
        pass
