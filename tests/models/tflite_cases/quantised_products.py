"""Products along axes and quotients of integers that stand for real numbers, against LiteRT's reference kernels."""
import functools

import numpy as np
import tflite_recorder
from tflite_recorder import Fed, Given, Out, options, random

case = functools.partial(tflite_recorder.case, reference=True)

for dtype, q, out in ((np.int8, (0.02, 5), (0.05, -7)), (np.int16, (0.0001, 0), (0.0002, 0))):
    info, name = np.iinfo(dtype), np.dtype(dtype).name
    for key, axes, keep in (("one", [1], False), ("kept", [-1], True), ("two", [2, 0], False), ("all", [0, 1, 2], False), ("none", [], False)):
        x = Fed(random(key + name, [2, 3, 4], info.min, info.max, dtype), q)
        case(f"prod_{name}_{key}", "REDUCE_PROD", [x, Given(np.array(axes, np.int32))], Out(dtype, q=out), options("ReducerOptions", keepDims=keep))
    x = Fed(np.clip(random("near" + name, [5, 40], 0.9, 1.1) / q[0] + q[1], info.min, info.max).astype(dtype), q)
    case(f"prod_{name}_long", "REDUCE_PROD", [x, Given(np.array([1], np.int32))], Out(dtype, q=out), options("ReducerOptions"))

X = np.concatenate([random("x", [290], -32768, 32767, np.int16), np.int16([0, 1, -1, 32767, -32768, -32768, 32767, 5, 7, 100])])
Y = np.concatenate([random("y", [290], -32768, 32767, np.int16), np.int16([3, 1, -1, -1, 1, -32768, 32767, -32768, 2, -3])])
Y[Y == 0] = 1
# Scales whose quotient is far from one make LiteRT shift by more than integers have, either way.
for key, scales in (("plain", (0.0003, 0.0007, 0.0002)), ("fine", (0.0003, 0.0007, 1e-5)), ("large", (3.0, 0.001, 0.4))):
    sides = [Fed(values.reshape(3, 100), (scale, 0)) for values, scale in zip((X, Y), scales)]
    for activation, kind in ((0, ""), (1, "_relu")):
        case(f"div_i16_{key}{kind}", "DIV", sides, Out(np.int16, q=(scales[2], 0)), options("DivOptions", fusedActivationFunction=activation))
case("div_i16_rows", "DIV", [sides[0], Fed(np.int16([[5], [-70], [3000]]), (0.001, 0))], Out(np.int16, q=(0.5, 0)), options("DivOptions"))
