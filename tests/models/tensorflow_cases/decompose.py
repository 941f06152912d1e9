"""Decompositions of matrices: as they are, and put together again."""
from recorder import *

f64 = lambda *shape: f32(*shape).astype(np.float64)
dot = lambda a, b, **kw: tf.matmul(a, b, **kw)
near = lambda *shape: f32(*shape) + 3 * np.eye(shape[-2], shape[-1], dtype=np.float32)

for name, x in (("tall", f32(6, 3)), ("wide", f32(3, 5)), ("square", f32(2, 4, 4)), ("deep", f32(2, 3, 5, 2)), ("f64", f64(5, 4)), ("one", f32(1, 1)), ("column", f32(4, 1)), ("large", f64(19, 17)), ("empty", f32(0, 3)), ("no_columns", f32(3, 0))):
    for full in (False, True):
        case("Qr_%s_%d" % (name, full), lambda a, k=full: list(raw.Qr(input=a, full_matrices=k)), x)
        case("Qr_%s_%d_product" % (name, full), lambda a, k=full: (lambda q, r: [dot(q, r), dot(q, q, transpose_a=True)])(*raw.Qr(input=a, full_matrices=k)), x)
        case("Svd_%s_%d" % (name, full), lambda a, k=full: list(raw.Svd(input=a, full_matrices=k)), x)
        case("Svd_%s_%d_product" % (name, full), lambda a, k=full: (lambda s, u, v: [s, dot(u, u, transpose_a=True), dot(v, v, transpose_a=True)] + ([] if k else [dot(u * tf.expand_dims(s, -2), v, transpose_b=True)]))(*raw.Svd(input=a, full_matrices=k)), x)
    case("Svd_%s_values" % name, lambda a: (lambda s, u, v: [s, tf.shape(u), tf.shape(v)])(*raw.Svd(input=a, compute_uv=False)), x)
LOW = np.outer(np.arange(1, 5), np.arange(1, 4)).astype(np.float64)
case("Svd_low_rank", lambda a: raw.Svd(input=a)[0] + 1, LOW)
case("Svd_zeros", lambda a: raw.Svd(input=a)[0], np.zeros((3, 2), np.float32))
case("Qr_zeros", lambda a: list(raw.Qr(input=a)), np.zeros((3, 2), np.float32))
M = f32(2, 5, 5)
SYM = M + M.transpose(0, 2, 1)
for name, x in (("", SYM), ("_f64", SYM.astype(np.float64)), ("_triangle", M), ("_one", f32(1, 1)), ("_two", SYM[:, :2, :2]), ("_three", SYM[0, :3, :3]), ("_diagonal", np.diag(np.float32([3, -1, 2, 5]))), ("_large", (lambda a: a + a.T)(f64(17, 17))), ("_empty", f32(2, 0, 0))):
    case("SelfAdjointEigV2" + name, lambda a: list(raw.SelfAdjointEigV2(input=a)), x)
    case("SelfAdjointEigV2%s_product" % name, lambda a: (lambda e, v: [e, dot(v * tf.expand_dims(e, -2), v, transpose_b=True), dot(v, v, transpose_a=True)])(*raw.SelfAdjointEigV2(input=a)), x)
    case("SelfAdjointEigV2%s_values" % name, lambda a: (lambda e, v: [e, tf.shape(v)])(*raw.SelfAdjointEigV2(input=a, compute_v=False)), x)
case("SelfAdjointEigV2_rectangle", lambda a: list(raw.SelfAdjointEigV2(input=a)), f32(2, 3), error=True)
for name, x in (("", near(2, 4, 4)), ("_f64", near(5, 5).astype(np.float64)), ("_pivots", np.float32([[0, 2, 1], [3, 4, 1], [6, 1, 0]])), ("_one", near(1, 1)), ("_large", f64(17, 17)), ("_empty", f32(2, 0, 0))):
    for t in (tf.int32, tf.int64): case("Lu%s_%s" % (name, t.name), lambda a, t=t: list(raw.Lu(input=a, output_idx_type=t)), x)
case("Lu_singular", lambda a: list(raw.Lu(input=a)), np.float32([[1, 2], [2, 4]]), error=True)
case("Lu_rectangle", lambda a: list(raw.Lu(input=a)), f32(2, 3), error=True)
POS = np.matmul(near(2, 4, 4), near(2, 4, 4).transpose(0, 2, 1))
for name, x in (("", POS[:1] @ POS[:1].transpose(0, 2, 1)), ("_f64", near(3, 3).astype(np.float64)), ("_turn", np.float64([[0, -1], [1, 0]])), ("_upper", np.float32([[4, 1, 2], [0, 9, 3], [0, 0, 1]])), ("_empty", f32(0, 0))):
    case("MatrixSquareRoot" + name, lambda a: raw.MatrixSquareRoot(input=a), x)
for ta in (False, True):
    for tb in (False, True):
        case("SparseMatMul_%d%d" % (ta, tb), lambda a, b, ta=ta, tb=tb: raw.SparseMatMul(a=a, b=b, transpose_a=ta, transpose_b=tb, a_is_sparse=True), f32(*((4, 3) if ta else (3, 4))), f32(*((5, 4) if tb else (4, 5))))
case("SparseMatMul_mixed", lambda a, b: raw.SparseMatMul(a=tf.cast(a, tf.bfloat16), b=b, b_is_sparse=True), small("float32", 3, 4), small("float32", 4, 5))
