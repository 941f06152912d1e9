"""A real tritonserver with the backend answers tritonclient over HTTP and gRPC."""
import concurrent.futures
import json
import time

import numpy as np
import pytest
from onnx import TensorProto, helper
from PIL import Image
from tritonclient.utils import InferenceServerException

import models
from conftest import CLIENTS, QUICKSTART, ROOT, configure, infer, parameter

PROTOCOLS = ["http", "grpc"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ready_and_metadata(server, protocol):
    server.load("affine")
    client = server.client(protocol)
    assert client.is_server_live() and client.is_model_ready("affine")
    described = client.get_model_metadata("affine")
    if protocol == "grpc":
        described = {"inputs": [{"name": i.name, "datatype": i.datatype, "shape": list(i.shape)} for i in described.inputs],
                     "outputs": [{"name": o.name, "datatype": o.datatype, "shape": list(o.shape)} for o in described.outputs]}
    # Nothing of this is in config.pbtxt: it comes from the model.
    assert described["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert described["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers(server, protocol):
    server.load("affine")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert np.array_equal(infer(server, protocol, "affine", {"x": x})["y"], 2 * x + 1)
    assert infer(server, protocol, "affine", {"x": x[:0]})["y"].shape == (0, 3)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_several_outputs_and_a_choice(server, protocol):
    server.load("two")
    a, b = np.array([[1, 2], [5, 3]], np.int32), np.array([[4, 1], [2, 9]], np.int32)
    both = infer(server, protocol, "two", {"a": a, "b": b})
    assert np.array_equal(both["sum"], a + b) and np.array_equal(both["product"], a * b)
    assert both["where"].dtype == np.int64 and both["where"].tolist() == [0, 1]
    assert set(infer(server, protocol, "two", {"a": a, "b": b}, outputs=["product"])) == {"product"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", models.TYPES)
def test_types(server, name, protocol):
    model = f"same_{name.lower()}"
    server.load(model)
    if name == "BYTES":
        x = np.array([b"", b"\x00\xff\xfe", "n\u00fcsse".encode(), b"x" * 70000], np.object_)
    else:
        x = np.array([0, 1, 1, 0, 1]).astype(models.TYPES[name][1])
    y = infer(server, protocol, model, {"x": x})["y"]
    assert y.dtype == x.dtype and y.tolist() == x.tolist()


def test_versions(server):
    server.load("versions")
    x = np.ones((1, 3), np.float32)
    assert infer(server, "grpc", "versions", {"x": x}, model_version="1")["y"][0, 0] == 1
    assert infer(server, "http", "versions", {"x": x}, model_version="2")["y"][0, 0] == 10


def executions(server, model):
    """How many runs there were so far, and of how many rows."""
    stats = server.client("http").get_inference_statistics(model)["model_stats"]
    return {int(b["batch_size"]): int(b["compute_infer"]["count"]) for s in stats for b in s["batch_stats"]}


def test_requests_are_joined(server):
    server.load("batched")
    arrays = [np.full((1 + i % 2, 3), i, np.float32) for i in range(6)]
    with concurrent.futures.ThreadPoolExecutor(len(arrays)) as pool:
        answers = list(pool.map(lambda x: infer(server, "grpc", "batched", {"x": x})["y"], arrays))
    for x, y in zip(arrays, answers):
        assert np.array_equal(y, 2 * x + 1)
    # Nine rows in six requests, at most eight at once, and time to wait for each other.
    assert max(executions(server, "batched")) > 2
    with pytest.raises(InferenceServerException, match="batch"):
        infer(server, "grpc", "batched", {"x": np.zeros((9, 3), np.float32)})


def test_one_bad_request_fails_no_other(server):
    server.load("row")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(infer, server, "grpc", "row", {"i": np.array([[i]], np.int64)}) for i in (0, 99, 2, 3)]
        answers = [f.result()["y"].tolist() if f.exception() is None else str(f.exception()) for f in futures]
    assert answers[0] == [[10]] and answers[2] == [[30]] and answers[3] == [[40]]
    assert "99" in answers[1] and "oncilla" in answers[1]


def test_concurrent_load(server):
    """Two instances of one model, and many clients."""
    server.load("affine")

    def work(number):
        x = np.full((2, 3), number, np.float32)
        return np.array_equal(infer(server, "http" if number % 2 else "grpc", "affine", {"x": x})["y"], 2 * x + 1)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(100)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_real_model(server, protocol):
    """EfficientNet-Lite0 as TensorFlow answered it; strings and numbers, two pictures in a batch."""
    server.load("quickstart")
    grey = np.full((1, 8, 8, 3), 90, np.uint8)
    both = np.concatenate([grey, 255 - grey])
    one, two = (infer(server, protocol, "quickstart", {"image": x}) for x in (grey, both))
    assert one["label"].shape == (1, 5) and two["probability"].shape == (2, 5) and two["logits"].shape == (2, 1000)
    assert two["label"][0].tolist() == one["label"][0].tolist() and isinstance(one["label"][0, 0], bytes)
    assert np.allclose(two["logits"][0], one["logits"][0], atol=1e-4)


def test_real_model_agrees_with_recorded_answers(server):
    server.load("quickstart")
    image = np.asarray(Image.open(ROOT / "testdata/quickstart/coffee.png").convert("RGB"))[None]
    answer = infer(server, "grpc", "quickstart", {"image": image})
    recorded = QUICKSTART.parent / "recorded"
    assert np.allclose(answer["logits"], np.load(recorded / "coffee.logits.npy"), atol=2e-3)
    assert [t.decode() for t in answer["label"][0]] == json.loads((recorded / "coffee.label.json").read_text())["data"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_wrong_inputs_are_told(server, protocol):
    server.load("two")
    good = np.zeros((2, 2), np.int32)
    for inputs, told in [({"a": good}, "2"), ({"a": good, "b": np.zeros((3, 2), np.int32)}, "shape"),
                         ({"a": good, "b": good.astype(np.float32)}, "FP32|datatype|data-type"), ({"a": good, "z": good}, "z")]:
        with pytest.raises(InferenceServerException, match=told):
            infer(server, protocol, "two", inputs)
    with pytest.raises(InferenceServerException):
        infer(server, protocol, "two", {"a": good, "b": good}, outputs=["no_such"])
    assert np.array_equal(infer(server, protocol, "two", {"a": good, "b": good})["sum"], good)


def test_wrong_shape_of_an_open_axis_is_the_engines_to_tell(server, repository):
    models.two(repository, "open")
    # The configuration leaves open what the model fixes, so that Triton lets everything through.
    configure(repository, "open", parameter("device", "cpu") +
              'input [ { name: "a" data_type: TYPE_INT32 dims: [ -1, -1 ] }, { name: "b" data_type: TYPE_INT32 dims: [ -1, -1 ] } ]\n')
    server.load("open")
    with pytest.raises(InferenceServerException, match=r"oncilla: .*'?a'?"):
        infer(server, "grpc", "open", {"a": np.zeros((3, 2), np.int32), "b": np.zeros((2, 2), np.int32)})


@pytest.fixture(scope="module")
def slow(server, repository):
    """A model, and an input that it computes on for seconds."""
    models.slow(repository, "slow", size=1024, steps=400)
    configure(repository, "slow", parameter("device", "cpu"))
    server.load("slow")
    infer(server, "grpc", "slow", {"x": np.ones((1, 1024), np.float32)})
    return np.ones((1024, 1024), np.float32)


def failed_runs(server):
    """How many requests of the model ended with a failure."""
    stats = server.client("http").get_inference_statistics("slow")["model_stats"][0]["inference_stats"]
    return int(stats["fail"]["count"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_requests_time_is_kept(server, slow, protocol):
    began = time.time()
    with pytest.raises(InferenceServerException, match="oncilla: .*(time|deadline)"):
        infer(server, protocol, "slow", {"x": slow}, timeout=100_000)
    assert time.time() - began < 10


def test_a_cancelled_request_ends_its_run(server, slow):
    before = failed_runs(server)
    tensor = CLIENTS["grpc"].InferInput("x", slow.shape, "FP32")
    tensor.set_data_from_numpy(slow)
    # A request that is cancelled before it arrives does not count; on a busy machine arrival takes time.
    for pause in (0.3, 1, 3):
        call = server.client("grpc").async_infer("slow", [tensor], callback=lambda result, error: None, client_timeout=60)
        time.sleep(pause)
        call.cancel()
        deadline = time.time() + 5
        while failed_runs(server) == before and time.time() < deadline:
            time.sleep(0.01)
        if failed_runs(server) > before:
            break
    assert failed_runs(server) == before + 1
    # The one instance is free again.
    assert infer(server, "grpc", "slow", {"x": np.ones((1, 1024), np.float32)})["y"].shape == (1, 1024)


def test_an_open_rank_needs_dims(server, repository):
    models._save(repository / "ranks/1", [helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.FLOAT, None)],
                 [("y", TensorProto.FLOAT, None)])
    configure(repository, "ranks", parameter("device", "cpu"))
    with pytest.raises(InferenceServerException, match="leaves the rank of input 'x' open; write its dims"):
        server.load("ranks")
    both = 'input { name: "x" data_type: TYPE_FP32 dims: [ -1, 2 ] }\noutput { name: "y" data_type: TYPE_FP32 dims: [ -1, 2 ] }\n'
    configure(repository, "ranks", parameter("device", "cpu") + both)
    server.load("ranks")
    assert infer(server, "http", "ranks", {"x": np.ones((3, 2), np.float32)})["y"].tolist() == [[-1, -1]] * 3
