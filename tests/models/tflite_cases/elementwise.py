"""Elementwise ops, with broadcasting, activations and integers."""
import numpy as np
from tflite_recorder import Fed, Given, Out, case, options, random

f = random("x", [2, 3, 5], -4, 4)
positive = random("p", [2, 3, 5], 0.1, 4)
ints = random("i", [2, 3, 5], -9, 9, np.int32)
nonzero = np.where(ints == 0, 3, ints).astype(np.int32)
odd = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.0, -0.0, 7.25, np.inf, -np.inf], np.float32)
truth = random("t", [2, 3, 5], 0, 1, np.int32).astype(bool)

for op in ("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_0_TO_1",
           "RELU_N1_TO_1", "ROUND", "SIGN", "SIN", "SQUARE", "TANH", "ZEROS_LIKE"):
    case(op.lower(), op, [f], Out())
for op in ("LOG", "RSQRT", "SQRT"):
    case(op.lower(), op, [positive], Out())
for op in ("FLOOR", "CEIL", "ROUND", "RELU", "ABS"):
    case(op.lower() + "_edges", op, [odd], Out())
case("abs_i32", "ABS", [ints], Out(np.int32))
case("neg_i64", "NEG", [ints.astype(np.int64)], Out(np.int64))
case("logical_not", "LOGICAL_NOT", [truth], Out(np.bool_))
case("gelu", "GELU", [f], Out(), options("GeluOptions", approximate=False))
case("gelu_tanh", "GELU", [f], Out(), options("GeluOptions", approximate=True))
case("leaky_relu", "LEAKY_RELU", [f], Out(), options("LeakyReluOptions", alpha=0.3))
case("prelu", "PRELU", [f, Given(random("slope", [1, 5]))], Out())
case("cast_f32_i32", "CAST", [f], Out(np.int32), options("CastOptions", inDataType=0, outDataType=2))
case("cast_i32_f32", "CAST", [ints], Out(), options("CastOptions", inDataType=2, outDataType=0))
case("cast_i64_i32", "CAST", [ints.astype(np.int64)], Out(np.int32))
case("cast_bool_f32", "CAST", [truth], Out())
case("bitcast", "BITCAST", [f], Out(np.int32), options("BitcastOptions"))

right = random("r", [3, 1], -3, 3)
for op, kind in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions"), ("DIV", "DivOptions")):
    case(op.lower(), op, [f, right], Out(), options(kind))
    for activation, name in ((1, "relu"), (2, "relu_n1_to_1"), (3, "relu6")):
        case(f"{op.lower()}_{name}", op, [f, right], Out(), options(kind, fusedActivationFunction=activation))
    case(f"{op.lower()}_i32", op, [ints, nonzero], Out(np.int32), options(kind))
case("add_i32_relu6", "ADD", [ints, ints], Out(np.int32), options("AddOptions", fusedActivationFunction=3))
case("add_i64", "ADD", [ints.astype(np.int64), nonzero.astype(np.int64)], Out(np.int64), options("AddOptions"))
case("add_scalar", "ADD", [f, Given(np.float32(1.5))], Out(), options("AddOptions"))
case("add_open", "ADD", [Fed(f, open_axes=(0, 1)), Given(random("b", [5]))], Out(), options("AddOptions"))
case("add_empty", "ADD", [np.zeros([0, 3], np.float32), np.zeros([1, 3], np.float32)], Out(), options("AddOptions"))
for op in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD"):
    case(op.lower(), op, [f, right], Out())
for op in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD"):
    case(op.lower() + "_i32", op, [ints, nonzero], Out(np.int32))
case("atan2", "ATAN2", [f, positive], Out())
case("pow", "POW", [positive, right], Out())
case("pow_i32", "POW", [ints, np.abs(nonzero) % 4], Out(np.int32))
for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
    case(op.lower(), op, [f, np.where(truth, f, 1).astype(np.float32)], Out(np.bool_))
    case(op.lower() + "_i32", op, [ints, nonzero], Out(np.bool_))
for op in ("LOGICAL_AND", "LOGICAL_OR"):
    case(op.lower(), op, [truth, truth[::-1].copy()], Out(np.bool_))
case("bitwise_xor", "BITWISE_XOR", [ints, nonzero], Out(np.int32))
case("right_shift", "RIGHT_SHIFT", [ints, np.abs(nonzero)], Out(np.int32))
case("add_n", "ADD_N", [f, f * 2, f * 3], Out())
case("select", "SELECT", [truth, f, -f], Out())
case("select_rows", "SELECT", [np.array([True, False]), f, -f], Out())
case("select_v2", "SELECT_V2", [truth[:, :1], f, right], Out())
