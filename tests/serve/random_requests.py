"""Random requests: of good form with any content, and bytes that break the form."""
import json
import struct
from urllib.parse import quote

import reference

NUMBERS = [str(n) for n in range(256)] * 2 + ["0.5", "-0", "-0.0", "1e2", "2.5E+1", "1e-400", "3.4028234e38", "-17.25", "0.1", "12e0",
                                              "0.30000000000000004", "123456789012345678901", "1E-3"]
BAD_NUMBERS = ["1e39", "-3.5e38", "1e999", "NaN", "-Infinity", "01", "+1", ".5", "1.", "0x1", "1e", "--1", "256", "-1", "null", "true",
               '"1"', "[]", "{}", "[1]", "", "٣"]
TOKENS = [b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\", b"\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"1e999", b"-", b"nan",
          b"null", b"true", b'"type":"u8"', b'"normalized":true', b'"instances":', b"\\u0000", b"\\ud800", b"/*", b" ", b"\r\n", b"[[[[", b"]]]]"]
METHODS = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PRI"]
PATHS = [*reference.PAGES, "/", "/v1", "/v1/models/", "/v1/models/M", "/v1/models/x:predict", "/v1/models/m:predictx", "/v1/models/:predict",
         "/v1/models/m/predict", "/V1/models/m:predict", "/../healthz", "/metrics/", "*", "/%", "/\0", "/\n", "/ü", "/" + "a" * 1100]
TYPES = ["", "text/plain", "application/jsonx", "APPLICATION/JSON", "application/json; charset=utf-8", "application/octet-stream;x=y", "json",
         "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/octet-stream ; a"]
SHAPES = ["", "{n}x1x4x4", "{n}x4x4", "{n}x16", "1x4x4", "16", "{n}", "0x16", "{n}x", "x16", "{n}x4x4x1", "-1x16", "99999999x99999999x16",
          "1x1x1x1x1x1x1x1x16", "a", "{m}x16"]
QUERIES = [("output", "logits"), ("output", "probabilities"), ("output", ""), ("output", "labels"), ("normalized", "true"), ("normalized", "1"),
           ("normalized", "0"), ("normalized", "yes"), ("type", "f32"), ("type", "u8"), ("type", "f64"), ("version", "0123456789abcdef"),
           ("version", ""), ("outptu", "logits"), ("shape", "1x16"), ("a&b=c", "d"), ("\0", "\n")]


class Request:
    """`headers` without those that say where the body ends. A request that is chunked has that many bytes in a chunk."""

    def __init__(self, method, path, query=(), headers=(), body=None, chunk=0, expects=False):
        self.method, self.path, self.query, self.headers = method, path, list(query), list(headers)
        self.body, self.chunk, self.expects = body, chunk, expects

    def head(self, framing):
        target = quote(self.path, safe="/:*")
        if self.query:
            target += "?" + "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self.query)
        lines = [f"{self.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in self.headers), *framing]
        if self.expects:
            lines.append("Expect: 100-continue")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def is_chunked(self):
        return self.body is not None and self.chunk > 0

    def bytes(self):
        if self.body is None:
            return self.head([])
        if not self.is_chunked():
            return self.head([f"Content-Length: {len(self.body)}"]) + self.body
        parts = [self.body[i:i + self.chunk] for i in range(0, len(self.body), self.chunk)]
        return self.head(["Transfer-Encoding: chunked"]) + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class Generator:
    """`draw`: a random.Random."""

    def __init__(self, draw, most_instances, most_bytes):
        self.draw, self.most_instances, self.most_bytes = draw, most_instances, most_bytes

    def chance(self, one_of):
        return self.draw.random() * one_of < 1

    def count(self):
        draw = self.draw
        return draw.choice((0, self.most_instances, self.most_instances + 1, 40)) if self.chance(20) else draw.randint(1, 3)

    def sample(self):
        """JSON of an instance."""
        draw = self.draw
        numbers = draw.choices(NUMBERS, k=reference.VALUES + (draw.choice((-1, 1, -16)) if self.chance(40) else 0))
        if numbers and self.chance(25):
            numbers[draw.randrange(len(numbers))] = draw.choice(BAD_NUMBERS)
        comma = draw.choice((",", ",", ", ", " ,\n\t"))
        form = draw.randrange(3)
        if form == 0 and not self.chance(30):
            return "[" + comma.join(numbers) + "]"
        rows = comma.join("[" + comma.join(numbers[i:i + 4]) + "]" for i in range(0, len(numbers), 4))
        return f"[[{rows}]]" if form == 1 else f"[{rows}]"

    def json_body(self):
        draw = self.draw
        one = self.sample()
        samples = [one if self.chance(2) else self.sample() for _ in range(self.count())]
        members = [f'"instances":[{",".join(samples)}]']
        if self.chance(4):
            members.append('"type":' + draw.choice(('"f32"', '"u8"', '"u8"', '"u\\u0038"', '"f64"', "null", "1", '["u8"]')))
        if self.chance(5):
            members.append('"normalized":' + draw.choice(("true", "false", " true ", "1", '"true"', "null")))
        if self.chance(30):
            members.append(draw.choice(('"x":1', '"instances":[]', '"instance":[]', '"":{}', members[0])))
        draw.shuffle(members)
        return ("{" + ",".join(members) + "}").encode()

    def raw_body(self):
        draw = self.draw
        count, kind = self.count(), draw.choice(("f32", "f32", "u8"))
        if kind == "u8":
            body = draw.randbytes(count * reference.VALUES)
        else:
            body = struct.pack(f"<{count * reference.VALUES}f", *(draw.random() for _ in range(count * reference.VALUES)))
            if body and self.chance(20):
                at = 4 * draw.randrange(len(body) // 4)
                body = body[:at] + struct.pack("<f", draw.choice((float("nan"), float("inf"), -float("inf"), 3e38, 1e-45))) + body[at + 4:]
        if self.chance(20):
            body += draw.randbytes(draw.randint(1, 70))
        return body, kind, count

    def mutated(self, data):
        draw = self.draw
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            at, end = draw.randint(0, len(data)), draw.randint(0, len(data))
            way = draw.randrange(6)
            if way == 0 and at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1:]
            elif way == 1:
                data = data[:at] + draw.choice(TOKENS) + data[at:]
            elif way == 2:
                data = data[:at] + data[min(len(data), at + draw.randint(1, 8)):]
            elif way == 3:
                data = data[:at] + data[min(at, end):max(at, end)][:64] + data[at:]
            elif way == 4:
                data = data[:at] if self.chance(2) else data + draw.choice(TOKENS)
            else:
                data = data[:at] + draw.choice(BAD_NUMBERS).encode() + data[at:]
        return data

    def prediction(self):
        draw = self.draw
        query, headers = [], []
        if self.chance(2):
            body, media = self.json_body(), "application/json"
        else:
            body, kind, count = self.raw_body()
            media = "application/octet-stream"
            if kind == "u8" or self.chance(4):
                self.add_field(query, headers, "type", "X-Tensor-Type", kind)
            if self.chance(3):
                shape = draw.choice(SHAPES).format(n=count, m=count + 1)
                self.add_field(query, headers, "shape", "X-Tensor-Shape", shape)
        if self.chance(4):
            body = self.mutated(body)
        if self.chance(6):
            query = list({**dict(query), **dict([draw.choice(QUERIES)])}.items())
        if self.chance(15):
            media = draw.choice(TYPES)
        if self.chance(60):
            headers.append(("Content-Encoding", draw.choice(("identity", "gzip", "br"))))
        if self.chance(20):
            headers.append(("X-Other", "x" * draw.randint(0, 3000)))
        headers.append(("Content-Type", media))
        draw.shuffle(headers)
        if self.chance(300):
            body = (body + b" ") * (2 * self.most_bytes // (len(body) + 1))
        return Request("POST", reference.PREDICT, query, headers, body, draw.randint(1, 200) if self.chance(10) else 0, self.chance(100))

    def add_field(self, query, headers, parameter, header, value):
        if self.chance(2):
            query.append((parameter, value))
        else:
            headers.append((header, value))

    def request(self):
        """Of good form: it says where it ends."""
        draw = self.draw
        if not self.chance(8):
            request = self.prediction()
            if self.chance(20):
                request.path = draw.choice(PATHS)
            if self.chance(20):
                request.method = draw.choice(METHODS)
            return request
        method = draw.choice(METHODS) if self.chance(3) else draw.choice(("GET", "HEAD"))
        path = draw.choice(PATHS) if self.chance(2) else draw.choice(reference.PAGES[:1] + reference.PAGES[2:])
        body = b"" if method in ("PUT", "PATCH") else None
        return Request(method, path, headers=[("Host", "x")], body=body)

    def broken(self):
        """Bytes that break the form, in most cases."""
        draw = self.draw
        request = self.prediction()
        body = request.body
        way = draw.randrange(8)
        if way == 0:  # it ends too early
            whole = request.bytes()
            return whole[:draw.randrange(len(whole))]
        if way == 1:  # a length that is not the body's
            length = draw.choice((len(body) + draw.randint(1, 99), max(0, len(body) - draw.randint(1, 9)), -1, "", "x", "1e3", 2**63, 2**64,
                                  self.most_bytes + 1, f"{len(body)}, {len(body)}", f"+{len(body)}", f"0x{len(body):x}"))
            return request.head([f"Content-Length: {length}"]) + body
        if way == 2:  # several lengths
            other = draw.choice((f"Content-Length: {len(body) + 1}", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip"))
            return request.head([f"Content-Length: {len(body)}", other]) + body
        if way == 3:  # no length, or another encoding
            return request.head(draw.choice(([], ["Transfer-Encoding: gzip"], ["Transfer-Encoding: chunked"]))) + body
        if way == 4:  # chunks that are none
            request.chunk = draw.randint(1, 99)
            whole = request.bytes()
            end = whole.index(b"\r\n\r\n") + 4
            return whole[:end] + self.mutated(whole[end:])
        whole = request.bytes()
        end = whole.index(b"\r\n\r\n") + 4
        if way == 5:  # a head that is damaged
            return self.mutated(whole[:end]) + whole[end:]
        if way == 6:  # anything
            return self.mutated(whole)
        junk = draw.choice((draw.randbytes(draw.randint(1, 300)), b"\r\n" * draw.randint(1, 9), b"a" * draw.randint(1, 9000)))
        return draw.choice((junk, junk + b"\r\n\r\n", b"GET /" + junk + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + junk + b"\r\n\r\n"))
