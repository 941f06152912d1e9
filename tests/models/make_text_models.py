#!/usr/bin/env python3
"""Writes models in text form, as TensorFlow writes them, with what TensorFlow answers, to testdata/tensorflow/text.

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0
  v/bin/python tests/models/make_text_models.py testdata/tensorflow/text

frozen.pbtxt is a graph, version1 and version2 are SavedModel folders; answers/<model>_in_<key>.npy and .._out_<key>.npy are
one run of each. tests/unit/import/tf_text_test.cc reads and compares."""
import os, shutil, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np, tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.protobuf import saved_model_pb2

out = sys.argv[1]
v1 = tf.compat.v1
rng = np.random.default_rng(7)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def answers(name, feeds, results):
    os.makedirs(os.path.join(out, "answers"), exist_ok=True)
    for role, tensors in ("in", feeds), ("out", results):
        for key, value in tensors.items():
            np.save(os.path.join(out, "answers", "%s_%s_%s.npy" % (name, role, key)), np.asarray(value))


def version1():
    """TensorFlow 1: a variable, numbers at the ends of their ranges; its builder writes text itself. And the same, frozen."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 3], "x")
        w = v1.get_variable("w", initializer=f32(3, 2), use_resource=True)
        edges = tf.constant([[1e-45, -3.4e38], [np.float32(1) / 3, 1e10]], name="edges")
        y = tf.add(x @ w, 0.5, "y")
        z = tf.where(y > 0, y, tf.reduce_max(edges) - y, "z")
        n = tf.constant([-2**63, 2**63 - 1, 0], tf.int64, name="n") + tf.zeros_like(tf.shape(x, tf.int64)[:1])
        n = tf.identity(n, "n_out")
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            feed = f32(2, 3)
            results = dict(zip("nyz", session.run([n, y, z], {x: feed})))
            builder = v1.saved_model.Builder(os.path.join(out, "version1"))
            signature = v1.saved_model.predict_signature_def({"x": x}, {"n": n, "y": y, "z": z})
            builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
            builder.save(as_text=True)
            frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["n_out", "z"])
            tf.io.write_graph(frozen, out, "frozen.pbtxt", as_text=True)
            answers("version1", {"x": feed}, results)


class Module(tf.Module):
    """Functions, captured variables, strings with every kind of byte."""

    def __init__(self):
        self.w, self.b = tf.Variable(f32(4, 3)), tf.Variable(f32(3))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "x")])
    def call(self, x):
        y = tf.nn.relu(x @ self.w + self.b)
        return {"y": y, "s": tf.gather(tf.constant([b"plain", b'q"\'\\\n', bytes(range(256))]), tf.argmax(y, 1))}


def version2():
    m, folder = Module(), os.path.join(out, "version2")
    tf.saved_model.save(m, folder, signatures=m.call)
    feed = f32(8, 4)
    results = {k: v.numpy() for k, v in tf.saved_model.load(folder).signatures["serving_default"](x=tf.constant(feed)).items()}
    results["s"] = np.array([len(s) for s in results["s"]], np.int64)  # NumPy would lose trailing zeros
    answers("version2", {"x": feed}, results)
    binary, model = os.path.join(folder, "saved_model.pb"), saved_model_pb2.SavedModel()
    with open(binary, "rb") as f: model.ParseFromString(f.read())
    with open(binary + "txt", "w") as f: f.write(text_format.MessageToString(model))
    os.remove(binary)
    os.remove(os.path.join(folder, "fingerprint.pb"))
    shutil.rmtree(os.path.join(folder, "assets"), ignore_errors=True)


shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)
version1()
version2()
