"""System shared memory, by tritonclient's own helpers."""

import multiprocessing.shared_memory as plain
import os

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

import models


@pytest.mark.parametrize("kind", [http, grpc])
def test_inputs_and_outputs_in_shared_memory(server, kind):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    key = f"/oncilla_test_{os.getpid()}_{kind.__name__.rsplit('.', 1)[1]}"
    region = shm.create_shared_memory_region("io", key, 2 * x.nbytes)
    try:
        with kind.InferenceServerClient(server.http if kind is http else server.grpc) as client:
            client.register_system_shared_memory("io", key, 2 * x.nbytes)
            status = client.get_system_shared_memory_status()
            if kind is http:
                assert status == [{"name": "io", "key": key, "offset": 0, "byte_size": 2 * x.nbytes}]
            else:
                assert status.regions["io"].byte_size == 2 * x.nbytes
            shm.set_shared_memory_region(region, [x])
            given = kind.InferInput("x", x.shape, "FP32")
            given.set_shared_memory("io", x.nbytes)
            wanted = kind.InferRequestedOutput("y")
            wanted.set_shared_memory("io", x.nbytes, offset=x.nbytes)
            result = client.infer("affine", [given], outputs=[wanted])
            assert result.get_output("y") is not None
            y = shm.get_contents_as_numpy(region, np.float32, [2, 3], offset=x.nbytes)
            np.testing.assert_array_equal(y, x * 2 + 1)

            def fails(match, call):
                with pytest.raises(InferenceServerException, match=match):
                    call()
            fails("registered already", lambda: client.register_system_shared_memory("io", key, 8))
            fails("cannot be opened", lambda: client.register_system_shared_memory("z", "/oncilla_none", 8))
            fails("a name without slashes", lambda: client.register_system_shared_memory("z", "/../etc/passwd", 8))
            fails("fewer bytes", lambda: client.register_system_shared_memory("z", key, 1 << 30))
            fails("fewer bytes", lambda: client.register_system_shared_memory("z", key, 8, offset=2**63))

            def source(*where, **options):
                made = kind.InferInput("x", x.shape, "FP32")
                made.set_shared_memory(*where, **options)
                return made
            given = source("io", 2**62, offset=2**62)
            fails("leave shared memory region", lambda: client.infer("affine", [given]))
            given = source("io", 8)
            fails("has 8 bytes of data", lambda: client.infer("affine", [given]))
            given = source("none", 24)
            fails("'none' is registered", lambda: client.infer("affine", [given]))
            given = source("io", x.nbytes)
            wanted.set_shared_memory("io", 8)
            fails("has 24 bytes", lambda: client.infer("affine", [given], outputs=[wanted]))
            # A region that its owner truncates must give an error and not crash the server.
            os.truncate(f"/dev/shm{key}", 4)
            fails("fewer bytes", lambda: client.infer("affine", [given]))
            client.unregister_system_shared_memory("io")
            fails("'io' is registered", lambda: client.get_system_shared_memory_status("io"))
            assert client.is_server_live()
    finally:
        with kind.InferenceServerClient(server.http if kind is http else server.grpc) as client:
            client.unregister_system_shared_memory()
        os.unlink(f"/dev/shm{key}")


def test_shared_memory_is_off_unless_asked_for(tmp_path, start):
    models.affine(tmp_path, "a")
    server = start(tmp_path)
    region = plain.SharedMemory(create=True, size=64)
    try:
        status, answer = server.post("/v2/systemsharedmemory/region/io/register",
                                     {"key": "/" + region.name, "byte_size": 64})
        assert status == 409 and "--shared-memory" in answer["error"]
    finally:
        region.close()
        region.unlink()
