"""onnx_check.py DIRECTORY: runs every NAME.onnx there on NAME.input and compares with NAME.logits. 77: no onnx here."""
import pathlib
import sys

try:
    import numpy
    import onnx
    from onnx.reference import ReferenceEvaluator
except ImportError:
    sys.exit(77)

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim][1:]
    inputs = numpy.fromfile(path.with_suffix(".input"), numpy.float32).reshape([-1] + shape)
    expected = numpy.fromfile(path.with_suffix(".logits"), numpy.float32)
    (logits,) = ReferenceEvaluator(model).run(None, {"input": inputs})
    error = numpy.abs(logits.ravel() - expected).max() / numpy.abs(expected).max()
    print(f"{path.name}: logits {logits.shape}, largest relative difference {error:.1e}")
    if not error < 1e-4:
        sys.exit(f"{path.name}: {logits.ravel()[:5]} is not {expected[:5]}")
