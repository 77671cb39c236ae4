"""onnx_check.py DIRECTORY: runs every NAME.onnx there on NAME.input and compares with NAME.logits, by ONNX's reference
evaluator and by ONNX Runtime, as far as they are here. 77: neither is."""
import importlib.util
import pathlib
import sys

EVALUATORS = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name)]
if not EVALUATORS or not importlib.util.find_spec("numpy"):
    sys.exit(77)
import numpy  # noqa: E402


def reference(path, inputs):
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return ReferenceEvaluator(model).run(None, {"input": inputs})[0]


def runtime(path, inputs):
    import onnxruntime

    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"input": inputs})[0]


for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
    expected = numpy.fromfile(path.with_suffix(".logits"), numpy.float32)
    raw = numpy.fromfile(path.with_suffix(".input"), numpy.float32)
    shape = [int(side) for side in path.with_suffix(".shape").read_text().split()]
    for evaluator in EVALUATORS:
        logits = (reference if evaluator == "onnx" else runtime)(str(path), raw.reshape([-1] + shape))
        error = numpy.abs(logits.ravel() - expected).max() / numpy.abs(expected).max()
        print(f"{path.name}: {evaluator}: logits {logits.shape}, largest relative difference {error:.1e}")
        if not error < 1e-5:
            sys.exit(f"{path.name}: {evaluator}: {logits.ravel()[:5]} is not {expected[:5]}")
print("evaluated by", *EVALUATORS)
