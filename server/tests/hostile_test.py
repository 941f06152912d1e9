"""Requests that are invalid, broken, too large, too slow or too many: each gets an error, and the server keeps working."""

import concurrent.futures
import json
import re
import select
import shutil
import socket
import struct
import subprocess
import time

import numpy as np
import pytest
import tritonclient.http as http

import models


def raw(server, data, seconds=20, finish=False):
    """What comes back for bytes that are sent as they are, until the server closes or the time is over."""
    host, port = server.http.split(":")
    answer = b""
    with socket.create_connection((host, int(port)), timeout=seconds) as connection:
        try:
            connection.sendall(data)
            if finish:
                connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server closed the connection before the end; its response can still be read
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except (TimeoutError, ConnectionResetError):
            pass
    return answer


def post(path, body, *headers):
    head = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def infer(server, json_part, binary=b"", model="affine", length=None):
    text = json_part if isinstance(json_part, bytes) else json.dumps(json_part).encode()
    headers = [f"Inference-Header-Content-Length: {len(text) if length is None else length}"] if binary or length else []
    answer = raw(server, post(f"/v2/models/{model}/infer", text + binary, *headers))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head, "no answer"
    return int(head.split()[1]), body


def given(**changes):
    return {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3], **changes}]}


def alive(server):
    status, body = infer(server, given())
    return status == 200 and json.loads(body)["outputs"][0]["data"] == [3, 5, 7]


WRONG = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"{\"inputs\": 5}", b"{\"inputs\": [5]}", b"{\"inputs\": []}", b"[" * 100000,
    b"{\"a\":" * 50000, b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,3],"data":[1,2,1e999]}]}',
    {"inputs": None}, {}, given(name=5), given(name="z"), given(datatype="FP31"), given(datatype="INT32"),
    given(datatype=None), given(shape=[1, 4]), given(shape=[3]), given(shape=[1, -3]), given(shape=[-1, 3]),
    given(shape=[2**63, 3]), given(shape=[2**62, 2**62]), given(shape=[1.5, 3]), given(shape="1,3"), given(shape={}),
    given(shape=[1] * 1000), given(shape=[0, 2**62]), given(data=[1, 2]), given(data=[1, 2, 3, 4]), given(data=[[1, 2], [3]]),
    given(data=[[[1, 2, 3]]]), given(data="abc"), given(data=[1, 2, "3"]), given(data=[1, 2, None]), given(data=[1, 2, True]),
    given(data=[1, 2, 1e300]), given(data={}), given(parameters=5), given(parameters={"binary_data_size": 4}),
    {**given(), "outputs": 5}, {**given(), "outputs": [{}]}, {**given(), "outputs": [{"name": "z"}]},
    {**given(), "outputs": [{"name": "y"}, {"name": "y"}]}, {**given(), "id": 5}, {**given(), "parameters": []},
    {**given(), "parameters": {"timeout": -1}}, {**given(), "parameters": {"timeout": "x"}},
    {**given(), "parameters": {"priority": 1}}, {**given(), "parameters": {"priority": -1}},
    {**given(), "parameters": {"priority": 2**64}}, {**given(), "parameters": {"priority": "1"}},
    {**given(), "outputs": [{"name": "y", "parameters": {"binary_data": 1}}]},
    {"inputs": given()["inputs"] * 2},
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_json(server, number):
    status, body = infer(server, WRONG[number])
    assert status == 400 and json.loads(body)["error"], (status, body)


def test_what_is_not_supported_is_refused_by_name(server):
    status, body = infer(server, {**given(), "outputs": [{"name": "y", "parameters": {"classification": -2}}]})
    assert status == 400 and "classification" in json.loads(body)["error"]


def binary(size, **changes):
    spec = {"name": "x", "datatype": "FP32", "shape": [1, 3], "parameters": {"binary_data_size": size}, **changes}
    return {"inputs": [spec]}


def test_wrong_binary_sizes(server):
    twelve = np.arange(3, dtype=np.float32).tobytes()
    assert infer(server, binary(12), twelve)[0] == 200
    for spec, data in [(binary(-12), twelve), (binary(13), twelve), (binary(11), twelve), (binary(8), twelve[:8]),
                       (binary(2**64 - 4), twelve), (binary(2**63), twelve), (binary(10**30), twelve), (binary(12.0), twelve),
                       (binary("12"), twelve), (binary(12), twelve + b"more"), (binary(0), b"xx"),
                       (binary(12, data=[1, 2, 3]), twelve), (binary(2**64 - 4, shape=[2**62, 4]), twelve)]:
        status, body = infer(server, spec, data)
        assert status == 400 and json.loads(body)["error"], (spec, status, body)
    for length in ("-1", "9999999999999999999999", "1e3", "0x10", "99999", " ", "5 5"):
        status, body = infer(server, binary(12), twelve, length=length)
        assert status == 400, (length, body)


def strings(data, shape):
    return binary(len(data), datatype="BYTES", shape=shape)


def test_strings_with_broken_lengths(server):
    good = struct.pack("<I", 3) + b"abc" + struct.pack("<I", 0)
    status, body = infer(server, strings(good, [2]), good, "same_bytes")
    assert status == 200 and json.loads(body)["outputs"][0]["data"] == ["abc", ""]
    for data in (good[:-1], good[:5], good[:2], struct.pack("<I", 2**32 - 1) + b"abc", struct.pack("<I", 4) + b"abc",
                 good + b"\0", good + good, struct.pack("<I", 7) + b"abcdefg"):
        assert infer(server, strings(data, [2]), data, "same_bytes")[0] == 400
    assert infer(server, strings(good, [2**61]), good, "same_bytes")[0] == 400
    invalid = struct.pack("<I", 2) + b"\xff\xfe"
    status, body = infer(server, strings(invalid, [1]), invalid, "same_bytes")
    assert status == 400 and b"binary" in body  # an answer that JSON has no form for
    ones = bytes([0, 1, 2])
    assert infer(server, binary(3, datatype="BOOL", shape=[3]), ones, "same_bool")[0] == 400


HEADS = [
    (b"GARBAGE\r\n\r\n", b"400"), (b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"400"),
    (b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", b"400"),
    (b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 9223372036854775807\r\n\r\n", b"413"),
    (b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 17000000\r\n\r\n", b"413"),
    (b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", b"400"),
    (b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
    (b"POST /v2 HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", b"405"),
    (b"DELETE /v2 HTTP/1.1\r\nConnection: close\r\n\r\n", b"404"),
    (b"GET /v2/models/../../etc/passwd HTTP/1.1\r\nConnection: close\r\n\r\n", b"404"),
    (b"GET /v2/models/%2e%2e%2f%2e%2e HTTP/1.1\r\nConnection: close\r\n\r\n", b"404"),
    (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nConnection: close\r\n\r\n", b"414"),
    (b"GET /v2 HTTP/1.1\r\nRange: bytes=0-3\r\nConnection: close\r\n\r\n", b"200"),
    (b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 4\r\nContent-Encoding: br\r\n\r\nabcd", b"415"),
    (b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\nabcd",
     b"400"),
]


@pytest.mark.parametrize("number", range(len(HEADS)))
def test_wrong_heads(server, number):
    data, code = HEADS[number]
    answer = raw(server, data)
    assert answer.split()[1:2] == [code], answer[:200]


def test_chunks(server):
    body = json.dumps(given()).encode()
    head = b"POST /v2/models/affine/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, body[i:i + 1]) for i in range(len(body))) + b"0\r\n\r\n"
    assert b'"data":[3,5,7]' in raw(server, head + chunks)
    # More than the limit, in chunks without a declared total: the client sees why before it has sent everything.
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head)
        chunk, sent = b"10000\r\n" + b" " * (1 << 16) + b"\r\n", 0
        while not select.select([connection], [], [], 0)[0]:
            connection.sendall(chunk)
            sent += len(chunk)
            assert sent < 64 << 20
        answer = connection.recv(4096)
    assert answer.split()[1] == b"413" and b"16777216 bytes" in answer, answer[:300]
    assert alive(server)


def test_a_head_without_an_end(server):
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\n")
        for i in range(100000):
            if select.select([connection], [], [], 0)[0]:
                break
            connection.sendall(b"X-%d: %s\r\n" % (i, b"a" * 100))
        assert connection.recv(4096).split()[1] in (b"400", b"408") and i < 10000
    assert alive(server)


def test_messages_tell_nothing_of_the_machine(server):
    seen = b""
    for body in WRONG:
        seen += infer(server, body)[1]
    seen += json.dumps(server.post("/v2/repository/index", {})[1]).encode()
    for secret in (str(server.repository), socket.gethostname(), "/home", "/tmp", "model.onnx", "broken/1"):
        if secret != "localhost":
            assert secret.encode() not in seen


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A server with a small limit for the bytes of requests."""
    from conftest import Server
    root = tmp_path_factory.mktemp("small")
    models.affine(root, "affine")
    made = Server(root, "--max-request-mib", "6", "--max-held-mib", "8")
    yield made
    assert made.stop() == 0


def await_held(server, bytes):
    deadline = time.time() + 10
    while server.metric("oncilla_requests_held_bytes") != bytes:
        assert time.time() < deadline, server.metric("oncilla_requests_held_bytes")
        time.sleep(0.02)


def test_what_requests_hold_together_is_bounded(small):
    import tritonclient.grpc as grpc
    from tritonclient.utils import InferenceServerException
    host, port = small.http.split(":")
    big = np.ones((400_000, 3), np.float32)  # 4.6 MiB
    x = grpc.InferInput("x", big.shape, "FP32")
    x.set_data_from_numpy(big)
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    chunked = b"POST /v2/models/affine/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 4
    with grpc.InferenceServerClient(small.grpc) as client:
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(post("/v2/models/affine/infer", b" " * (5 << 20))[:-1])
            await_held(small, 5 << 20)
            answer = raw(small, post("/v2/models/affine/infer", b" " * (5 << 20))[:1000])
            assert answer.split()[1] == b"429" and b"Retry-After" in answer and b"leave no room" in answer
            answer = raw(small, chunked)
            assert answer.split()[1] == b"429" and b"leave no room" in answer
            status, body = infer(small, given(id=" " * (1 << 20)))  # its document would cost too much
            assert status == 429 and b"leave no room" in body
            with pytest.raises(InferenceServerException, match="leave no room") as failure:
                client.infer("affine", [x])
            assert failure.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
            assert alive(small)  # small ones still fit
        await_held(small, 0)
        assert client.infer("affine", [x]).as_numpy("y")[-1, -1] == 3
    await_held(small, 0)


@pytest.fixture(scope="module")
def tight(tmp_path_factory):
    """A server with few connections and short time limits."""
    from conftest import Server
    root = tmp_path_factory.mktemp("tight")
    models.affine(root, "affine")
    made = Server(root, "--max-connections", "24", "--request-time", "3", "--idle", "3")
    yield made
    assert made.stop() == 0


def test_slow_clients_are_cut_off(tight):
    """A body that arrives byte by byte, and one that never arrives."""
    host, port = tight.http.split(":")
    begin = time.time()
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")
        try:
            while time.time() - begin < 20:
                connection.sendall(b" ")
                time.sleep(0.2)
        except OSError:
            pass
    assert 2 < time.time() - begin < 10
    begin = time.time()
    answer = raw(tight, b"POST /v2/models/affine/infer HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")
    assert b"408" in answer[:20] and time.time() - begin < 10
    # A connection that sends nothing at all, and half a head, with this side open and closed.
    begin = time.time()
    assert raw(tight, b"") == b"" and time.time() - begin < 10
    begin = time.time()
    assert raw(tight, b"GET /v2 HT", finish=True) == b"" and time.time() - begin < 10
    begin = time.time()
    assert raw(tight, b"GET /v2 HT", seconds=30).split()[1:2] in ([], [b"408"]) and time.time() - begin < 20
    assert alive(tight)


def test_grpc_connections_without_calls_are_closed(tight):
    """One that says nothing, one that has begun HTTP/2, and one that has made a call."""
    import tritonclient.grpc as grpc
    from frames_test import HELLO
    host, port = tight.grpc.split(":")
    begin = time.time()
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(HELLO)
        while connection.recv(65536):
            pass
    assert 2 < time.time() - begin < 30
    with grpc.InferenceServerClient(tight.grpc) as client:
        assert client.is_server_live()
        time.sleep(5)
        assert client.is_server_live()  # the client has connected again


def test_refused_connections_are_answered(tight):
    """Clients above the limit get an answer, and not a reset that hides it."""
    host, port = tight.http.split(":")
    request = post("/v2/models/affine/infer", json.dumps(given()).encode())
    held = [socket.create_connection((host, int(port)), timeout=5) for _ in range(24)]
    deadline = time.time() + 2
    while tight.metric("oncilla_connections{") < 24 and time.time() < deadline:
        time.sleep(0.02)
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: raw(tight, request), range(300)))
    for connection in held:
        connection.close()
    codes = [answer.split()[1] if answer else b"nothing" for answer in answers]
    assert set(codes) <= {b"200", b"503"} and codes.count(b"503") > 100, {code: codes.count(code) for code in codes}


def test_many_connections(tight):
    """Idle ones above the limit are refused; those within it still serve, and all is well when they are gone."""
    host, port = tight.http.split(":")
    held = []
    for _ in range(200):
        held.append(socket.create_connection((host, int(port)), timeout=5))
    deadline = time.time() + 10
    while tight.metric("oncilla_connections_refused_total") <= 100:
        assert time.time() < deadline
        time.sleep(0.05)
    assert tight.metric("oncilla_connections{") <= 24
    for connection in held:
        connection.close()
    deadline = time.time() + 10
    while tight.metric("oncilla_connections{") > 0:
        assert time.time() < deadline
        time.sleep(0.05)
    assert alive(tight)


def test_clients_that_do_not_read(tight):
    host, port = tight.http.split(":")
    for _ in range(5):
        connection = socket.create_connection((host, int(port)), timeout=5)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(post("/v2/models/affine/infer", json.dumps(given(shape=[20000, 3], data=[1] * 60000)).encode()))
        connection.close()  # with a reset
    assert alive(tight)


def test_requests_side_by_side(server):
    """Many clients at once, good requests among bad ones: each gets its own answer."""
    def go(i):
        if i % 3 == 0:
            return infer(server, given(shape=[1, 4]))[0] == 400
        status, body = infer(server, given(data=[i, 0, 0]))
        return status == 200 and json.loads(body)["outputs"][0]["data"] == [2 * i + 1, 1, 1]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert all(pool.map(go, range(300)))


def test_grpc_beyond_the_limit(server):
    import tritonclient.grpc as grpc
    from tritonclient.utils import InferenceServerException
    big = np.zeros((2_000_000, 3), np.float32)
    given_big = grpc.InferInput("x", big.shape, "FP32")
    given_big.set_data_from_numpy(big)
    with grpc.InferenceServerClient(server.grpc) as client:
        with pytest.raises(InferenceServerException) as failure:
            client.infer("affine", [given_big])
        assert failure.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
        assert client.is_server_live()


def test_garbage_for_grpc(server):
    host, port = server.grpc.split(":")
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 1000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 1000):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(data)
    import tritonclient.grpc as grpc
    with grpc.InferenceServerClient(server.grpc) as client:
        assert client.is_server_live()
    with http.InferenceServerClient(server.http) as client:
        assert client.is_server_live()


@pytest.mark.parametrize("tool", ["hey", "wrk"])
def test_load(server, tool, tmp_path):
    """Some seconds of requests from public tools of load, each of them answered."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    body, url = json.dumps(given()), f"http://{server.http}/v2/models/affine/infer"
    if tool == "hey":
        command = ["hey", "-z", "3s", "-c", "64", "-m", "POST", "-T", "application/json", "-d", body, url]
    else:
        script = tmp_path / "post.lua"
        script.write_text(f"wrk.method = 'POST'\nwrk.body = '{body}'\nwrk.headers['Content-Type'] = 'application/json'\n")
        command = ["wrk", "-d", "3s", "-c", "64", "-t", "2", "-s", str(script), url]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    if tool == "hey":
        codes = dict(re.findall(r"\[(\d+)\]\s+(\d+) responses", said))
        assert set(codes) == {"200"} and int(codes["200"]) >= 64 and "Error distribution" not in said, said
    else:
        assert int(re.search(r"(\d+) requests in", said)[1]) >= 64, said
        assert "Socket errors" not in said and "Non-2xx" not in said, said
    assert alive(server)
