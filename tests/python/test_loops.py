"""The worker in other frameworks' loops, with plain PyTorch. ranks/ has the tests with the frameworks."""
import pytest

pytest.importorskip("torch")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_workers_with_other_numbers_of_batches_meet_after_each_epoch(started, ranks):
    """One whose data has ended waits for the mean of an epoch, and the others wait in their rounds for it."""
    done = started(ranks, "loops.py", timeout=200)
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} ended" for rank in range(ranks)], done.stdout + done.stderr
