"""The rules, through Python, against an independent implementation: on threads."""
import fast_decentralized as fast
import golden
import pytest


@pytest.mark.parametrize("case", golden.cases(), ids=golden.title)
def test_threads_follow_the_golden_trajectory(case):
    fast.local.run(case["workers"], golden.run, case)


def test_processes_follow_golden_trajectories_too():
    case = next(case for case in golden.cases() if case["workers"] == 4)
    assert max(fast.spawn(4, golden.run, case)) <= 1e-10
