"""Numbers from a seed by an explicit formula (SplitMix64 of a counter), so that every version of numpy on every machine
makes the same bytes."""

import numpy as np


def words(seed, count):
    """`count` 64-bit numbers: the counter times the golden ratio, mixed."""
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 40)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(seed, shape, low=0.0, high=1.0):
    """float32 in [low, high]; `seed` below 2**24."""
    count = int(np.prod(shape, dtype=np.int64))
    unit = (words(seed, count) >> np.uint64(40)).astype(np.float64) / 2.0**24
    return (low + (high - low) * unit).astype(np.float32).reshape(shape)


def integers(seed, shape, below):
    return (words(seed, int(np.prod(shape, dtype=np.int64))) % np.uint64(below)).astype(np.int64).reshape(shape)
