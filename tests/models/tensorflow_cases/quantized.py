"""Arithmetic on quantised tensors, as TensorFlow 1 rewrote graphs: integers are looked at as the integers that carry them."""
from recorder import *

Q = tf.quint8
quantized = lambda x, a, b, mode="MIN_FIRST": raw.QuantizeV2(input=x, min_range=a, max_range=b, T=Q, mode=mode)
whole = lambda q: tf.bitcast(q, tf.int32 if q.dtype == tf.qint32 else tf.uint8)
lo, hi = lambda x: np.float32(min(x.min(), 0)), lambda x: np.float32(max(x.max(), 0))
span = lambda x: (lo(x), hi(x))


def conv(x, a, b, w, p, q, strides=(1, 1, 1, 1), padding="SAME"):
    x, w = quantized(x, a, b), quantized(w, p, q)
    return raw.QuantizedConv2D(input=x.output, filter=w.output, min_input=x.output_min, max_input=x.output_max, min_filter=w.output_min, max_filter=w.output_max, strides=list(strides), padding=padding)


def product(x, a, b, w, p, q, **kw):
    x, w = quantized(x, a, b), quantized(w, p, q)
    return raw.QuantizedMatMul(a=x.output, b=w.output, min_a=x.output_min, max_a=x.output_max, min_b=w.output_min, max_b=w.output_max, **kw)


def shown(q): return [whole(q[0]), q[1], q[2]]


for name, shape, filters, kw in (("same", (2, 5, 6, 3), (3, 3, 3, 4), {}), ("valid", (1, 6, 5, 2), (3, 2, 2, 3), dict(padding="VALID")), ("strides", (1, 7, 8, 3), (3, 3, 3, 2), dict(strides=(1, 2, 2, 1))), ("one", (1, 4, 4, 5), (1, 1, 5, 6), {})):
    for k, (x, w) in enumerate([(f32(*shape), f32(*filters)), (f32(*shape, lo=0, hi=5), f32(*filters, lo=-0.3, hi=1))]):
        case("QuantizedConv2D_%s_%d" % (name, k), lambda *t, kw=kw: shown(conv(*t, **kw)), x, *span(x), w, *span(w))
for ta in (False, True):
    for tb in (False, True):
        x, w = f32(*((6, 4) if ta else (4, 6))), f32(*((5, 6) if tb else (6, 5)), lo=-1, hi=3)
        case("QuantizedMatMul_%d%d" % (ta, tb), lambda *t, ta=ta, tb=tb: shown(product(*t, transpose_a=ta, transpose_b=tb)), x, *span(x), w, *span(w))
X, W = f32(4, 6), f32(6, 5)
case("RequantizationRange", lambda *t: (lambda s: list(raw.RequantizationRange(input=s[0], input_min=s[1], input_max=s[2])))(product(*t)), X, *span(X), W, *span(W))
case("RequantizationRange_positive", lambda *t: (lambda s: list(raw.RequantizationRange(input=s[0], input_min=s[1], input_max=s[2])))(product(*t)), np.abs(X), *span(np.abs(X)), np.abs(W), *span(np.abs(W)))
case("Requantize", lambda *t: (lambda s: shown(raw.Requantize(input=s[0], input_min=s[1], input_max=s[2], requested_output_min=c(-7.5), requested_output_max=c(9.0), out_type=Q)))(product(*t)), X, *span(X), W, *span(W))
case("Requantize_positive", lambda *t: (lambda s: shown(raw.Requantize(input=s[0], input_min=s[1], input_max=s[2], requested_output_min=c(0.0), requested_output_max=c(3.0), out_type=Q)))(product(*t)), X, *span(X), W, *span(W))
case("Requantize_empty", lambda *t: (lambda s: shown(raw.Requantize(input=s[0], input_min=s[1], input_max=s[2], requested_output_min=c(0.0), requested_output_max=c(0.0), out_type=Q)))(product(*t)), X, *span(X), W, *span(W))
case("QuantizeDownAndShrinkRange", lambda *t: (lambda s: shown(raw.QuantizeDownAndShrinkRange(input=s[0], input_min=s[1], input_max=s[2], out_type=Q)))(product(*t)), X, *span(X), W, *span(W))
for k, (a, b) in enumerate([(-3.0, 3.0), (0.0, 8.0), (-6.0, 0.5), (-1.0, 6.5)]):
    for op in ("QuantizedRelu", "QuantizedRelu6"):
        case("%s_%d" % (op, k), lambda x, a, b, op=op: (lambda q: shown(getattr(raw, op)(features=q[0], min_features=q[1], max_features=q[2])))(quantized(x, a, b)), f32(4, 9, lo=-7, hi=9), np.float32(a), np.float32(b))
    bias = f32(9, lo=-1, hi=2)
    case("QuantizedBiasAdd_%d" % k, lambda x, a, b, v, p, q: (lambda x, v: shown(raw.QuantizedBiasAdd(input=x[0], bias=v[0], min_input=x[1], max_input=x[2], min_bias=v[1], max_bias=v[2], out_type=tf.qint32)))(quantized(x, a, b), quantized(v, p, q)),
         f32(4, 9, lo=-7, hi=9), np.float32(a), np.float32(b), bias, *span(bias))

for name, shape, other in (("same", (3, 5), (3, 5)), ("vector", (4, 9), (9,)), ("one", (4, 3), ())):
    x, y = f32(*shape), f32(*other, lo=0, hi=3)
    case("QuantizedMul_" + name, lambda x, a, b, y, p, q: (lambda x, y: shown(raw.QuantizedMul(x=x[0], y=y[0], min_x=x[1], max_x=x[2], min_y=y[1], max_y=y[2])))(quantized(x, a, b), quantized(y, p, q)), x, *span(x), y, *span(y))
for k, (padding, size, step) in enumerate([("VALID", 2, 2), ("SAME", 3, 2), ("SAME", 5, 1), ("VALID", 7, 1)]):
    x = f32(2, 8, 9, 3)
    case("QuantizedAvgPool_%d" % k, lambda x, a, b, p=padding, s=size, t=step: (lambda x: shown(raw.QuantizedAvgPool(input=x[0], min_input=x[1], max_input=x[2], ksize=[1, s, s, 1], strides=[1, t, t, 1], padding=p)))(quantized(x, a, b)), x, *span(x))
for axis in (0, 1):
    x, y, z = (f32(3, 4, lo=a, hi=b) for a, b in ((-2, 2), (0, 5), (-7, 1)))
    args = (x, *span(x), y, *span(y), z, *span(z))
    joined = lambda *t: [quantized(*t[i:i + 3]) for i in (0, 3, 6)]
    case("QuantizedConcat_%d" % axis, lambda *t, k=axis: (lambda p: shown(raw.QuantizedConcat(concat_dim=c(k), values=[q[0] for q in p], input_mins=[q[1] for q in p], input_maxes=[q[2] for q in p])))(joined(*t)), *args)


def layer(x, a, b, w, p, q, v, r, s):
    y = conv(x, a, b, w, p, q)
    span = raw.RequantizationRange(input=y[0], input_min=y[1], input_max=y[2])
    y = raw.Requantize(input=y[0], input_min=y[1], input_max=y[2], requested_output_min=span[0], requested_output_max=span[1], out_type=Q)
    v = quantized(v, r, s)
    y = raw.QuantizedBiasAdd(input=y[0], bias=v[0], min_input=y[1], max_input=y[2], min_bias=v[1], max_bias=v[2], out_type=tf.qint32)
    y = raw.QuantizeDownAndShrinkRange(input=y[0], input_min=y[1], input_max=y[2], out_type=Q)
    y = raw.QuantizedRelu(features=y[0], min_features=y[1], max_features=y[2])
    y = raw.QuantizedMaxPool(input=y[0], min_input=y[1], max_input=y[2], ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    return [whole(y[0]), raw.Dequantize(input=y[0], min_range=y[1], max_range=y[2], mode="MIN_FIRST")]


x, w, v = f32(2, 8, 8, 3), f32(3, 3, 3, 4), f32(4)
case("Quantized_layer", layer, x, *span(x), w, *span(w), v, *span(v))
