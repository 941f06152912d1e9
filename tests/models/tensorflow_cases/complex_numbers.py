"""Complex constants, and what moves and sums complex tensors. Their arithmetic and Fourier transforms are in fourier.py."""
from recorder import *


def C(real, imaginary): return raw.Complex(real=real, imag=imaginary)


def parts(*tensors): return [part(input=z) for z in tensors for part in (raw.Real, raw.Imag)]


A, B = f32(3, 4), f32(3, 4)
for d in ("complex64", "complex128"):
    wide = tf.float64 if d == "complex128" else tf.float32
    real, imaginary = (lambda z: raw.Real(input=z, Tout=wide)), (lambda z: raw.Imag(input=z, Tout=wide))
    values = np.array([[1 + 2j, -1j, 0.5], [3, np.nan, -np.inf]], d)
    # TensorFlow lists constants of few values, repeats the last of equal ones, and writes others as bytes.
    for key, value in (("bytes", values), ("scalar", values[0, 0]), ("equal", np.full([2, 5], 2 - 3j, d)), ("none", np.zeros([0, 2], d))):
        case("Const_%s_%s" % (d, key), lambda a, value=value: [real(tf.constant(value)) + a, imaginary(tf.constant(value)) + a], np.asarray(0, wide.as_numpy_dtype))
def listed(a):
    proto = tf.make_tensor_proto(np.array([1 + 2j, 3 + 4j, 3 + 4j, 3 + 4j], np.complex64))
    proto.ClearField("tensor_content")
    proto.ClearField("scomplex_val")
    proto.scomplex_val.extend([1, 2, 3, 4])
    value = tf.Graph.create_op(v1.get_default_graph(), "Const", [], [tf.complex64], attrs={"value": v1.AttrValue(tensor=proto), "dtype": v1.AttrValue(type=tf.complex64.as_datatype_enum)}).outputs[0]
    return [raw.Real(input=value) + a, raw.Imag(input=value) + a]
case("Const_list", listed, np.float32(0))
for axis in (0, 1, -1, 2):
    case("Pack_complex_%s" % str(axis).replace("-", "m"), lambda a, b, axis=axis: parts(raw.Pack(values=[C(a, b), C(b, a)], axis=axis)), A, B)
case("Unpack_complex", lambda a, b: parts(*raw.Unpack(value=C(tf.reshape(a, [3, 4]), tf.reshape(b, [3, 4])), num=4, axis=-1), *raw.Unpack(value=C(tf.reshape(a, [3, 4]), tf.reshape(b, [3, 4])), num=3)), A, B)
case("Squeeze_complex", lambda a, b: parts(raw.Squeeze(input=C(a, b)), raw.Squeeze(input=C(a, b), axis=[-1]), raw.Squeeze(input=C(a, b), axis=[0, 2])), f32(1, 3, 1), f32(1, 3, 1))
for op in ("Sum", "Mean"):
    case(op + "_complex", lambda a, b, op=op: parts(getattr(raw, op)(input=C(a, b), axis=c([-1])), getattr(raw, op)(input=C(a, b), axis=c([0, 1]), keep_dims=True), getattr(raw, op)(input=C(a, b), axis=c([], tf.int32))), A, B)
case("ZerosLike_complex", lambda a, b: parts(raw.ZerosLike(x=C(a, b))), A, B)
