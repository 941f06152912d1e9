"""Small ops: offsets, copies, casts that truncate, comparisons of shapes that do not fit, quantised types, the largest of sparse tensors."""
from recorder import *

for axis in (0, 2, -1):
    case("ConcatOffset_%d" % axis, lambda a, x, y, z: list(raw.ConcatOffset(concat_dim=a, shape=[x, y, z])), np.int32(axis), *[np.array([k if i == axis % 3 else 4 for i in range(3)], np.int32) for k in (2, 5, 3)])
case("ConcatOffset_i64", lambda x, y: list(raw.ConcatOffset(concat_dim=c(1), shape=[x, y])), np.array([2, 3], np.int64), np.array([2, 5], np.int64))
case("ConcatOffset_bad", lambda a, x, y: list(raw.ConcatOffset(concat_dim=a, shape=[x, y])), np.int32(1), np.array([2, 3], np.int32), np.array([4, 5], np.int32), error=True)
case("DeepCopy", lambda x: raw.DeepCopy(x=x), f32(2, 3))
case("ScatterNdNonAliasingAdd", lambda x, i, u: raw.ScatterNdNonAliasingAdd(input=x, indices=i, updates=u), f32(5), np.array([[1], [3], [1]], np.int32), f32(3))
case("ScatterNdNonAliasingAdd_beyond", lambda x, i, u: raw.ScatterNdNonAliasingAdd(input=x, indices=i, updates=u), f32(5), np.array([[5]], np.int32), f32(1), error=True)

T = np.array([1.0 + 2**-8, -1.0 - 2**-7 - 2**-9, 3.1415926, 1e-3, 65504, -0.0, np.inf, -np.inf, np.nan, 1e30, 6e-8], np.float64)
for to in (tf.float32, tf.float16, tf.bfloat16):
    for of in (np.float32, np.float64):
        if of is np.float32 and to == tf.float32: continue
        case("CastTruncate_%s_%s" % (of.__name__, to.name), lambda x, to=to: raw.Cast(x=x, DstT=to, Truncate=True), T.astype(of))
case("CastTruncate_wider", lambda x: raw.Cast(x=x, DstT=tf.float64, Truncate=True), T.astype(np.float32))

for op in (raw.Equal, raw.NotEqual):
    case(op.__name__ + "_shapes", lambda x, y, op=op: op(x=x, y=y, incompatible_shape_error=False), f32(2, 3), f32(4, 3), sized=True, const=(0, 1))
    case(op.__name__ + "_shapes_fit", lambda x, y, op=op: op(x=x, y=y, incompatible_shape_error=False), f32(2, 3), f32(1, 3))

for to, of in ((tf.qint8, np.int8), (tf.quint8, np.uint8), (tf.qint16, np.int16), (tf.quint16, np.uint16), (tf.qint32, np.int32)):
    case("Bitcast_%s" % to.name, lambda x, to=to, of=of: raw.Bitcast(input=raw.Bitcast(input=x, type=to), type=of), np.array([0, 1, 7, 100], of))

at = np.array([[0, 1], [0, 3], [2, 0], [2, 3]], np.int64)
for d in ("float32", "int32", "float64", "int64", "uint8"):
    for axes in ([0], [1], [-1], [0, 1]):
        for keep in (False, True):
            case("SparseReduceMax_%s_%s_%d" % (d, "".join(map(str, axes)).replace("-", "m"), keep), lambda i, v, axes=axes, keep=keep: raw.SparseReduceMax(input_indices=i, input_values=v, input_shape=c([3, 4], tf.int64), reduction_axes=c(axes), keep_dims=keep), at, np.array([5, 2, 3, 9] if d == "uint8" else [-5, -2, -3, -9], np_type(d)))

as_quantised = lambda x: raw.Bitcast(input=x, type=tf.quint8)


def plain(outs):
    """Quantised results as the integers that carry them."""
    return [raw.Bitcast(input=outs[0], type=tf.uint8)] + list(outs[1:])


bytes_of = lambda *shape: state.rng.integers(0, 256, shape).astype(np.uint8)
case("QuantizedReshape", lambda x, lo, hi: plain(raw.QuantizedReshape(tensor=as_quantised(x), shape=c([3, -1]), input_min=lo, input_max=hi)), bytes_of(2, 6), np.float32(-1), np.float32(2.5))
for padding in ("SAME", "VALID"):
    case("QuantizedMaxPool_" + padding, lambda x, lo, hi, padding=padding: plain(raw.QuantizedMaxPool(input=as_quantised(x), min_input=lo, max_input=hi, ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding=padding)), bytes_of(2, 7, 5, 3), np.float32(-1), np.float32(2.5))
