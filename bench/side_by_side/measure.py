"""Rounds of short bursts in turn, the medians of their ratios, and whether answers are the same ones."""
import itertools
import os
import time
from statistics import median

from . import machine
from .nets import FAR

REST_S = 0.06  # ONNX Runtime's threads go on spinning for 30 ms, which is not to be the next engine's loss


def burst(worker, seconds, own):
    """The times of one burst, and how many processors other programs used meanwhile."""
    time.sleep(REST_S)
    watch = machine.Watch([os.getpid(), worker.pid, *own])
    times = worker.burst(seconds)
    return times, watch.others()


def rounds(workers, count, seconds, own=(), even_if_busy=False):
    """Per engine the medians of its bursts, None where a round was disturbed three times."""
    out = {name: [] for name in workers}
    for worker in workers.values(): worker.burst(seconds)
    for _ in range(count):
        for name, worker in workers.items():
            for _ in range(3):
                times, others = burst(worker, seconds, own)
                quiet = others <= machine.QUIET or even_if_busy
                if quiet: break
            out[name].append(median(times) if quiet else None)
    return out


def summary(times, reference):
    """Of an engine's rounds: the best time, and the median of the ratios to the reference in the same round with the
    quarter points, between which half of the ratios lie."""
    kept = [t for t in times if t]
    ratios = sorted(a / b for a, b in zip(times, reference) if a and b)
    row = {"ms": min(kept) if kept else None, "median_ms": median(kept) if kept else None, "rounds": len(ratios),
           "ratio": None, "ratio_low": None, "ratio_high": None}
    if ratios:
        row["ratio"] = median(ratios)
        row["ratio_low"], row["ratio_high"] = (quantile(ratios, q) for q in (0.25, 0.75))
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}


def quantile(ordered, share):
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def shaped(answer, shape):
    """An answer in each way in which it may be meant to have the shape: as it is, with axes in another order (channels
    last), or with axes of one left out."""
    import numpy as np
    if answer.size != int(np.prod(shape)): return
    if answer.ndim == len(shape) == 4 and answer.shape != tuple(shape):
        for axes in itertools.permutations(range(4)):
            if answer.transpose(axes).shape == tuple(shape): yield answer.transpose(axes)
    yield answer.reshape(shape)


def distance(a, b, precision):
    """How far an answer is from the reference's: for fp32 the largest |a - b| / (|b| + 0.1 max|b|), else |a - b| / |b| of
    the whole."""
    import numpy as np
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):  # infinities must stand at the same places
        return 0.0 if np.array_equal(a, b, equal_nan=True) else float("inf")
    if not b.size or not np.abs(b).max(): return 0.0 if not np.abs(a).max(initial=0) else float("inf")
    if precision == "fp32": return float((np.abs(a - b) / (np.abs(b) + 0.1 * np.abs(b).max())).max())
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def compare(answers, reference, precision):
    """The largest distance of any output, each taken with the answer that is nearest to it, since converters lose names
    and order; and whether that still counts as the same answer."""
    left, worst = list(answers), 0.0
    for want in reference:
        found = [(distance(view, want, precision), i) for i, got in enumerate(left) for view in shaped(got, want.shape)]
        if not found: return {"agrees": False, "distance": None}
        nearest, at = min(found)
        left.pop(at)
        worst = max(worst, nearest)
    return {"agrees": worst <= FAR.get(precision, 1e-4), "distance": float(f"{worst:.2g}") if worst < float("inf") else None}
