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
