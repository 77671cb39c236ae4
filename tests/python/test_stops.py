"""One signal to one rank: all workers stop after the same round, save, and go on from there later."""
import re

import fast_decentralized as fast
import numpy as np
import pytest

torch = pytest.importorskip("torch")
RANKS, ROUNDS = 3, 200


def rounds_saved(folder):
    return {file.name: int(file.parent.name.removeprefix("round-")) for file in folder.glob("checkpoints/round-*/*.pickle")}


@pytest.mark.parametrize("how", ["save", "USR2"])
def test_all_save_the_same_round_and_a_resumed_run_is_the_same_bit_for_bit(started, tmp_path, how):
    first = started(RANKS, "stops.py", tmp_path, how)
    saved = rounds_saved(tmp_path)
    assert len(saved) == RANKS and len(set(saved.values())) == 1, saved
    assert 20 <= next(iter(saved.values())) < ROUNDS and "ends after" not in first.stdout, first.stdout
    second = started(RANKS, "stops.py", tmp_path, how)
    assert second.stdout.count("ends after") == RANKS, second.stdout
    (tmp_path / "none").mkdir()
    started(RANKS, "stops.py", tmp_path / "none", "whole")
    for rank in range(RANKS):
        resumed, whole = torch.load(tmp_path / f"{how}-{rank}.pt"), torch.load(tmp_path / "none" / f"whole-{rank}.pt")
        assert all(torch.equal(resumed[name], whole[name]) for name in whole), rank


def test_a_loop_that_looks_stops_on_all_ranks_in_the_same_round(started, tmp_path):
    done = started(RANKS, "stops.py", tmp_path, "look")
    stopped = re.findall(r"rank \d stops after (\d+)", done.stdout)
    assert len(stopped) == RANKS and len(set(stopped)) == 1, done.stdout


def test_stop_requested_needs_on_stop():
    def work():
        fast.Worker({"x": np.zeros(3)}, deadline=20).stop_requested

    with pytest.raises(fast.ArgumentError, match=r"call it at the beginning"):
        fast.local.run(2, work)
