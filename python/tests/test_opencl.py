"""The program's own OpenCL context, buffers and queue, through ctypes."""
import ctypes

import numpy as np
import oncilla
import pytest


class OpenCl:
    """A context, an in-order queue and buffers on the first device of PoCL's."""

    def __init__(self):
        try:
            self.cl = ctypes.CDLL("libOpenCL.so.1")
        except OSError:
            pytest.skip("no OpenCL")
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
            getattr(self.cl, name).restype = ctypes.c_void_p
        platform, device, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
        platforms = (ctypes.c_void_p * 8)()
        if self.cl.clGetPlatformIDs(8, platforms, ctypes.byref(count)) != 0:
            pytest.skip("no OpenCL platform")
        for platform in platforms[: count.value]:
            name = ctypes.create_string_buffer(256)
            self.cl.clGetPlatformInfo(ctypes.c_void_p(platform), 0x0902, 256, name, None)
            if name.value == b"Portable Computing Language":
                break
        else:
            pytest.skip("no PoCL")
        all_types = ctypes.c_ulong(0xFFFFFFFF)
        assert self.cl.clGetDeviceIDs(ctypes.c_void_p(platform), all_types, 1, ctypes.byref(device), None) == 0
        self.device = device.value
        code = ctypes.c_int()
        self.context = self.cl.clCreateContext(None, 1, (ctypes.c_void_p * 1)(self.device), None, None, ctypes.byref(code))
        assert code.value == 0
        self.queue = self.cl.clCreateCommandQueue(ctypes.c_void_p(self.context), device, ctypes.c_ulong(2),
                                                  ctypes.byref(code))
        assert code.value == 0

    def buffer(self, array):
        code = ctypes.c_int()
        made = self.cl.clCreateBuffer(ctypes.c_void_p(self.context), ctypes.c_ulong(1 | 32), ctypes.c_size_t(array.nbytes),
                                      ctypes.c_void_p(array.ctypes.data), ctypes.byref(code))
        assert code.value == 0
        return made

    def read(self, buffer, like):
        out = np.empty_like(like)
        assert self.cl.clEnqueueReadBuffer(ctypes.c_void_p(self.queue), ctypes.c_void_p(buffer), 1, ctypes.c_size_t(0),
                                           ctypes.c_size_t(out.nbytes), ctypes.c_void_p(out.ctypes.data), 0, None,
                                           None) == 0
        return out


def test_own_context_buffers_and_queue():
    cl = OpenCl()
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    in_buffer, out_buffer = cl.buffer(x), cl.buffer(y)
    runtime = oncilla.Runtime.from_opencl(cl.context, cl.device)
    assert "borrowed" in next(d.note for d in runtime.devices() if d.short_name == "GPU:0")
    with oncilla.Session(device="gpu", runtime=runtime) as session:
        graph = oncilla.Graph()
        graph.op("Neg", graph.placeholder("float32", [8], name="x"), name="y")
        step = session.load(graph).callable("x:0", "y:0")
        given = session.wrap_opencl(in_buffer, "float32", [8])
        target = session.wrap_opencl(out_buffer, "float32", [8])
        assert given.numpy().tolist() == x.tolist()
        cost = step.run_into(given, outputs=[target])
        assert cost["copies"] == 0 and cl.read(out_buffer, y).tolist() == (-x).tolist()
        step.run_into(target, outputs=[given])
        run = step.enqueue(cl.queue, given, outputs=[target], trace=True)
        run.finish(60)
        assert run.done() and b"traceEvents" in run.trace() and run.event
        assert cl.read(out_buffer, y).tolist() == (-x).tolist()
        cl.cl.clReleaseEvent(ctypes.c_void_p(run.event))
        with pytest.raises(oncilla.InvalidArgumentError):
            step.run_into(given, outputs=[oncilla.Tensor.of(y)])
        with pytest.raises(oncilla.Error):
            session.wrap_opencl(in_buffer, "float32", [9])
