"""Modules of PyTorch in the memory of a GPU. What needs none: how calls wait for PyTorch, and errors."""
import os

import fast_decentralized as fast
import numpy as np
import pytest
from fast_decentralized import _core

torch = pytest.importorskip("torch")
on_a_gpu = pytest.mark.skipif(
    not (_core.has_cuda and torch.cuda.is_available()),
    reason="a GPU that PyTorch can use is required" if _core.has_cuda else "this package was built without fast::cuda")


def net(value, device="cuda:0", dtype=None):
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).to(device=device, dtype=dtype)
    with torch.no_grad():
        for tensor in (*module.parameters(), module[1].running_mean):
            tensor.fill_(value)
    return module


def weights(module):
    return [module[0].weight[0, 0].item(), module[1].running_mean[0].item()]


class Stream:
    cuda_stream = 7

    def __init__(self, device, log):
        self._device, self._log = device, log

    def synchronize(self):
        self._log.append(f"wait for {self._device}")


class Logged:
    """The worker of the library, which tells the calls that may touch tensors."""

    def __init__(self, core, log):
        self._core, self._log = core, log

    def __getattr__(self, name):
        function = getattr(self._core, name)
        if name == "rounds":
            return function

        def call(*arguments):
            self._log.append(name)
            if name == "end_round":
                self._log.append(f"stream {arguments[-1]}")
            return function(*arguments)

        return call


def test_a_round_follows_the_current_stream_and_other_calls_wait_for_it(monkeypatch):
    log = []
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream(device, log))

    def work():
        module = net(0.0, "cpu")
        worker = fast.Worker(module, deadline=20)
        assert log == []  # tensors in host memory
        worker._model.devices = {"cuda:1"}
        worker._core = Logged(worker._core, log)
        with worker.round():
            log.append("step")
        worker.republish()
        worker.mean_model()
        worker.finish()
        worker.close()

    fast.local.run(1, work)
    wait = "wait for cuda:1"
    assert log == ["begin_round", "step", "end_round", "stream 7", wait, "republish", wait, "mean_model", wait, "finish", wait, "close"]


def test_a_kernel_that_failed_ends_the_worker(monkeypatch):
    class Failed:
        def synchronize(self):
            raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Failed())

    def work():
        worker = fast.Worker(net(0.0, "cpu"), "complete", deadline=20)
        if fast.rank() == 1:
            worker._model.devices = {"cuda:0"}
            worker.close()
        for _ in range(1000):
            with worker.round():
                pass

    with pytest.raises(RuntimeError, match="device-side assert"):
        fast.local.run(2, work)


@on_a_gpu
def test_a_graph_that_pytorch_captures_while_a_worker_trains_is_whole():
    """In the default mode, a call of another thread that may block ends the capture."""
    def work():
        module, x = net(1.0), torch.zeros(1000, device="cuda:0")
        worker = fast.Worker(module, "complete", deadline=60)
        for _ in range(20):
            with worker.round():
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    for _ in range(200):
                        x.add_(1)
                graph.replay()
        worker.await_finish()
        torch.cuda.synchronize()
        return x[0].item()

    # One capture at a time: a second one in the process would end the first one by itself.
    assert fast.local.run(1, work) == [20 * 200]


@on_a_gpu
def test_a_round_that_ends_within_a_capture_is_refused():
    def work():
        module = net(1.0)
        worker = fast.Worker(module, "complete", deadline=60)
        worker.begin_round()
        torch.cuda.synchronize()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            worker.end_round()

    with pytest.raises(fast.ArgumentError, match="a round cannot be a part of a graph"):
        fast.local.run(1, work)


def test_arrays_of_other_libraries_on_a_gpu_are_refused():
    class Array:
        dtype, shape, __cuda_array_interface__ = np.dtype("float32"), (3,), {}

    with pytest.raises(fast.ArgumentError, match='"x" is a Array in the memory of a GPU; tensors of PyTorch are required'):
        fast.local.run(1, lambda: fast.Worker({"x": Array()}))


@pytest.mark.skipif(not _core.has_cuda, reason="this package was built without fast::cuda")
@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has a GPU")
def test_without_a_gpu_a_build_with_cuda_says_why():
    from test_arrays import OnDevice

    with pytest.raises(fast.ResourceError, match="cuda: no GPU here"):
        fast.local.run(2, lambda: fast.Worker({"x": OnDevice(2, 0)}))


@on_a_gpu
def test_tensors_are_averaged_in_place():
    def work():
        module = net(float(fast.rank()))
        places = [tensor.data_ptr() for tensor in module.state_dict().values()]
        worker = fast.Worker(module, "complete", initial="as_is", deadline=60)
        with worker.round():
            pass
        assert [tensor.data_ptr() for tensor in module.state_dict().values()] == places
        worker.await_finish()
        mean = worker.mean_model()
        assert mean["0.weight"].is_cuda
        return weights(module), mean["0.weight"][0, 0].item()

    for found, mean in fast.local.run(3, work):
        assert [*found, mean] == [pytest.approx(1, abs=1e-6)] * 3  # thirds are rounded


@on_a_gpu
@pytest.mark.parametrize("stream", ["default", "own", "joined"])
def test_the_average_has_what_the_step_has_only_enqueued(stream):
    """The kernels of the step run long after the step has returned."""
    def work():
        module = net(0.0)
        worker = fast.Worker(module, "complete", algorithm="atc", deadline=60)

        def step(value):
            torch.cuda._sleep(200_000_000)
            for parameter in module.parameters():
                parameter.fill_(value)

        own = torch.cuda.Stream()
        found = []
        with torch.no_grad(), torch.cuda.stream(own if stream == "own" else torch.cuda.current_stream()):
            for round in range(3):
                with worker.round():
                    if stream == "joined":
                        with torch.cuda.stream(own):
                            step(round + fast.rank())
                        torch.cuda.current_stream().wait_stream(own)
                    else:
                        step(round + fast.rank())
                found.append(module[0].weight[0, 0].item())
        return found

    assert fast.local.run(2, work) == [[0.5, 1.5, 2.5]] * 2


@on_a_gpu
def test_a_mean_model_is_not_overwritten_by_what_was_enqueued_before():
    def work():
        module = net(float(fast.rank()))
        worker = fast.Worker(module, "complete", initial="as_is", algorithm="none", deadline=60)
        worker.await_finish()
        torch.cuda._sleep(200_000_000)  # the copies of mean_model() are made after it
        return worker.mean_model()["0.weight"][0, 0].item()

    assert fast.local.run(2, work) == [0.5] * 2


@on_a_gpu
def test_a_worker_on_a_gpu_averages_with_one_on_the_host():
    def work():
        module = net(float(fast.rank()), "cpu" if fast.rank() else "cuda:0")
        worker = fast.Worker(module, "complete", initial="as_is", deadline=60)
        with worker.round():
            pass
        return weights(module)

    assert fast.local.run(2, work) == [[0.5, 0.5]] * 2


@on_a_gpu
def test_a_module_whose_memory_moved_may_be_rebound():
    def work():
        module = net(float(fast.rank()))
        worker = fast.Worker(module, "complete", initial="as_is", deadline=60)
        for tensor in (*module.parameters(), *module.buffers()):
            tensor.data = tensor.data.clone()
        worker.rebind()
        with worker.round():
            pass
        return weights(module)

    assert fast.local.run(2, work) == [[0.5, 0.5]] * 2


@on_a_gpu
def test_a_module_that_came_to_a_gpu_needs_another_worker():
    def work():
        module = net(0.0, "cpu")
        worker = fast.Worker(module, deadline=60)
        module.to("cuda:0")
        worker.rebind()

    with pytest.raises(fast.ArgumentError, match="in the memory of device 0, .*make a new Worker"):
        fast.local.run(1, work)


@on_a_gpu
def test_a_module_on_two_devices_is_refused():
    def work():
        module = net(0.0)
        module[1].cpu()
        fast.Worker(module)

    with pytest.raises(fast.ArgumentError, match="in host memory, .* in the memory of device 0; move the model to one device"):
        fast.local.run(1, work)


@on_a_gpu
def test_what_a_gpu_does_not_average_is_refused_by_name():
    with pytest.raises(fast.ArgumentError, match='codec int8 with "0.weight" .*bf16 on a device, .*would be rounded twice'):
        fast.local.run(1, lambda: fast.Worker(net(0.0, dtype=torch.bfloat16), codec="int8"))


@on_a_gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_of_16_bits_are_averaged(dtype):
    def work():
        module = net(float(2 * fast.rank()), dtype=dtype)
        worker = fast.Worker(module, "complete", initial="as_is")
        with worker.round():
            pass
        return module[0].weight[0, 0].item()

    assert fast.local.run(2, work) == [1, 1]
