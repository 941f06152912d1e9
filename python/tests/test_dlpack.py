"""DLPack both ways, in its two versions."""
import ctypes
import gc

import numpy as np
import oncilla
import pytest
from conftest import one_op


class Other:
    """Another library's tensor: only DLPack, of the version before 1 where `old`."""

    def __init__(self, array, old=False, device=(1, 0)):
        self.array, self.old, self.device = array, old, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if self.old:
            if options:
                raise TypeError("unexpected keyword argument")
            return self.array.__dlpack__()
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("old", [False, True])
def test_in(neg, old):
    x = np.arange(6, dtype=np.float32)
    assert neg(Other(x, old)).tolist() == [-0, -1, -2, -3, -4, -5]
    tensor = oncilla.Tensor.of(Other(x, old))
    assert np.asarray(tensor).ctypes.data == x.ctypes.data
    strided = oncilla.Tensor.of(Other(np.arange(12, dtype=np.int16).reshape(3, 4)[:, ::2], old))
    assert strided.numpy().tolist() == [[0, 2], [4, 6], [8, 10]]
    empty = oncilla.Tensor.of(Other(np.zeros((0, 3), np.float32), old))
    assert empty.shape == (0, 3)


def test_in_keeps_the_other_tensor(neg):
    array = np.arange(6, dtype=np.float32)
    tensor = oncilla.Tensor.of(Other(array))
    del array
    gc.collect()
    assert tensor.numpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_in_refuses_other_devices(neg):
    with pytest.raises(BufferError, match="host memory"):
        neg(Other(np.ones(2, np.float32), device=(2, 0)))


def test_capsules_are_used_once():
    capsule = np.ones(2, np.float32).__dlpack__()
    from oncilla import _oncilla
    _oncilla.from_dlpack(capsule)
    with pytest.raises(TypeError, match="consumed already"):
        _oncilla.from_dlpack(capsule)
    with pytest.raises(TypeError):
        _oncilla.from_dlpack(object())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", "int64", "bool", "complex64"])
def test_out(dtype):
    tensor = oncilla.Tensor.of(np.array([[0, 1], [1, 0]], dtype))
    assert tensor.__dlpack_device__() == (1, 0)
    y = np.from_dlpack(tensor)
    assert y.dtype == np.dtype(dtype) and y.tolist() == tensor.numpy().tolist()
    del tensor
    gc.collect()
    assert y[0, 1] == 1


def test_out_is_read_only_or_a_copy():
    x = np.arange(4, dtype=np.float32)
    tensor = oncilla.Tensor.of(x)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        shared = np.from_dlpack(tensor)
        assert not shared.flags.writeable and shared.ctypes.data == x.ctypes.data
        copied = np.from_dlpack(tensor, copy=True)
        assert copied.ctypes.data != x.ctypes.data
    old = tensor.__dlpack__()  # a consumer that knows no flags may write
    from oncilla import _oncilla
    assert np.asarray(_oncilla.from_dlpack(old)).ctypes.data != x.ctypes.data


def test_capsules_that_nobody_takes_are_freed():
    import sys
    tensor = oncilla.Tensor.of(np.ones(2, np.float32))
    before = sys.getrefcount(tensor)
    for version in (None, (1, 0)):
        tensor.__dlpack__(max_version=version, copy=False)
    gc.collect()
    assert sys.getrefcount(tensor) == before


def test_what_dlpack_has_no_form_for():
    with pytest.raises(BufferError):
        oncilla.Tensor.of("text").__dlpack__()
    with pytest.raises(BufferError):
        oncilla.Tensor.of(np.ones(2)).__dlpack__(stream=1)


def test_onnxruntime_values():
    ort = pytest.importorskip("onnxruntime")
    value = ort.OrtValue.ortvalue_from_numpy(np.arange(4, dtype=np.float32))
    with one_op("Neg") as model:
        y = model.run({"x:0": value}, outputs="y:0")["y:0"]
    assert y.tolist() == [0, -1, -2, -3]


def test_opencl_tensors():
    runtime = oncilla.Runtime(opencl_cpu_devices=True)
    if not runtime.has_device("GPU"):
        pytest.skip("no OpenCL device")
    with oncilla.Session(device="gpu", runtime=runtime) as session:
        x = session.upload(np.arange(4, dtype=np.float32))
        assert x.device.endswith("GPU:0") and x.__dlpack_device__() == (4, 0)
        assert x.numpy().tolist() == [0, 1, 2, 3]
        capsule = x.__dlpack__(max_version=(1, 0))
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # data, then the device, behind version, context, deleter and flags.
        fields = ctypes.cast(pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(ctypes.c_uint64))
        from oncilla import _oncilla
        buffer, offset, size = _oncilla._opencl_buffer(x)
        assert fields[4] == buffer and size == 16 and fields[5] & 0xFFFFFFFF == 4
        with pytest.raises(BufferError, match="device"):
            np.asarray(memoryview(x))
        with pytest.raises(BufferError):
            oncilla.Tensor.of(Other(x, device=(4, 0)))
        model = one_op("Neg", session=session)
        y = model.run({"x:0": x}, outputs="y:0", keep=True)["y:0"]
        assert isinstance(y, oncilla.Tensor) and y.device
        assert np.asarray(y).tolist() == [0, -1, -2, -3]
        assert np.from_dlpack(y.read()).tolist() == [0, -1, -2, -3]
