"""Tensors as bytes: serialized tensors, compressed text, fingerprints, sequences of examples."""
import gzip, zlib
from recorder import *

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 string".split()


def text(items):
    return np.array(items, object)


def proto(x, **fields):
    message = tf.make_tensor_proto(x)
    for name, value in fields.items():
        message.ClearField("tensor_content")
        getattr(message, name).extend(value)
    return message.SerializeToString()


def shaped(dtype, sizes, **fields):
    """A message without a block of bytes."""
    message = tf.compat.v1.TensorProto(dtype=tf.as_dtype(dtype).as_datatype_enum) if hasattr(v1, "TensorProto") else type(tf.make_tensor_proto(0))(dtype=tf.as_dtype(dtype).as_datatype_enum)
    for s in sizes: message.tensor_shape.dim.add(size=s)
    for name, value in fields.items(): getattr(message, name).extend(value)
    return message.SerializeToString()


for d in TYPES:
    x = numbers(d) if d != "string" else text([b"b", b"", b"\xc3\xa4", b"long " * 60])
    case("SerializeTensor_" + d, lambda a: raw.SerializeTensor(tensor=a), x)
    case("ParseTensor_" + d, lambda a, d=d: raw.ParseTensor(serialized=raw.SerializeTensor(tensor=a), out_type=tf.as_dtype(d)), x)
for name, shape in (("scalar", ()), ("empty", (2, 0)), ("deep", (2, 1, 3)), ("many", (40, 2))):
    case("SerializeTensor_" + name, lambda a: raw.SerializeTensor(tensor=a), f32(*shape))
    case("ParseTensor_" + name, lambda a: raw.ParseTensor(serialized=a, out_type=tf.float32), np.array(tf.make_tensor_proto(f32(*shape)).SerializeToString(), object))
case("SerializeTensor_no_strings", lambda a: raw.SerializeTensor(tensor=a), text([]).reshape(0, 3))
for name, d, sizes, fields in (
        ("repeated", "float32", [2, 3], dict(float_val=[1.5, -2])), ("zeros", "float64", [4], {}), ("more", "int32", [2], dict(int_val=[1, -2, 3])), ("bytes", "int8", [3], dict(int_val=[-1, 127])),
        ("truths", "bool", [3], dict(bool_val=[True, False])), ("halves", "float16", [3], dict(half_val=[15360, 49152])), ("brains", "bfloat16", [2], dict(half_val=[16256])), ("large", "uint64", [3], dict(uint64_val=[2 ** 64 - 1, 7])),
        ("u32", "uint32", [2], dict(uint32_val=[2 ** 32 - 1])), ("i64", "int64", [2, 2], dict(int64_val=[-1, 2 ** 62])), ("doubles", "float64", [3], dict(double_val=[0.1])), ("strings", "string", [3], dict(string_val=[b"a", b"bc"])),
        ("no_strings", "string", [2], {}), ("u16", "uint16", [2], dict(int_val=[65535, 1])), ("none", "int32", [0, 5], {})):
    case("ParseTensor_list_" + name, lambda a, d=d: raw.ParseTensor(serialized=a, out_type=tf.as_dtype(d)), np.array(shaped(d, sizes, **fields), object))
GOOD = tf.make_tensor_proto(np.float32([1, 2])).SerializeToString()
case("ParseTensor_type", lambda a: raw.ParseTensor(serialized=a, out_type=tf.int32), np.array(GOOD, object), error=True)
case("ParseTensor_short", lambda a: raw.ParseTensor(serialized=a, out_type=tf.float32), np.array(GOOD[:-3], object), error=True)
case("ParseTensor_nothing", lambda a: raw.ParseTensor(serialized=a, out_type=tf.float32), np.array(b"nothing", object), error=True)
case("ParseTensor_used", lambda a, y: tf.reduce_sum(raw.ParseTensor(serialized=a, out_type=tf.float32) * 2.0) + y, np.array(GOOD, object), f32(3))

PLAIN = [b"", b"short", b"again and again " * 700, bytes(state.rng.integers(0, 256, 3000).astype(np.uint8))]
for name, pack in (("ZLIB", zlib.compress), ("GZIP", lambda b: gzip.compress(b, mtime=0))):
    case("DecodeCompressed_" + name, lambda a, name=name: raw.DecodeCompressed(bytes=a, compression_type=name), text([[pack(PLAIN[1]), pack(PLAIN[2])], [pack(PLAIN[3]), pack(PLAIN[0])]]))
    case("DecodeCompressed_%s_nothing" % name, lambda a, name=name: raw.DecodeCompressed(bytes=a, compression_type=name), text([b"nothing at all"]), error=True)
case("DecodeCompressed_members", lambda a: raw.DecodeCompressed(bytes=a, compression_type="GZIP"), text([gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0)]))
case("DecodeCompressed_none", lambda a: raw.DecodeCompressed(bytes=a), text([b"as it is"]))

for d in TYPES[:-1]: case("Fingerprint_" + d, lambda a: raw.Fingerprint(data=a, method=c("farmhash64")), numbers(d))
case("Fingerprint_strings", lambda a: raw.Fingerprint(data=a, method=c("farmhash64")), text(PLAIN))
case("Fingerprint_matrix", lambda a: raw.Fingerprint(data=a, method=c("farmhash64")), text([[b"a", b"", b"bc"], [b"a" * 100, b"d", b"e"]]))
case("Fingerprint_column", lambda a: raw.Fingerprint(data=a, method=c("farmhash64")), text([[b"a"], [b"bc"]]))
case("Fingerprint_rows", lambda a: raw.Fingerprint(data=a, method=c("farmhash64")), f32(3, 4, 2))
case("Fingerprint_empty", lambda a: raw.Fingerprint(data=a, method=c("farmhash64")), f32(0, 4))
