"""Real operands with weights of 8-bit integers (dynamic range), which LiteRT quantises while running: what differs is the
rounding of numbers that lie near a tie, so floats may differ by a step of one operand."""
import functools

import numpy as np
import tflite_recorder
from tflite_recorder import Fed, Given, Out, options, random

case = functools.partial(tflite_recorder.case, part=4e-3)


def scales(seed, count):
    return random(seed + "s", [count], 0.002, 0.02).astype(np.float32)


def weights(seed, shape, axis=None):
    values = random(seed, shape, -127, 127, np.int8)
    if axis is None:
        return Given(values, (0.013, 0))
    return Given(values, (scales(seed, shape[axis]), np.zeros(shape[axis], np.int64), axis))


rows = random("rows", [5, 33], -3, 7)
rows[3] = 0  # of which nothing is quantised
bias = Given(random("bias", [9], -2, 2))
for axis, kind in ((None, "one"), (0, "each")):
    for asymmetric in (False, True):
        for activation, label in ((0, ""), (1, "_relu")):
            case(f"dense_{kind}{'_asymmetric' if asymmetric else ''}{label}", "FULLY_CONNECTED", [rows, weights("fw", [9, 33], axis), bias], Out(),
                 options("FullyConnectedOptions", asymmetricQuantizeInputs=asymmetric, fusedActivationFunction=activation))
case("dense_no_bias", "FULLY_CONNECTED", [rows, weights("fw", [9, 33]), None], Out(), options("FullyConnectedOptions"))
case("dense_keep", "FULLY_CONNECTED", [random("keep", [2, 3, 33], -3, 7), weights("fw", [9, 33]), bias], Out(), options("FullyConnectedOptions", keepNumDims=True))
case("dense_flat", "FULLY_CONNECTED", [random("flat", [2, 3, 11], -3, 7), weights("fw", [9, 33]), bias], Out(), options("FullyConnectedOptions"))
case("dense_open", "FULLY_CONNECTED", [Fed(rows, open_axes=(0,)), weights("fw", [9, 33]), bias], Out(), options("FullyConnectedOptions"))

table = dict(padding=0, strideW=2, strideH=1, dilationWFactor=1, dilationHFactor=1, fusedActivationFunction=3)
for batch in (1, 3):
    image = random(f"image{batch}", [batch, 9, 8, 6], -2, 5)
    for axis, kind in ((None, "one"), (0, "each")):
        case(f"conv_{kind}_{batch}", "CONV_2D", [image, weights("cw", [10, 3, 3, 6], axis), Given(random("cb", [10], -2, 2))], Out(), options("Conv2DOptions", **table))
    case(f"depthwise_{batch}", "DEPTHWISE_CONV_2D", [image, weights("dw", [1, 3, 3, 12], 3), Given(random("db", [12], -2, 2))], Out(),
         options("DepthwiseConv2DOptions", depthMultiplier=2, **table))
    case(f"transpose_conv_{batch}", "TRANSPOSE_CONV", [Given(np.array([batch, 18, 16, 4], np.int32)), weights("tw", [4, 3, 3, 6], 0), image], Out(),
         options("TransposeConvOptions", padding=0, strideW=2, strideH=2))

for asymmetric in (False, True):
    for adj_x in (False, True):
        for adj_y in (False, True):
            x = random("bx", [2, 7, 4] if adj_x else [2, 4, 7], -3, 7)
            case(f"batch_matmul{'_asymmetric' if asymmetric else ''}{'_x' if adj_x else ''}{'_y' if adj_y else ''}", "BATCH_MATMUL",
                 [x, weights("bw", [2, 5, 7] if adj_y else [2, 7, 5])], Out(), options("BatchMatMulOptions", adjX=adj_x, adjY=adj_y, asymmetricQuantizeInputs=asymmetric))

ids = np.array([3, 0, 6, 3], np.int32)
tflite_recorder.case("embedding_one", "EMBEDDING_LOOKUP", [ids, weights("ew", [7, 5])], Out())
tflite_recorder.case("embedding_each", "EMBEDDING_LOOKUP", [ids, weights("ew", [7, 5], 0)], Out())

# Weights of four bits. LiteRT has other kernels for them, with the same steps.
four = Given(random("four", [8, 32], -7, 7, np.int8), (scales("four", 8), np.zeros(8, np.int64), 0), nibbles=True)
case("dense_i4", "FULLY_CONNECTED", [random("fourx", [5, 32], -3, 7), four, Given(random("fourb", [8], -2, 2))], Out(), options("FullyConnectedOptions"))
four = Given(random("fourc", [6, 3, 3, 4], -7, 7, np.int8), (scales("fourc", 6), np.zeros(6, np.int64), 0), nibbles=True)
case("conv_i4", "CONV_2D", [random("fouri", [1, 6, 5, 4], -2, 5), four, Given(random("fourd", [6], -2, 2))], Out(), options("Conv2DOptions", **table))

# Four bits with a scale for each block of a row. One number in each row of activations, which LiteRT quantises without loss.
block_scales = random("blocks", [6, 3], 0.01, 0.2).astype(np.float16)
four = Given(random("fourblocks", [6, 96], -7, 7, np.int8), nibbles=True, scales=block_scales)
alone = np.zeros([4, 96], np.float32)
alone[[0, 1, 2, 3], [0, 33, 70, 95]] = [1.5, -2, 0.25, 1]
tflite_recorder.case("dense_i4_blocks", "FULLY_CONNECTED", [alone, four, Given(random("fourblocksb", [6], -2, 2))], Out(), options("FullyConnectedOptions"))
tflite_recorder.case("embedding_i4_blocks", "EMBEDDING_LOOKUP", [np.array([5, 0, 3, 5], np.int32), four], Out())
