#!/usr/bin/env python3
"""Writes recorded/NAME for what a sweep through types, optional parts and attributes of ONNX's own operators found, as
make_recorded.py does for the rest.

    v/bin/python tests/conformance/recorded_sweep.py [NAME..]"""

import sys

import ml_dtypes
import numpy as np

import make_recorded
from make_recorded import Case, Numbers, f32

E4, E5, I4, U4 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4


def norms():
    n = Numbers("sweep_norms")
    channels = lambda: {"scale": n.f(3), "bias": n.f(3), "mean": n.f(3), "var": np.abs(n.f(3)) + 0.1}
    five = ["y", "mean_out", "var_out", "saved_mean", "saved_var"]
    Case("batch_norm9_training", "BatchNormalization", {"x": n.f(2, 3, 4, 5), **channels()}, five, opset=9, shown=3)
    Case("batch_norm9_one_result", "BatchNormalization", {"x": n.f(2, 3, 4, 5), **channels()}, ["y"], opset=9)
    Case("batch_norm7_training", "BatchNormalization", {"x": n.f(4, 3, 2), **channels()}, five, opset=7, shown=1)
    elements = {"scale": n.f(3, 4), "bias": n.f(3, 4), "mean": n.f(3, 4), "var": np.abs(n.f(3, 4)) + 0.1}
    Case("batch_norm7_elements", "BatchNormalization", {"x": n.f(2, 3, 4), **elements}, opset=7, spatial=0)
    x = n.f(2, 3, 4)
    Case("layer_norm_early", "LayerNormalization", {"x": x, "scale": n.f(4), "bias": n.f(4)}, 3, opset=12, epsilon=1e-3)
    Case("layer_norm_whole_scale", "LayerNormalization", {"x": x, "scale": n.f(2, 1, 4), "bias": n.f(4)}, opset=17)
    Case("layer_norm_whole_offset", "LayerNormalization", {"x": x, "scale": n.f(4), "bias": n.f(2, 3, 4)}, opset=17)
    Case("rms_norm_whole_scale", "RMSNormalization", {"x": x, "scale": n.f(2, 3, 4)}, opset=23)
    image = n.f(2, 3, 4, 5)
    Case("mean_variance_first", "MeanVarianceNormalization", {"x": image}, opset=7)
    Case("mean_variance_first_across", "MeanVarianceNormalization", {"x": image}, opset=7, across_channels=1)
    Case("mean_variance_first_mean", "MeanVarianceNormalization", {"x": image}, opset=7, normalize_variance=0)
    Case("thresholded_relu_first", "ThresholdedRelu", {"x": n.f(3, 5)}, opset=7, alpha=0.3)


def unpooling():
    n = Numbers("unpooling")

    def pooled(height, width, channels):
        x = n.f(2, channels, height, width)
        values, places = [], []
        for plane, image in enumerate(x.reshape(-1, height, width)):
            for i in range(height // 2):
                for j in range(width // 2):
                    window = image[2 * i:2 * i + 2, 2 * j:2 * j + 2]
                    at = window.argmax()
                    values.append(window.max())
                    places.append((plane * height + 2 * i + at // 2) * width + 2 * j + at % 2)
        shape = (2, channels, height // 2, width // 2)
        return {"x": np.array(values, np.float32).reshape(shape), "places": np.array(places).reshape(shape)}

    odd = {**pooled(5, 7, 3), "shape": np.array([2, 3, 5, 7])}
    Case("unpool_odd", "MaxUnpool", odd, opset=11, fixed=["shape"], kernel_shape=[2, 2], strides=[2, 2])
    Case("unpool_odd_fed", "MaxUnpool", odd, opset=11, kernel_shape=[2, 2], strides=[2, 2])
    Case("unpool_even", "MaxUnpool", pooled(4, 6, 2), opset=11, kernel_shape=[2, 2], strides=[2, 2])
    one = {"x": f32(1, 2, 3, 4).reshape(1, 1, 2, 2), "places": np.array([6, 8, 16, 18]).reshape(1, 1, 2, 2),
           "shape": np.array([1, 1, 5, 5])}
    Case("unpool_one_channel", "MaxUnpool", one, opset=11, kernel_shape=[2, 2], strides=[2, 2])


def types():
    n = Numbers("sweep_types")
    for name, dtype in (("e4m3", E4), ("e5m2", E5)):
        x = np.array([0, 1.5, -448, np.nan, np.inf, -np.inf]).astype(dtype)
        # What ONNX Runtime takes as stored tensors alone has its answer written here.
        wide = x.astype(np.float32)
        Case(f"is_nan_{name}", "IsNaN", {"x": x}, opset=20, answers=[np.isnan(wide)])
        Case(f"is_inf_{name}", "IsInf", {"x": x}, opset=20, detect_negative=0, answers=[np.isposinf(wide)])
    flags, places = n.f(4, 5) > 0, np.argsort(n.f(4, 5), axis=0)
    for reduction in ("add", "mul", "none"):
        Case(f"scatter_bool_{reduction}", "ScatterElements", {"x": flags, "i": places, "u": n.f(4, 5) > 0}, opset=18,
             reduction=reduction)
    Case("scatter_nd_bool", "ScatterND", {"x": flags, "i": np.array([[0], [2], [0]]), "u": n.f(3, 5) > 0}, opset=18,
         reduction="add")
    Case("cast_e4m3_words", "Cast", {"x": np.array([0, 1.5, -0.25, 448]).astype(E4)}, opset=21, to=8,
         answers=[np.array(["0", "1.5", "-0.25", "448"], object)])
    Case("cast_i4_words", "Cast", {"x": np.array([-8, 0, 7]).astype(I4)}, opset=21, to=8,
         answers=[np.array(["-8", "0", "7"], object)])
    Case("cast_u4_words", "Cast", {"x": np.array([0, 9, 15]).astype(U4)}, opset=21, to=8,
         answers=[np.array(["0", "9", "15"], object)])
    words = np.array(["0", "1", "-2.5", "0.0"], object)
    Case("cast_words_bool", "Cast", {"x": words}, opset=21, to=9)
    Case("cast_words_e4m3", "Cast", {"x": words}, opset=21, to=17, answers=[np.array([0, 1, -2.5, 0]).astype(E4)])
    Case("cast_words_i4", "Cast", {"x": np.array(["0", "7", "-8"], object)}, opset=21, to=22,
         answers=[np.array([0, 7, -8]).astype(I4)])
    heads = {"q": n.f(1, 2, 3, 4), "k": n.f(1, 2, 5, 4), "v": n.f(1, 2, 5, 4)}
    Case("attention_integer_mask", "Attention", {**heads, "mask": n.ids(3, 3, 4)}, opset=24)
    x = n.f(2, 12, 1).astype(np.float64)
    Case("dft_f64", "DFT", {"x": x}, opset=17, axis=1)
    Case("stft_f64", "STFT", {"x": n.f(1, 32, 1).astype(np.float64), "step": np.array(4), "w": n.f(8).astype(np.float64)},
         opset=17, fixed=["step"])
    a, b = n.u8(4), n.u8(4, 3)
    Case("qlinear_matmul_vector", "QLinearMatMul",
         {"a": a, "as": f32(0.02).reshape(1), "az": np.array([7], np.uint8), "b": b, "bs": f32(0.03), "bz": np.array(5, np.uint8),
          "ys": f32(0.1), "yz": np.array(9, np.uint8)}, opset=21)


if __name__ == "__main__":
    for each in (norms, unpooling, types):
        each()
    make_recorded.record(sys.argv[1:])
