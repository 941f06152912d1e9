#!/usr/bin/env python3
"""Writes small SavedModels of every kind that people have, with what TensorFlow answers, to testdata/tensorflow/models.

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0
  v/bin/python tests/models/make_saved_models.py testdata/tensorflow/models

Each folder is a SavedModel; beside it `answers/` holds in_<key>.npy and out_<key>.npy of one run of a signature.
tests/unit/import/saved_models_test.cc imports, runs and compares. No TensorFlow is needed to run the tests."""
import os, shutil, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np, tensorflow as tf

out = sys.argv[1]
rng = np.random.default_rng(3)
keras = tf.keras
keras.utils.set_random_seed(3)


def answers(name, feeds, results):
    folder = os.path.join(out, name, "answers")
    os.makedirs(folder, exist_ok=True)
    for key, value in feeds.items(): np.save(os.path.join(folder, "in_%s.npy" % key), value)
    for key, value in results.items(): np.save(os.path.join(folder, "out_%s.npy" % key), np.asarray(value))
    for leftover in ("fingerprint.pb", "keras_metadata.pb"):
        if os.path.exists(os.path.join(out, name, leftover)): os.remove(os.path.join(out, name, leftover))
    shutil.rmtree(os.path.join(out, name, "assets"), ignore_errors=True)
    print(name, {k: np.asarray(v).shape for k, v in results.items()}, flush=True)


def run(name, signature, *values):
    """Loads the model as TensorFlow does, runs it, and records values in the order of the sorted input keys."""
    f = tf.saved_model.load(os.path.join(out, name)).signatures[signature]
    keys = sorted(f.structured_input_signature[1])
    feeds = dict(zip(keys, values))
    answers(name, feeds, {k: v.numpy() for k, v in f(**{k: tf.constant(v) for k, v in feeds.items()}).items()})


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def mlp():
    """A Keras export: variables reached through nested calls."""
    layers = [keras.Input((6,)), keras.layers.Dense(8, activation="gelu"), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5),
              keras.layers.Dense(3, activation="softmax")]
    keras.Sequential(layers).export(os.path.join(out, "mlp"), verbose=False)
    run("mlp", "serving_default", f32(4, 6))


class Module(tf.Module):
    """Keras layers under a plain module (nobody restores the handles that the signature reads), and two variables of one name."""

    def __init__(self):
        self.layers = [keras.layers.Dense(5, activation="relu"), keras.layers.Dense(5)]
        for layer in self.layers: layer.build((None, 5))
        self.first, self.second = tf.Variable(f32(5), name="v"), tf.Variable(f32(5), name="v")

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "k"), tf.TensorSpec([None, 5], tf.float32, "x")])
    def call(self, k, x):
        matrix = tf.reshape(tf.concat([self.first, self.second, self.first, self.second, self.first], 0), [5, 5])
        return {"y": self.layers[1](self.layers[0](x) + self.first) * k - self.second, "z": x @ matrix}


def module():
    m = Module()
    tf.saved_model.save(m, os.path.join(out, "module"), signatures=m.call)
    run("module", "serving_default", np.float32(2), f32(3, 5))


def encoder():
    """A transformer encoder: embedding, attention by einsum, layer norm; batch and length are unknown."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    x = keras.layers.Embedding(50, 16)(ids)
    x = keras.layers.LayerNormalization()(x + keras.layers.MultiHeadAttention(4, 4)(x, x))
    x = keras.layers.LayerNormalization()(x + keras.layers.Dense(16)(keras.layers.Dense(32, activation="gelu")(x)))
    model = keras.Model(ids, keras.layers.Dense(3)(keras.layers.GlobalAveragePooling1D()(x)))
    model.export(os.path.join(out, "encoder"), verbose=False)
    run("encoder", "serving_default", rng.integers(0, 50, (2, 7)).astype(np.int32))


def convnet():
    """The layers of convolutional nets, on pictures of unknown size."""
    l = keras.layers
    image = keras.Input((None, None, 3), name="image")
    x = l.Rescaling(1 / 255.0)(image)
    x = l.ReLU(6.0)(l.BatchNormalization()(l.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)))
    x = l.LeakyReLU()(l.DepthwiseConv2D(3, padding="same")(x))
    x = l.Add()([x, l.SeparableConv2D(8, 3, padding="same", activation="swish")(x)])
    x = l.UpSampling2D(2)(l.Conv2DTranspose(4, 3, strides=2, padding="same")(x))
    x = l.AveragePooling2D(2, padding="same")(l.ZeroPadding2D(1)(l.MaxPooling2D()(x)))
    x = l.Concatenate()([x, x])
    gate = l.Conv2D(8, 1, activation="sigmoid")(l.GlobalMaxPooling2D(keepdims=True)(x))
    keras.Model(image, l.Softmax()(x * gate)).export(os.path.join(out, "convnet"), verbose=False)
    run("convnet", "serving_default", rng.uniform(0, 255, (2, 20, 14, 3)).astype(np.float32))


def tensorflow1():
    """TensorFlow 1: a reference variable beside a resource, a placeholder with a default, a restore graph."""
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], "x")
        w = v1.get_variable("w", [4, 3], use_resource=False, initializer=v1.random_normal_initializer(seed=1))
        b = v1.get_variable("b", [3], use_resource=True, initializer=v1.random_normal_initializer(seed=2))
        t = v1.placeholder_with_default(tf.constant(2.0), [], "t")
        y = tf.nn.softmax((x @ w + b) * t, name="y")
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            feed = f32(3, 4)
            v1.saved_model.simple_save(session, os.path.join(out, "tensorflow1"), {"x": x}, {"y": y})
            answers("tensorflow1", {"x": feed}, {"y": session.run(y, {x: feed})})


class Counter(tf.Module):
    """Two signatures; one writes a variable."""

    def __init__(self):
        self.count, self.weight = tf.Variable(0.0), tf.Variable(f32(3))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])
    def counting(self, x):
        self.count.assign_add(1.0)
        return {"y": x * self.weight + self.count}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])
    def plain(self, x):
        return {"y": x * self.weight}


def counter():
    m = Counter()
    tf.saved_model.save(m, os.path.join(out, "counter"), signatures={"counting": m.counting, "plain": m.plain})
    run("counter", "plain", f32(2, 3))


shutil.rmtree(out, ignore_errors=True)
for make in (mlp, module, encoder, convnet, tensorflow1, counter): make()
