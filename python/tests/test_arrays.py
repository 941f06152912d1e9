"""Arrays in and out: layouts, types, what is refused, and that nothing is copied unnecessarily."""
import gc

import numpy as np
import oncilla
import pytest
from conftest import one_op
from oncilla import _oncilla


def test_values(neg):
    assert neg(np.array([1, -2], np.float32)).tolist() == [-1, 2]


@pytest.mark.parametrize("make", [
    lambda: np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2],
    lambda: np.asfortranarray(np.arange(12, dtype=np.float32).reshape(4, 3)),
    lambda: np.arange(12, dtype=np.float32).reshape(4, 3)[::-1],
    lambda: np.arange(12, dtype=">f4").reshape(4, 3),
    lambda: np.broadcast_to(np.float32(3), (4, 3)),
    lambda: np.frombuffer(b"x" + np.arange(12, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 3),
    lambda: np.zeros((0, 3), np.float32),
    lambda: np.zeros((4, 0), np.float32),
], ids=["strided", "fortran", "reversed", "big endian", "broadcast", "unaligned", "empty", "empty rows"])
def test_layouts(make):
    with one_op("Neg", shape=(None, None)) as model:
        x = make()
        y = model.run({"x:0": x}, outputs="y:0")["y:0"]
        assert y.shape == x.shape and y.dtype == np.float32
        np.testing.assert_array_equal(y, -x.astype(np.float32))


def test_scalars_and_rank():
    with one_op("Neg", shape=()) as model:
        for value in (2.5, np.float32(2.5), np.array(2.5, np.float32), 2):
            y = model.run({"x:0": value}, outputs="y:0")["y:0"]
            assert y.shape == () and y == -float(value)


def test_read_only_input(neg):
    x = np.ones(3, np.float32)
    x.flags.writeable = False
    assert neg(x).tolist() == [-1, -1, -1]


def test_lists_take_the_declared_type():
    with one_op("Neg", "int32") as model:
        run = lambda x: model.run({"x:0": x}, outputs="y:0")["y:0"]
        assert run([1, 2]).dtype == np.int32
        with pytest.raises(OverflowError, match="x:0.*int32"):
            run([1 << 40])
        with pytest.raises(TypeError, match="float64"):
            run([1.5])
        with pytest.raises(oncilla.InvalidArgumentError, match="x:0"):
            run(np.array([1, 2]))  # an array has a type: int64
        assert run([]).shape == (0,)


@pytest.mark.parametrize("value, dtype", [
    ([1 << 63], "int64"), ([-1], "uint64"), ([(1 << 64) - 1], "int64"), ([1 << 70], "int64"), ([-1], "uint8"), ([256], "uint8"),
    ([1e40], "float32"), ([1e40 + 0j], "complex64"), ([70000], "float16"), ([-70000.0], "float16"), ([3.4e38 * 1.1], "bfloat16"),
    ([1e6], "float8_e4m3fn"), ([100.0], "float4_e2m1fn"), ([8], "int4"), ([-1], "uint4")])
def test_numbers_beyond_the_declared_type_are_refused(value, dtype):
    if oncilla._types.is_extended(oncilla._types.CODES[dtype]):
        pytest.importorskip("ml_dtypes")
    with pytest.raises(OverflowError, match=f"input 'x': a value is out of the range of {dtype}"):
        oncilla._arrays.to_tensor("x", value, oncilla._types.CODES[dtype])


@pytest.mark.parametrize("value, dtype", [
    ([(1 << 63) - 1, -1 << 63], "int64"), ([(1 << 64) - 1], "uint64"), ([0.1], "float32"), ([65519.0], "float16"),
    ([float("inf"), float("nan")], "float16"), ([True], "int64"), ([7, -8], "int4"), ([6.0], "float4_e2m1fn")])
def test_numbers_within_the_declared_type_are_taken(value, dtype):
    if oncilla._types.is_extended(oncilla._types.CODES[dtype]):
        pytest.importorskip("ml_dtypes")
    tensor = oncilla._arrays.to_tensor("x", value, oncilla._types.CODES[dtype])
    array = oncilla._arrays.extended_array(tensor) if oncilla._types.is_extended(tensor.code) else np.asarray(tensor)
    np.testing.assert_array_equal(array, np.array(value).astype(array.dtype))


@pytest.mark.parametrize("value", [[[1, 2], [3]], {"a": 1}, None, object(), np.array([object()]), "text", [None],
                                   np.array(["2020-01-01"], "M8[D]"), np.zeros(2, "f4,i4"), float],
                         ids=["ragged", "dict", "None", "object", "array of objects", "text", "list of None", "dates",
                              "records", "type"])
def test_what_is_no_tensor(neg, value):
    with pytest.raises((TypeError, ValueError)):
        neg(value)


def test_masked_arrays_are_refused(neg):
    with pytest.raises(TypeError, match="masked"):
        neg(np.ma.masked_array(np.ones(2, np.float32), [True, False]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16",
                                   "uint32", "uint64", "bool", "complex64", "complex128"])
def test_every_type_of_numpy(dtype):
    graph = oncilla.Graph()
    x = graph.placeholder(dtype, [None], name="x")
    graph.op("Reshape", x, graph.constant([1, -1], "int32"), name="y")
    with oncilla.load(graph, device="cpu") as model:
        x = np.array([0, 1, 1], dtype)
        y = model.run({"x:0": x}, outputs="y:0")["y:0"]
        assert y.dtype == np.dtype(dtype) and y.tolist() == [x.tolist()]


def test_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"):
        x = np.array([1, 2, 4, 0.5], getattr(ml_dtypes, name))
        tensor = oncilla.Tensor.of(x)
        assert tensor.dtype == name and tensor.nbytes == x.nbytes
        y = tensor.numpy()
        assert y.dtype == x.dtype and y.tolist() == x.tolist()
        assert y.ctypes.data == x.ctypes.data  # the same memory
    for name, values in (("int4", [-8, 7, 3]), ("uint4", [0, 15, 3]), ("int2", [-2, 1, 0, -1, 1]), ("uint2", [3, 0, 2]),
                         ("float4_e2m1fn", [6, -0.5, 1.5])):
        if not hasattr(ml_dtypes, name):
            continue
        x = np.array(values, getattr(ml_dtypes, name))
        tensor = oncilla.Tensor.of(x)
        assert tensor.dtype == name and tensor.shape == x.shape
        assert tensor.nbytes == -(-len(values) * (2 if "2" in name and "int" in name else 4) // 8)
        assert tensor.numpy().dtype == x.dtype and tensor.numpy().tolist() == x.tolist()


def test_bfloat16_through_a_model():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    graph = oncilla.Graph()
    x = graph.placeholder("bfloat16", [None], name="x")
    graph.op("Neg", x, name="y")
    with oncilla.load(graph, device="cpu") as model:
        y = model.run({"x:0": np.array([1.5, -2], ml_dtypes.bfloat16)}, outputs="y:0")["y:0"]
        assert y.dtype == ml_dtypes.bfloat16 and y.tolist() == [-1.5, 2]
        assert model.run({"x:0": [1.5]}, outputs="y:0")["y:0"].tolist() == [-1.5]


def test_strings():
    with one_op("StringUpper", "string", (None, None)) as model:
        run = lambda x: model.run({"x:0": x}, outputs="y:0")["y:0"]
        for x in (np.array([["ab", "c"]]), np.array([["ab", "c"]], object), [["ab", "c"]], np.array([[b"ab", b"c"]]),
                  np.array([[b"ab", "c"]], object)):
            y = run(x)
            assert y.dtype == object and y.tolist() == [["AB", "C"]]
        if hasattr(np.dtypes, "StringDType"):
            assert run(np.array([["ab", "c"]], np.dtypes.StringDType())).tolist() == [["AB", "C"]]
        odd = b"\xff\x00a"
        assert run([[odd]])[0, 0].encode("utf-8", "surrogateescape") == b"\xff\x00A"
        assert run(run([["x\xe9"]])).tolist() == [["X\xe9"]]
        with pytest.raises(TypeError):
            run(np.array([["a", 1]], object))
    graph = oncilla.Graph()
    graph.op("StringLower", graph.placeholder("string", [], name="x"), name="y")
    with oncilla.load(graph, device="cpu", strings="bytes") as model:
        assert model.run({"x:0": "AB"}, outputs="y:0")["y:0"].item() == b"ab"
        assert model.run({"x:0": b"\xffA"}, outputs="y:0")["y:0"].item() == b"\xffa"


def test_wrapping_makes_no_copy():
    x = np.arange(1 << 16, dtype=np.float32)
    assert np.asarray(oncilla.Tensor.of(x)).ctypes.data == x.ctypes.data
    from_python = oncilla.Tensor.of([1.0, 2.0])
    assert from_python.numpy().ctypes.data == np.asarray(from_python).ctypes.data


def test_a_run_copies_nothing_large():
    """Neither input nor output is copied: the process' memory grows by the output alone, which the array then holds."""
    import pathlib
    import re

    def resident(field):
        return int(re.search(rf"{field}:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024

    size = 1 << 26  # 256 MiB
    with one_op("Neg") as model:
        x = np.ones(size, np.float32)
        model.run({"x:0": np.zeros(4, np.float32)}, outputs="y:0")
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        before = resident("VmRSS")
        y = model.run({"x:0": x}, outputs="y:0")["y:0"]
        grown = resident("VmHWM") - before
        assert y.nbytes == size * 4 and 0.9 * y.nbytes < grown < 1.3 * y.nbytes
        assert y.flags.writeable and not y.flags.owndata
        target = np.empty(size, np.float32)
        z = model.run({"x:0": x}, outputs="y:0", into={"y:0": target})["y:0"]
        assert z is target and z.flags.writeable and z[0] == z[-1] == -1


def test_references_are_given_back(neg):
    import sys
    x = np.ones(1000, np.float32)
    before = sys.getrefcount(x)
    for _ in range(10):
        neg(x)
        neg(x[::2])
    gc.collect()
    _oncilla.drain()
    assert sys.getrefcount(x) <= before + 1  # an idle run may still refer to its last input


def test_an_output_does_not_share_an_input():
    for op in ("Identity", "Reshape"):
        graph = oncilla.Graph()
        x = graph.placeholder("float32", [None], name="x")
        graph.op(op, x, *([graph.constant([-1, 1], "int32")] if op == "Reshape" else []), name="y")
        with oncilla.load(graph, device="cpu") as model:
            x = np.ones(1000, np.float32)
            y = model.run({"x:0": x}, outputs="y:0")["y:0"]
            x[:] = 7
            assert (y == 1).all()


def test_results_that_are_nobody_elses_may_be_written_to():
    graph = oncilla.Graph()
    x = graph.placeholder("float32", [None], name="x")
    graph.op("Neg", x, name="y")
    graph.op("Identity", graph.constant(np.ones(4, np.float32)), name="c")
    one = np.ones(4, np.float32)
    with oncilla.load(graph, device="cpu") as model:
        for _ in range(2):
            result = model.run({"x:0": one}, outputs=["y:0", "c:0"])
            result["y:0"] *= 2
            assert result["y:0"].tolist() == [-2] * 4 and result.report
            # The model's constant; or a copy of it, which may be written to.
            constant = result["c:0"]
            assert constant.tolist() == [1] * 4
            if constant.flags.writeable:
                constant[:] = 5
        call = model.callable(["x:0"], ["y:0"])
        y = call(one)
        y += 1
        assert y.tolist() == [0] * 4 and call(one).tolist() == [-1] * 4
        before = model.run({"x:0": one}, outputs="y:0")
        later = model.run_async({"x:0": one}, outputs="y:0").result()
        later["y:0"][:] = 3
        assert before["y:0"].tolist() == [-1] * 4


def test_results_outlive_everything(neg):
    with one_op("Neg") as model:
        result = model.run({"x:0": np.full(5, 2, np.float32)}, outputs="y:0")
        y = result["y:0"]
    del result, model
    gc.collect()
    assert y.tolist() == [-2] * 5


def test_into_is_checked():
    with one_op("Neg") as model:
        x = np.ones(4, np.float32)
        for memory in (np.empty(3, np.float32), np.empty((4, 2), np.float32)):
            with pytest.raises(oncilla.InvalidArgumentError):
                model.run({"x:0": x}, outputs="y:0", into={"y:0": memory})
        with pytest.raises((ValueError, BufferError)):
            model.run({"x:0": x}, outputs="y:0", into={"y:0": np.empty(8, np.float32)[::2]})
        frozen = np.empty(4, np.float32)
        frozen.flags.writeable = False
        with pytest.raises((ValueError, BufferError)):
            model.run({"x:0": x}, outputs="y:0", into={"y:0": frozen})


def test_huge_inputs_are_refused(neg):
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1 << 58,), (0,))
    with pytest.raises((MemoryError, ValueError)):
        neg(huge)
