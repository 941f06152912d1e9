#!/usr/bin/env python3
"""Writes recorded/qdq_*: small nets between QuantizeLinear and DequantizeLinear, as quantising tools write them, with
what ONNX Runtime answers, as make_recorded.py does for single ops. Results of bytes must be equal; ONNX Runtime computes
them on integers, so that a net which is computed on real numbers differs by a step here and there.

    v/bin/python tests/conformance/recorded_nets.py [NAME..]"""

import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from make_recorded import OUT, Numbers

NETS = {}


def net(function):
    NETS[function.__name__] = function
    return function


class Net:
    """A graph that grows node by node; tensors are names."""

    def __init__(self, name):
        self.name, self.nodes, self.stored, self.sparse, self.feeds, self.outputs = name, [], [], [], {}, []
        self.numbers = Numbers(name)

    def const(self, array, type=None):
        name = f"c{len(self.stored)}"
        tensor = numpy_helper.from_array(np.asarray(array), name) if type is None else helper.make_tensor(
            name, type, np.shape(array), np.ravel(array))
        self.stored.append(tensor)
        return name

    def few(self, dense, name="", by_axis=True, order=1):
        """A SparseTensorProto; its places by coordinates or as numbers of elements, forwards or backwards."""
        places = np.argwhere(dense) if by_axis else np.flatnonzero(dense)
        return helper.make_sparse_tensor(numpy_helper.from_array(dense[dense != 0][::order], name),
                                         numpy_helper.from_array(places[::order].astype(np.int64), f"{name}_places"),
                                         dense.shape)

    def sparse_const(self, dense, **form):
        name = f"s{len(self.sparse)}"
        self.sparse.append(self.few(dense, name, **form))
        return name

    def input(self, array):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = array
        return name

    def add(self, op, *inputs, **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attrs))
        return name

    def q(self, x, scale, zero=128, type=np.uint8):
        return self.add("QuantizeLinear", x, self.const(np.float32(scale)), self.const(type(zero)))

    def dq(self, x, scale, zero=128, type=np.uint8):
        return self.add("DequantizeLinear", x, self.const(np.float32(scale)), self.const(type(zero)))

    def through(self, x, scale, zero=128, type=np.uint8):
        return self.dq(self.q(x, scale, zero, type), scale, zero, type)

    def image(self, *shape, scale=0.02):
        return self.dq(self.input(self.numbers.u8(*shape)), scale)

    def weights(self, *shape, axis=0, scale=0.01):
        """Signed bytes with a scale for each place along the axis; returned with the scales."""
        ints = (self.numbers.i8(*shape) // 2).astype(np.int8)
        scales = (scale * (1 + 0.1 * np.arange(shape[axis]) % 0.7)).astype(np.float32)
        return self.add("DequantizeLinear", self.const(ints), self.const(scales),
                        self.const(np.zeros(shape[axis], np.int8)), axis=axis), scales

    def bias(self, x_scale, scales):
        ints = self.numbers.ids(2000, len(scales), dtype=np.int32) - 1000
        return self.add("DequantizeLinear", self.const(ints), self.const((np.float32(x_scale) * scales)),
                        self.const(np.zeros(len(scales), np.int32)), axis=0)

    def model(self, types=None):
        infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                 for k, v in self.feeds.items()]
        outs = [helper.make_tensor_value_info(o, *types[o]) if types else onnx.ValueInfoProto(name=o)
                for o in self.outputs]
        graph = helper.make_graph(self.nodes, self.name, infos, outs, self.stored, sparse_initializer=self.sparse)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], producer_name="oncilla")
        model.ir_version = 10
        return model

    def record(self):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(self.model().SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        answers = session.run(self.outputs, self.feeds)
        types = {o: (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for o, a in zip(self.outputs, answers)}
        folder = OUT / self.name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "test_data_set_0").mkdir(parents=True)
        (folder / "model.onnx").write_bytes(self.model(types).SerializeToString())
        for kind, arrays in (("input", self.feeds.values()), ("output", answers)):
            for i, array in enumerate(arrays):
                data = numpy_helper.from_array(np.asarray(array)).SerializeToString()
                (folder / "test_data_set_0" / f"{kind}_{i}.pb").write_bytes(data)


@net
def qdq_conv(g):
    w, scales = g.weights(6, 4, 3, 3)
    y = g.add("Conv", g.image(2, 4, 9, 8), w, g.bias(0.02, scales), pads=[1, 1, 1, 1], strides=[2, 2])
    g.outputs = [g.q(g.add("Relu", y), 0.05, 0)]


@net
def qdq_conv_no_bias(g):
    w, _ = g.weights(5, 3, 1, 1)
    g.outputs = [g.q(g.add("Conv", g.image(1, 3, 7, 7), w), 0.03, 110)]


@net
def qdq_conv_depthwise(g):
    w, scales = g.weights(8, 1, 3, 3)
    y = g.add("Conv", g.image(1, 8, 6, 6), w, g.bias(0.02, scales), group=8, pads=[1, 1, 1, 1])
    y = g.add("Clip", y, g.const(np.float32(0)), g.const(np.float32(6)))
    g.outputs = [g.q(y, 0.03, 3)]


@net
def qdq_residual(g):
    x = g.image(1, 8, 6, 6)
    w, scales = g.weights(8, 8, 3, 3)
    y = g.through(g.add("Conv", x, w, g.bias(0.02, scales), pads=[1, 1, 1, 1]), 0.1, 120)
    y = g.through(g.add("Relu", g.add("Add", y, x)), 0.06, 0)
    y = g.through(g.add("GlobalAveragePool", y), 0.04, 0)
    y = g.through(g.add("Flatten", y), 0.04, 0)
    w, scales = g.weights(5, 8)
    y = g.through(g.add("Gemm", y, w, g.bias(0.04, scales), transB=1), 0.05)
    g.outputs = [y]


@net
def qdq_sums(g):
    """Sums and products of bytes near halves of a step, which ONNX Runtime computes as QLinearAdd and QLinearMul."""
    every = np.arange(256).astype(np.uint8)
    scale = 0.0973
    a, b = g.input(np.tile(every, (7, 1))), g.input(np.repeat(every[::37], 256).reshape(7, 256))
    x, y = g.dq(a, scale / 2, 3), g.dq(b, scale / 6, 131)
    factor = g.dq(b, 1 / 3, 100)
    signed = g.input((np.arange(7 * 256) % 256 - 128).astype(np.int8).reshape(7, 256))
    z = g.dq(signed, scale / 3, -5, np.int8)
    g.outputs = [g.q(g.add("Add", x, y), scale, 127), g.q(g.add("Relu", g.add("Add", y, x)), scale, 0),
                 g.q(g.add("Mul", x, factor), scale, 7), g.q(g.add("Add", z, z), scale / 2, 4, np.int8)]


@net
def qdq_products(g):
    a, b = g.image(2, 3, 5, 8), g.image(2, 3, 7, 8, scale=0.01)
    y = g.through(g.add("MatMul", a, g.add("Transpose", b, perm=[0, 1, 3, 2])), 0.02, 100)
    w, _ = g.weights(7, 6, axis=1)
    g.outputs = [g.q(g.add("MatMul", y, w), 0.01, 90)]


@net
def qdq_signed(g):
    x = g.dq(g.input(g.numbers.i8(1, 4, 5, 5)), 0.02, 0, np.int8)
    w, scales = g.weights(6, 4, 3, 3)
    y = g.through(g.add("Conv", x, w, g.bias(0.02, scales)), 0.1, 0, np.int8)
    y = g.through(g.add("LeakyRelu", y, alpha=0.1), 0.08, -20, np.int8)
    g.outputs = [g.q(g.add("Sigmoid", y), 1 / 256, -128, np.int8)]


@net
def qdq_tables(g):
    x = g.image(3, 40, scale=0.05)
    g.outputs = [g.q(g.add("HardSwish", x), 0.04, 20), g.q(g.add("Mul", g.add("Sigmoid", x), x), 0.04, 20),
                 g.q(g.add("Elu", x, alpha=0.7), 0.05, 30), g.q(g.add("Tanh", x), 1 / 128, 128)]


@net
def qdq_pools(g):
    # Halves at every step, and odd zero points: how they are rounded shows.
    x = g.dq(g.input(g.numbers.u8(2, 5, 12, 9)), 0.5, 117)
    signed = g.dq(g.input(g.numbers.i8(1, 3, 8, 8)), 0.25, -3, np.int8)
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    g.outputs = [g.q(g.add("AveragePool", x, **pool), 0.5, 117),
                 g.q(g.add("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), 0.37, 101),
                 g.q(g.add("AveragePool", x, kernel_shape=[3, 2], pads=[1, 1, 1, 1], count_include_pad=1), 0.5, 117),
                 g.q(g.add("AveragePool", signed, **pool), 0.25, -3, np.int8),
                 g.q(g.add("GlobalAveragePool", x), 0.05, 99)]


@net
def qdq_upsampled(g):
    x = g.image(1, 4, 5, 7)
    y = g.through(g.add("Resize", x, "", g.const(np.float32([1, 1, 2, 3])), mode="nearest",
                        coordinate_transformation_mode="asymmetric", nearest_mode="floor"), 0.02)
    other = g.image(1, 6, 10, 21)
    y = g.through(g.add("Concat", y, other, axis=1), 0.02)
    z = g.add("Resize", x, "", "", g.const(np.array([1, 4, 3, 15])), mode="nearest")
    g.outputs = [y, g.q(z, 0.02)]


@net
def qdq_softmax(g):
    x = g.dq(g.input(g.numbers.u8(6, 40)), 0.04, 120)
    g.outputs = [g.q(g.add("Softmax", x, axis=-1), 1 / 256, 0), g.q(g.add("Softmax", x, axis=0), 1 / 256, 0)]


@net
def qdq_moves(g):
    x = g.image(1, 4, 6, 6)
    y = g.through(g.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), 0.02)
    y = g.through(g.add("Transpose", y, perm=[0, 2, 3, 1]), 0.02)
    y = g.through(g.add("Reshape", y, g.const(np.array([1, 9, 4]))), 0.02)
    other = g.through(g.input(g.numbers.f(1, 2, 4)), 0.03, 100)
    g.outputs = [g.q(g.add("Concat", y, other, axis=1), 0.02)]


def few_bits(name, type, bits, block, transposed=False, zeros=True):
    def make(g):
        depth, columns = 256, 264
        high = 1 << bits
        low = high // 2 if type in (TensorProto.INT4, TensorProto.INT2, TensorProto.INT8) else 0
        ints = g.numbers.ids(high, depth, columns) - low
        blocks = depth // block if block else 1
        scales = np.exp2(-g.numbers.ids(4, blocks, columns)).astype(np.float32)
        points = g.numbers.ids(high, blocks, columns) - low if zeros else None
        axis = 0
        if transposed:
            ints, scales, axis = ints.T, scales.T, 1
            points = points.T if zeros else None
        inputs = [g.const(ints, type), g.const(scales if block else scales.ravel())]
        if zeros:
            inputs.append(g.const(points if block else points.ravel(), type))
        attrs = {"axis": axis, "block_size": block} if block else {"axis": 1 - axis}
        w = g.add("DequantizeLinear", *inputs, **attrs)
        if transposed:
            w = g.add("Transpose", w, perm=[1, 0])
        # Few digits, so that sums are exact in whatever order they are added.
        x = [np.round(g.numbers.f(*rows, depth) * 8) / 8 for rows in ((2, 7), (1,))]
        g.outputs = [g.add("MatMul", g.input(each.astype(np.float32)), w) for each in x]
    make.__name__ = name
    net(make)


@net
def weights_table(g):
    ids = g.input(g.numbers.ids(1000, 3, 4, dtype=np.int64))
    rows = g.add("DequantizeLinear", g.const(g.numbers.i8(1000, 72)), g.const(np.abs(g.numbers.f(1000)) / 99),
                 g.const(g.numbers.i8(1000)), axis=0)
    packed = g.add("DequantizeLinear", g.const(g.numbers.ids(16, 1000, 72), TensorProto.UINT4),
                   g.const(np.abs(g.numbers.f(1000, 3))), g.const(g.numbers.ids(16, 1000, 3), TensorProto.UINT4), axis=1,
                   block_size=24)
    g.outputs = [g.add("Gather", rows, ids), g.add("Gather", packed, ids)]


@net
def weights_sparse(g):
    def dense(*shape, dtype=np.float32):
        # A row without values, and the last element with one.
        values = np.where(g.numbers.f(*shape) > 0.8, g.numbers.ids(99, *shape) - 120, 0).astype(dtype)
        values[0], values.flat[-1] = 0, 1
        return values
    y = g.add("MatMul", g.input(g.numbers.f(4, 30)), g.sparse_const(dense(30, 17)))
    y = g.add("Add", y, g.sparse_const(dense(17), by_axis=False))
    places = [g.sparse_const(dense(3, 5, 7, dtype=t), by_axis=b, order=o)
              for t, b, o in ((np.int64, False, -1), (np.float16, True, 1), (np.uint8, True, -1), (np.float64, False, 1))]
    held = g.add("Constant", sparse_value=g.few(dense(6, 2, dtype=np.int32)))
    flat = g.add("Constant", sparse_value=g.few(dense(6, 2).astype(bool), by_axis=False))
    none = g.add("Constant", sparse_value=g.few(np.zeros((2, 3), np.float32)))
    g.outputs = [y, *(g.add("Identity", each) for each in (*places, held, flat, none))]


few_bits("weights_int4_blocks", TensorProto.INT4, 4, 32)
few_bits("weights_uint4_blocks_transposed", TensorProto.UINT4, 4, 16, transposed=True)
few_bits("weights_int4_columns", TensorProto.INT4, 4, 0, zeros=False)
few_bits("weights_int8_columns", TensorProto.INT8, 8, 0, zeros=False)
few_bits("weights_uint8_blocks", TensorProto.UINT8, 8, 64)

if __name__ == "__main__":
    for chosen in sys.argv[1:] or NETS:
        made = Net(chosen)
        NETS[chosen](made)
        made.record()
