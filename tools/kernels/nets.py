"""Nets as ONNX files with sizes and almost no numbers, which is all that planning needs. Large weights lie in a sparse
file of zeros beside the model. Each tensor has a distinct first number, so that no two are taken for copies. ONNX is
written in protobuf's wire format, with Python's standard library only."""

import math
import os
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import architectures  # noqa: E402  (beside the bench's other files)

FLOAT, UINT8, INT8, INT32, INT64, FLOAT16 = 1, 2, 3, 6, 7, 10  # TensorProto's types
PACKED = {FLOAT: "f", FLOAT16: "e", INT8: "b"}  # their letters in struct
SMALL = 4096  # elements that are written into the model itself
PAGE = 4096


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    """An AttributeProto: a whole number, a real one, a text, or a list of whole numbers."""
    if isinstance(value, list):
        kind, data = 7, b"".join(number(8, v) for v in value)
    elif isinstance(value, float):
        kind, data = 1, varint(2 << 3 | 5) + struct.pack("<f", value)
    elif isinstance(value, str):
        kind, data = 3, message(4, value)
    else:
        kind, data = 2, number(3, value)
    return message(1, name) + data + number(20, kind)


def value_info(name, kind, shape):
    dims = b"".join(message(1, number(1, d)) for d in shape)
    return message(1, name) + message(2, message(1, number(1, kind) + message(2, dims)))


class Net(architectures.Builder):
    """`shared`: weights of one shape and use are one tensor, so that all layers of a decoder take the space of one.
    `real`: the type of all numbers that are not whole."""

    def __init__(self, opset=17, shared=False, real=FLOAT):
        self.nodes, self.tensors, self.inputs, self.large = [], [], [], []
        self.count, self.opset, self.shared, self.end, self.known = 0, opset, shared, 0, {}
        self.real = real

    def constant(self, kind, shape, data=None):
        """A tensor of these bytes, or one in the sparse file."""
        name = f"w{self.count}"
        self.count += 1
        out = b"".join(number(1, d) for d in shape) + number(2, kind) + message(8, name)
        if data is not None:
            out += message(9, data)
        else:
            size = struct.calcsize(PACKED[kind]) * math.prod(shape)
            for key, value in (("location", self.file), ("offset", self.end), ("length", size)):
                out += message(13, message(1, key) + message(2, str(value)))
            out += number(14, 1)
            self.large.append((self.end, struct.pack("<i", self.count) if kind == INT8 else self.packed(1e-3 * (self.count % 997 + 1))))
            self.end += -(-size // PAGE) * PAGE
        self.tensors.append(out)
        return name

    def packed(self, *values):
        return struct.pack(f"<{len(values)}{PACKED[self.real]}", *values)

    file = "weights.bin"

    def normal(self, *shape, spread, use=None):
        if self.shared and (shape, use) in self.known:
            return self.known[shape, use]
        count = math.prod(shape)
        data = None
        if count <= SMALL:
            values = (spread * ((i * 7 + self.count) % 11 - 5.5) / 3 for i in range(count))
            data = self.packed(*values)
        name = self.known[shape, use] = self.constant(self.real, shape, data)
        return name

    def ints(self, values):
        return self.constant(INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))

    def number(self, value):
        return self.constant(self.real, [], self.packed(value))

    def full(self, value, size):
        return self.constant(self.real, [size], self.packed(value) * size)

    def input(self, name, shape, kind=None):
        self.inputs.append(value_info(name, kind or self.real, shape))
        return name

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [f"{kind}_{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(outputs)]
        out = b"".join(message(1, i) for i in inputs) + b"".join(message(2, o) for o in names)
        out += message(3, names[0]) + message(4, kind)
        out += b"".join(message(5, attribute(a, v)) for a, v in attributes.items())
        self.nodes.append(out + (message(7, domain) if domain else b""))
        return names[0] if outputs == 1 else names

    def save(self, folder, *outputs):
        """FOLDER/model.onnx and its weights; returns the model's path."""
        os.makedirs(folder, exist_ok=True)
        graph = b"".join(message(1, n) for n in self.nodes) + message(2, "net")
        graph += b"".join(message(5, t) for t in self.tensors)
        graph += b"".join(message(11, i) for i in self.inputs)
        graph += b"".join(message(12, message(1, o) + message(2, message(1, number(1, self.real)))) for o in outputs)
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(number(1, 8) + message(8, message(1, "") + number(2, self.opset)) + message(7, graph))
        with open(os.path.join(folder, self.file), "wb") as file:
            file.truncate(self.end)
            for at, value in self.large:
                file.seek(at)
                file.write(value)
        return path


class QuantisedNet(Net):
    """In bytes, as ONNX Runtime's tools quantise a net of pictures: u8 activations, s8 weights per output channel, and
    QuantizeLinear and DequantizeLinear around each op that has a form in integers."""

    QUANTISED = ("Conv", "Add", "MaxPool", "GlobalAveragePool", "MatMul")
    STEP, ZERO = 0.05, 114  # of all activations

    def __init__(self):
        super().__init__()
        self.bytes = {}  # values that were quantised and back, by what they were before
        self.plain = set()  # operands that stay as they are

    def in_bytes(self, x):
        if x in self.plain:
            return x
        if x not in self.bytes:
            step, zero = self.number(self.STEP), self.constant(UINT8, [], bytes([self.ZERO]))
            q = super().op("QuantizeLinear", x, step, zero)
            self.bytes[x] = super().op("DequantizeLinear", q, step, zero)
        return self.bytes[x]

    def kept(self, value):
        self.plain.add(value)
        return value

    def weights(self, *shape, axis):
        channels, count = shape[axis], math.prod(shape)
        data = None if count > SMALL else bytes((i * 7 + self.count) % 251 for i in range(count))
        steps, zeros = self.full(0.01, channels), self.constant(INT8, [channels], bytes(channels))
        return self.kept(super().op("DequantizeLinear", self.constant(INT8, shape, data), steps, zeros, axis=axis))

    def bias(self, channels):
        values = self.constant(INT32, [channels], struct.pack("<i", self.count) * channels)
        steps, zeros = self.full(0.01 * self.STEP, channels), self.constant(INT32, [channels], bytes(4 * channels))
        return self.kept(super().op("DequantizeLinear", values, steps, zeros, axis=0))

    def conv(self, x, inputs, outputs, kernel, stride=1, groups=1):
        w = self.weights(outputs, inputs // groups, kernel, kernel, axis=0)
        return self.op("Conv", x, w, self.bias(outputs), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                       pads=[kernel // 2] * 4, group=groups)

    def dense(self, x, inputs, outputs):
        product = self.op("MatMul", x, self.weights(inputs, outputs, axis=1))
        return self.op("Add", self.kept(product), self.kept(self.normal(outputs, spread=0.1)))

    def op(self, kind, *inputs, **attributes):
        if kind in self.QUANTISED:
            inputs = [self.in_bytes(x) for x in inputs]
        return super().op(kind, *inputs, **attributes)


def pictures(make, batch, real=FLOAT, quantised=False):
    def build():
        net = QuantisedNet() if quantised else Net(real=real)
        net.input("x", [batch, 3, 224, 224])
        return net, [make(net)]
    return build


def encoder(real=FLOAT, **sizes):
    def build():
        net = Net(real=real)
        net.input("x", [1, sizes["length"], sizes["width"]])
        return net, [architectures.encoder(net, **sizes)]
    return build


def product(size, real=FLOAT):
    def build():
        net = Net(real=real)
        net.input("x", [size, size])
        return net, [net.op("MatMul", "x", net.normal(size, size, spread=0.1))]
    return build


def decoder(tokens, past, width=576, layers=30, heads=9, kv_heads=3, inner=1536, words=49152):
    """A decoder of 135 million parameters as LLaMA's: `tokens` new ones behind `past` in the cache."""
    def build(shared=True):
        net, size = Net(opset=23, shared=shared), width // heads
        ids = net.input("ids", [1, tokens], INT64)
        angles = [net.normal(tokens, size // 2, spread=1.0, use=use) for use in ("cos", "sin")]
        unsqueeze = [net.op("Unsqueeze", a, net.ints([0])) for a in angles]
        ones = net.full(1, width)
        norm = lambda y: net.op("RMSNormalization", y, ones, axis=-1, epsilon=1e-5)
        dense = lambda y, i, o, use: net.op("MatMul", y, net.normal(i, o, spread=i ** -0.5, use=use))
        table = net.normal(words, width, spread=0.1, use="words")
        y, kept = net.op("Gather", table, ids), []
        for layer in range(layers):
            t = norm(y)
            q, k, v = (dense(t, width, size * h, use) for h, use in ((heads, "q"), (kv_heads, "k"), (kv_heads, "v")))
            q, k = (net.op("RotaryEmbedding", a, *unsqueeze, num_heads=h) for a, h in ((q, heads), (k, kv_heads)))
            cache = [net.input(f"{part}{layer}", [1, kv_heads, past, size]) for part in "kv"] if past else []
            mixed, *present = net.op("Attention", q, k, v, *(["", *cache] if past else []), outputs=3,
                                     q_num_heads=heads, kv_num_heads=kv_heads, is_causal=1)
            kept += present
            y = net.op("Add", y, dense(mixed, size * heads, width, "o"))
            t = norm(y)
            gate = dense(t, width, inner, "gate")
            t = net.op("Mul", net.op("Mul", gate, net.op("Sigmoid", gate)), dense(t, width, inner, "up"))
            y = net.op("Add", y, dense(t, inner, width, "down"))
        last = net.op("Slice", norm(y), net.ints([tokens - 1]), net.ints([tokens]), net.ints([1]))
        return net, [net.op("MatMul", last, net.normal(width, words, spread=0.1, use="head")), *kept]
    return build


NETS = {
    "resnet50_b1": pictures(architectures.resnet50, 1),
    "resnet50_b8": pictures(architectures.resnet50, 8),
    "resnet50_b64": pictures(architectures.resnet50, 64),
    "mobilenet_v2": pictures(architectures.mobilenet_v2, 1),
    "efficientnet_b0": pictures(architectures.efficientnet_b0, 1),
    "minilm_s128": encoder(length=128, width=384, layers=6, heads=12, inner=1536),
    "bert_base_s128": encoder(length=128, width=768, layers=12, heads=12, inner=3072),
    "gemm_512": product(512),
    "gemm_1024": product(1024),
    "gemm_2048": product(2048),
    "gemm_4096": product(4096),
    "gemm_4096_f16": product(4096, real=FLOAT16),
    "resnet50_b1_f16": pictures(architectures.resnet50, 1, real=FLOAT16),
    "resnet50_b64_f16": pictures(architectures.resnet50, 64, real=FLOAT16),
    "bert_base_s128_f16": encoder(length=128, width=768, layers=12, heads=12, inner=3072, real=FLOAT16),
    "decoder_prefill_128": decoder(128, 0),
    "decoder_decode_256": decoder(1, 256),
}


# Looked at by name only: of AMD's and Intel's kernels, the model does not count the multiply-adds of integers.
NETS_OF_BYTES = {
    "resnet50_b1_int8": pictures(architectures.resnet50, 1, quantised=True),
    "resnet50_b64_int8": pictures(architectures.resnet50, 64, quantised=True),
    "mobilenet_v2_int8": pictures(architectures.mobilenet_v2, 1, quantised=True),
}


def write(name, folder, shared=True):
    """The net's files below `folder`; returns the model's path. Where it is timed, the layers of a decoder must not share
    their weights, which would stay in a cache."""
    build = (NETS | NETS_OF_BYTES)[name]
    net, outputs = build() if shared or not name.startswith("decoder") else build(shared=False)
    return net.save(os.path.join(folder, name), *outputs)
