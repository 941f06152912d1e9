#!/usr/bin/env python3
"""Writes SavedModels that JAX and Keras on JAX export, with what TensorFlow answers, to testdata/tensorflow/runs.

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.18.0 jax==0.4.35 keras
  v/bin/python tests/models/make_jax_models.py testdata/tensorflow/runs

Their functions are StableHLO modules, for any batch; the places in this machine's files are taken out of them."""
import os, sys
os.environ["KERAS_BACKEND"] = "jax"
os.environ["TF_USE_LEGACY_KERAS"] = "0"
import numpy as np
from run_recorder import Recorder, f32, settings, tf
import jax, jax.numpy as jnp, keras
from jax.experimental import jax2tf
from jax._src.export import _export
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir, passmanager
from tensorflow.core.protobuf import saved_model_pb2

l = keras.layers


def without_places(folder):
    path = os.path.join(folder, "saved_model.pb")
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString(open(path, "rb").read())
    for graph in saved.meta_graphs:
        graph.graph_def.ClearField("debug_info") if hasattr(graph.graph_def, "debug_info") else None
        for function in graph.graph_def.library.function:
            for node in function.node_def:
                if node.op != "XlaCallModule": continue
                with mlir.make_ir_context():
                    m = ir.Module.parse(xla_client._xla.mlir.deserialize_portable_artifact(node.attr["module"].s))
                    passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(m.operation)
                    node.attr["module"].s = _export._module_to_bytecode(m)
    open(path, "wb").write(saved.SerializeToString(deterministic=True))


def record(name, save, feeds):
    settings.rng = np.random.default_rng(len(name))
    r = Recorder(name)
    save(r.model)
    without_places(r.model)
    f = tf.saved_model.load(r.model).signatures["serving_default"]
    for x in feeds:
        out = f(**{k: tf.constant(v) for k, v in x.items()})
        r.step("serving_default", x, {k: v.numpy() for k, v in out.items()})
    r.finish()


def keras_net(path):
    """Its export assigns every variable that training would change; here that changes nothing."""
    keras.utils.set_random_seed(1)
    net = keras.Sequential([keras.Input((8, 8, 2)), l.Conv2D(4, 3, strides=2, padding="same"), l.BatchNormalization(), l.ReLU(6), l.DepthwiseConv2D(3, padding="same"), l.BatchNormalization(),
                            l.Activation("silu"), l.MaxPooling2D(2), l.Flatten(), l.Dense(3, activation="softmax")])
    for w in net.weights: w.assign(np.abs(f32(*w.shape)) + 0.1 if "variance" in w.path else f32(*w.shape))
    net.export(path, verbose=False)


def attention(path):
    """A block of a transformer for any batch and length, its weights as variables."""
    w = {k: tf.Variable(f32(*s) * 0.3) for k, s in dict(table=(20, 8), q=(8, 2, 4), k=(8, 2, 4), v=(8, 2, 4), o=(2, 4, 8), up=(8, 16), down=(16, 8)).items()}

    def block(w, ids):
        x = w["table"][ids]
        norm = lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
        q, k, v = (jnp.einsum("btd,dhe->bthe", norm(x), w[n]) for n in "qkv")
        t = ids.shape[1]
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), jnp.einsum("bthe,bshe->bhts", q, k), -1e9)
        x = x + jnp.einsum("bhts,bshe,hed->btd", jax.nn.softmax(scores), v, w["o"])
        x = x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"]
        return x, jnp.argmax(x @ w["table"].T, -1)

    f = jax2tf.convert(block, polymorphic_shapes=[None, "(b, t)"], with_gradient=False)
    module = tf.Module()
    module.w = w
    module.f = tf.function(lambda ids: dict(zip(("x", "next"), f(module.w, ids))), input_signature=[tf.TensorSpec([None, None], tf.int32, "ids")], autograph=False)
    tf.saved_model.save(module, path, signatures={"serving_default": module.f})


settings.root = sys.argv[1]
numbers = np.random.default_rng(7)
images = [numbers.standard_normal((n, 8, 8, 2)).astype(np.float32) for n in (2, 1)]
record("jax_keras", keras_net, [{"keras_tensor": x} for x in images])
record("jax_attention", attention, [{"ids": numbers.integers(0, 20, s).astype(np.int32)} for s in ((2, 5), (1, 3))])
