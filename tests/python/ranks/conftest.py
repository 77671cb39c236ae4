import pathlib
import sys

import fast_decentralized as fast
from fast_decentralized import runtime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # golden
fast.world()


def pytest_sessionfinish(exitstatus):
    """A rank whose tests fail does not wait for the others at the end."""
    if exitstatus not in (0, 5):
        runtime.leave_as_failed()
