"""Models of NumPy: in place, without a copy, and what is refused."""
import ctypes

import fast_decentralized as fast
import numpy as np
import pytest
from fast_decentralized import _core


def averaged(array, workers=3, **options):
    """What two workers and more make of rank-dependent arrays in one round of complete averaging."""
    def work():
        model = {"x": array(fast.rank())}
        place = model["x"].ctypes.data
        worker = fast.Worker(model, "complete", initial="as_is", deadline=20, **options)
        with worker.round():
            pass
        assert model["x"].ctypes.data == place
        return model["x"]

    return fast.local.run(workers, work)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_round_of_complete_averaging_gives_the_mean_in_place(dtype):
    for x in averaged(lambda rank: np.full((2, 3), rank + 1, dtype)):
        np.testing.assert_allclose(x, np.full((2, 3), 2.0), rtol=1e-6)
        assert x.dtype == dtype


def test_half_precision_is_averaged():
    for x in averaged(lambda rank: np.full(4, rank + 1, np.float16)):
        np.testing.assert_allclose(x, 2, rtol=1e-3)


def test_bfloat16_of_ml_dtypes_is_averaged():
    types = pytest.importorskip("ml_dtypes")
    for x in averaged(lambda rank: np.full(4, rank + 1, types.bfloat16)):
        assert x.tolist() == [2] * 4


@pytest.mark.parametrize("dtype", ["complex256", "float128", "float8_e4m3fn"])
def test_types_that_are_not_averaged_are_named(dtype):
    types = pytest.importorskip("ml_dtypes")
    with pytest.raises(fast.ArgumentError, match=f'tensor "x" has elements of {dtype}; float32, float64.*participates='):
        fast.local.run(1, lambda: fast.Worker({"x": np.zeros(3, getattr(types, dtype, dtype))}))


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_tied_arrays_stay_tied(framework):
    """Also those of another shape."""
    torch = pytest.importorskip("torch") if framework == "torch" else None

    def work():
        x = np.full((2, 3), float(fast.rank()))
        if torch:
            x = torch.from_numpy(x)
        worker = fast.Worker({"a": x, "deep": {"b": x}, "c": x.reshape(6)}, "complete", initial="as_is", deadline=20)
        with worker.round():
            pass
        worker.await_finish()
        mean = worker.mean_model()
        mean["a"][0, 0] = 7
        return [float(part.reshape(-1)[0]) for part in (x, mean["deep"]["b"], mean["c"])], tuple(mean["c"].shape)

    assert fast.local.run(2, work) == [([0.5, 7, 7], (6,))] * 2


def test_integers_stay_with_their_worker():
    def work():
        model = {"x": np.full(3, float(fast.rank())), "count": np.full(2, fast.rank())}
        worker = fast.Worker(model, "complete", initial="as_is")
        with worker.round():
            pass
        return model["count"].tolist()

    assert fast.local.run(2, work) == [[0, 0], [1, 1]]


def test_all_take_the_weights_of_worker_0():
    def work():
        model = {"deep": {"x": np.full(3, float(fast.rank() + 5))}}
        fast.Worker(model)
        return model["deep"]["x"].tolist()

    assert fast.local.run(3, work) == [[5, 5, 5]] * 3


def test_a_round_adds_the_workers_own_update_to_the_average():
    def work():
        x = np.array([float(fast.rank())])
        worker = fast.Worker({"x": x}, "complete", initial="as_is")
        loss = worker.step(lambda: (x.__iadd__(10 * (fast.rank() + 1)), 0.5)[1])
        return loss, x[0]

    assert fast.local.run(3, work) == [(0.5, 1 + 10), (0.5, 1 + 20), (0.5, 1 + 30)]


def test_the_mean_model_is_a_copy_and_the_distance_is_right():
    def work():
        x = np.array([float(fast.rank())])
        worker = fast.Worker({"x": x}, "ring", initial="as_is", algorithm="none")
        with worker.round():
            pass
        worker.await_finish()
        mean = worker.mean_model()["x"]
        return mean[0], worker.consensus_distance(), np.shares_memory(mean, x)

    for mean, distance, shared in fast.local.run(4, work):
        assert (mean, shared) == (1.5, False)
        assert distance == pytest.approx(np.sqrt(1.25))


def test_chosen_tensors_take_part_alone():
    def work():
        model = {"a": np.array([float(fast.rank())]), "b": np.array([float(fast.rank())])}
        worker = fast.Worker(model, "complete", initial="as_is", participates=lambda name: name == "a")
        with worker.round():
            pass
        return model["a"][0], model["b"][0]

    assert fast.local.run(2, work) == [(0.5, 0), (0.5, 1)]


class OnDevice:
    """An array that says by DLPack that it is on another device. DLTensor has the type and number after a pointer."""

    def __init__(self, device, number):
        self.array, self.device = np.zeros(3), (ctypes.c_int32 * 2)(device, number)

    def __dlpack__(self, **_):
        capsule = self.array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
        ctypes.memmove(address, self.device, ctypes.sizeof(self.device))
        return capsule


def strided():
    return np.zeros((4, 6))[:, ::2]


def read_only():
    array = np.zeros(3)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("array, text", [
    (strided, "contiguous"), (read_only, "writable"), (lambda: np.zeros(3, ">f8"), "byte order"),
    (lambda: np.zeros(0), "has no elements; let at least one of floating-point numbers take part"),
    (lambda: OnDevice(10, 0), "is on a device of DLPack's type 10; host memory or that of a GPU of NVIDIA is required"),
    (lambda: "weights", "is a str whose memory cannot be shared"), (lambda: np.zeros(3, "O"), "cannot be shared")])
def test_arrays_that_cannot_be_averaged_are_refused_by_name(array, text):
    with pytest.raises(fast.ArgumentError, match=text) as caught:
        fast.local.run(2, lambda: fast.Worker({"x": array()}))
    assert '"x"' in str(caught.value) or "x [" in str(caught.value)


@pytest.mark.skipif(_core.has_cuda, reason="this package was built with fast::cuda")
@pytest.mark.parametrize("model", [{"x": OnDevice(2, 1)}, {"a": np.zeros(3), "x": OnDevice(2, 1)}])
def test_tensors_on_a_gpu_need_a_build_with_cuda(model):
    with pytest.raises(fast.ArgumentError, match='tensor "x" is in the memory of cuda:1, and this package was built without '
                                                 "fast::cuda; install it with that, by pip install . "
                                                 "--config-settings=cmake.define.FAST_CUDA=ON, or move the model to host memory"):
        fast.local.run(1, lambda: fast.Worker(model))


def test_arrays_that_came_to_a_device_need_another_worker():
    def work():
        fast.Worker({"x": np.zeros(3)}, deadline=20).rebind({"x": OnDevice(2, 0)})

    with pytest.raises(fast.ArgumentError, match="in the memory of device 0, the worker was made with tensors in host memory; "
                                                 "make a new Worker"):
        fast.local.run(1, work)


def test_a_model_without_floating_point_numbers_is_refused():
    with pytest.raises(fast.ArgumentError):
        fast.local.run(1, lambda: fast.Worker({"x": np.zeros(3, int)}))


@pytest.mark.parametrize("model", [None, 3, "model", [np.zeros(3)]])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(fast.ArgumentError, match="give a torch.nn.Module"):
        fast.local.run(1, lambda: fast.Worker(model))


@pytest.mark.parametrize("shape, text", [
    (lambda: (3, 4 + fast.rank()), "worker 0 has 12 f64 parameters, worker 1 has 15 f64 parameters"),
    (lambda: (3, 4) if fast.rank() else (4, 3), "4x3(.|\n)*3x4")])
def test_models_that_differ_between_workers_are_refused(shape, text):
    with pytest.raises(fast.MismatchError, match=text):
        fast.local.run(2, lambda: fast.Worker({"w": np.zeros(shape())}))


def test_memory_may_move_if_the_worker_knows():
    def work():
        first, second = np.array([float(fast.rank())]), np.array([0.0])
        worker = fast.Worker({"x": first}, "complete", initial="as_is")
        second[:] = first
        worker.rebind({"x": second})
        with worker.round():
            pass
        return first[0], second[0]

    assert fast.local.run(2, work) == [(0, 0.5), (1, 0.5)]


def test_rebind_refuses_a_model_without_arrays():
    with pytest.raises(fast.ArgumentError, match="parameters: the model has none"):
        fast.local.run(1, lambda: fast.Worker({"x": np.zeros(3)}).rebind({}))


def replaced(model):
    model["deep"]["w"] = model["deep"]["w"] - 0.1


def shortened(model):
    model["deep"]["w"] = model["deep"]["w"][:2]


def added(model):
    model["w"] = np.zeros(3)


def removed(model):
    del model["deep"]["w"]


MOVED = "is not where it was; change arrays in place"


@pytest.mark.parametrize("change, name, what", [(replaced, "deep.w", MOVED), (shortened, "deep.w", MOVED),
                                                (added, "w", "came after the worker was made"), (removed, "deep.w", "went after")])
@pytest.mark.parametrize("where", ["step", "between"])
def test_arrays_that_were_replaced_are_told_by_name(change, name, what, where):
    def work():
        model = {"deep": {"w": np.zeros(3), "v": np.zeros(2)}}
        worker = fast.Worker(model, deadline=20)
        if where == "between":
            change(model)
        with worker.round():
            if where == "step":
                change(model)

    with pytest.raises(fast.MismatchError, match=f'"{name}" {what}'):
        fast.local.run(2, work)


def test_arrays_that_were_replaced_may_be_rebound():
    def work():
        model = {"w": np.array([float(fast.rank())]), "count": np.zeros(1, int)}
        worker = fast.Worker(model, "complete", initial="as_is", deadline=20)
        model["count"] = model["count"] + 1  # no part of what is averaged
        model["w"] = model["w"] + 1
        worker.rebind()
        with worker.round():
            model["w"] -= 1
        return model["w"][0]

    assert fast.local.run(2, work) == [0.5, 0.5]


@pytest.mark.parametrize("result", [float("nan"), np.array(np.nan), np.array([np.nan], np.float32), (np.array([[np.inf]]),),
                                    [float("inf"), 3]])
def test_a_loss_that_is_not_finite_is_refused(result):
    with pytest.raises(fast.NumericError, match="the loss of worker 0 in round 0 is"):
        fast.local.run(1, lambda: fast.Worker({"x": np.zeros(2)}, deadline=20).step(lambda: result))


@pytest.mark.parametrize("result", [None, "nan", (), np.full(2, np.nan), (None, float("nan")), 3])
def test_results_that_are_no_loss_are_returned_as_they_are(result):
    assert fast.local.run(1, lambda: fast.Worker({"x": np.zeros(2)}).step(lambda: result))[0] is result


@pytest.mark.parametrize("call, text", [
    (lambda worker: worker.scalar("x", "abc"), r"scalar \"x\" is a str \('abc'\); a number"),
    (lambda worker: worker.end_round(loss=np.zeros(3)), r"the loss is a ndarray of shape \(3,\); a number")])
def test_what_is_no_number_is_refused(call, text):
    def work():
        worker = fast.Worker({"x": np.zeros(2)})
        worker.begin_round()
        call(worker)

    with pytest.raises(fast.ArgumentError, match=text):
        fast.local.run(1, work)
