"""Load requests that bring the model's files, as tritonclient sends them."""

import json
import os
import re
import time

import numpy as np
import onnx
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import models

KINDS = [http, grpc]


def affine(folder, scale):
    """The bytes of a model: y = x * scale."""
    models.affine(folder, f"scale{scale}", scale=scale, offset=0.0)
    return (folder / f"scale{scale}" / "1" / "model.onnx").read_bytes()


@pytest.fixture(params=KINDS)
def served(request, tmp_path, start, monkeypatch):
    """A server with one model in its repository, a client, the folder of temporary files, and one for ours."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    models.affine(tmp_path / "repository", "a", scale=1.0, offset=0.0)
    server = start(tmp_path / "repository", "--load-files", "1", "--poll", "1", "--max-request-mib", "4")
    with request.param.InferenceServerClient(server.http if request.param is http else server.grpc) as client:
        yield server, client, temporary, tmp_path / "ours"


def infer(client, name, version=""):
    kind = http if isinstance(client, http.InferenceServerClient) else grpc
    given = kind.InferInput("x", [1, 3], "FP32")
    given.set_data_from_numpy(np.ones((1, 3), np.float32))
    return client.infer(name, [given], model_version=version).as_numpy("y")[0, 0]


def fails(match, call, *arguments, **options):
    with pytest.raises(InferenceServerException, match=match):
        call(*arguments, **options)


def await_folders(temporary, count):
    """The last call of a model may keep its files for a moment."""
    deadline = time.time() + 10
    while len(list(temporary.iterdir())) != count:
        assert time.time() < deadline, list(temporary.iterdir())
        time.sleep(0.01)


def test_a_model_that_is_in_no_repository(served):
    server, client, temporary, ours = served
    client.load_model("b", config="{}", files={"file:1/model.onnx": affine(ours, 5.0)})
    assert infer(client, "b") == 5 and server.state("b", "1")["state"] == "READY"
    folder, = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not (server.repository / "b").exists()
    # Others in its place; the first ones are removed with the model that had them.
    config = {"version_policy": {"all": {}}, "max_batch_size": 4, "dynamic_batching": {}}
    client.load_model("b", config=json.dumps(config), files={"file:1/model.onnx": affine(ours, 6.0), "file:12/model.onnx": affine(ours, 7.0)})
    assert infer(client, "b", "1") == 6 and infer(client, "b") == 7
    server.await_events(lambda e: e.get("event") == "unloaded" and e.get("model") == "b")
    await_folders(temporary, 1)
    # Polling the repository must not remove them.
    models.affine(server.repository, "fence")
    server.await_state("fence", "1", "READY")
    assert infer(client, "b") == 7
    client.unload_model("b")
    server.await_state("b", "12", "UNAVAILABLE")
    server.await_state("b", "1", "UNAVAILABLE")
    await_folders(temporary, 0)
    fails("there is no model 'b'", client.load_model, "b")
    fails("there is no model 'b'", client.load_model, "b", config="{}")


def test_in_place_of_the_repository(served):
    server, client, temporary, ours = served
    (server.repository / "a" / "config.yaml").write_text("max_batch: 2\n")
    client.load_model("a", config="{}", files={"file:3/model.onnx": affine(ours, 8.0)})
    assert infer(client, "a") == 8
    fails("no version '1'|not ready", infer, client, "a", "1")
    client.load_model("a")
    assert infer(client, "a") == 1 and server.get("/v2/models/a/config")[1]["max_batch_size"] == 2
    server.await_state("a", "3", "UNAVAILABLE")
    await_folders(temporary, 0)
    # A model that does not load must leave the previous one in service.
    fails("not a model", client.load_model, "a", config="{}", files={"file:1/model.onnx": b"\x08\x08no model"})
    assert infer(client, "a") == 1


def test_files_beside_the_model(served):
    server, client, temporary, ours = served
    affine(ours, 9.0)
    model = onnx.load(ours / "scale9.0" / "1" / "model.onnx")
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([2, 2, 2], np.float32), "scale"))
    onnx.save(model, ours / "outside.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    files = {f"file:1/{to}": (ours / name).read_bytes() for to, name in (("model.onnx", "outside.onnx"), ("weights.bin", "weights.bin"))}
    client.load_model("b", config="{}", files=files)
    assert infer(client, "b") == 2
    del files["file:1/weights.bin"]
    fails("weights.bin", client.load_model, "c", config="{}", files=files)
    # A model that names a file outside of its own folder, which is there.
    (temporary / "x.bin").write_bytes(bytes(64))
    far = files["file:1/model.onnx"].replace(b"weights.bin", b"../../x.bin")
    assert b"../../x.bin" in far
    fails("it lies outside the folder", client.load_model, "c", config="{}", files={"file:1/model.onnx": far})


HOSTILE = ["", "/", ".", "..", "1", "1/", "/1/model.onnx", "//1/model.onnx", "1//model.onnx", "1/./model.onnx", "1/../model.onnx",
           "../1/model.onnx", "1/..", "1/../../../../../../../../tmp/x", "0/model.onnx", "-1/model.onnx", "01/model.onnx", "one/model.onnx",
           "config.yaml", "model.onnx", "1/model.onnx/", "1/a/b/c/d/e/f/g/h", "1\\model.onnx", "1/..\\x", "1/a\nb", "1/a\x7f", "1/a:b",
           "1/" + "a" * 201, "1/" + "a/" * 600 + "x", "~/x", "1/model\x00.onnx", "99999999999999999999/model.onnx", "/etc/passwd"]


def test_hostile_names(served):
    server, client, temporary, ours = served
    good = affine(ours, 2.0)
    before = sorted(str(p) for p in ours.parent.rglob("*"))
    for name in HOSTILE:
        fails("is none of a version|cannot be", client.load_model, "b", config="{}", files={"file:1/model.onnx": good, f"file:{name}": b"x"})
        assert list(temporary.iterdir()) == [], name
    # A name that is a file and a folder; both orders, since a request's parameters have none.
    fails("cannot be written", client.load_model, "b", config="{}", files={"file:1/model": good, "file:1/model/x": good})
    fails("cannot be written", client.load_model, "b", config="{}", files={"file:1/x/y": good, "file:1/x": good})
    for model in ("..", "../b", "a/b", ".b", ""):
        with pytest.raises(InferenceServerException):
            client.load_model(model, config="{}", files={"file:1/model.onnx": good})
    assert sorted(str(p) for p in ours.parent.rglob("*")) == before
    assert server.state("b", "1") is None and infer(client, "a") == 1


def test_limits(served):
    server, client, temporary, ours = served
    good = affine(ours, 2.0)
    fails("need the parameter 'config'", client.load_model, "b", files={"file:1/model.onnx": good})
    fails("more room than --load-files", client.load_model, "b", config="{}", files={"file:1/model.onnx": good, "file:1/x": bytes(1 << 20)})
    assert list(temporary.iterdir()) == []
    half = bytes(600 << 10)
    client.load_model("b", config="{}", files={"file:1/model.onnx": good, "file:1/x": half})
    fails("more room than --load-files", client.load_model, "c", config="{}", files={"file:1/model.onnx": good, "file:1/x": half})
    client.unload_model("b")
    server.await_state("b", "1", "UNAVAILABLE")
    client.load_model("c", config="{}", files={"file:1/model.onnx": good, "file:1/x": half})
    fails("may have 1000 files", client.load_model, "d", config="{}", files={f"file:1/{i}": b"" for i in range(1001)})
    assert infer(client, "c") == 2
    deadline = time.time() + 10
    while server.metric("oncilla_requests_held_bytes") > 0:
        assert time.time() < deadline, "what load requests held was not given back"
    # What is left goes with the server.
    await_folders(temporary, 1)
    assert server.stop() == 0 and list(temporary.iterdir()) == []


def test_bodies_that_are_none(tmp_path, start):
    models.affine(tmp_path, "a")
    server = start(tmp_path, "--load-files", "4")
    load = "/v2/repository/models/b/load"
    for body, why in (({"parameters": {"config": "{}", "file:1/model.onnx": "%%%"}}, "is not base64"),
                      ({"parameters": {"config": "{}", "file:1/model.onnx": 5}}, "must be a text"),
                      ({"parameters": {"config": "{}", "file:1/model.onnx": ["x"]}}, "not lists"),
                      ({"parameters": {"config": {}}}, "not lists|must be a text"), ({"parameters": []}, "not lists"),
                      ({"a": {"b": {"c": 1}}}, "not lists"), ({"parameters": {str(i): "" for i in range(3000)}}, "not lists"),
                      (b"[" * 100000, "not lists|must be a JSON object"), (b"{\"parameters\": ", "must be a JSON object"), (b"5", "must be a JSON object")):
        status, answer = server.post(load, body)
        assert status == 400 and re.search(why, answer["error"]), (str(body)[:80], answer)
    assert server.post(load, {"parameters": {"other": "x"}})[0] == 501
    with grpc.InferenceServerClient(server.grpc) as client:
        for key, field, value in (("file:1/model.onnx", "string_param", "x"), ("config", "bytes_param", b"{}"), ("config", "int64_param", 1)):
            request = grpc.service_pb2.RepositoryModelLoadRequest(model_name="b")
            setattr(request.parameters[key], field, value)
            with pytest.raises(Exception, match="must be"):
                client._client_stub.RepositoryModelLoad(request)
    assert os.listdir(tmp_path) == ["a"]
