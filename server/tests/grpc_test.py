"""The gRPC form of the protocol, called by tritonclient.grpc as its users do."""

import queue
import time

import grpc as plain
import numpy as np
import pytest
import tritonclient.grpc as grpc
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import models
from http_test import VALUES


@pytest.fixture(scope="module")
def client(server):
    with grpc.InferenceServerClient(server.grpc) as made:
        yield made


@pytest.fixture(scope="module")
def stub(server):
    with plain.insecure_channel(server.grpc) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def tensor(name, array):
    made = grpc.InferInput(name, array.shape, np_to_triton_dtype(array.dtype))
    made.set_data_from_numpy(array)
    return made


def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.get_server_metadata().name == "oncilla"
    assert client.is_model_ready("affine") and client.is_model_ready("versions", "1")
    assert not client.is_model_ready("broken") and not client.is_model_ready("versions", "3")
    metadata = client.get_model_metadata("affine", as_json=True)
    assert metadata["inputs"] == [{"name": "x", "datatype": "FP32", "shape": ["-1", "3"]}]
    assert list(client.get_model_metadata("versions").versions) == ["1", "2"]
    with pytest.raises(InferenceServerException, match="there is no model 'none'") as failure:
        client.get_model_metadata("none")
    assert failure.value.status() == "StatusCode.NOT_FOUND"


@pytest.mark.parametrize("datatype", models.TYPES)
def test_types(client, datatype):
    x = np.array(VALUES[datatype], models.TYPES[datatype][1])
    given = grpc.InferInput("x", x.shape, datatype)
    given.set_data_from_numpy(x)
    y = client.infer(f"same_{datatype.lower()}", [given]).as_numpy("y")
    assert y.dtype == x.dtype and list(y) == list(x)


CONTENTS = {"BOOL": "bool", "UINT8": "uint", "UINT16": "uint", "UINT32": "uint", "UINT64": "uint64", "INT8": "int",
            "INT16": "int", "INT32": "int", "INT64": "int64", "FP32": "fp32", "FP64": "fp64", "BYTES": "bytes"}


@pytest.mark.parametrize("datatype", CONTENTS)
def test_typed_contents(stub, datatype):
    request = service_pb2.ModelInferRequest(model_name=f"same_{datatype.lower()}")
    given = request.inputs.add(name="x", datatype=datatype, shape=[3])
    values = VALUES[datatype]
    getattr(given.contents, CONTENTS[datatype] + "_contents").extend(values)
    raw = stub.ModelInfer(request).raw_output_contents[0]
    if datatype == "BYTES":
        assert raw == b"".join(len(v).to_bytes(4, "little") + v for v in values)
    else:
        np.testing.assert_array_equal(np.frombuffer(raw, models.TYPES[datatype][1]),
                                      np.array(values, models.TYPES[datatype][1]))


def test_contents_that_do_not_fit_are_refused(stub):
    def fails(match, **changes):
        request = service_pb2.ModelInferRequest(model_name="same_int8")
        given = request.inputs.add(name="x", datatype=changes.get("datatype", "INT8"), shape=changes.get("shape", [2]))
        given.contents.int_contents.extend(changes.get("values", [1, 2]))
        request.raw_input_contents.extend(changes.get("raw", []))
        with pytest.raises(plain.RpcError) as failure:
            stub.ModelInfer(request)
        assert failure.value.code() == plain.StatusCode.INVALID_ARGUMENT
        assert match in failure.value.details()
    fails("not INT8", values=[1, 128])
    fails("has 3 bytes of data", values=[1, 2, 3])
    fails("shape that is too large", shape=[2**62, 2**62])
    fails("-1 in its shape", shape=[-1])
    fails("no datatype", datatype="INT9")
    fails("has contents, and bytes elsewhere", raw=[b"12"])


def test_several_inputs_and_outputs(client):
    a, b = np.array([[1, 2], [3, 4]], np.int32), np.array([[5, -6], [-7, 8]], np.int32)
    result = client.infer("two", [tensor("b", b), tensor("a", a)], request_id="q")
    np.testing.assert_array_equal(result.as_numpy("sum"), a + b)
    np.testing.assert_array_equal(result.as_numpy("product"), a * b)
    assert result.get_response().id == "q"
    one = client.infer("two", [tensor("b", b), tensor("a", a)], outputs=[grpc.InferRequestedOutput("where")])
    assert [o.name for o in one.get_response().outputs] == ["where"]


def test_asynchronous(client):
    answers = queue.Queue()
    for i in range(32):
        client.async_infer("affine", [tensor("x", np.full((1, 3), i, np.float32))], request_id=str(i),
                           callback=lambda result, error: answers.put((result, error)))
    for _ in range(32):
        result, error = answers.get(timeout=30)
        assert error is None
        assert result.as_numpy("y")[0, 0] == 2 * int(result.get_response().id) + 1


def test_stream(client):
    answers = queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    for i in range(200):
        client.async_stream_infer("affine", [tensor("x", np.full((1, 3), i, np.float32))], request_id=str(i),
                                  enable_empty_final_response=True)
    for i in range(200):  # in the order of the requests
        result, error = answers.get(timeout=30)
        assert error is None and result.get_response().id == str(i)
        assert result.as_numpy("y")[0, 0] == 2 * i + 1
        assert result.get_response().parameters["triton_final_response"].bool_param
    # A request that fails does not end the stream.
    client.async_stream_infer("affine", [tensor("x", np.ones((1, 4), np.float32))])
    assert "has the shape [1,4]" in str(answers.get(timeout=30)[1])
    client.async_stream_infer("affine", [tensor("x", np.ones((1, 3), np.float32))])
    assert answers.get(timeout=30)[1] is None
    client.stop_stream()


def test_a_stream_that_is_cancelled(client, server):
    client.start_stream(callback=lambda result, error: None)
    for _ in range(100):
        client.async_stream_infer("batched", [tensor("x", np.ones((1, 3), np.float32))])
    client.stop_stream(cancel_requests=True)
    deadline = time.time() + 10
    while server.metric(r'oncilla_(queue_depth|requests_running)\{model="batched"') > 0:
        assert time.time() < deadline
        time.sleep(0.05)
    assert client.is_server_live()


def test_statistics_and_index(client):
    index = {(e.name, e.version): e for e in client.get_model_repository_index().models}
    assert index["affine", "1"].state == "READY" and "not a model" in index["broken", "1"].reason
    a = np.ones((2, 2), np.int32)
    before = client.get_inference_statistics("two", "1").model_stats[0].inference_stats.success.count
    client.infer("two", [tensor("a", a), tensor("b", a)])
    after = client.get_inference_statistics("two", "1").model_stats[0]
    assert after.inference_stats.success.count == before + 1 and after.execution_count > 0


def test_model_configuration(client):
    config = client.get_model_config("batched").config
    assert config.name == "batched" and config.max_batch_size == 8 and config.version_policy.latest.num_versions == 1
    assert config.input[0].data_type == model_config_pb2.TYPE_FP32 and list(config.input[0].dims) == [3]
    assert config.output[0].data_type == model_config_pb2.TYPE_FP32 and list(config.output[0].dims) == [3]
    assert config.dynamic_batching.max_queue_delay_microseconds == 20000
    assert config.dynamic_batching.default_queue_policy.max_queue_size == 64
    assert config.instance_group[0].count == 1
    config = client.get_model_config("versions", "1").config
    assert config.version_policy.HasField("all") and not config.HasField("dynamic_batching")
    assert list(config.input[0].dims) == [-1, 3]
    assert client.get_model_config("same_bytes").config.input[0].data_type == model_config_pb2.TYPE_STRING
    with pytest.raises(InferenceServerException) as failure:
        client.get_model_config("none")
    assert failure.value.status() == "StatusCode.NOT_FOUND"


def test_there_is_no_cuda_memory(client, stub):
    assert client.get_cuda_shared_memory_status(as_json=True) == {}
    client.unregister_cuda_shared_memory()
    with pytest.raises(plain.RpcError) as failure:
        stub.CudaSharedMemoryRegister(service_pb2.CudaSharedMemoryRegisterRequest(name="r", raw_handle=b"x", byte_size=4))
    assert failure.value.code() == plain.StatusCode.UNIMPLEMENTED and "CUDA shared memory is not supported" in failure.value.details()


def test_trace_settings(client):
    def told(settings):
        return {name: list(setting.value) for name, setting in settings.settings.items()}
    default = {"trace_level": ["OFF"], "trace_rate": ["1000"], "trace_count": ["-1"]}
    assert told(client.get_trace_settings()) == default
    settings = client.update_trace_settings("two", {"trace_level": ["TIMESTAMPS"], "trace_rate": "5"})
    assert told(settings) == {**default, "trace_level": ["TIMESTAMPS"], "trace_rate": ["5"]}
    assert told(client.get_trace_settings("affine")) == default
    with pytest.raises(InferenceServerException, match="there is no setting 'log_file'"):
        client.update_trace_settings("two", {"log_file": "x"})
    assert told(client.update_trace_settings("two", {"trace_level": None, "trace_rate": None})) == default


def test_trace_context(client, server):
    trace = "1af7651916cd43dd8448eb211c80319c"
    client.infer("affine", [tensor("x", np.ones((1, 3), np.float32))],
                 headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    server.await_events(lambda e: e.get("trace_id") == trace and e["method"] == "ModelInfer")


def test_both_front_ends_tell_the_same(server, client):
    http = server.get("/v2/models/versions")[1]
    assert [t.name for t in client.get_model_metadata("versions").inputs] == [t["name"] for t in http["inputs"]]
    told = server.get("/v2/models/two/stats")[1]["model_stats"][0]
    stats = client.get_inference_statistics("two").model_stats[0]
    assert stats.inference_count == told["inference_count"]
    assert stats.inference_stats.queue.ns == told["inference_stats"]["queue"]["ns"]
