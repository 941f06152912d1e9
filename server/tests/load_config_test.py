"""Load requests that bring the model's configuration, as tritonclient sends it."""

import json
import os

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import models

KINDS = [http, grpc]


@pytest.fixture(params=KINDS)
def served(request, tmp_path, start):
    models.affine(tmp_path, "a", 1, scale=1.0, offset=0.0)
    models.affine(tmp_path, "a", 2, scale=10.0, offset=0.0)
    models.config(tmp_path, "a", "memory_limit: 64MiB\n")
    server = start(tmp_path, "--poll", "1")
    with request.param.InferenceServerClient(server.http if request.param is http else server.grpc) as client:
        yield server, client, tmp_path


def config_of(client, name):
    """A model's configuration as a dictionary of JSON, as each client gives it."""
    if isinstance(client, http.InferenceServerClient):
        return client.get_model_config(name)
    return client.get_model_config(name, as_json=True)["config"]


def infer(client, rows):
    kind = http if isinstance(client, http.InferenceServerClient) else grpc
    given = kind.InferInput("x", [rows, 3], "FP32")
    given.set_data_from_numpy(np.ones((rows, 3), np.float32))
    return client.infer("a", [given]).as_numpy("y")


def test_a_configuration_that_is_read_changed_and_sent_back(served):
    server, client, root = served
    config = config_of(client, "a")
    assert config["parameters"] == {"memory_limit": {"string_value": str(64 << 20)}}
    client.load_model("a", config=json.dumps(config))  # as it is
    assert config_of(client, "a") == config
    for tensor in (*config["input"], *config["output"]):
        assert tensor["dims"].pop(0) in (-1, "-1")  # now the batch's
    config.update({"max_batch_size": 2, "dynamic_batching": {"max_queue_delay_microseconds": 500, "priority_levels": 2,
                                                             "default_queue_policy": {"max_queue_size": 7, "default_timeout_microseconds": 5000000}},
                   "version_policy": {"specific": {"versions": [1]}}, "instance_group": [{"count": 2}]})
    client.load_model("a", config=json.dumps(config))
    assert infer(client, 2)[0, 0] == 1  # version 1 alone
    with pytest.raises(InferenceServerException, match="batches of 1 to 2"):
        infer(client, 3)
    now = config_of(client, "a")
    assert now["max_batch_size"] == 2 and now["parameters"] == config["parameters"]
    told = server.get("/v2/models/a/config")[1]
    assert told["instance_group"] == [{"name": "", "count": 2}] and told["version_policy"] == {"specific": {"versions": [1]}}
    batching = told["dynamic_batching"]
    assert batching["priority_levels"] == 2 and batching["max_queue_delay_microseconds"] == 500
    assert batching["default_queue_policy"]["max_queue_size"] == 7
    assert batching["default_queue_policy"]["default_timeout_microseconds"] == 5000000
    # Polls of the folder must not change the configuration, until a load without one.
    models.affine(root, "fence")
    server.await_state("fence", "1", "READY")
    assert config_of(client, "a")["max_batch_size"] == 2
    client.load_model("a")
    assert infer(client, 3)[0, 0] == 10 and config_of(client, "a").get("max_batch_size", 0) == 0
    # The session's options are those of config.yaml in any case.
    models.config(root, "a", "session: {devise: cpu}\n")
    with pytest.raises(InferenceServerException, match="devise"):
        client.load_model("a", config="{}")


WRONG = [("x", "must be a JSON object"), ("[]", "must be a JSON object"), ({"max_batch": 2}, "'max_batch' in 'config'"),
         ({"name": "b"}, 'can only be "a"'), ({"backend": "onnxruntime"}, 'can only be "oncilla"'),
         ({"max_batch_size": 2}, "needs 'dynamic_batching'"), ({"max_batch_size": -1}, "'max_batch_size' must be a whole"),
         ({"max_batch_size": 1 << 40, "dynamic_batching": {}}, "max_batch must be a whole number from 0 to"),
         ({"dynamic_batching": {"preferred_batch_size": [2]}}, "'preferred_batch_size' in 'dynamic_batching'"),
         ({"dynamic_batching": {"default_queue_policy": {"timeout_action": "DELAY"}}}, 'can only be "REJECT"'),
         ({"dynamic_batching": {"default_queue_policy": {"default_timeout_microseconds": 1500}}}, "whole milliseconds"),
         ({"dynamic_batching": {"priority_levels": 2, "default_priority_level": 3}}, "default_priority must be one of the 2"),
         ({"version_policy": {"latest": {"num_versions": "x"}}}, "num_versions"), ({"version_policy": {"some": {}}}, "version_policy"),
         ({"instance_group": [{"count": 2, "kind": "KIND_GPU"}]}, "'kind' in 'instance_group'"),
         ({"instance_group": [{"count": 0}]}, "count must be a whole number from 1"),
         ({"input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [7]}]}, r"TYPE_FP32\[7\]; the model's is TYPE_FP32\[-1,3\]"),
         ({"output": [{"name": "z", "data_type": "TYPE_FP32", "dims": [-1, 3]}]}, "has the output 'z'; the model has 'y'"),
         ({"input": [{"name": "x", "dims": [3]}]}, "inputs must be a list"), ({"ensemble_scheduling": {}}, "'ensemble_scheduling' in 'config'"),
         ({"parameters": {"session": {"string_value": "{}"}}}, "there is no parameter 'session'"),
         ({"parameters": {"memory_limit": {"string_value": "5 parsecs"}}}, "number of bytes"),
         ({"parameters": {"device": "cpu"}}, "string_value"), ({"default_model_filename": "../x"}, "a name in the version's folder")]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_configuration_may_not_say(kind, tmp_path, start):
    models.affine(tmp_path, "a")
    server = start(tmp_path)
    with kind.InferenceServerClient(server.http if kind is http else server.grpc) as client:
        for wrong, why in WRONG:
            text = wrong if isinstance(wrong, str) else json.dumps(wrong)
            with pytest.raises(InferenceServerException, match=why):
                client.load_model("a", config=text)
            assert infer(client, 1)[0, 0] == 3, wrong  # the previous model must still serve
        with pytest.raises(InferenceServerException, match="1 MiB"):
            client.load_model("a", config=json.dumps({"name": "a" * (1 << 20)}))
        with pytest.raises(InferenceServerException, match="takes no files in load requests"):
            client.load_model("a", config="{}", files={"file:1/model.onnx": b"x"})
        with pytest.raises(InferenceServerException, match="there is no model 'none'"):
            client.load_model("none", config="{}")
        assert os.listdir(tmp_path) == ["a"]
    for wrong in ({"config": 5}, [], {"config": {}}):
        assert server.post("/v2/repository/models/a/load", {"parameters": wrong})[0] == 400
    status, answer = server.post("/v2/repository/models/a/load", {"parameters": {"verbose": True}})
    assert status == 501 and "'verbose' is not supported" in answer["error"]
