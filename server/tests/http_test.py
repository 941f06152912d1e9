"""The REST form of the protocol, called by tritonclient.http as its users do."""

import gzip
import json
import pathlib
import re
import urllib.request

import numpy as np
import pytest
import tritonclient.http as http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import models

VALUES = {
    "BOOL": [True, False, True], "UINT8": [0, 7, 255], "UINT16": [0, 7, 65535], "UINT32": [0, 7, 2**32 - 1],
    "UINT64": [0, 7, 2**64 - 1], "INT8": [-128, 0, 127], "INT16": [-32768, 0, 32767],
    "INT32": [-2**31, 0, 2**31 - 1], "INT64": [-2**63, 0, 2**63 - 1], "FP16": [0.5, -2, 65504],
    "FP32": [0.1, -2.5, 3.4028234e38], "FP64": [0.1, -1e308, 5e-324], "BYTES": [b"", b"a\0b", "\u00e4\u20ac".encode()],
}


@pytest.fixture(scope="module")
def client(server):
    with http.InferenceServerClient(server.http, concurrency=8) as made:
        yield made


def tensor(name, array, binary=True):
    made = http.InferInput(name, array.shape, np_to_triton_dtype(array.dtype))
    made.set_data_from_numpy(array, binary_data=binary)
    return made


def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready()
    metadata = client.get_server_metadata()
    assert metadata["name"] == "oncilla" and "binary_tensor_data" in metadata["extensions"]
    assert client.is_model_ready("affine") and client.is_model_ready("versions", "1")
    assert not client.is_model_ready("broken") and not client.is_model_ready("versions", "3")
    affine = client.get_model_metadata("affine")
    assert affine["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
    assert affine["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}]
    assert affine["versions"] == ["1"]
    assert client.get_model_metadata("versions")["versions"] == ["1", "2"]
    with pytest.raises(InferenceServerException, match="there is no model 'none'"):
        client.get_model_metadata("none")


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_infer(client, binary_in, binary_out):
    x = np.array([[1, 2, 3.5], [-4, 0.1, 6]], np.float32)
    result = client.infer("affine", [tensor("x", x, binary_in)], request_id="7",
                          outputs=[http.InferRequestedOutput("y", binary_data=binary_out)])
    np.testing.assert_array_equal(result.as_numpy("y"), x * np.float32(2) + np.float32(1))
    answer = result.get_response()
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("affine", "1", "7")


@pytest.mark.parametrize("datatype", models.TYPES)
@pytest.mark.parametrize("binary", [True, False])
def test_types(client, datatype, binary):
    if datatype == "FP16" and not binary:
        pytest.skip("JSON has no form for it")
    if datatype == "BYTES" and not binary:
        x = np.array(["", "a b", "\u00e4\u20ac\"\\"], np.object_)
    else:
        x = np.array(VALUES[datatype], models.TYPES[datatype][1])
    given = http.InferInput("x", x.shape, datatype)
    given.set_data_from_numpy(x, binary_data=binary)
    result = client.infer(f"same_{datatype.lower()}", [given],
                          outputs=[http.InferRequestedOutput("y", binary_data=binary)])
    y = result.as_numpy("y")
    if datatype == "BYTES":
        y = [v if isinstance(v, bytes) else v.encode() for v in y]
        x = [v if isinstance(v, bytes) else v.encode() for v in x]
        assert list(y) == list(x)
    else:
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y, x)


def test_several_inputs_and_outputs(client):
    a, b = np.array([[1, 2], [3, 4]], np.int32), np.array([[5, -6], [-7, 8]], np.int32)
    # In another order than the model's, and one output alone.
    result = client.infer("two", [tensor("b", b), tensor("a", a, False)])
    np.testing.assert_array_equal(result.as_numpy("sum"), a + b)
    np.testing.assert_array_equal(result.as_numpy("product"), a * b)
    np.testing.assert_array_equal(result.as_numpy("where"), np.argmax(a + b, 1))
    one = client.infer("two", [tensor("b", b), tensor("a", a)], outputs=[http.InferRequestedOutput("where")])
    assert [o["name"] for o in one.get_response()["outputs"]] == ["where"]


def test_health_in_bodies(server):
    assert server.get("/v2/health/live") == (200, {"live": True}) and server.get("/v2/health/ready") == (200, {"ready": True})
    assert server.get("/v2/models/affine/ready") == (200, {"name": "affine", "ready": True})
    assert server.get("/v2/models/versions/versions/2/ready")[0] == 200 and server.get("/v2/models/broken/ready")[0] == 503


def test_versions(client):
    x = np.ones((1, 3), np.float32)
    for version, scale in (("1", 1), ("2", 10), ("", 10)):  # without a version the newest
        result = client.infer("versions", [tensor("x", x)], model_version=version)
        assert result.as_numpy("y")[0, 0] == scale
        assert result.get_response()["model_version"] == (version or "2")
    with pytest.raises(InferenceServerException, match="no version '3'"):
        client.infer("versions", [tensor("x", x)], model_version="3")


def test_asynchronous(client):
    rows = [np.full((1, 3), i, np.float32) for i in range(32)]
    waiting = [client.async_infer("affine", [tensor("x", x)]) for x in rows]
    for x, one in zip(rows, waiting):
        np.testing.assert_array_equal(one.get_result().as_numpy("y"), x * 2 + 1)


def test_compressed(client):
    x = np.ones((50, 3), np.float32)
    for how in ("gzip", "deflate"):
        result = client.infer("affine", [tensor("x", x, False)], request_compression_algorithm=how,
                              response_compression_algorithm=how,
                              outputs=[http.InferRequestedOutput("y", binary_data=False)])
        np.testing.assert_array_equal(result.as_numpy("y"), x * 2 + 1)


def test_only_inferences_are_compressed(server, client):
    """The asynchronous client accepts packed responses for all calls, and unpacks those of inferences only."""
    import asyncio
    import tritonclient.http.aio as aio

    async def calls():
        async with aio.InferenceServerClient(server.http) as c:
            assert await c.is_server_live() and await c.is_model_ready("affine")
            assert (await c.get_server_metadata())["name"]
            assert (await c.get_model_metadata("affine"))["name"] == "affine"
            assert (await c.get_model_config("affine"))["name"] == "affine"
            assert any(one["name"] == "affine" for one in await c.get_model_repository_index())
            assert (await c.get_inference_statistics("affine"))["model_stats"]
            assert "trace_level" in await c.get_trace_settings()
            assert "log_info" in await c.get_log_settings()
            assert await c.get_system_shared_memory_status() == []
            x = np.arange(600, dtype=np.float32).reshape(-1, 3)
            for binary in (True, False):
                given = aio.InferInput("x", x.shape, "FP32")
                given.set_data_from_numpy(x, binary_data=binary)
                wanted = [aio.InferRequestedOutput("y", binary_data=binary)]
                for how in (None, "gzip", "deflate"):
                    result = await c.infer("affine", [given], outputs=wanted, response_compression_algorithm=how)
                    np.testing.assert_array_equal(result.as_numpy("y"), x * 2 + 1)
            with pytest.raises(InferenceServerException, match="no version '3'"):
                await c.get_model_metadata("affine", "3")

    asyncio.run(calls())

    def packing(path, body=None, accept="gzip, deflate, br"):
        request = urllib.request.Request("http://" + server.http + path, body, {"Accept-Encoding": accept})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.headers.get("Content-Encoding")

    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}).encode()
    assert packing("/v2") is None and packing("/") is None
    assert packing("/v2/models/affine/infer", body) == "gzip"
    for accept in ("br", "identity", "deflate", "gzip;q=0", "gzip;q=0.0, br"):
        assert packing("/v2/models/affine/infer", body, accept) is None, accept
    assert packing("/v2/models/affine/infer", body, "br;q=1, GZIP ; q=0.5") == "gzip"


def test_a_packed_body_may_not_unpack_to_more_than_the_limit(server):
    bomb = gzip.compress(b"[" * (64 << 20))
    assert len(bomb) < 1 << 20
    status, answer = server.post("/v2/models/affine/infer", bomb, {"Content-Encoding": "gzip"})
    assert status == 429 and "expands" in answer["error"]


def test_nested_and_flat_json(server):
    for data in ([1, 2, 3, 4, 5, 6], [[1, 2, 3], [4, 5, 6]]):
        status, answer = server.post("/v2/models/affine/infer", {"inputs": [
            {"name": "x", "datatype": "FP32", "shape": [2, 3], "data": data}]})
        assert status == 200 and answer["outputs"][0]["data"] == [3, 5, 7, 9, 11, 13]


def test_model_configuration(client):
    config = client.get_model_config("batched")
    assert config["name"] == "batched" and config["max_batch_size"] == 8 and config["backend"] == "oncilla"
    assert config["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [3]}]  # without the batch's axis
    assert config["dynamic_batching"]["max_queue_delay_microseconds"] == 20000
    assert config["dynamic_batching"]["default_queue_policy"]["max_queue_size"] == 64
    config = client.get_model_config("versions", "1")
    assert config["version_policy"] == {"all": {}} and config["max_batch_size"] == 0
    assert config["output"][0]["dims"] == [-1, 3] and "dynamic_batching" not in config
    assert client.get_model_config("same_bytes")["input"][0]["data_type"] == "TYPE_STRING"
    with pytest.raises(InferenceServerException, match="there is no model 'none'"):
        client.get_model_config("none")


def test_traces(server, client):
    """Settings of a model go before the server's; a traced request has its times in the log."""
    def spans(request_id):
        client.infer("ratio", [tensor("a", np.ones(1, np.float32)), tensor("b", np.ones(1, np.float32))], request_id=request_id)
        return server.await_events(lambda e: e.get("id") == request_id)[0].get("spans")
    default = {"trace_count": "-1", "trace_level": ["OFF"], "trace_rate": "1000"}
    assert client.get_trace_settings() == default and spans("t0") is None
    assert client.update_trace_settings("ratio", {"trace_level": ["TIMESTAMPS"], "trace_rate": "2", "trace_count": 2}) == {
        "trace_count": "2", "trace_level": ["TIMESTAMPS"], "trace_rate": "2"}
    assert client.get_trace_settings() == default and client.get_trace_settings("ratio")["trace_rate"] == "2"
    traced = [spans(f"t{i}") for i in range(1, 7)]
    assert [t is not None for t in traced] == [True, False, True, False, False, False]  # every second, and only two
    assert traced[0]["batch_rows"] == 1 and traced[0]["infer_ms"] > 0 and traced[0]["queue_ms"] >= 0
    for wrong in ({"trace_level": ["TENSORS"]}, {"trace_rate": "0"}, {"trace_rate": ["1", "2"]}, {"trace_count": "x"},
                  {"trace_file": "/tmp/x"}, {"trace_rate": {}}):
        with pytest.raises(InferenceServerException, match="trace"):
            client.update_trace_settings("ratio", wrong)
    assert client.get_trace_settings("ratio")["trace_rate"] == "2"
    client.update_trace_settings("ratio", {"trace_level": None, "trace_rate": None, "trace_count": None})
    assert client.get_trace_settings("ratio") == default
    with pytest.raises(InferenceServerException, match="there is no model 'none'"):
        client.update_trace_settings("none", {"trace_rate": "2"})


def test_what_json_has_no_form_for_is_refused(client):
    a, b = np.array([1, -1, 0], np.float32), np.array([0, 2, 0], np.float32)
    inputs = [tensor("a", a), tensor("b", b)]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(client.infer("ratio", inputs).as_numpy("y"), a / b)
    with pytest.raises(InferenceServerException, match="ask for binary data"):
        client.infer("ratio", inputs, outputs=[http.InferRequestedOutput("y", binary_data=False)])


def test_index_and_statistics(client):
    index = {(e["name"], e.get("version")): e for e in client.get_model_repository_index()}
    assert index["affine", "1"]["state"] == "READY"
    assert index["broken", "1"]["state"] == "UNAVAILABLE" and "not a model" in index["broken", "1"]["reason"]
    assert "first axis" in index["mean", "1"]["reason"]

    def count():
        stats = client.get_inference_statistics("two", "1")["model_stats"][0]
        return stats["inference_count"], stats["inference_stats"]["success"]["count"]
    a = np.ones((2, 2), np.int32)
    before = count()
    for _ in range(3):
        client.infer("two", [tensor("a", a), tensor("b", a)])
    assert count() == (before[0] + 3, before[1] + 3)
    stats = client.get_inference_statistics("two")["model_stats"][0]
    assert stats["inference_stats"]["compute_infer"]["ns"] > 0 and stats["last_inference"] > 1.7e12
    assert len(client.get_inference_statistics()["model_stats"]) > 10


def test_every_metric_of_the_documentation_is_there(server, client):
    x = np.ones((1, 3), np.float32)
    client.infer("affine", [tensor("x", x)])
    with urllib.request.urlopen(server.metrics_url, timeout=20) as answer:
        text = answer.read().decode()
    named = set(re.findall(r"`((?:oncilla|process)_[a-z_]+)", (pathlib.Path(__file__).parents[2] / "docs/serving.md").read_text()))
    named.discard("oncilla_server")  # the program
    have = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    assert len(named) > 15 and named <= have, named - have
    # Every one has values once a model was run, and those of latencies are histograms.
    for name in ("oncilla_request_seconds", "oncilla_queue_seconds"):
        buckets = [int(n) for n in re.findall(rf'^{name}_bucket{{[^}}]*model="affine"[^}}]*}} (\d+)', text, re.M)]
        assert len(buckets) > 3, name
        assert re.search(rf'^{name}_count{{[^}}]*model="affine"[^}}]*}} [1-9]', text, re.M), name


def test_placement_in_the_metrics(server):
    assert server.metric(r'oncilla_model_nodes\{model="affine",version="1",device="CPU:0"\}') >= 1


def test_failures_are_counted_and_told_apart(server, client):
    x = np.ones((1, 4), np.float32)
    failed = server.metric(r'oncilla_requests_total\{model="affine".*INVALID_ARGUMENT')
    with pytest.raises(InferenceServerException, match=r"has the shape \[1,4\]; the model takes \[-1,3\]"):
        client.infer("affine", [tensor("x", x)])
    assert server.metric(r'oncilla_requests_total\{model="affine".*INVALID_ARGUMENT') == failed + 1
    status, _ = server.post("/v2/models/none/infer", {"inputs": []})
    assert status == 404


def test_trace_context(server):
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    _, headers, _ = server.call("/v2/models/affine", headers={"traceparent": f"00-{trace}-{parent}-01"})
    version, same_trace, span, flags = headers["traceparent"].split("-")
    assert (version, same_trace, flags) == ("00", trace, "01") and span != parent
    logged = server.await_events(lambda e: e.get("trace_id") == trace)
    assert logged[-1]["parent_id"] == parent and logged[-1]["span_id"] == span
    assert logged[-1]["model"] == "affine" and logged[-1]["status"] == 200
    for wrong in ("", "00-0-1-2", f"00-{'0' * 32}-{parent}-01", f"00-{trace}-{parent}-zz"):
        assert server.call("/v2", headers={"traceparent": wrong})[1]["traceparent"] is None


def test_status_page(server):
    status, headers, page = server.call("/")
    assert status == 200 and "text/html" in headers["Content-Type"]
    assert b"http://" not in page and b"https://" not in page  # nothing from elsewhere
    status, shown = server.get("/status.json")
    assert status == 200 and shown["devices"][0]["name"] == "CPU:0" and shown["memory"]
    assert {m["name"] for m in shown["models"]} >= {"affine", "broken"}


def test_json_request_as_curl_sends_it(server):
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}).encode()
    status, _, answer = server.call("/v2/models/affine/infer", body + b" " * 20000,
                                    {"Content-Type": "application/x-www-form-urlencoded"})
    assert status == 200 and json.loads(answer)["outputs"][0]["data"] == [3, 5, 7]
