"""Calls of the ops of nets: convolutions, pools, products, resizing, normalisation."""
import numpy as np
import tensorflow as tf

from draws import call, raw


def spatial(d, count, window_most=4):
    """Picture sizes, windows and strides that fit more often than not."""
    window = [d.int(1, window_most) for _ in range(count)]
    size = [d.int(1, 9) for _ in range(count)]
    return size, window, [d.strides(w) for w in window]


def paddings(d, window):
    kind = d.one(["SAME", "SAME", "VALID", "EXPLICIT"])
    pads = [0, 0] + [d.int(0, w - 1) if w > 1 else 0 for w in window for _ in range(2)] + [0, 0]
    return kind, (pads if kind == "EXPLICIT" else [])


@call
def conv2d(d):
    size, window, strides = spatial(d, 2)
    groups = d.one([1, 1, 1, 2, 3])
    cin, cout = d.one([1, 2, 3, 4, 8, 17]), d.one([1, 2, 5, 8, 16, 33])
    kind, pads = paddings(d, window)
    dilations = [d.one([1, 1, 2, 3]) for _ in range(2)] if d.often(0.4) else [1, 1]
    if d.often(0.3):
        strides[1] = strides[0]
    x = d.array([d.int(1, 3)] + size + [cin * groups], d.one([np.float32, np.float32, np.float64, np.float16]))
    w = d.array(window + [cin, cout * groups], x.dtype)

    def run(x, w):
        return raw.Conv2D(input=x, filter=w, strides=[1] + strides + [1], padding=kind, explicit_paddings=pads,
                          dilations=[1] + dilations + [1])
    return constant_tail(d, run, [x, w]), [x, w], "Conv2D"


def constant_tail(d, run, arrays):
    """Often the tensors behind the first are constants, as weights are. Changes `arrays`."""
    if not d.often(0.6):
        return run
    held = [np.array(a) for a in arrays[1:]]
    del arrays[1:]
    return lambda first: run(first, *held)


@call
def depthwise(d):
    size, window, strides = spatial(d, 2, 5)
    strides = [strides[0]] * 2
    kind, pads = paddings(d, window)
    c, m = d.one([1, 2, 3, 8, 16, 20]), d.one([1, 1, 1, 2])
    dilations = [d.one([1, 2])] * 2 if strides[0] == 1 else [1, 1]
    arrays = [d.array([d.int(1, 3)] + size + [c], np.float32), d.array(window + [c, m], np.float32)]

    def run(x, w):
        return raw.DepthwiseConv2dNative(input=x, filter=w, strides=[1] + strides + [1], padding=kind,
                                         explicit_paddings=pads, dilations=[1] + dilations + [1])
    return constant_tail(d, run, arrays), arrays, "DepthwiseConv2dNative"


@call
def conv3d(d):
    size, window, strides = spatial(d, 3, 3)
    kind = d.one(["SAME", "VALID"])
    arrays = [d.array([d.int(1, 2)] + size + [d.int(1, 4)], np.float32)]
    arrays.append(d.array(window + [arrays[0].shape[-1], d.int(1, 5)], np.float32))

    def run(x, w):
        return raw.Conv3D(input=x, filter=w, strides=[1] + strides + [1], padding=kind)
    return constant_tail(d, run, arrays), arrays, "Conv3D"


@call
def conv_transpose(d):
    size, window, strides = spatial(d, 2)
    kind = d.one(["SAME", "VALID"])
    x = d.array([d.int(1, 2)] + size + [d.one([1, 3, 8])], np.float32)
    w = d.array(window + [d.one([1, 2, 5, 16]), x.shape[-1]], np.float32)
    out = [s * t for s, t in zip(size, strides)] if kind == "SAME" else [
        (s - 1) * t + k + d.int(0, max(t - 1, 0)) for s, t, k in zip(size, strides, window)]
    shape = [x.shape[0]] + out + [w.shape[2]]
    arrays = [x, w]

    def run(x, w):
        return raw.Conv2DBackpropInput(input_sizes=shape, filter=w, out_backprop=x, strides=[1] + strides + [1], padding=kind)
    return constant_tail(d, run, arrays), arrays, "Conv2DBackpropInput"


@call
def pool(d):
    name = d.one(["MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax"])
    count = 3 if name.endswith("3D") else 2
    size, window, strides = spatial(d, count)
    kind = d.one(["SAME", "VALID"])
    x = d.array([d.int(1, 3)] + size + [d.int(1, 9)], np.float32)
    op = getattr(raw, name)
    sizes = dict(ksize=[1] + window + [1], strides=[1] + strides + [1], padding=kind)
    if name == "AvgPool":
        return lambda x: op(value=x, **sizes), [x], name
    if name == "MaxPoolWithArgmax":
        sizes["include_batch_in_index"] = d.often()
    return lambda x: op(input=x, **sizes), [x], name


@call
def dilation2d(d):
    size, window, strides = spatial(d, 2, 3)
    x = d.array([d.int(1, 2)] + size + [d.int(1, 4)], np.float32)
    w = d.array(window + [x.shape[-1]], np.float32)
    rates = [d.int(1, 2) for _ in range(2)]
    kind = d.one(["SAME", "VALID"])
    return lambda x, w: raw.Dilation2D(input=x, filter=w, strides=[1] + strides + [1], rates=[1] + rates + [1],
                                       padding=kind), [x, w], "Dilation2D"


@call
def resize(d):
    name = d.one(["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"])
    x = d.array([d.int(1, 2), d.int(1, 8), d.int(1, 8), d.int(1, 4)], d.one([np.float32, np.float32, np.uint8, np.int32]))
    size = [d.int(1, 17), d.int(1, 17)]
    align = d.often(0.4)
    half = {} if name == "ResizeArea" else {"half_pixel_centers": not align and d.often()}
    return lambda x: getattr(raw, name)(images=x, size=size, align_corners=align, **half), [x], name


@call
def crop_and_resize(d):
    x = d.array([d.int(1, 3), d.int(2, 8), d.int(2, 8), d.int(1, 3)], np.float32)
    n = d.int(1, 4)
    boxes = d.rng.uniform(-0.2, 1.2, [n, 4]).astype(np.float32)
    index = d.rng.integers(0, x.shape[0], n).astype(np.int32)
    method = d.one(["bilinear", "nearest"])
    size = [d.int(1, 5), d.int(1, 5)]
    return lambda x, b, i: tf.image.crop_and_resize(x, b, i, size, method, 0.5), [x, boxes, index], "CropAndResize"


@call
def matmul(d):
    dtype = d.one([np.float32, np.float32, np.float64, np.float16, np.int32])
    m, k, n = (d.one([1, 2, 3, 7, 16, 33]) for _ in range(3))
    ta, tb = d.often(), d.often()
    if d.often():
        arrays = [d.array([k, m] if ta else [m, k], dtype), d.array([n, k] if tb else [k, n], dtype)]
        run = lambda a, b: raw.MatMul(a=a, b=b, transpose_a=ta, transpose_b=tb)
        return constant_tail(d, run, arrays), arrays, "MatMul"
    batch = d.shape(0, 3, 3, 0)
    other = [1 if d.often(0.3) else s for s in batch][d.int(0, len(batch)) if d.often(0.3) else 0:]
    arrays = [d.array(batch + ([k, m] if ta else [m, k]), dtype), d.array(other + ([n, k] if tb else [k, n]), dtype)]
    run = lambda a, b: raw.BatchMatMulV2(x=a, y=b, adj_x=ta, adj_y=tb)
    return constant_tail(d, run, arrays), arrays, "BatchMatMulV2"


@call
def einsum(d):
    letters = "abcde"
    size = {c: d.int(1, 4) for c in letters}
    terms = ["".join(d.rng.permutation(list(letters))[:d.int(0, 4)]) for _ in range(d.int(1, 2))]
    used = sorted(set("".join(terms)))
    out = "".join(d.rng.permutation(used)[:d.int(0, len(used))]) if used else ""
    equation = ",".join(terms) + "->" + out
    arrays = [d.array([size[c] for c in t], np.float32) for t in terms]
    return lambda *t: raw.Einsum(inputs=list(t), equation=equation), arrays, "Einsum"


@call
def rows(d):
    name = d.one(["Softmax", "LogSoftmax", "L2Loss", "LRN", "BiasAdd", "LeakyRelu", "TopKV2", "InTopKV2", "OneHot", "L2Normalize"])
    x = d.array(d.shape(1, 4, 8, 0), np.float32, 0.2 if name in ("LeakyRelu",) else 0)
    if name in ("Softmax", "LogSoftmax"):
        return lambda x: getattr(raw, name)(logits=x), [x], name
    if name == "L2Loss":
        return lambda x: tf.nn.l2_loss(x), [x], name
    if name == "LRN":
        x = d.array([1, d.int(1, 4), d.int(1, 4), d.int(1, 9)], np.float32)
        radius, alpha, beta = d.int(0, 6), d.one([1.0, 0.1]), d.one([0.5, 0.75, 0.3])
        return lambda x: raw.LRN(input=x, depth_radius=radius, bias=1.0, alpha=alpha, beta=beta), [x], name
    if name == "BiasAdd":
        x = d.array(d.shape(2, 4, 8, 0), np.float32)
        return lambda x, b: tf.nn.bias_add(x, b), [x, d.array([x.shape[-1]], np.float32)], name
    if name == "LeakyRelu":
        alpha = d.one([0.2, 0.0, 1.5, -0.5])
        return lambda x: raw.LeakyRelu(features=x, alpha=alpha), [x], name
    if name == "TopKV2":
        x = d.array(d.shape(1, 3, 8, 0), d.one([np.float32, np.int32, np.float64]))
        k = d.int(0, x.shape[-1])
        return lambda x: tf.math.top_k(x, k), [x], name
    if name == "InTopKV2":
        x = d.array([d.int(1, 4), d.int(1, 6)], np.float32)
        t = d.rng.integers(0, x.shape[1], x.shape[0]).astype(np.int32)
        k = d.int(1, 6)
        return lambda x, t: raw.InTopKV2(predictions=x, targets=t, k=k), [x, t], name
    if name == "OneHot":
        index = d.rng.integers(-2, 6, d.shape(0, 3)).astype(d.one([np.int32, np.int64, np.uint8]) if d.often() else np.int32)
        depth, axis = d.int(0, 5), d.int(-1, index.ndim)
        dtype = d.one([np.float32, np.int32, np.int64])
        on, off = d.array([], dtype), d.array([], dtype)
        return lambda i: tf.one_hot(i, depth, on, off, axis), [index], name
    axis = d.int(0, x.ndim - 1)
    return lambda x: tf.math.l2_normalize(x, axis), [x], name


@call
def normalise(d):
    x = d.array([d.int(1, 3), d.int(1, 4), d.int(1, 4), d.int(1, 9)], np.float32)
    c = x.shape[-1]
    scale, offset, mean = (d.array([c], np.float32) for _ in range(3))
    variance = np.abs(d.array([c], np.float32)) + 0.1
    arrays = [x, scale, offset, mean, variance.astype(np.float32)]
    epsilon = d.one([1e-3, 1e-5, 0.1])

    def run(x, s, o, m, v):
        return raw.FusedBatchNormV3(x=x, scale=s, offset=o, mean=m, variance=v, epsilon=epsilon, is_training=False)[0]
    return constant_tail(d, run, arrays), arrays, "FusedBatchNormV3"


@call
def patches(d):
    size, window, strides = spatial(d, 2, 3)
    x = d.array([d.int(1, 2)] + size + [d.int(1, 3)], d.one([np.float32, np.int32]))
    rates = [d.int(1, 2) for _ in range(2)]
    kind = d.one(["SAME", "VALID"])
    return lambda x: raw.ExtractImagePatches(images=x, ksizes=[1] + window + [1], strides=[1] + strides + [1],
                                             rates=[1] + rates + [1], padding=kind), [x], "ExtractImagePatches"


@call
def suppression(d):
    n = d.int(1, 12)
    corner = d.rng.uniform(0, 1, [n, 2])
    boxes = np.concatenate([corner, corner + d.rng.uniform(0.05, 0.6, [n, 2])], -1).astype(np.float32)
    if d.often(0.3):
        boxes = boxes[:, [2, 3, 0, 1]]
    scores = d.rng.permutation(n).astype(np.float32) / n
    most, overlap = d.int(0, n), d.one([0.1, 0.5, 0.9])
    return lambda b, s: tf.image.non_max_suppression(b, s, most, overlap, 0.2), [boxes, scores], "NonMaxSuppressionV3"


@call
def chain(d):
    """A product or convolution with what follows it in models, which passes fuse."""
    c = d.one([3, 8, 16])
    x = d.array([d.int(1, 2), d.int(1, 6), d.int(1, 6), c], np.float32)
    w = d.array([d.one([1, 3])] * 2 + [c, d.one([c, 8, 24])], np.float32)
    bias, scale = d.array([w.shape[-1]], np.float32), d.array([w.shape[-1]], np.float32)
    stride = d.one([1, 1, 2])
    act = d.one([tf.nn.relu, tf.nn.relu6, tf.nn.silu, tf.nn.gelu, tf.nn.elu, tf.nn.tanh, tf.nn.sigmoid, lambda v: v,
                 lambda v: v * tf.nn.relu6(v + 3) / 6, lambda v: tf.nn.leaky_relu(v, 0.1)])
    kinds = [d.int(0, 5) for _ in range(d.int(1, 4))]

    def run(x):
        y = tf.nn.conv2d(x, w, stride, "SAME")
        for kind in kinds:
            if kind == 0:
                y = y + bias
            elif kind == 1:
                y = y * scale
            elif kind == 2:
                y = act(y)
            elif kind == 3:
                y = y + tf.nn.conv2d(x, w, stride, "SAME")
            elif kind == 4:
                y = tf.nn.batch_normalization(y, bias * 0.1, tf.abs(scale) + 0.5, bias, scale, 1e-3)
            else:
                y = tf.nn.avg_pool2d(y, 2, 1, "SAME")
        return y
    return run, [x], "Conv2D chain"
