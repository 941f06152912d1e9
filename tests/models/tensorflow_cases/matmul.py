"""Matrix products."""
from recorder import *

for ta in (False, True):
    for tb in (False, True):
        case("MatMul_%d%d" % (ta, tb), lambda a, b, ta=ta, tb=tb: raw.MatMul(a=a, b=b, transpose_a=ta, transpose_b=tb), f32(*((5, 3) if ta else (3, 5))), f32(*((4, 5) if tb else (5, 4))))
case("MatMul_i32", lambda a, b: raw.MatMul(a=a, b=b), i32(3, 5), i32(5, 4))
case("BatchMatMul", lambda a, b: raw.BatchMatMul(x=a, y=b, adj_y=True), f32(2, 3, 5), f32(2, 4, 5))
case("BatchMatMulV2", lambda a, b: raw.BatchMatMulV2(x=a, y=b, adj_x=True), f32(2, 1, 5, 3), f32(4, 5, 6))
case("BatchMatMulV3", lambda a, b: raw.BatchMatMulV3(x=a, y=b, Tout=tf.float32), f32(2, 3, 5), f32(2, 5, 6))
for i, (eq, *shapes) in enumerate([("ab,bc->ac", (3, 4), (4, 5)), ("abc,cd->abd", (2, 3, 4), (4, 5)), ("abc,cde->abde", (2, 3, 4), (4, 2, 3)), ("abcd,cde->abe", (2, 3, 2, 3), (2, 3, 4)),
                                   ("aecd,abcd->acbe", (2, 3, 4, 5), (2, 6, 4, 5)), ("acbe,aecd->abcd", (2, 4, 6, 3), (2, 3, 4, 5)), ("ab,cd->abcd", (2, 3), (4, 5)), ("a,a->", (6,), (6,)),
                                   ("ab,ab->ab", (2, 3), (2, 3)), ("ab,ab->a", (2, 3), (2, 3)), ("...ab,bc->...ac", (2, 3, 4, 5), (5, 6)), ("...a,...a->...", (3, 2, 4), (2, 4)),
                                   ("abc->cab", (2, 3, 4)), ("abc->b", (2, 3, 4)), ("abd,cb->ca", (2, 3, 4), (5, 3)), ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)), ("ab,bc->abc", (2, 3), (3, 4)),
                                   ("...ij,...jk->...ik", (1, 3, 4), (5, 4, 2))]):
    case("Einsum_%d" % i, lambda *a, eq=eq: raw.Einsum(inputs=list(a), equation=eq), *[f32(*s) for s in shapes])
for i, (eq, *shapes) in enumerate([("aa->a", (3, 3)), ("a->aa", (3,)), ("aab->b", (3, 3, 4)), ("aab,bc->ac", (3, 3, 4), (4, 5)), ("a,b->aab", (2,), (3,)), ("ii->", (3, 3)), ("abab->ab", (2, 3, 2, 3)), ("a->aaa", (2,)), ("ab->bab", (2, 3))]):
    case("Einsum_diagonal_%d" % i, lambda *a, eq=eq: raw.Einsum(inputs=list(a), equation=eq), *[f32(*s) for s in shapes], sized=True)
for i, (eq, *shapes) in enumerate([("ab,ab->", (2, 3), (2, 3)), ("abc->", (2, 3, 4)), ("a...b,b->a...", (2, 3, 4), (4,)), ("...->...", (2, 3)), ("...ab,...ab->...", (3, 2, 4), (2, 4))]):
    case("Einsum_more_%d" % i, lambda *a, eq=eq: raw.Einsum(inputs=list(a), equation=eq), *[f32(*s) for s in shapes])
case("Einsum_i32", lambda a, b: raw.Einsum(inputs=[a, b], equation="abc,cd->adb"), i32(2, 3, 4), i32(4, 5))
for adj in ((True, False), (False, True), (True, True)):
    for op in "BatchMatMul BatchMatMulV2 BatchMatMulV3".split():
        case("%s_adj_%d%d" % (op, *adj), lambda a, b, op=op, adj=adj: getattr(raw, op)(x=a, y=b, adj_x=adj[0], adj_y=adj[1], **({"Tout": tf.float32} if op[-1] == "3" else {})), f32(2, *((4, 3) if adj[0] else (3, 4))), f32(2, *((5, 4) if adj[1] else (4, 5))))
case("BatchMatMulV3_i8", lambda a, b: raw.BatchMatMulV3(x=a, y=b, Tout=tf.int32), i32(2, 3, 4).astype(np.int8), i32(2, 4, 2).astype(np.int8))
case("BatchMatMulV2_i32", lambda a, b: raw.BatchMatMulV2(x=a, y=b), i32(2, 3, 4), i32(4, 2))
case("MatMul_f64", lambda a, b: raw.MatMul(a=a, b=b), f32(3, 5).astype(np.float64), f32(5, 4).astype(np.float64))
case("MatMul_empty", lambda a, b: raw.MatMul(a=a, b=b), f32(3, 0), f32(0, 4))
for i, (eq, *shapes) in enumerate([("ab,bc->ac", (2, 1), (3, 4)), ("ab,bc->ac", (2, 3), (2, 4)), ("abc,bcd->ad", (2, 2, 3), (3, 2, 4)), ("ab,ab->a", (1, 3), (2, 3))]):
    case("Einsum_refused_%d" % i, lambda *a, eq=eq: raw.Einsum(inputs=list(a), equation=eq), *[f32(*s) for s in shapes], error=True)
