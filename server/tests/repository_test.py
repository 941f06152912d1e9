"""Loading, replacing and unloading models, and batches."""

import os
import shutil
import signal
import threading
import time

import numpy as np
import psutil
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import models


def infer(client, name, array, version="", input_name="x", output="y", **options):
    kind = http if isinstance(client, http.InferenceServerClient) else grpc
    datatype = {"f4": "FP32", "i8": "INT64"}[array.dtype.str[1:]]
    given = kind.InferInput(input_name, array.shape, datatype)
    given.set_data_from_numpy(array)
    return client.infer(name, [given], model_version=version, **options).as_numpy(output)


def ask(server, name, array, **options):
    with http.InferenceServerClient(server.http) as client:
        return infer(client, name, array, **options)


ONE = np.ones((1, 3), np.float32)


def test_load_and_unload_on_request(tmp_path, start):
    models.affine(tmp_path, "a")
    server = start(tmp_path, "--no-load")
    with http.InferenceServerClient(server.http) as client, grpc.InferenceServerClient(server.grpc) as rpc:
        assert client.is_server_ready() and not client.is_model_ready("a")
        with pytest.raises(InferenceServerException, match="is not ready"):
            infer(client, "a", ONE)
        client.load_model("a")
        assert client.is_model_ready("a") and infer(client, "a", ONE)[0, 0] == 3
        rpc.unload_model("a")
        server.await_state("a", "1", "UNAVAILABLE")
        assert not rpc.is_model_ready("a")
        rpc.load_model("a")
        assert infer(rpc, "a", ONE)[0, 0] == 3
        client.unload_model("a")
        # What came meanwhile is found; what is not there is told.
        models.affine(tmp_path, "b", scale=5.0)
        client.load_model("b")
        assert infer(client, "b", ONE)[0, 0] == 6
        for other in (client, rpc):
            with pytest.raises(InferenceServerException, match="there is no model 'none'"):
                other.load_model("none")
            with pytest.raises(InferenceServerException, match="there is no model 'none'"):
                other.unload_model("none")
        with pytest.raises(InferenceServerException, match="no model"):
            client.load_model("..")


def test_a_model_that_fails_is_told_and_tried_again(tmp_path, start):
    models.broken(tmp_path, "a")
    models.affine(tmp_path, "b")
    server = start(tmp_path)
    entry = server.await_state("a", "1", "UNAVAILABLE")
    assert "not a model" in entry["reason"] and str(tmp_path) not in entry["reason"]
    assert server.get("/v2/health/ready")[0] == 200 and server.get("/v2/models/b/ready")[0] == 200
    status, answer = server.post("/v2/repository/models/a/load", {})
    assert status == 500 and str(tmp_path) not in answer["error"]
    models.affine(tmp_path, "a")
    assert server.post("/v2/repository/models/a/load", {})[0] == 200
    assert ask(server, "a", ONE)[0, 0] == 3


CONFIGS = [("max_batch: x", "line 1: max_batch must be a whole number"), ("max_bach: 2", "unknown key 'max_bach'"),
           ("a: [", "config.yaml: line"), ("- 1", "must hold keys"), ("max_batch: 2\nmax_batch: 3", "given twice"),
           ("instances: 0", "instances must be a whole number from 1"), ("memory_limit: 5 parsecs", "number of bytes"),
           ("version_policy: {latest: 0}", "latest must be"), ("version_policy: {specific: [7]}", "none of the versions"),
           ("file: ../model.onnx", "a name in the version's folder"), ("file: other.onnx", "there is no 'other.onnx'"),
           ("signature: none", "no signature 'none'"), ("device: gpu:7", "gpu:7"), ("max_delay_us: 5", "needs a max_batch"),
           ("default_priority: 2", "one of the 0 levels"), ("priority_levels: 2\ndefault_priority: 3", "line 2: default_priority"),
           ("inputs: [{name: z, data_type: TYPE_FP32, dims: [-1, 3]}]", "has the input 'z'; the model has 'x'"),
           ("outputs: [{name: y, data_type: TYPE_FP16, dims: [-1, 3]}]", "as TYPE_FP16[-1,3]; the model's is TYPE_FP32[-1,3]"),
           ("max_batch: 2\ninputs: [{name: x, data_type: TYPE_FP32, dims: [-1, 3]}]", "the model's is TYPE_FP32[3]"),
           ("inputs: [{name: x}]", "inputs must be a list of"), ("inputs: [{name: x, data_type: TYPE_FP32, dims: [-2]}]", "a size in dims"),
           ("session: {devise: cpu}", "devise"), ("session: {device: cpu}", "is set by a key"),
           ("memory_limit: 999999999999999999999", "number of bytes"), ("memory_limit: 9999999999 GiB", "number of bytes"),
           ("&a [*a, *a]: 1", "config.yaml")]


@pytest.mark.parametrize("text,reason", CONFIGS)
def test_a_wrong_config_is_refused_with_its_reason(tmp_path_factory, wrong_configs, text, reason):
    name = f"c{[c[0] for c in CONFIGS].index(text)}"
    index = [e for e in wrong_configs.post("/v2/repository/index", {})[1] if e["name"] == name]
    assert any(reason in e.get("reason", "") for e in index), index
    assert not any(e["state"] == "READY" for e in index)


@pytest.fixture(scope="module")
def wrong_configs(tmp_path_factory):
    from conftest import Server
    root = tmp_path_factory.mktemp("configs")
    for i, (text, _) in enumerate(CONFIGS):
        models.affine(root, f"c{i}")
        models.config(root, f"c{i}", text)
    server = Server(root)
    yield server
    assert server.stop() == 0


def test_new_versions_without_a_gap(tmp_path, start):
    """Requests go on while versions come and go: none fails, and each answer is a whole version's."""
    models.affine(tmp_path, "a", 1, scale=1.0, offset=0.0)
    server = start(tmp_path, "--poll", "1")
    ended, seen, failures = threading.Event(), set(), []

    def go():
        with http.InferenceServerClient(server.http) as client:
            while not ended.is_set():
                try:
                    seen.add(float(infer(client, "a", ONE)[0, 0]))
                except Exception as failure:  # noqa: BLE001: any is one too many
                    failures.append(failure)
    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for version in (2, 3):
        models.affine(tmp_path, "a", version, scale=float(version), offset=0.0)
        server.await_state("a", str(version), "READY")
        server.await_state("a", str(version - 1), "UNAVAILABLE")
    # A version that fails must leave the old one in service.
    (tmp_path / "a" / "4").mkdir()
    (tmp_path / "a" / "4" / "model.onnx").write_bytes(b"no model")
    server.await_state("a", "4", "UNAVAILABLE")
    time.sleep(0.2)
    ended.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    assert seen == {1.0, 2.0, 3.0}
    assert server.state("a", "3")["state"] == "READY"
    # Removing a folder unloads its model; a new folder is loaded.
    models.affine(tmp_path, "b")
    shutil.rmtree(tmp_path / "a")
    server.await_state("b", "1", "READY")
    server.await_state("a", "3", "UNAVAILABLE")


def test_changed_config_is_followed(tmp_path, start):
    models.affine(tmp_path, "a")
    server = start(tmp_path, "--poll", "1")
    models.config(tmp_path, "a", "max_batch: 2\n")
    big = np.ones((3, 3), np.float32)
    deadline = time.time() + 20
    while time.time() < deadline:
        try:
            ask(server, "a", big)
        except InferenceServerException as failure:
            assert "batches of 1 to 2" in str(failure)
            return
        time.sleep(0.1)
    raise AssertionError("the new config.yaml was not read")


def test_memory_limit_refuses_a_model_with_what_would_fit(tmp_path, start):
    models.slow(tmp_path, "a", size=512, steps=4)
    models.config(tmp_path, "a", "max_batch: 4096\nmemory_limit: 4MiB\n")
    models.slow(tmp_path, "b", size=512, steps=4)
    models.config(tmp_path, "b", "max_batch: 4096\nmemory_limit: 256MiB\n")
    server = start(tmp_path)
    assert server.await_state("b", "1", "READY")
    reason = server.await_state("a", "1", "UNAVAILABLE")["reason"]
    assert "would fit" in reason or "fits" in reason, reason
    assert server.metric(r"oncilla_model_memory_bytes\{model=\"b\"") >= 1 << 20


def test_what_other_models_may_take_counts(tmp_path, start):
    """Two models that fit alone and not together: the second is refused, and loaded when the first is gone."""
    rows = int(psutil.virtual_memory().total * 0.6) >> 14
    models.wide(tmp_path, "a", rows)
    models.wide(tmp_path, "b", rows)
    server = start(tmp_path, "--no-load")
    with http.InferenceServerClient(server.http) as client:
        client.load_model("a")
        with pytest.raises(InferenceServerException, match="other models have .* a batch of about [0-9]+ would fit"):
            client.load_model("b")
        assert ask(server, "a", np.zeros((2, 1), np.float32))[1, 0] == 4096
        client.unload_model("a")
        server.await_state("a", "1", "UNAVAILABLE")
        client.load_model("b")
        assert ask(server, "b", np.zeros((2, 1), np.float32))[1, 0] == 4096


def test_models_load_side_by_side_and_loads_are_interrupted(tmp_path, start):
    for name in ("a", "b"):
        models.folded(tmp_path, name)
    models.affine(tmp_path, "c")
    server = start(tmp_path, "--load-threads", "2", "--threads", "1", wait=False)
    deadline = time.time() + 30
    while [server.state(n, "1") and server.state(n, "1")["state"] for n in "ab"] != ["LOADING"] * 2:
        assert time.time() < deadline
    with grpc.InferenceServerClient(server.grpc) as client:
        begin = time.time()
        client.unload_model("a")  # does not wait
        assert time.time() - begin < 5
        entry = server.await_state("a", "1", "UNAVAILABLE")
        assert "unloaded on request" in entry["reason"]
        assert [e["event"] for e in server.await_events(lambda e: e.get("model") == "a")] == ["interrupted"]
        server.await_state("c", "1", "READY")  # the thread that it had is free
        # A client that requests a load and disconnects must not end it.
        with pytest.raises(OSError):
            server.call("/v2/repository/models/a/load", b"{}", timeout=0.5)
        server.await_state("a", "1", "LOADING")
    # SIGTERM interrupts the rest: the server ends soon.
    begin = time.time()
    assert server.stop() == 0
    assert time.time() - begin < 10


def test_batches_are_joined_and_divided(server):
    """Sixteen requests of one row each need far fewer executions, and each gets its own rows."""
    executions = server.metric(r'oncilla_executions_total\{model="batched"')
    answers = {}

    def go(i):
        answers[i] = ask(server, "batched", np.full((1 + i % 2, 3), i, np.float32))
    threads = [threading.Thread(target=go, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(16):
        assert answers[i].shape == (1 + i % 2, 3) and (answers[i] == 2 * i + 1).all()
    assert server.metric(r'oncilla_executions_total\{model="batched"') - executions <= 12
    assert server.metric(r'oncilla_executions_total\{model="batched".*rows="[2-8]"') > 0
    with pytest.raises(InferenceServerException, match="batches of 1 to 8"):
        ask(server, "batched", np.ones((9, 3), np.float32))
    with pytest.raises(InferenceServerException, match="batches of 1 to 8"):
        ask(server, "batched", np.ones((0, 3), np.float32))


def test_one_bad_request_of_a_batch_fails_alone(server):
    answers = {}

    def go(i):
        try:
            answers[i] = ask(server, "row", np.array([9 if i == 2 else i], np.int64), input_name="i")
        except InferenceServerException as failure:
            answers[i] = str(failure)
    threads = [threading.Thread(target=go, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "out of" in answers[2] or "index" in answers[2], answers[2]
    for i in (0, 1, 3):
        np.testing.assert_array_equal(answers[i], [10 * (i + 1)])


# So many rows that a run takes some 100 ms; a server that is so many times slower (under a sanitizer) gets fewer.
SLOW = np.ones((2048 // int(os.environ.get("ONCILLA_SLOWER", "1")), 256), np.float32)


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory):
    """Models whose requests take some 100 ms and more."""
    from conftest import Server
    root = tmp_path_factory.mktemp("slow")
    models.slow(root, "slow", steps=100)
    models.config(root, "slow", "queue_size: 2\ninstances: 1\n")
    models.slow(root, "timed", steps=30)
    models.config(root, "timed", "timeout_ms: 20\n")
    models.slow(root, "ranked", steps=200)
    models.config(root, "ranked", "priority_levels: 3\n")
    server = Server(root)
    yield server
    assert server.stop() == 0


def test_back_pressure(slow_server):
    codes, seconds = [], []

    def go(kind):
        begin = time.time()
        try:
            module = http if kind else grpc
            with module.InferenceServerClient(slow_server.http if kind else slow_server.grpc) as client:
                infer(client, "slow", SLOW)
            codes.append("ok")
        except InferenceServerException as failure:
            codes.append(failure.status())
            seconds.append(time.time() - begin)
    threads = [threading.Thread(target=go, args=(i % 2,)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 3 <= codes.count("ok") < 10
    assert set(codes) <= {"ok", "429", "StatusCode.RESOURCE_EXHAUSTED"} and len(set(codes)) >= 2, codes


def test_time_limits(slow_server):
    with http.InferenceServerClient(slow_server.http) as client:
        with pytest.raises(InferenceServerException) as failure:
            infer(client, "slow", SLOW, timeout=10_000)  # microseconds
        assert failure.value.status() == "504"
        with pytest.raises(InferenceServerException) as failure:
            infer(client, "timed", SLOW)  # the model's own
        assert failure.value.status() == "504"
    with grpc.InferenceServerClient(slow_server.grpc) as client:
        with pytest.raises(InferenceServerException) as failure:
            infer(client, "slow", SLOW, client_timeout=0.02)
        assert failure.value.status() == "StatusCode.DEADLINE_EXCEEDED"


def await_running(server):
    deadline = time.time() + 10
    while server.metric("oncilla_requests_running") == 0:
        assert time.time() < deadline


def test_priorities(slow_server):
    """Of requests that wait, those of the highest priority go first, whoever came first, over both front ends."""
    ended, threads = [], []
    given = (3, 2, 0, 1, 3, 2, 1)  # 0: the model's default, 3

    def go(i, priority):
        module, address = ((http, slow_server.http), (grpc, slow_server.grpc))[i % 2]
        with module.InferenceServerClient(address) as client:
            # The first one runs until all others have come.
            infer(client, "ranked", np.tile(SLOW, (6, 1)) if i == 0 else SLOW, priority=priority)
        ended.append((priority or 3, i))
    for i, priority in enumerate((3, *given)):
        threads.append(threading.Thread(target=go, args=(i, priority)))
        threads[-1].start()
        deadline = time.time() + 10  # the first runs, and each of the others has come before the next
        while slow_server.metric(r'oncilla_queue_depth\{model="ranked"') + slow_server.metric(
                r'oncilla_requests_running\{model="ranked"') != i + 1:
            assert time.time() < deadline
    for thread in threads:
        thread.join()
    assert ended[0][1] == 0 and ended[1:] == sorted((priority or 3, i + 1) for i, priority in enumerate(given))
    with http.InferenceServerClient(slow_server.http) as client:
        with pytest.raises(InferenceServerException, match="priority 4; the model has 1, the highest, to 3"):
            infer(client, "ranked", SLOW, priority=4)
        with pytest.raises(InferenceServerException, match="priority 1; the model has no priorities"):
            infer(client, "slow", SLOW, priority=1)
        batching = client.get_model_config("ranked")["dynamic_batching"]
        assert (batching["priority_levels"], batching["default_priority_level"]) == (3, 3)
    with grpc.InferenceServerClient(slow_server.grpc) as client:
        batching = client.get_model_config("ranked").config.dynamic_batching
        assert (batching.priority_levels, batching.default_priority_level) == (3, 3)


def test_a_client_that_goes_away_cancels_its_request(slow_server):
    import socket
    cancelled = slow_server.metric(r'oncilla_requests_total\{model="slow".*CANCELLED')
    given = grpc.InferInput("x", SLOW.shape, "FP32")
    given.set_data_from_numpy(SLOW)
    with grpc.InferenceServerClient(slow_server.grpc) as client:
        context = client.async_infer("slow", [given], callback=lambda result, error: None)
        await_running(slow_server)
        context.cancel()
        deadline = time.time() + 10
        while slow_server.metric(r'oncilla_requests_total\{model="slow".*CANCELLED') < cancelled + 1:
            assert time.time() < deadline
            time.sleep(0.02)
    body = (b'{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,256],"parameters":{"binary_data_size":%d}}]}'
            % (len(SLOW), SLOW.nbytes))
    head = (f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body) + SLOW.nbytes}\r\n"
            f"Inference-Header-Content-Length: {len(body)}\r\n\r\n").encode()
    with socket.create_connection(slow_server.http.split(":")) as connection:
        connection.sendall(head + body + SLOW.tobytes())
        await_running(slow_server)
    deadline = time.time() + 10
    while slow_server.metric(r'oncilla_requests_total\{model="slow".*CANCELLED') < cancelled + 2:
        assert time.time() < deadline
        time.sleep(0.02)


def test_a_model_unloaded_in_mid_request(tmp_path, start):
    models.slow(tmp_path, "a", steps=30)
    server = start(tmp_path)
    answers = []

    def go():
        answers.append(ask(server, "a", SLOW).sum())
    threads = [threading.Thread(target=go) for _ in range(3)]
    for thread in threads:
        thread.start()
    deadline = time.time() + 10
    while server.metric("oncilla_requests_running") + server.metric("oncilla_queue_depth") < 3:
        assert time.time() < deadline
    server.post("/v2/repository/models/a/unload", {})
    assert server.get("/v2/models/a/ready")[0] == 503
    for thread in threads:
        thread.join()
    assert answers == [SLOW.sum()] * 3  # requests in progress must still be answered
    server.await_state("a", "1", "UNAVAILABLE")


@pytest.mark.parametrize("limit,all_answered", [("30", True), ("0", False)])
def test_sigterm_under_load(tmp_path, start, limit, all_answered):
    """Every request is answered, or refused by name; the server ends by itself and soon."""
    models.slow(tmp_path, "a", steps=200)  # so that no request is over before all are there
    server = start(tmp_path, "--drain", limit)
    codes = []

    def go():
        with http.InferenceServerClient(server.http) as client:
            try:
                infer(client, "a", SLOW)
                codes.append("ok")
            except InferenceServerException as failure:
                codes.append(failure.status())
            except OSError:
                codes.append("closed")
    threads = [threading.Thread(target=go) for _ in range(6)]
    for thread in threads:
        thread.start()
    deadline = time.time() + 10
    while server.metric("oncilla_requests_running") + server.metric("oncilla_queue_depth") < 6:
        assert time.time() < deadline
    begin = time.time()
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert server.process.wait(30) == 0
    if all_answered:
        assert codes == ["ok"] * 6
    else:
        assert time.time() - begin < 5 and set(codes) <= {"ok", "503"} and "503" in codes, codes


def test_readiness_goes_first(tmp_path, start):
    models.affine(tmp_path, "a")
    server = start(tmp_path, "--drain-delay", "2")
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert server.get("/v2/health/live")[0] == 200 and server.get("/v2/health/ready")[0] == 503
    assert ask(server, "a", ONE)[0, 0] == 3  # still served
    assert server.process.wait(30) == 0


def test_instances_on_two_devices(tmp_path, start, monkeypatch):
    """Also where the server's own device is the CPU, whose sessions see no others."""
    monkeypatch.setenv("OCL_ICD_VENDORS", "pocl.icd")
    models.affine(tmp_path, "both")
    models.config(tmp_path, "both", "instances: [{device: cpu, count: 1}, {device: 'gpu:0', count: 1}]\n")
    models.affine(tmp_path, "none")
    models.config(tmp_path, "none", "instances: [{device: 'gpu:7', count: 1}]\n")
    server = start(tmp_path, "--opencl-cpu-devices")
    assert server.metric(r'oncilla_model_nodes\{model="both".*device="CPU:0"') > 0
    assert server.metric(r'oncilla_model_nodes\{model="both".*device="GPU:0"') > 0
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}
    for _ in range(8):
        assert server.post("/v2/models/both/infer", body)[1]["outputs"][0]["data"] == [3, 5, 7]
    assert "no device 'gpu:7'" in server.state("none", "1")["reason"]


def test_tensorflow_and_tflite_models(tmp_path, start):
    """Every format that the engine loads, as it comes."""
    root = models.pathlib.Path(__file__).resolve().parents[2] / "testdata"
    (tmp_path / "effnet" / "1").mkdir(parents=True)
    (tmp_path / "tflite" / "3").mkdir(parents=True)
    (tmp_path / "mlp").mkdir()
    models.frozen(tmp_path, "frozen")
    os.symlink(root / "quickstart" / "efficientnet_lite0", tmp_path / "effnet" / "1" / "model")
    os.symlink(root / "tensorflow" / "models" / "mlp", tmp_path / "mlp" / "2")  # as TensorFlow Serving lays it out
    os.symlink(root / "tflite" / "model_convnet.tflite", tmp_path / "tflite" / "3" / "model.tflite")
    server = start(tmp_path)
    assert server.await_state("mlp", "2", "READY") and server.await_state("tflite", "3", "READY")
    server.await_state("effnet", "1", "READY")
    with http.InferenceServerClient(server.http) as client:
        grey = http.InferInput("image", [1, 8, 8, 3], "UINT8")
        grey.set_data_from_numpy(np.full((1, 8, 8, 3), 90, np.uint8))
        # A graph without a signature: the types of its outputs are found by a run.
        assert client.get_model_metadata("frozen")["outputs"] == [{"name": "y:0", "datatype": "FP32", "shape": [-1]}]
        np.testing.assert_array_equal(infer(client, "frozen", ONE, input_name="x:0", output="y:0"), ONE * 2)
        assert client.infer("effnet", [grey]).as_numpy("label")[0, 0]
