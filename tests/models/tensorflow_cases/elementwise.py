"""Elementwise ops."""
from recorder import *

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
case("PlaceholderWithDefault", lambda a: raw.Add(x=a, y=raw.PlaceholderWithDefault(input=c([1., 2.]), shape=[2])), f32(3, 2))
case("Gelu", lambda a: tf.nn.gelu(a, approximate=False), f32(3, 4))
case("Gelu_tanh", lambda a: tf.nn.gelu(a, approximate=True), f32(3, 4))
case("Hard_swish", lambda a: a * tf.nn.relu6(a + 3.) / 6., f32(3, 4))

# special functions
G = np.array([-3.7, -2.2, -0.5, 0.1, 0.5, 1, 1.7, 2, 3.4, 10.2, 60], np.float32)
case("Lgamma", lambda x: raw.Lgamma(x=x), G)
case("Lgamma_f64", lambda x: raw.Lgamma(x=x), G.astype(np.float64))
case("Lgamma_poles", lambda x: raw.Lgamma(x=x), np.array([0, -1, -2, np.inf], np.float32))
case("Digamma", lambda x: raw.Digamma(x=x), G)
case("Digamma_f64", lambda x: raw.Digamma(x=x), np.array([-1.25, 0.3, 7.5, 100], np.float64))
case("Erfinv", lambda x: raw.Erfinv(x=x), np.array([-0.99, -0.5, -1e-4, 0, 0.2, 0.7, 0.999], np.float32))
case("Erfinv_ends", lambda x: raw.Erfinv(x=x), np.array([-1, 1, 1.5, np.nan], np.float32))
case("Ndtri", lambda x: raw.Ndtri(x=x), np.array([1e-6, 0.01, 0.2, 0.5, 0.8, 0.99], np.float32))
case("BesselI0e", lambda x: [raw.BesselI0e(x=x), raw.BesselI1e(x=x)], np.array([-30, -2, -0.1, 0, 0.5, 3, 9, 50, 500], np.float32))
case("Igamma", lambda a, x: [raw.Igamma(a=a, x=x), raw.Igammac(a=a, x=x)], np.array([[0.5], [2], [7.5]], np.float32), np.array([0.1, 1, 2.5, 9], np.float32))
case("Igamma_edges", lambda a, x: [raw.Igamma(a=a, x=x), raw.Igammac(a=a, x=x)], np.array([1, 2, -1, 1], np.float64), np.array([0, np.inf, 1, -1], np.float64))
case("Zeta", lambda x, q: raw.Zeta(x=x, q=q), np.array([1.5, 2, 4, 9], np.float32), np.array([[1], [0.5], [6]], np.float32))
case("Polygamma", lambda n, x: raw.Polygamma(a=n, x=x), np.array([0, 1, 2, 4], np.float32), np.array([[0.7], [1], [6]], np.float32))
case("Betainc", lambda a, b, x: raw.Betainc(a=a, b=b, x=x), np.array([0.5, 1, 2, 5], np.float32), np.array([2, 0.5, 3, 1], np.float32), np.array([0.2, 0.5, 0.9, 1], np.float32))
case("NextAfter", lambda a, b: raw.NextAfter(x1=a, x2=b), np.array([0, 1, -1, 1e30, 2, np.nan, 0], np.float32), np.array([1, 2, 0, -1, 2, 1, -1], np.float32))
case("NextAfter_f64", lambda a, b: raw.NextAfter(x1=a, x2=b), np.array([[0.0], [1]], np.float64), np.array([-5.0, 0.5, 3], np.float64))
case("Xlog1py", lambda a, b: raw.Xlog1py(x=a, y=b), np.array([0, 1, 2, 0, -3], np.float32), np.array([-1, 0.5, 3, np.nan, 1e-6], np.float32))
# integers of every width, signs and shapes
for dtype in (np.int8, np.int16, np.int64, np.uint8, np.uint16):
    signed = np.dtype(dtype).kind == "i"
    a = i32(4, 5, lo=-50 if signed else 0, hi=50).astype(dtype)
    b = np.array([3, 7, -4 if signed else 4, -1 if signed else 1, 5], dtype)
    case("Integer_" + np.dtype(dtype).name, lambda a, b: [raw.AddV2(x=a, y=b), raw.Sub(x=a, y=b), raw.Mul(x=a, y=b), raw.FloorDiv(x=a, y=b), raw.TruncateDiv(x=a, y=b), raw.Maximum(x=a, y=b), raw.Less(x=a, y=b)], a, b)
    case("Bits_" + np.dtype(dtype).name, lambda a, b: [raw.BitwiseAnd(x=a, y=b), raw.BitwiseOr(x=a, y=b), raw.BitwiseXor(x=a, y=b), raw.Invert(x=a)], a, b)
    case("Shift_" + np.dtype(dtype).name, lambda a, b: [raw.LeftShift(x=a, y=b), raw.RightShift(x=a, y=b)], a, np.array([0, 1, 2, 3, 5], dtype))
case("Modulo_i64", lambda a, b: [raw.FloorMod(x=a, y=b), raw.FloorDiv(x=a, y=b)], np.array([[7], [-7]], np.int64), np.array([3, -3], np.int64))
case("FloorMod_f64", lambda a, b: raw.FloorMod(x=a, y=b), np.array([[7.5], [-7.5], [0]], np.float64), np.array([3, -3, 0.7], np.float64))
case("TruncateMod_f32", lambda a, b: raw.TruncateMod(x=a, y=b), np.array([[7.5], [-7.5]], np.float32), np.array([3, -3, 0.7], np.float32))
for op in "FloorDiv FloorMod TruncateDiv TruncateMod Div Mod".split():
    case(op + "_by_zero", lambda a, b, op=op: getattr(raw, op)(x=a, y=b), np.array([1, 2], np.int32), np.array([1, 0], np.int32), error=True)
case("Div_by_zero_f32", lambda a, b: [raw.Div(x=a, y=b), raw.RealDiv(x=a, y=b), raw.DivNoNan(x=a, y=b)], np.array([1, -2, 0], np.float32), np.array([0, 0, 0], np.float32))
case("MulNoNan_inf", lambda a, b: [raw.MulNoNan(x=a, y=b), raw.Xdivy(x=a, y=b), raw.Xlogy(x=a, y=b)], np.array([np.inf, np.nan, 2, 0], np.float32), np.array([0, 0, np.inf, np.nan], np.float32))
case("Select_scalar", lambda k, a, b: raw.Select(condition=k, x=a, y=b), np.array(True), i32(2, 3), i32(2, 3))
case("ClipByValue_tensors", lambda a, lo, hi: raw.ClipByValue(t=a, clip_value_min=lo, clip_value_max=hi), f32(3, 4), f32(3, 4, lo=-1, hi=0), f32(3, 4, lo=0, hi=1))
case("Minimum_nan", lambda a, b: [raw.Minimum(x=a, y=b), raw.Maximum(x=a, y=b)], np.array([np.nan, 1, np.inf], np.float32), np.array([1, np.nan, 2], np.float32))
case("Pow_i32", lambda a, b: raw.Pow(x=a, y=b), np.array([[2], [-3]], np.int32), np.array([0, 1, 5], np.int32))
case("Empty", lambda a, b: [raw.AddV2(x=a, y=b), raw.Sum(input=a, axis=c([0])), raw.Max(input=a, axis=c([0])), raw.Prod(input=a, axis=c([0])), raw.Lgamma(x=a)], f32(0, 3), f32(1, 3))
case("ApproximateEqual", lambda a, b: [raw.ApproximateEqual(x=a, y=b), raw.ApproximateEqual(x=a, y=b, tolerance=0.3)], np.array([1, 2, 3, np.nan], np.float32), np.array([1, 2.2, 3.5, 1], np.float32))
for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64):
    case("PopulationCount_" + np.dtype(dtype).name, lambda a: raw.PopulationCount(x=a), np.array([0, 1, 7, 100, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype))
case("Pow_negative", lambda a, b: raw.Pow(x=a, y=b), np.array([2, 3], np.int32), np.array([1, -1], np.int32), error=True)
case("Pow_known", lambda a: raw.Pow(x=a, y=c([2, 3], tf.int64)), np.array([-2, 3], np.int64))
case("AccumulateNV2", lambda a, b: raw.AccumulateNV2(inputs=[a, b], shape=[2, 3]), f32(2, 3), f32(2, 3), sized=True)
for op in "BesselI0 BesselI1".split():
    for dtype in (np.float32, np.float64):
        case("%s_%s" % (op, dtype.__name__), lambda x, op=op: getattr(raw, op)(x=x), np.array([0, 0.3, -1, 4, -7.9, 8.1, 30, 90, -700, np.nan], dtype))
