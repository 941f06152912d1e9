"""Reductions and scans."""
from recorder import *

R = f32(2, 3, 4)
for op in "Sum Mean Max Min Prod EuclideanNorm".split():
    case(op, lambda a, op=op: [getattr(raw, op)(input=a, axis=c([1, -1])), getattr(raw, op)(input=a, axis=c(0), keep_dims=True), getattr(raw, op)(input=a, axis=c([0, 1, 2])),
                               getattr(raw, op)(input=a, axis=c([], tf.int32))] if op != "EuclideanNorm" else [getattr(raw, op)(input=a, axis=c([1]))], R)
for op in "Sum Max Min Prod".split(): case(op + "_i32", lambda a, op=op: getattr(raw, op)(input=a, axis=c([0])), i32(3, 4))
case("All", lambda a: [raw.All(input=a, axis=c([1])), raw.Any(input=a, axis=c([1]))], boolean(4, 2))
case("ArgMax", lambda a: [raw.ArgMax(input=a, dimension=c(1)), raw.ArgMax(input=a, dimension=c(-1), output_type=tf.int32), raw.ArgMin(input=a, dimension=c(0))], i32(3, 4, lo=0, hi=3))
case("Cumsum", lambda a: [raw.Cumsum(x=a, axis=c(1)), raw.Cumsum(x=a, axis=c(0), exclusive=True), raw.Cumsum(x=a, axis=c(-1), reverse=True)], f32(3, 4))
case("Cumprod", lambda a: [raw.Cumprod(x=a, axis=c(1)), raw.Cumprod(x=a, axis=c(1), exclusive=True, reverse=True)], f32(3, 4))
case("TopKV2", lambda a: list(raw.TopKV2(input=a, k=c(3))), np.array([[1, 5, 5, 2, 5], [3, 0, 3, 9, 1]], np.float32))
case("TopKV2_i64", lambda a: list(raw.TopKV2(input=a, k=c(2), index_type=tf.int64)), i32(2, 3, 6))
