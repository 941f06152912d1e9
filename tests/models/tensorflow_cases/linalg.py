"""Linear algebra and diagonals."""
from recorder import *

case("Cross", lambda a, b: raw.Cross(a=a, b=b), f32(4, 3), f32(4, 3))
case("Cross_i32", lambda a, b: raw.Cross(a=a, b=b), i32(2, 2, 3), i32(2, 2, 3))
A = f32(2, 4, 4) + 3 * np.eye(4, dtype=np.float32)
for adjoint in (False, True):
    case("MatrixInverse_%d" % adjoint, lambda a, k=adjoint: raw.MatrixInverse(input=a, adjoint=k), A)
    case("MatrixSolve_%d" % adjoint, lambda a, b, k=adjoint: raw.MatrixSolve(matrix=a, rhs=b, adjoint=k), A, f32(2, 4, 3))
    for lower in (False, True):
        case("MatrixTriangularSolve_%d%d" % (lower, adjoint), lambda a, b, l=lower, k=adjoint: raw.MatrixTriangularSolve(matrix=a, rhs=b, lower=l, adjoint=k), A, f32(2, 4, 2))
case("MatrixTriangularSolve_broadcast", lambda a, b: raw.MatrixTriangularSolve(matrix=a, rhs=b), A[0], f32(3, 4, 1))
case("MatrixInverse_f64", lambda a: raw.MatrixInverse(input=a), A.astype(np.float64))
case("MatrixInverse_singular", lambda a: raw.MatrixInverse(input=a), np.ones((2, 2), np.float32), error=True)
case("MatrixSolve_singular", lambda a, b: raw.MatrixSolve(matrix=a, rhs=b), np.zeros((2, 2), np.float64), f32(2, 1).astype(np.float64), error=True)
case("MatrixDeterminant", lambda a: [raw.MatrixDeterminant(input=a)], A)
case("MatrixDeterminant_f64", lambda a: raw.MatrixDeterminant(input=a), np.array([[[0, 2], [3, 4]], [[1, 2], [2, 4]]], np.float64))
case("LogMatrixDeterminant", lambda a: list(raw.LogMatrixDeterminant(input=a)), A)
case("LogMatrixDeterminant_singular", lambda a: list(raw.LogMatrixDeterminant(input=a)), np.array([[[0, 2], [3, 4]], [[1, 2], [2, 4]]], np.float64))
S = np.matmul(A, A.transpose(0, 2, 1)).astype(np.float32)
case("Cholesky", lambda a: raw.Cholesky(input=a), S)
case("Cholesky_f64", lambda a: raw.Cholesky(input=a), S.astype(np.float64))
case("Cholesky_indefinite", lambda a: raw.MatrixBandPart(input=raw.Cholesky(input=a), num_lower=c(-1), num_upper=c(0)), np.array([[1, 2], [2, 1]], np.float32))
case("TridiagonalSolve", lambda d, b: raw.TridiagonalSolve(diagonals=d, rhs=b), f32(2, 3, 5), f32(2, 5, 2))
case("TridiagonalSolve_f64", lambda d, b: raw.TridiagonalSolve(diagonals=d, rhs=b), np.array([[1, 1, 0], [0, 2, 3], [0, 4, 1]], np.float64), f32(3, 1).astype(np.float64))
I = np.array([[0, 1], [2, 3], [0, 1], [1, 0]], np.int64)
for ta in (False, True):
    for tb in (False, True):
        case("SparseTensorDenseMatMul_%d%d" % (ta, tb), lambda i, v, b, ta=ta, tb=tb: raw.SparseTensorDenseMatMul(a_indices=i, a_values=v, a_shape=c([3, 4], tf.int64), b=b, adjoint_a=ta, adjoint_b=tb),
             I, f32(4), f32(*((2, 3 if ta else 4) if tb else (3 if ta else 4, 2))))
case("SparseTensorDenseMatMul_i32", lambda i, v, s, b: raw.SparseTensorDenseMatMul(a_indices=i, a_values=v, a_shape=s, b=b), I, i32(4), np.array([3, 4], np.int64), i32(4, 2))
case("SparseTensorDenseMatMul_beyond", lambda i, v, b: raw.SparseTensorDenseMatMul(a_indices=i, a_values=v, a_shape=c([3, 3], tf.int64), b=b), I, f32(4), f32(3, 2), error=True)

M = f32(2, 3, 5)
for lo, up in ((0, 0), (-1, 0), (1, 2), (2, -1), (-1, -1), (0, 3)):
    case("MatrixBandPart_%d_%d" % (lo, up), lambda a, lo=lo, up=up: raw.MatrixBandPart(input=a, num_lower=c(lo), num_upper=c(up)), M)
case("MatrixBandPart_fed", lambda a, lo, up: raw.MatrixBandPart(input=a, num_lower=lo, num_upper=up), i32(4, 4), np.int64(1), np.int64(-1))
case("MatrixBandPart_bool", lambda a: raw.MatrixBandPart(input=a, num_lower=c(-1), num_upper=c(0)), boolean(4, 4))
case("MatrixDiag", lambda d: raw.MatrixDiag(diagonal=d), f32(2, 3))
case("MatrixDiagPart", lambda a: raw.MatrixDiagPart(input=a), M)
case("MatrixSetDiag", lambda a, d: raw.MatrixSetDiag(input=a, diagonal=d), M, f32(2, 3))
for k in ((0, 0), (1, 1), (-2, -2), (-1, 2), (1, 3), (-2, 0)):
    longest = min(3 + min(k[1], 0), 5 - max(k[0], 0))
    shape = (2, longest) if k[0] == k[1] else (2, k[1] - k[0] + 1, longest)
    name, kk = "%d_%d" % k, k[0] if k[0] == k[1] else list(k)
    case("MatrixDiagPartV2_" + name, lambda a, k=kk: raw.MatrixDiagPartV2(input=a, k=c(k), padding_value=c(9.5)), M, sized=True)
    case("MatrixSetDiagV2_" + name, lambda a, d, k=kk: raw.MatrixSetDiagV2(input=a, diagonal=d, k=c(k)), M, f32(*shape), sized=True)
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        if align != "RIGHT_LEFT" and k not in ((-1, 2), (1, 3)): continue
        case("MatrixDiagPartV3_%s_%s" % (name, align), lambda a, k=kk, align=align: raw.MatrixDiagPartV3(input=a, k=c(k), padding_value=c(9.5), align=align), M, sized=True)
        case("MatrixSetDiagV3_%s_%s" % (name, align), lambda a, d, k=kk, align=align: raw.MatrixSetDiagV3(input=a, diagonal=d, k=c(k), align=align), M, f32(*shape), sized=True)
        case("MatrixDiagV3_%s_%s" % (name, align), lambda d, k=kk, align=align: raw.MatrixDiagV3(diagonal=d, k=c(k), num_rows=c(3), num_cols=c(5), padding_value=c(7.0), align=align), f32(*shape), sized=True)
case("MatrixDiagV2", lambda d: raw.MatrixDiagV2(diagonal=d, k=c([-1, 1]), num_rows=c(-1), num_cols=c(-1), padding_value=c(0)), i32(3, 4), sized=True)
case("MatrixDiagV3_rows", lambda d: raw.MatrixDiagV3(diagonal=d, k=c(1), num_rows=c(6), num_cols=c(-1), padding_value=c(0)), i32(2, 3), sized=True)
case("MatrixDiagV3_columns", lambda d: raw.MatrixDiagV3(diagonal=d, k=c(-1), num_rows=c(-1), num_cols=c(7), padding_value=c(0)), i32(3), sized=True)
case("MatrixDiagPartV3_beyond", lambda a: raw.MatrixDiagPartV3(input=a, k=c(5), padding_value=c(0.0)), M, error=True)
for dtype in (np.float32, np.int64):
    case("Diag_" + dtype.__name__, lambda x, y: [raw.Diag(diagonal=x), raw.Diag(diagonal=y)], np.arange(4).astype(dtype), (np.arange(6).reshape(2, 3) - 2).astype(dtype))
    case("DiagPart_" + dtype.__name__, lambda x, y: [raw.DiagPart(input=x), raw.DiagPart(input=y)], np.arange(9).reshape(3, 3).astype(dtype), np.arange(36).reshape(2, 3, 2, 3).astype(dtype), const=(0, 1))
BANDS = [f32(3, 5) + np.float32([[4], [0], [0]]), f32(3, 5) + np.float32([[0], [0], [4]])]
for lower in (True, False):
    for adjoint in (True, False):
        case("BandedTriangularSolve_%d_%d" % (lower, adjoint), lambda m, r, lower=lower, adjoint=adjoint: raw.BandedTriangularSolve(matrix=m, rhs=r, lower=lower, adjoint=adjoint), BANDS[not lower], f32(5, 2), sized=True)
case("BandedTriangularSolve_batch", lambda m, r: raw.BandedTriangularSolve(matrix=m, rhs=r), np.stack([BANDS[0], BANDS[0] * 2]).astype(np.float64), f32(2, 5, 1).astype(np.float64), sized=True)
case("BandedTriangularSolve_one", lambda m, r: raw.BandedTriangularSolve(matrix=m, rhs=r), f32(1, 4, lo=1, hi=2), f32(4, 2), sized=True)
