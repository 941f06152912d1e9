"""The graphs of the nets that the bench and tools/kernel_report look at, over a builder that says how weights are
kept: with numbers in them (bench/make_models.py), or as sizes alone (tools/kernels/nets.py).

Shapes follow the papers; batch norms are folded, as deployed models have them. Each function returns the output's name."""


class Builder:
    """What a net needs. A subclass has normal(*shape, spread), ints(values), number(value), full(value, size), each
    of which returns a constant's name, and op(kind, *inputs, **attributes), which returns the node's output."""

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


def resnet50(n):
    """v1.5, of pictures [n, 3, 224, 224]."""
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
    return n.head(y, channels)


def mobilenet_v2(n):
    low, high = n.number(0), n.number(6)
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
    return n.head(act(n.conv(y, channels, 1280, 1)), 1280)


def efficientnet_b0(n):
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
    return n.head(act(n.conv(y, channels, 1280, 1)), 1280)


def encoder(n, length=128, width=384, layers=6, heads=12, inner=1536):
    """A BERT without its embedding, of one sequence [1, length, width]; MiniLM-L6 by default."""
    split = n.ints([1, length, heads, width // heads])
    joined = n.ints([1, length, width])
    norm = lambda y: n.op("LayerNormalization", y, n.full(1, width), n.full(0, width), axis=-1, epsilon=1e-12)
    y = "x"
    for _ in range(layers):
        q, k, v = (n.op("Transpose", n.op("Reshape", n.dense(y, width, width), split), perm=p)
                   for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = n.op("Softmax", n.op("Div", n.op("MatMul", q, k), n.number((width // heads) ** 0.5)), axis=-1)
        mixed = n.op("Reshape", n.op("Transpose", n.op("MatMul", scores, v), perm=[0, 2, 1, 3]), joined)
        y = norm(n.op("Add", n.dense(mixed, width, width), y))
        t = n.dense(y, width, inner)
        erf = n.op("Add", n.op("Erf", n.op("Div", t, n.number(2 ** 0.5))), n.number(1))
        t = n.op("Mul", n.op("Mul", t, erf), n.number(0.5))
        y = norm(n.op("Add", n.dense(t, inner, width), y))
    return y
