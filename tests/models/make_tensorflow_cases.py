#!/usr/bin/env python3
"""Writes testdata/tensorflow/ops.pb: one GraphDef with a small case for every TensorFlow op that the importer lowers.

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0
  v/bin/python tests/models/make_tensorflow_cases.py testdata/tensorflow/ops.pb

A case `name` is the nodes name/in0.. (placeholders of unknown sizes), the ops under test, name/out0.. (identities), and constants
name/feed0.. and name/expect0.. with the values that went in and those that TensorFlow computed on its CPU.
tests/unit/tf_ops_test.cc imports each case and compares. No TensorFlow is needed to run the tests."""
import os, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np, tensorflow as tf

v1, raw = tf.compat.v1, tf.raw_ops
v1.disable_eager_execution()
rng = np.random.default_rng(7)
graph = tf.Graph()
cases = []


def f32(*shape, lo=-2.0, hi=2.0):
    return rng.uniform(lo, hi, shape).astype(np.float32)


def i32(*shape, lo=-9, hi=10):
    return rng.integers(lo, hi, shape).astype(np.int32)


def boolean(*shape):
    return rng.integers(0, 2, shape).astype(bool)


def c(value, dtype=None):
    return tf.constant(value, dtype)


def case(name, build, *feeds, const=()):
    """build(*tensors) gives a tensor or a list; the feeds whose numbers are in `const` become constants."""
    feeds = [np.asarray(x) for x in feeds]
    with graph.as_default(), v1.name_scope(name):
        ins = []
        for i, x in enumerate(feeds):
            if i in const:
                ins.append(tf.constant(x))
            else:
                ins.append(v1.placeholder(tf.as_dtype(x.dtype if x.dtype.kind not in "OSU" else tf.string), [None] * x.ndim, name="in%d" % i))
        outs = build(*ins)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        outs = [tf.identity(o, name="out%d" % i) for i, o in enumerate(outs)]
        cases.append((name, [(t, x) for i, (t, x) in enumerate(zip(ins, feeds)) if i not in const], outs))


# elementwise
X = f32(2, 3, 4)
for op in ("Abs Asinh Atan Ceil Cos Cosh Elu Erf Erfc Exp Expm1 Floor Neg Relu Rint Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Square Tan Tanh "
           "IsFinite IsInf IsNan Identity StopGradient ZerosLike OnesLike Snapshot PreventGradient L2Loss").split():
    if op == "StopGradient": case(op, tf.stop_gradient, X)
    elif op == "PreventGradient": case(op, lambda x: raw.PreventGradient(input=x), X)
    else:
        arg = {"Relu": "features", "Elu": "features", "Selu": "features", "Softplus": "features", "Softsign": "features", "Identity": "input", "Snapshot": "input", "L2Loss": "t"}
        case(op, lambda x, op=op: getattr(raw, op)(**{arg.get(op, "y" if False else "x"): x}), X)
case("Relu6", lambda x: raw.Relu6(features=x), f32(2, 9, lo=-3, hi=9))
case("Round_ties", lambda x: raw.Round(x=x), np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, np.inf, np.nan], np.float32))
case("Special", lambda x: [raw.IsFinite(x=x), raw.IsInf(x=x), raw.IsNan(x=x), raw.Relu(features=x), raw.Sign(x=x)], np.array([np.inf, -np.inf, np.nan, 0, -1, 3], np.float32))
P = f32(3, 5, lo=0.1, hi=3)
for op in "Log Log1p Sqrt Rsqrt Reciprocal Inv".split(): case(op, lambda x, op=op: getattr(raw, op)(x=x), P)
U = f32(7, lo=-0.95, hi=0.95)
for op in "Acos Asin Atanh".split(): case(op, lambda x, op=op: getattr(raw, op)(x=x), U)
case("Acosh", lambda x: raw.Acosh(x=x), f32(7, lo=1.1, hi=4))
case("LogicalNot", lambda x: raw.LogicalNot(x=x), boolean(9))
case("LeakyRelu", lambda x: raw.LeakyRelu(features=x), X)
case("LeakyRelu_tenth", lambda x: raw.LeakyRelu(features=x, alpha=0.1), X)
case("CheckNumerics", lambda x: raw.CheckNumerics(tensor=x, message="bad"), X)
case("Neg_i32", lambda x: raw.Neg(x=x), i32(5))
case("Abs_i64", lambda x: raw.Abs(x=x), i32(5).astype(np.int64))
case("Square_f64", lambda x: raw.Square(x=x), f32(5).astype(np.float64))
case("Invert", lambda x: raw.Invert(x=x), i32(6))
for op in "Add AddV2 Sub Mul Maximum Minimum SquaredDifference Atan2".split():
    key = ("y", "x") if op == "Atan2" else ("x", "y")
    case(op, lambda a, b, op=op, key=key: getattr(raw, op)(**{key[0]: a, key[1]: b}), f32(2, 3, 4), f32(3, 1))
for op in "AddV2 Sub Mul Maximum Minimum FloorDiv FloorMod TruncateDiv TruncateMod Mod Div".split():
    case(op + "_i32", lambda a, b, op=op: getattr(raw, op)(x=a, y=b), i32(4, 6), np.array([[-4], [3], [-2], [7]], np.int32))
for op in "RealDiv Div FloorDiv FloorMod Mod".split():
    case(op + "_f32", lambda a, b, op=op: getattr(raw, op)(x=a, y=b), f32(3, 4, lo=-9, hi=9), np.array([0.7, -1.3, 2.0, -0.6], np.float32))
case("Pow", lambda a, b: raw.Pow(x=a, y=b), f32(3, 4, lo=0.1, hi=3), f32(4))
for op in "DivNoNan MulNoNan Xdivy Xlogy".split():
    case(op, lambda a, b, op=op: getattr(raw, op)(x=a, y=b), np.array([0, 1, 2, 0], np.float32), np.array([0, 0, 3, 2], np.float32))
for op in "Equal NotEqual Less LessEqual Greater GreaterEqual".split():
    case(op, lambda a, b, op=op: getattr(raw, op)(x=a, y=b), i32(3, 4, lo=-2, hi=2), i32(4, lo=-2, hi=2))
case("LogicalAnd", lambda a, b: [raw.LogicalAnd(x=a, y=b), raw.LogicalOr(x=a, y=b)], boolean(3, 4), boolean(4))
for op in "BitwiseAnd BitwiseOr BitwiseXor".split(): case(op, lambda a, b, op=op: getattr(raw, op)(x=a, y=b), i32(5), i32(5))
case("LeftShift", lambda a, b: [raw.LeftShift(x=a, y=b), raw.RightShift(x=a, y=b)], i32(5), i32(5, lo=0, hi=9))
case("Select", lambda k, a, b: raw.Select(condition=k, x=a, y=b), boolean(2, 3), f32(2, 3), f32(2, 3))
case("Select_rows", lambda k, a, b: raw.Select(condition=k, x=a, y=b), boolean(4), f32(4, 3, 2), f32(4, 3, 2))
case("SelectV2", lambda k, a, b: raw.SelectV2(condition=k, t=a, e=b), boolean(3, 1), f32(2, 1, 4), f32(4))
case("ClipByValue", lambda a, lo, hi: raw.ClipByValue(t=a, clip_value_min=lo, clip_value_max=hi), f32(3, 4), np.float32(-0.5), np.float32(1))
case("AddN", lambda *a: raw.AddN(inputs=list(a)), f32(2, 3), f32(2, 3), f32(2, 3))
case("AddN_one", lambda a: raw.AddN(inputs=[a]), f32(2, 3))
case("BiasAdd", lambda a, b: raw.BiasAdd(value=a, bias=b), f32(2, 3, 4), f32(4))
case("BiasAddV1", lambda a, b: raw.BiasAddV1(value=a, bias=b), f32(2, 4), f32(4))
case("BiasAdd_first", lambda a, b: raw.BiasAdd(value=a, bias=b, data_format="NCHW"), f32(2, 3, 4, 2), f32(3))
for to in (tf.int32, tf.int64, tf.uint8, tf.bool, tf.float64, tf.float16, tf.bfloat16):
    case("Cast_" + to.name, lambda a, to=to: tf.cast(raw.Cast(x=a, DstT=to), tf.float32), f32(3, 4, lo=0, hi=9))
case("Cast_from_bool", lambda a: raw.Cast(x=a, DstT=tf.float32), boolean(4))
case("Cast_from_i8", lambda a: raw.Cast(x=a, DstT=tf.float32), i32(4).astype(np.int8))
case("IdentityN", lambda a, b: raw.IdentityN(input=[a, b]), f32(2), i32(3))
case("EnsureShape", lambda a: raw.EnsureShape(input=a, shape=[2, None]), f32(2, 3))
case("PlaceholderWithDefault", lambda a: raw.Add(x=a, y=raw.PlaceholderWithDefault(input=c([1., 2.]), shape=[2])), f32(3, 2))
case("Gelu", lambda a: tf.nn.gelu(a, approximate=False), f32(3, 4))
case("Gelu_tanh", lambda a: tf.nn.gelu(a, approximate=True), f32(3, 4))
case("Hard_swish", lambda a: a * tf.nn.relu6(a + 3.) / 6., f32(3, 4))

# reduce
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

# norm
case("Softmax", lambda a: raw.Softmax(logits=a), f32(3, 7))
case("LogSoftmax", lambda a: raw.LogSoftmax(logits=a), f32(2, 3, 7))
case("FusedBatchNormV3", lambda a: raw.FusedBatchNormV3(x=a, scale=f32(5), offset=f32(5), mean=f32(5), variance=f32(5, lo=.5, hi=2), is_training=False, epsilon=1e-3).y, f32(2, 3, 4, 5))
case("FusedBatchNorm", lambda a: raw.FusedBatchNorm(x=a, scale=f32(5), offset=f32(5), mean=f32(5), variance=f32(5, lo=.5, hi=2), is_training=False).y, f32(2, 3, 4, 5))
case("FusedBatchNormV2", lambda a: raw.FusedBatchNormV2(x=a, scale=f32(5), offset=f32(5), mean=f32(5), variance=f32(5, lo=.5, hi=2), is_training=False).y, f32(2, 3, 4, 5))
case("LRN", lambda a: raw.LRN(input=a, depth_radius=2, bias=1.5, alpha=0.3, beta=0.7), f32(2, 2, 3, 7))
case("Layer_norm", lambda a: tf.nn.batch_normalization(a, *tf.nn.moments(a, [-1], keepdims=True), offset=f32(6), scale=f32(6), variance_epsilon=1e-6), f32(2, 3, 6))

# matmul
for ta in (False, True):
    for tb in (False, True):
        case("MatMul_%d%d" % (ta, tb), lambda a, b, ta=ta, tb=tb: raw.MatMul(a=a, b=b, transpose_a=ta, transpose_b=tb), f32(*((5, 3) if ta else (3, 5))), f32(*((4, 5) if tb else (5, 4))))
case("MatMul_i32", lambda a, b: raw.MatMul(a=a, b=b), i32(3, 5), i32(5, 4))
case("BatchMatMul", lambda a, b: raw.BatchMatMul(x=a, y=b, adj_y=True), f32(2, 3, 5), f32(2, 4, 5))
case("BatchMatMulV2", lambda a, b: raw.BatchMatMulV2(x=a, y=b, adj_x=True), f32(2, 1, 5, 3), f32(4, 5, 6))
case("BatchMatMulV3", lambda a, b: raw.BatchMatMulV3(x=a, y=b, Tout=tf.float32), f32(2, 3, 5), f32(2, 5, 6))
for i, (eq, *shapes) in enumerate([("ab,bc->ac", (3, 4), (4, 5)), ("abc,cd->abd", (2, 3, 4), (4, 5)), ("abc,cde->abde", (2, 3, 4), (4, 2, 3)), ("abcd,cde->abe", (2, 3, 2, 3), (2, 3, 4)),
                                   ("aecd,abcd->acbe", (2, 3, 4, 5), (2, 6, 4, 5)), ("acbe,aecd->abcd", (2, 4, 6, 3), (2, 3, 4, 5)), ("ab,cd->abcd", (2, 3), (4, 5)), ("a,a->", (6,), (6,)),
                                   ("ab,ab->ab", (2, 3), (2, 3)), ("ab,ab->a", (2, 3), (2, 3)), ("...ab,bc->...ac", (2, 3, 4, 5), (5, 6)), ("...a,...a->...", (3, 2, 4), (2, 4)),
                                   ("abc->cab", (2, 3, 4)), ("abc->b", (2, 3, 4)), ("abd,cb->ca", (2, 3, 4), (5, 3)), ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)), ("ab,bc->abc", (2, 3), (3, 4)),
                                   ("...ij,...jk->...ik", (1, 3, 4), (5, 4, 2))]):
    case("Einsum_%d" % i, lambda *a, eq=eq: raw.Einsum(inputs=list(a), equation=eq), *[f32(*s) for s in shapes])

# conv and pool
n = 0
for size in ((7, 6), (8, 9)):
    for stride in (1, 2):
        for pad in ("SAME", "VALID"):
            n += 1
            case("Conv2D_%d" % n, lambda a, s=stride, p=pad: raw.Conv2D(input=a, filter=f32(3, 2, 4, 5), strides=[1, s, s, 1], padding=p), f32(2, *size, 4))
            case("Depthwise_%d" % n, lambda a, s=stride, p=pad: raw.DepthwiseConv2dNative(input=a, filter=f32(3, 3, 4, 2), strides=[1, s, s, 1], padding=p), f32(2, *size, 4))
            case("MaxPool_%d" % n, lambda a, s=stride, p=pad: raw.MaxPool(input=a, ksize=[1, 3, 2, 1], strides=[1, s, s, 1], padding=p), f32(2, *size, 3))
            case("AvgPool_%d" % n, lambda a, s=stride, p=pad: raw.AvgPool(value=a, ksize=[1, 3, 2, 1], strides=[1, s, s, 1], padding=p), f32(2, *size, 3))
case("Conv2D_dilated", lambda a: raw.Conv2D(input=a, filter=f32(3, 3, 2, 4), strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 3, 1]), f32(1, 9, 10, 2))
case("Conv2D_explicit", lambda a: raw.Conv2D(input=a, filter=f32(3, 3, 2, 4), strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0]), f32(1, 7, 8, 2))
case("Conv2D_fed_filter", lambda a, w: raw.Conv2D(input=a, filter=w, strides=[1, 1, 1, 1], padding="SAME"), f32(1, 5, 5, 2), f32(3, 3, 2, 3))
case("Depthwise_dilated", lambda a: tf.nn.depthwise_conv2d(a, f32(3, 3, 3, 1), [1, 1, 1, 1], "SAME", dilations=[2, 2]), f32(1, 8, 8, 3))
case("Conv3D", lambda a: raw.Conv3D(input=a, filter=f32(2, 3, 3, 2, 3), strides=[1, 1, 2, 2, 1], padding="SAME"), f32(1, 4, 5, 6, 2))
case("MaxPool3D", lambda a: raw.MaxPool3D(input=a, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME"), f32(1, 3, 4, 5, 2))
case("AvgPool3D", lambda a: raw.AvgPool3D(input=a, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME"), f32(1, 3, 4, 5, 2))
for k, (stride, pad, size, out) in enumerate([(2, "SAME", 4, 8), (2, "SAME", 4, 7), (2, "VALID", 3, 8), (1, "VALID", 5, 7), (3, "SAME", 3, 9), (2, "VALID", 3, 7)]):
    case("Conv2DBackpropInput_%d" % k, lambda a, s=stride, p=pad, o=out: raw.Conv2DBackpropInput(input_sizes=c([2, o, o, 3]), filter=f32(3, 3, 3, 2), out_backprop=a, strides=[1, s, s, 1], padding=p), f32(2, size, size, 2))
case("Conv2DBackpropInput_dynamic", lambda a: raw.Conv2DBackpropInput(input_sizes=tf.stack([tf.shape(a)[0], tf.shape(a)[1] * 2, tf.shape(a)[2] * 2, 3]), filter=f32(2, 2, 3, 2), out_backprop=a, strides=[1, 2, 2, 1], padding="SAME"), f32(1, 3, 4, 2))

# movement
M = f32(2, 3, 4)
case("Reshape", lambda a: [raw.Reshape(tensor=a, shape=c([4, -1])), raw.Reshape(tensor=a, shape=c([24])), raw.Reshape(tensor=a, shape=c([2, 3, 4, 1], tf.int64))], M)
case("Reshape_dynamic", lambda a: tf.reshape(a, tf.stack([tf.shape(a)[0], -1])), M)
case("Squeeze", lambda a: [raw.Squeeze(input=a), raw.Squeeze(input=a, axis=[1]), raw.Squeeze(input=a, axis=[-1, 1])], f32(2, 1, 3, 1), const=(0,))
case("Squeeze_axes", lambda a: [raw.Squeeze(input=a, axis=[1]), raw.Squeeze(input=a, axis=[-1, 1])], f32(2, 1, 3, 1))
case("ExpandDims", lambda a: [raw.ExpandDims(input=a, axis=c(0)), raw.ExpandDims(input=a, axis=c(-1)), raw.ExpandDims(input=a, axis=c([1]))], M)
case("Transpose", lambda a: raw.Transpose(x=a, perm=c([2, 0, 1])), M)
case("ConcatV2", lambda a, b: raw.ConcatV2(values=[a, b, a], axis=c(1)), f32(2, 3), f32(2, 2))
case("Concat", lambda a, b: raw.Concat(values=[a, b], concat_dim=c(-1 + 1)), f32(2, 3), f32(1, 3))
case("ConcatV2_last", lambda a, b: raw.ConcatV2(values=[a, b], axis=c(-1)), i32(2, 3), i32(2, 2))
case("Split", lambda a: raw.Split(axis=c(2), value=a, num_split=2), M)
case("SplitV", lambda a: list(raw.SplitV(value=a, size_splits=c([1, 3]), axis=c(-1), num_split=2)), M)
case("SplitV_rest", lambda a: list(raw.SplitV(value=a, size_splits=c([1, -1, 2]), axis=c(1), num_split=3)), f32(2, 7), const=(0,))
case("Pack", lambda a, b: [raw.Pack(values=[a, b]), raw.Pack(values=[a, b], axis=1), raw.Pack(values=[a, b, a], axis=-1)], f32(2, 3), f32(2, 3))
case("Pack_scalars", lambda a: tf.stack([a, 2.0, a]), np.float32(3))
case("Unpack", lambda a: list(raw.Unpack(value=a, num=3, axis=1)) + list(raw.Unpack(value=a, num=4, axis=-1)), M)
case("Slice", lambda a: [raw.Slice(input=a, begin=c([0, 1, 2]), size=c([2, -1, 1])), raw.Slice(input=a, begin=c([1, 0, 0]), size=c([1, 2, 4]))], M)
case("Slice_fed", lambda a, b, s: raw.Slice(input=a, begin=b, size=s), M, np.array([0, 1, 1], np.int32), np.array([1, -1, 2], np.int32))
case("StridedSlice", lambda a: [a[:, 1], a[0, ..., 1:3], a[:, ::-1, 2:0:-1], a[..., tf.newaxis, -1], a[-1:, :2, ::3], a[1]], M)
case("StridedSlice_shape", lambda a: [tf.shape(a)[1:], tf.shape(a)[0], tf.shape(a)[:-1] * 2], M)
case("Pad", lambda a: raw.Pad(input=a, paddings=c([[1, 0], [0, 2]])), f32(2, 3))
case("PadV2", lambda a: raw.PadV2(input=a, paddings=c([[1, 0], [0, 2]]), constant_values=c(7.5)), f32(2, 3))
case("Pad_fed", lambda a, p: raw.Pad(input=a, paddings=p), f32(2, 3), np.array([[0, 1], [2, 1]], np.int32))
case("MirrorPad", lambda a: [raw.MirrorPad(input=a, paddings=c([[1, 1], [2, 1]]), mode="REFLECT"), raw.MirrorPad(input=a, paddings=c([[1, 2], [3, 0]]), mode="SYMMETRIC")], f32(3, 4))
case("Tile", lambda a: raw.Tile(input=a, multiples=c([2, 3])), f32(2, 3))
case("BroadcastTo", lambda a: raw.BroadcastTo(input=a, shape=c([2, 3, 4])), f32(3, 1))
case("ReverseV2", lambda a: raw.ReverseV2(tensor=a, axis=c([0, -1])), M)
case("Roll", lambda a: raw.Roll(input=a, shift=c([1, -2]), axis=c([0, 2])), M)
case("DepthToSpace", lambda a: raw.DepthToSpace(input=a, block_size=2), f32(1, 2, 3, 8))
case("SpaceToDepth", lambda a: raw.SpaceToDepth(input=a, block_size=2), f32(1, 4, 6, 2))
case("SpaceToBatchND", lambda a: raw.SpaceToBatchND(input=a, block_shape=c([2, 3]), paddings=c([[0, 1], [1, 1]])), f32(1, 3, 4, 2))
case("BatchToSpaceND", lambda a: raw.BatchToSpaceND(input=a, block_shape=c([2, 2]), crops=c([[0, 1], [1, 0]])), f32(4, 2, 3, 2))

# indexing
case("Shape", lambda a: [raw.Shape(input=a), raw.Shape(input=a, out_type=tf.int64), raw.Size(input=a), raw.Rank(input=a)], M)
case("ShapeN", lambda a, b: list(raw.ShapeN(input=[a, b])), M, f32(5))
case("Fill", lambda d: raw.Fill(dims=d, value=c(2.5)), np.array([2, 3], np.int32))
case("Fill_i32", lambda a: raw.Fill(dims=c([3]), value=a), np.int32(-4))
case("Range", lambda a: raw.Range(start=a, limit=c(9), delta=c(2)), np.int32(1))
case("Range_f32", lambda a: raw.Range(start=a, limit=c(-1.0), delta=c(-0.5)), np.float32(1))
case("Gather", lambda a, i: raw.Gather(params=a, indices=i), f32(5, 3), i32(2, 2, lo=0, hi=5))
case("GatherV2", lambda a, i: [raw.GatherV2(params=a, indices=i, axis=c(1)), raw.GatherV2(params=a, indices=i, axis=c(-1))], f32(2, 4, 4), i32(3, lo=0, hi=4))
case("GatherV2_batch", lambda a, i: raw.GatherV2(params=a, indices=i, axis=c(1), batch_dims=1), f32(2, 4, 3), i32(2, 3, lo=0, hi=4))
case("GatherV2_batch_negative", lambda a, i: raw.GatherV2(params=a, indices=i, axis=c(1), batch_dims=-1), f32(2, 4, 3), i32(2, 3, lo=0, hi=4))
case("GatherV2_strings", lambda i: raw.GatherV2(params=c([b"zero", b"one", b"two"]), indices=i, axis=c(0)), i32(2, 2, lo=0, hi=3))
case("GatherNd", lambda a, i: raw.GatherNd(params=a, indices=i), f32(3, 4, 2), np.array([[0, 1], [2, 3]], np.int32))
case("OneHot", lambda i: [raw.OneHot(indices=i, depth=c(4), on_value=c(1.0), off_value=c(0.0)), raw.OneHot(indices=i, depth=c(3), on_value=c(5.0), off_value=c(-1.0), axis=0)], np.array([0, 3, -1, 7, 2], np.int32))
case("OneHot_u8", lambda i: raw.OneHot(indices=i, depth=c(4), on_value=c(2), off_value=c(1)), np.array([0, 3, 200], np.uint8))
case("Where", lambda a: raw.Where(condition=a), boolean(3, 4))
case("ScatterNd", lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=c([5, 2])), np.array([[0], [3], [0]], np.int32), f32(3, 2))

# resize
for kind in ("", "corners", "half"):
    kw = dict(align_corners=kind == "corners", half_pixel_centers=kind == "half")
    for k, size in enumerate([(8, 9), (3, 2), (5, 5)]):
        case("ResizeBilinear_%s_%d" % (kind or "old", k), lambda a, kw=kw, size=size: raw.ResizeBilinear(images=a, size=c(list(size)), **kw), f32(1, 4, 5, 2))
        case("ResizeNearest_%s_%d" % (kind or "old", k), lambda a, kw=kw, size=size: raw.ResizeNearestNeighbor(images=a, size=c(list(size)), **kw), f32(1, 4, 5, 2))
case("ResizeBilinear_u8", lambda a: raw.ResizeBilinear(images=a, size=c([3, 7]), half_pixel_centers=True), i32(1, 4, 5, 3, lo=0, hi=255).astype(np.uint8))
case("ResizeNearest_u8", lambda a: raw.ResizeNearestNeighbor(images=a, size=c([3, 7])), i32(1, 4, 5, 3, lo=0, hi=255).astype(np.uint8))

with v1.Session(graph=graph) as session:
    for name, ins, outs in cases:
        try:
            values = session.run(outs, {t: x for t, x in ins})
        except Exception as e:
            sys.exit("%s: %s" % (name, e))
        with graph.as_default():
            for t, x in ins: tf.constant(x, t.dtype, name="%s/feed%s" % (name, t.op.name[len(name) + 3:]))
            for i, x in enumerate(values): tf.constant(x, outs[i].dtype, name="%s/expect%d" % (name, i))
data = graph.as_graph_def().SerializeToString()
os.makedirs(os.path.dirname(sys.argv[1]) or ".", exist_ok=True)
open(sys.argv[1], "wb").write(data)
print(len(cases), "cases,", len(data), "bytes")
