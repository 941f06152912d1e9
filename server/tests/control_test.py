"""Control inputs: what the server tells a model of the sequence that a request belongs to."""

import json
import queue
import re

import numpy as np
import onnx
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http

import models
from sequence_test import client_of, fails, given  # noqa: F401: a fixture

TELLS = """
  control_input:
    - {name: start, control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]}]}
    - {name: ready, control: [{kind: CONTROL_SEQUENCE_READY, bool_false_true: [false, true]}]}
    - {name: end, control: [{kind: CONTROL_SEQUENCE_END, int32_false_true: [0, 1]}]}
"""
STATE = "  state: [{input_name: s, output_name: s_next}]\n"
IDLE = "sequence_batching:\n  max_sequence_idle_microseconds: 60000000\n"


BIG = 2**63 - 1  # the most that tritonclient's gRPC sends


def id_of(data_type):
    return f"    - {{name: id, control: [{{kind: CONTROL_SEQUENCE_CORRID, data_type: {data_type}}}]}}\n"


def step(client, x, sequence, **marks):
    result = client.infer("told", [given(client, "x", np.full((1, 1), x, np.float32))], sequence_id=sequence, **marks)
    return result.as_numpy("y").item(), result.as_numpy("told").tolist()[0], result.as_numpy("who").reshape(-1).tolist()[0]


@pytest.mark.parametrize("shape", [("n", 1), (1,), ("k",), ()], ids=str)
def test_what_a_model_is_told(tmp_path, start, client_of, shape):  # noqa: F811
    models.controlled(tmp_path, "told", IDLE + STATE + TELLS + id_of("TYPE_UINT64"), shape)
    client = client_of(start(tmp_path))
    assert [i["name"] for i in metadata_of(client)["inputs"]] == ["x"]
    assert step(client, 1, 7, sequence_start=True) == (1, [1, 1, 0], 7)
    assert step(client, 10, BIG, sequence_start=True) == (10, [1, 1, 0], BIG)
    assert step(client, 2, 7) == (3, [0, 1, 0], 7)
    assert step(client, 3, 7, sequence_end=True) == (106, [0, 1, 1], 7)
    assert step(client, 10, BIG) == (20, [0, 1, 0], BIG)
    fails("no live sequence 7", step, client, 1, 7)
    fails("needs a 'sequence_id'", client.infer, "told", [given(client, "x", np.ones((1, 1), np.float32))])
    fails("a text", step, client, 1, "seven", sequence_start=True)
    fails("there is no input 'start'", client.infer, "told",
          [given(client, n, np.ones((1, 1), np.float32)) for n in ("x", "start")], sequence_id=3, sequence_start=True)
    assert step(client, 1, 8, sequence_start=True, sequence_end=True) == (101, [1, 1, 1], 8)


def metadata_of(client):
    if isinstance(client, http.InferenceServerClient):
        return client.get_model_metadata("told")
    return client.get_model_metadata("told", as_json=True)


@pytest.mark.parametrize("data_type, onnx_type, good, bad, why", [
    ("TYPE_STRING", onnx.TensorProto.STRING, ("Ann \"\u00e9\"", "7"), 7, "takes the sequence's id as a text"),
    ("TYPE_INT32", onnx.TensorProto.INT32, (2**31 - 1, 1), 2**31, "out of its range"),
    ("TYPE_UINT32", onnx.TensorProto.UINT32, (2**32 - 1, 1), 2**32, "out of its range"),
    ("TYPE_INT64", onnx.TensorProto.INT64, (2**63 - 1, 1), 2**63, "out of its range")])
def test_types_of_ids(tmp_path, start, client_of, data_type, onnx_type, good, bad, why):  # noqa: F811
    models.controlled(tmp_path, "told", IDLE + STATE + TELLS + id_of(data_type), id_type=onnx_type)
    client = client_of(start(tmp_path))
    for one in good:
        who = step(client, 1, one, sequence_start=True)[2]
        assert (who.decode() if isinstance(who, bytes) else who) == one
    if bad != 2**63 or isinstance(client, http.InferenceServerClient):
        fails(why, step, client, 1, bad, sequence_start=True)


def test_joined_and_without_a_state_of_the_servers(tmp_path, start):
    """Requests of several sequences in one batch are told each of its own sequence."""
    models.controlled(tmp_path, "told", "max_batch: 4\nmax_delay_us: 300000\n" + IDLE + STATE + TELLS + id_of("TYPE_UINT64"))
    answers = queue.Queue()
    with grpc.InferenceServerClient(start(tmp_path).grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for i in range(3):
            for s in range(1, 5):
                client.async_stream_infer("told", [given(client, "x", np.full((1, 1), s, np.float32))], request_id=f"{i} {s}",
                                          sequence_id=s, sequence_start=i == 0, sequence_end=i == 2)
        for _ in range(12):
            result, error = answers.get(timeout=30)
            assert error is None, str(error)
            i, s = map(int, result.get_response().id.split())
            assert result.as_numpy("y").item() == (i + 1) * s + (100 if i == 2 else 0)
            assert result.as_numpy("told").tolist() == [[i == 0, 1, i == 2]] and result.as_numpy("who").item() == s
        client.stop_stream()
        assert client.get_inference_statistics("told").model_stats[0].execution_count == 3
        # Then clients send the model's state.
        config = {"sequence_batching": {"control_input": json.loads(json.dumps(
            client.get_model_config("told", as_json=True)["config"]["sequence_batching"]["control_input"]))}}
        client.load_model("told", config=json.dumps(config))
        result = client.infer("told", [given(client, n, np.full((1, 1), v, np.float32)) for n, v in (("x", 1), ("s", 5))],
                              sequence_id=1, sequence_start=True)
        assert result.as_numpy("y").item() == 1 and result.as_numpy("s_next").item() == 1
        result = client.infer("told", [given(client, n, np.full((1, 1), v, np.float32)) for n, v in (("x", 1), ("s", 5))], sequence_id=1)
        assert result.as_numpy("y").item() == 6


def test_the_configuration_is_told_and_taken_back(tmp_path, start, client_of):  # noqa: F811
    models.controlled(tmp_path, "told", IDLE + STATE + TELLS + id_of("TYPE_UINT64"))
    client = client_of(start(tmp_path))
    as_json = {} if isinstance(client, http.InferenceServerClient) else {"as_json": True}

    def config_of():
        config = client.get_model_config("told", **as_json)
        return config.get("config", config)
    config = config_of()
    controls = {c["name"]: c["control"][0] for c in config["sequence_batching"]["control_input"]}
    assert controls["start"]["fp32_false_true"] == [0, 1] and controls["ready"]["bool_false_true"] == [False, True]
    assert controls["end"] == {"kind": "CONTROL_SEQUENCE_END", "int32_false_true": [0, 1]}
    assert controls["id"] == {"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_UINT64"}
    client.load_model("told", config=json.dumps(config))
    assert config_of() == config and step(client, 1, 7, sequence_start=True)[0] == 1


WRONG = [("[]", "must be a list of"), ("[{name: start}]", "must be a list of"), ("[{name: start, control: []}]", "a list of one"),
         ("[{name: start, control: [{kind: CONTROL_SEQUENCE_BEGIN, fp32_false_true: [0, 1]}]}]", "no kind 'CONTROL_SEQUENCE_BEGIN'"),
         ("[{name: start, control: [{kind: CONTROL_SEQUENCE_START}]}]", "CONTROL_SEQUENCE_START needs"),
         ("[{name: start, control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [1]}]}]", "a list of two"),
         ("[{name: start, control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [x, y]}]}]", "hold numbers"),
         ("[{name: end, control: [{kind: CONTROL_SEQUENCE_END, int32_false_true: [0, 0.5]}]}]", "hold integers"),
         ("[{name: ready, control: [{kind: CONTROL_SEQUENCE_READY, bool_false_true: [0, 2]}]}]", "true or false"),
         ("[{name: start, control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1], data_type: TYPE_FP32}]}]", "'data_type' does not go"),
         ("[{name: start, control: [{fp32_false_true: [0, 1], int32_false_true: [0, 1]}]}]", "one type"),
         ("[{name: id, control: [{kind: CONTROL_SEQUENCE_CORRID}]}]", "needs a data_type"),
         ("[{name: id, control: [{kind: CONTROL_SEQUENCE_CORRID, data_type: TYPE_FP32}]}]", "needs a data_type"),
         ("[{name: id, control: [{kind: CONTROL_SEQUENCE_CORRID, data_type: TYPE_INT64}]}]", "declared as TYPE_INT64; the model's is TYPE_UINT64"),
         ("[{name: start, control: [{int32_false_true: [0, 1]}]}]", "declared as TYPE_INT32; the model's is TYPE_FP32"),
         ("[{name: nobody, control: [{fp32_false_true: [0, 1]}]}]", "'nobody'.* is not an input"),
         ("[{name: s, control: [{fp32_false_true: [0, 1]}]}]", "'s'.* is not an input"),
         ("[{name: start, control: [{fp32_false_true: [0, 1]}]}, {name: x, control: [{fp32_false_true: [0, 1]}]}]", "two inputs for")]


def test_wrong_controls(tmp_path, start):
    for i, (text, _) in enumerate(WRONG):
        models.controlled(tmp_path, f"wrong{i}", IDLE + STATE + "  control_input: " + text + "\n")
    models.controlled(tmp_path, "many", IDLE + STATE + TELLS, shape=("n", 2))
    server = start(tmp_path)
    reasons = {e["name"]: e.get("reason", "") for e in server.post("/v2/repository/index", {})[1]}
    for i, (text, why) in enumerate(WRONG):
        assert re.search(why, reasons[f"wrong{i}"]), (text, reasons[f"wrong{i}"])
    assert "is fed with one element" in reasons["many"]
