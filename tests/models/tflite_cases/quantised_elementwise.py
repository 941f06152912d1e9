"""Elementwise ops on quantised integers of 8 and 16 bits, against LiteRT's reference kernels: exact."""
import functools

import numpy as np
import tflite_recorder
from tflite_recorder import Fed, Given, Out, options, random

case = functools.partial(tflite_recorder.case, reference=True)

EVERY = {np.int8: np.arange(-128, 128).astype(np.int8), np.uint8: np.arange(256).astype(np.uint8),
         np.int16: np.concatenate([random("wide", [400], -32768, 32767, np.int16),
                                   np.array([-32768, -32767, -1, 0, 1, 32766, 32767], np.int16)])}


def name_of(dtype):
    return {np.int8: "i8", np.uint8: "u8", np.int16: "i16"}[dtype]


def one(op, dtype, x, y, label="", table=None, values=None, record=case):
    values = EVERY[dtype] if values is None else values
    record(f"{op.lower()}_{name_of(dtype)}{label}", op, [Fed(values, x)], Out(dtype, q=y), table)


one("LOGISTIC", np.int8, (0.05, 7), (1 / 256, -128))
one("LOGISTIC", np.uint8, (0.1, 100), (1 / 256, 0))
one("LOGISTIC", np.int16, (1 / 4096, 0), (1 / 32768, 0), "_power")
one("LOGISTIC", np.int16, (0.00031, 0), (1 / 32768, 0))
one("TANH", np.int8, (0.03, -5), (1 / 128, 0))
one("TANH", np.uint8, (0.03, 120), (1 / 128, 128))
one("TANH", np.int16, (1 / 4096, 0), (1 / 32768, 0), "_power")
one("TANH", np.int16, (1 / 2048, 0), (1 / 32768, 0), "_power_above")
one("TANH", np.int16, (0.00017, 0), (1 / 32768, 0))
for dtype, zero in ((np.int8, -3), (np.uint8, 121)):
    one("HARD_SWISH", dtype, (0.06, zero), (0.05, zero + 1))
    one("HARD_SWISH", dtype, (0.02, zero), (0.04, zero - 4), "_fine")
    one("HARD_SWISH", dtype, (0.25, zero), (0.2, zero), "_coarse")
    for alpha in (0.3, -0.2):
        one("LEAKY_RELU", dtype, (0.06, zero), (0.04, zero + 9), f"_{'minus' if alpha < 0 else 'plus'}", options("LeakyReluOptions", alpha=alpha))
one("LEAKY_RELU", np.int16, (0.0006, 0), (0.0004, 0), "", options("LeakyReluOptions", alpha=0.3))
one("EXP", np.int8, (0.02, 30), (0.04, -128))
one("EXP", np.int16, (0.00005, 0), (0.0002, 0))
one("ELU", np.int8, (0.05, 3), (0.04, -100), record=tflite_recorder.case)  # which has no reference kernel
one("GELU", np.int8, (0.05, 3), (0.03, -120), "", options("GeluOptions", approximate=False))
one("GELU", np.int8, (0.05, 3), (0.03, -120), "_tanh", options("GeluOptions", approximate=True))
one("GELU", np.uint8, (0.05, 130), (0.03, 10), "", options("GeluOptions", approximate=False))
one("ABS", np.int8, (0.05, 7), (0.03, -128))
one("ABS", np.int8, (0.05, 7), (0.05, -128), "_same")
one("ABS", np.int16, (0.0005, 0), (0.0003, 0))
one("SQRT", np.int8, (0.05, -128), (0.02, -128))
one("SQRT", np.int16, (0.0005, 0), (0.0003, 0), "", None, np.abs(EVERY[np.int16].astype(np.int32)).clip(0, 32767).astype(np.int16))
one("RSQRT", np.int8, (0.05, -128), (0.02, -128))
one("RSQRT", np.int8, (0.05, 3), (0.005, -90), "_above", None, np.arange(3, 128).astype(np.int8))
one("RSQRT", np.int16, (0.0005, 0), (0.001, 0), "", None, np.abs(EVERY[np.int16].astype(np.int32)).clip(0, 32767).astype(np.int16))
one("LOG", np.int8, (0.05, -100), (0.03, 10))
one("LOG", np.int16, (0.0005, 0), (0.0003, 0))
case("rsqrt_i8_negative", "RSQRT", [Fed(EVERY[np.int8], (0.05, 3))], Out(np.int8, q=(0.02, -128)), refused=True)
for op in ("RELU_N1_TO_1", "RELU_0_TO_1"):
    one(op, np.int8, (0.03, 9), (0.035, -7))
    one(op, np.uint8, (0.03, 99), (0.01, 99))
for op in ("RELU", "RELU6"):
    one(op, np.int16, (0.0006, 0), (0.0004, 0))

for dtype, zero in ((np.int8, 0), (np.uint8, 128)):
    info = np.iinfo(dtype)
    n = name_of(dtype)
    x, y, s = (random(k + n, [3, 5, 7], info.min, info.max, dtype) for k in "xys")
    row = random("row" + n, [1, 1, 7], info.min, info.max, dtype)
    case(f"prelu_{n}", "PRELU", [Fed(x, (0.05, zero + 9)), Given(row, (0.004, zero - 3))], Out(dtype, q=(0.04, zero - 8)))
    for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
        case(f"{op.lower()}_{n}", op, [Fed(x, (0.05, zero + 9)), Fed(y, (0.031, zero - 3))], Out(np.bool_))
        case(f"{op.lower()}_{n}_same", op, [Fed(x, (0.05, zero + 9)), Fed(np.where(s > info.max // 2, x, y).astype(dtype), (0.05, zero + 9))], Out(np.bool_))
    divisor = np.where(row == zero - 3, zero + 40, row).astype(dtype)
    case(f"div_{n}", "DIV", [Fed(x, (0.05, zero + 9)), Fed(divisor, (0.031, zero - 3))], Out(dtype, q=(0.09, zero + 2)), options("DivOptions"))
    case(f"div_{n}_relu6", "DIV", [Fed(x, (0.05, zero + 9)), Fed(divisor, (0.031, zero - 3))], Out(dtype, q=(0.03, zero - 90)), options("DivOptions", fusedActivationFunction=3))
    truth = random("truth" + n, [3, 5, 7], 0, 1, np.int32).astype(bool)
    case(f"select_{n}", "SELECT", [truth, Fed(x, (0.05, zero + 9)), Fed(y, (0.05, zero + 9))], Out(dtype, q=(0.05, zero + 9)))
    case(f"select_v2_{n}", "SELECT_V2", [truth, Fed(x, (0.05, zero + 9)), Fed(row, (0.05, zero + 9))], Out(dtype, q=(0.05, zero + 9)))
case("div_i8_by_zero", "DIV", [Fed(EVERY[np.int8], (0.05, 9)), Fed(EVERY[np.int8], (0.031, -3))], Out(np.int8, q=(0.09, 2)), options("DivOptions"), refused=True)
case("squared_difference_i8", "SQUARED_DIFFERENCE",
     [Fed(random("sx", [3, 5, 7], -128, 127, np.int8), (0.05, 9)), Fed(random("sy", [5, 1], -128, 127, np.int8), (0.031, -3))], Out(np.int8, q=(0.4, -120)))

wide = [random(k + "16", [3, 5, 7], -32768, 32767, np.int16) for k in "xy"]
row = random("row16", [7], -32768, 32767, np.int16)
for op, kind in (("ADD", "AddOptions"), ("SUB", "SubOptions")):
    for activation, label in ((0, ""), (3, "_relu6")):
        case(f"{op.lower()}_i16{label}", op, [Fed(wide[0], (0.0003, 0)), Fed(row, (0.0005, 0))], Out(np.int16, q=(0.0007, 0)),
             options(kind, potScaleInt16=False, fusedActivationFunction=activation))
case("add_i16_powers", "ADD", [Fed(wide[0], (2 ** -13, 0)), Fed(wide[1], (2 ** -11, 0))], Out(np.int16, q=(2 ** -11, 0)), options("AddOptions", potScaleInt16=True))
case("add_i16_powers_general", "ADD", [Fed(wide[0], (2 ** -13, 0)), Fed(wide[1], (2 ** -11, 0))], Out(np.int16, q=(2 ** -11, 0)), options("AddOptions", potScaleInt16=False))
for activation, label in ((0, ""), (1, "_relu")):
    case(f"mul_i16{label}", "MUL", [Fed(wide[0], (0.0003, 0)), Fed(row, (0.0005, 0))], Out(np.int16, q=(0.003, 0)), options("MulOptions", fusedActivationFunction=activation))
case("prelu_i16", "PRELU", [Fed(wide[0], (0.0005, 0)), Given(random("slope16", [1, 1, 7], -127, 127, np.int8), (0.004, 0))], Out(np.int16, q=(0.0004, 0)))
case("equal_i16", "EQUAL", [Fed(wide[0], (0.0005, 0)), Fed(np.where(wide[1] > 0, wide[0], wide[1]).astype(np.int16), (0.0005, 0))], Out(np.bool_))
case("less_i16", "LESS", [Fed(wide[0], (0.0005, 0)), Fed(wide[1], (0.0005, 0))], Out(np.bool_))
case("maximum_i16", "MAXIMUM", [Fed(wide[0], (0.0005, 0)), Fed(wide[1], (0.0005, 0))], Out(np.int16, q=(0.0005, 0)))
