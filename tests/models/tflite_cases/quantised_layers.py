"""Layers on quantised integers: normalisations, reductions, images, products, movements. Exact against LiteRT's reference
kernels, but where `steps` is given: those LiteRT's faster kernels compute in float."""
import functools

import numpy as np
import tflite_recorder
from tflite_recorder import Fed, Given, Out, options, random

case = functools.partial(tflite_recorder.case, reference=True)
fast = tflite_recorder.case

TYPES = ((np.int8, 0, "i8"), (np.uint8, 128, "u8"))


def stored(seed, shape, dtype):
    info = np.iinfo(dtype)
    return random(seed, shape, info.min, info.max, dtype)


for dtype, zero, n in TYPES:
    least = np.iinfo(dtype).min
    x = stored("soft" + n, [4, 3, 21], dtype)
    for beta, label in ((1.0, ""), (0.5, "_half")):
        fast(f"softmax_{n}{label}", "SOFTMAX", [Fed(x, (0.03, zero + 3))], Out(dtype, q=(1 / 256, least)), options("SoftmaxOptions", beta=beta), steps=1)
    fast(f"softmax_{n}_steep", "SOFTMAX", [Fed(x, (0.4, zero))], Out(dtype, q=(1 / 256, least)), options("SoftmaxOptions", beta=1.0), steps=1)
    fast(f"softmax_{n}_i16", "SOFTMAX", [Fed(x, (0.03, zero + 3))], Out(np.int16, q=(1 / 65536, 0)), options("SoftmaxOptions", beta=1.0), steps=1)
    case(f"softmax_{n}_reference", "SOFTMAX", [Fed(x, (0.03, zero + 3))], Out(dtype, q=(1 / 256, least)), options("SoftmaxOptions", beta=1.0), steps=1)
    fast(f"log_softmax_{n}", "LOG_SOFTMAX", [Fed(x, (0.1, zero + 3))], Out(dtype, q=(16 / 256, np.iinfo(dtype).max)), options("LogSoftmaxOptions"), steps=1)
    case(f"log_softmax_{n}_reference", "LOG_SOFTMAX", [Fed(x, (0.1, zero + 3))], Out(dtype, q=(16 / 256, np.iinfo(dtype).max)), options("LogSoftmaxOptions"), steps=1)
    case(f"l2_normalization_{n}", "L2_NORMALIZATION", [Fed(stored("l2" + n, [3, 2, 19], dtype), (0.1, zero + 7))], Out(dtype, q=(1 / 128, zero)), options("L2NormOptions"), steps=1)

    x = Fed(stored("mean" + n, [2, 7, 5, 6], dtype), (0.05, zero + 11))
    for op in ("MEAN", "SUM"):
        y = (0.03, zero - 9) if op == "MEAN" else (0.9, zero - 9)
        for axes, keep, label in (([1, 2], True, ""), ([1, 2], False, "_dropped"), ([-1], False, "_last"), ([0, 1, 2, 3], True, "_all")):
            # The reference kernel of SUM takes all bytes as if they had no sign.
            record, steps = (fast, 1) if op == "SUM" else (case, 0)
            record(f"{op.lower()}_{n}{label}", op, [x, Given(np.array(axes, np.int32))], Out(dtype, q=y), options("ReducerOptions", keepDims=keep), steps=steps)
    for op in ("REDUCE_MAX", "REDUCE_MIN"):
        case(f"{op.lower()}_{n}", op, [x, Given(np.array([1], np.int32))], Out(dtype, q=(0.05, zero + 11)), options("ReducerOptions", keepDims=False))

    pool = options("Pool2DOptions", padding=0, strideW=2, strideH=1, filterWidth=2, filterHeight=3, fusedActivationFunction=3)
    case(f"max_pool_{n}_relu6", "MAX_POOL_2D", [x], Out(dtype, q=(0.05, zero + 11)), pool)

    image = Fed(stored("image" + n, [2, 5, 6, 3], dtype), (0.05, zero + 11))
    for corners, centres, label in ((False, False, ""), (True, False, "_corners"), (False, True, "_centres")):
        table = options("ResizeBilinearOptions", alignCorners=corners, halfPixelCenters=centres)
        for size in ([9, 13], [3, 2]):
            case(f"resize_bilinear_{n}{label}_{size[0]}", "RESIZE_BILINEAR", [image, Given(np.array(size, np.int32))], Out(dtype, q=(0.05, zero + 11)), table,
                 steps=0 if dtype == np.int8 else 1)
    case(f"resize_nearest_{n}", "RESIZE_NEAREST_NEIGHBOR", [image, Given(np.array([9, 13], np.int32))], Out(dtype, q=(0.05, zero + 11)), options("ResizeNearestNeighborOptions"))
    border = Given(np.array([[0, 0], [1, 2], [2, 0], [0, 0]], np.int32))
    case(f"pad_{n}", "PAD", [image, border], Out(dtype, q=(0.05, zero + 11)), options("PadOptions"))
    case(f"padv2_{n}", "PADV2", [image, border, Given(np.array([zero - 50], dtype), (0.05, zero + 11))], Out(dtype, q=(0.05, zero + 11)), options("PadV2Options"))
    case(f"mirror_pad_{n}", "MIRROR_PAD", [image, border], Out(dtype, q=(0.05, zero + 11)), options("MirrorPadOptions", mode=0))
    case(f"space_to_batch_{n}", "SPACE_TO_BATCH_ND", [image, Given(np.array([2, 2], np.int32)), Given(np.array([[1, 2], [0, 2]], np.int32))], Out(dtype, q=(0.05, zero + 11)))
    case(f"batch_to_space_{n}", "BATCH_TO_SPACE_ND", [Fed(stored("bs" + n, [4, 3, 2, 3], dtype), (0.05, zero + 11)), Given(np.array([2, 2], np.int32)), Given(np.zeros([2, 2], np.int32))],
         Out(dtype, q=(0.05, zero + 11)))
    if dtype == np.uint8:  # LiteRT has it for these bytes alone
        case(f"reverse_sequence_{n}", "REVERSE_SEQUENCE", [image, Given(np.array([3, 5], np.int32))], Out(dtype, q=(0.05, zero + 11)), options("ReverseSequenceOptions", seqDim=1, batchDim=0))

    for padding, label in ((0, "_same"), (1, "_valid")):
        filters = np.random.default_rng(3).uniform(0.002, 0.02, [4]).astype(np.float32)
        if dtype == np.int8:
            weights = Given(stored("tw", [4, 3, 4, 3], dtype), (filters, np.zeros(4, np.int64), 0))
            bias = Given(random("tb", [4], -3000, 3000, np.int32), (filters * np.float32(0.05), np.zeros(4, np.int64), 0))
        else:
            weights = Given(stored("tw", [4, 3, 4, 3], dtype), (0.01, 120))
            bias = Given(random("tb", [4], -3000, 3000, np.int32), (0.05 * 0.01, 0))
        shape = [2, 10, 12, 4] if padding == 0 else [2, 11, 14, 4]
        table = options("TransposeConvOptions", padding=padding, strideW=2, strideH=2)
        case(f"transpose_conv_{n}{label}", "TRANSPOSE_CONV", [Given(np.array(shape, np.int32)), weights, image, bias], Out(dtype, q=(0.06, zero + 5)), table)
        case(f"transpose_conv_{n}{label}_no_bias", "TRANSPOSE_CONV", [Given(np.array(shape, np.int32)), weights, image], Out(dtype, q=(0.06, zero + 5)), table)

deep = Given(stored("dw", [2, 2, 2, 700], np.int8), (0.01, 0))
case("transpose_conv_i8_deep", "TRANSPOSE_CONV", [Given(np.array([1, 5, 5, 2], np.int32)), deep, Fed(stored("dx", [1, 4, 4, 700], np.int8), (0.05, 11))], Out(np.int8, q=(3.0, 5)),
     options("TransposeConvOptions", padding=1, strideW=1, strideH=1))
wide = Fed(stored("tx16", [1, 4, 4, 5], np.int16), (0.0005, 0))
weights = Given(stored("tw16", [3, 3, 3, 5], np.int8), (0.01, 0))
case("transpose_conv_i16", "TRANSPOSE_CONV", [Given(np.array([1, 8, 8, 3], np.int32)), weights, wide, Given(random("tb16", [3], -90000, 90000, np.int64), (0.0005 * 0.01, 0))],
     Out(np.int16, q=(0.002, 0)), options("TransposeConvOptions", padding=0, strideW=2, strideH=2))

x = Fed(stored("softwide", [5, 37], np.int16), (0.0005, 0))
case("softmax_i16", "SOFTMAX", [x], Out(np.int16, q=(1 / 32768, 0)), options("SoftmaxOptions", beta=1.0))
case("softmax_i16_long", "SOFTMAX", [Fed(random("softlong", [2, 1500], -3000, 3000, np.int16), (0.0005, 0))], Out(np.int16, q=(1 / 32768, 0)), options("SoftmaxOptions", beta=1.0))
case("softmax_i16_steep", "SOFTMAX", [Fed(x.value, (0.003, 0))], Out(np.int16, q=(1 / 32768, 0)), options("SoftmaxOptions", beta=0.7))
image = Fed(stored("wideimage", [2, 5, 6, 3], np.int16), (0.0005, 0))
for op, scale in (("MEAN", 0.0003), ("SUM", 0.009)):
    (fast if op == "SUM" else case)(f"{op.lower()}_i16", op, [image, Given(np.array([1, 2], np.int32))], Out(np.int16, q=(scale, 0)), options("ReducerOptions", keepDims=False), steps=1 if op == "SUM" else 0)
pool = options("Pool2DOptions", padding=0, strideW=2, strideH=1, filterWidth=2, filterHeight=3, fusedActivationFunction=1)
for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
    case(f"{op.lower()}_i16", op, [image], Out(np.int16, q=(0.0005, 0)), pool)
case("resize_bilinear_i16", "RESIZE_BILINEAR", [image, Given(np.array([9, 13], np.int32))], Out(np.int16, q=(0.0005, 0)), options("ResizeBilinearOptions", halfPixelCenters=True))

for adj, label in ((False, ""), (True, "_adjoint")):
    table = options("BatchMatMulOptions", adjX=adj, adjY=adj)
    shapes = ([2, 9, 4], [2, 7, 9]) if adj else ([2, 4, 9], [2, 9, 7])
    a, c = (Fed(stored(k + label, shape, np.int8), q) for k, shape, q in zip("ac", shapes, ((0.05, 7), (0.03, -5))))
    case(f"batch_matmul_i8{label}", "BATCH_MATMUL", [a, c], Out(np.int8, q=(0.11, 9)), table)
    case(f"batch_matmul_i8_i32{label}", "BATCH_MATMUL", [a, c], Out(np.int32, q=(0.0015, 0)), table)
    a, c = (Fed(stored(k + label, shape, np.int16), q) for k, shape, q in zip("ac", shapes, ((0.0005, 0), (0.0003, 0))))
    case(f"batch_matmul_i16{label}", "BATCH_MATMUL", [a, c], Out(np.int16, q=(0.05, 0)), table)
case("batch_matmul_i8_broadcast", "BATCH_MATMUL", [Fed(stored("ba", [3, 2, 4, 9], np.int8), (0.05, 7)), Given(stored("bb", [9, 5], np.int8), (0.03, 0))], Out(np.int8, q=(0.11, 9)),
     options("BatchMatMulOptions"))

parts = [Fed(stored("cat" + k, [2, 3, n], np.uint8), q) for k, n, q in (("a", 4, (0.05, 120)), ("b", 2, (0.031, 99)), ("c", 3, (0.04, 128)))]
case("concat_u8_scales", "CONCATENATION", parts, Out(np.uint8, q=(0.04, 128)), options("ConcatenationOptions", axis=2))
