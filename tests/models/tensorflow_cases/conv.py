"""Convolutions and pools."""
from recorder import *

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
for stride, padding, size in ((1, "SAME", 5), (2, "VALID", 7), (2, "SAME", 6)):
    out = {"SAME": -(-size // stride), "VALID": (size - 3) // stride + 1}[padding]
    case("DepthwiseConv2dNativeBackpropInput_%d_%s" % (stride, padding), lambda w, g, stride=stride, padding=padding, size=size: raw.DepthwiseConv2dNativeBackpropInput(input_sizes=c([2, size, size, 3]), filter=w, out_backprop=g, strides=[1, stride, stride, 1], padding=padding),
         f32(3, 3, 3, 2), f32(2, out, out, 6), const=(0,))
