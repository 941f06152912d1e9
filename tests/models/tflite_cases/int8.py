"""Convolutions of quantised integers, against LiteRT's reference kernels, which round in one way: scales of channels, activations, padding."""
import functools

import numpy as np
import tflite_recorder
from tflite_recorder import Fed, Given, Out, options, random

case = functools.partial(tflite_recorder.case, reference=True)

X = (0.02, 5)


def weights(name, shape, axis, count, low=-127):
    scales = random(name + "s", [count], 0.002, 0.02).astype(np.float32)
    bias = random(name + "b", [count], -3000, 3000, np.int32)
    return (Given(random(name, shape, low, 127, np.int8), (scales, np.zeros(count, np.int64), axis)),
            Given(bias, (scales * np.float32(X[0]), np.zeros(count, np.int64), 0)))


for activation, name in ((0, "none"), (1, "relu"), (3, "relu6"), (2, "n1_to_1")):
    x = Fed(random("x" + name, [2, 17, 19, 8], -128, 127, np.int8), X)
    table = dict(padding=0, strideW=2, strideH=1, fusedActivationFunction=activation, dilationWFactor=1, dilationHFactor=1)
    w, b = weights(name, [16, 3, 3, 8], 0, 16)
    case(f"conv_i8_{name}", "CONV_2D", [x, w, b], Out(np.int8, q=(0.1 if activation != 2 else 0.008, -9)), options("Conv2DOptions", **table))
    w, b = weights(name + "d", [1, 3, 3, 8], 3, 8)
    case(f"depthwise_i8_{name}", "DEPTHWISE_CONV_2D", [x, w, b], Out(np.int8, q=(0.031, 12)),
         options("DepthwiseConv2DOptions", depthMultiplier=1, **table))
w, b = weights("one", [24, 1, 1, 40], 0, 24)
case("conv_i8_1x1", "CONV_2D", [Fed(random("big", [1, 24, 24, 40], -128, 127, np.int8), X), w, b], Out(np.int8, q=(0.07, 3)),
     options("Conv2DOptions", padding=1, strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1))
w, b = weights("deep", [1, 3, 2, 15], 3, 15)
case("depthwise_i8_multiplier", "DEPTHWISE_CONV_2D", [Fed(random("odd", [2, 13, 11, 5], -128, 127, np.int8), X), w, b], Out(np.int8, q=(0.03, -2)),
     options("DepthwiseConv2DOptions", padding=1, strideW=1, strideH=1, depthMultiplier=3, dilationWFactor=1, dilationHFactor=1))
