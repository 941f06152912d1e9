"""More of quantised tensors: sums, images between pixels, integers of other types, and uniform quantisation by scales and zero points."""
from recorder import *

Q = tf.quint8
CARRIERS = {tf.quint8: tf.uint8, tf.qint8: tf.int8, tf.qint32: tf.int32}
whole = lambda q: tf.bitcast(q, CARRIERS[q.dtype])
as_q = lambda x: tf.bitcast(x, next(q for q, c in CARRIERS.items() if c == x.dtype))
u8 = lambda *shape: state.rng.integers(0, 256, shape).astype(np.uint8)
i8 = lambda *shape: state.rng.integers(-128, 128, shape).astype(np.int8)
wide = lambda *shape: state.rng.integers(-2 ** 31, 2 ** 31, shape).astype(np.int32)
F = np.float32


def shown(q): return [whole(q[0]), q[1], q[2]]


def added(x, y, a, b, p, q): return shown(raw.QuantizedAdd(x=as_q(x), y=as_q(y), min_x=a, max_x=b, min_y=p, max_y=q))


for name, shape, other in (("same", (3, 5), (3, 5)), ("vector", (4, 9), (9,)), ("vector_first", (9,), (4, 9)), ("one", (4, 3), ()), ("one_first", (1, 1), (7,)), ("both_one", (), (1,)), ("deep", (2, 3, 4), (3, 4))):
    for k, (a, b, p, q) in enumerate([(-2.0, 2.0, 0.0, 3.0), (-0.3, 5.1, -7.0, 1.0), (1.0, 6.0, -3.0, -1.0)]):
        case("QuantizedAdd_%s_%d" % (name, k), added, u8(*shape), u8(*other), F(a), F(b), F(p), F(q))
case("QuantizedAdd_range", added, u8(3), u8(3), F(1), F(1), F(0), F(2), error=True)

for name, shape, size in (("up", (2, 3, 4, 1), (7, 9)), ("down", (1, 9, 11, 3), (4, 5)), ("odd", (1, 5, 6, 2), (13, 4)), ("same", (1, 4, 4, 3), (4, 4)), ("to_one", (1, 4, 5, 1), (1, 1)), ("from_one", (1, 1, 1, 2), (3, 2))):
    for corners, centers in ((False, False), (True, False), (False, True)):
        for make in (u8, wide, f32):
            x = make(*shape)
            if make is f32 and name != "odd": continue
            case("QuantizedResizeBilinear_%s_%s_%d%d" % (name, x.dtype.name, corners, centers),
                 lambda x, a, b, n=size, c1=corners, c2=centers: (lambda q: [q[0] if q[0].dtype == tf.float32 else whole(q[0]), q[1], q[2]])(raw.QuantizedResizeBilinear(images=x if x.dtype == tf.float32 else as_q(x), size=c(list(n)), min=a, max=b, align_corners=c1, half_pixel_centers=c2)),
                 x, F(-2), F(3))
case("QuantizedResizeBilinear_size_fed", lambda x, n, a, b: shown(raw.QuantizedResizeBilinear(images=as_q(x), size=n, min=a, max=b)), u8(1, 3, 3, 2), np.array([5, 4], np.int32), F(0), F(1))

for k, (a, b) in enumerate([(-3.0, 3.0), (-0.5, 2.0)]):
    case("QuantizedBiasAdd_i8_%d" % k, lambda x, v, a, b: shown(raw.QuantizedBiasAdd(input=as_q(x), bias=as_q(v), min_input=a, max_input=b, min_bias=c(-1.0), max_bias=c(2.0), out_type=tf.qint32)), i8(4, 9), i8(9), F(a), F(b))
    for op in ("QuantizedRelu", "QuantizedRelu6"):
        case("%s_i32_%d" % (op, k), lambda x, a, b, op=op: shown(getattr(raw, op)(features=as_q(x), min_features=a, max_features=b, out_type=tf.qint32)), wide(4, 9), F(a * 5), F(b * 5))
case("QuantizedReshape_i32", lambda x, a, b: shown(raw.QuantizedReshape(tensor=as_q(x), shape=c([9, -1]), input_min=a, input_max=b)), wide(4, 9), F(-1), F(1))
for axis in (0, 1):
    case("QuantizedConcat_i32_%d" % axis, lambda x, y, k=axis: shown(raw.QuantizedConcat(concat_dim=c(k), values=[as_q(x), as_q(y)], input_mins=[c(-4.0), c(-2.0)], input_maxes=[c(4.0), c(8.0)])), wide(3, 4), wide(3, 4))

RANGES = {tf.qint8: (-128, 127), tf.quint8: (0, 255), tf.qint32: (-2 ** 31, 2 ** 31 - 1)}
X = np.concatenate([f32(2, 3, 3, lo=-20, hi=20), (np.arange(18).reshape(2, 3, 3).astype(F) - 9) * 0.125], 1)
SCALES, ZEROS = np.array([0.25, 0.1, 0.037, 1.5, 0.125, 0.3], F), np.array([3, -20, 100, 0, -1, 7], np.int32)
for t, (lo, hi) in RANGES.items():
    for key, least, most in (("", lo, hi), ("_narrow", max(lo, -127) if t != tf.quint8 else 1, min(hi, 100))):
        case("UniformQuantize_%s%s" % (t.name, key), lambda x, s, z, t=t, lo=least, hi=most: whole(raw.UniformQuantize(input=x, scales=s, zero_points=z, Tout=t, quantization_min_val=lo, quantization_max_val=hi)), X, F(0.125), np.int32(5))
    case("UniformQuantize_%s_axis" % t.name, lambda x, s, z, t=t, lo=lo, hi=hi: whole(raw.UniformQuantize(input=x, scales=s, zero_points=z, Tout=t, quantization_axis=1, quantization_min_val=lo, quantization_max_val=hi)), X, SCALES, ZEROS)
    data = {tf.qint8: i8, tf.quint8: u8, tf.qint32: wide}[t](2, 6, 3)
    case("UniformDequantize_%s" % t.name, lambda x, s, z, lo=lo, hi=hi: raw.UniformDequantize(input=as_q(x), scales=s, zero_points=z, Tout=tf.float32, quantization_min_val=lo, quantization_max_val=hi), data, F(0.125), np.int32(5))
    case("UniformDequantize_%s_axis" % t.name, lambda x, s, z, lo=lo, hi=hi: raw.UniformDequantize(input=as_q(x), scales=s, zero_points=z, Tout=tf.float32, quantization_axis=1, quantization_min_val=lo, quantization_max_val=hi), data // 2, SCALES, ZEROS)
case("UniformQuantize_shape", lambda x, s, z: whole(raw.UniformQuantize(input=x, scales=s, zero_points=z, Tout=tf.qint8, quantization_axis=1, quantization_min_val=-128, quantization_max_val=127)), X, SCALES[:4], ZEROS[:4], error=True)
for t, data in ((tf.qint8, i8(2, 6, 3)), (tf.qint32, state.rng.integers(-5000, 5000, (2, 6, 3)).astype(np.int32))):
    lo, hi = RANGES[t]
    for i in (-1, 1):
        for o in (-1, 1):
            case("UniformRequantize_%s_%s%s" % (t.name, i >= 0, o >= 0), lambda x, s, z, p, w, i=i, o=o, lo=lo, hi=hi: whole(raw.UniformRequantize(input=as_q(x), input_scales=s, input_zero_points=z, output_scales=p, output_zero_points=w, Tout=tf.qint8,
                 input_quantization_axis=i, output_quantization_axis=o, input_quantization_min_val=lo, input_quantization_max_val=hi, output_quantization_min_val=-120, output_quantization_max_val=127)),
                 data, SCALES * F(0.3) if i >= 0 else F(0.02), ZEROS if i >= 0 else np.int32(4), SCALES[::-1].copy() if o >= 0 else F(0.7), ZEROS[::-1].copy() if o >= 0 else np.int32(-3), const=(1, 3))
case("UniformRequantize_large", lambda x: whole(raw.UniformRequantize(input=as_q(x), input_scales=c(0.5), input_zero_points=c(2), output_scales=c(1e-9), output_zero_points=c(0), Tout=tf.qint8, input_quantization_min_val=-128, input_quantization_max_val=127, output_quantization_min_val=-128, output_quantization_max_val=127)), i8(9))
