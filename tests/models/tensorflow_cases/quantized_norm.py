"""Quantised tensors that are normalised, or brought to signed bytes."""
from recorder import *

CARRIERS = {tf.quint8: tf.uint8, tf.qint8: tf.int8, tf.qint32: tf.int32}
whole = lambda q: tf.bitcast(q, CARRIERS[q.dtype])
as_q = lambda x: tf.bitcast(x, next(q for q, c in CARRIERS.items() if c == x.dtype))
u8 = lambda *shape: state.rng.integers(0, 256, shape).astype(np.uint8)
wide = lambda *shape: state.rng.integers(-2 ** 31, 2 ** 31, shape).astype(np.int32)
F = np.float32


def shown(q): return [whole(q[0]), q[1], q[2]]


for k, (a, b, p, q) in enumerate([(-1, 1, -0.4, 0.5), (-100, 100, -40, 50), (0, 6, 0, 3), (-2, 0.5, 0, 2)]):
    case("Requantize_qint8_%d" % k, lambda x, a, b, p, q: shown(raw.Requantize(input=as_q(x), input_min=a, input_max=b, requested_output_min=p, requested_output_max=q, out_type=tf.qint8)), wide(5, 7), F(a), F(b), F(p), F(q))

for k, (least, most) in enumerate([(0.1, 2), (0.5, 3)]):
    for scaled in (False, True):
        ranges = dict(m_min=-1.0, m_max=1.0, v_min=least, v_max=float(most), beta_min=-1.0, beta_max=2.0, gamma_min=-2.0, gamma_max=1.0)
        case("QuantizedBatchNorm_%d_%d" % (k, scaled), lambda x, m, v, o, g, a, b, r=ranges, s=scaled: shown(raw.QuantizedBatchNormWithGlobalNormalization(t=as_q(x), t_min=a, t_max=b, m=as_q(m), v=as_q(v), beta=as_q(o), gamma=as_q(g), out_type=tf.qint32, variance_epsilon=1e-3, scale_after_normalization=s, **{n: c(x) for n, x in r.items()})), u8(2, 3, 4, 5), u8(5), u8(5), u8(5), u8(5), F(-1), F(2))
for name, kw in (("", {}), ("_given", dict(output_range_given=True, given_y_min=-1.0, given_y_max=2.0)), ("_apart", dict(min_separation=20.0)), ("_epsilon", dict(variance_epsilon=0.5))):
    for k, size in enumerate([(1, 3, 4, 2), (2, 2, 2, 3)]):
        case("QuantizedInstanceNorm%s_%d" % (name, k), lambda x, a, b, kw=kw: shown(raw.QuantizedInstanceNorm(x=as_q(x), x_min=a, x_max=b, **kw)), u8(*size), F(-1), F(2))
for k, (a, b) in enumerate([(-3, 3.2), (0, 6), (-1, 0), (0.5, 2)]):
    case("QuantizeV2_qint32_%d" % k, lambda x, a, b: shown(raw.QuantizeV2(input=x, min_range=a, max_range=b, T=tf.qint32, mode="MIN_FIRST")), f32(4, 9, lo=a - 1, hi=b + 1), F(a), F(b))
case("QuantizeV2_qint32_ends", lambda x: shown(raw.QuantizeV2(input=x, min_range=c(-3.0), max_range=c(3.2), T=tf.qint32, mode="MIN_FIRST", ensure_minimum_range=0.5)), F([-9, -3, 0, 3.1, 3.1999, 3.2, 9]))
