"""Quantised tensors, to real numbers and back; sparse ones."""
import numpy as np
from tflite_recorder import Fed, Given, Out, case, options, random

half = random("half", [2, 3, 4], -4, 4).astype(np.float16)
case("dequantize_f16", "DEQUANTIZE", [Given(half)], Out(), options("DequantizeOptions"))
for dtype, zero in ((np.int8, 5), (np.uint8, 130), (np.int16, 0)):
    info = np.iinfo(dtype)
    values = random("q", [2, 3, 4], info.min, info.max, dtype)
    case(f"dequantize_{np.dtype(dtype)}", "DEQUANTIZE", [Fed(values, (0.037, zero))], Out(), options("DequantizeOptions"))
    # As many as fill vectors: the rest of a loop, below eight, LiteRT rounds away from zero where there is a tie.
    reals = np.concatenate([random("r", [27], -7, 7), [1e6, -1e6, 0.5 * 0.0625, -1.5 * 0.0625, 2.5 * 0.0625]]).astype(np.float32)
    case(f"quantize_{np.dtype(dtype)}", "QUANTIZE", [reals], Out(dtype, q=(0.0625, zero)), options("QuantizeOptions"))
    near = ((np.arange(-60, 60) + 0.5) * 0.037).astype(np.float32)
    near = np.concatenate([near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(-9))])
    case(f"quantize_near_ties_{np.dtype(dtype)}", "QUANTIZE", [near], Out(dtype, q=(0.037, zero)), options("QuantizeOptions"))
channels = random("c", [3, 4], -127, 127, np.int8)
case("dequantize_channels", "DEQUANTIZE", [Given(channels, ([0.1, 0.2, 0.3], [0, 0, 0], 0))], Out(), options("DequantizeOptions"))
case("fake_quant", "FAKE_QUANT", [random("f", [50], -3, 9)], Out(), options("FakeQuantOptions", min=-2.0, max=7.0, numBits=8, narrowRange=False))
case("fake_quant_4", "FAKE_QUANT", [random("f", [50], -3, 9)], Out(), options("FakeQuantOptions", min=-1.0, max=1.3, numBits=4))
case("fake_quant_narrow", "FAKE_QUANT", [random("f", [50], -3, 9)], Out(), options("FakeQuantOptions", min=-1.0, max=1.3, numBits=4, narrowRange=True), refused=True)

matrix = np.where(random("holes", [4, 6]) > 0.3, random("sparse", [4, 6]), 0).astype(np.float32)
blocks = np.kron(np.array([[1, 0, 1], [0, 1, 0]]), np.ones([2, 2])).astype(np.float32) * random("sparse", [4, 6])
case("densify", "DENSIFY", [Given(matrix, block=(1, 1))], Out(), options("DensifyOptions"))
case("densify_blocks", "DENSIFY", [Given(blocks, block=(2, 2))], Out(), options("DensifyOptions"))
case("densify_f16", "DENSIFY", [Given(matrix.astype(np.float16), block=(1, 1))], Out(np.float16), options("DensifyOptions"))
