"""Sequences: requests that share a state, which the server keeps between them."""

import concurrent.futures
import json
import pathlib
import queue
import re
import shutil
import sys
import time

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import models

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "models"))  # behind ours, which has a models.py, too
import fetch

KINDS = [http, grpc]
LSTM = """
    sequence_batching:
      max_sequence_idle_microseconds: 60000000
      state:
        - {input_name: h, output_name: hn, data_type: TYPE_FP32, dims: [1, 1, 8]}
        - {input_name: c, output_name: cn}
"""


@pytest.fixture(params=KINDS)
def client_of(request):
    """Makes clients of both kinds, and closes them."""
    made = []

    def make(server):
        made.append(request.param.InferenceServerClient(server.http if request.param is http else server.grpc))
        return made[-1]

    yield make
    for client in made:
        client.close()


def given(client, name, array):
    kind = http if isinstance(client, http.InferenceServerClient) else grpc
    tensor = kind.InferInput(name, array.shape, {"f4": "FP32", "i8": "INT64"}[array.dtype.str[1:]])
    tensor.set_data_from_numpy(array)
    return tensor


def step(client, name, array, sequence, start=False, end=False, output="y", **options):
    return client.infer(name, [given(client, "x", array)], sequence_id=sequence, sequence_start=start, sequence_end=end,
                        **options).as_numpy(output)


def ones(value=1.0, rows=1):
    return np.full((rows, 3), value, np.float32)


def fails(match, call, *arguments, **options):
    with pytest.raises(InferenceServerException, match=match) as failure:
        call(*arguments, **options)
    return failure.value.status()


def lstm(weights, x, h, c):
    """One step, written out: gates in ONNX's order i, o, f, c."""
    def sigmoid(v):
        return 1 / (1 + np.exp(-v))
    gates = weights["w"][0] @ x + weights["r"][0] @ h + weights["b"][0, :32] + weights["b"][0, 32:]
    i, o, f, g = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def test_a_recurrent_model_step_by_step(tmp_path, start, client_of):
    weights = models.recurrent(tmp_path, "lstm", LSTM)
    models.recurrent(tmp_path, "plain")  # the same one, whose states the client sends
    server = start(tmp_path)
    client = client_of(server)
    seeded = np.random.default_rng(3)
    ids = [7, "seven", "7"]  # a number is another name than its text
    mine = {s: seeded.uniform(-1, 1, (6, 2, 1, 5)).astype(np.float32) for s in ids}
    state = {s: (np.zeros((1, 1, 8), np.float32), np.zeros((1, 1, 8), np.float32)) for s in ids}
    exact = {s: (np.zeros(8), np.zeros(8)) for s in ids}
    for i in range(6):
        for s in ids:  # in turns
            got = step(client, "lstm", mine[s][i], s, start=i == 0, end=i == 5)
            told = client.infer("plain", [given(client, n, a) for n, a in
                                          (("x", mine[s][i]), ("h", state[s][0]), ("c", state[s][1]))])
            np.testing.assert_array_equal(got, told.as_numpy("y"))  # bit for bit
            state[s] = told.as_numpy("hn"), told.as_numpy("cn")
            for t in range(2):
                exact[s] = lstm(weights, mine[s][i][t, 0], *exact[s])
                np.testing.assert_allclose(got[t, 0, 0], exact[s][0], atol=1e-5)
    fails("no live sequence 7:.*sequence_start", step, client, "lstm", mine[7][0], 7)
    assert server.metric(r'oncilla_sequences\{model="lstm"') == 0
    assert server.metric(r'oncilla_sequences_started_total\{model="lstm"') == 3


def test_what_clients_see_of_states(tmp_path, start, client_of):
    models.running_sum(tmp_path, "sum")
    models.running_sum(tmp_path, "shown", """
        outputs: [{name: s_next, data_type: TYPE_FP32, dims: [-1, 3]}]
        sequence_batching:
          max_candidate_sequences: 5
          memory_limit: 1MiB
          state:
            - {input_name: s, output_name: s_next, initial_state: [{dims: [1, 3], zero_data: true}]}
            - {input_name: count, output_name: count_next}
    """)
    server = start(tmp_path)
    client = client_of(server)
    assert step(client, "sum", ones(), 1, start=True).tolist() == [[1, 1, 1]]
    fails("there is no input 's'", client.infer, "sum", [given(client, "x", ones()), given(client, "s", ones())], sequence_id=1)
    fails("there is no output 's_next'", client.infer, "sum", [given(client, "x", ones())], sequence_id=1,
          outputs=[(http if isinstance(client, http.InferenceServerClient) else grpc).InferRequestedOutput("s_next")])
    assert step(client, "sum", ones(), 1).tolist() == [[2, 2, 2]]  # the refused request must not change the state
    assert step(client, "shown", ones(5), 1, start=True, output="s_next").tolist() == [[5, 5, 5]]
    metadata = server.get("/v2/models/sum")[1]
    assert [t["name"] for t in metadata["inputs"]] == ["x"] and [t["name"] for t in metadata["outputs"]] == ["y"]
    assert {"sequence", "sequence(string_id)"} <= set(server.get("/v2")[1]["extensions"])
    as_json = {} if isinstance(client, http.InferenceServerClient) else {"as_json": True}
    config = client.get_model_config("shown", **as_json)
    config = config.get("config", config)
    sequences = config["sequence_batching"]
    assert int(sequences["oldest"]["max_candidate_sequences"]) == 5
    assert int(sequences["max_sequence_idle_microseconds"]) == 1000000 and "dynamic_batching" not in config
    first, second = sequences["state"]
    assert (first["input_name"], first["output_name"], first["data_type"]) == ("s", "s_next", "TYPE_FP32")
    assert [int(d) for d in first["dims"]] == [-1, 3] and [int(d) for d in first["initial_state"][0]["dims"]] == [1, 3]
    assert second["data_type"] == "TYPE_INT64" and "initial_state" not in second
    # The reply can be sent back.
    client.load_model("shown", config=json.dumps(config))
    again = client.get_model_config("shown", **as_json)
    assert again.get("config", again) == config
    assert config["parameters"]["sequence_memory_limit"]["string_value"] == str(1 << 20)
    assert step(client, "sum", ones(), 1).tolist() == [[3, 3, 3]]  # another model's


def test_starts_ends_and_ids(tmp_path, start, client_of):
    models.running_sum(tmp_path, "sum")
    models.affine(tmp_path, "affine")
    server = start(tmp_path)
    client = client_of(server)
    for sequence in (0, ""):  # tritonclient sends none
        fails("needs a 'sequence_id'", step, client, "sum", ones(), sequence)
    fails('no live sequence "a"', step, client, "sum", ones(), "a")
    assert step(client, "sum", ones(), "a", start=True)[0, 0] == 1
    assert step(client, "sum", ones(), 2**63 - 1, start=True)[0, 0] == 1
    assert step(client, "sum", ones(), "a")[0, 0] == 2
    assert step(client, "sum", ones(10), "a", start=True)[0, 0] == 10  # anew
    assert step(client, "sum", ones(), "a", end=True)[0, 0] == 11
    fails('no live sequence "a"', step, client, "sum", ones(), "a")
    assert step(client, "sum", ones(), 2**63 - 1)[0, 0] == 2
    assert step(client, "sum", ones(4), "one", start=True, end=True)[0, 0] == 4
    fails('no live sequence "one"', step, client, "sum", ones(), "one")
    fails("may have 128 bytes", step, client, "sum", ones(), "a" * 129, start=True)
    # As in Triton, a model without state ignores it.
    assert step(client, "affine", ones(), 5, end=True)[0, 0] == 3
    # An invalid request is refused, and is not a step of the sequence.
    fails("has the shape", step, client, "sum", np.ones((1, 4), np.float32), 2**63 - 1)
    assert step(client, "sum", ones(), 2**63 - 1)[0, 0] == 3
    counts = server.get("/v2/models/sum/stats")[1]["model_stats"][0]["sequences"]
    assert counts == {"live": 1, "state_bytes": 20, "started": 4, "expired": 0}
    assert server.metric(r"oncilla_sequence_state_bytes") == 20


def test_parameters_of_the_wrong_kind(server):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}
    for parameters in ({"sequence_id": -1}, {"sequence_id": 1.5}, {"sequence_id": True}, {"sequence_id": []}, {"sequence_id": 2**64},
                       {"sequence_id": 1, "sequence_start": 1}, {"sequence_id": 1, "sequence_end": "true"},
                       {"sequence_start": True}, {"sequence_id": 0, "sequence_end": True}, {"sequence_id": "x" * 1000}):
        status, answer = server.post("/v2/models/affine/infer", {**body, "parameters": parameters})
        assert status == 400 and "sequence_" in answer["error"], parameters
    with grpc.InferenceServerClient(server.grpc) as client:
        for key, value in (("sequence_id", -1), ("sequence_id", True), ("sequence_id", 1.5), ("sequence_start", 1), ("sequence_end", "x")):
            request = grpc.service_pb2.ModelInferRequest(model_name="affine")
            field = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}[type(value)]
            setattr(request.parameters[key], field, value)
            with pytest.raises(Exception, match=key):
                client._client_stub.ModelInfer(request)


def test_a_stream_of_sequences(tmp_path, start):
    models.running_sum(tmp_path, "sum", batch=False)
    server = start(tmp_path)
    answers = queue.Queue()
    with grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        # Twice through the same names, without waiting for answers in between.
        for turn in range(2):
            for i in range(50):
                for s in (1, 2, "three"):
                    client.async_stream_infer("sum", [given(client, "x", ones(3 if s == "three" else s))], request_id=f"{turn} {i} {s}",
                                              sequence_id=s, sequence_start=i == 0, sequence_end=i == 49)
        for _ in range(300):
            result, error = answers.get(timeout=30)
            assert error is None, str(error)
            turn, i, s = result.get_response().id.split()
            assert result.as_numpy("y")[0, 0] == (int(i) + 1) * {"1": 1, "2": 2, "three": 3}[s]
        client.async_stream_infer("sum", [given(client, "x", ones())], sequence_id=1)
        assert "no live sequence 1" in str(answers.get(timeout=30)[1])
        client.stop_stream()
    assert server.metric(r'oncilla_sequences\{') == 0


def test_requests_of_several_sequences_are_joined(tmp_path, start):
    models.running_sum(tmp_path, "sum", batch=True)
    server = start(tmp_path)
    answers = queue.Queue()
    with grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for i in range(3):
            for s in range(1, 5):
                client.async_stream_infer("sum", [given(client, "x", ones(s))], request_id=f"{i} {s}", sequence_id=s,
                                          sequence_start=i == 0, sequence_end=i == 2)
        for _ in range(12):
            result, error = answers.get(timeout=30)
            assert error is None, str(error)
            i, s = map(int, result.get_response().id.split())
            assert result.as_numpy("y").tolist() == [[(i + 1) * s] * 3]
        client.stop_stream()
        # One of each sequence at a time, and four sequences.
        stats = client.get_inference_statistics("sum").model_stats[0]
        assert stats.execution_count == 3 and [b.batch_size for b in stats.batch_stats] == [4]
        fails("a request of a sequence has one", step, client, "sum", ones(1, rows=2), 9, start=True)


def test_sequences_end_when_they_idle(tmp_path, start, client_of):
    models.running_sum(tmp_path, "sum", """
        sequence_batching:
          max_sequence_idle_microseconds: 400000
          max_candidate_sequences: 2
          state: [{input_name: s, output_name: s_next}, {input_name: count, output_name: count_next}]
    """)
    server = start(tmp_path)
    client = client_of(server)
    step(client, "sum", ones(), 1, start=True)
    step(client, "sum", ones(), 2, start=True)
    assert fails("has 2 live sequences already", step, client, "sum", ones(), 3, start=True) in ("429", "StatusCode.RESOURCE_EXHAUSTED")
    for i in range(6):  # longer than the time in all, and never idle for so long
        assert step(client, "sum", ones(), 1)[0, 0] == i + 2
        time.sleep(0.1)
    fails("no live sequence 2", step, client, "sum", ones(), 2)
    assert step(client, "sum", ones(), 3, start=True)[0, 0] == 1
    deadline = time.time() + 10
    while server.metric(r"oncilla_sequences\{") > 0:
        assert time.time() < deadline
        time.sleep(0.05)
    assert server.metric(r"oncilla_sequence_state_bytes") == 0 and server.metric(r"oncilla_sequences_expired_total") == 3


def test_states_that_grow_are_bounded(tmp_path, start, client_of):
    models.growing(tmp_path, "all", """
        sequence_batching:
          max_sequence_idle_microseconds: 60000000
          memory_limit: 4000
          state: [{input_name: all, output_name: all_next, initial_state: [{dims: [0], zero_data: true}]}]
    """)
    server = start(tmp_path)
    client = client_of(server)
    part = np.ones(400, np.float32)
    assert step(client, "all", part, 1, start=True) == 400 and step(client, "all", part[:10], 2, start=True) == 10
    assert step(client, "all", part, 1) == 800
    fails("takes 4800 bytes, those of others take 40, and all may take 4000", step, client, "all", part, 1)
    # The step failed, so the state for the next one is undefined.
    fails("an earlier request of sequence 1 failed", step, client, "all", part, 1)
    assert step(client, "all", part[:10], 2) == 20
    assert step(client, "all", part, 1, start=True) == 400
    assert server.metric(r"oncilla_sequence_state_bytes") == 1680


def test_a_request_that_fails_breaks_its_sequence(tmp_path, start):
    """One that is cancelled while it waits: those behind it must not be computed without it."""
    models.slow(tmp_path, "slow", size=1024, steps=60)
    text = ("outputs: [{name: y, data_type: TYPE_FP32, dims: [-1, 1024]}]\n"
            "sequence_batching: {max_sequence_idle_microseconds: 60000000, state: [{input_name: x, output_name: y,\n"
            " initial_state: [{dims: [128, 1024], zero_data: true}]}]}\n")  # long enough for others to come meanwhile
    models.config(tmp_path, "slow", text)
    models.running_sum(tmp_path, "sum")
    server = start(tmp_path)
    with grpc.InferenceServerClient(server.grpc) as client, concurrent.futures.ThreadPoolExecutor(4) as threads:
        # Its only input is its state.
        def run(**options):
            return client.infer("slow", [], sequence_id=1, **options).as_numpy("y").shape
        assert run(sequence_start=True) == (128, 1024)
        first = threads.submit(run)
        deadline = time.time() + 10
        while server.metric(r'oncilla_requests_running\{model="slow"') == 0:
            assert time.time() < deadline
        second = threads.submit(run, timeout=1)  # over while the first one runs
        while server.metric(r'oncilla_requests_total\{model="slow",version="1",code="DEADLINE_EXCEEDED"') == 0:
            assert time.time() < deadline
        third = threads.submit(run)
        assert first.result() == (128, 1024)
        assert "time is over" in str(second.exception())
        assert "an earlier request of sequence 1 failed" in str(third.exception())
        assert run(sequence_start=True, sequence_end=True) == (128, 1024)
        # An unload ends all of them.
        assert step(client, "sum", ones(), 1, start=True)[0, 0] == 1
        client.unload_model("sum")
        server.await_state("sum", "1", "UNAVAILABLE")
        client.load_model("sum")
        fails("no live sequence 1", step, client, "sum", ones(), 1)


COUNTER = pathlib.Path(__file__).resolve().parents[2] / "testdata/tensorflow/models/counter"


def counter(root, name, text):
    """y = x @ weights + the number of requests, which the variable Variable_1 counts; Variable is the offset."""
    (root / name / "1").mkdir(parents=True)
    shutil.copytree(COUNTER, root / name / "1" / "model")
    models.config(root, name, "signature: counting\n" + text)


def test_variables_of_each_sequence(tmp_path, start, client_of):
    counter(tmp_path, "counter", "sequence_batching: {max_sequence_idle_microseconds: 60000000, variables: [Variable_1, Variable]}\n")
    counter(tmp_path, "shared", "")
    client = client_of(start(tmp_path))
    base = client.infer("shared", [given(client, "x", ones())]).as_numpy("y") - 1  # one variable for all
    assert np.allclose(client.infer("shared", [given(client, "x", ones())]).as_numpy("y"), base + 2)

    def count(sequence, **marks):
        return round(float((step(client, "counter", ones(), sequence, **marks) - base)[0, 0]), 3)
    assert [count(1, start=True), count(1), count("two", start=True), count(1), count("two"), count(1, end=True)] == [1, 2, 1, 3, 2, 4]
    fails("no live sequence 1", count, 1)
    assert count("two") == 3 and count(1, start=True) == 1 and count("two", start=True) == 1
    as_json = {} if isinstance(client, http.InferenceServerClient) else {"as_json": True}
    config = client.get_model_config("counter", **as_json)
    config = config.get("config", config)
    assert json.loads(config["parameters"]["sequence_variables"]["string_value"]) == ["Variable_1", "Variable"]
    client.load_model("counter", config=json.dumps(config))
    assert [count(1, start=True), count(2, start=True), count(1)] == [1, 1, 2]


def test_wrong_variables(tmp_path, start):
    wrong = [("variables: [nobody]", "no variable 'nobody'.*it has 'Variable', 'Variable_1'"), ("variables: []", "a list of names"),
             ("variables: [Variable, Variable]", "there twice"), ("variables: Variable", "a list of names"),
             ("variables: [Variable]}\ninstances: 2\nsession: {", "one instance"), ("variables: [Variable]}\nmax_batch: 2\nsession: {", "no max_batch")]
    for i, (text, _) in enumerate(wrong):
        counter(tmp_path, f"wrong{i}", "sequence_batching: {" + text + "}\n")
    models.running_sum(tmp_path, "onnx", "sequence_batching: {variables: [s]}\n")
    models.frozen(tmp_path, "frozen")
    models.config(tmp_path, "frozen", "sequence_batching: {variables: [y]}\n")
    server = start(tmp_path)
    reasons = {e["name"]: e.get("reason", "") for e in server.post("/v2/repository/index", {})[1]}
    assert "need a model with a signature" in reasons["frozen"]
    for i, (text, why) in enumerate(wrong):
        assert re.search(why, reasons[f"wrong{i}"]), (text, reasons[f"wrong{i}"])
    assert "no variable 's'" in reasons["onnx"] and "TensorFlow" in reasons["onnx"]


SUM = "state: [{input_name: s, output_name: s_next}, {input_name: count, output_name: count_next}]"
WRONG = [("sequence_batching: {}", "needs state"), ("sequence_batching: 5", "must hold keys"),
         ("sequence_batching: {states: []}", "unknown key 'states'"), ("sequence_batching: {state: []}", "list of {input_name"),
         ("sequence_batching: {state: [{input_name: s}]}", "list of {input_name"),
         ("sequence_batching: {state: [{input_name: z, output_name: s_next}]}", "names the input 'z'"),
         ("sequence_batching: {state: [{input_name: s, output_name: z}]}", "names the output 'z'"),
         ("sequence_batching: {state: [{input_name: s, output_name: count_next}]}", "is TYPE_FP32, and the output"),
         ("sequence_batching: {state: [{input_name: s, output_name: s_next}, {input_name: s, output_name: s_next}]}", "a state twice"),
         ("sequence_batching: {state: [{input_name: s, output_name: s_next, data_type: TYPE_FP16}]}", "declared as TYPE_FP16"),
         ("sequence_batching: {state: [{input_name: s, output_name: s_next, dims: [-1, 4]}]}", r"is \[-1,4\] on one side"),
         ("sequence_batching: {state: [{input_name: s, output_name: s_next, initial_state: [{dims: [3], zero_data: true}]}]}", "initial shape"),
         ("sequence_batching: {state: [{input_name: s, output_name: s_next, initial_state: [{dims: [1, 3], data_file: x}]}]}", "zero_data"),
         ("sequence_batching: {memory_limit: 8, " + SUM + "}", "more than the memory_limit"),
         ("priority_levels: 2\nsequence_batching: {" + SUM + "}", "do not go with sequence_batching"),
         ("sequence_batching: {max_sequence_idle_microseconds: 0, " + SUM + "}", "whole number from 1")]


def test_wrong_configurations(tmp_path, start):
    for i, (text, _) in enumerate(WRONG):
        models.running_sum(tmp_path, f"wrong{i}", text)
    models.running_sum(tmp_path, "right")
    server = start(tmp_path)
    for i, (text, why) in enumerate(WRONG):
        entries = [e for e in server.post("/v2/repository/index", {})[1] if e["name"] == f"wrong{i}"]
        assert re.search(why, entries[0]["reason"]), (text, entries)
    with http.InferenceServerClient(server.http) as client:
        for config, why in (({"sequence_batching": {"iterative_sequence": True}}, "'iterative_sequence' in 'sequence_batching' is not supported"),
                            ({"sequence_batching": {}}, "needs state"),
                            ({"sequence_batching": {"state": []}}, "needs state"),
                            ({"sequence_batching": {}, "dynamic_batching": {}}, "one of"),
                            ({"sequence_batching": {"state": [{"input_name": "s", "output_name": "s_next", "initial_state": [
                                {"dims": [1], "data_file": "/etc/passwd"}]}]}}, "'data_file' in 'initial_state' is not supported")):
            fails(why, client.load_model, "right", config=json.dumps(config))
        good = {"sequence_batching": {"direct": {"max_queue_delay_microseconds": 0}, "max_sequence_idle_microseconds": 0, "state": [
            {"input_name": "s", "output_name": "s_next", "data_type": "TYPE_FP32", "dims": [1, 3]},
            {"input_name": "count", "output_name": "count_next"}]}}
        client.load_model("right", config=json.dumps(good))
        assert step(client, "right", ones(), 1, start=True)[0, 0] == 1


def served_twice(root, file, text):
    """A real model with its states kept, as NAME, and as the model's file has it, as NAME_plain."""
    for name in (file.stem, file.stem + "_plain"):
        (root / name / "1").mkdir(parents=True)
        shutil.copy(file, root / name / "1" / "model.onnx")
    models.config(root, file.stem, text)


def test_speech(tmp_path, start, client_of):
    """Silero VAD, fed as it is used: chunk by chunk, two speakers in turns."""
    data = fetch.wheel("silero-vad") / "silero_vad" / "data"
    served_twice(tmp_path, data / "silero_vad.onnx",
                 "sequence_batching: {state: [{input_name: state, output_name: stateN, dims: [2, 1, 128]}]}\n")
    served_twice(tmp_path, data / "silero_vad_16k_sequence.onnx",
                 "sequence_batching: {state: [{input_name: h, output_name: hn}, {input_name: c, output_name: cn}]}\n")
    client = client_of(start(tmp_path))
    seeded = np.random.default_rng(11)
    chunks = np.arange(12 * 576, dtype=np.float32).reshape(12, 576) / 16000
    sounds = {s: (np.sin(chunks * 2 * np.pi * s) * 0.5 + seeded.uniform(-0.1, 0.1, chunks.shape)).astype(np.float32) for s in (180, 2900)}
    rate, state, said = np.array(16000, np.int64), {s: np.zeros((2, 1, 128), np.float32) for s in sounds}, {s: [] for s in sounds}
    for i in range(12):
        for s, sound in sounds.items():
            mark = {"sequence_id": s, "sequence_start": i == 0, "sequence_end": i == 11}
            inputs = [given(client, "input", sound[i:i + 1]), given(client, "sr", rate)]
            got = client.infer("silero_vad", inputs, **mark).as_numpy("output")
            told = client.infer("silero_vad_plain", inputs + [given(client, "state", state[s])])
            np.testing.assert_array_equal(got, told.as_numpy("output"))
            state[s] = told.as_numpy("stateN")
            kept = client.infer("silero_vad_16k_sequence", [given(client, "input", sound[i:i + 1])], **mark)
            said[s].append(kept.as_numpy("speech_probs")[0])
    zero = np.zeros((1, 1, 128), np.float32)
    for s, sound in sounds.items():  # the other form of the net takes all chunks at once
        whole = client.infer("silero_vad_16k_sequence_plain", [given(client, n, a) for n, a in (("input", sound), ("h", zero), ("c", zero))])
        np.testing.assert_allclose(said[s], whole.as_numpy("speech_probs"), rtol=1e-4, atol=1e-5)
    assert max(said[180]) != max(said[2900])
