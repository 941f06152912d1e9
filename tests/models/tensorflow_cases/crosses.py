"""Combinations of features (crossed columns)."""
from recorder import *

I, J = np.array([[0, 0], [0, 1], [2, 0]], np.int64), np.array([[0, 0], [1, 0], [2, 0], [2, 2]], np.int64)
shape = lambda: c([3, 3], tf.int64)
words = lambda: c([b"red", b"green", b""])


def cross(indices, values, shapes, dense, internal=tf.int64, out=tf.int64, **options):
    given = dict(hashed_output=True, num_buckets=0, hash_key=956888297470) | options
    return list(raw.SparseCross(indices=indices, values=values, shapes=shapes, dense_inputs=dense, out_type=out, internal_type=internal, **given))


case("SparseCross", lambda i, j, v: cross([i, j], [words(), v], [shape(), shape()], [], num_buckets=100), I, J, np.array([7, -1, 2, 3], np.int64))
case("SparseCross_key", lambda i, j, v: cross([i, j], [v[:3], v], [shape(), shape()], [], hash_key=-5), I, J, np.array([7, -1, 2, 3], np.int64))
case("SparseCross_dense", lambda x: cross([], [], [], [x, tf.strings.as_string(x)[:, :1]], num_buckets=11), np.array([[4, 5], [6, -7]], np.int64))
case("SparseCross_both", lambda i, x: cross([i], [words()], [shape()], [x]), I, np.array([[4, 5], [6, 7], [8, 9]], np.int64))
case("SparseCross_text", lambda i, x: cross([i], [words()], [shape()], [tf.strings.as_string(x)], tf.string, tf.string, hashed_output=False), I, np.array([[4, 5], [6, 7], [8, -9]], np.int64))
case("SparseCross_none", lambda i, x: cross([i], [x[0, :0]], [shape()], [x]), I[:0], np.array([[4], [6], [8]], np.int64))
case("SparseCrossV2", lambda i, j: list(raw.SparseCrossV2(indices=[i, j], values=[words(), c([b"a", b"b", b"c", b"d"])], shapes=[shape(), shape()], dense_inputs=[], sep=c(b"-"))), I, J)
