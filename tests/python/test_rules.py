"""Rules and observers written in Python."""
import subprocess
import sys
import threading

import fast_decentralized as fast
import numpy as np
import pytest


class Damped(fast.Rule):
    name = "damped"

    def __init__(self, share):
        self.share, self.parameters = share, f"share={share}"

    def combine(self, block):
        block.current[:] += self.share * block.pull[0]


class Counting(fast.Rule):
    """Plain averaging that counts the rounds of every element in its state."""
    state_vectors = 1
    publishes_after_step = True

    def combine(self, block):
        block.state[0][:] += 1
        block.current[:] += block.pull[0]


def rounds(rule, count, dtype=np.float64, size=3, step=lambda x: None):
    def work():
        x = np.full(size, float(fast.rank()), dtype)
        worker = fast.Worker({"x": x}, "complete", algorithm=rule, initial="as_is", deadline=20)
        for _ in range(count):
            with worker.round():
                step(x)
        return x, worker.state_dict()

    return fast.local.run(2, work)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_rule_of_python_computes_the_next_weights(dtype):
    (first, _), (second, _) = rounds(Damped(0.5), 1, dtype)
    np.testing.assert_allclose((first, second), ([0.25] * 3, [0.75] * 3))


def test_a_large_model_comes_in_blocks_and_equals_the_rule_of_the_library():
    ours = rounds(fast.Rule(), 3, size=50_000, step=lambda x: x.__imul__(0.9))
    theirs = rounds("awc", 3, size=50_000, step=lambda x: x.__imul__(0.9))
    for (mine, _), (other, _) in zip(ours, theirs):
        np.testing.assert_allclose(mine, other, rtol=1e-12)


def test_the_state_of_a_rule_is_kept_and_saved():
    for _, state in rounds(Counting(), 4):
        saved = {name: np.frombuffer(data, np.float64) for name, dtype, _, data in state["tensors"] if "state" in name}
        assert any((values == 4).all() and values.size == 3 for values in saved.values()), saved


def test_rules_with_other_parameters_do_not_fit_each_other():
    def work():
        fast.Worker({"x": np.zeros(3)}, algorithm=Damped(0.5 if fast.rank() else 0.25))

    with pytest.raises(fast.MismatchError, match="share=0.5"):
        fast.local.run(2, work)


def test_an_exception_in_a_rule_ends_the_run():
    class Broken(fast.Rule):
        def combine(self, block):
            raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing"):
        rounds(Broken(), 1)


def test_a_block_is_gone_after_the_call():
    kept = []

    class Keeping(fast.Rule):
        def combine(self, block):
            kept.append(block)

    rounds(Keeping(), 1)
    with pytest.raises(fast.ArgumentError, match="valid during the call only"):
        kept[0].current


def test_a_block_is_gone_after_a_call_that_raised():
    kept = []

    class Keeping(fast.Rule):
        def combine(self, block):
            kept.append(block)
            raise KeyError("no such thing")

    with pytest.raises(KeyError):
        rounds(Keeping(), 1)
    with pytest.raises(fast.ArgumentError, match="valid during the call only"):
        kept[0].current


def test_arrays_of_a_block_may_outlive_the_worker():
    """Their memory would be gone, so that a look at them would end the process."""
    program = ("import gc, fast_decentralized as fast, numpy as np\n"
               "kept = []\n"
               "class Keeping(fast.Rule):\n"
               "  def combine(self, block):\n"
               "    kept.extend([block.pull[0], block.own[0], block.current])\n"
               "    block.current += block.pull[0]\n"
               "def work():\n"
               "  x = np.full(100_000, float(fast.rank()))\n"
               "  worker = fast.Worker({'x': x}, 'complete', algorithm=Keeping(), initial='as_is', deadline=20)\n"
               "  with worker.round(): pass\n"
               "  worker.close()\n"
               "fast.local.run(2, work)\n"
               "gc.collect()\n"
               "junk = [np.full(5000, 7.0) for _ in range(100)]\n"
               "kept[-1][:] = 3\n"
               "print(sorted({float(value) for array in kept for value in array}))\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "[-0.5, 0.0, 0.5, 1.0, 3.0]\n", done


def test_what_a_rule_only_reads_is_not_written():
    class Writes(fast.Rule):
        def combine(self, block):
            block.pull[0][:] = 5

    with pytest.raises(ValueError, match="read-only"):
        rounds(Writes(), 1)


@pytest.mark.parametrize("attribute, value, text", [
    ("mixing", "good", "mixing \"good\" is unknown"), ("state_vectors", 9, "a number from 0 to 8"),
    ("payload_vectors", "one", "payload_vectors has the wrong type")])
def test_bad_declarations_are_refused(attribute, value, text):
    rule = fast.Rule()
    setattr(rule, attribute, value)
    with pytest.raises(fast.ArgumentError, match=text):
        rounds(rule, 1)


class Listener(fast.Observer):
    def __init__(self):
        self.phases, self.messages, self.lock = [], [], threading.Lock()

    def on_phase(self, event):
        with self.lock:
            self.phases.append((event.worker, event.round, event.phase, event.ended - event.began))

    def on_message(self, event):
        with self.lock:
            self.messages.append((event.worker, event.kind, event.sender, event.round, event.age))


def test_an_observer_hears_of_phases_and_messages():
    listener = Listener()

    def work():
        worker = fast.Worker({"x": np.zeros(3)}, "complete", observer=listener)
        for _ in range(3):
            with worker.round():
                pass

    fast.local.run(2, work)
    for rank in range(2):
        assert [t for who, t, phase, _ in listener.phases if who == rank and phase == "step"] == [0, 1, 2]
        read = [event for event in listener.messages if event[:2] == (rank, "read")]
        assert read == [(rank, "read", 1 - rank, t, 0) for t in range(3)]
    assert all(seconds >= 0 for *_, seconds in listener.phases)


def test_an_observer_that_raises_is_not_called_any_more(monkeypatch):
    import sys
    told, calls = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: told.append(str(info.exc_value)))

    class Broken(fast.Observer):
        def on_phase(self, event):
            calls.append(event)
            raise ValueError("disk full")

    def work():
        worker = fast.Worker({"x": np.zeros(3)}, observer=Broken())
        for _ in range(3):
            with worker.round():
                pass
        return worker.rounds

    assert fast.local.run(1, work) == [3] and told == ["disk full"] and len(calls) == 1


def test_control_c_in_an_observer_or_a_log_function_is_not_lost(monkeypatch):
    import sys
    told, calls = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: told.append(str(info.exc_value)))

    class Interrupted(fast.Observer):
        def on_phase(self, event):
            calls.append(event)
            if len(calls) == 1:
                raise KeyboardInterrupt

    def interrupted(level, text):
        raise KeyboardInterrupt

    def work(**options):
        worker = fast.Worker({"x": np.zeros(3)}, deadline=20, **options)
        for _ in range(1000):
            with worker.round():
                pass

    with pytest.raises(KeyboardInterrupt):
        fast.local.run(1, lambda: work(observer=Interrupted()))
    assert len(calls) > 1  # it was not switched off
    with pytest.raises(KeyboardInterrupt):
        fast.local.run(1, lambda: work(algorithm="gradient_tracking", staleness="inf", log=interrupted))
    assert told == []


def test_a_method_that_no_observer_has_is_refused():
    class Wrong(fast.Observer):
        def on_phases(self, event):
            pass

    with pytest.raises(fast.ArgumentError, match="Wrong has on_phases; choose on_message"):
        fast.local.run(2, lambda: fast.Worker({"x": np.zeros(3)}, observer=Wrong()))


def test_messages_of_the_library_reach_a_function():
    heard = []
    columns_do_not_sum_to_one = np.array([[0.6, 0.4, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]])

    def work():
        fast.Worker({"x": np.zeros(3)}, columns_do_not_sum_to_one, log=lambda level, text: heard.append((level, text)))

    fast.local.run(3, work)
    [(level, text)] = heard  # one of the workers says it
    assert level == "warning" and "only with weights whose rows and columns all sum to 1" in text
