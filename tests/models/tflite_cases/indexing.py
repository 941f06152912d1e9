"""Gathers, scatters, shapes, reductions, segments, norms and boxes."""
import numpy as np
from tflite_recorder import Fed, Given, Out, case, options, random

x = random("x", [2, 3, 4, 5])
ints = random("i", [2, 3, 4], -9, 9, np.int32)


def i32(*values):
    return Given(np.array(values, np.int32))


places = np.array([[2, 0], [1, 1]], np.int32)
case("gather", "GATHER", [x, places], Out(), options("GatherOptions", axis=1))
case("gather_batch", "GATHER", [x, places], Out(), options("GatherOptions", axis=1, batchDims=1))
case("gather_i64", "GATHER", [ints, places.astype(np.int64)], Out(np.int32), options("GatherOptions", axis=-2))
case("gather_outside", "GATHER", [x, places + 5], Out(), options("GatherOptions", axis=1), refused=True)
case("gather_nd", "GATHER_ND", [x, places[:, ::-1].copy()], Out(), options("GatherNdOptions"))
case("embedding_lookup", "EMBEDDING_LOOKUP", [np.array([2, 0, 1, 2], np.int32), Given(random("rows", [3, 6]))], Out())
case("scatter_nd", "SCATTER_ND", [Given(np.array([[4], [1], [4]], np.int32)), random("u", [3, 2]), i32(6, 2)], Out(), options("ScatterNdOptions"))
case("one_hot", "ONE_HOT", [np.array([0, 2, -1, 5], np.int32), Given(np.int32(3)), Given(np.float32(2)), Given(np.float32(-1))],
     Out(), options("OneHotOptions", axis=-1))
case("one_hot_axis", "ONE_HOT", [places, Given(np.int32(3)), Given(np.int32(1)), Given(np.int32(0))], Out(np.int32), options("OneHotOptions", axis=1))
case("shape", "SHAPE", [x], Out(np.int32), options("ShapeOptions", outType=2))
case("shape_i64", "SHAPE", [Fed(x, open_axes=(0,))], Out(np.int64), options("ShapeOptions", outType=4))
case("rank", "RANK", [x], Out(np.int32), options("RankOptions"))
case("fill", "FILL", [np.array([2, 3], np.int32), np.float32(1.5)], Out(), options("FillOptions"))
case("range", "RANGE", [np.int32(2), np.int32(11), np.int32(3)], Out(np.int32), options("RangeOptions"))
case("range_f32", "RANGE", [np.float32(2), np.float32(-1), np.float32(-0.5)], Out(), options("RangeOptions"))
case("where", "WHERE", [ints > 2], Out(np.int64), options("WhereOptions"))
case("unique", "UNIQUE", [np.array([3, 1, 3, 7, 1], np.int32)], [Out(np.int32), Out(np.int32)], options("UniqueOptions", idxOutType=2))
case("segment_sum", "SEGMENT_SUM", [random("s", [4, 3]), np.array([0, 0, 1, 2], np.int32)], Out(), options("SegmentSumOptions"))
for how in ("SUM", "PROD", "MAX", "MIN"):
    case(f"unsorted_segment_{how.lower()}", f"UNSORTED_SEGMENT_{how}", [random("s", [4, 3]), np.array([2, 0, 2, -1], np.int32), Given(np.int32(4))],
         Out(), options(f"UnsortedSegment{how.capitalize()}Options"))
case("sparse_to_dense", "SPARSE_TO_DENSE", [np.array([[0, 1], [2, 3]], np.int32), i32(3, 4), np.array([5, 6], np.float32), np.float32(-1)], Out(),
     options("SparseToDenseOptions"))
case("bucketize", "BUCKETIZE", [np.array([-5, 0, 1, 1.5, 10], np.float32)], Out(np.int32), options("BucketizeOptions", boundaries=[0.0, 1.0, 10.0]))
case("matrix_diag", "MATRIX_DIAG", [random("d", [2, 3])], Out(), options("MatrixDiagOptions"))
case("matrix_set_diag", "MATRIX_SET_DIAG", [random("m", [2, 3, 4]), random("d", [2, 3])], Out(), options("MatrixSetDiagOptions"))
case("broadcast_args", "BROADCAST_ARGS", [np.array([3, 1], np.int32), np.array([2, 1, 4], np.int32)], Out(np.int32))

# Integers that represent real numbers are moved and selected as they are.
for kind in (np.int8, np.uint8):
    q, name = (0.25, 5), np.dtype(kind).name
    some = lambda seed, shape: Fed(random(seed, shape, 0 if kind == np.uint8 else -100, 100, kind), q)
    case(f"one_hot_{name}", "ONE_HOT", [np.array([0, 2, -1], np.int32), Given(np.int32(3)), Given(kind(9), q), Given(kind(5), q)],
         Out(kind, q=q), options("OneHotOptions", axis=-1))
    case(f"scatter_nd_{name}", "SCATTER_ND", [Given(np.array([[2], [1], [2], [2]], np.int32)), some("u", [4, 3]), i32(4, 3)],
         Out(kind, q=q), options("ScatterNdOptions"))
    case(f"unique_{name}", "UNIQUE", [Fed(np.array([3, 1, 3, 7, 1], kind), q)], [Out(kind, q=q), Out(np.int32)],
         options("UniqueOptions", idxOutType=2))
    case(f"matrix_diag_{name}", "MATRIX_DIAG", [some("d", [2, 3])], Out(kind, q=q), options("MatrixDiagOptions"))
    case(f"matrix_set_diag_{name}", "MATRIX_SET_DIAG", [some("m", [2, 3, 4]), some("d", [2, 3])], Out(kind, q=q),
         options("MatrixSetDiagOptions"))
    case(f"sparse_to_dense_{name}", "SPARSE_TO_DENSE", [np.array([[0, 1], [2, 3]], np.int32), i32(3, 4), Fed(np.array([7, 6], kind), q),
                                                        Fed(kind(5), q)], Out(kind, q=q), options("SparseToDenseOptions"))
    case(f"where_{name}", "WHERE", [Fed(np.array([0, 1, 5, 3], kind), q)], Out(np.int64), options("WhereOptions"))
    case(f"bitcast_{name}", "BITCAST", [some("b", [3, 2])], Out(np.int8 if kind == np.uint8 else np.uint8), options("BitcastOptions"))

for op in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
    case(op.lower(), op, [x, i32(1, -1)], Out(), options("ReducerOptions", keepDims=False))
    case(op.lower() + "_keep", op, [x, i32(0)], Out(), options("ReducerOptions", keepDims=True))
    case(op.lower() + "_all", op, [x, i32(0, 1, 2, 3)], Out(), options("ReducerOptions"))
case("sum_no_axes", "SUM", [x, Given(np.zeros([0], np.int32))], Out(), options("ReducerOptions"))
case("mean_open", "MEAN", [Fed(x, open_axes=(0,)), i32(1, 2)], Out(), options("ReducerOptions", keepDims=True))
for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
    case(op.lower() + "_i32", op, [ints, i32(1)], Out(np.int32), options("ReducerOptions"))
for op in ("REDUCE_ANY", "REDUCE_ALL"):
    case(op.lower(), op, [ints > 0, i32(1)], Out(np.bool_), options("ReducerOptions"))
for op, kind in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
    case(op.lower(), op, [x, Given(np.int32(2))], Out(np.int32), options(kind, outputType=2))
    case(op.lower() + "_i64", op, [ints, Given(np.int32(-1))], Out(np.int64), options(kind, outputType=4))
case("topk_v2", "TOPK_V2", [x, Given(np.int32(3))], [Out(), Out(np.int32)], options("TopKV2Options"))
case("cumsum", "CUMSUM", [x, Given(np.int32(2))], Out(), options("CumsumOptions"))
case("cumsum_exclusive_reverse", "CUMSUM", [ints, Given(np.int32(-1))], Out(np.int32), options("CumsumOptions", exclusive=True, reverse=True))

case("softmax", "SOFTMAX", [x], Out(), options("SoftmaxOptions", beta=1.0))
case("softmax_beta", "SOFTMAX", [x], Out(), options("SoftmaxOptions", beta=0.4))
case("log_softmax", "LOG_SOFTMAX", [x], Out(), options("LogSoftmaxOptions"))
case("l2_normalization", "L2_NORMALIZATION", [x], Out(), options("L2NormOptions"))
case("l2_normalization_zeros", "L2_NORMALIZATION", [np.zeros([2, 3], np.float32)], Out(), options("L2NormOptions"))
case("lrn", "LOCAL_RESPONSE_NORMALIZATION", [x], Out(), options("LocalResponseNormalizationOptions", radius=2, bias=1.5, alpha=0.3, beta=0.6))

corners = random("corners", [12, 2], 0, 1)
boxes = np.concatenate([corners, corners + random("sizes", [12, 2], 0.1, 0.6)], 1).astype(np.float32)
scores = random("scores", [12], 0, 1)
limits = [Given(np.int32(8)), Given(np.float32(0.3)), Given(np.float32(0.2))]
case("suppression_v4", "NON_MAX_SUPPRESSION_V4", [boxes, scores, *limits], [Out(np.int32), Out(np.int32)], options("NonMaxSuppressionV4Options"))
case("suppression_v5", "NON_MAX_SUPPRESSION_V5", [boxes, scores, *limits, Given(np.float32(0))], [Out(np.int32), Out(), Out(np.int32)],
     options("NonMaxSuppressionV5Options"))
