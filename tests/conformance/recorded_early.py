#!/usr/bin/env python3
"""Writes recorded/NAME for ops that com.microsoft had before ONNX, and those that ONNX Runtime's transformers tool leaves in
diffusion models. The latter have no kernels on its CPU provider: their answers are worked out here by their definitions.

    v/bin/python tests/conformance/recorded_early.py [NAME..]"""

import math
import sys

import numpy as np

import make_recorded
from make_recorded import MS, Case, Numbers, f32


def early():
    n = Numbers("early")
    Case("ms_grid_sample", "GridSample", {"x": n.f(1, 2, 4, 5), "grid": n.f(1, 3, 3, 2) / 2}, domain=MS, mode="bilinear",
         padding_mode="border", align_corners=1)
    Case("ms_expand_dims", "ExpandDims", {"x": n.f(2, 3), "axis": np.array(-2, np.int32)}, domain=MS, fixed=["axis"])
    Case("ms_pad", "Pad", {"x": n.f(2, 3), "pads": np.array([0, 1, 2, 0], np.int64), "value": f32([1.5])}, domain=MS,
         fixed=["pads", "value"])
    Case("ms_pad_reflect", "Pad", {"x": n.f(3, 4), "pads": np.array([1, 2, 0, 1], np.int64)}, domain=MS, fixed=["pads"],
         mode="reflect")
    Case("ms_gather_nd", "GatherND", {"x": n.f(3, 4), "at": np.array([[0, 1], [2, 3]], np.int64)}, domain=MS)
    Case("ms_range", "Range", {"start": f32(1), "limit": f32(7.5)}, domain=MS)
    Case("ms_range_step", "Range", {"start": f32(1), "limit": f32(7.5), "step": f32(1.25)}, domain=MS)
    Case("ms_transpose_matmul", "TransposeMatMul", {"a": n.f(4, 3), "b": n.f(5, 4)}, domain=MS, alpha=0.5, transA=1, transB=1)
    words = np.array([["one two", "three"], ["", "a-b c_d"]], object)
    Case("ms_tokenizer", "Tokenizer", {"x": words}, domain=MS, mark=0, mincharnum=1, pad_value="#", tokenexp="[a-z_]+")
    Case("where_strings", "Where", {"c": np.array([[True], [False]]), "x": words, "y": np.array(["u", "v"], object)})
    Case("slice_backwards_from_before", "Slice", {"x": f32([0, 1, 2]), "s": np.array([-9], np.int64), "e": np.array([-9], np.int64),
                                                  "a": np.array([0], np.int64), "d": np.array([-1], np.int64)})
    Case("pad_shifts", "Pad", {"x": n.f(2, 5), "p": np.array([0, 2, 0, -2], np.int64)})
    Case("conv_strided_pixel", "Conv", {"x": n.f(2, 3, 1, 1), "w": n.f(4, 3, 1, 1)}, fixed=["w"], strides=[2, 2])
    Case("pool_hangs_over", "MaxPool", {"x": n.f(1, 2, 1, 3)}, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)


def distances():
    n = Numbers("distances")
    for metric in ("sqeuclidean", "euclidean"):
        Case(f"ms_cdist_{metric}", "CDist", {"a": n.f(5, 3), "b": n.f(4, 3)}, domain=MS, metric=metric)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def group_norm(x, gamma, beta, groups, silu, epsilon=1e-5):
    n, h, w, c = x.shape
    parts = x.astype(np.float64).reshape(n, h * w, groups, c // groups)
    mean, var = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
    y = ((parts - mean) / np.sqrt(var + epsilon)).reshape(x.shape) * gamma + beta
    return (y / (1 + np.exp(-y)) if silu else y).astype(np.float32)


def convolved(x, w, bias, stride):
    """Channels last, filters [M, kH, kW, C], without padding."""
    kh, kw = w.shape[1:3]
    rows, columns = (x.shape[1] - kh) // stride + 1, (x.shape[2] - kw) // stride + 1
    y = np.empty((x.shape[0], rows, columns, w.shape[0]))
    for i in range(rows):
        for j in range(columns):
            y[:, i, j] = np.einsum("nhwc,mhwc->nm", x[:, i * stride:i * stride + kh, j * stride:j * stride + kw], w)
    return (y + bias).astype(np.float32)


def diffusion():
    n = Numbers("diffusion")
    x, bias, skip = n.f(2, 5, 8), n.f(8), n.f(2, 5, 8)
    Case("ms_bias_add", "BiasAdd", {"x": x, "b": bias, "skip": skip}, domain=MS, answers=[x + bias + skip])
    both = x + bias
    Case("ms_bias_split_gelu", "BiasSplitGelu", {"x": x, "b": bias}, domain=MS,
         answers=[(both[..., :4] * gelu(both[..., 4:])).astype(np.float32)])
    picture, gamma, beta, more, lift = n.f(2, 3, 4, 8), n.f(8), n.f(8), n.f(2, 8), n.f(8)
    for silu in (0, 1):
        Case(f"ms_group_norm_{silu}", "GroupNorm", {"x": picture, "gamma": gamma, "beta": beta}, domain=MS, groups=4,
             activation=silu, answers=[group_norm(picture, gamma, beta, 4, silu)])
    total = picture + more[:, None, None] + lift
    Case("ms_skip_group_norm", "SkipGroupNorm", {"x": picture, "gamma": gamma, "beta": beta, "skip": more, "b": lift}, 2,
         domain=MS, groups=2, activation=1, answers=[group_norm(total, gamma, beta, 2, 1), total])
    image, w, b = n.f(1, 6, 5, 4), n.f(3, 3, 3, 4), n.f(3)
    Case("ms_nhwc_conv", "NhwcConv", {"x": image, "w": w, "b": b}, domain=MS, strides=[2, 2], kernel_shape=[3, 3],
         answers=[convolved(image, w, b, 2)])
    added = n.f(1, 4, 3, 3)
    Case("ms_nhwc_fused_conv", "NhwcFusedConv", {"x": image, "w": w.transpose(0, 3, 1, 2).copy(), "b": b, "z": added},
         domain=MS, activation="Relu", kernel_shape=[3, 3],
         answers=[np.maximum(convolved(image, w, b, 1) + added, 0)])
    a, c = n.f(3, 4) / 2, n.f(4, 5) / 2
    y = a @ c
    tanh = y * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
    Case("ms_gemm_fast_gelu", "GemmFastGelu", {"a": a, "b": c}, domain=MS, answers=[tanh.astype(np.float32)])


if __name__ == "__main__":
    for each in (early, distances, diffusion):
        each()
    make_recorded.record(sys.argv[1:])
