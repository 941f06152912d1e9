"""Matrices of complex numbers: products, decompositions and functions, and what selects, repeats, compares and turns complex tensors."""
from recorder import *


def C(real, imaginary): return raw.Complex(real=real, imag=imaginary, Tout=tf.complex64 if real.dtype == tf.float32 else tf.complex128)


def parts(*tensors):
    return [part(input=z, Tout=tf.float32 if z.dtype == tf.complex64 else tf.float64) for z in tensors for part in (raw.Real, raw.Imag)]


def both(name, build, shape, eye=0, **kw):
    """For both types; the sizes of the matrices, which are no near singular ones."""
    for d in ("float32", "float64"):
        x, y = f32(*shape).astype(d), f32(*shape).astype(d)
        if eye: x = x + eye * np.eye(shape[-1], dtype=d)
        case("%s_%s" % (name, d), lambda a, b: build(C(a, b)), x, y, **kw)


for name, shape in (("tall", (2, 5, 3)), ("wide", (3, 5)), ("one", (1, 1)), ("none", (0, 3, 2)), ("empty", (2, 0, 3))):
    for full in (False, True):
        both("Qr_%s_%d" % (name, full), lambda z, full=full: parts(*raw.Qr(input=z, full_matrices=full)), shape)
        if name == "empty": continue

        # The vectors of a singular value are told apart by nothing but a phase, so products of them are compared.
        def svd(z, full=full):
            s, u, v = raw.Svd(input=z, full_matrices=full)
            k = min(shape[-2:])
            scaled = raw.Mul(x=u[..., :k], y=raw.ExpandDims(input=s, axis=c(-2)))
            # Beside the zeros of what is orthogonal, rounding would be all.
            away = lambda z: raw.AddV2(x=z, y=tf.constant(1 + 1j, z.dtype))
            return parts(s, raw.BatchMatMulV2(x=scaled, y=v[..., :k], adj_y=True), away(raw.BatchMatMulV2(x=u, y=u, adj_x=True)), away(raw.BatchMatMulV2(x=v, y=v, adj_x=True)))
        both("Svd_%s_%d" % (name, full), svd, shape)
    both("Svd_values_" + name, lambda z: parts(raw.Svd(input=z, compute_uv=False)[0]), shape)
for name, shape in (("two", (2, 4, 4)), ("large", (9, 9)), ("one", (1, 1)), ("none", (0, 2, 2)), ("empty", (2, 0, 0))):
    def eigen(z):
        e, v = raw.SelfAdjointEigV2(input=z)
        return parts(e, raw.BatchMatMulV2(x=raw.Mul(x=v, y=raw.ExpandDims(input=e, axis=c(-2))), y=v, adj_y=True))
    both("SelfAdjointEigV2_" + name, lambda z: eigen(raw.Add(x=z, y=raw.ConjugateTranspose(x=z, perm=c([0, 2, 1] if len(shape) == 3 else [1, 0])))), shape)
    both("SelfAdjointEigV2_values_" + name, lambda z: parts(raw.SelfAdjointEigV2(input=z, compute_v=False)[0]), shape)
    both("Lu_" + name, lambda z: (lambda a, b: [*parts(a[0]), a[1], *parts(b[0]), b[1]])(raw.Lu(input=z), raw.Lu(input=z, output_idx_type=tf.int64)), shape)
    both("MatrixInverse_" + name, lambda z: parts(raw.MatrixInverse(input=z), raw.MatrixInverse(input=z, adjoint=True)), shape, 3)
    both("MatrixSquareRoot_" + name, lambda z: parts(raw.MatrixSquareRoot(input=z)), shape, 3)
    both("MatrixDeterminant_" + name, lambda z: parts(raw.MatrixDeterminant(input=z), *raw.LogMatrixDeterminant(input=z)), shape)
zeros = np.zeros((2, 2), np.float32)
case("MatrixDeterminant_zeros", lambda a, b: parts(raw.MatrixDeterminant(input=C(a, b))), zeros, zeros)
case("MatrixInverse_zeros", lambda a, b: parts(raw.MatrixInverse(input=C(a, b))), zeros, zeros, error=True)
case("Lu_zeros", lambda a, b: parts(raw.Lu(input=C(a, b))[0]), zeros, zeros, error=True)
case("Lu_rectangle", lambda a, b: parts(raw.Lu(input=C(a, b))[0]), f32(2, 3), f32(2, 3), error=True)

A, B = f32(3, 4), f32(3, 4)
for x in (False, True):
    for y in (False, True):
        both("MatMul_%d%d" % (x, y), lambda z, x=x, y=y: parts(raw.MatMul(a=z, b=z * 2, transpose_a=x, transpose_b=y)), (4, 4))
        for op in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
            if op != "BatchMatMulV2" and x != y: continue
            both("%s_%d%d" % (op, x, y), lambda z, x=x, y=y, op=op: parts(getattr(raw, op)(x=z, y=z * 2, adj_x=x, adj_y=y, **({"Tout": z.dtype} if op == "BatchMatMulV3" else {}))), (2, 3, 3))
case("BatchMatMulV2_batches", lambda a, b: parts(raw.BatchMatMulV2(x=C(a, b), y=C(b, a), adj_y=True)), f32(2, 1, 3, 4), f32(2, 1, 3, 4))
for axis in (0, 1, -1):
    case("GatherV2_%s" % str(axis).replace("-", "m"), lambda a, b, axis=axis: parts(raw.GatherV2(params=C(a, b), indices=c([[2, 0], [1, 1]]), axis=c(axis))), A, B)
case("GatherV2_batch", lambda a, b, i: parts(raw.GatherV2(params=C(a, b), indices=i, axis=c(1), batch_dims=1), raw.GatherV2(params=C(a, b), indices=i, axis=c(-1), batch_dims=-1)), A, B, np.array([[1, 0], [3, 3], [2, 0]], np.int32))
case("Gather", lambda a, b, i: parts(raw.Gather(params=C(a, b), indices=i)), A, B, np.array([2, 0], np.int32))
case("GatherV2_beyond", lambda a, b, i: parts(raw.GatherV2(params=C(a, b), indices=i, axis=c(0))), A, B, np.array([3], np.int32), error=True)
case("SelectV2", lambda a, b, k: parts(raw.SelectV2(condition=k, t=C(a, b), e=C(b, a))), A, B, boolean(3, 4))
case("SelectV2_wide", lambda a, b, k: parts(raw.SelectV2(condition=k, t=C(a, b), e=C(b, a)[:, :1])), A, B, boolean(2, 1, 4))
case("Tile", lambda a, b, n: parts(raw.Tile(input=C(a, b), multiples=n), raw.Tile(input=C(a, b), multiples=c([1, 0], tf.int64))), A, B, np.array([2, 3], np.int32))
case("Equal_complex", lambda a, b: [raw.Equal(x=C(a, b), y=C(a, b)), raw.NotEqual(x=C(a, b), y=C(b, b)), raw.Equal(x=C(a, b), y=C(b, b)[:1]), raw.NotEqual(x=C(a, b), y=C(b, a)[0])], np.float32([[1, np.nan, -0.0], [0, 2, np.inf]]), np.float32([[1, 2, 0], [0, -2, np.inf]]))
case("Equal_shapes", lambda a, b: [raw.Equal(x=C(a, b), y=C(a, b)[:, :2], incompatible_shape_error=False), raw.NotEqual(x=C(a, b), y=C(a, b)[:, :2], incompatible_shape_error=False)], A, B, sized=True)
case("Equal_refused", lambda a, b: raw.Equal(x=C(a, b), y=C(a, b)[:, :2]), A, B, error=True)
points = np.array([0, 1, -1, 4, -4, 1e-20, -1e-20, 3, -3, 1e18, -1e18, 0.5], np.float32)
for d in ("float32", "float64"):
    x, y = (m.ravel().astype(d) for m in np.meshgrid(points, points))
    case("Sqrt_complex_" + d, lambda a, b: parts(raw.Sqrt(x=C(a, b))), x, y)
case("Sqrt_complex_edges", lambda a, b: parts(raw.Sqrt(x=C(a, b))), np.float32([np.inf, -np.inf, 1, -4, 0]), np.float32([1, 1, np.inf, 0.0, -np.inf]))
for op in ("Transpose", "ConjugateTranspose"):
    case(op + "_complex", lambda a, b, op=op: parts(getattr(raw, op)(x=C(a, b), perm=c([2, 0, 1]))), f32(2, 3, 4), f32(2, 3, 4))
    case(op + "_complex_fed", lambda a, b, p, op=op: parts(getattr(raw, op)(x=C(a, b), perm=p)), f32(2, 3, 4), f32(2, 3, 4), np.array([2, 0, 1], np.int32))
