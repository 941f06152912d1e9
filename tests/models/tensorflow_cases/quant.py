"""Quantisation: fake, to integers and back. Integers are looked at through Dequantize with a range that gives them as they are."""
from recorder import *

X = np.concatenate([f32(5, 6, lo=-8, hi=8), np.array([[0, -6, 6, 100, -100, 0.5]], np.float32)])
for bits in (8, 4, 2, 16):
    for narrow in (False, True):
        for k, (lo, hi) in enumerate([(-6, 6), (0, 5.5), (-3, 0), (-0.1, 7.3)]):
            case("FakeQuantWithMinMaxArgs_%d_%d_%d" % (bits, narrow, k), lambda x, kw=dict(min=lo, max=hi, num_bits=bits, narrow_range=narrow): raw.FakeQuantWithMinMaxArgs(inputs=x, **kw), X)
            case("FakeQuantWithMinMaxVars_%d_%d_%d" % (bits, narrow, k), lambda x, a, b, kw=dict(num_bits=bits, narrow_range=narrow): raw.FakeQuantWithMinMaxVars(inputs=x, min=a, max=b, **kw), X, np.float32(lo), np.float32(hi))
    case("FakeQuantWithMinMaxVarsPerChannel_%d" % bits, lambda x, a, b, bits=bits: raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=a, max=b, num_bits=bits), X, np.array([-6, 0, -3, -0.1, 0, -1], np.float32), np.array([6, 5, 0, 7.3, 0, 1], np.float32))
case("FakeQuantWithMinMaxVars_zero", lambda x, a, b: raw.FakeQuantWithMinMaxVars(inputs=x, min=a, max=b), X, np.float32(0), np.float32(0))
case("FakeQuantWithMinMaxVars_defaults", lambda x: [raw.FakeQuantWithMinMaxArgs(inputs=x), raw.FakeQuantWithMinMaxVars(inputs=x, min=c(-1.0), max=c(1.0))], X)
PLAIN = {tf.qint8: (-128.0, 127.0), tf.quint8: (0.0, 255.0), tf.qint16: (-32768.0, 32767.0), tf.quint16: (0.0, 65535.0)}
for t, (lo, hi) in PLAIN.items():
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        if mode == "MIN_FIRST" and t != tf.quint8: continue
        for k, (a, b) in enumerate([(-6.0, 6.0), (0.0, 4.0), (-3.0, 7.5), (0.0, 0.0), (1.0, 3.0)]):
            def build(x, a, b, t=t, mode=mode, lo=lo, hi=hi):
                q = raw.QuantizeV2(input=x, min_range=a, max_range=b, T=t, mode=mode)
                return [raw.Dequantize(input=q.output, min_range=c(lo), max_range=c(hi), mode="SCALED"), q.output_min, q.output_max, raw.Dequantize(input=q.output, min_range=q.output_min, max_range=q.output_max, mode=mode)]
            case("QuantizeV2_%s_%s_%d" % (t.name, mode, k), build, X, np.float32(a), np.float32(b))
for narrow in (False, True):
    def build(x, a, b, narrow=narrow):
        q = raw.QuantizeV2(input=x, min_range=a, max_range=b, T=tf.qint8, mode="SCALED", round_mode="HALF_TO_EVEN", narrow_range=narrow, axis=1, ensure_minimum_range=0.5)
        return [raw.Dequantize(input=q.output, min_range=c(-128.0), max_range=c(127.0), mode="SCALED"), q.output_min, q.output_max, raw.Dequantize(input=q.output, min_range=q.output_min, max_range=q.output_max, mode="SCALED", narrow_range=narrow, axis=1)]
    case("QuantizeV2_axis_%d" % narrow, build, X, np.array([-6, 0, -3, -0.1, 0, -1], np.float32), np.array([6, 5, 0, 7.3, 0, 1], np.float32))
case("QuantizeV2_range", lambda x, a, b: raw.QuantizeV2(input=x, min_range=a, max_range=b, T=tf.quint8).output_min, X, np.float32(2), np.float32(1), error=True)
case("Dequantize_bf16", lambda x: tf.cast(raw.Dequantize(input=raw.QuantizeV2(input=x, min_range=c(-6.0), max_range=c(6.0), T=tf.quint8).output, min_range=c(-6.0), max_range=c(6.0), dtype=tf.bfloat16), tf.float32), X)
RANGES = [(-6.0, 6.0), (0.0, 4.0), (-3.0, 7.5), (-2.0, 1.0)]
for version in ("V2", "V4"):
    for signed in (True, False):
        for k, (a, b) in enumerate(RANGES):
            for mode in ("HALF_TO_EVEN", "HALF_UP"):
                case("QuantizeAndDequantize%s_%d_%d_%s" % (version, signed, k, mode), lambda x, a, b, v=version, s=signed, m=mode, n=k % 2 == 0: [getattr(raw, "QuantizeAndDequantize" + v)(input=x, input_min=a, input_max=b, signed_input=s, num_bits=bits, range_given=g, round_mode=m, narrow_range=n)
                                                                                                                                                  for bits in (8, 3) for g in (True, False)], X, np.float32(a), np.float32(b))
    case("QuantizeAndDequantize%s_axis" % version, lambda x, a, b, v=version: [getattr(raw, "QuantizeAndDequantize" + v)(input=x, input_min=a, input_max=b, range_given=False, axis=1)], X, np.array([-6, 0, -3, -0.1, 0, -1], np.float32), np.array([6, 5, 0, 7.3, 1, 1], np.float32))
case("QuantizeAndDequantizeV2_f64", lambda x, a, b: raw.QuantizeAndDequantizeV2(input=x, input_min=a, input_max=b, range_given=True), X.astype(np.float64), np.float64(-3), np.float64(5))
case("QuantizeAndDequantizeV3", lambda x, a, b: [raw.QuantizeAndDequantizeV3(input=x, input_min=a, input_max=b, num_bits=c(n), range_given=g) for n in (8, 5) for g in (True, False)], X, np.float32(-3), np.float32(5))
