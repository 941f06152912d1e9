#!/usr/bin/env python3
"""Runs the committed cases of testdata/tensorflow/*.pb, and the steps of testdata/tensorflow/runs, on the TensorFlow that is installed, and names
what it answers differently from what was recorded. Nothing is written.

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0
  v/bin/python tests/models/recheck_tensorflow_cases.py testdata/tensorflow [family|run..]

A float agrees within 1e-5 of itself and of a tenth of the largest (16-bit ones: 1e-2), everything else when it is equal. Cases that TensorFlow
computes on accelerators only, channels first and fused ones, were recorded by other ops: they are skipped by name."""
import json, os, re, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np, tensorflow as tf

v1 = tf.compat.v1
SKIPPED = re.compile(r"\w+_first(_SAME|_VALID|_explicit)?|FusedDepthwise_.*")


def values(node):
    return tf.make_ndarray(node.attr["value"].tensor)


def differs(got, recorded):
    """Why, or nothing."""
    got, recorded = np.asarray(got), np.asarray(recorded)
    if got.shape != recorded.shape: return "shape %s, recorded %s" % (got.shape, recorded.shape)
    if got.dtype.kind in "OSU" or recorded.dtype.kind in "OSU":
        flat = lambda a: [s if isinstance(s, bytes) else str(s).encode() for s in a.ravel()]
        return "" if flat(got) == flat(recorded) else "other strings"
    if got.dtype != recorded.dtype: return "dtype %s, recorded %s" % (got.dtype, recorded.dtype)
    if got.dtype.kind in "biu": return "" if np.array_equal(got, recorded) else "other numbers"
    tolerance = 1e-2 if got.dtype.itemsize == 2 else 1e-5
    a, b = got.astype(np.complex128), recorded.astype(np.complex128)
    finite = np.abs(b[np.isfinite(b)])
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= tolerance * (np.abs(b) + 0.1 * (finite.max() if finite.size else 0))
    return "" if np.all(same | near) else "other numbers, by up to %g" % np.nanmax(np.where(same, 0, np.abs(a - b)))


def recheck_cases(path):
    graph_def = v1.GraphDef()
    with open(path, "rb") as file: graph_def.ParseFromString(file.read())
    cases = {}
    for node in graph_def.node:
        name, _, leaf = node.name.partition("/")
        for kind in ("feed", "expect"):
            if leaf.startswith(kind) and leaf[len(kind):].isdigit() and node.op == "Const": cases.setdefault(name, {})[leaf] = values(node)
        if leaf == "error": cases.setdefault(name, {})["error"] = values(node).item()
    graph = tf.Graph()
    with graph.as_default(): tf.import_graph_def(graph_def, name="")
    other = []
    with v1.Session(graph=graph, config=v1.ConfigProto(graph_options=v1.GraphOptions(place_pruned_graph=True))) as session:
        for name, parts in cases.items():
            if SKIPPED.fullmatch(name): continue
            feeds = {"%s/in%s:0" % (name, leaf[4:]): x for leaf, x in parts.items() if leaf.startswith("feed")}
            outs = sorted((leaf for leaf in parts if leaf.startswith("expect")), key=lambda leaf: int(leaf[6:]))
            fetches = ["%s/out%s:0" % (name, leaf[6:]) for leaf in outs] or ["%s/out0:0" % name]
            try:
                got = session.run(fetches, feeds)
            except tf.errors.OpError as e:
                if "error" not in parts: other.append((name, "fails: " + e.message.split("\n")[0][:200]))
                continue
            if "error" in parts:
                other.append((name, "does not fail; recorded: " + str(parts["error"])[:200]))
                continue
            why = [w for w in (differs(g, parts[leaf]) for g, leaf in zip(got, outs)) if w]
            if why: other.append((name, why[0]))
    return sum(not SKIPPED.fullmatch(name) for name in cases), other


def read(path):
    if path.endswith(".npy"): return np.load(path)
    with open(path) as file: data = json.load(file)
    return np.array([s.encode() for s in data["data"]], object).reshape(data["shape"])


def recheck_run(folder):
    runs = os.path.join(folder, "runs")
    with open(os.path.join(runs, "steps.json")) as file: steps = json.load(file)
    other = []
    with tf.Graph().as_default(), v1.Session() as session:
        signatures = v1.saved_model.load(session, ["serve"], os.path.join(folder, "model")).signature_def
        for k, step in enumerate(steps):
            signature = signatures[step["signature"]]
            feeds = {signature.inputs[key].name: read(os.path.join(runs, file)) for key, file in step["inputs"].items()}
            try:
                got = session.run({key: signature.outputs[key].name for key in step["outputs"]}, feeds)
            except tf.errors.OpError as e:
                other.append(("step %d" % k, "fails: " + e.message.split("\n")[0][:200]))
                continue
            for key in step["outputs"]:
                base = os.path.join(runs, "out_%d_%s" % (k, key))
                why = differs(got[key], read(base + (".npy" if os.path.exists(base + ".npy") else ".json")))
                if why: other.append(("step %d, %s" % (k, key), why))
    return len(steps), other


root, wanted = sys.argv[1], sys.argv[2:]
work = [(f[:-3], recheck_cases, os.path.join(root, f)) for f in sorted(os.listdir(root)) if f.endswith(".pb")]
work += [(f, recheck_run, os.path.join(root, "runs", f)) for f in sorted(os.listdir(os.path.join(root, "runs")))]
failed = 0
for name, check, path in work:
    if wanted and name not in wanted: continue
    count, other = check(path)
    print("%s: %d, %d differ" % (name, count, len(other)), flush=True)
    for what, why in other: print("  %s: %s" % (what, why), flush=True)
    failed += len(other)
print("TensorFlow %s: %d differ" % (tf.__version__, failed))
sys.exit(1 if failed else 0)
