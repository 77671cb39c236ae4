"""What fast-serve must answer, computed without it: a reader of requests, and the model by NumPy."""
import json
import re
import struct

import numpy as np

SAMPLE = (1, 4, 4)
VALUES = 16
CLASSES = 5
MEAN, STDDEV = 0.25, 0.5
LARGEST = float(np.finfo(np.float32).max)
PREDICT = "/v1/models/m:predict"
PAGES = ("/healthz", "/metrics", "/v1/models", "/v1/models/m")
PARAMETERS = ("version", "output", "shape", "type", "normalized")


class Model:
    """A perceptron 16-8-5 of random weights."""

    def __init__(self, seed):
        draw = np.random.default_rng(seed)
        self.tensors = {"fc1.weight": 0.02 * draw.normal(size=(8, VALUES)), "fc1.bias": draw.normal(size=8),
                        "fc2.weight": draw.normal(size=(CLASSES, 8)), "fc2.bias": draw.normal(size=CLASSES)}
        self.tensors = {name: tensor.astype(np.float32) for name, tensor in self.tensors.items()}

    def save(self, path):
        head, data = {}, b""
        for name, tensor in self.tensors.items():
            head[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + tensor.nbytes]}
            data += tensor.tobytes()
        head["__metadata__"] = {"fast.model": "mlp:8", "fast.input": "1x4x4", "fast.classes": str(CLASSES),
                                "fast.mean": str(MEAN), "fast.stddev": str(STDDEV)}
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)

    def logits(self, inputs):
        """In double, and how far float32 may be off: in proportion to the sum of all magnitudes."""
        tensors = {name: tensor.astype(np.float64) for name, tensor in self.tensors.items()}
        layers = [(tensors[f"fc{i}.weight"].T, tensors[f"fc{i}.bias"]) for i in (1, 2)]
        x, size = inputs, np.abs(inputs)
        for i, (weight, bias) in enumerate(layers):
            x, size = x @ weight + bias, size @ np.abs(weight) + np.abs(bias)
            x = np.maximum(x, 0) if i == 0 else x
        return x, 1e-5 * size


class Prediction:
    """`inputs` [count x 16] are the values that the network takes."""

    def __init__(self, inputs, output, is_raw):
        self.inputs, self.output, self.is_raw = inputs, output, is_raw


class Verdict:
    """The statuses of all that is wrong with a request: the answer must have one of them. Without any, the answer is the
    prediction, or a page. `ends`: the connection ends after the answer."""

    def __init__(self):
        self.statuses, self.prediction, self.ends = set(), None, False

    def refuse(self, status):
        self.statuses.add(status)

    def require(self, good, status):
        if not good:
            self.refuse(status)
        return good


class Members(list):
    """Of a JSON object, in their order."""


def constant(text):
    raise ValueError(text)


DECODER = json.JSONDecoder(parse_int=float, parse_constant=constant, object_pairs_hook=Members)


def parsed(body, may_go_on=False):
    """The JSON value of the body, numbers as doubles. Throws ValueError."""
    text = body.decode("utf-8", "replace" if may_go_on else "strict")  # a UnicodeDecodeError is a ValueError
    if text.startswith("\ufeff"):
        text = text[1:]  # RFC 8259 allows readers to ignore it
    try:
        return DECODER.raw_decode(text.lstrip(" \t\n\r"))[0] if may_go_on else DECODER.decode(text)
    except RecursionError as error:
        raise ValueError from error


def fits(shape):
    return shape in (SAMPLE, SAMPLE[1:], (VALUES,))


def flattened(value, into):
    """The shape of nested lists whose numbers go to `into`. Throws ValueError if lists of a level are not alike."""
    if not isinstance(value, list) or isinstance(value, Members) or not value:
        raise ValueError
    if isinstance(value[0], float):
        if not all(type(each) is float and abs(each) <= LARGEST for each in value):
            raise ValueError
        into.extend(value)
        return (len(value),)
    shapes = {flattened(each, into) for each in value}
    if len(shapes) != 1:
        raise ValueError
    return (len(value), *shapes.pop())


def read_json(body, most_instances, may_go_on=False):
    """Values [count x 16], type, normalized. Throws ValueError; OverflowError for too many instances. `may_go_on`: more
    may follow."""
    members = parsed(body, may_go_on)
    if not isinstance(members, Members) or len(dict(members)) != len(members):
        raise ValueError
    members = dict(members)
    if not members.keys() <= {"instances", "type", "normalized"} or "instances" not in members:
        raise ValueError
    kind, normalized = members.get("type", "f32"), members.get("normalized", False)
    if kind not in ("f32", "u8") or not isinstance(normalized, bool):
        raise ValueError
    instances = members["instances"]
    if not isinstance(instances, list) or isinstance(instances, Members) or not instances:
        raise ValueError
    if len(instances) > most_instances:
        raise OverflowError
    values = []
    if not fits(flattened(instances, values)[1:]):
        raise ValueError
    values = np.array(values, np.float32).reshape(-1, VALUES)
    if kind == "u8" and not ((values >= 0) & (values <= 255) & (values == np.floor(values))).all():
        raise ValueError
    return values, kind, normalized


def count_of(text):
    """How many samples a tensor of this shape has; None: the shape is refused."""
    if not re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9}){0,7}", text):
        return None
    shape = tuple(int(side) for side in text.split("x"))
    if min(shape) == 0 or int(np.prod([float(side) for side in shape])) >= 2**40:
        return None
    return shape[0] if fits(shape[1:]) else 1 if shape == SAMPLE else None


def network_inputs(values, kind, normalized):
    values = values.astype(np.float64) / (255 if kind == "u8" else 1)
    return values if normalized else (values - MEAN) / STDDEV


class Reference:
    def __init__(self, most_instances, most_bytes):
        self.most_instances, self.most_bytes = most_instances, most_bytes

    def verdict(self, request):
        verdict = Verdict()
        headers = dict(request.headers)
        self.judge_form(request, headers, verdict)
        predicts = request.path == PREDICT
        if not verdict.require(predicts or request.path in PAGES, 404):
            return verdict
        verdict.require(request.method == "POST" if predicts else request.method in ("GET", "HEAD"), 405)
        if predicts and request.body is not None:
            self.judge_prediction(request, headers, verdict)
        return verdict

    def judge_form(self, request, headers, verdict):
        """What HTTP asks for."""
        takes_body = request.method in ("POST", "PUT", "PATCH")
        verdict.require(len(request.path) <= 1024, 414)
        verdict.require(takes_body or not (request.body or request.is_chunked()), 400)
        verdict.require(not request.body or len(request.body) <= self.most_bytes, 413)
        verdict.require(headers.get("Content-Encoding", "identity") == "identity", 415)
        verdict.require(not headers.get("Content-Type", "").startswith("multipart/"), 415)
        verdict.ends = bool(verdict.statuses)

    def judge_prediction(self, request, headers, verdict):
        query = dict(request.query)
        media = headers.get("Content-Type", "").split(";")[0].rstrip(" ").lower()
        is_raw = media == "application/octet-stream"
        verdict.require(is_raw or media == "application/json", 415)
        verdict.require(set(query) <= set(PARAMETERS), 400)
        verdict.require(query.get("version", "") == "", 404)
        output = query.get("output", "") or ("logits" if is_raw else "probabilities")
        verdict.require(output in ("logits", "probabilities"), 400)
        normalized = query.get("normalized", "false")
        verdict.require(normalized in ("true", "1", "false", "0"), 400)
        read = self.raw_values if is_raw else self.json_values
        found = read(request, query, headers, verdict)
        if found is None:
            return
        values, kind, says_normalized = found
        normalized = says_normalized or normalized in ("true", "1")
        if not verdict.require(not normalized or kind == "f32", 400):
            return
        verdict.prediction = Prediction(network_inputs(values, kind, normalized), output, is_raw)

    def json_values(self, request, query, headers, verdict):
        verdict.require(not query.get("shape") and not query.get("type"), 400)
        try:
            return read_json(request.body, self.most_instances)
        except (ValueError, OverflowError) as error:
            verdict.refuse(400)
            if isinstance(error, OverflowError) or request.body.count(b"[") > self.most_instances:
                verdict.refuse(413)  # what is wrong behind them is not looked for
        return None

    def raw_values(self, request, query, headers, verdict):
        kind = query.get("type", headers.get("X-Tensor-Type", "")) or "f32"
        shape = query.get("shape", headers.get("X-Tensor-Shape", ""))
        body = request.body
        if not verdict.require(kind in ("f32", "u8"), 400):
            return None
        size = VALUES * (4 if kind == "f32" else 1)
        if not verdict.require(len(body) > 0 and len(body) % size == 0, 400):
            return None
        count = len(body) // size
        verdict.require(shape == "" or count_of(shape) == count, 400)
        verdict.require(count <= self.most_instances, 413)
        values = np.frombuffer(body, np.float32 if kind == "f32" else np.uint8).reshape(count, VALUES)
        verdict.require(kind == "u8" or bool(np.isfinite(values).all()), 400)
        return values, kind, False
