"""Convolutions, pools and matrix products."""
import numpy as np
from tflite_recorder import Fed, Given, Out, case, options, random

x = random("x", [2, 7, 9, 4])
bias = Given(random("bias", [6]))


def conv(**fields):
    table = dict(padding=0, strideW=1, strideH=1, fusedActivationFunction=0, dilationWFactor=1, dilationHFactor=1)
    return options("Conv2DOptions", **{**table, **fields})


weights = Given(random("w", [6, 3, 2, 4]))
case("conv_same", "CONV_2D", [x, weights, bias], Out(), conv())
case("conv_valid_strides", "CONV_2D", [x, weights, bias], Out(), conv(padding=1, strideW=2, strideH=3))
case("conv_dilated_relu", "CONV_2D", [x, weights, bias], Out(), conv(fusedActivationFunction=1, dilationWFactor=3, dilationHFactor=2))
case("conv_no_bias", "CONV_2D", [x, weights, Given(np.zeros([6], np.float32))], Out(), conv(fusedActivationFunction=3))
case("conv_groups", "CONV_2D", [x, Given(random("g", [6, 3, 3, 2])), bias], Out(), conv())
case("conv_1x1_open", "CONV_2D", [Fed(x, open_axes=(0, 1, 2)), Given(random("one", [6, 1, 1, 4])), bias], Out(), conv())


def depthwise(**fields):
    table = dict(padding=0, strideW=1, strideH=1, depthMultiplier=1, fusedActivationFunction=0, dilationWFactor=1, dilationHFactor=1)
    return options("DepthwiseConv2DOptions", **{**table, **fields})


case("depthwise", "DEPTHWISE_CONV_2D", [x, Given(random("d", [1, 3, 3, 4])), Given(random("db", [4]))], Out(), depthwise())
case("depthwise_multiplier", "DEPTHWISE_CONV_2D", [x, Given(random("dm", [1, 3, 2, 12])), Given(random("dmb", [12]))], Out(),
     depthwise(depthMultiplier=3, padding=1, strideW=2, strideH=2, fusedActivationFunction=3))
case("depthwise_dilated", "DEPTHWISE_CONV_2D", [x, Given(random("d", [1, 3, 3, 4])), Given(random("db", [4]))], Out(), depthwise(dilationWFactor=2, dilationHFactor=2))

small = random("small", [2, 4, 5, 3])
transposed = Given(random("tw", [6, 3, 3, 3]))


def transpose(**fields):
    return options("TransposeConvOptions", **{**dict(padding=0, strideW=2, strideH=2, fusedActivationFunction=0), **fields})


case("transpose_conv_same", "TRANSPOSE_CONV", [Given(np.array([2, 8, 10, 6], np.int32)), transposed, small], Out(), transpose())
case("transpose_conv_same_odd", "TRANSPOSE_CONV", [Given(np.array([2, 7, 9, 6], np.int32)), transposed, small], Out(), transpose())
case("transpose_conv_valid_bias", "TRANSPOSE_CONV", [Given(np.array([2, 9, 11, 6], np.int32)), transposed, small, bias], Out(),
     transpose(padding=1, fusedActivationFunction=1))
case("transpose_conv_strides", "TRANSPOSE_CONV", [Given(np.array([2, 4, 15, 6], np.int32)), transposed, small], Out(),
     transpose(strideW=3, strideH=1))

volume = random("v", [1, 4, 5, 6, 2])
case("conv_3d", "CONV_3D", [volume, Given(random("vw", [2, 3, 2, 2, 3])), Given(random("vb", [3]))], Out(),
     options("Conv3DOptions", padding=0, strideD=1, strideW=2, strideH=1, fusedActivationFunction=1))
case("conv_3d_valid", "CONV_3D", [volume, Given(random("vw", [2, 3, 2, 2, 3]))], Out(),
     options("Conv3DOptions", padding=1, strideD=2, strideW=1, strideH=1))
case("conv_3d_transpose", "CONV_3D_TRANSPOSE", [Given(np.array([1, 8, 5, 6, 3], np.int32)), Given(random("vt", [2, 3, 2, 3, 2])), volume],
     Out(), options("Conv3DOptions", padding=0, strideD=2, strideW=1, strideH=1))


def pool(**fields):
    table = dict(padding=0, strideW=2, strideH=1, filterWidth=3, filterHeight=2, fusedActivationFunction=0)
    return options("Pool2DOptions", **{**table, **fields})


for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
    case(op.lower(), op, [x], Out(), pool())
    case(op.lower() + "_valid_relu", op, [x], Out(), pool(padding=1, fusedActivationFunction=1))
case("max_pool_i8", "MAX_POOL_2D", [Fed(random("q", [1, 5, 5, 3], -128, 127, np.int8), (0.1, 3))], Out(np.int8, q=(0.1, 3)), pool())

rows = random("rows", [3, 4, 5])


def dense(**fields):
    return options("FullyConnectedOptions", **{**dict(fusedActivationFunction=0, weightsFormat=0, keepNumDims=False), **fields})


wide = Given(random("dense", [7, 5]))
case("dense", "FULLY_CONNECTED", [random("flat", [3, 5]), wide, Given(random("dense_b", [7]))], Out(), dense())
case("dense_rows", "FULLY_CONNECTED", [rows, wide], Out(), dense(fusedActivationFunction=1))
case("dense_keep", "FULLY_CONNECTED", [rows, wide, Given(random("dense_b", [7]))], Out(), dense(keepNumDims=True))
case("dense_flattens", "FULLY_CONNECTED", [random("map", [2, 2, 5, 2]), Given(random("d10", [3, 10])), None], Out(), dense(fusedActivationFunction=3))
case("dense_computed_weights", "FULLY_CONNECTED", [random("flat", [3, 5]), random("dense", [7, 5])], Out(), dense())
case("batch_matmul", "BATCH_MATMUL", [random("a", [2, 1, 3, 4]), random("b", [5, 4, 2])], Out(), options("BatchMatMulOptions"))
case("batch_matmul_adjoint", "BATCH_MATMUL", [random("a", [2, 4, 3]), random("b", [2, 5, 4])], Out(),
     options("BatchMatMulOptions", adjX=True, adjY=True))
