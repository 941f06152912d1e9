"""The onnx wheel's nine classic nets with weights worth testing. They come with constant weights, with which every class
gets the same score; here each float tensor is drawn from a seed, in a range that keeps activations alive. Tensors
of more than kWhole elements become the product of a column and a row, so that no file grows beyond 110 MB.

An ONNX file is rewritten field by field as protobuf's wire format; nothing of the onnx package is needed."""

import math

import numpy as np

import seeded

WHOLE = 3_000_000
FLOAT = 1  # TensorProto.FLOAT


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data):
    """(number, value) of a message: an int, or bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = number()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, number()
        else:
            size = {1: 8, 5: 4}.get(kind) or number()
            yield tag >> 3, data[at:at + size]
            at += size


def text(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, values):
    """A TensorProto: dims 1, data_type 2, name 8, raw_data 9."""
    dims = b"".join(varint(1 << 3) + varint(d) for d in values.shape)
    return dims + varint(2 << 3) + varint(FLOAT) + text(8, name) + text(9, values.astype("<f4").tobytes())


class Node:
    """A NodeProto: input 1, output 2, op_type 4."""

    def __init__(self, data):
        rows = list(fields(data))
        self.inputs = [v for n, v in rows if n == 1]
        self.outputs = [v for n, v in rows if n == 2]
        self.op = next(v for n, v in rows if n == 4).decode()


def dims_and_type(data):
    dims, kind = [], 0
    for number, value in fields(data):
        if number == 1:  # packed or not
            dims += [value] if isinstance(value, int) else [v for _, v in fields_of_varints(value)]
        elif number == 2:
            kind = value
    return dims, kind


def fields_of_varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield 0, value
            value = shift = 0


def int64_values(data):
    """The elements of a one-dimensional int64 tensor: int64_data 7 or raw_data 9."""
    out = []
    for number, value in fields(data):
        if number == 7:
            out += [value] if isinstance(value, int) else [v for _, v in fields_of_varints(value)]
        elif number == 9:
            out += np.frombuffer(value, "<i8").tolist()
    return out


def spread(role, position, shape):
    """The range to draw from, by what reads the tensor."""
    if role in ("Conv", "Gemm") and position == 1:
        bound = math.sqrt(4.5 / math.prod(shape[1:]))
        return -bound, bound
    if role == "BatchNormalization":
        return (0.4, 1.2) if position == 1 else (0.6, 1.4) if position == 4 else (-0.2, 0.2)
    return (0.5, 1.5) if role == "Mul" else (-0.1, 0.1)


def with_weights(data, seed):
    """The bytes of the model with seeded weights."""
    model = list(fields(data))
    graph = list(fields(next(v for n, v in model if n == 7)))
    nodes = [(Node(v), v) for n, v in graph if n == 1]
    initializers = {dict(fields(v))[8]: v for n, v in graph if n == 5}

    readers = {}
    for node, _ in nodes:
        for position, name in enumerate(node.inputs):
            readers.setdefault(name, (node, position))

    def role(name):
        node, position = readers.get(name, (None, 0))
        if node is None:
            return None, 0
        return role(node.outputs[0]) if node.op == "Unsqueeze" else (node.op, position)

    first, tensors = [], []

    def draw(name, shape):
        reader, position = role(name)
        if reader is None:
            return False
        low, high = spread(reader, position, shape)
        draws = seed * 4096 + len(tensors)
        if math.prod(shape) <= WHOLE:
            tensors.append(tensor(name, seeded.uniform(draws, shape, low, high)))
        else:
            tensors.append(tensor(name + b"/column", seeded.uniform(draws, [shape[0], 1], 0.5, 1.5)))
            tensors.append(tensor(name + b"/row", seeded.uniform(draws + 1, [1, *shape[1:]], low, high)))
            first.append(text(1, name + b"/column") + text(1, name + b"/row") + text(2, name) + text(4, b"Mul"))
        return True

    kept = []
    for node, raw in nodes:
        made = node.op == "ConstantOfShape" and draw(node.outputs[0], int64_values(initializers[node.inputs[0]]))
        if not made:
            kept.append(raw)
    for name, raw in initializers.items():
        shape, kind = dims_and_type(raw)
        if kind != FLOAT or not draw(name, shape):
            tensors.append(raw)
    out = b"".join(text(1, n) for n in first + kept) + b"".join(text(5, t) for t in tensors)
    drawn_inputs = set(initializers)
    for number, value in graph:
        if number in (1, 5):
            continue
        # Old files list initializers among the inputs too, which would make them inputs with a default.
        if number == 11 and dict(fields(value))[1] in drawn_inputs:
            continue
        out += text(number, value) if isinstance(value, bytes) else varint(number << 3) + varint(value)
    # Without weights among the inputs the file has the rules of IR version 4.
    rest = b"".join(text(n, v) if isinstance(v, bytes) else varint(n << 3) + varint(max(v, 4) if n == 1 else v)
                    for n, v in model if n != 7)
    return rest + text(7, out)
