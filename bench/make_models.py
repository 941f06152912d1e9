#!/usr/bin/env python3
"""Writes the four nets of bench/peers as ONNX, with seeded random weights: for speed, not for answers.

  make_models.py FOLDER      (needs the packages onnx and numpy)

ResNet-50 v1.5, MobileNetV2 and EfficientNet-B0 for 224x224 pictures, and a MiniLM-L6 encoder (6 layers, width
384, 12 heads) over 128 embeddings. Shapes follow the papers; batch norms are folded, as deployed models have them."""
import os, sys
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


class Net:
    """Nodes and weights in the order in which they are written down."""

    def __init__(self, opset=17):
        self.nodes, self.weights, self.rng, self.opset = [], [], np.random.default_rng(0), opset

    def weight(self, values):
        name = "w%d" % len(self.weights)
        self.weights.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def normal(self, *shape, spread):
        return self.weight((self.rng.standard_normal(shape) * spread).astype(np.float32))

    def op(self, kind, *inputs, **attributes):
        name = "%s_%d" % (kind, len(self.nodes))
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def save(self, path, shape, output):
        value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        graph = helper.make_graph(self.nodes, "net", [value("x", shape)], [value(output, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        save(model, path)

    def conv(self, x, inputs, outputs, kernel, stride=1, groups=1):
        fan = inputs // groups * kernel * kernel
        w = self.normal(outputs, inputs // groups, kernel, kernel, spread=(1.4 / fan) ** 0.5)
        b = self.normal(outputs, spread=0.1)
        return self.op("Conv", x, w, b, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups)

    def dense(self, x, inputs, outputs):
        w = self.normal(inputs, outputs, spread=inputs ** -0.5)
        return self.op("Add", self.op("MatMul", x, w), self.normal(outputs, spread=0.1))

    def head(self, x, channels):
        x = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.op("Softmax", self.dense(x, channels, 1000))


def resnet50(path):
    n = Net()
    y = n.op("Relu", n.conv("x", 3, 64, 7, 2))
    y = n.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for width, blocks, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for block in range(blocks):
            s, shortcut = (stride, n.conv(y, channels, 4 * width, 1, stride)) if block == 0 else (1, y)
            t = n.op("Relu", n.conv(y, channels, width, 1))
            t = n.op("Relu", n.conv(t, width, width, 3, s))
            y = n.op("Relu", n.op("Add", n.conv(t, width, 4 * width, 1), shortcut))
            channels = 4 * width
    n.save(path, [1, 3, 224, 224], n.head(y, channels))


def mobilenet_v2(path):
    n = Net()
    low, high = n.weight(np.float32(0)), n.weight(np.float32(6))
    act = lambda y: n.op("Clip", y, low, high)
    y, channels = act(n.conv("x", 3, 32, 3, 2)), 32
    for expand, width, blocks, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                          (6, 160, 3, 2), (6, 320, 1, 1)]:
        for block in range(blocks):
            s, inner, t = stride if block == 0 else 1, channels * expand, y
            if expand > 1: t = act(n.conv(t, channels, inner, 1))
            t = n.conv(act(n.conv(t, inner, inner, 3, s, inner)), inner, width, 1)
            y = n.op("Add", t, y) if s == 1 and channels == width else t
            channels = width
    y = act(n.conv(y, channels, 1280, 1))
    n.save(path, [1, 3, 224, 224], n.head(y, 1280))


def efficientnet_b0(path):
    n = Net()
    act = lambda y: n.op("Mul", y, n.op("Sigmoid", y))
    y, channels = act(n.conv("x", 3, 32, 3, 2)), 32
    for expand, width, blocks, stride, kernel in [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
                                                  (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]:
        for block in range(blocks):
            s, inner, t = stride if block == 0 else 1, channels * expand, y
            if expand > 1: t = act(n.conv(t, channels, inner, 1))
            t = act(n.conv(t, inner, inner, kernel, s, inner))
            gate = act(n.conv(n.op("GlobalAveragePool", t), inner, channels // 4, 1))
            t = n.op("Mul", t, n.op("Sigmoid", n.conv(gate, channels // 4, inner, 1)))
            t = n.conv(t, inner, width, 1)
            y = n.op("Add", t, y) if s == 1 and channels == width else t
            channels = width
    y = act(n.conv(y, channels, 1280, 1))
    n.save(path, [1, 3, 224, 224], n.head(y, 1280))


def minilm(path, length=128, width=384, layers=6, heads=12, inner=1536):
    n = Net()
    split = n.weight(np.array([1, length, heads, width // heads], np.int64))
    joined = n.weight(np.array([1, length, width], np.int64))
    number = lambda v: n.weight(np.float32(v))
    norm = lambda y: n.op("LayerNormalization", y, n.weight(np.ones(width, np.float32)), n.weight(np.zeros(width, np.float32)),
                          axis=-1, epsilon=1e-12)
    y = "x"
    for _ in range(layers):
        q, k, v = (n.op("Transpose", n.op("Reshape", n.dense(y, width, width), split), perm=p)
                   for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = n.op("Softmax", n.op("Div", n.op("MatMul", q, k), number((width // heads) ** 0.5)), axis=-1)
        mixed = n.op("Reshape", n.op("Transpose", n.op("MatMul", scores, v), perm=[0, 2, 1, 3]), joined)
        y = norm(n.op("Add", n.dense(mixed, width, width), y))
        t = n.dense(y, width, inner)
        erf = n.op("Add", n.op("Erf", n.op("Div", t, number(2 ** 0.5))), number(1))
        t = n.op("Mul", n.op("Mul", t, erf), number(0.5))
        y = norm(n.op("Add", n.dense(t, inner, width), y))
    n.save(path, [1, length, width], y)


if __name__ == "__main__":
    if len(sys.argv) != 2: sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for make in (resnet50, mobilenet_v2, efficientnet_b0, minilm): make(os.path.join(sys.argv[1], make.__name__ + ".onnx"))
