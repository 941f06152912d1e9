"""Axes, permutations, sizes and other numbers that fix a shape: as a constant, computed from the shape of another input, and fed."""
from recorder import *


def three(name, build, feeds, number, dtype=np.int32, const=(), sized=False):
    """build(number, *tensors), where `number` is a scalar or a list of integers."""
    number = np.asarray(number, dtype)
    least = int(number.min(initial=0))
    case(name + "_constant", lambda *t: build(tf.constant(number), *t), *feeds, const=const)
    case(name + "_fed", lambda n, *t: build(n, *t), number, *feeds, const=[i + 1 for i in const], sized=sized)
    # A tensor of no elements has any shape.
    sizes = np.zeros([0] + list(number.ravel() - least), np.float32)
    def from_shape(s, *t):
        value = tf.shape(s, out_type=tf.as_dtype(dtype))[1:]
        if least < 0: value += tf.constant(least, dtype)
        return build(tf.reshape(value, number.shape), *t)
    case(name + "_shape", from_shape, sizes, *feeds, const=[i + 1 for i in const])


X = f32(2, 3, 4)
for axis in (1, -1, 0):
    key = "_last" if axis < 0 else str(axis)
    three("ConcatV2" + key, lambda n, *t: raw.ConcatV2(values=t, axis=n), [X, X], axis)
    three("Split" + key, lambda n, x: raw.Split(axis=n, value=x, num_split=2), [f32(4, 2, 6)], axis)
    three("ArgMax" + key, lambda n, x: [raw.ArgMax(input=x, dimension=n), raw.ArgMin(input=x, dimension=n, output_type=tf.int32)], [X], axis)
    three("GatherV2" + key, lambda n, x, i: raw.GatherV2(params=x, indices=i, axis=n), [X, np.array([[1, 0], [0, 1]], np.int32)], axis)
three("Concat1", lambda n, *t: raw.Concat(concat_dim=n, values=t), [X, f32(2, 1, 4)], 1)
three("Concat_text", lambda n, *t: raw.ConcatV2(values=t, axis=n), [small("string", 2, 2), small("string", 2, 1)], 1)
three("GatherV2_batch", lambda n, x, i: raw.GatherV2(params=x, indices=i, axis=n, batch_dims=1), [X, np.array([[1, 0, 1], [0, 1, 0]], np.int32)], 2)
three("GatherV2_batch_same", lambda n, x, i: raw.GatherV2(params=x, indices=i, axis=n, batch_dims=1), [X, np.array([1, 2], np.int32)], -2)
three("GatherV2_scalar", lambda n, x, i: raw.GatherV2(params=x, indices=i, axis=n), [X, np.array(2, np.int64)], 2, np.int64)
three("SplitV_sizes", lambda n, x: raw.SplitV(value=x, size_splits=n, axis=c(1), num_split=3), [f32(2, 6)], [1, 3, 2])
three("SplitV_rest", lambda n, x: raw.SplitV(value=x, size_splits=n, axis=c(-1), num_split=3), [f32(2, 6)], [1, -1, 2], np.int64)
three("SplitV_axis", lambda n, x: raw.SplitV(value=x, size_splits=c([2, 4]), axis=n, num_split=2), [f32(6, 2)], 0)
three("ExpandDims", lambda n, x: raw.ExpandDims(input=x, axis=n), [X], -2)
for op in "Sum Mean Max Prod".split():
    three(op, lambda n, x, op=op: [getattr(raw, op)(input=x, axis=n), getattr(raw, op)(input=x, axis=n, keep_dims=True)], [X], [0, -1])
three("Any", lambda n, x: [raw.Any(input=x, axis=n), raw.All(input=x, axis=n)], [boolean(2, 3, 4)], 1)
three("Cumsum", lambda n, x: [raw.Cumsum(x=x, axis=n), raw.Cumprod(x=x, axis=n, reverse=True)], [X], 1)
three("ReverseV2", lambda n, x: raw.ReverseV2(tensor=x, axis=n), [X], [0, 2])
three("Roll", lambda n, x: raw.Roll(input=x, shift=c([1, 2]), axis=n), [X], [0, -1])
three("Roll_shift", lambda n, x: raw.Roll(input=x, shift=n, axis=c([1])), [X], [2])
three("Transpose", lambda n, x: raw.Transpose(x=x, perm=n), [X], [2, 0, 1])
three("Pad", lambda n, x: raw.Pad(input=x, paddings=n), [X], [[1, 0], [0, 2], [1, 1]])
three("PadV2", lambda n, x: raw.PadV2(input=x, paddings=n, constant_values=c(7.0)), [X], [[1, 0], [0, 2], [1, 1]], np.int64)
three("MirrorPad", lambda n, x: raw.MirrorPad(input=x, paddings=n, mode="REFLECT"), [X], [[1, 0], [0, 2], [1, 1]])
three("Reshape", lambda n, x: raw.Reshape(tensor=x, shape=n), [X], [4, -1])
three("BroadcastTo", lambda n, x: raw.BroadcastTo(input=x, shape=n), [f32(3, 1)], [2, 3, 4])
three("Tile", lambda n, x: raw.Tile(input=x, multiples=n), [X], [1, 2, 1])
three("Fill", lambda n: raw.Fill(dims=n, value=c(3)), [], [2, 3])
three("Range", lambda n: raw.Range(start=c(1), limit=n, delta=c(2)), [], 8)
three("Slice", lambda n, x: raw.Slice(input=x, begin=n, size=c([1, -1, 2])), [X], [1, 0, 2])
three("Slice_size", lambda n, x: raw.Slice(input=x, begin=c([0, 1, 0]), size=n), [X], [1, -1, 2])
three("StridedSlice", lambda n, x: raw.StridedSlice(input=x, begin=c([0, 0]), end=n, strides=c([1, 2]), ellipsis_mask=1), [X], [0, 3])
three("OneHot", lambda n, x: raw.OneHot(indices=x, depth=n, on_value=c(1.0), off_value=c(0.0)), [i32(3, lo=0, hi=4)], 4)
three("TopKV2", lambda n, x: list(raw.TopKV2(input=x, k=n)), [f32(2, 5)], 3)
three("LinSpace", lambda n: raw.LinSpace(start=c(0.0), stop=c(1.0), num=n), [], 5)
three("SpaceToBatchND", lambda n, x: raw.SpaceToBatchND(input=x, block_shape=n, paddings=c([[0, 0], [0, 0]])), [f32(1, 4, 4, 2)], [2, 2], sized=True)
three("BatchToSpaceND", lambda n, x: raw.BatchToSpaceND(input=x, block_shape=n, crops=c([[0, 0], [0, 0]])), [f32(4, 2, 2, 2)], [2, 2], sized=True)
three("ResizeBilinear", lambda n, x: raw.ResizeBilinear(images=x, size=n), [f32(1, 4, 4, 2)], [3, 6])
three("UnsortedSegmentSum", lambda n, x, i: raw.UnsortedSegmentSum(data=x, segment_ids=i, num_segments=n), [f32(4, 2), np.array([0, 2, 0, 1], np.int32)], 4)
three("ScatterNd", lambda n, i, x: raw.ScatterNd(indices=i, updates=x, shape=n), [np.array([[1], [3]], np.int32), f32(2, 2)], [5, 2])
three("Conv2DBackpropInput", lambda n, f, x: raw.Conv2DBackpropInput(input_sizes=n, filter=f, out_backprop=x, strides=[1, 2, 2, 1], padding="SAME"), [f32(3, 3, 2, 3), f32(1, 3, 3, 3)], [1, 6, 5, 2])
three("MatrixDiagV3", lambda n, x: raw.MatrixDiagV3(diagonal=x, k=n, num_rows=c(-1), num_cols=c(-1), padding_value=c(0.0)), [f32(3)], 1)
three("MatrixBandPart", lambda n, x: raw.MatrixBandPart(input=x, num_lower=n, num_upper=c(0)), [f32(4, 4)], 1)
three("MaxPoolV2", lambda n, x: raw.MaxPoolV2(input=x, ksize=n, strides=c([1, 2, 2, 1]), padding="VALID"), [f32(1, 4, 4, 2)], [1, 2, 2, 1])
three("UniqueV2", lambda n, x: list(raw.UniqueV2(x=x, axis=n)), [np.array([[1, 2, 1], [3, 4, 3]], np.int32)], [1])
three("RFFT", lambda n, x: raw.Real(input=raw.RFFT(input=x, fft_length=n)), [f32(2, 8)], [6])
three("SparseReduceSum", lambda n, i, x: raw.SparseReduceSum(input_indices=i, input_values=x, input_shape=c(np.array([2, 3])), reduction_axes=n), [np.array([[0, 1], [1, 2]]), f32(2)], [1])

# An axis that TensorFlow refuses.
for op, build in {"ConcatV2": lambda n, x: raw.ConcatV2(values=[x, x], axis=n), "Split": lambda n, x: raw.Split(axis=n, value=x, num_split=2),
                  "ArgMax": lambda n, x: raw.ArgMax(input=x, dimension=n), "GatherV2": lambda n, x: raw.GatherV2(params=x, indices=c([0]), axis=n)}.items():
    case(op + "_beyond", build, np.int32(3), f32(2, 2, 2), error=True)
    case(op + "_before", build, np.int32(-4), f32(2, 2, 2), error=True)
case("ConcatV2_differs", lambda n, x, y: raw.ConcatV2(values=[x, y], axis=n), np.int32(1), f32(2, 3, 4), f32(4, 3, 2), error=True)
case("SplitV_short", lambda n, x: raw.SplitV(value=x, size_splits=n, axis=c(0), num_split=2), np.array([1, 2], np.int32), f32(4), error=True)
case("SplitV_negative", lambda n, x: raw.SplitV(value=x, size_splits=n, axis=c(0), num_split=2), np.array([-2, 6], np.int32), f32(4), error=True)
case("Split_uneven", lambda n, x: raw.Split(axis=n, value=x, num_split=2), np.int32(0), f32(5), error=True)
case("Split_uneven_constant", lambda x: raw.Split(axis=c(0), value=x, num_split=2), f32(5), error=True)
case("GatherV2_inside_batch", lambda n, x: raw.GatherV2(params=x, indices=c([[0], [1]]), axis=n, batch_dims=1), np.int32(0), f32(2, 1, 1), error=True)
