#!/usr/bin/env python3
"""Writes recorded/edge_NAME: single ops of ONNX at the edges of what they take: sizes of one and zero, ties, rare attributes.

    v/bin/python tests/conformance/recorded_edges.py [NAME..]"""

import sys

import numpy as np

import make_recorded
from make_recorded import Case, Numbers, f32

i32 = lambda *values: np.array(values, np.int32)


def sums_of_products():
    """A label of size one stretches to the size that another operand has."""
    n = Numbers("sums of products")
    for name, equation, *shapes in (("summed", "ab,bc->ac", (2, 1), (3, 4)), ("batch", "abc,abd->acd", (1, 3, 2), (4, 3, 5)),
                                    ("kept", "ab,ab->ab", (1, 3), (2, 3)), ("both", "ab,ab->", (1, 3), (2, 1)),
                                    ("three", "ab,bc,cd->ad", (2, 1), (3, 1), (4, 5)), ("none", "a,a->", (0,), (1,)),
                                    ("diagonal", "aab,a->ab", (1, 1, 2), (3,)), ("dots", "a...,a...->...", (1, 2), (3, 2))):
        Case(f"edge_einsum_{name}", "Einsum", {f"x{i}": n.f(*s) for i, s in enumerate(shapes)}, equation=equation)


def pools():
    n = Numbers("pools")
    for shape in ((1, 2, 5), (2, 2, 3, 4), (2, 2, 3, 4, 5)):
        Case(f"edge_max_pool_columns_{len(shape) - 2}", "MaxPool", {"x": n.f(*shape)}, 2, storage_order=1,
             kernel_shape=[2] * (len(shape) - 2))
    for p in (1, 3, 4):
        Case(f"edge_global_lp_pool_{p}", "GlobalLpPool", {"x": n.f(2, 3, 4, 5)}, p=p)
        Case(f"edge_lp_pool_{p}", "LpPool", {"x": n.f(2, 3, 4, 5)}, p=p, kernel_shape=[2, 3], strides=[1, 2])


def convolutions():
    """Four spatial axes."""
    n = Numbers("convolutions")
    for name, attrs in (("plain", {}), ("window", dict(strides=[2, 1, 2, 1], dilations=[1, 2, 1, 1], pads=[1, 0, 1, 2, 2, 1, 0, 1])),
                        ("same", dict(auto_pad="SAME_UPPER", strides=[2, 2, 1, 1])), ("lower", dict(auto_pad="SAME_LOWER"))):
        Case(f"edge_conv_four_{name}", "Conv", {"x": n.f(2, 2, 4, 5, 4, 3), "w": n.f(3, 2, 2, 3, 2, 2), "b": n.f(3)}, **attrs)
    Case("edge_conv_four_groups", "Conv", {"x": n.f(1, 4, 3, 3, 3, 3), "w": n.f(6, 2, 2, 2, 2, 2)}, group=2)
    n = Numbers("transposed convolutions")
    for name, attrs in (("plain", {}), ("window", dict(strides=[3, 1, 2, 1], dilations=[2, 2, 1, 1], pads=[1, 0, 1, 1, 2, 1, 0, 1],
                                                       output_padding=[2, 0, 1, 0])),
                        ("same", dict(auto_pad="SAME_UPPER", strides=[2, 2, 1, 1])),
                        ("lower", dict(auto_pad="SAME_LOWER", strides=[1, 1, 1, 2])),
                        ("shape", dict(output_shape=[5, 6, 4, 4], strides=[2, 2, 1, 1])),
                        ("gaps", dict(strides=[4, 1, 1, 1], pads=[2, 0, 0, 0, 1, 0, 0, 0]))):
        Case(f"edge_conv_transpose_four_{name}", "ConvTranspose",
             {"x": n.f(2, 2, 3, 3, 4, 3), "w": n.f(2, 3, 2, 3, 2, 2), "b": n.f(3)}, **attrs)
    Case("edge_conv_transpose_four_groups", "ConvTranspose", {"x": n.f(1, 4, 2, 3, 2, 2), "w": n.f(4, 3, 2, 2, 2, 2)}, group=2)

    # A filter for each channel, with more channels than a vector has, and along one to three axes.
    n = Numbers("depthwise transposed convolutions")
    for name, size, taps, attrs in (
            ("line", [5], [4], dict(strides=[2], pads=[1, 1])), ("image", [3, 4], [4, 3], dict(strides=[2, 3], pads=[1, 0, 1, 2])),
            ("dilated", [4, 3], [3, 2], dict(strides=[2, 2], dilations=[3, 2], pads=[2, 1, 0, 1], output_padding=[1, 0])),
            ("gaps", [3, 2], [2, 2], dict(strides=[3, 4])), ("volume", [2, 3, 2], [2, 3, 2], dict(strides=[2, 1, 2], pads=[0, 1, 0, 0, 1, 1]))):
        Case(f"edge_conv_transpose_depthwise_{name}", "ConvTranspose",
             {"x": n.f(2, 21, *size), "w": n.f(21, 1, *taps), "b": n.f(21)}, group=21, **attrs)


def recurrent():
    """Samples without steps, which begin with a state."""
    n = Numbers("recurrent")
    steps, samples, size, units = 4, 3, 2, 5
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for direction, sides in (("forward", 1), ("bidirectional", 2)):
            states = {"h0": n.f(sides, samples, units)}
            if op == "LSTM":
                states["c0"] = n.f(sides, samples, units)
            Case(f"edge_{op.lower()}_no_steps_{direction}", op,
                 {"x": n.f(steps, samples, size), "w": n.f(sides, gates * units, size), "r": n.f(sides, gates * units, units),
                  "b": n.f(sides, 2 * gates * units), "lengths": i32(4, 0, 2), **states}, 2 + len(states) - 1,
                 hidden_size=units, direction=direction)


def resizes():
    """Coordinates that are ties but for a rounding."""
    line = lambda size: np.arange(size, dtype=np.float32).reshape(1, 1, size)
    for rule in ("round_prefer_ceil", "round_prefer_floor"):
        for name, size, to, mode in (("third", 7, 2, "asymmetric"), ("up", 7, 8, "asymmetric"), ("one", 7, 1, "tf_half_pixel_for_nn")):
            Case(f"edge_resize_{rule}_{name}", "Resize", {"x": line(size), "roi": None, "scales": None,
                                                          "sizes": np.array([1, 1, to], np.int64)}, opset=13, fixed=["sizes"],
                 mode="nearest", coordinate_transformation_mode=mode, nearest_mode=rule)
        Case(f"edge_resize_{rule}_crop", "Resize", {"x": line(6), "roi": f32(0, 0, 0.1, 1, 1, 0.9), "scales": None,
                                                    "sizes": np.array([1, 1, 10], np.int64)}, opset=13, fixed=["roi", "sizes"],
             mode="nearest", coordinate_transformation_mode="tf_crop_and_resize", nearest_mode=rule, extrapolation_value=-9.0)


def volumes():
    """Three axes and one, with channels that fill a vector and some beyond."""
    n = Numbers("volumes")
    for name, shape, sizes in (("volume", (2, 18, 3, 4, 2), (2, 18, 5, 3, 7)), ("line", (2, 18, 5), (2, 18, 8))):
        for mode, more in (("linear", dict(coordinate_transformation_mode="half_pixel")),
                           ("linear", dict(coordinate_transformation_mode="align_corners")),
                           ("nearest", dict(coordinate_transformation_mode="half_pixel"))):
            Case(f"edge_resize_{name}_{mode}_{more['coordinate_transformation_mode']}", "Resize",
                 {"x": n.f(*shape), "roi": None, "scales": None, "sizes": np.array(sizes)}, opset=13, fixed=["sizes"],
                 mode=mode, **more)


def old_resizes():
    """Opset 10 has no rule for pixels: an axis that grows repeats them, one that shrinks takes the next."""
    n = Numbers("old resizes")
    for mode in ("nearest", "linear"):
        for name, shape, scales in (("wide", (1, 2, 5, 6), (1, 1, 0.5, 2)), ("high", (2, 1, 5, 6), (1, 1, 1.7, 0.6)),
                                    ("volume", (1, 2, 3, 4, 5), (1, 1, 2, 0.6, 1.3)), ("line", (4, 6), (0.6, 1.5))):
            Case(f"edge_resize10_{mode}_{name}", "Resize", {"x": n.f(*shape), "scales": f32(*scales)}, opset=10,
                 fixed=["scales"], mode=mode)
    # Axes other than the last, which ONNX Runtime resizes by pixels too.
    for name, scales in (("channels", (1, 0.5, 2, 1)), ("batch", (2, 1, 0.5, 1)), ("all", (2, 0.5, 1.5, 0.4))):
        Case(f"edge_resize10_nearest_{name}", "Resize", {"x": n.f(2, 4, 3, 5), "scales": f32(*scales)}, opset=10,
             fixed=["scales"], mode="nearest")


def empties():
    for shape in ((2, 0), (0, 3), (0, 3, 2)):
        x = np.zeros(shape, np.float32)
        name = "x".join(map(str, shape))
        for opset in (11, 13):
            Case(f"edge_hardmax{opset}_{name}", "Hardmax", {"x": x}, opset=opset)
        Case(f"edge_softmax_{name}", "Softmax", {"x": x})
    Case("edge_hardmax_least", "Hardmax", {"x": f32(-np.inf, -np.inf).reshape(1, 2)})


if __name__ == "__main__":
    for each in (sums_of_products, pools, convolutions, recurrent, resizes, volumes, old_resizes, empties):
        each()
    make_recorded.record(sys.argv[1:])
