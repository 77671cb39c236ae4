#!/usr/bin/env python3
"""Trains models of NumPy and, where it is installed, PyTorch through FAST's C interface, by ctypes alone.

  FAST_LIBRARY=build/release/lib/c/libfast_c.so mpiexec -n 4 python3 examples/python/train.py [numpy|torch]
"""
import ctypes as c
import os
import sys

import numpy as np


class Tensor(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("sides", c.c_int32), ("dtype", c.c_int), ("role", c.c_int)]


fast = c.CDLL(os.environ.get("FAST_LIBRARY", "libfast_c.so.0"))
fast.fast_last_error.restype = c.c_char_p
fast.fast_worker_end_round.argtypes = [c.c_void_p, c.c_double, c.c_double]


def check(status):
    if status != 0:
        raise RuntimeError(fast.fast_last_error().decode())


def tensor(name, array):
    """Of a NumPy array or a CPU tensor of PyTorch, f32 or f64; strides in elements."""
    is_numpy = isinstance(array, np.ndarray)
    address = array.ctypes.data if is_numpy else array.data_ptr()
    strides = [s // array.itemsize for s in array.strides] if is_numpy else array.stride()
    numbers = c.c_int64 * max(1, array.ndim)
    dtype = {"float32": 0, "float64": 1}[str(array.dtype).replace("torch.", "")]
    return Tensor(name.encode(), address, numbers(*array.shape), numbers(*strides), array.ndim, dtype, 0)


class Worker:
    """`with Worker(group, "torus2d", {"w": w}) as worker: worker.step(train)`, train() returning the loss."""

    def __init__(self, group, topology, arrays):
        tensors = (Tensor * len(arrays))(*[tensor(name, array) for name, array in arrays.items()])
        self.handle, self.arrays = c.c_void_p(), arrays  # the arrays live as long as the worker
        check(fast.fast_worker_create(group, topology.encode(), tensors, len(arrays), None, c.byref(self.handle)))

    def step(self, train):
        check(fast.fast_worker_begin_round(self.handle))
        check(fast.fast_worker_end_round(self.handle, train(), 0))

    def consensus_distance(self):
        distance = c.c_double()
        check(fast.fast_worker_await_finish(self.handle))
        check(fast.fast_worker_consensus_distance(self.handle, c.byref(distance)))
        return distance.value

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            fast.fast_worker_abandon(self.handle)  # the others end, too
        fast.fast_worker_free(self.handle)


def blobs(seed, count=512, inputs=20, classes=5):
    centers = np.random.default_rng(0).normal(size=(classes, inputs))
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=count)
    return (centers[labels] + 0.7 * random.normal(size=(count, inputs))).astype(np.float32), labels


def train_numpy(group, rank):
    w, b = np.zeros((20, 5), np.float32), np.zeros(5, np.float32)
    (x, y), (test_x, test_y) = blobs(1 + rank), blobs(1000)

    def step(first):
        batch, labels = x[first:first + 32], y[first:first + 32]
        p = np.exp(batch @ w + b)
        p /= p.sum(1, keepdims=True)
        loss = -np.log(p[range(32), labels]).mean()
        p[range(32), labels] -= 1
        w[...] -= 0.1 / 32 * batch.T @ p
        b[...] -= 0.1 / 32 * p.sum(0)
        return loss

    with Worker(group, "torus2d", {"w": w, "b": b}) as worker:
        for i in range(200):
            worker.step(lambda: step(32 * i % 512))
        return worker.consensus_distance(), ((test_x @ w + b).argmax(1) == test_y).mean()


def train_torch(group, rank):
    import torch
    torch.set_num_threads(1)
    net = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    (x, y), (test_x, test_y) = [[torch.as_tensor(a) for a in blobs(seed)] for seed in (1 + rank, 1000)]

    def step(first):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[first:first + 32]), y[first:first + 32])
        loss.backward()
        optimizer.step()
        return loss.item()

    with Worker(group, "torus2d", dict(net.named_parameters())) as worker:
        for i in range(200):
            worker.step(lambda: step(32 * i % 512))
        with torch.no_grad():
            return worker.consensus_distance(), (net(test_x).argmax(1) == test_y).float().mean().item()


def main():
    environment, group = c.c_void_p(), c.c_void_p()
    check(fast.fast_environment_create(c.byref(environment)))
    try:
        check(fast.fast_group_world(environment, c.byref(group)))
        rank, size = fast.fast_group_rank(group), fast.fast_group_size(group)
        for framework in sys.argv[1:] or ["numpy", "torch"]:
            try:
                distance, accuracy = {"numpy": train_numpy, "torch": train_torch}[framework](group, rank)
            except ImportError as missing:
                print(f"{framework}: skipped: {missing}") if rank == 0 else None
                continue
            if rank == 0:
                print(f"{framework}: {size} workers tell {100 * accuracy:.1f} % right; they differ by {distance:.3f}")
    finally:
        fast.fast_group_free(group)
        fast.fast_environment_free(environment)


if __name__ == "__main__":
    main()
