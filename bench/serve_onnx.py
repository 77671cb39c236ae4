#!/usr/bin/env python3
"""ONNX Runtime in a loop, as bench/serve.py runs it beside fast-serve.

  serve_onnx.py MODEL.onnx BATCH LOGITS                          prints its version and the largest difference
  serve_onnx.py MODEL.onnx BATCH LOGITS --seconds S --threads N  prints what bench_serve_loop prints

BATCH has 64 images and LOGITS has the logits of fast-serve for them, both as float32. A difference above 1e-5 is an error.
"""
import argparse
import sys
import time

import numpy
import onnxruntime

IMAGES, TOLERANCE = 64, 1e-5


def session_of(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def batch_of(path, session):
    shape = session.get_inputs()[0].shape[1:]
    return numpy.fromfile(path, numpy.float32).reshape([IMAGES, *shape])


def checked_difference(logits, path):
    difference = numpy.abs(logits - numpy.fromfile(path, numpy.float32).reshape(logits.shape)).max()
    if not difference <= TOLERANCE:
        sys.exit(f"serve_onnx.py: logits of ONNX Runtime and fast-serve differ by {difference:.1e}")
    return difference


def loop(work, seconds):
    """The milliseconds of each call."""
    found = []
    before = time.perf_counter()
    end = before + seconds
    while before < end:
        work()
        after = time.perf_counter()
        found.append(1e3 * (after - before))
        before = after
    return found


def print_loop(work, seconds):
    for _ in range(10):
        work()
    began = time.process_time()
    times = loop(work, seconds)
    processor_s = time.process_time() - began
    print(f"{1e3 * IMAGES * len(times) / sum(times):.1f} {processor_s:.3f}")
    print("\n".join(f"{ms:.4f}" for ms in times))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("batch")
    parser.add_argument("logits")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    session = session_of(options.model, options.threads)
    feed = {"input": batch_of(options.batch, session)}
    difference = checked_difference(session.run(None, feed)[0], options.logits)
    if options.seconds is None:
        print(f"ONNX Runtime {onnxruntime.__version__}: logits differ from those of fast-serve by at most {difference:.1e}")
    else:
        print_loop(lambda: session.run(None, feed), options.seconds)


main()
