"""Every dtype that TensorFlow's CPU has a kernel for, op by op, on numbers at the edges: least and most, zeros of both signs, infinities, NaN, ties,
negative divisors, nothing at all. What TensorFlow cannot run is left out."""
from recorder import *

# Elementwise, one input.
arg = dict(Relu="features", Relu6="features", Elu="features", Selu="features", Softplus="features", Softsign="features", LeakyRelu="features", L2Loss="t")
for op in "Abs Neg Sign Square Relu Relu6 Invert PopulationCount Ceil Floor Rint Round ZerosLike OnesLike IsNan IsInf IsFinite".split():
    # Round of integers gives zeros in this TensorFlow.
    each(op, FLOATS if op == "Round" else ANY, lambda d, x, op=op: getattr(raw, op)(**{arg.get(op, "x"): x}), lambda d: [numbers(d)])
for op in ("Acos Acosh Asin Asinh Atan Atanh Cos Cosh Elu Erf Erfc Exp Expm1 LeakyRelu Lgamma Digamma Log Log1p Reciprocal Inv Rsqrt Selu Sigmoid Sin Sinh Softplus Softsign Sqrt Tan Tanh "
           "Erfinv Ndtri BesselI0e BesselI1e").split():
    if op in ("Sin", "Cos", "Tan", "Sinh", "Cosh"): values = lambda d: [np.array([np.nan, -0.0, 2.5, -1.5, 0.375]).astype(np_type(d))]
    elif op in ("Lgamma", "Digamma"): values = lambda d: [np.array([np.nan, np.inf, 2.5, -1.5, 0.375, 1, 2]).astype(np_type(d))]
    elif op == "Erf": values = lambda d: [numbers(d)[2:]]  # of infinite doubles TensorFlow gives NaN
    else: values = lambda d: [numbers(d)]
    each(op, FLOATS + (["int32", "int64"] if op in ("Reciprocal", "Inv") else []), lambda d, x, op=op: getattr(raw, op)(**{arg.get(op, "x"): x}),
         values if op not in ("Reciprocal", "Inv") else (lambda d: [numbers(d) if d in FLOATS else np.array([1, 2, -1, 5], np_type(d))]), close=True)

# Elementwise, two inputs: every pair.
pairs = lambda d: [numbers(d).reshape(-1, 1), numbers(d)]
for op in "Add AddV2 Sub Mul Maximum Minimum".split():
    each(op, TEXT if op[:3] == "Add" else ANY, lambda d, a, b, op=op: getattr(raw, op)(x=a, y=b), pairs)
each("SquaredDifference", INTS + FLOATS, lambda d, a, b: raw.SquaredDifference(x=a, y=b), lambda d: [small(d, 6).reshape(-1, 1), small(d, 6)] if d in INTS else pairs(d), close=True)
for op in "Equal NotEqual".split(): each(op, TEXT, lambda d, a, b, op=op: getattr(raw, op)(x=a, y=b), pairs)
for op in "Less LessEqual Greater GreaterEqual".split(): each(op, ANY, lambda d, a, b, op=op: getattr(raw, op)(x=a, y=b), pairs)
for op in "BitwiseAnd BitwiseOr BitwiseXor".split(): each(op, INTS, lambda d, a, b, op=op: getattr(raw, op)(x=a, y=b), pairs)
for op in "LeftShift RightShift".split():
    each(op, INTS, lambda d, a, b, op=op: getattr(raw, op)(x=a, y=b), lambda d: [numbers(d).reshape(-1, 1), np.array([0, 1, 3, 7], np_type(d))])
divisors = lambda d: [numbers(d).reshape(-1, 1), np.array([1, 2, 3, 100] + ([] if d[0] == "u" else [-2, -7]), np_type(d)) if d in INTS else numbers(d)]
for op in "Div RealDiv FloorDiv FloorMod Mod TruncateDiv TruncateMod DivNoNan MulNoNan Xdivy Xlogy Xlog1py Atan2 NextAfter".split():
    key = ("x1", "x2") if op == "NextAfter" else ("y", "x") if op == "Atan2" else ("x", "y")
    each(op, INTS + FLOATS, lambda d, a, b, op=op, key=key: getattr(raw, op)(**{key[0]: a, key[1]: b}), divisors, close=True)
each("Pow", INTS + FLOATS, lambda d, a, b: raw.Pow(x=a, y=b), lambda d: [small(d, 7).reshape(-1, 1), np.array([0, 1, 2], np_type(d))] if d in INTS else pairs(d), close=True)
for op in "LogicalAnd LogicalOr".split(): each(op, ["bool"], lambda d, a, b, op=op: getattr(raw, op)(x=a, y=b), pairs)
each("Select", TEXT, lambda d, k, a, b: raw.Select(condition=k, x=a, y=b), lambda d: [numbers("bool"), numbers(d), numbers(d)[::-1].copy()])
each("SelectV2", TEXT, lambda d, k, a, b: raw.SelectV2(condition=k, t=a, e=b), lambda d: [numbers("bool").reshape(-1, 1), numbers(d), numbers(d)[:1]])
each("ClipByValue", INTS + FLOATS, lambda d, x, a, b: raw.ClipByValue(t=x, clip_value_min=a, clip_value_max=b), lambda d: [numbers(d), np.array(1, np_type(d)), np.array(5, np_type(d))])
each("AddN", TEXT, lambda d, a, b, e: raw.AddN(inputs=[a, b, e]), lambda d: [small(d, 7), small(d, 7), small(d, 7)])
each("BiasAdd", INTS + FLOATS, lambda d, a, b: raw.BiasAdd(value=a, bias=b), lambda d: [small(d, 2, 4), small(d, 4)])
each("ApproximateEqual", INTS + FLOATS, lambda d, a, b: raw.ApproximateEqual(x=a, y=b, tolerance=1.5), lambda d: [small(d, 7), small(d, 7)[::-1].copy()])

# Casts: every pair, of numbers that both have.
for d in ANY:
    def casts(_, x, d=d): return [raw.Cast(x=x, DstT=tf.as_dtype(to)) for to in ANY]
    each("Cast_all", [d], casts, lambda d: [np.array([0, 1, 5, 100, 27], np_type(d))])
    each("Cast_bits", [d] if d in INTS else [], lambda d, x: [raw.Cast(x=x, DstT=tf.as_dtype(to)) for to in INTS], lambda d: [numbers(d)])
each("Cast_whole", FLOATS, lambda d, x: [raw.Cast(x=x, DstT=tf.as_dtype(to)) for to in ("int8", "int16", "int32", "int64", "bool", "float64")], lambda d: [np.array([-2.5, -0.5, 0.5, 1.5, 99.75, -100.5]).astype(np_type(d))])
each("Cast_special", FLOATS, lambda d, x: [raw.Cast(x=x, DstT=tf.as_dtype(to)) for to in ["bool"] + FLOATS], lambda d: [numbers(d)])
each("Bitcast", INTS + FLOATS, lambda d, x: raw.Bitcast(input=x, type=tf.uint8), lambda d: [numbers(d)])

# Reductions: over one axis, all, none of a tensor without elements.
for op in "Sum Prod Mean Max Min EuclideanNorm".split():
    shape = (2, 3) if op == "Prod" else (3, 4)
    each(op, INTS + FLOATS, lambda d, x, op=op: [getattr(raw, op)(input=x, axis=c([0])), getattr(raw, op)(input=x, axis=c([1]), keep_dims=True), getattr(raw, op)(input=x, axis=c([0, 1]))],
         lambda d, shape=shape: [small(d, *shape)], close=True)
    if op != "Mean": each(op + "_empty", INTS + FLOATS, lambda d, x, op=op: getattr(raw, op)(input=x, axis=c([0])), lambda d: [small(d, 0, 3)])
    each(op + "_edges", (INTS if op in ("Max", "Min") else []) + FLOATS, lambda d, x, op=op: [getattr(raw, op)(input=x, axis=c([1])), getattr(raw, op)(input=x, axis=c([0]))],
         lambda d: [np.stack([numbers(d), numbers(d)[::-1], np.roll(numbers(d), 3)])], close=True)
for op in "All Any".split(): each(op, ["bool"], lambda d, x, op=op: [getattr(raw, op)(input=x, axis=c([0])), getattr(raw, op)(input=x[:0], axis=c([0]))], lambda d: [numbers(d).reshape(7, 1)])
for op in "ArgMax ArgMin".split():
    each(op, ANY, lambda d, x, op=op: [getattr(raw, op)(input=x, dimension=c(k), output_type=t) for k in (0, -1) for t in (tf.int32, tf.int64)], lambda d: [small(d, 3, 4)])
    each(op + "_edges", INTS + FLOATS, lambda d, x, op=op: getattr(raw, op)(input=x, dimension=c(1)), lambda d: [np.stack([numbers(d), numbers(d)[::-1], np.roll(numbers(d), 3)])])
each("ArgMax_narrow", ["float32"], lambda d, x: [raw.ArgMax(input=x, dimension=c(1), output_type=t) for t in (tf.int16, tf.uint16)], lambda d: [small(d, 3, 4)])
for op in "Cumsum Cumprod CumulativeLogsumexp".split():
    each(op, INTS + FLOATS, lambda d, x, op=op: [getattr(raw, op)(x=x, axis=c(0)), getattr(raw, op)(x=x, axis=c(1), exclusive=True, reverse=True)], lambda d: [small(d, 2, 3)], close=True)
each("L2Loss", FLOATS, lambda d, x: raw.L2Loss(t=x), lambda d: [small(d, 7)], close=True)
for op in "SegmentSum SegmentMean SegmentProd SegmentMax SegmentMin".split():
    each(op, INTS + FLOATS, lambda d, x, i, op=op: getattr(raw, op)(data=x, segment_ids=i), lambda d: [small(d, 5, 2), np.array([0, 0, 2, 2, 3], np.int32)], close=True)
for op in "UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMax UnsortedSegmentMin".split():
    each(op, INTS + FLOATS, lambda d, x, i, op=op: getattr(raw, op)(data=x, segment_ids=i, num_segments=c(4)), lambda d: [small(d, 5, 2), np.array([2, -1, 0, 2, 0], np.int64)], close=True)
for op in "SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN".split():
    each(op, INTS + FLOATS, lambda d, x, i, s, op=op: getattr(raw, op)(data=x, indices=i, segment_ids=s), lambda d: [small(d, 5, 2), np.array([4, 0, 0, 2], np.int32), np.array([0, 0, 1, 2], np.int32)], close=True)

# Norm, products, pools.
for op in "Softmax LogSoftmax".split(): each(op, FLOATS, lambda d, x, op=op: getattr(raw, op)(logits=x), lambda d: [small(d, 3, 4)], close=True)
each("MatMul", INTS + FLOATS, lambda d, a, b: [raw.MatMul(a=a, b=b), raw.MatMul(a=a, b=b, transpose_a=True, transpose_b=True)], lambda d: [small(d, 3, 3), small(d, 3, 3)], close=True)
each("MatMul_empty", INTS + FLOATS, lambda d, a, b: raw.MatMul(a=a, b=b), lambda d: [small(d, 2, 0), small(d, 0, 3)])
each("BatchMatMulV2", INTS + FLOATS, lambda d, a, b: raw.BatchMatMulV2(x=a, y=b), lambda d: [small(d, 2, 2, 3), small(d, 1, 3, 2)], close=True)
each("Einsum", INTS + FLOATS, lambda d, a, b: raw.Einsum(inputs=[a, b], equation="bij,jk->bk"), lambda d: [small(d, 2, 2, 3), small(d, 3, 2)], close=True)
each("Cross", INTS + FLOATS, lambda d, a, b: raw.Cross(a=a, b=b), lambda d: [np.abs(small(d, 2, 3)), np.zeros((2, 3), np_type(d))] if d[0] == "u" else [small(d, 2, 3), small(d, 2, 3)[::-1].copy()], close=True)
each("Conv2D", INTS + FLOATS, lambda d, x, w: raw.Conv2D(input=x, filter=w, strides=[1, 1, 1, 1], padding="SAME"), lambda d: [small(d, 1, 4, 4, 2), small(d, 2, 2, 2, 3)], const=(1,), close=True)
each("DepthwiseConv2dNative", FLOATS, lambda d, x, w: raw.DepthwiseConv2dNative(input=x, filter=w, strides=[1, 1, 1, 1], padding="SAME"), lambda d: [small(d, 1, 4, 4, 2), small(d, 2, 2, 2, 1)], const=(1,), close=True)
each("MaxPool", INTS + FLOATS, lambda d, x: raw.MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME"), lambda d: [small(d, 1, 4, 3, 2)])
each("AvgPool", FLOATS, lambda d, x: raw.AvgPool(value=x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="SAME"), lambda d: [small(d, 1, 4, 3, 2)], close=True)
each("ResizeNearestNeighbor", INTS + FLOATS, lambda d, x: raw.ResizeNearestNeighbor(images=x, size=c([3, 5])), lambda d: [small(d, 1, 2, 3, 2)])
each("ResizeBilinear", INTS + FLOATS, lambda d, x: raw.ResizeBilinear(images=x, size=c([3, 5])), lambda d: [small(d, 1, 2, 3, 2)])
each("ResizeArea", INTS + FLOATS, lambda d, x: raw.ResizeArea(images=x, size=c([3, 5])), lambda d: [small(d, 1, 2, 3, 2)])
each("ResizeBicubic", INTS + FLOATS, lambda d, x: raw.ResizeBicubic(images=x, size=c([3, 5])), lambda d: [small(d, 1, 2, 3, 2)])

# Movement and indexing.
each("Pack", TEXT, lambda d, a, b: [raw.Pack(values=[a, b], axis=1)] + raw.Unpack(value=a, num=7), lambda d: [numbers(d), numbers(d)[::-1].copy()])
each("ConcatV2", TEXT, lambda d, a, b: raw.ConcatV2(values=[a, b, a], axis=c(0)), lambda d: [numbers(d), numbers(d)[:2]])
each("Split", TEXT, lambda d, x: raw.Split(axis=c(1), value=x, num_split=2) + raw.SplitV(value=x, size_splits=c([1, -1]), axis=c(1), num_split=2), lambda d: [small(d, 2, 4)])
each("Slice", TEXT, lambda d, x: [raw.Slice(input=x, begin=c([0, 1]), size=c([-1, 2])), x[::-1, 1:3], x[:, tf.newaxis, -1]], lambda d: [small(d, 2, 4)])
each("Transpose", TEXT, lambda d, x: [raw.Transpose(x=x, perm=c([1, 0])), raw.ReverseV2(tensor=x, axis=c([1])), raw.Reverse(tensor=x, dims=c([True, False]))], lambda d: [small(d, 2, 4)])
each("Tile", TEXT, lambda d, x: [raw.Tile(input=x, multiples=c([2, 1])), raw.BroadcastTo(input=x, shape=c([3, 2, 4]))], lambda d: [small(d, 2, 4)])
each("Pad", TEXT, lambda d, x: [raw.Pad(input=x, paddings=c([[1, 0], [0, 2]])), raw.PadV2(input=x, paddings=c([[1, 0], [0, 2]]), constant_values=x[0, 0])], lambda d: [small(d, 2, 4)])
each("MirrorPad", TEXT, lambda d, x: raw.MirrorPad(input=x, paddings=c([[1, 0], [0, 2]]), mode="REFLECT"), lambda d: [small(d, 2, 4)])
each("Roll", TEXT, lambda d, x: raw.Roll(input=x, shift=c([1]), axis=c([1])), lambda d: [small(d, 2, 4)])
each("ReverseSequence", TEXT, lambda d, x: raw.ReverseSequence(input=x, seq_lengths=c([1, 3]), seq_dim=1, batch_dim=0), lambda d: [small(d, 2, 4)])
each("SpaceToBatchND", ANY, lambda d, x: raw.SpaceToBatchND(input=x, block_shape=c([2]), paddings=c([[0, 1]])), lambda d: [small(d, 2, 3, 1)])
each("BatchToSpaceND", ANY, lambda d, x: raw.BatchToSpaceND(input=x, block_shape=c([2]), crops=c([[0, 1]])), lambda d: [small(d, 2, 3, 1)])
each("DepthToSpace", TEXT, lambda d, x: raw.DepthToSpace(input=x, block_size=2), lambda d: [small(d, 1, 1, 2, 4)])
each("SpaceToDepth", TEXT, lambda d, x: raw.SpaceToDepth(input=x, block_size=2), lambda d: [small(d, 1, 2, 2, 1)])
each("GatherV2", TEXT, lambda d, x, i: [raw.GatherV2(params=x, indices=i, axis=c(1)), raw.GatherNd(params=x, indices=tf.stack([i, i], 1)), raw.Gather(params=x, indices=i)], lambda d: [small(d, 4, 4), np.array([3, 0, 1], np.int32)])
each("ScatterNd", ANY, lambda d, i, x: raw.ScatterNd(indices=i, updates=x, shape=c([5, 2])), lambda d: [np.array([[1], [3], [1]], np.int32), small(d, 3, 2)])
for op in "Update Add Sub Max Min".split():
    each("TensorScatter" + op, TEXT, lambda d, x, i, u, op=op: getattr(raw, "TensorScatter" + op)(tensor=x, indices=i, updates=u), lambda d: [np.abs(small(d, 4, 2)) if d not in ("string", "bool") else small(d, 4, 2), np.array([[1], [3], [0]], np.int64), np.zeros((3, 2), np_type(d)) if d[0] == "u" and op == "Sub" else small(d, 3, 2)])
each("OneHot", TEXT, lambda d, i, on, off: raw.OneHot(indices=i, depth=c(3), on_value=on[4], off_value=off[3]), lambda d: [np.array([2, -1, 0], np.int64), numbers(d), numbers(d)])
each("OneHot_indices", INTS, lambda d, i: raw.OneHot(indices=i, depth=c(3), on_value=c(1.0), off_value=c(0.0)), lambda d: [np.array([2, 3, 0], np_type(d))])
each("Where", ANY, lambda d, x: raw.Where(condition=x), lambda d: [numbers(d)])
each("TopKV2", INTS + FLOATS, lambda d, x: list(raw.TopKV2(input=x, k=c(3))), lambda d: [small(d, 2, 5)])
each("TopKV2_edges", INTS + FLOATS, lambda d, x: list(raw.TopKV2(input=x, k=c(5))), lambda d: [np.delete(numbers(d), 2)])  # where NaN goes depends on the rest
each("Unique", TEXT, lambda d, x: list(raw.Unique(x=x)) + list(raw.UniqueWithCounts(x=x)) + list(raw.UniqueV2(x=x, axis=c([0]))), lambda d: [small(d, 9)])
each("ListDiff", TEXT, lambda d, x, y: list(raw.ListDiff(x=x, y=y)), lambda d: [small(d, 9), small(d, 4)])
each("Range", INTS + FLOATS, lambda d, a, b, s: raw.Range(start=a, limit=b, delta=s), lambda d: [np.array(1, np_type(d)), np.array(9, np_type(d)), np.array(3, np_type(d))])
each("LinSpace", FLOATS, lambda d, a, b: raw.LinSpace(start=a, stop=b, num=c(5)), lambda d: [np.array(-1, np_type(d)), np.array(2, np_type(d))], close=True)
each("Fill", TEXT, lambda d, x, n: raw.Fill(dims=n, value=x[1]), lambda d: [numbers(d), np.array([2, 3], np.int64)])
each("MatrixBandPart", ANY, lambda d, x: raw.MatrixBandPart(input=x, num_lower=c(1), num_upper=c(0)), lambda d: [small(d, 3, 4)])
each("MatrixDiagV3", ANY, lambda d, x: [raw.MatrixDiagV3(diagonal=x, k=c(1), num_rows=c(-1), num_cols=c(-1), padding_value=x[0]), raw.MatrixDiag(diagonal=x)], lambda d: [small(d, 3)])
each("MatrixDiagPartV3", ANY, lambda d, x: [raw.MatrixDiagPartV3(input=x, k=c([-1, 1]), padding_value=x[0, 0]), raw.MatrixDiagPart(input=x)], lambda d: [small(d, 3, 4)])
each("MatrixSetDiagV3", ANY, lambda d, x, y: raw.MatrixSetDiagV3(input=x, diagonal=y, k=c(0)), lambda d: [small(d, 3, 4), small(d, 3)])
each("Bincount", "int32 int64 float32 float64", lambda d, i, w: raw.Bincount(arr=i, size=c(5), weights=w), lambda d: [np.array([1, 4, 1, 9], np.int32), small(d, 4)])
each("DenseBincount", "int32 int64 float32 float64", lambda d, i, w: [raw.DenseBincount(input=i, size=c(5), weights=w), raw.DenseBincount(input=i, size=c(5), weights=w[:0], binary_output=True)], lambda d: [np.array([1, 4, 1, 9], np.int32), small(d, 4)])
each("InvertPermutation", INTS, lambda d, x: raw.InvertPermutation(x=x), lambda d: [np.array([2, 0, 1], np_type(d))])
each("DynamicStitch", TEXT, lambda d, a, b, i, j: [raw.DynamicStitch(indices=[i, j], data=[a, b])] + raw.DynamicPartition(data=a, partitions=i, num_partitions=4), lambda d: [small(d, 3), small(d, 2), np.array([3, 0, 1], np.int32), np.array([2, 1], np.int32)])
each("SparseToDense", TEXT, lambda d, i, v: raw.SparseToDense(sparse_indices=i, output_shape=c([2, 3]), sparse_values=v, default_value=v[0]), lambda d: [np.array([[0, 1], [1, 2]], np.int32), small(d, 2)])
for op in "LowerBound UpperBound".split(): each(op, INTS + FLOATS, lambda d, s, v, op=op: getattr(raw, op)(sorted_inputs=s, values=v), lambda d: [np.array([[1, 3, 3, 7]], np_type(d)), np.array([[0, 3, 8]], np_type(d))])
each("Bucketize", "int32 int64 float32 float64", lambda d, x: raw.Bucketize(input=x, boundaries=[0.0, 2.0, 2.5]), lambda d: [small(d, 7)])
each("HistogramFixedWidth", "int32 int64 float32 float64", lambda d, x, r: raw.HistogramFixedWidth(values=x, value_range=r, nbins=c(3)), lambda d: [small(d, 7), np.array([0, 3], np_type(d))])
each("ExtractImagePatches", INTS + FLOATS, lambda d, x: raw.ExtractImagePatches(images=x, ksizes=[1, 2, 2, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID"), lambda d: [small(d, 1, 3, 3, 1)])
each("Dilation2D", INTS + FLOATS, lambda d, x, f: raw.Dilation2D(input=x, filter=f, strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"), lambda d: [small(d, 1, 3, 3, 1), small(d, 2, 2, 1)])
each("InTopKV2", "int32 int64", lambda d, p, t: raw.InTopKV2(predictions=p, targets=t, k=c(np.array(2, np_type(d)))), lambda d: [small("float32", 3, 4), np.array([1, 0, 3], np_type(d))])
each("LRN", FLOATS, lambda d, x: raw.LRN(input=x, depth_radius=1), lambda d: [small(d, 1, 1, 2, 4)], close=True)
each("CheckNumerics", FLOATS, lambda d, x: raw.CheckNumerics(tensor=x, message="m"), lambda d: [small(d, 4)])
each("NthElement", INTS + FLOATS, lambda d, x: [raw.NthElement(input=x, n=c(2)), raw.NthElement(input=x, n=c(1), reverse=True)], lambda d: [small(d, 2, 5)])
