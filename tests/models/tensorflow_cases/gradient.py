"""Gradients that saved functions contain."""
from recorder import *

X = np.array([-3, -0.5, -0.0, 0, 0.5, 3, 6, 7, 1.25], np.float32)
UNARY = [(raw.ReluGrad, 1), (raw.Relu6Grad, 1), (raw.SoftplusGrad, 1), (raw.SoftsignGrad, 1), (raw.LeakyReluGrad, 1), (raw.EluGrad, 2), (raw.SeluGrad, 2)]
for op, second in UNARY:
    key = "features" if second == 1 else "outputs"
    each(op.__name__, FLOATS, lambda d, g, x, op=op, key=key: op(**{"gradients": g, key: x}), lambda d: [np.linspace(-2, 2, 9).astype(np_type(d)), X.astype(np_type(d))], close=True)
    case(op.__name__ + "_inf", lambda g, x, op=op, key=key: op(**{"gradients": g, key: x}), np.array([np.inf, -np.inf, np.nan, 1, 1, 1, 0], np.float32), np.array([-1, 2, -1, np.inf, -np.inf, np.nan, np.inf], np.float32))
case("ReluGrad_i32", lambda g, x: raw.ReluGrad(gradients=g, features=x), i32(3, 4), i32(3, 4))
case("LeakyReluGrad_alpha", lambda g, x: raw.LeakyReluGrad(gradients=g, features=x, alpha=0.75), f32(2, 3), f32(2, 3))
for op in (raw.TanhGrad, raw.SigmoidGrad, raw.RsqrtGrad, raw.SqrtGrad, raw.ReciprocalGrad, raw.InvGrad):
    each(op.__name__, FLOATS, lambda d, y, g, op=op: op(y=y, dy=g), lambda d: [np.array([0.25, -0.5, 0.75, 2, -1, 1.5, 1], np.float32).astype(np_type(d)), np.linspace(-2, 2, 7).astype(np_type(d))], close=True)
case("TanhGrad_empty", lambda y, g: raw.TanhGrad(y=y, dy=g), f32(0, 2), f32(0, 2))

for d in "int32 float32 float64".split():
    case("BiasAddGrad_" + d, lambda g: raw.BiasAddGrad(out_backprop=g), small(d, 2, 3, 4, 5))
    case("BiasAddGrad_first_" + d, lambda g: raw.BiasAddGrad(out_backprop=g, data_format="NCHW"), small(d, 2, 3, 4, 5))
case("BiasAddGrad_matrix", lambda g: raw.BiasAddGrad(out_backprop=g), f32(7, 3))
case("BiasAddGrad_empty", lambda g: raw.BiasAddGrad(out_backprop=g), f32(0, 3))

for name, s in (("plain", dict(begin=[1, 0], end=[3, 5], strides=[1, 2])), ("back", dict(begin=[3, 4], end=[0, 0], strides=[-1, -2])),
                ("masks", dict(begin=[0, 1], end=[0, 3], strides=[1, 1], begin_mask=1, end_mask=1)), ("shrink", dict(begin=[2, 1], end=[3, 4], strides=[1, 1], shrink_axis_mask=1)),
                ("new", dict(begin=[0, 1, 0], end=[0, 3, 2], strides=[1, 1, 1], new_axis_mask=1)), ("ellipsis", dict(begin=[0, 1], end=[0, 4], strides=[1, 2], ellipsis_mask=1))):
    def slice_grad(x, g, s=s): return raw.StridedSliceGrad(shape=raw.Shape(input=x), dy=g, **{k: c(v) if isinstance(v, list) else v for k, v in s.items()})
    with tf.Graph().as_default():
        shape = v1.Session().run(tf.shape(raw.StridedSlice(input=tf.zeros([4, 5]), **{k: c(v) if isinstance(v, list) else v for k, v in s.items()})))
    case("StridedSliceGrad_" + name, slice_grad, f32(4, 5), f32(*shape))
case("StridedSliceGrad_i64", lambda g: raw.StridedSliceGrad(shape=c([5]), begin=c([1]), end=c([4]), strides=c([1]), dy=g), np.arange(3, dtype=np.int64))

for mode in ("REFLECT", "SYMMETRIC"):
    case("MirrorPadGrad_" + mode, lambda g, mode=mode: raw.MirrorPadGrad(input=g, paddings=c([[1, 2], [0, 1]]), mode=mode), f32(6, 4))
    case("MirrorPadGrad_images_" + mode, lambda g, mode=mode: raw.MirrorPadGrad(input=g, paddings=c([[0, 0], [2, 1], [1, 1], [0, 0]]), mode=mode), f32(2, 7, 5, 3))
case("MirrorPadGrad_f64", lambda g: raw.MirrorPadGrad(input=g, paddings=c([[1, 1]], tf.int64), mode="REFLECT"), f32(5).astype(np.float64))

for corners, centers in ((False, False), (True, False), (False, True)):
    flags = dict(align_corners=corners, half_pixel_centers=centers)
    name = "%d%d" % (corners, centers)
    for size, out in (((4, 5), (7, 9)), ((6, 7), (3, 2)), ((1, 3), (4, 1)), ((3, 3), (3, 3))):
        tail = "_%dx%d_%dx%d" % (size + out)
        case("ResizeBilinearGrad_" + name + tail, lambda g, x, flags=flags: raw.ResizeBilinearGrad(grads=g, original_image=x, **flags), f32(2, *out, 3), f32(2, *size, 3))
        case("ResizeNearestNeighborGrad_" + name + tail, lambda g, flags=flags, size=size: raw.ResizeNearestNeighborGrad(grads=g, size=c(list(size)), **flags), f32(2, *out, 3))
        case("ResizeBicubicGrad_" + name + tail, lambda g, x, flags=flags: raw.ResizeBicubicGrad(grads=g, original_image=x, **flags), f32(2, *out, 2), f32(2, *size, 2))
case("ResizeBilinearGrad_f64", lambda g, x: raw.ResizeBilinearGrad(grads=g, original_image=x), f32(1, 4, 4, 1), f32(1, 2, 2, 1).astype(np.float64))
case("ResizeNearestNeighborGrad_f64", lambda g: raw.ResizeNearestNeighborGrad(grads=g, size=c([2, 2])), f32(1, 4, 4, 1).astype(np.float64))

for a, b in (([1, 1], [1, 1]), ([2, 1, 3], [1, 1, 3]), ([1], [2, 1, 3]), ([], [2, 3]), ([2, 0], [1, 1]), ([1, 2], [2]), ([2, 3], [2, 3])):
    name = "BroadcastGradientArgs_%s_%s" % ("x".join(map(str, a)) or "none", "x".join(map(str, b)) or "none")
    case(name, lambda x, y: list(raw.BroadcastGradientArgs(s0=x, s1=y)), np.array(a, np.int32), np.array(b, np.int32), const=(0, 1))
    case(name + "_fed", lambda x, y: list(raw.BroadcastGradientArgs(s0=x, s1=y)), np.array(a, np.int64), np.array(b, np.int64))
case("BroadcastGradientArgs_bad", lambda x, y: list(raw.BroadcastGradientArgs(s0=x, s1=y)), np.array([2, 3], np.int32), np.array([4, 3], np.int32), error=True)


def reduced(x, y, g):
    """How a gradient of a broadcast sum looks."""
    sx, sy = raw.Shape(input=x), raw.Shape(input=y)
    r = raw.BroadcastGradientArgs(s0=sx, s1=sy)
    return [tf.reshape(raw.Sum(input=g, axis=r.r0), sx), tf.reshape(raw.Sum(input=g, axis=r.r1), sy)]


case("BroadcastGradientArgs_sums", reduced, f32(2, 1, 3), f32(4, 1), f32(2, 4, 3))
case("BroadcastGradientArgs_same", reduced, f32(2, 3), f32(2, 3), f32(2, 3))
case("SoftmaxCrossEntropy_broadcast", lambda x, y: list(raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y)), f32(3, 4), np.array([[0, 0.25, 0.75, 0]], np.float32))

for op in (raw.SparseSegmentSumGrad, raw.SparseSegmentMeanGrad, raw.SparseSegmentSqrtNGrad):
    for d in ("float32", "float64"):
        case("%s_%s" % (op.__name__, d), lambda g, i, s, op=op: op(grad=g, indices=i, segment_ids=s, output_dim0=c(6)), f32(4, 3).astype(np_type(d)), np.array([0, 5, 2, 2, 1], np.int32), np.array([0, 0, 1, 3, 3], np.int32))
    case(op.__name__ + "_beyond", lambda g, i, s, op=op: op(grad=g, indices=i, segment_ids=s, output_dim0=c(6)), f32(4, 3), np.array([0, 6], np.int32), np.array([0, 1], np.int32), error=True)
case("SparseFillEmptyRowsGrad", lambda m, g: list(raw.SparseFillEmptyRowsGrad(reverse_index_map=m, grad_values=g)), np.array([0, 3, 4], np.int64), f32(6))
case("SparseFillEmptyRowsGrad_all", lambda m, g: list(raw.SparseFillEmptyRowsGrad(reverse_index_map=m, grad_values=g)), np.array([1, 0], np.int64), f32(2).astype(np.float64))
