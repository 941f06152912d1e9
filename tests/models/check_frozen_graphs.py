#!/usr/bin/env python3
"""Freezes SavedModels with `oncilla convert --to graphdef`, runs what comes out in TensorFlow itself and compares with the
SavedModel's own answers there. For those who change the writer; needs TensorFlow, so no part of the usual checks.

  v/bin/python tests/models/check_frozen_graphs.py --oncilla build/release/oncilla [SAVED_MODEL[:SIGNATURE]..]

Without models those of testdata/tensorflow whose signatures can be frozen."""
import argparse, os, pathlib, subprocess, sys, tempfile
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np, tensorflow as tf

DATA = pathlib.Path(__file__).resolve().parent.parent.parent / "testdata/tensorflow"
MODELS = [DATA / f"models/{m}" for m in ("mlp", "module", "encoder", "convnet", "tensorflow1", "counter:plain")] + [
    DATA / f"text/{m}" for m in ("version1", "version2")] + [
    DATA / f"runs/{m}" for m in ("branches/model", "masked/model", "nested/model", "pixels/model", "recurrent/model",
                                 "old_loops/model", "old_recurrent/model", "partitioned/model", "loops/model:grow", "loops/model:table", "sides/model")]


def made_up(rng, spec):
    shape = [d if d is not None else 2 if i == 0 else 32 for i, d in enumerate(spec.shape.as_list())]
    if spec.dtype == tf.bool: return np.ones(shape, bool)
    if spec.dtype.is_integer: return rng.integers(1, 5, shape).astype(spec.dtype.as_numpy_dtype)
    return rng.uniform(0, 1, shape).astype(spec.dtype.as_numpy_dtype)


def check(program, model, signature, folder):
    out = os.path.join(folder, "frozen.pb")
    flags = ["--signature", signature] if signature else []
    text = subprocess.run([program, "convert", model, "--to", "graphdef", "-o", out, *flags], check=True, capture_output=True, text=True).stdout
    names = {"input": {}, "output": {}}
    for line in text.splitlines():
        words = line.split()
        if words and words[0] in names and line.startswith("  "):
            names[words[0]][words[3].strip("'") if len(words) > 2 else words[1]] = words[1]
    function = tf.saved_model.load(model).signatures[signature or "serving_default"]
    rng, specs = np.random.default_rng(5), function.structured_input_signature[1]
    feeds = {key: made_up(rng, spec) for key, spec in sorted(specs.items())}
    expected = {k: v.numpy() for k, v in function(**{k: tf.constant(v) for k, v in feeds.items()}).items()}
    graph_def = tf.compat.v1.GraphDef()
    with open(out, "rb") as f: graph_def.ParseFromString(f.read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session(graph=graph) as session:
            actual = session.run({k: names["output"][k] for k in expected}, {names["input"][k]: v for k, v in feeds.items()})
    worst = 0.0
    for key, value in expected.items():
        got = np.asarray(actual[key])
        assert got.shape == value.shape, (key, got.shape, value.shape)
        if value.dtype.kind == "f": worst = max(worst, float(np.max(np.abs(got - value), initial=0)) / max(1e-3, float(np.max(np.abs(value), initial=0))))
        else: assert (got == value).all(), key
    assert worst <= 1e-5, worst
    print("%-60s %9d bytes  %d outputs, largest relative difference %.2g" % (os.path.relpath(model, DATA) + (":" + signature if signature else ""),
          os.path.getsize(out), len(expected), worst), flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("--oncilla", required=True)
parser.add_argument("models", nargs="*")
args = parser.parse_args()
failed = 0
with tempfile.TemporaryDirectory() as folder:
    for entry in args.models or map(str, MODELS):
        model, _, signature = entry.partition(":")
        try:
            check(args.oncilla, model, signature, folder)
        except Exception as e:
            failed += 1
            print(entry, "FAILED", getattr(e, "stderr", None) or repr(e)[:600], flush=True)
sys.exit(failed > 0)
