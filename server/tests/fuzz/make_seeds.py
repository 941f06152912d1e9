#!/usr/bin/env python3
"""Seeds for the server's fuzzers: good requests of both forms.
    server/tests/fuzz/make_seeds.py FOLDER
Writes FOLDER/http and FOLDER/infer. Messages are written by hand, so that nothing needs to be installed."""

import json
import pathlib
import struct
import sys

FLOATS = struct.pack("<6f", *range(6))


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def parameter(key, kind, value):
    return field(1, key) + field(2, field(kind, value))


def message(model, inputs, raw=(), outputs=(), parameters=()):
    out = field(1, model) + field(3, "7")
    out += b"".join(field(4, p) for p in parameters)
    for name, datatype, shape, contents in inputs:
        tensor = field(1, name) + field(2, datatype) + field(3, b"".join(map(varint, shape)))
        out += field(5, tensor + (field(5, contents) if contents else b""))
    out += b"".join(field(6, field(1, name)) for name in outputs)
    return out + b"".join(field(7, r) for r in raw)


MESSAGES = [
    message("affine", [("x:0", "FP32", [2, 3], b"")], raw=[FLOATS], outputs=["y:0"]),
    message("affine", [("x:0", "FP32", [2, 3], field(6, FLOATS))], parameters=[parameter("timeout", 2, 1000000)]),
    message("words", [("x:0", "BYTES", [2], b"")], raw=[b"\3\0\0\0abc\0\0\0\0"]),
    message("words", [("x:0", "BYTES", [2], field(8, "abc") + field(8, ""))]),
    message("numbers", [("a:0", "INT32", [3], field(2, b"\1\2\3")), ("b:0", "INT32", [3], field(2, b"\4\5\6"))]),
    field(1, field(1, "trace_level") + field(2, field(1, "TIMESTAMPS"))) + field(2, "affine"),
]


def request(method, path, *headers, body=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: a", *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def tensor(name, datatype, shape, **rest):
    return {"name": name, "datatype": datatype, "shape": shape, **rest}


def infer(model, inputs, *headers, binary=b"", **rest):
    text = json.dumps({"inputs": inputs, **rest}).encode()
    if binary:
        headers += (f"Inference-Header-Content-Length: {len(text)}",)
    return request("POST", f"/v2/models/{model}/infer", *headers, body=text + binary)


AFFINE = tensor("x:0", "FP32", [2, 3], data=[[1, 2, 3], [4, 5.5, -6e2]])
HTTP = [
    infer("affine", [AFFINE], id="7", outputs=[{"name": "y:0", "parameters": {"binary_data": True}}]),
    infer("affine", [tensor("x:0", "FP32", [2, 3], parameters={"binary_data_size": 24})], binary=FLOATS),
    infer("words", [tensor("x:0", "BYTES", [2], data=["abc", "\u00e4"])], parameters={"timeout": 1000000}),
    infer("numbers", [tensor("a:0", "INT32", [2], data=[1, -2]), tensor("b:0", "INT32", [2], data=[3, 4])],
          "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    request("GET", "/v2") + request("GET", "/v2/models/affine") + request("GET", "/v2/models/affine/config"),
    request("GET", "/v2/models/stats") + request("GET", "/status.json") + request("GET", "/"),
    request("POST", "/v2/repository/index", body=b'{"ready": true}') + request("GET", "/v2/health/ready", "Connection: close"),
    request("POST", "/v2/models/affine/trace/setting", body=b'{"trace_level": ["TIMESTAMPS"], "trace_rate": "2"}'),
    request("POST", "/v2/systemsharedmemory/region/r/register", body=b'{"key": "/none", "byte_size": 8, "offset": 0}'),
    request("POST", "/v2/models/affine/infer", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n",
]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for kind, seeds in (("http", HTTP), ("infer", MESSAGES)):
        folder = pathlib.Path(sys.argv[1]) / kind
        folder.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(seeds):
            (folder / f"seed_{number}").write_bytes(seed)


if __name__ == "__main__":
    main()
