"""TLS and the bearer token, on all three ports."""

import ssl
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import models
from conftest import PROGRAM

TOKEN = "a-token-that-is-long"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A certificate of our own for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", folder / "key.pem",
                    "-out", folder / "cert.pem"], check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def given(kind):
    x = kind.InferInput("x", [1, 3], "FP32")
    x.set_data_from_numpy(np.ones((1, 3), np.float32))
    return [x]


def test_token(tmp_path, start):
    models.affine(tmp_path / "models", "a")
    (tmp_path / "token").write_text(TOKEN + "\n")
    server = start(tmp_path / "models", "--token-file", tmp_path / "token")
    right = {"Authorization": f"Bearer {TOKEN}"}
    with http.InferenceServerClient(server.http) as client, grpc.InferenceServerClient(server.grpc) as rpc:
        assert client.is_server_live() and rpc.is_server_ready()  # probes have none
        for wrong in (None, {"authorization": TOKEN}, {"authorization": "Bearer "}, {"authorization": f"Bearer {TOKEN}x"},
                      {"authorization": f"Bearer {TOKEN[:-1]}"}, {"authorization": f"Basic {TOKEN}"}):
            with pytest.raises(InferenceServerException) as failure:
                client.infer("a", given(http), headers=wrong and dict(wrong))  # it adds to them
            assert failure.value.status() == "401"
            for call in (lambda: rpc.infer("a", given(grpc), headers=wrong),
                         lambda: rpc.get_model_metadata("a", headers=wrong), lambda: rpc.load_model("a", headers=wrong),
                         lambda: rpc.unload_model("a", headers=wrong),
                         lambda: rpc.get_model_repository_index(headers=wrong)):
                with pytest.raises(InferenceServerException) as failure:
                    call()
                assert failure.value.status() == "StatusCode.UNAUTHENTICATED"
        assert client.infer("a", given(http), headers=dict(right)).as_numpy("y")[0, 0] == 3
        lower = {"authorization": right["Authorization"]}
        assert rpc.infer("a", given(grpc), headers=lower).as_numpy("y")[0, 0] == 3
        assert rpc.get_model_metadata("a", headers=lower).name == "a"
    assert server.get("/status.json")[0] == 401 and server.call("/")[0] == 200
    with pytest.raises(urllib.error.HTTPError) as failure:
        urllib.request.urlopen(server.metrics_url, timeout=10)
    assert failure.value.code == 401
    with urllib.request.urlopen(urllib.request.Request(server.metrics_url, headers=right), timeout=10) as answer:
        assert b"oncilla_ready" in answer.read()
    assert not any(TOKEN in line for line in server.lines)


def test_tls(tmp_path, pair, start):
    cert, key = pair
    models.affine(tmp_path, "a")
    server = start(tmp_path, "--tls-cert", cert, "--tls-key", key, wait=False)
    import gevent.ssl
    trusted = gevent.ssl.create_default_context(cafile=str(cert))
    with http.InferenceServerClient(server.http, ssl=True, ssl_context_factory=lambda: trusted) as client:
        while not client.is_model_ready("a"):
            pass
        for size in (1, 100000):  # more than one record of TLS
            x = http.InferInput("x", [size, 3], "FP32")
            x.set_data_from_numpy(np.ones((size, 3), np.float32))
            assert (client.infer("a", [x]).as_numpy("y") == 3).all()
    with grpc.InferenceServerClient(server.grpc, ssl=True, root_certificates=str(cert)) as client:
        assert client.infer("a", given(grpc)).as_numpy("y")[0, 0] == 3
    context = ssl.create_default_context(cafile=cert)
    with urllib.request.urlopen(server.metrics_url.replace("http:", "https:"), context=context, timeout=10) as answer:
        assert b"oncilla_ready" in answer.read()
    with pytest.raises((urllib.error.URLError, ssl.SSLError)):  # one that does not trust us
        urllib.request.urlopen(f"https://{server.http}/v2", timeout=10)
    with pytest.raises(OSError):  # and one without TLS
        urllib.request.urlopen(f"http://{server.http}/v2", timeout=10)
    assert server.get  # the server lives: the next handshake works
    with urllib.request.urlopen(f"https://{server.http}/v2", context=context, timeout=10) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("arguments,message", [
    (["none"], "none"), (["{root}", "--http", "70000"], "must be a port"), (["{root}", "--tls-cert", "{root}/x"], "tls"),
    (["{root}", "--http", "off", "--grpc", "off"], "must be on"), (["{root}", "--tokn"], "tokn"), ([], "MODEL_REPOSITORY"),
    (["{root}", "--token-file", "/dev/null"], "token-file")])
def test_wrong_flags(tmp_path, arguments, message):
    out = subprocess.run([PROGRAM, *[a.format(root=tmp_path) for a in arguments]], capture_output=True, text=True)
    assert out.returncode == 2 and message in out.stderr, out


def test_a_port_that_is_taken(server, tmp_path):
    for flags in (["--http", str(server.ports["http"]), "--grpc", "off"],
                  ["--grpc", str(server.ports["grpc"]), "--http", "off"]):
        out = subprocess.run([PROGRAM, tmp_path, *flags, "--metrics", "off"], capture_output=True, text=True, timeout=30)
        assert out.returncode == 1 and "the port is taken" in out.stderr, out


def test_listens_on_this_machine_alone(server):
    import socket
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        own.connect(("192.0.2.1", 9))  # sends nothing: only asks which address would be used
        address = own.getsockname()[0]
    except OSError:
        pytest.skip("this machine has no other address")
    finally:
        own.close()
    for port in server.ports.values():
        with pytest.raises(OSError):
            socket.create_connection((address, port), timeout=2)


def test_oncilla_serve_starts_the_server():
    oncilla = PROGRAM.parent / "oncilla"
    if not oncilla.exists():
        pytest.skip("the program oncilla is not built")
    out = subprocess.run([oncilla, "serve", "--help"], capture_output=True, text=True, timeout=30)
    assert out.returncode == 0 and "MODEL_REPOSITORY" in out.stdout, out
    out = subprocess.run([oncilla, "serve", "none", "--http", "0"], capture_output=True, text=True, timeout=30)
    assert out.returncode == 2 and "none" in out.stderr, out
