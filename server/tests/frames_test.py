"""Frames that are wrong, for HTTP/1 and HTTP/2: made by hand, and mutants of good ones from seeds that are always the
same. Whatever comes, connections end or are answered in HTTP, the server lives, and others are served."""

import concurrent.futures
import json
import random
import socket
import struct

import numpy as np
import pytest
import tritonclient.grpc as grpc
from tritonclient.grpc import service_pb2

GOOD_JSON = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}).encode()
BINARY_JSON = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3],
                                      "parameters": {"binary_data_size": 12}}]}).encode()
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def request(method, path, *headers, body=b""):
    head = [f"{method} {path} HTTP/1.1", "Host: a", *headers]
    if body:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


HTTP1 = [
    request("POST", "/v2/models/affine/infer", body=GOOD_JSON),
    request("POST", "/v2/models/affine/infer", f"Inference-Header-Content-Length: {len(BINARY_JSON)}",
            body=BINARY_JSON + np.ones(3, np.float32).tobytes()),
    request("POST", "/v2/models/affine/infer", "Transfer-Encoding: chunked") +
    b"%x\r\n%s\r\n0\r\n\r\n" % (len(GOOD_JSON), GOOD_JSON),
    request("GET", "/v2/models/affine/config") + request("GET", "/v2", "Connection: close"),
    request("POST", "/v2/models/versions/trace/setting", body=b'{"trace_rate": "5"}'),
    request("POST", "/v2/repository/index", body=b'{"ready": true}'),
]
TOKENS = [b"\r\n", b"\n", b"\0", b":", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"-1", b"1e9", b"%00",
          b"9" * 30, b"\xff" * 8, b"{", b"]", b'"', b"Expect: 100-continue\r\n", b"Content-Encoding: gzip\r\n", b" " * 64]


def mutant(good, randoms):
    data = bytearray(good)
    for _ in range(randoms.randint(1, 4)):
        at = randoms.randrange(len(data) + 1)
        kind = randoms.randrange(5)
        if kind == 0:
            del data[at:at + randoms.randint(1, 20)]
        elif kind == 1:
            data[at:at] = randoms.choice(TOKENS)
        elif kind == 2 and at < len(data):
            data[at] ^= 1 << randoms.randrange(8)
        elif kind == 3:
            data[at:at] = data[at:at + randoms.randint(1, 100)]
        else:
            del data[at:]
        if not data:
            return b"\r\n"
    return bytes(data)


def exchange(address, data, seconds=15, until=None, quiet=0):
    """What comes back until the other side ends the connection, which ours half closes: at once, or where the bytes `until`
    came, or when nothing comes for a while (gRPC drops what it has not done by then). The whole must end in time."""
    host, port = address.split(":")
    answer = b""
    with socket.create_connection((host, int(port)), timeout=seconds) as connection:
        try:
            connection.sendall(data)
            while until is not None and until not in answer:
                chunk = connection.recv(65536)
                if not chunk:
                    return answer
                answer += chunk
            if quiet:
                connection.settimeout(quiet)
                try:
                    while chunk := connection.recv(65536):
                        answer += chunk
                    return answer
                except TimeoutError:
                    connection.settimeout(seconds)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                answer += chunk
        except (ConnectionResetError, BrokenPipeError, OSError) as failure:
            assert not isinstance(failure, TimeoutError), data
    return answer


def alive(server):
    x = np.array([[1, 2, 3]], np.float32)
    given = grpc.InferInput("x", x.shape, "FP32")
    given.set_data_from_numpy(x)
    with grpc.InferenceServerClient(server.grpc) as client:
        assert list(client.infer("affine", [given]).as_numpy("y")[0]) == [3, 5, 7]
    status, answer = server.post("/v2/models/affine/infer", GOOD_JSON)
    assert status == 200 and answer["outputs"][0]["data"] == [3, 5, 7]


def side_by_side(go, count):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(go, range(count)))


def test_mutants_of_http1(server):
    def go(seed):
        randoms = random.Random(seed)
        data = mutant(randoms.choice(HTTP1), randoms)
        answer = exchange(server.http, data)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 "), (data, answer[:100])
        return answer[9:12]
    codes = side_by_side(go, 600)
    assert {b"200", b"400"} <= set(codes)  # some mutants are good, most are not
    assert b"500" not in codes
    alive(server)


def frame(kind, flags, stream, payload=b"", length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header without compression, names and values below 127 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
HELLO = PREFACE + frame(SETTINGS, 0, 0)
CALL = b"".join(literal(n, v) for n, v in [
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
    (b":authority", b"a"), (b"content-type", b"application/grpc"), (b"te", b"trailers")])


def message():
    made = service_pb2.ModelInferRequest(model_name="affine")
    made.inputs.add(name="x", datatype="FP32", shape=[1, 3])
    made.raw_input_contents.append(np.ones(3, np.float32).tobytes())
    return made.SerializeToString()


def call(payload, stream=1, headers=CALL):
    return frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, END_STREAM, stream, payload)


def prefixed(payload, length=None, packed=0):
    return struct.pack(">BI", packed, len(payload) if length is None else length) + payload


HTTP2 = {
    "an empty preface": PREFACE,
    "half a preface": PREFACE[:10],
    "a length beyond the limit": HELLO + frame(DATA, 0, 1, b"", length=0xFFFFFF),
    "data on no stream": HELLO + frame(DATA, 0, 0, b"abc"),
    "data on an idle stream": HELLO + frame(DATA, 0, 7, b"abc"),
    "headers that are no headers": HELLO + frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xff" * 200),
    "an index beyond the table": HELLO + frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\x7f"),
    "a header without an end": HELLO + frame(HEADERS, END_HEADERS, 1, b"\0\x7f\xff\xff\xff\x7fabc"),
    "an even stream": HELLO + call(prefixed(message()), stream=2),
    "a continuation of nothing": HELLO + frame(CONTINUATION, END_HEADERS, 1, CALL),
    "many empty continuations": HELLO + frame(HEADERS, 0, 1, CALL) + frame(CONTINUATION, 0, 1) * 5000,
    "other frames between continuations": HELLO + frame(HEADERS, 0, 1, CALL) + frame(PING, 0, 0, b"12345678"),
    "padding beyond the frame": HELLO + frame(HEADERS, END_HEADERS | PADDED, 1, b"\xff" + CALL[:20]),
    "a stream that depends on itself": HELLO + frame(PRIORITY, 0, 1, struct.pack(">IB", 1, 5)),
    "a reset of an idle stream": HELLO + frame(RESET, 0, 5, b"\0\0\0\0"),
    "settings of a wrong length": HELLO + frame(SETTINGS, 0, 0, b"abcde"),
    "settings out of range": HELLO + frame(SETTINGS, 0, 0, struct.pack(">HIHI", 5, 1, 4, 0xFFFFFFFF)),
    "an acknowledgement with a payload": HELLO + frame(SETTINGS, 1, 0, b"abcdef"),
    "a ping of a wrong length": HELLO + frame(PING, 0, 0, b"abc"),
    "many pings": HELLO + frame(PING, 0, 0, b"12345678") * 20000,
    "a window of nothing": HELLO + frame(WINDOW, 0, 0, b"\0\0\0\0"),
    "a window beyond the limit": HELLO + frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 2,
    "a push of a client's": HELLO + frame(PUSH, END_HEADERS, 1, b"\0\0\0\2" + CALL),
    "a type that there is not": HELLO + frame(200, 255, 0xFFFFFFFF, b"abc"),
    "a farewell, and more": HELLO + frame(GOAWAY, 0, 0, b"\0" * 8) + call(prefixed(message())),
    "many streams reset at once": HELLO + b"".join(
        frame(HEADERS, END_HEADERS, s, CALL) + frame(RESET, 0, s, b"\0\0\0\x08") for s in range(1, 4001, 2)),
    "a message longer than told": HELLO + call(prefixed(message(), length=5)),
    "a message shorter than told": HELLO + call(prefixed(message(), length=2**32 - 1)),
    "a message said to be packed": HELLO + call(prefixed(message(), packed=1)),
    "a flag that there is not": HELLO + call(prefixed(message(), packed=77)),
    "half a message's length": HELLO + call(b"\0\0"),
    "no message": HELLO + call(b""),
    "two messages": HELLO + call(prefixed(message()) * 2),
    "a message that is none": HELLO + call(prefixed(b"\xff" * 100)),
    "fields nested without end": HELLO + call(prefixed(b"\x2a\x7f" * 2000)),
    "a path that there is not": HELLO + call(prefixed(message()), headers=CALL.replace(b"ModelInfer", b"ModelInfex")),
    "another type of content": HELLO + call(prefixed(message()), headers=CALL.replace(b"application/grpc", b"application/json")),
    "no path": HELLO + call(prefixed(message()), headers=literal(b":method", b"POST")),
    "a deadline that is no time": HELLO + call(prefixed(message()), headers=CALL + literal(b"grpc-timeout", b"99999999999x")),
    "a large header": HELLO + frame(HEADERS, 0, 1, CALL) + frame(CONTINUATION, 0, 1, literal(b"a", b"b" * 100) * 150) * 40,
}


@pytest.mark.parametrize("name", HTTP2)
def test_wrong_frames_of_http2(server, name):
    exchange(server.grpc, HTTP2[name], quiet=0.1)
    alive(server)


def test_a_good_call_by_hand(server):
    """What the mutants are made of is answered, so that they reach as far."""
    answer = exchange(server.grpc, HELLO + call(prefixed(message())), until=b"grpc-status")
    assert np.full(3, 3, np.float32).tobytes() in answer


def test_mutants_of_http2(server):
    good = [HELLO + call(prefixed(message())), HELLO + call(prefixed(message())) + call(prefixed(message()), stream=3),
            HELLO + call(prefixed(message()), headers=CALL.replace(b"ModelInfer", b"ServerLive"))]

    def go(seed):
        randoms = random.Random(seed)
        whole = randoms.choice(good)
        # After the preface, without which nothing is read.
        exchange(server.grpc, PREFACE + mutant(whole[len(PREFACE):], randoms), quiet=0.05)
    side_by_side(go, 300)
    alive(server)


def test_mutants_of_messages(server):
    """Bytes that may be messages, in frames that are right."""
    def go(seed):
        randoms = random.Random(seed)
        return exchange(server.grpc, HELLO + call(prefixed(mutant(message(), randoms))), until=b"grpc-status")
    answers = side_by_side(go, 300)
    assert all(b"grpc-status" in answer for answer in answers)
    assert any(b"raw_input_contents" in answer for answer in answers)  # some must get as far as the server's own checks
    alive(server)
