"""What a model's configuration may contain, models that do not load, and memory that is freed."""
import re
import time

import numpy as np
import psutil
import pytest
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

import models
from conftest import Server, configure, infer, parameter

CPU = parameter("device", "cpu")


def refused(server, name, told):
    with pytest.raises(InferenceServerException, match=told):
        server.load(name)
    assert not server.client("grpc").is_model_ready(name)


def test_broken_model(server, repository):
    models.broken(repository, "broken")
    configure(repository, "broken", CPU)
    refused(server, "broken", "oncilla: .*model.onnx")


def test_no_model_and_two_models(server, repository):
    (repository / "empty/1").mkdir(parents=True)
    configure(repository, "empty")
    refused(server, "empty", "no model in .*looked for: model.onnx")
    models.affine(repository, "twice")
    (repository / "twice/1/model.tflite").write_bytes(b"")
    configure(repository, "twice", CPU)
    refused(server, "twice", "default_model_filename")
    configure(repository, "twice", CPU + 'default_model_filename: "model.onnx"\n')
    server.load("twice")
    configure(repository, "other", CPU + 'default_model_filename: "other.onnx"\n')
    models.affine(repository, "other")
    refused(server, "other", "no 'other.onnx'")


def test_ops_that_are_not_supported(server, repository):
    models._save(repository / "unknown/1", [helper.make_node("NoSuchOp", ["x"], ["y"], domain="")],
                 [("x", TensorProto.FLOAT, [2])], [("y", TensorProto.FLOAT, [2])])
    configure(repository, "unknown", CPU)
    refused(server, "unknown", "NoSuchOp")


@pytest.mark.parametrize("text, told", [
    (parameter("device", "gpu:77"), "gpu:77"),
    (parameter("memory_limit", "many"), "memory_limit"),
    (parameter("no_such_option", "1"), "no_such_option"),
    (parameter("fallback", "1") + parameter("fallback.chain", "cpu"), "'fallback' both as a whole and in parts"),
    (parameter("config", "run_timeout_ms: 5") + parameter("threads", "1"), "'threads' stands beside 'config'"),
    (CPU + parameter("signature", "encode"), "signature"),
    (CPU + 'input { name: "q" data_type: TYPE_FP32 dims: [ -1, 3 ] }\n', "no input 'q'; it has: x"),
    (CPU + 'input { name: "x" data_type: TYPE_INT32 dims: [ -1, 3 ] }\n', "TYPE_INT32 in the configuration and TYPE_FP32"),
    (CPU + 'input { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] }\n', r"\[-1,4\] in the configuration and \[-1,3\]"),
    (CPU + 'output { name: "z" data_type: TYPE_FP32 dims: [ -1, 3 ] }\n', "no output 'z'"),
    (CPU + "sequence_batching { }\n", "sequence_batching"),
    (CPU + "model_transaction_policy { decoupled: true }\n", "decoupled"),
])
def test_configurations_that_are_refused(server, repository, text, told):
    name = "refused_" + re.sub(r"\W+", "_", text)[:60]
    models.affine(repository, name)
    configure(repository, name, text)
    refused(server, name, told)


def test_batches_need_an_open_axis(server, repository):
    models.two(repository, "fixed")
    configure(repository, "fixed", CPU + "max_batch_size: 4\n")
    refused(server, "fixed", "no open first axis")
    models.mean(repository, "mean")
    configure(repository, "mean", CPU + "max_batch_size: 4\n")
    refused(server, "mean", "no open first axis")


def test_scalars_come_as_one_element(server, repository):
    models._save(repository / "scalar/1", [helper.make_node("Add", ["a", "b"], ["y"])],
                 [("a", TensorProto.FLOAT, []), ("b", TensorProto.FLOAT, [])], [("y", TensorProto.FLOAT, [])])
    configure(repository, "scalar", CPU)
    server.load("scalar")
    given = {"a": np.array([2], np.float32), "b": np.array([3], np.float32)}
    assert infer(server, "http", "scalar", given)["y"].tolist() == [5]
    with pytest.raises(InferenceServerException):
        infer(server, "http", "scalar", {**given, "b": np.zeros(2, np.float32)})


def test_without_a_configuration(server, repository):
    """A model named after the backend, as Triton does for all backends that it does not know itself."""
    folder = repository / "model.oncilla"
    models.affine(repository, "plain")
    (folder / "1").mkdir(parents=True)
    (repository / "plain/1/model.onnx").rename(folder / "1/model.oncilla")
    server.load("model.oncilla")
    x = np.ones((1, 3), np.float32)
    assert infer(server, "grpc", "model.oncilla", {"x": x})["y"].tolist() == [[3, 3, 3]]


def test_memory_limit_holds(server, repository):
    big(repository, "limited", 16)
    configure(repository, "limited", CPU + parameter("memory_limit", "1MiB"))
    refused(server, "limited", "oncilla: .*(memory|bytes|MiB)")
    configure(repository, "limited", CPU + parameter("memory_limit", "64MiB"))
    server.load("limited")


def big(repository, name, mebibytes):
    """y = x[n,256] times a matrix of so many MiB."""
    columns = mebibytes * 1024
    matrix = np.random.default_rng(0).random((256, columns), np.float32)
    models._save(repository / name / "1", [helper.make_node("MatMul", ["x", "m"], ["y"])],
                 [("x", TensorProto.FLOAT, ["n", 256])], [("y", TensorProto.FLOAT, ["n", columns])], [("m", matrix)])


def test_unloading_gives_memory_back(server, repository):
    big(repository, "big", 64)
    configure(repository, "big", CPU)
    # The backend and OpenCL's drivers are loaded before the measurement.
    server.load("affine")
    infer(server, "grpc", "affine", {"x": np.ones((1, 3), np.float32)})
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    server.load("big")
    x = np.ones((1, 256), np.float32)
    for _ in range(2):
        assert infer(server, "grpc", "big", {"x": x})["y"].shape == (1, 64 * 1024)
    assert process.memory_info().rss > before + (60 << 20)
    server.client("grpc").unload_model("big")
    told = server.wait_for_line("unloaded 'big' version 1")
    assert int(re.search(r"(\d+) bytes freed", told)[1]) > 63 << 20
    deadline = time.time() + 10
    while process.memory_info().rss > before + (24 << 20) and time.time() < deadline:
        time.sleep(0.05)
    assert process.memory_info().rss < before + (24 << 20)
    with pytest.raises(InferenceServerException):
        infer(server, "grpc", "big", {"x": x})


def test_settings_of_the_backend(repository, tmp_path):
    models.affine(tmp_path, "affine")
    configure(tmp_path, "affine", parameter("device", "gpu:0"))
    server = Server(tmp_path, "--backend-config=oncilla,opencl_cpu_devices=true", "--backend-config=oncilla,threads=1",
                    f"--backend-config=oncilla,cache_dir={tmp_path / 'cache'}")
    try:
        # Where there is no GPU this is OpenCL on the processor.
        server.load("affine")
        assert server.client("http").is_server_ready() and server.client("grpc").is_server_ready()
        x = np.ones((2, 3), np.float32)
        assert infer(server, "http", "affine", {"x": x})["y"].tolist() == [[3, 3, 3], [3, 3, 3]]
    finally:
        assert server.stop() == 0
    server = Server(tmp_path, "--backend-config=oncilla,thread=1")
    try:
        refused(server, "affine", "no setting 'thread'; there are: threads")
    finally:
        server.stop()
