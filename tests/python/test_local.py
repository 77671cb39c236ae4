"""Workers as threads."""
import gc
import signal
import subprocess
import sys
import threading
import time
import weakref

import fast_decentralized as fast
import numpy as np
import pytest


def test_results_come_by_rank():
    assert fast.local.run(3, lambda add: (fast.rank() + add, fast.size()), 10) == [(10, 3), (11, 3), (12, 3)]


@pytest.mark.parametrize("workers", [0, -2])
def test_a_number_of_workers_that_is_none_is_refused(workers):
    with pytest.raises(fast.ArgumentError, match="at least 1 is required"):
        fast.local.run(workers, lambda: None)


def test_an_interrupt_ends_the_wait_of_a_worker():
    ended = threading.Event()

    def work():
        worker = fast.Worker({"x": np.zeros(3)}, "complete", deadline=100)
        for step in range(6):
            with worker.round():
                if fast.rank() == 0 and step == 1:
                    assert ended.wait(40), "the other worker still waits"
            if fast.rank() == 1 and step == 0:
                timer.start()

    def wait():
        try:
            work()
        finally:
            if fast.rank() == 1:
                ended.set()

    timer = threading.Timer(0.5, signal.raise_signal, (signal.SIGINT,))
    with pytest.raises(KeyboardInterrupt):
        fast.local.run(2, wait)
    assert ended.is_set()


@pytest.mark.parametrize("where", ["step", "between"])
def test_an_exception_ends_all_workers_and_is_raised(where):
    ended = []

    def work():
        x = np.zeros(3)
        worker = fast.Worker({"x": x}, "ring", deadline=30)
        try:
            for t in range(1000):
                if where == "between" and fast.rank() == 1 and t == 4:
                    raise ValueError("no more batches")
                with worker.round():
                    if where == "step" and fast.rank() == 1 and t == 4:
                        raise ValueError("no more batches")
        except fast.PeerFailedError:
            ended.append(fast.rank())
            raise

    with pytest.raises(ValueError, match="no more batches"):
        fast.local.run(3, work)
    assert sorted(ended) == [0, 2]


def test_a_worker_leaves_and_the_others_go_on():
    def work():
        worker = fast.Worker({"x": np.full(1, float(fast.rank()))}, "complete", initial="as_is")
        for t in range(20):
            if fast.rank() == 2 and t == 5:
                worker.leave()
                break
            with worker.round():
                pass
        if fast.rank() != 2:
            worker.await_finish()
            return worker.rounds, worker.departed().left

    assert fast.local.run(3, work) == [(20, [2]), (20, [2]), None]


def test_errors_of_a_group_carry_the_rank():
    """Worker 2 does not come."""
    found = {}

    def work(call):
        if fast.rank() == 2:
            return
        try:
            call(fast.world())
        except fast.Error as error:
            found[fast.rank()] = error.rank
            raise

    for call in (lambda group: group.all_gather(b"x", deadline_s=0.2), lambda group: group.barrier(deadline_s=0.2)):
        with pytest.raises(fast.DeadlineError):
            fast.local.run(3, work, call)
        assert found == {0: 0, 1: 1}
        found.clear()


@pytest.mark.parametrize("what", ["on_round", "log", "observer", "algorithm"])
def test_a_worker_whose_callback_refers_to_it_is_freed(what):
    class Listener(fast.Observer):
        worker = None

        def on_phase(self, event):
            calls.append(self.worker)

    class Refers(fast.Rule):
        def __init__(self, box):
            self.box = box

        def publish(self, block):
            calls.append(self.box)
            super().publish(block)

    calls, listener = [], Listener()

    def work():
        nonlocal listener
        box = []
        hook = {"on_round": lambda t: calls.append(box), "log": lambda level, text: box, "observer": listener,
                "algorithm": Refers(box)}[what]
        worker = fast.Worker({"x": np.zeros(3)}, **{what: hook})
        listener.worker = worker
        listener = None
        box.append(worker)
        with worker.round():
            pass
        assert calls or what == "log"
        calls.clear()
        reference = weakref.ref(worker)
        del worker, box, hook
        gc.collect()
        return reference() is None

    assert fast.local.run(1, work) == [True]


def test_a_worker_that_fails_at_its_end_leaves_no_other_open():
    made = []

    def fails():
        raise RuntimeError("no device")

    def work():
        made.extend(fast.Worker({"x": np.zeros(3)}, deadline=20) for _ in range(2))
        made[1]._model.settle = fails

    with pytest.raises(RuntimeError, match="no device"):
        fast.local.run(1, work)
    assert [worker.is_closed for worker in made] == [True, True]


def test_a_closed_worker_says_so():
    def work():
        with fast.Worker({"x": np.zeros(3)}) as worker:
            assert "0 of 1 after 0 rounds" in repr(worker)
        worker.stats

    with pytest.raises(fast.ArgumentError, match="has been closed"):
        fast.local.run(1, work)


def test_stats_count_rounds_and_messages():
    def work():
        worker = fast.Worker({"x": np.zeros(100, np.float32)}, "complete")
        for _ in range(7):
            with worker.round():
                pass
        return worker.stats

    for stats in fast.local.run(3, work):
        assert (stats.rounds, stats.reads, stats.skipped) == (7, 14, 0)
        assert stats.ages[0] == 14 and sum(stats.ages) == 14
        assert stats.bytes_sent == stats.messages_sent * 400


def test_control_c_ends_the_workers():
    program = ("import fast_decentralized as fast, numpy as np, time\n"
               "def work():\n"
               "  w = fast.Worker({'x': np.zeros(3)}, 'ring')\n"
               "  while True:\n"
               "    with w.round(): time.sleep(0.001)\n"
               "    if w.rounds == 5 and fast.rank() == 0: print('running', flush=True)\n"
               "fast.local.run(3, work)\n")
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and "KeyboardInterrupt" in errors


def test_a_state_continues_bit_for_bit():
    def work(rounds, saved=None):
        x = np.array([1.0 + fast.rank(), 2.0]) if saved is None else saved[fast.rank()][0].copy()
        worker = fast.Worker({"x": x}, "ring", algorithm="gradient_tracking", initial="as_is")
        if saved is not None:
            worker.load_state_dict(saved[fast.rank()][1])
        for _ in range(rounds):
            with worker.round(learning_rate=0.1):
                x -= 0.1 * (x - fast.rank())
        return x, worker.state_dict(), worker.rounds

    whole = fast.local.run(3, work, 9)
    half = fast.local.run(3, work, 4)
    resumed = fast.local.run(3, work, 5, half)
    for rank in range(3):
        assert whole[rank][0].tobytes() == resumed[rank][0].tobytes()
        assert resumed[rank][2] == 9
        assert half[rank][0].tobytes() != resumed[rank][0].tobytes()


@pytest.mark.parametrize("state", [{}, None, {"format": 2}, [1], {"format": 1}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(fast.DataError, match="state_dict"):
        fast.local.run(1, lambda: fast.Worker({"x": np.zeros(3)}).load_state_dict(state))


@pytest.mark.parametrize("tensor", [("a", 3), 5, ("a", "f32", 2, b""), ("a", "f32", ["x"], b""), ("a", "f32", [2], "ab")])
def test_a_damaged_state_is_refused(tensor):
    with pytest.raises(fast.DataError, match="tensor 0 is no name, element type, shape and bytes; the file is damaged"):
        fast.local.run(1, lambda: fast.Worker({"x": np.zeros(3)}).load_state_dict({"format": 1, "tensors": [tensor]}))


def test_a_state_of_another_worker_is_refused():
    def state(count, algorithm):
        return fast.Worker({"x": np.zeros(count)}, algorithm=algorithm)

    [saved] = fast.local.run(1, lambda: state(3, "d2").state_dict())
    with pytest.raises(fast.MismatchError, match="resume with the options it was saved with"):
        fast.local.run(1, lambda: state(4, "d2").load_state_dict(saved))
    saved["tensors"][0] = (*saved["tensors"][0][:3], b"")
    with pytest.raises(fast.DataError, match="damaged"):
        fast.local.run(1, lambda: state(3, "d2").load_state_dict(saved))


def test_after_a_second_interrupt_no_worker_is_left_behind():
    ended = []

    def work():
        worker = fast.Worker({"x": np.zeros(3)}, deadline=20)
        with worker.round():
            for _ in range(2):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                time.sleep(0.3)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        fast.local.run(1, work)
    assert ended == [True]
