"""Calls of elementwise ops, movements, selections and reductions."""
import numpy as np
import tensorflow as tf

from draws import ANY, FLOATS, INTS, call, plain, raw


UNARY_FLOAT = ["Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Digamma", "Elu", "Erf", "Erfc",
               "Exp", "Expm1", "Floor", "Inv", "IsFinite", "IsInf", "IsNan", "Lgamma", "Log", "Log1p", "Neg", "Reciprocal",
               "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign",
               "Sqrt", "Square", "Tan", "Tanh"]


@call
def unary(d):
    name = d.one(UNARY_FLOAT)
    dtype = d.one(FLOATS + ([np.int32, np.int64] if name in ("Abs", "Neg", "Sign", "Square", "Relu") else []))
    return plain(name), [d.array(d.shape(), dtype, 0.5)], name


BINARY = {"Add": ANY[:-1], "AddV2": ANY[:-1], "Sub": ANY[:-1], "Mul": ANY[:-1], "Maximum": ANY[:-1], "Minimum": ANY[:-1],
          "SquaredDifference": FLOATS + [np.int32, np.int64], "Equal": ANY, "NotEqual": ANY, "Less": ANY[:-1],
          "LessEqual": ANY[:-1], "Greater": ANY[:-1], "GreaterEqual": ANY[:-1], "Atan2": FLOATS, "Xdivy": FLOATS,
          "Xlogy": FLOATS, "DivNoNan": FLOATS, "RealDiv": FLOATS, "Div": FLOATS, "FloorDiv": FLOATS, "FloorMod": FLOATS,
          "Mod": FLOATS, "Pow": FLOATS, "MulNoNan": FLOATS, "BitwiseAnd": INTS, "BitwiseOr": INTS, "BitwiseXor": INTS,
          "LogicalAnd": [np.bool_], "LogicalOr": [np.bool_]}


@call
def binary(d):
    name = d.one(list(BINARY))
    return plain(name), d.broadcast_pair(d.one(BINARY[name])), name


@call
def integer_division(d):
    name = d.one(["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "LeftShift", "RightShift"])
    dtype = d.one(INTS)
    a, b = d.broadcast_pair(dtype, 0.0)
    if "Shift" in name:
        b = np.asarray(b % 7, dtype)
    b = np.where(b == 0, np.asarray(3, dtype), b)
    return plain(name), [a, b.astype(dtype)], name


@call
def cast(d):
    source, to = d.one(ANY), d.one(ANY)
    special = 0.3 if np.dtype(to).kind == "f" else 0.0
    x = d.array(d.shape(), source, special)
    if np.dtype(source).kind == "f" and np.dtype(to).kind == "u":
        x = np.abs(x)
    return lambda x: tf.cast(x, to), [x], "Cast"


@call
def reduce(d):
    name = d.one(["Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm"])
    dtype = np.bool_ if name in ("All", "Any") else d.one(FLOATS if name in ("Mean", "EuclideanNorm") else FLOATS + INTS)
    x = d.array(d.shape(0, 5, 5), dtype, 0.3 if name in ("Max", "Min") else 0.0)
    axes = [int(a) for a in d.rng.permutation(x.ndim)[:d.int(0, x.ndim)]]
    axes = [a - x.ndim if d.often(0.3) else a for a in axes]
    keep = d.often()
    op = getattr(raw, name)
    axis = np.asarray(axes, np.int32)
    if d.often(0.2) and len(axes) == 1:
        axis = axis[0]
    if name in ("All", "Any"):
        return lambda x: op(input=x, axis=axis, keep_dims=keep), [x], name
    return lambda x: op(input=x, axis=axis, keep_dims=keep), [x], name


@call
def arg(d):
    name = d.one(["ArgMax", "ArgMin"])
    x = d.array(d.shape(1, 4), d.one(FLOATS + INTS), 0.2)
    axis = d.int(-x.ndim, x.ndim - 1)
    out = d.one([np.int32, np.int64])
    return lambda x: getattr(raw, name)(input=x, dimension=axis, output_type=out), [x], name


@call
def cumulate(d):
    name = d.one(["Cumsum", "Cumprod"])
    x = d.array(d.shape(1, 4), d.one(FLOATS[:4] + INTS[:2]))
    axis = d.int(-x.ndim, x.ndim - 1)
    exclusive, reverse = d.often(), d.often()
    return lambda x: getattr(raw, name)(x=x, axis=axis, exclusive=exclusive, reverse=reverse), [x], name


@call
def strided_slice(d):
    x = d.array(d.shape(1, 4, 7))
    n = d.int(1, x.ndim)
    begin = [d.int(-9, 9) for _ in range(n)]
    end = [d.int(-9, 9) for _ in range(n)]
    step = [d.one([1, 1, 1, 2, 3, -1, -1, -2]) for _ in range(n)]
    shrink = 0
    for i in range(n):
        if d.often(0.2):
            shrink |= 1 << i
            step[i] = 1
            begin[i] = d.int(-x.shape[i], x.shape[i] - 1) if x.shape[i] else 0
    masks = dict(begin_mask=d.int(0, 2**n - 1) & ~shrink, end_mask=d.int(0, 2**n - 1),
                 ellipsis_mask=1 << d.int(0, n - 1) if d.often(0.2) else 0,
                 new_axis_mask=1 << d.int(0, n - 1) if d.often(0.2) else 0, shrink_axis_mask=shrink)
    bounds = [np.asarray(v, np.int32) for v in (begin, end, step)]
    if d.often(0.2):
        return lambda x, b, e: raw.StridedSlice(input=x, begin=b, end=e, strides=bounds[2], **masks), [x] + bounds[:2], "StridedSlice"
    return lambda x: raw.StridedSlice(input=x, begin=bounds[0], end=bounds[1], strides=bounds[2], **masks), [x], "StridedSlice"


@call
def slice_(d):
    x = d.array(d.shape(1, 4))
    begin = [d.int(0, s) for s in x.shape]
    size = [d.int(-1, s - b) for s, b in zip(x.shape, begin)]
    return lambda x: tf.slice(x, begin, size), [x], "Slice"


@call
def pad(d):
    name = d.one(["Pad", "PadV2", "MirrorPad"])
    x = d.array(d.shape(1, 4, empty=0), d.one(ANY[:-1]))
    mode = d.one(["REFLECT", "SYMMETRIC"])
    less = 1 if mode == "REFLECT" else 0
    pads = [[d.int(0, max(0, min(3, s - less) if name == "MirrorPad" else 3)) for _ in range(2)] for s in x.shape]
    if name == "MirrorPad":
        return lambda x: raw.MirrorPad(input=x, paddings=pads, mode=mode), [x], name
    if name == "Pad":
        return lambda x: raw.Pad(input=x, paddings=pads), [x], name
    value = d.array([], x.dtype)
    return lambda x, v: raw.PadV2(input=x, paddings=pads, constant_values=v), [x, value], name


@call
def rearrange(d):
    name = d.one(["Tile", "Reverse", "Roll", "Transpose", "ExpandDims", "Squeeze", "Reshape", "BroadcastTo"])
    x = d.array(d.shape(1, 4))
    if name == "Tile":
        times = [d.int(0 if d.often(0.1) else 1, 3) for _ in x.shape]
        return lambda x: tf.tile(x, times), [x], name
    if name == "Reverse":
        axes = [int(a) for a in d.rng.permutation(x.ndim)[:d.int(0, x.ndim)]]
        return lambda x: tf.reverse(x, axes), [x], name
    if name == "Roll":
        axes = [d.int(-x.ndim, x.ndim - 1) for _ in range(d.int(1, 3))]
        shifts = [d.int(-9, 9) for _ in axes]
        return lambda x: tf.roll(x, shifts, axes), [x], name
    if name == "Transpose":
        order = [int(a) for a in d.rng.permutation(x.ndim)]
        return lambda x: tf.transpose(x, order), [x], name
    if name == "ExpandDims":
        axis = d.int(-x.ndim - 1, x.ndim)
        return lambda x: tf.expand_dims(x, axis), [x], name
    if name == "Squeeze":
        shape = [s for s in x.shape for s in ([1, s] if d.often() else [s])]
        return lambda x: tf.squeeze(x), [x.reshape(shape)], name
    if name == "Reshape":
        sizes = list(x.shape)
        if len(sizes) > 1:
            sizes[:2] = [sizes[0] * sizes[1]]
        if d.often() and 0 not in sizes:
            sizes[d.int(0, len(sizes) - 1)] = -1
        return lambda x: tf.reshape(x, sizes), [x], name
    shape = [d.int(1, 3)] * d.int(0, 2) + [s if s != 1 else d.int(1, 3) for s in x.shape]
    return lambda x: tf.broadcast_to(x, shape), [x], name


@call
def join(d):
    name = d.one(["Concat", "Pack", "Split", "SplitV", "Unpack"])
    dtype = d.one(ANY)
    x = d.array(d.shape(1, 4), dtype)
    axis = d.int(-x.ndim, x.ndim - 1)
    if name == "Concat":
        parts = [x]
        for _ in range(d.int(1, 3)):
            shape = list(x.shape)
            shape[axis] = d.int(0, 4)
            parts.append(d.array(shape, dtype))
        return lambda *parts: tf.concat(parts, axis), parts, name
    if name == "Pack":
        parts = [d.array(x.shape, dtype) for _ in range(d.int(1, 3))]
        at = d.int(-x.ndim - 1, x.ndim)
        return lambda *parts: tf.stack(parts, at), parts, name
    if name == "Unpack":
        return lambda x: tf.unstack(x, axis=axis), [x], name
    if name == "Split":
        count = d.int(1, 3)
        shape = list(x.shape)
        shape[axis] *= count
        return lambda x: tf.split(x, count, axis), [d.array(shape, dtype)], name
    sizes = [d.int(0, 3) for _ in range(d.int(1, 4))]
    shape = list(x.shape)
    shape[axis] = sum(sizes)
    if d.often(0.3):
        sizes[d.int(0, len(sizes) - 1)] = -1
    return lambda x: tf.split(x, sizes, axis), [d.array(shape, dtype)], name


@call
def gather(d):
    name = d.one(["GatherV2", "GatherV2", "GatherNd", "BatchGather", "ScatterNd", "TensorScatterUpdate", "TensorScatterAdd",
                  "TensorScatterMax"])
    dtype = d.one(ANY[:-1])
    x = d.array(d.shape(1, 4, empty=0), dtype)
    if name == "GatherV2":
        batch = d.int(0, x.ndim - 1) if d.often(0.4) else 0
        axis = d.int(batch, x.ndim - 1)
        shape = list(x.shape[:batch]) + d.shape(0, 2, 4)
        index = d.rng.integers(0, x.shape[axis], shape).astype(d.one([np.int32, np.int64]))
        axis = axis if d.often(0.7) else axis - x.ndim
        return lambda x, i: tf.gather(x, i, axis=axis, batch_dims=batch), [x, index], name
    if name == "BatchGather":
        x = d.array([3] + d.shape(1, 3, empty=0), dtype)
        index = d.rng.integers(0, x.shape[1], [3, d.int(1, 4)]).astype(np.int32)
        return lambda x, i: tf.gather(x, i, batch_dims=1), [x, index], name
    depth = d.int(1, x.ndim) if d.often(0.9) else 0
    outer = d.shape(1, 2, 4, 0)
    index = np.stack([d.rng.integers(0, x.shape[i], outer) for i in range(depth)], -1).astype(np.int32) if depth else np.zeros(
        outer + [0], np.int32)
    if name == "GatherNd":
        return lambda x, i: tf.gather_nd(x, i), [x, index], name
    updates = d.array(outer + list(x.shape[depth:]), dtype)
    if name == "ScatterNd":
        shape = list(x.shape)
        return lambda i, u: tf.scatter_nd(i, u, shape), [index, updates], name
    if name == "TensorScatterUpdate":
        index = np.unique(index.reshape(-1, depth), axis=0)
        updates = d.array([len(index)] + list(x.shape[depth:]), dtype)
    return lambda x, i, u: getattr(raw, name)(tensor=x, indices=i, updates=u), [x, index, updates], name


@call
def space(d):
    name = d.one(["SpaceToBatchND", "BatchToSpaceND", "SpaceToDepth", "DepthToSpace"])
    dtype = d.one([np.float32, np.int32, np.uint8, np.float16])
    block = [d.int(1, 3) for _ in range(2)]
    if name in ("SpaceToDepth", "DepthToSpace"):
        b = d.int(2, 3)
        shape = [d.int(1, 2), d.int(1, 3), d.int(1, 3), d.int(1, 3)]
        if name == "SpaceToDepth":
            shape[1] *= b
            shape[2] *= b
        else:
            shape[3] *= b * b
        return lambda x: getattr(raw, name)(input=x, block_size=b), [d.array(shape, dtype)], name
    if name == "SpaceToBatchND":
        pads, shape = [], [d.int(1, 2)]
        for b in block:
            size = d.int(1, 5)
            before = d.int(0, 2)
            pads.append([before, -(size + before) % b + (b if d.often(0.2) else 0)])
            shape.append(size)
        return lambda x: raw.SpaceToBatchND(input=x, block_shape=block, paddings=pads), [d.array(shape + [2], dtype)], name
    shape = [d.int(1, 2) * block[0] * block[1], d.int(1, 4), d.int(1, 4), 2]
    crops = [[d.int(0, 1), d.int(0, 1)] if s * b > 2 else [0, 0] for s, b in zip(shape[1:3], block)]
    return lambda x: raw.BatchToSpaceND(input=x, block_shape=block, crops=crops), [d.array(shape, dtype)], name


@call
def segment(d):
    name = d.one(["SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd", "UnsortedSegmentSum",
                  "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "SparseSegmentSum", "SparseSegmentMean"])
    x = d.array(d.shape(1, 3, empty=0), d.one([np.float32, np.int32] if "Sparse" not in name and "Mean" not in name else [np.float32]))
    if "Unsorted" in name:
        ids = d.rng.integers(-1, 5, x.shape[:d.int(1, x.ndim)]).astype(np.int32)
        return lambda x, i: getattr(raw, name)(data=x, segment_ids=i, num_segments=5), [x, ids], name
    if "Sparse" in name:
        n = d.int(1, 6)
        rows_ = d.rng.integers(0, x.shape[0], n).astype(np.int32)
        ids = np.sort(d.rng.integers(0, 4, n)).astype(np.int32)
        return lambda x, r, i: getattr(raw, name)(data=x, indices=r, segment_ids=i), [x, rows_, ids], name
    ids = np.sort(d.rng.integers(0, 4, x.shape[0])).astype(np.int32)
    return lambda x, i: getattr(raw, name)(data=x, segment_ids=i), [x, ids], name


@call
def matrices(d):
    name = d.one(["MatrixDiagV3", "MatrixDiagPartV3", "MatrixSetDiagV3", "MatrixBandPart", "Diag", "DiagPart", "Cholesky",
                  "MatrixInverse", "MatrixDeterminant", "MatrixSolve", "MatrixTriangularSolve", "Cross", "Qr"])
    batch = d.shape(0, 2, 3, 0)
    r, c = d.int(1, 5), d.int(1, 5)
    if name == "MatrixBandPart":
        x = d.array(batch + [r, c], d.one([np.float32, np.int32]))
        low, high = d.int(-1, r), d.int(-1, c)
        return lambda x: tf.linalg.band_part(x, low, high), [x], name
    if name in ("Diag", "DiagPart"):
        shape = d.shape(1, 2, 3, 0)
        x = d.array(shape if name == "Diag" else shape * 2, np.float32)
        return (lambda x: tf.linalg.tensor_diag(x)) if name == "Diag" else (lambda x: tf.linalg.tensor_diag_part(x)), [x], name
    align = d.one(["LEFT_LEFT", "RIGHT_LEFT", "LEFT_RIGHT", "RIGHT_RIGHT"])
    if name.startswith("MatrixDiag") or name == "MatrixSetDiagV3":
        low = d.int(-(r - 1), c - 1)
        high = d.int(low, c - 1)
        k = [low, high]
        count = high - low + 1
        longest = min(r + min(high, 0), c - max(low, 0))
        diagonal = d.array(batch + ([count] if count > 1 else []) + [longest], np.float32)
        if name == "MatrixDiagV3":
            return lambda x: tf.linalg.diag(x, k=k, num_rows=r, num_cols=c, padding_value=7, align=align), [diagonal], name
        x = d.array(batch + [r, c], np.float32)
        if name == "MatrixDiagPartV3":
            return lambda x: tf.linalg.diag_part(x, k=k, padding_value=7, align=align), [x], name
        return lambda x, v: tf.linalg.set_diag(x, v, k=k, align=align), [x, diagonal], name
    if name == "Cross":
        x, y = d.array(batch + [3], np.float32), d.array(batch + [3], np.float32)
        return lambda x, y: tf.linalg.cross(x, y), [x, y], name
    square = d.array(batch + [r, r], np.float64) + 6 * np.eye(r)
    if name == "Cholesky":
        return lambda x: tf.linalg.cholesky(x), [square @ np.swapaxes(square, -1, -2)], name
    if name == "MatrixInverse":
        return lambda x: tf.linalg.inv(x, adjoint=False), [square], name
    if name == "MatrixDeterminant":
        return lambda x: tf.linalg.det(x), [square], name
    right = d.array(batch + [r, c], np.float64)
    adjoint = d.often()
    if name == "MatrixSolve":
        return lambda a, b: tf.linalg.solve(a, b, adjoint=adjoint), [square, right], name
    if name == "MatrixTriangularSolve":
        lower = d.often()
        return lambda a, b: tf.linalg.triangular_solve(a, b, lower=lower, adjoint=adjoint), [square, right], name
    return lambda x: tf.linalg.matmul(*tf.linalg.qr(x)), [square], name


@call
def choose(d):
    name = d.one(["Select", "SelectV2", "Where", "ClipByValue", "AddN", "Range", "LinSpace", "Unique", "Bincount",
                  "InvertPermutation", "DynamicStitch", "ReverseSequence", "SequenceMask", "Fill", "Searchsorted"])
    dtype = d.one([np.float32, np.int32, np.float64, np.int64])
    x = d.array(d.shape(1, 3, empty=0), dtype)
    if name == "Select":
        condition = d.array(d.one([x.shape, x.shape[:1], []]), np.bool_)
        return lambda c, a, b: raw.Select(condition=c, x=a, y=b), [condition, x, d.array(x.shape, dtype)], name
    if name == "SelectV2":
        a, b = d.broadcast_pair(dtype)
        condition = d.array([1 if d.often() else s for s in np.broadcast_shapes(a.shape, b.shape)], np.bool_)
        return lambda c, a, b: tf.where(c, a, b), [condition, a, b], name
    if name == "Where":
        return lambda x: tf.where(x), [d.array(x.shape, d.one([np.bool_, np.float32, np.int32])) * (d.rng.random(x.shape) < 0.5)], name
    if name == "ClipByValue":
        return lambda x: tf.clip_by_value(x, np.asarray(-1, dtype), np.asarray(2, dtype)), [x], name
    if name == "AddN":
        parts = [x] + [d.array(x.shape, dtype) for _ in range(d.int(0, 3))]
        return lambda *p: tf.add_n(list(p)), parts, name
    if name == "Range":
        start, step = d.int(-5, 5), d.one([1, 2, -1, 3])
        limit = start + step * d.int(0, 5) + d.int(0, 1)
        arrays = [np.asarray(v, dtype) for v in (start, limit, step)]
        return lambda a, b, c: tf.range(a, b, c), arrays, name
    if name == "LinSpace":
        count = d.int(1, 6)
        return lambda a, b: raw.LinSpace(start=a, stop=b, num=count), [np.float32(d.int(-5, 5)), np.float32(d.int(-5, 5))], name
    if name == "Unique":
        return lambda x: tf.unique(x), [d.rng.integers(0, 5, d.int(1, 8)).astype(d.one([np.int32, np.int64, np.float32]))], name
    if name == "Bincount":
        return lambda x: tf.math.bincount(x, minlength=3, maxlength=6), [d.rng.integers(0, 8, d.int(1, 9)).astype(np.int32)], name
    if name == "InvertPermutation":
        return lambda x: tf.math.invert_permutation(x), [d.rng.permutation(d.int(1, 6)).astype(np.int32)], name
    if name == "DynamicStitch":
        order = d.rng.permutation(6).astype(np.int32)
        tail = d.shape(0, 2, 3, 0)
        return lambda a, b: tf.dynamic_stitch([order[:4], order[4:]], [a, b]), [d.array([4] + tail, dtype), d.array([2] + tail, dtype)], name
    if name == "ReverseSequence":
        x = d.array([d.int(1, 3), d.int(1, 5)] + d.shape(0, 1, 3, 0), dtype)
        lengths = d.rng.integers(0, x.shape[1] + 1, x.shape[0]).astype(np.int32)
        return lambda x, n: tf.reverse_sequence(x, n, seq_axis=1, batch_axis=0), [x, lengths], name
    if name == "SequenceMask":
        return lambda n: tf.sequence_mask(n, 5), [d.rng.integers(0, 6, d.shape(0, 2)).astype(np.int32)], name
    if name == "Fill":
        shape = d.shape(0, 3)
        return lambda v: tf.fill(shape, v), [d.array([], dtype)], name
    keys = np.sort(d.array([2, d.int(1, 6)], np.float32), -1)
    side = d.one(["left", "right"])
    return lambda k, v: tf.searchsorted(k, v, side), [keys, d.array([2, 4], np.float32)], name
