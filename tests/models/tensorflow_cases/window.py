"""Rarer pools, patches, fused convolutions."""
from recorder import *

X = f32(2, 5, 6, 3)
for pad in ("SAME", "VALID"):
    case("MaxPoolV2_" + pad, lambda a, pad=pad: raw.MaxPoolV2(input=a, ksize=c([1, 3, 2, 1]), strides=c([1, 2, 2, 1]), padding=pad), X)
    for whole in (False, True):
        case("MaxPoolWithArgmax_%s_%d" % (pad, whole), lambda a, pad=pad, whole=whole: list(raw.MaxPoolWithArgmax(input=a, ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding=pad, include_batch_in_index=whole, Targmax=tf.int64 if whole else tf.int32)), X)
    for k, (size, stride, rate) in enumerate((((2, 2), (1, 1), (1, 1)), ((3, 2), (2, 1), (1, 2)), ((1, 1), (2, 2), (1, 1)))):
        case("ExtractImagePatches_%s_%d" % (pad, k), lambda a, pad=pad, s=size, t=stride, r=rate: raw.ExtractImagePatches(images=a, ksizes=[1, *s, 1], strides=[1, *t, 1], rates=[1, *r, 1], padding=pad), f32(1, 5, 6, 2))
        case("Dilation2D_%s_%d" % (pad, k), lambda a, pad=pad, s=size, t=stride, r=rate: raw.Dilation2D(input=a, filter=f32(*s, 3), strides=[1, *t, 1], rates=[1, *r, 1], padding=pad), f32(1, 5, 6, 3))
    case("ExtractVolumePatches_" + pad, lambda a, pad=pad: raw.ExtractVolumePatches(input=a, ksizes=[1, 2, 2, 1, 1], strides=[1, 1, 2, 1, 1], padding=pad), f32(1, 3, 4, 2, 2))
case("ExtractImagePatches_u8", lambda a: raw.ExtractImagePatches(images=a, ksizes=[1, 2, 2, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding="SAME"), i32(1, 3, 3, 1, lo=0, hi=255).astype(np.uint8))
case("Dilation2D_i32", lambda a, w: raw.Dilation2D(input=a, filter=w, strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"), i32(1, 4, 4, 2), i32(2, 3, 2), sized=True)
case("MaxPool_i32", lambda a: raw.MaxPool(input=a, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"), i32(1, 3, 3, 2))
case("MaxPool_explicit", lambda a: raw.MaxPool(input=a, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 1, 0, 2, 0, 0]), f32(1, 5, 6, 2))
case("Depthwise_explicit", lambda a: raw.DepthwiseConv2dNative(input=a, filter=f32(3, 3, 2, 2), strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 2, 1, 0, 1, 0, 0]), f32(1, 5, 4, 2))
case("Conv2D_grouped", lambda a: raw.Conv2D(input=a, filter=f32(3, 3, 2, 6), strides=[1, 1, 1, 1], padding="SAME"), f32(1, 4, 4, 4), sized=True)
case("Conv2D_f64", lambda a: raw.Conv2D(input=a, filter=f32(2, 2, 2, 3).astype(np.float64), strides=[1, 1, 1, 1], padding="VALID"), f32(1, 4, 4, 2).astype(np.float64))
case("Conv2D_empty", lambda a: raw.Conv2D(input=a, filter=f32(2, 2, 2, 3), strides=[1, 1, 1, 1], padding="SAME"), f32(0, 4, 4, 2))
for mode in ("REFLECT", "SYMMETRIC"):
    case("FusedPadConv2D_" + mode, lambda a, mode=mode: raw.FusedPadConv2D(input=a, paddings=c([[0, 0], [1, 2], [2, 1], [0, 0]]), filter=f32(3, 2, 2, 3), mode=mode, strides=[1, 2, 1, 1], padding="VALID"), f32(1, 4, 5, 2))
    for corners in (False, True):
        case("FusedResizeAndPadConv2D_%s_%d" % (mode, corners), lambda a, mode=mode, k=corners: raw.FusedResizeAndPadConv2D(input=a, size=c([6, 5]), paddings=c([[0, 0], [1, 1], [2, 0], [0, 0]]), filter=f32(3, 2, 2, 2), resize_align_corners=k, mode=mode, strides=[1, 1, 1, 1], padding="SAME"), f32(1, 4, 4, 2))
for pad in ("SAME", "VALID"):
    for stride in (1, 2):
        out = {"SAME": 3 * stride, "VALID": 3 * stride + 3 - stride}[pad]
        case("Conv3DBackpropInputV2_%s_%d" % (pad, stride), lambda a, s=stride, p=pad, o=out: raw.Conv3DBackpropInputV2(input_sizes=c([1, o, o, o, 2]), filter=f32(3, 3, 3, 2, 2), out_backprop=a, strides=[1, s, s, s, 1], padding=p), f32(1, 3, 3, 3, 2))
        case("Conv3D_%s_%d" % (pad, stride), lambda a, s=stride, p=pad: raw.Conv3D(input=a, filter=f32(2, 2, 3, 2, 2), strides=[1, s, s, 1, 1], padding=p), f32(1, 4, 4, 5, 2))
        case("AvgPool3D_%s_%d" % (pad, stride), lambda a, s=stride, p=pad: [raw.AvgPool3D(input=a, ksize=[1, 2, 3, 2, 1], strides=[1, s, s, s, 1], padding=p), raw.MaxPool3D(input=a, ksize=[1, 2, 3, 2, 1], strides=[1, s, s, s, 1], padding=p)], f32(1, 4, 5, 4, 2))
case("Conv2DBackpropInput_explicit", lambda a: raw.Conv2DBackpropInput(input_sizes=c([1, 8, 7, 3]), filter=f32(3, 3, 3, 2), out_backprop=a, strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 1, 1, 0, 0]), f32(1, 4, 4, 2))
case("Conv2DBackpropInput_strides", lambda a: raw.Conv2DBackpropInput(input_sizes=c([1, 8, 9, 3]), filter=f32(2, 3, 3, 2), out_backprop=a, strides=[1, 2, 3, 1], padding="SAME"), f32(1, 4, 3, 2))


def optimised(op, inputs, fused, **attrs):
    """A node that only TensorFlow's own optimizer writes, from its NodeDef."""
    g = v1.GraphDef()
    for i in range(len(inputs)): g.node.add(name="i%d" % i, op="Placeholder").attr["dtype"].type = tf.float32.as_datatype_enum
    node = g.node.add(name="n", op=op, input=["i%d" % i for i in range(len(inputs))])
    node.attr["T"].type = tf.float32.as_datatype_enum
    node.attr["num_args"].i = len(inputs) - 2
    node.attr["fused_ops"].list.s.extend(f.encode() for f in fused)
    for k, v in attrs.items(): node.attr[k].CopyFrom(v)
    return tf.import_graph_def(g, input_map={"i%d:0" % i: x for i, x in enumerate(inputs)}, return_elements=["n:0"], name="fused")[0]


A = v1.AttrValue
for fused, extra in ((["BiasAdd"], 1), (["BiasAdd", "Relu"], 1), (["BiasAdd", "Relu6"], 1), (["BiasAdd", "Elu"], 1), (["BiasAdd", "LeakyRelu"], 1), (["FusedBatchNorm"], 4), (["FusedBatchNorm", "Relu"], 4)):
    case("FusedConv2D_" + "_".join(fused), lambda a, fused=fused, extra=extra: optimised("_FusedConv2D", [a, c(f32(3, 3, 2, 3))] + [c(f32(3, lo=0.5)) for _ in range(extra)], fused, strides=A(list=A.ListValue(i=[1, 1, 1, 1])),
         padding=A(s=b"SAME"), TArgs=A(list=A.ListValue(type=[tf.float32.as_datatype_enum] * extra)), epsilon=A(f=1e-3), leakyrelu_alpha=A(f=0.1)), f32(1, 4, 5, 2))
for fused in (["BiasAdd"], ["BiasAdd", "Relu"], ["BiasAdd", "Tanh"], ["BiasAdd", "Sigmoid"], ["BiasAdd", "LeakyRelu"]):
    case("FusedMatMul_" + "_".join(fused), lambda a, fused=fused: optimised("_FusedMatMul", [a, c(f32(5, 3)), c(f32(3))], fused, leakyrelu_alpha=A(f=0.1)), f32(2, 5))
for op in "FractionalMaxPool FractionalAvgPool".split():
    for k, kw in enumerate((dict(), dict(overlapping=True), dict(pseudo_random=True), dict(pseudo_random=True, overlapping=True))):
        case("%s_%d" % (op, k), lambda a, op=op, kw=kw, k=k: list(getattr(raw, op)(value=a, pooling_ratio=[1.0, 1.44, 1.73, 1.0], deterministic=True, seed=17 + k, seed2=42, **kw)), f32(1, 10, 12, 2))
    case(op + "_whole", lambda a, op=op: list(getattr(raw, op)(value=a, pooling_ratio=[1.0, 2.0, 3.0, 1.0], deterministic=True, seed=1, seed2=2, pseudo_random=True)), f32(1, 6, 9, 2))
    case(op + "_i32", lambda a, op=op: list(getattr(raw, op)(value=a, pooling_ratio=[1.0, 1.5, 1.25, 1.0], deterministic=True, seed=5, seed2=0)), i32(2, 7, 5, 1))


# channels first, which TensorFlow's CPU does not have: the same between transposes
def first(x): return tf.transpose(x, [0, x.shape.rank - 1] + list(range(1, x.shape.rank - 1)))
def last(x): return tf.transpose(x, [0] + list(range(2, x.shape.rank)) + [1])


def first_case(name, build, *feeds):
    """build(x, layout) with layout(list of NHWC entries) in the order of the format and its name."""
    def order(first_): return lambda v: [v[0], v[-1]] + list(v[1:-1]) if first_ else v
    rank = np.asarray(feeds[0]).ndim
    case(name, lambda *a: build(a, order(True), "NCHW" if rank == 4 else "NCDHW", lambda y: y), *feeds,
         reference=lambda *a: [first(y) for y in build([last(a[0])] + list(a[1:]), order(False), "NHWC" if rank == 4 else "NDHWC", lambda y: y)], sized=True)


W = {k: f32(*s) for k, s in dict(conv=(3, 2, 3, 4), depth=(2, 3, 3, 2), back=(3, 3, 2, 3), conv3=(2, 2, 2, 3, 2), back3=(2, 3, 2, 2, 3), bn=(4, 3)).items()}
W["bn"] = np.abs(W["bn"]) + np.float32(0.5)
for pad in ("SAME", "VALID"):
    first_case("Conv2D_first_" + pad, lambda a, l, f, g, pad=pad: [raw.Conv2D(input=a[0], filter=c(W["conv"]), strides=l([1, 2, 1, 1]), padding=pad, data_format=f)], f32(2, 3, 5, 6))
    first_case("Depthwise_first_" + pad, lambda a, l, f, g, pad=pad: [raw.DepthwiseConv2dNative(input=a[0], filter=c(W["depth"]), strides=[1, 2, 2, 1] if f == "NHWC" else [1, 1, 2, 2], padding=pad, data_format=f)], f32(1, 3, 5, 6))
    first_case("Pools_first_" + pad, lambda a, l, f, g, pad=pad: [raw.MaxPool(input=a[0], ksize=l([1, 3, 2, 1]), strides=l([1, 2, 1, 1]), padding=pad, data_format=f), raw.AvgPool(value=a[0], ksize=l([1, 2, 3, 1]), strides=l([1, 1, 2, 1]), padding=pad, data_format=f)], f32(1, 2, 5, 6))
    first_case("MaxPoolV2_first_" + pad, lambda a, l, f, g, pad=pad: [raw.MaxPoolV2(input=a[0], ksize=c(l([1, 3, 2, 1])), strides=c(l([1, 2, 1, 1])), padding=pad, data_format=f)], f32(1, 2, 5, 6))
    first_case("Conv3D_first_" + pad, lambda a, l, f, g, pad=pad: [raw.Conv3D(input=a[0], filter=c(W["conv3"]), strides=l([1, 1, 2, 1, 1]), padding=pad, data_format=f), raw.MaxPool3D(input=a[0], ksize=l([1, 2, 2, 1, 1]), strides=l([1, 1, 2, 2, 1]), padding=pad, data_format=f), raw.AvgPool3D(input=a[0], ksize=l([1, 2, 1, 2, 1]), strides=l([1, 2, 1, 1, 1]), padding=pad, data_format=f)], f32(1, 3, 3, 4, 5))
    size = {"SAME": (6, 8), "VALID": (7, 9)}[pad]
    first_case("Conv2DBackpropInput_first_" + pad, lambda a, l, f, g, pad=pad, size=size: [raw.Conv2DBackpropInput(input_sizes=c(l([1, *size, 2])), filter=c(W["back"]), out_backprop=a[0], strides=l([1, 2, 2, 1]), padding=pad, data_format=f)], f32(1, 3, 3, 4))
    size = {"SAME": (3, 4, 5), "VALID": (4, 6, 6)}[pad]
    first_case("Conv3DBackpropInputV2_first_" + pad, lambda a, l, f, g, pad=pad, size=size: [raw.Conv3DBackpropInputV2(input_sizes=c(l([1, *size, 2])), filter=c(W["back3"]), out_backprop=a[0], strides=[1, 1, 1, 1, 1], padding=pad, data_format=f)], f32(1, 3, 3, 4, 5))
first_case("Conv2D_first_explicit", lambda a, l, f, g: [raw.Conv2D(input=a[0], filter=c(W["conv"]), strides=l([1, 1, 2, 1]), padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0] if f == "NHWC" else [0, 0, 0, 0, 1, 2, 0, 1], data_format=f)], f32(1, 3, 5, 6))
first_case("FusedBatchNormV3_first", lambda a, l, f, g: [raw.FusedBatchNormV3(x=a[0], scale=c(W["bn"][0]), offset=c(W["bn"][1]), mean=c(W["bn"][2]), variance=c(W["bn"][3]), is_training=False, data_format=f).y], f32(2, 3, 2, 4))
first_case("FusedBatchNormV3_first_training", lambda a, l, f, g: [raw.FusedBatchNormV3(x=a[0], scale=c(W["bn"][0]), offset=c(W["bn"][1]), mean=c([], tf.float32), variance=c([], tf.float32), is_training=True, data_format=f).y], f32(2, 3, 2, 4))
first_case("Blocks_first", lambda a, l, f, g: [raw.DepthToSpace(input=a[0], block_size=2, data_format=f), raw.SpaceToDepth(input=a[0], block_size=2, data_format=f)], f32(1, 8, 2, 4))
case("MaxPool_channels", lambda a: raw.MaxPool(input=a, ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="VALID"), f32(2, 2, 3, 6))
W, BIAS = f32(3, 3, 2, 2), f32(4)
for fused in (["BiasAdd"], ["BiasAdd", "Relu6"]):
    # This TensorFlow computes it on accelerators only.
    def apart(a, fused=fused):
        y = raw.BiasAdd(value=raw.DepthwiseConv2dNative(input=a, filter=c(W), strides=[1, 2, 2, 1], padding="SAME"), bias=c(BIAS))
        return raw.Relu6(features=y) if len(fused) > 1 else y
    case("FusedDepthwise_" + "_".join(fused), lambda a, fused=fused: optimised("_FusedDepthwiseConv2dNative", [a, c(W), c(BIAS)], fused, strides=A(list=A.ListValue(i=[1, 2, 2, 1])), padding=A(s=b"SAME")), f32(1, 4, 5, 2), reference=apart)
