"""Gradients of convolutions, pools and normalisations."""
from recorder import *

to_first = lambda x: tf.transpose(x, [0, x.shape.rank - 1] + list(range(1, x.shape.rank - 1)))
to_last = lambda x: tf.transpose(x, [0] + list(range(2, x.shape.rank)) + [1])


def size_of(n, k, s, d, padding): return -(-n // s) if padding == "SAME" else (n - (k - 1) * d - 1) // s + 1


for padding in ("SAME", "VALID"):
    for s, d in ((1, 1), (2, 1), (1, 2), (3, 1)):
        oh, ow = size_of(9, 3, s, d, padding), size_of(8, 2, s, d, padding)
        kw = dict(strides=[1, s, s, 1], dilations=[1, d, d, 1], padding=padding)
        name = "%s_%d%d" % (padding, s, d)
        case("Conv2DBackpropFilter_" + name, lambda x, g, kw=kw: raw.Conv2DBackpropFilter(input=x, filter_sizes=c([3, 2, 4, 6]), out_backprop=g, **kw), f32(2, 9, 8, 4), f32(2, oh, ow, 6), sized=True,
             reference=lambda x, g, kw=kw, d=d: raw.Conv2DBackpropFilter(input=x, filter_sizes=c([2 * d + 1, d + 1, 4, 6]), out_backprop=g, **dict(kw, dilations=[1, 1, 1, 1]))[::d, ::d])
        if d == 1: case("DepthwiseBackpropFilter_" + name, lambda x, g, kw=kw: raw.DepthwiseConv2dNativeBackpropFilter(input=x, filter_sizes=c([3, 2, 4, 2]), out_backprop=g, **kw), f32(2, 9, 8, 4), f32(2, oh, ow, 8))
        if d > 1: continue  # TensorFlow's CPU has no gradients with dilations: those above are taps of a larger filter's
        case("Conv2DBackpropInput_groups_" + name, lambda w, g, kw=kw: raw.Conv2DBackpropInput(input_sizes=c([2, 9, 8, 4]), filter=w, out_backprop=g, **kw), f32(3, 2, 2, 6), f32(2, oh, ow, 6), sized=True,
             reference=lambda w, g, kw=kw: tf.concat([raw.Conv2DBackpropInput(input_sizes=c([2, 9, 8, 2]), filter=w[..., 3 * i:3 * i + 3], out_backprop=g[..., 3 * i:3 * i + 3], **kw) for i in range(2)], 3))
        case("Conv2DBackpropFilter_groups_" + name, lambda x, g, kw=kw: raw.Conv2DBackpropFilter(input=x, filter_sizes=c([3, 2, 2, 6]), out_backprop=g, **kw), f32(2, 9, 8, 4), f32(2, oh, ow, 6), sized=True,
             reference=lambda x, g, kw=kw: tf.concat([raw.Conv2DBackpropFilter(input=x[..., 2 * i:2 * i + 2], filter_sizes=c([3, 2, 2, 3]), out_backprop=g[..., 3 * i:3 * i + 3], **kw) for i in range(2)], 3))
case("Conv2DBackpropFilter_explicit", lambda x, g: raw.Conv2DBackpropFilter(input=x, filter_sizes=c([3, 3, 2, 3]), out_backprop=g, strides=[1, 2, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0]), f32(1, 6, 5, 2), f32(1, 3, 6, 3), sized=True)
case("Conv2DBackpropFilter_channels_first", lambda x, g: raw.Conv2DBackpropFilter(input=x, filter_sizes=c([3, 3, 2, 3]), out_backprop=g, strides=[1, 1, 1, 1], padding="SAME", data_format="NCHW"), f32(1, 2, 6, 5), f32(1, 3, 6, 5), sized=True,
     reference=lambda x, g: raw.Conv2DBackpropFilter(input=to_last(x), filter_sizes=c([3, 3, 2, 3]), out_backprop=to_last(g), strides=[1, 1, 1, 1], padding="SAME"))
case("Conv3DBackpropFilterV2", lambda x, g: raw.Conv3DBackpropFilterV2(input=x, filter_sizes=c([2, 3, 1, 2, 3]), out_backprop=g, strides=[1, 1, 2, 1, 1], padding="SAME"), f32(1, 4, 5, 3, 2), f32(1, 4, 3, 3, 3), sized=True)

for padding in ("SAME", "VALID"):
    for k, s in ((2, 2), (3, 2), (3, 1), (2, 3)):
        oh, ow = size_of(7, k, s, 1, padding), size_of(6, k, s, 1, padding)
        kw = dict(ksize=[1, k, k, 1], strides=[1, s, s, 1], padding=padding)
        name = "%s_%d%d" % (padding, k, s)
        case("MaxPoolGrad_" + name, lambda x, g, kw=kw: raw.MaxPoolGrad(orig_input=x, orig_output=raw.MaxPool(input=x, **kw), grad=g, **kw), f32(2, 7, 6, 3), f32(2, oh, ow, 3))
        case("MaxPoolGrad_ties_" + name, lambda x, g, kw=kw: raw.MaxPoolGrad(orig_input=x, orig_output=raw.MaxPool(input=x, **kw), grad=g, **kw), small("float32", 2, 7, 6, 3), f32(2, oh, ow, 3))
        case("MaxPoolGradV2_" + name, lambda x, g, kw=kw: raw.MaxPoolGradV2(orig_input=x, orig_output=raw.MaxPool(input=x, **kw), grad=g, ksize=c(kw["ksize"]), strides=c(kw["strides"]), padding=kw["padding"]), f32(2, 7, 6, 3), f32(2, oh, ow, 3))
        case("AvgPoolGrad_" + name, lambda g, kw=kw: raw.AvgPoolGrad(orig_input_shape=c([2, 7, 6, 3]), grad=g, **kw), f32(2, oh, ow, 3))
        for whole in (False, True):
            case("MaxPoolGradWithArgmax_%s_%d" % (name, whole), lambda x, g, kw=kw, whole=whole: raw.MaxPoolGradWithArgmax(input=x, grad=g, argmax=raw.MaxPoolWithArgmax(input=x, include_batch_in_index=whole, **kw).argmax, include_batch_in_index=whole, **kw), f32(2, 7, 6, 3), f32(2, oh, ow, 3), sized=True)
first = dict(ksize=[1, 1, 2, 2], strides=[1, 1, 2, 2], padding="VALID", data_format="NCHW")
last = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
case("MaxPoolGrad_channels_first", lambda x, y, g: raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, **first), f32(1, 3, 6, 4), f32(1, 3, 3, 2), f32(1, 3, 3, 2),
     reference=lambda x, y, g: to_first(raw.MaxPoolGrad(orig_input=to_last(x), orig_output=raw.MaxPool(input=to_last(x), **last), grad=to_last(g), **last)))
case("AvgPoolGrad_channels_first", lambda g: raw.AvgPoolGrad(orig_input_shape=c([1, 3, 6, 4]), grad=g, **first), f32(1, 3, 3, 2), reference=lambda g: to_first(raw.AvgPoolGrad(orig_input_shape=c([1, 6, 4, 3]), grad=to_last(g), **last)))
case("AvgPoolGrad_fed", lambda x, g: raw.AvgPoolGrad(orig_input_shape=raw.Shape(input=x), grad=g, **last), f32(1, 6, 4, 2), f32(1, 3, 2, 2))
V = dict(ksize=[1, 2, 2, 3, 1], strides=[1, 1, 2, 2, 1], padding="SAME")
case("AvgPool3DGrad", lambda g: raw.AvgPool3DGrad(orig_input_shape=c([1, 4, 5, 6, 2]), grad=g, **V), f32(1, 4, 3, 3, 2))
case("MaxPool3DGrad", lambda x, g: raw.MaxPool3DGrad(orig_input=x, orig_output=raw.MaxPool3D(input=x, **V), grad=g, **V), f32(1, 4, 5, 6, 2), f32(1, 4, 3, 3, 2))

for training in (False, True):
    for op in (raw.FusedBatchNormGrad, raw.FusedBatchNormGradV2, raw.FusedBatchNormGradV3):
        extra = {"reserve_space_3": c(0.0)} if op is raw.FusedBatchNormGradV3 else {}
        def grad(g, x, s, m, v, op=op, training=training, extra=extra):
            extra = {"reserve_space_3": tf.constant(0.0)} if extra else {}
            return list(op(y_backprop=g, x=x, scale=s, reserve_space_1=m, reserve_space_2=v, epsilon=0.01, is_training=training, **extra))[:3]
        case("%s_%d" % (op.__name__, training), grad, f32(2, 3, 4, 5), f32(2, 3, 4, 5), f32(5), f32(5), f32(5, lo=0.5, hi=2))
def whole_norm(x, s, o, g):
    """The forward pass and its gradient, as a saved function has them."""
    y = raw.FusedBatchNormV3(x=x, scale=s, offset=o, mean=c([], tf.float32), variance=c([], tf.float32), epsilon=0.001, is_training=True)
    return [y.y] + list(raw.FusedBatchNormGradV3(y_backprop=g, x=x, scale=s, reserve_space_1=y.reserve_space_1, reserve_space_2=y.reserve_space_2, reserve_space_3=y.reserve_space_3, epsilon=0.001, is_training=True))[:3]
case("FusedBatchNormGradV3_whole", whole_norm, f32(4, 3, 3, 2), f32(2), f32(2), f32(4, 3, 3, 2))
def first_norm(g, x, s, m, v, f="NCHW"): return list(raw.FusedBatchNormGradV3(y_backprop=g, x=x, scale=s, reserve_space_1=m, reserve_space_2=v, reserve_space_3=tf.constant(0.0), data_format=f))[:3]
def as_last(g, x, s, m, v):
    a, b, d = first_norm(to_last(g), to_last(x), s, m, v, "NHWC")
    return [to_first(a), b, d]
case("FusedBatchNormGradV3_channels_first", first_norm, f32(2, 3, 4, 2), f32(2, 3, 4, 2), f32(3), f32(3), f32(3, lo=0.5, hi=2), reference=as_last)

for radius, bias, alpha, beta in ((5, 1.0, 1.0, 0.5), (1, 2.0, 0.1, 0.75), (0, 1.0, 0.5, 1.0)):
    kw = dict(depth_radius=radius, bias=bias, alpha=alpha, beta=beta)
    case("LRNGrad_%d" % radius, lambda x, g, kw=kw: raw.LRNGrad(input_grads=g, input_image=x, output_image=raw.LRN(input=x, **kw), **kw), f32(2, 3, 2, 7), f32(2, 3, 2, 7))

# Gradients of other sizes with as many elements.
case("Conv2DBackpropFilter_sizes", lambda x, g: raw.Conv2DBackpropFilter(input=x, filter_sizes=c([1, 1, 1, 2]), out_backprop=g, strides=[1, 1, 1, 1], padding="SAME"), f32(2, 4, 4, 1), f32(4, 2, 4, 2), error=True)
case("MaxPoolGrad_sizes", lambda x, g: raw.MaxPoolGrad(orig_input=x, orig_output=raw.MaxPool(input=x, **last), grad=g, **last), f32(2, 4, 4, 1), f32(4, 2, 1, 1), error=True)
case("Conv2DBackpropFilter_channels", lambda x, g: raw.Conv2DBackpropFilter(input=x, filter_sizes=c([1, 1, 3, 2]), out_backprop=g, strides=[1, 1, 1, 1], padding="SAME"), f32(2, 4, 4, 5), f32(2, 4, 4, 2), error=True)
case("Conv2DBackpropFilter_unsized", lambda x, g: raw.Conv2DBackpropFilter(input=x, filter_sizes=c([3, 3, 3, 2]), out_backprop=g, strides=[1, 1, 1, 1], padding="SAME"), f32(2, 4, 4, 3), f32(2, 4, 4, 2))
DILATIONS = [((2, 3), (1, 1), (1, 1)), ((3, 2), (2, 1), (1, 2)), ((2, 2), (3, 2), (2, 1)), ((1, 1), (1, 1), (1, 1))]
for pad, out in (("SAME", lambda n, k, s, r: -(-n // s)), ("VALID", lambda n, k, s, r: -(-(n - (k - 1) * r) // s))):
    for k, (size, stride, rate) in enumerate(DILATIONS):
        for d in ("float32", "float64", "int32") if k == 1 else ("float32",):
            args = dict(strides=[1, *stride, 1], rates=[1, *rate, 1], padding=pad)
            ys = [out(n, t, s, r) for n, t, s, r in zip((5, 6), size, stride, rate)]
            x, w, dy = (i32 if d == "int32" else lambda *s: f32(*s).astype(d) for _ in range(3))
            feeds = (x(2, 5, 6, 3), w(*size, 3), dy(2, *ys, 3))
            case("Dilation2DBackprop_%s_%d_%s" % (pad, k, d), lambda x, w, dy, args=args: [raw.Dilation2DBackpropInput(input=x, filter=w, out_backprop=dy, **args), raw.Dilation2DBackpropFilter(input=x, filter=w, out_backprop=dy, **args)], *feeds)
case("Dilation2DBackprop_ties", lambda x, w, dy: [raw.Dilation2DBackpropInput(input=x, filter=w, out_backprop=dy, strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"), raw.Dilation2DBackpropFilter(input=x, filter=w, out_backprop=dy, strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME")], np.ones((1, 4, 4, 2), np.float32), np.zeros((2, 3, 2), np.float32), f32(1, 4, 4, 2))
case("Dilation2DBackprop_size", lambda x, w, dy: raw.Dilation2DBackpropInput(input=x, filter=w, out_backprop=dy, strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID"), f32(1, 4, 4, 2), f32(2, 3, 2), f32(1, 4, 4, 2), error=True)
