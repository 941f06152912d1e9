#!/usr/bin/env python3
"""Writes recorded/NAME for com.microsoft's ops on quantised tensors, as make_recorded.py does for the rest: all bytes
and scales that are powers of two, of which many results are ties.

    v/bin/python tests/conformance/recorded_quantised.py [NAME..]"""

import sys

import numpy as np

import make_recorded
from make_recorded import MS, Case, Numbers, f32

u8 = lambda v: np.array(v, np.uint8)
i8 = lambda v: np.array(v, np.int8)
EVERY = {u8: np.arange(256).astype(np.uint8), i8: np.arange(-128, 128).astype(np.int8)}
SCALES = ["xs", "xz", "ys", "yz"]


def qlinear(name, op, inputs, opset=None, outputs=1, **attrs):
    """`opset` is an attribute of QLinearSoftmax."""
    case = Case(name, op, inputs, outputs, domain=MS, **attrs)
    if opset is not None:
        case.attrs["opset"] = opset


def sums_and_products():
    n = Numbers("sums and products")
    for op in ("Add", "Mul"):
        for kind, number, zeros in (("u8", u8, (3, 131, 127)), ("i8", i8, (-5, 11, -9))):
            a, b = EVERY[number], EVERY[number][::37]
            qlinear(f"ms_qlinear_{op.lower()}_ties_{kind}", f"QLinear{op}",
                    {"a": a.reshape(1, 256), "as": f32(0.25), "az": number(zeros[0]), "b": b.reshape(-1, 1),
                     "bs": f32(0.125), "bz": number(zeros[1]), "cs": f32(0.5), "cz": number(zeros[2])},
                    fixed=["as", "az", "bs", "bz", "cs", "cz"])


    # Halves of a step but for roundings: sums round each product and sum once.
    for kind, number, zeros, scale, parts in (("u8", u8, (3, 131, 127), 0.0973, (2, 6)), ("i8", i8, (-5, 11, -9), 0.0896, (3, 6))):
        a, b = EVERY[number], EVERY[number][::37]
        qlinear(f"ms_qlinear_add_near_ties_{kind}", "QLinearAdd",
                {"a": a.reshape(1, 256), "as": f32(scale / parts[0]), "az": number(zeros[0]), "b": b.reshape(-1, 1),
                 "bs": f32(scale / parts[1]), "bz": number(zeros[1]), "cs": f32(scale), "cz": number(zeros[2])},
                fixed=["as", "az", "bs", "bz", "cs", "cz"])


def tables():
    n = Numbers("tables")
    for kind, number, zeros in (("u8", u8, (117, 33)), ("i8", i8, (-7, 21))):
        scaling = {"xs": f32(0.25), "xz": number(zeros[0]), "ys": f32(2**-5), "yz": number(zeros[1])}
        for op in ("Sigmoid", "LeakyRelu"):
            inputs = {"x": EVERY[number], **scaling}
            qlinear(f"ms_qlinear_{op.lower()}_all_{kind}", f"QLinear{op}", inputs, fixed=SCALES)
        qlinear(f"ms_qlinear_leakyrelu_given_{kind}", "QLinearLeakyRelu", {"x": EVERY[number], **scaling}, alpha=0.5)
        parts = {"a": EVERY[number].reshape(2, 128), "as": f32(0.25), "az": number(zeros[0]), "b": EVERY[number].reshape(2, 128),
                 "bs": f32(0.5), "bz": number(zeros[1]), "c": EVERY[number][:4].reshape(2, 2), "cs": f32(0.375),
                 "cz": number(zeros[0])}
        qlinear(f"ms_qlinear_concat_{kind}", "QLinearConcat", {"ys": f32(0.5), "yz": number(zeros[1]), **parts}, axis=1,
                fixed=["ys", "yz", "as", "az", "bs", "bz", "cs", "cz"])
        where = {"c": n.ids(2, 2, 256).astype(bool), "x": EVERY[number], "xs": f32(0.25), "xz": number(zeros[0]),
                 "y": EVERY[number][::-1].copy(), "ys": f32(0.75), "yz": number(zeros[1]), "zs": f32(0.5), "zz": number(1)}
        # Its signed kernel looks bytes up by their numbers, before the table where they are negative.
        if number is u8:
            qlinear("ms_qlinear_where_u8", "QLinearWhere", where, fixed=["xs", "xz", "ys", "yz", "zs", "zz"])


def softmax():
    n = Numbers("softmax")
    for name, x, scale, y_scale, y_zero, opset, axis in (
            ("uneven_scale", n.u8(8, 40), 0.11, 0.00391, u8(3), 13, -1),
            ("signed", n.i8(8, 40), 0.05, 1 / 256, i8(-128), 13, -1),
            ("first_axis", n.u8(30, 4, 5), 0.02, 1 / 255, u8(0), 13, 0),
            ("flat", n.u8(3, 4, 5), 0.02, 1 / 256, u8(0), 12, 1)):
        zero = np.zeros((), x.dtype)
        qlinear(f"ms_qlinear_softmax_{name}", "QLinearSoftmax",
                {"x": x, "xs": f32(scale), "xz": zero, "ys": f32(y_scale), "yz": y_zero}, opset=opset, axis=axis,
                fixed=SCALES)


def pools():
    n = Numbers("pools")
    for kind, number, zeros in (("u8", n.u8, (3, 131)), ("i8", n.i8, (-5, 11))):
        cast = u8 if kind == "u8" else i8
        scaling = {"xs": f32(0.25), "xz": cast(zeros[0]), "ys": f32(0.5), "yz": cast(zeros[1])}
        qlinear(f"ms_qlinear_average_pool_ties_{kind}", "QLinearAveragePool", {"x": number(1, 3, 16, 16), **scaling},
                kernel_shape=[2, 2], strides=[2, 2])
        qlinear(f"ms_qlinear_average_pool_ceil_{kind}", "QLinearAveragePool", {"x": number(1, 3, 7, 9), **scaling},
                kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
        qlinear(f"ms_qlinear_global_pool_ties_{kind}", "QLinearGlobalAveragePool", {"x": number(4, 32, 4, 4), **scaling})
        x = number(3, 4, 8)
        sums = (x.astype(np.int64) - zeros[0]).sum((0, 2), keepdims=True).astype(np.float32)
        ratio = np.float32(0.25) / (np.float32(0.5) * np.float32(24))
        limits = np.iinfo(x.dtype)
        mean = np.clip(np.rint(sums * ratio) + zeros[1], limits.min, limits.max).astype(x.dtype)
        qlinear(f"ms_qlinear_reduce_mean_{kind}", "QLinearReduceMean", {"x": x, **scaling}, answers=[mean], axes=[0, -1],
                keepdims=1)


def gemm():
    n = Numbers("gemm")
    inputs = {"a": n.u8(9, 33), "as": f32(0.5), "az": u8(120), "b": n.ids(5, 33, 20, dtype=np.uint8), "bs": f32(0.25),
              "bz": u8(2), "c": n.ids(900, 9, 1)}
    qlinear("ms_qgemm_ties", "QGemm", {**inputs, "ys": f32(2), "yz": u8(127)}, alpha=0.5)
    qlinear("ms_qgemm_signed", "QGemm",
            {"a": n.i8(33, 9), "as": f32(0.02), "az": i8(-20), "b": n.i8(20, 33),
             "bs": (np.abs(n.f(20)) / 90).astype(np.float32), "bz": n.i8(20), "c": n.ids(900, 20), "ys": f32(0.61),
             "yz": i8(-3)}, transA=1, transB=1)


def linear():
    """QuantizeLinear and DequantizeLinear of 16 bits, convolutions with channels last, sums of 16-bit integers."""
    n = Numbers("linear")
    for kind, zero in (("u16", np.array(31000, np.uint16)), ("i16", np.array(-77, np.int16))):
        x = n.f(4, 9) * 40
        qlinear(f"ms_quantize_{kind}", "QuantizeLinear", {"x": x, "s": f32(0.0173), "z": zero}, fixed=["s", "z"])
        q = n.ids(65536, 4, 9, dtype=np.int64).astype(zero.dtype)
        qlinear(f"ms_dequantize_{kind}", "DequantizeLinear", {"x": q, "s": f32(0.0173), "z": zero}, fixed=["s", "z"])
    qlinear("ms_dequantize_axis", "DequantizeLinear",
            {"x": n.i8(3, 4), "s": np.abs(n.f(3)), "z": np.zeros(3, np.int8)}, axis=0, fixed=["s", "z"])
    qlinear("ms_qlinear_conv_last", "QLinearConv",
            {"x": n.u8(1, 6, 5, 4), "xs": f32(0.02), "xz": u8(100), "w": n.i8(3, 4, 3, 3), "ws": f32([0.01, 0.02, 0.03]),
             "wz": np.zeros(3, np.int8), "ys": f32(0.05), "yz": u8(120), "b": n.ids(900, 3)}, channels_last=1,
            kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 1],
            fixed=["xs", "xz", "w", "ws", "wz", "ys", "yz", "b"])
    qlinear("ms_matmul_integer16", "MatMulInteger16",
            {"a": n.ids(4000, 3, 7).astype(np.int16) - np.int16(2000), "b": n.ids(4000, 7, 5).astype(np.int16) - np.int16(2000)})
    qlinear("ms_qlinear_sigmoid_no_zeros", "QLinearSigmoid",
            {"x": n.u8(2, 9), "xs": f32(0.04), "xz": None, "ys": f32(1 / 256), "yz": None}, fixed=["xs", "ys"])
    for kind, x in (("u8", n.u8(1, 7, 6, 3)), ("i8", n.i8(1, 7, 6, 3))):
        qlinear(f"ms_nhwc_max_pool_{kind}", "NhwcMaxPool", {"x": x}, kernel_shape=[3, 2], strides=[2, 2],
                pads=[1, 0, 1, 0], dilations=[1, 2])


def embeddings():
    n = Numbers("embeddings")
    for name, cast, zero in (("u8", n.u8, u8(120)), ("i8", n.i8, i8(-3))):
        tables = {"words": cast(11, 8), "places": cast(6, 8), "types": cast(2, 8), "gamma": cast(8), "beta": cast(8)}
        scales = {f"{t}_scale": f32(0.01 + 0.003 * i) for i, t in enumerate(tables)}
        zeros = {f"{t}_zero": zero for t in tables}
        qlinear(f"ms_qembed_{name}", "QEmbedLayerNormalization",
                {"ids": n.ids(11, 2, 4), "segments": n.ids(2, 2, 4), **tables,
                 "mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32), **scales, **zeros}, outputs=2)


def layers():
    n = Numbers("layers")
    for name, batch, directions, dtype, columns in (("one", 1, 1, np.int8, False), ("columns", 1, 1, np.int8, True),
                                                    ("both", 1, 2, np.uint8, False)):
        size, units = 6, 5
        cast = lambda *shape: n.u8(*shape) if dtype == np.uint8 else n.i8(*shape)
        shape = (directions, 4 * units) if columns else (directions,)
        zero = np.full(shape, 128 if dtype == np.uint8 else 0, dtype)
        inputs = {"x": n.f(7, batch, size), "w": cast(directions, size, 4 * units), "r": cast(directions, units, 4 * units),
                  "b": n.f(directions, 8 * units), "lengths": None, "h0": n.f(directions, batch, units),
                  "c0": n.f(directions, batch, units), "p": None,
                  "ws": (np.abs(n.f(*shape)) / 90 + 0.001).astype(np.float32), "wz": zero,
                  "rs": (np.abs(n.f(*shape)) / 90 + 0.001).astype(np.float32), "rz": zero}
        qlinear(f"ms_dynamic_lstm_{name}", "DynamicQuantizeLSTM", inputs, outputs=3, hidden_size=units,
                direction="bidirectional" if directions == 2 else "forward",
                fixed=["w", "r", "b", "ws", "wz", "rs", "rz"])


if __name__ == "__main__":
    for each in (sums_and_products, tables, softmax, pools, gemm, linear, embeddings, layers):
        each()
    make_recorded.record(sys.argv[1:])
