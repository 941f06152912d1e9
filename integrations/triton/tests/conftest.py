"""A tritonserver in a process of its own, with the backend, on ports that are free.

The server is $TRITONSERVER, or the binary that the package nvidia-pytriton carries; the backend is the folder
$ONCILLA_TRITON_BACKENDS, which has oncilla/libtriton_oncilla.so in it."""
import importlib.util
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

ROOT = pathlib.Path(__file__).resolve().parents[3]
BACKENDS = pathlib.Path(os.environ.get("ONCILLA_TRITON_BACKENDS", ROOT / "build/release/triton/backends")).resolve()
QUICKSTART = ROOT / "testdata/quickstart/efficientnet_lite0"
# The models of the server's tests serve here too.
sys.path.insert(0, str(ROOT / "server/tests"))
import models

CLIENTS = {"http": tritonclient.http, "grpc": tritonclient.grpc}


def tritonserver():
    if "TRITONSERVER" in os.environ:
        return pathlib.Path(os.environ["TRITONSERVER"])
    found = importlib.util.find_spec("pytriton")
    assert found, "there is no tritonserver: set TRITONSERVER, or install nvidia-pytriton"
    return pathlib.Path(found.submodule_search_locations[0]) / "tritonserver/bin/tritonserver"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Server:
    """The process, its ports and its log. Models are loaded when a test asks for them."""

    def __init__(self, repository, *arguments):
        self.repository = pathlib.Path(repository)
        self.clients, self.lock = {}, threading.Lock()
        for attempt in range(3):  # another process may take a port in between
            self._start(arguments)
            if self._wait_live(60):
                return
            self.stop()
        raise AssertionError("tritonserver does not start:\n" + self.log())

    def _start(self, arguments):
        http, grpc = free_ports(2)
        self.lines = []
        self.addresses = {"http": f"127.0.0.1:{http}", "grpc": f"127.0.0.1:{grpc}"}
        self.process = subprocess.Popen(
            [tritonserver(), f"--backend-directory={BACKENDS}", f"--model-repository={self.repository}",
             "--model-control-mode=explicit", "--http-address=127.0.0.1", f"--http-port={http}",
             "--grpc-address=127.0.0.1", f"--grpc-port={grpc}", "--allow-metrics=false", "--exit-timeout-secs=20", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        threading.Thread(target=self._read, args=[self.process.stdout], daemon=True).start()

    def _read(self, stream):
        for line in stream:
            self.lines.append(line)

    def _wait_live(self, seconds):
        deadline = time.time() + seconds
        client = self.client("grpc")
        while time.time() < deadline and self.process.poll() is None:
            try:
                if client.is_server_live(client_timeout=5):
                    return True
            except tritonclient.grpc.InferenceServerException:
                time.sleep(0.05)
        return False

    def log(self):
        return "".join(self.lines)

    def wait_for_line(self, text, seconds=20):
        """The first line of the log with this text."""
        deadline = time.time() + seconds
        while time.time() < deadline:
            for line in list(self.lines):
                if text in line:
                    return line
            time.sleep(0.02)
        raise AssertionError(f"the log has no line with {text!r}:\n" + self.log())

    def client(self, protocol):
        """A client for each thread (they are bound to one), closed before the server ends: it waits for open connections."""
        key = (protocol, threading.get_ident(), self.addresses[protocol])
        with self.lock:
            if key not in self.clients:
                self.clients[key] = CLIENTS[protocol].InferenceServerClient(self.addresses[protocol])
            return self.clients[key]

    def load(self, name):
        self.client("grpc").load_model(name, client_timeout=60)

    def stop(self):
        """SIGINT, and an end for one that does not end by itself."""
        for client in self.clients.values():
            client.close()
        self.clients.clear()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
                raise AssertionError("tritonserver does not stop:\n" + self.log()) from None
        return self.process.returncode


def configure(repository, name, text=""):
    folder = pathlib.Path(repository) / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text('backend: "oncilla"\n' + text)


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


def infer(server, protocol, model, inputs, outputs=None, **options):
    """A dict of arrays from one of arrays, with a deadline."""
    kind = CLIENTS[protocol]
    given = []
    for name, array in inputs.items():
        tensor = kind.InferInput(name, array.shape, datatype(array))
        tensor.set_data_from_numpy(array)
        given.append(tensor)
    wanted = None if outputs is None else [kind.InferRequestedOutput(name) for name in outputs]
    if protocol == "grpc":
        options.setdefault("client_timeout", 60)
    result = server.client(protocol).infer(model, given, outputs=wanted, **options)
    answer = result.get_response()
    described = answer["outputs"] if isinstance(answer, dict) else answer.outputs
    names = [o["name"] if isinstance(o, dict) else o.name for o in described]
    return {name: result.as_numpy(name) for name in names}


def datatype(array):
    if array.dtype == np.bool_:
        return "BOOL"
    if array.dtype.kind in "OSU":
        return "BYTES"
    return {"f": "FP", "i": "INT", "u": "UINT"}[array.dtype.kind] + str(array.dtype.itemsize * 8)


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """Triton's repository of the tests: the models of the server's tests, and the quickstart's."""
    root = tmp_path_factory.mktemp("models")
    cpu = parameter("device", "cpu")
    models.affine(root, "affine")
    configure(root, "affine", cpu + 'instance_group { kind: KIND_CPU count: 2 }\n')
    models.affine(root, "batched")
    configure(root, "batched", cpu + "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 200000 }\n")
    models.affine(root, "versions", 1, scale=1.0, offset=0.0)
    models.affine(root, "versions", 2, scale=10.0, offset=0.0)
    configure(root, "versions", cpu + "version_policy { all {} }\n")
    models.two(root, "two")
    configure(root, "two", cpu)
    for name in models.TYPES:
        models.same(root, f"same_{name.lower()}", name)
        configure(root, f"same_{name.lower()}", cpu)
    models.row(root, "row")
    configure(root, "row", cpu + "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 200000 }\n"
                                 'input { name: "i" data_type: TYPE_INT64 dims: [] }\n'
                                 'output { name: "y" data_type: TYPE_FP32 dims: [] }\n'.replace("dims: []", "dims: [ 1 ] reshape { shape: [] }"))
    folder = root / "quickstart/1"
    folder.mkdir(parents=True)
    (folder / "model.savedmodel").symlink_to(QUICKSTART)
    configure(root, "quickstart", cpu + "max_batch_size: 8\ndynamic_batching { }\n")
    return root


@pytest.fixture(scope="session")
def server(repository):
    running = Server(repository)
    yield running
    assert running.stop() == 0, running.log()
