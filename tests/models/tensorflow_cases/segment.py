"""Segments, counts, sorted places."""
from recorder import *

D, S = f32(6, 2), np.array([0, 0, 1, 3, 3, 3], np.int32)
for op in "Sum Mean Prod Max Min".split():
    case("Segment" + op, lambda d, s, op=op: getattr(raw, "Segment" + op)(data=d, segment_ids=s), D, S)
    case("Segment%s_i32" % op, lambda d, s, op=op: getattr(raw, "Segment" + op)(data=d, segment_ids=s), i32(6), S.astype(np.int64))
case("SegmentSum_empty", lambda d, s: raw.SegmentSum(data=d, segment_ids=s), f32(0, 3), np.zeros(0, np.int32))
case("SegmentMax_f16", lambda d, s: raw.SegmentMax(data=d, segment_ids=s), D.astype(np.float16), S)
case("SegmentSum_falling", lambda d, s: raw.SegmentSum(data=d, segment_ids=s), f32(3), np.array([0, 2, 1], np.int32), error=True)
case("SegmentSum_negative", lambda d, s: raw.SegmentSum(data=d, segment_ids=s), f32(2), np.array([-1, 0], np.int32), error=True)
W = np.array([2, 0, -1, 2, 4, 0], np.int32)
for op in "Sum Prod Max Min".split():
    case("UnsortedSegment" + op, lambda d, s, op=op: getattr(raw, "UnsortedSegment" + op)(data=d, segment_ids=s, num_segments=c(6)), D, W)
    case("UnsortedSegment%s_i32" % op, lambda d, s, n, op=op: getattr(raw, "UnsortedSegment" + op)(data=d, segment_ids=s, num_segments=n), i32(2, 3, 2), np.array([[0, 2, 0], [1, -1, 2]], np.int64), np.int32(4))
case("UnsortedSegmentMax_f64", lambda d, s: raw.UnsortedSegmentMax(data=d, segment_ids=s, num_segments=c(3)), f32(2).astype(np.float64), np.array([1, 1], np.int32))
case("UnsortedSegmentSum_beyond", lambda d, s: raw.UnsortedSegmentSum(data=d, segment_ids=s, num_segments=c(2)), f32(2), np.array([0, 2], np.int32), error=True)
for op in "Sum Mean SqrtN".split():
    case("SparseSegment" + op, lambda d, i, s, op=op: getattr(raw, "SparseSegment" + op)(data=d, indices=i, segment_ids=s), f32(5, 3), np.array([4, 0, 0, 2], np.int32), np.array([0, 0, 2, 2], np.int32))
    case("SparseSegment%s_count" % op, lambda d, i, s, op=op: getattr(raw, "SparseSegment%sWithNumSegments" % op)(data=d, indices=i, segment_ids=s, num_segments=c(5)), f32(5, 3), np.array([4, 0, 0, 2], np.int64), np.array([0, 0, 2, 3], np.int32))
case("SparseSegmentSum_beyond", lambda d, i, s: raw.SparseSegmentSum(data=d, indices=i, segment_ids=s), f32(5, 3), np.array([5], np.int32), np.array([0], np.int32), error=True)

for op in "LowerBound UpperBound".split():
    case(op, lambda s, v, op=op: getattr(raw, op)(sorted_inputs=s, values=v), np.array([[1, 2, 2, 5], [0, 0, 3, 3]], np.float32), np.array([[0, 2, 9], [0, 3, 2.5]], np.float32))
    case(op + "_i64", lambda s, v, op=op: getattr(raw, op)(sorted_inputs=s, values=v, out_type=tf.int64), np.array([[1, 4, 9]], np.int32), np.array([[4, 5, -1, 10]], np.int32))
case("LowerBound_empty", lambda s, v: raw.LowerBound(sorted_inputs=s, values=v), np.zeros((2, 0), np.float32), f32(2, 3))
for dtype in (np.int32, np.int64, np.float32, np.float64):
    case("Bucketize_" + np.dtype(dtype).name, lambda x: raw.Bucketize(input=x, boundaries=[0, 10, 100]), np.array([[-5, 10000], [150, 10], [5, 100]], dtype))
case("Bucketize_none", lambda x: raw.Bucketize(input=x, boundaries=[]), f32(3))
case("Bincount", lambda x, w: raw.Bincount(arr=x, size=c(5), weights=w), np.array([1, 1, 3, 7, 0], np.int32), f32(5))
case("Bincount_unweighted", lambda x: raw.Bincount(arr=x, size=c(4), weights=tf.zeros([0], tf.int32)), np.array([[1, 1], [3, 9]], np.int32))
case("Bincount_i64", lambda x, w, n: raw.Bincount(arr=x, size=n, weights=w), np.array([1, 1, 3], np.int32), np.array([5, 6, 7], np.int64), np.int32(6))
case("Bincount_negative", lambda x: raw.Bincount(arr=x, size=c(4), weights=tf.zeros([0], tf.int32)), np.array([1, -1], np.int32), error=True)
case("DenseBincount", lambda x, w: raw.DenseBincount(input=x, size=c(4), weights=w), np.array([[1, 1, 3], [0, 5, 2]], np.int32), f32(2, 3))
case("DenseBincount_binary", lambda x: raw.DenseBincount(input=x, size=c(4, tf.int64), weights=tf.zeros([0], tf.float32), binary_output=True), np.array([[1, 1, 3], [0, 5, 2]], np.int64))
case("DenseBincount_list", lambda x: raw.DenseBincount(input=x, size=c(4), weights=tf.zeros([0], tf.int32)), np.array([1, 1, 3, 8], np.int32))
case("HistogramFixedWidth", lambda x, r: raw.HistogramFixedWidth(values=x, value_range=r, nbins=c(5)), np.array([-1, 0, 1.5, 2, 5, 15], np.float32), np.array([0, 5], np.float32))
case("HistogramFixedWidth_i32", lambda x: raw.HistogramFixedWidth(values=x, value_range=c([-3, 9]), nbins=c(4), dtype=tf.int64), i32(3, 5))
for kw in ({}, {"exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True}):
    case("CumulativeLogsumexp" + "".join("_" + k for k in kw), lambda x, kw=kw: [raw.CumulativeLogsumexp(x=x, axis=c(0), **kw), raw.CumulativeLogsumexp(x=x, axis=c(-1), **kw)], f32(3, 4, lo=-30, hi=30))
    case("Cumsum_i32" + "".join("_" + k for k in kw), lambda x, kw=kw: [raw.Cumsum(x=x, axis=c(0), **kw), raw.Cumprod(x=x, axis=c(-1), **kw)], i32(3, 4))
case("CumulativeLogsumexp_inf", lambda x: raw.CumulativeLogsumexp(x=x, axis=c(0)), np.array([-np.inf, -np.inf, 1, np.inf], np.float32))
case("CumulativeLogsumexp_f64", lambda x: raw.CumulativeLogsumexp(x=x, axis=c(0), exclusive=True), f32(3).astype(np.float64))
case("EuclideanNorm_keep", lambda x: [raw.EuclideanNorm(input=x, axis=c([0, 2]), keep_dims=True), raw.EuclideanNorm(input=x, axis=c([], tf.int32))], f32(2, 3, 4))
case("EuclideanNorm_i32", lambda x: raw.EuclideanNorm(input=x, axis=c(-1)), np.array([[3, 4], [5, 12]], np.int32))
case("HistogramFixedWidth_range", lambda x, r: raw.HistogramFixedWidth(values=x, value_range=r, nbins=c(5)), f32(4), np.array([5, 5], np.float32), error=True)
COUNTED, SPLITS, SHOWN = np.array([1, 3, 0, 7, 3, 1], np.int64), np.array([0, 2, 2, 6], np.int64), np.array([[0, 1], [0, 4], [1, 0], [3, 1], [3, 2], [3, 9]], np.int64)
for binary in (False, True):
    for name, weights in (("", np.zeros(0, np.float32)), ("_weights", f32(6)), ("_i64", np.zeros(0, np.int64))):
        if binary and weights.size: continue
        case("RaggedBincount_%d%s" % (binary, name), lambda s, v, w, binary=binary: raw.RaggedBincount(splits=s, values=v, size=c(np.int64(5)), weights=w, binary_output=binary), SPLITS, COUNTED, weights)
        case("SparseBincount_%d%s" % (binary, name), lambda i, v, w, binary=binary: raw.SparseBincount(indices=i, values=v, dense_shape=c(np.array([4, 10], np.int64)), size=c(np.int64(5)), weights=w, binary_output=binary), SHOWN, COUNTED, weights)
        case("SparseBincount_list_%d%s" % (binary, name), lambda i, v, w, binary=binary: raw.SparseBincount(indices=i, values=v, dense_shape=c(np.array([10], np.int64)), size=c(np.int32(5)), weights=w, binary_output=binary), SHOWN[:, 1:], COUNTED.astype(np.int32), weights)
case("RaggedBincount_negative", lambda s, v: raw.RaggedBincount(splits=s, values=v, size=c(np.int64(5)), weights=c([], tf.float32)), SPLITS, -COUNTED, error=True)
case("RaggedBincount_empty", lambda s, v: raw.RaggedBincount(splits=s, values=v, size=c(np.int64(3)), weights=c([], tf.float32)), np.zeros(3, np.int64), np.zeros(0, np.int64))
