"""Sparse tensors put together and apart, and sets along the last axis."""
from recorder import *

i64 = lambda x: np.array(x, np.int64)
A, AS = i64([[0, 1], [0, 3], [2, 0], [2, 2]]), i64([3, 4])
B, BS = i64([[0, 0], [0, 3], [1, 1], [2, 2], [2, 3]]), i64([3, 4])


def add(name, x, y, threshold, **kw):
    case("SparseAdd_" + name, lambda i, v, s, j, w, t, h: list(raw.SparseAdd(a_indices=i, a_values=v, a_shape=s, b_indices=j, b_values=w, b_shape=t, thresh=h)), A, x, AS, B, y, BS, threshold, **kw)


for d in "float32 float64 int32 int64 int16 int8".split(): add(d, small(d, 4), small(d, 5), np.array(0, np_type(d)))
add("threshold", np.float32([1, -0.5, 2, 3]), np.float32([0.1, 0.5, -3, -2.5, 0.25]), np.float32(0.5))
add("threshold_i32", np.int32([1, -5, 2, 3]), np.int32([1, 5, -3, -2, 2]), np.int32(2))
add("nan", np.float32([np.nan, 1, 2, 3]), f32(5), np.float32(0.0))
case("SparseAdd_empty", lambda i, v, j, w: list(raw.SparseAdd(a_indices=i, a_values=v, a_shape=c([3, 4], tf.int64), b_indices=j, b_values=w, b_shape=c([3, 4], tf.int64), thresh=c(0.0))), i64(np.zeros((0, 2))), f32(0), B, f32(5))
case("SparseAdd_vector", lambda i, v, j, w: list(raw.SparseAdd(a_indices=i, a_values=v, a_shape=c([9], tf.int64), b_indices=j, b_values=w, b_shape=c([9], tf.int64), thresh=c(0.0))), i64([[1], [4]]), f32(2), i64([[0], [4], [8]]), f32(3))
case("SparseAdd_shapes", lambda i, v, j, w: list(raw.SparseAdd(a_indices=i, a_values=v, a_shape=c([3, 4], tf.int64), b_indices=j, b_values=w, b_shape=c([3, 5], tf.int64), thresh=c(0.0))), A, f32(4), B, f32(5), error=True)

R = i64([[0, 1], [0, 3], [1, 0], [2, 2], [2, 5], [2, 6]])
for axis in (0, 1, -1):
    for parts in (1, 2, 3): case("SparseSplit_%d_%d" % (axis, parts), lambda a, i, v, s, k=parts: [t for o in raw.SparseSplit(split_dim=a, indices=i, values=v, shape=s, num_split=k) for t in (o if isinstance(o, list) else [o])], i64(axis), R, f32(6), i64([3, 7]))
case("SparseSplit_strings", lambda i: [t for o in raw.SparseSplit(split_dim=c(1, tf.int64), indices=i, values=c([b"a", b"b", b"c", b"d", b"e", b"f"]), shape=c([3, 7], tf.int64), num_split=2) for t in o], R)
case("SparseSplit_many", lambda i, v: [t for o in raw.SparseSplit(split_dim=c(0, tf.int64), indices=i, values=v, shape=c([3, 7], tf.int64), num_split=4) for t in o], R, f32(6), error=True)
case("SparseSplit_axis", lambda i, v, a: [t for o in raw.SparseSplit(split_dim=a, indices=i, values=v, shape=c([3, 7], tf.int64), num_split=2) for t in o], R, f32(6), i64(2), error=True)

D = i64([[0, 0, 1], [0, 1, 0], [0, 1, 2], [1, 0, 1], [1, 1, 1], [1, 1, 2]])
for op in "Sum Max".split():
    for axes in ([0], [1], [2], [0, 2], [-1], [0, 1], [1, 2]):
        for keep in (False, True):
            case("SparseReduce%sSparse_%s_%d" % (op, "".join(map(str, axes)), keep), lambda i, v, a, op=op, k=keep: list(getattr(raw, "SparseReduce%sSparse" % op)(input_indices=i, input_values=v, input_shape=c([2, 2, 3], tf.int64), reduction_axes=a, keep_dims=k)), D, f32(6), np.int32(axes))
    case("SparseReduce%sSparse_i32" % op, lambda i, v, op=op: list(getattr(raw, "SparseReduce%sSparse" % op)(input_indices=i, input_values=v, input_shape=c([2, 2, 3], tf.int64), reduction_axes=c([1]))), D, i32(6))
    case("SparseReduce%sSparse_axis" % op, lambda i, v, op=op: list(getattr(raw, "SparseReduce%sSparse" % op)(input_indices=i, input_values=v, input_shape=c([2, 2, 3], tf.int64), reduction_axes=c([3]))), D, f32(6), error=True)

OPS = ("a-b", "b-a", "intersection", "union")
S1 = (i64([[0, 0], [0, 1], [0, 2], [2, 0], [2, 1], [3, 1]]), i64([4, 3]))
S2 = (i64([[0, 0], [0, 1], [1, 0], [1, 3], [2, 2], [3, 0]]), i64([4, 4]))
for op in OPS:
    for d in "int8 int16 int32 int64 uint8 uint16".split():
        if d in ("int32", "int64") or op == "union":
            case("DenseToDenseSetOperation_%s_%s" % (op, d), lambda x, y, op=op: list(raw.DenseToDenseSetOperation(set1=x, set2=y, set_operation=op)), i32(2, 3, 4, lo=0, hi=6).astype(np_type(d)), i32(2, 3, 5, lo=0, hi=6).astype(np_type(d)))
            case("DenseToSparseSetOperation_%s_%s" % (op, d), lambda x, i, v, s, op=op: list(raw.DenseToSparseSetOperation(set1=x, set2_indices=i, set2_values=v, set2_shape=s, set_operation=op)), i32(4, 3, lo=0, hi=5).astype(np_type(d)), S2[0], i32(6, lo=0, hi=5).astype(np_type(d)), S2[1])
            case("SparseToSparseSetOperation_%s_%s" % (op, d), lambda i, v, s, j, w, t, op=op: list(raw.SparseToSparseSetOperation(set1_indices=i, set1_values=v, set1_shape=s, set2_indices=j, set2_values=w, set2_shape=t, set_operation=op)),
                 S1[0], i32(6, lo=0, hi=4).astype(np_type(d)), S1[1], S2[0], i32(6, lo=0, hi=4).astype(np_type(d)), S2[1])
    W = lambda n: np.array([b"abc", b"", b"b", b"ab", b"abc", b"\xc3\xa4", b"zz"], object)[state.rng.integers(0, 7, n)]
    case("DenseToDenseSetOperation_%s_strings" % op, lambda x, y, op=op: list(raw.DenseToDenseSetOperation(set1=x, set2=y, set_operation=op)), W((3, 4)), W((3, 2)))
    case("SparseToSparseSetOperation_%s_strings" % op, lambda i, v, s, j, w, t, op=op: list(raw.SparseToSparseSetOperation(set1_indices=i, set1_values=v, set1_shape=s, set2_indices=j, set2_values=w, set2_shape=t, set_operation=op)), S1[0], W(6), S1[1], S2[0], W(6), S2[1])
case("DenseToDenseSetOperation_signs", lambda x, y: list(raw.DenseToDenseSetOperation(set1=x, set2=y, set_operation="union")), i32(3, 4), i32(3, 4))
case("DenseToDenseSetOperation_empty", lambda x, y: list(raw.DenseToDenseSetOperation(set1=x, set2=y, set_operation="intersection")), np.int32([[1, 2], [3, 4]]), np.int32([[5, 6], [7, 8]]))
case("DenseToDenseSetOperation_none", lambda x, y: list(raw.DenseToDenseSetOperation(set1=x, set2=y, set_operation="union")), np.zeros((2, 0), np.int32), np.int32([[5, 6], [7, 7]]))
case("DenseToDenseSetOperation_shapes", lambda x, y: list(raw.DenseToDenseSetOperation(set1=x, set2=y, set_operation="union")), i32(2, 3), i32(3, 3), error=True)
case("SparseToSparseSetOperation_order", lambda i, v, s, j, w, t: list(raw.SparseToSparseSetOperation(set1_indices=i, set1_values=v, set1_shape=s, set2_indices=j, set2_values=w, set2_shape=t, set_operation="union")),
     S1[0][::-1].copy(), i32(6), S1[1], S2[0], i32(6), S2[1], error=True)
case("SetSize", lambda i, v, s: [raw.SetSize(set_indices=i, set_values=v, set_shape=s)], S1[0], i32(6, lo=0, hi=2), S1[1])
case("SetSize_deep", lambda i, v: raw.SetSize(set_indices=i, set_values=v, set_shape=c([2, 2, 3], tf.int64)), D, np.int64([1, 2, 2, 3, 3, 3]))
case("SetSize_strings", lambda i, v: raw.SetSize(set_indices=i, set_values=v, set_shape=c([4, 3], tf.int64)), S1[0], np.array([b"a", b"a", b"b", b"c", b"d", b"e"], object))
case("SetSize_order", lambda i, v, s: raw.SetSize(set_indices=i, set_values=v, set_shape=s), S1[0][::-1].copy(), i32(6), S1[1], error=True)
