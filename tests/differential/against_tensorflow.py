#!/usr/bin/env python3
"""Random calls of TensorFlow's ops, computed by TensorFlow and by Oncilla: every difference is a failure.

    PYTHONPATH=build/release/python against_tensorflow.py [--seed 0] [--count 1000] [--device cpu] [--tflite] [--only NAME]

With --tflite the same calls are converted by TensorFlow's converter and compared with LiteRT. A call that TensorFlow, or its
converter, refuses is left out. What Oncilla does not support is counted by op. Each failure names its seed: --seed S --count 1
repeats it.
"""
import argparse
import collections
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # whose convolutions return their input where the result is empty

import numpy as np
import oncilla
import tensorflow as tf

import draws
import tensorflow_nets  # noqa: F401, whose calls are then in the list
import tensorflow_ops  # noqa: F401


def draw(seed, only=None):
    d = draws.Draw(seed)
    calls = draws.CALLS
    if only:
        calls = [c for c in calls if c.__name__ == only]
    function, arrays, name = d.one(calls)(d)
    return function, [np.asarray(a) for a in arrays], name, d


def difference(got, want):
    """What differs, or nothing."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"is {got.dtype}{list(got.shape)}, and should be {want.dtype}{list(want.shape)}"
    if want.dtype.kind != "f":
        wrong = got != want
    else:
        tolerance = {2: 2e-2, 4: 2e-4, 8: 1e-9}[want.dtype.itemsize]
        with np.errstate(all="ignore"):
            scale = np.nanmax(np.abs(np.where(np.isfinite(want), want, 0).astype(np.float64)), initial=0.0)
            far = np.abs(got.astype(np.float64) - want.astype(np.float64)) > tolerance * np.maximum(
                np.abs(want.astype(np.float64)), min(1.0, 0.1 * scale + 1e-3))
            wrong = np.where(np.isfinite(want) & np.isfinite(got), far, ~((got == want) | (np.isnan(got) & np.isnan(want))))
    if not np.any(wrong):
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"differs at {at} of {list(want.shape)}: {got[at]!r}, and should be {want[at]!r}; {int(np.sum(wrong))} in all"


def concrete_of(function, arrays, name, d):
    """The call as a graph; some sizes are left open, but not the channels by which a convolution's groups are known."""
    open_sizes = d.often(0.4)

    def spec(a):
        sizes = [None if open_sizes and d.often(0.4) else s for s in a.shape]
        if name.startswith("Conv2D"):
            sizes[2:] = [*sizes[2:-1], a.shape[-1]] if a.shape == arrays[0].shape else a.shape[2:]
        return tf.TensorSpec(sizes, a.dtype)
    specs = [spec(a) for a in arrays]
    return tf.function(function, input_signature=specs, autograph=False).get_concrete_function()


class Comparison:
    def __init__(self, device):
        self.session = oncilla.Session(device=device)
        self.run, self.failed = 0, []
        self.unsupported = collections.Counter()

    def check(self, seed, name, model_bytes, feeds, names, wanted):
        try:
            with self.session.load(model_bytes) as model:
                results = model.run(feeds, outputs=names) if names else model(feeds)
                got = [np.asarray(results[n]) for n in names] if names else [np.asarray(r) for r in results.values()]
        except oncilla.UnimplementedError as error:
            self.unsupported[f"{name}: {str(error)[:160]}"] += 1
            return
        except oncilla.Error as error:
            self.failed.append(f"seed {seed}, {name}: {error}")
            return
        self.run += 1
        for i, (g, w) in enumerate(zip(got, wanted)):
            if what := difference(g, w):
                self.failed.append(f"seed {seed}, {name}: output {i} {what}; inputs "
                                   + ", ".join(f"{v.dtype}{list(v.shape)}" for v in feeds.values()))
                return


def compare_graph(comparison, seed, name, concrete, arrays, wanted):
    names = [t.name for t in concrete.inputs]
    outputs = [t.name for t in concrete.outputs]
    comparison.check(seed, name, concrete.graph.as_graph_def().SerializeToString(), dict(zip(names, arrays)), outputs,
                     [np.asarray(w) for w in wanted])


def compare_lite(comparison, seed, name, concrete, arrays):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    try:
        converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
        content = converter.convert()
        interpreter = Interpreter(model_content=content, num_threads=1,
                                  experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        inputs = interpreter.get_input_details()
        for detail in inputs:  # the converter orders them by name
            at = int(detail["name"].split("arg")[-1].split(":")[0]) if "arg" in detail["name"] else inputs.index(detail)
            detail["array"] = arrays[at]
            interpreter.resize_tensor_input(detail["index"], arrays[at].shape)
        interpreter.allocate_tensors()
        for detail in inputs:
            interpreter.set_tensor(detail["index"], detail["array"])
        interpreter.invoke()
        wanted = [interpreter.get_tensor(o["index"]) for o in interpreter.get_output_details()]
    except Exception:
        return
    feeds = {detail["name"]: detail["array"] for detail in inputs}
    comparison.check(seed, name + " (TFLite)", content, feeds, None, wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tflite", action="store_true")
    parser.add_argument("--only", help="the calls of one function, such as conv2d")
    options = parser.parse_args()
    comparison = Comparison(options.device)
    for seed in range(options.seed, options.seed + options.count):
        try:
            function, arrays, name, d = draw(seed, options.only)
            concrete = concrete_of(function, arrays, name, d)
            wanted = tf.nest.flatten(concrete(*[tf.constant(a) for a in arrays]))
        except (tf.errors.OpError, ValueError, TypeError, NotImplementedError):
            continue
        if options.tflite:
            compare_lite(comparison, seed, name, concrete, arrays)
        else:
            compare_graph(comparison, seed, name, concrete, arrays, wanted)
    for failure in comparison.failed:
        print(failure)
    for what, times in comparison.unsupported.most_common():
        print(f"not supported, {times} times: {what}")
    print(f"{comparison.run} of {options.count} calls compared, {len(comparison.failed)} failed")
    return 1 if comparison.failed or comparison.run < options.count // 10 else 0


if __name__ == "__main__":
    sys.exit(main())
