"""Exponentials and logarithms of matrices. TensorFlow has the kernel of MatrixExponential for graphs of its first versions alone, and so this one is."""
from recorder import *


def old_op(op, x):
    """A node of an op that newer graphs may not have."""
    graph = v1.GraphDef()
    graph.versions.producer = 21
    given = graph.node.add(op="Placeholder", name="given")
    given.attr["dtype"].type = x.dtype.as_datatype_enum
    node = graph.node.add(op=op, name="old", input=["given"])
    node.attr["T"].type = x.dtype.as_datatype_enum
    return tf.import_graph_def(graph, {"given": x}, ["old:0"], name="from")[0]


def C(real, imaginary): return raw.Complex(real=real, imag=imaginary, Tout=tf.complex64 if real.dtype == tf.float32 else tf.complex128)


def parts(z):
    wide = tf.float32 if z.dtype == tf.complex64 else tf.float64
    return [part(input=z, Tout=wide) for part in (raw.Real, raw.Imag)]


near = lambda *shape: f32(*shape, lo=-0.5, hi=0.5) + 2 * np.eye(shape[-1], dtype=np.float32)
MATRICES = {"": f32(2, 4, 4), "_near": near(3, 3), "_one": f32(1, 1), "_turn": np.float32([[0, -1], [1, 0]]), "_triangle": np.float32([[1, 2, 3], [0, 2, 1], [0, 0, 0.5]]), "_large": near(11, 11), "_many": f32(2, 3, 2, 2),
            "_empty": f32(2, 0, 0)}
for name, x in MATRICES.items():
    for d in (np.float32, np.float64):
        key = name + ("_f64" if d == np.float64 else "")
        case("MatrixExponential" + key, lambda a: old_op("MatrixExponential", a), x.astype(d))
        y = f32(*x.shape, lo=-0.4, hi=0.4).astype(d)
        case("MatrixExponential_complex" + key, lambda a, b: parts(old_op("MatrixExponential", C(a, b))), x.astype(d), y)
        z = x if name != "" and name != "_many" and name != "_one" else x + 3 * np.eye(x.shape[-1], dtype=np.float32)
        if name == "_large" and d == np.float32: continue  # whose logarithm has not so many digits there
        case("MatrixLogarithm" + key, lambda a, b: parts(raw.MatrixLogarithm(input=C(a, b))), z.astype(d), y)
case("MatrixExponential_large_numbers", lambda a: old_op("MatrixExponential", a), np.float64([[40, 3], [-2, 10]]))
case("MatrixExponential_infinite", lambda a: old_op("MatrixExponential", a), np.float32([[[np.inf, 1], [0, 1]], [[1, 0], [0, 2]]]))
case("MatrixExponential_rectangle", lambda a: old_op("MatrixExponential", a), f32(2, 3), error=True)
case("MatrixLogarithm_negative", lambda a, b: parts(raw.MatrixLogarithm(input=C(a, b))), np.float32([[-1, 0], [0, 4]]), np.zeros((2, 2), np.float32))
case("MatrixLogarithm_zeros", lambda a, b: parts(raw.MatrixLogarithm(input=C(a, b))), np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32))
case("MatrixLogarithm_nan", lambda a, b: parts(raw.MatrixLogarithm(input=C(a, b))), np.float32([[np.nan, 0], [0, 4]]), np.zeros((2, 2), np.float32))
case("MatrixLogarithm_rectangle", lambda a, b: parts(raw.MatrixLogarithm(input=C(a, b))), f32(2, 3), f32(2, 3), error=True)
