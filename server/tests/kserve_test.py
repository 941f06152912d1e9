"""KServe's own client, over both protocols. Its package is large: tools/nightly has an environment with it."""

import asyncio

import numpy as np
import pytest

kserve = pytest.importorskip("kserve")
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig  # noqa: E402


def given(name, x, datatype, binary=None):
    made = InferInput(name="x", shape=list(x.shape), datatype=datatype)
    made.set_data_from_numpy(x, **({} if binary is None else {"binary_data": binary}))
    return InferRequest(model_name=name, infer_inputs=[made], request_id="k1")


X = np.array([[1, 2, 3.5], [-4, 0.1, 6]], np.float32)
Y = X * np.float32(2) + np.float32(1)


@pytest.mark.parametrize("binary", [True, False])
def test_rest(server, binary):
    async def go():
        url = f"http://{server.http}"
        async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
            assert await client.is_server_live(url) and await client.is_server_ready(url)
            assert await client.is_model_ready(url, "affine")
            assert not await client.is_model_ready(url, "broken")
            answer = await client.infer(url, given("affine", X, "FP32", binary), model_name="affine")
            assert answer.id == "k1" and answer.model_name == "affine"
            np.testing.assert_array_equal(answer.outputs[0].as_numpy(), Y)
            words = np.array([b"a", "\u00e4\u20ac".encode()], np.object_)
            answer = await client.infer(url, given("same_bytes", words, "BYTES", True), model_name="same_bytes")
            assert [w if isinstance(w, bytes) else w.encode() for w in answer.outputs[0].as_numpy()] == list(words)
            with pytest.raises(Exception, match="404|there is no model"):
                await client.infer(url, given("none", X, "FP32", binary), model_name="none")
    asyncio.run(go())


def test_grpc(server):
    async def go():
        async with InferenceGRPCClient(server.grpc) as client:
            assert await client.is_server_live() and await client.is_server_ready()
            assert await client.is_model_ready("affine")
            answer = await client.infer(given("affine", X, "FP32"))
            np.testing.assert_array_equal(answer.outputs[0].as_numpy(), Y)
            with pytest.raises(Exception, match="there is no model"):
                await client.infer(given("none", X, "FP32"))
    asyncio.run(go())
