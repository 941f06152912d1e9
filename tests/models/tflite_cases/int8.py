"""Arithmetic on quantised integers, against LiteRT's reference kernels, which round in one way: scales of channels, activations, padding."""
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

# The old form of bytes, with zero points of weights too.
X8 = (0.02, 121)
for activation, name in ((0, "none"), (3, "relu6")):
    x = Fed(random("xu" + name, [2, 9, 11, 6], 0, 255, np.uint8), X8)
    shape = dict(padding=0, strideW=1, strideH=2, fusedActivationFunction=activation, dilationWFactor=1, dilationHFactor=1)
    bias = Given(random("bu" + name, [7], -3000, 3000, np.int32), (0.02 * 0.01, 0))
    case(f"conv_u8_{name}", "CONV_2D", [x, Given(random("wu" + name, [7, 3, 3, 6], 0, 255, np.uint8), (0.01, 130)), bias],
         Out(np.uint8, q=(0.05, 90)), options("Conv2DOptions", **shape))
    bias = Given(random("du" + name, [12], -3000, 3000, np.int32), (0.02 * 0.01, 0))
    case(f"depthwise_u8_{name}", "DEPTHWISE_CONV_2D", [x, Given(random("vu" + name, [1, 3, 3, 12], 0, 255, np.uint8), (0.01, 117)), bias],
         Out(np.uint8, q=(0.03, 128)), options("DepthwiseConv2DOptions", depthMultiplier=2, **shape))

# 16-bit activations, with 64-bit sums.
scales = random("s16", [5], 0.002, 0.02).astype(np.float32)
x = Fed(random("x16", [1, 8, 7, 4], -32768, 32767, np.int16), (0.0003, 0))
w = Given(random("w16", [5, 3, 3, 4], -127, 127, np.int8), (scales, np.zeros(5, np.int64), 0))
case("conv_i16", "CONV_2D", [x, w, Given(random("b16", [5], -90000, 90000, np.int64), (scales * np.float32(0.0003), np.zeros(5, np.int64), 0))],
     Out(np.int16, q=(0.0011, 0)), options("Conv2DOptions", padding=0, strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1))

for activation, name in ((0, "none"), (1, "relu")):
    x = Fed(random("fx" + name, [5, 33], -128, 127, np.int8), (0.04, -7))
    one = Given(random("fw" + name, [9, 33], -127, 127, np.int8), (0.013, 0))
    bias = Given(random("fb" + name, [9], -5000, 5000, np.int32), (0.04 * 0.013, 0))
    dense = options("FullyConnectedOptions", fusedActivationFunction=activation)
    case(f"dense_i8_{name}", "FULLY_CONNECTED", [x, one, bias], Out(np.int8, q=(0.11, 4)), dense)
    x = Fed(random("gx" + name, [5, 33], 0, 255, np.uint8), (0.04, 99))
    one = Given(random("gw" + name, [9, 33], 0, 255, np.uint8), (0.013, 140))
    case(f"dense_u8_{name}", "FULLY_CONNECTED", [x, one, bias], Out(np.uint8, q=(0.11, 100)), dense)

# Two operands that are computed, as in attention: their zero points are any, and both may have 16 bits.
dense = options("FullyConnectedOptions")
case("dense_i8_any_zero", "FULLY_CONNECTED", [Fed(random("za", [5, 33], -128, 127, np.int8), (0.04, -7)), Fed(random("zb", [9, 33], -128, 127, np.int8), (0.013, -20))],
     Out(np.int8, q=(0.21, 4)), dense)
case("dense_i16_both", "FULLY_CONNECTED", [Fed(random("wa", [5, 33], -32768, 32767, np.int16), (0.0004, 0)), Fed(random("wb", [9, 33], -32768, 32767, np.int16), (0.00013, 0))],
     Out(np.int16, q=(0.0021, 0)), dense)
# Rows of zeros have the scale 0.
rows = Given(random("rows0", [6, 12], -127, 127, np.int8), (np.array([0.01, 0, 0.02, 0.013, 0, 0.007], np.float32), np.zeros(6, np.int64), 0))
case("embedding_scale_0", "EMBEDDING_LOOKUP", [np.array([0, 1, 5, 4, 1, 2], np.int32), rows], Out())

for op, kind in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")):
    for activation, name in ((0, "none"), (3, "relu6")):
        a = Fed(random(op + name, [3, 7, 11], -128, 127, np.int8), (0.031, -11))
        c = Fed(random(op + name + "c", [3, 1, 11], -128, 127, np.int8), (0.044, 23))
        case(f"{op.lower()}_i8_{name}", op, [a, c], Out(np.int8, q=(0.06, 3)), options(kind, fusedActivationFunction=activation))
        a = Fed(random(op + name + "u", [3, 7, 11], 0, 255, np.uint8), (0.031, 120))
        c = Fed(random(op + name + "v", [3, 7, 11], 0, 255, np.uint8), (0.044, 131))
        case(f"{op.lower()}_u8_{name}", op, [a, c], Out(np.uint8, q=(0.06, 110)), options(kind, fusedActivationFunction=activation))

every = np.arange(-128, 128).astype(np.int8)
case("requantise_i8", "QUANTIZE", [Fed(every, (0.05, 7))], Out(np.int8, q=(0.031, -3)))
case("requantise_i8_u8", "QUANTIZE", [Fed(every, (0.05, 7))], Out(np.uint8, q=(0.07, 128)))
case("requantise_same_u8", "QUANTIZE", [Fed(every, (0.05, 7))], Out(np.uint8, q=(0.05, 135)))
case("requantise_i16_i8", "QUANTIZE", [Fed(random("q16", [200], -32768, 32767, np.int16), (0.0004, 0))], Out(np.int8, q=(0.1, 5)))
for op in ("MAXIMUM", "MINIMUM"):
    a, c = (Fed(random(op + n, [3, 7], -128, 127, np.int8), (0.05, 7)) for n in "ac")
    case(f"{op.lower()}_i8", op, [a, c], Out(np.int8, q=(0.05, 7)))
for op in ("RELU", "RELU6"):
    case(f"{op.lower()}_i8", op, [Fed(every, (0.06, 9))], Out(np.int8, q=(0.035, -70)))
    case(f"{op.lower()}_u8", op, [Fed(np.arange(256).astype(np.uint8), (0.06, 99))], Out(np.uint8, q=(0.06, 99)))
pool = options("Pool2DOptions", padding=0, strideW=2, strideH=1, filterWidth=2, filterHeight=3, fusedActivationFunction=0)
case("average_pool_i8", "AVERAGE_POOL_2D", [Fed(random("ap", [2, 9, 8, 5], -128, 127, np.int8), (0.05, 7))], Out(np.int8, q=(0.05, 7)), pool)
pool = options("Pool2DOptions", padding=1, strideW=2, strideH=2, filterWidth=2, filterHeight=2, fusedActivationFunction=3)
case("average_pool_u8", "AVERAGE_POOL_2D", [Fed(random("au", [2, 9, 8, 5], 0, 255, np.uint8), (0.03, 60))], Out(np.uint8, q=(0.03, 60)), pool)
