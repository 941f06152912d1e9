"""Random choices, and the list of functions that draw calls of TensorFlow's ops.

A function under @call draws one call: a Python function of tensors, the arrays to call it with, and the op's name. What
TensorFlow refuses is left out by the caller, so a draw may be wrong, but should seldom be.
"""
import numpy as np
import tensorflow as tf

raw = tf.raw_ops
FLOATS = [np.float32, np.float32, np.float32, np.float64, np.float16]
INTS = [np.int32, np.int64, np.int8, np.uint8, np.int16]
ANY = FLOATS + INTS + [np.bool_]

CALLS = []


def call(draw):
    CALLS.append(draw)
    return draw


class Draw:
    """A source of choices."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def one(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def often(self, share=0.5):
        return bool(self.rng.random() < share)

    def shape(self, low=0, high=4, most=6, empty=0.03):
        sizes = [self.int(1, most) for _ in range(self.int(low, high))]
        if sizes and self.often(empty):
            sizes[self.int(0, len(sizes) - 1)] = 0
        return sizes

    def array(self, shape, dtype=None, special=0.0, low=None, high=None):
        dtype = np.dtype(self.one(ANY) if dtype is None else dtype)
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            low = max(info.min, -20) if low is None else low
            values = self.rng.integers(low, 20 if high is None else high, shape)
            if special and self.often(special):
                values = np.where(self.rng.random(shape) < 0.2, self.one([info.min, info.max]), values)
            return np.asarray(values, dtype)
        values = np.asarray(self.rng.normal(0, 2, shape))
        if self.often(0.3):
            values = np.round(values)
        if special and self.often(special):
            odd = self.rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-30], shape)
            values = np.where(self.rng.random(shape) < 0.2, odd, values)
        with np.errstate(over="ignore"):
            return np.asarray(values, dtype)

    def broadcast_pair(self, dtype, special=0.3):
        shape = self.shape(0, 4)
        other = [1 if self.often(0.3) else s for s in shape]
        other = other[self.int(0, len(other)):] if self.often(0.4) else other
        pair = [shape, other]
        if self.often():
            pair.reverse()
        return [self.array(s, dtype, special) for s in pair]

    def strides(self, window):
        return self.int(1, 3) if self.often(0.6) else self.int(1, window + 2)


def plain(name, **attributes):
    """The raw op as a function of positional tensors."""
    op = getattr(raw, name)
    names = [a for a in op.__wrapped__.__code__.co_varnames[:op.__wrapped__.__code__.co_argcount]] if hasattr(
        op, "__wrapped__") else None
    inputs = [n for n in names if n not in attributes and n != "name"]
    return lambda *tensors: op(**dict(zip(inputs, tensors)), **attributes)
