"""Assertions, checks and messages."""
from recorder import *


def guarded(x, *checks):
    with tf.control_dependencies([k for k in checks if k is not None]): return tf.identity(x * 2.0)


case("Assert", lambda x, k: guarded(x, raw.Assert(condition=k, data=[x])), f32(3), np.array(True))
case("Assert_fails", lambda x, k: guarded(x, raw.Assert(condition=k, data=[c(b"x must be right:"), x, c(7)])), f32(3), np.array(False), error=True)
case("Assert_lists", lambda x, k: guarded(x, raw.Assert(condition=k, data=[c([1, 2, 3, 4, 5]), c([[1, 2], [3, 4]]), c([True, False]), c([[b"a"], [b"b"]])])), f32(3), np.array(False), error=True)
case("Assert_all", lambda x, k: guarded(x, raw.Assert(condition=k, data=[c([1.5, 2.25, 1e10, 1e-7, 5]), c(np.arange(12).reshape(2, 3, 2)), c(np.zeros((0, 2), np.float32))], summarize=-1)), f32(3), np.array(False), error=True)
case("Assert_positive", lambda x: guarded(x, v1.assert_positive(x)), f32(3, lo=0.1))
case("Assert_positive_fails", lambda x: guarded(x, v1.assert_positive(x, message="no")), np.array([1, 2, -3], np.float32), error=True)
case("Assert_rank", lambda x: guarded(x, v1.assert_rank(x, 1)), f32(3))
case("Assert_guarded", lambda x, k: guarded(x, tf.Assert(k, [c(b"why:"), x])), f32(3), np.array(False), error=True)
case("Assert_guarded_holds", lambda x, k: guarded(x, tf.Assert(k, [c(b"why:"), x])), f32(3), np.array(True))
case("Assert_chain", lambda x, k: guarded(x, tf.group(raw.Assert(condition=c(True), data=[c(1)]), raw.Assert(condition=k, data=[c(b"grouped")]))), f32(3), np.array(False), error=True)
case("CheckNumerics", lambda x: raw.CheckNumerics(tensor=x, message="bad"), f32(2, 3))
case("CheckNumerics_nan", lambda x: raw.CheckNumerics(tensor=x, message="bad"), np.array([1, np.nan], np.float32), error=True)
case("CheckNumerics_inf", lambda x: raw.CheckNumerics(tensor=x, message="bad"), np.array([1, np.inf], np.float64), error=True)
case("CheckNumerics_both", lambda x: raw.CheckNumerics(tensor=x, message="bad"), np.array([-np.inf, np.nan], np.float32), error=True)
case("CheckNumerics_beside", lambda x: guarded(x, raw.CheckNumerics(tensor=x, message="beside")), np.array([1, np.nan], np.float32), error=True)
case("CheckNumericsV2", lambda x: raw.CheckNumericsV2(tensor=x, message="bad"), f32(2, 3))
case("CheckNumericsV2_all", lambda x: raw.CheckNumericsV2(tensor=x, message="bad"), np.array([-np.inf, np.nan, np.inf], np.float32), error=True)
case("EnsureShape", lambda x: raw.EnsureShape(input=x, shape=[2, None]) * 2.0, f32(2, 3))
case("EnsureShape_size", lambda x: raw.EnsureShape(input=x, shape=[2, 4]), f32(2, 3), error=True)
case("Print", lambda x: raw.Print(input=x, data=[x, c(b"text")], message="seen: "), f32(3))
case("PrintV2", lambda x: guarded(x, raw.PrintV2(input=c(b"a line"))), f32(3))
case("NoOp", lambda x: guarded(x, raw.NoOp()), f32(3))



def old_guard(x, k):
    """How TensorFlow 1 guards an assertion: with Switch and Merge."""
    v1.disable_control_flow_v2()
    y = guarded(x, v1.Assert(k, [c(b"old:"), x]))
    v1.enable_control_flow_v2()
    return y


case("Assert_switch", old_guard, f32(3), np.array(False), error=True)
case("Assert_switch_holds", old_guard, f32(3), np.array(True))
case("GuaranteeConst", lambda x: raw.GuaranteeConst(input=x), f32(3))
for name, x in (("nan", np.float32(np.nan)), ("zero", np.float32(-0.0)), ("int", np.int64(-5)), ("bool", np.bool_(True)), ("text", np.array(b"x", object)), ("no_text", np.array(b"", object)), ("list", np.zeros(2, np.float32)), ("empty", np.zeros((0, 2), np.int32)), ("texts", np.array([b""], object))):
    case("ToBool_" + name, lambda x: raw.ToBool(input=x), x)
