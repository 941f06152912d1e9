"""Writes small TensorFlow GraphDefs and NumPy arrays byte by byte, so that the tests of the program
need neither TensorFlow nor NumPy. Field numbers after graph.proto, node_def.proto, attr_value.proto
and tensor.proto."""

import pathlib
import struct

FLOAT, DOUBLE, INT32, STRING, INT64 = 1, 2, 3, 7, 9


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """An int as a varint; bytes and str with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape(sizes):
    """A TensorShapeProto; None is an open size."""
    return b"".join(field(2, field(1, -1 if s is None else s)) for s in sizes)


def attr(name, value):
    return field(5, field(1, name) + field(2, value))


def type_attr(name, dtype):
    return attr(name, field(6, dtype))


def node(name, op, inputs=(), *attrs):
    return field(1, field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs) +
                 b"".join(attrs))


def placeholder(name, dtype, sizes):
    return node(name, "Placeholder", (), type_attr("dtype", dtype), attr("shape", field(7, shape(sizes))))


def const(name, dtype, sizes, content):
    tensor = field(1, dtype) + field(2, shape(sizes)) + field(4, content)
    return node(name, "Const", (), type_attr("dtype", dtype), attr("value", field(8, tensor)))


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def graph(*nodes):
    return b"".join(nodes)


def npy(descr, sizes, content):
    """A NumPy file of version 1."""
    text = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        descr, "".join(f"{s}, " for s in sizes))
    text += " " * ((64 - (10 + len(text) + 1) % 64) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + content


def read_npy(path):
    """(descr, shape, values) of a little-endian file of numbers."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length].decode(), {})  # our own file
    code = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B", "<u2": "H"}[header["descr"]]
    body = data[10 + length:]
    count = len(body) // struct.calcsize(code)
    return header["descr"], header["shape"], struct.unpack(f"<{count}{code}", body)
