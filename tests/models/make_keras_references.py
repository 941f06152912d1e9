#!/usr/bin/env python3
"""Writes keras/NAME (graph, index and recipe of the weights, see checkpoint.py) and recorded/keras_NAME.npz: what
TensorFlow answers with weights from a seed.

    python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0
    v/bin/python tests/models/make_keras_references.py [NAME..]

The nets are exported as people export them (Model.export). Tensors inside are read from the frozen graph, whose
names are those that the program takes."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import base64
import gzip
import hashlib
import json
import math
import pathlib
import sys
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

import checkpoint
import models
import seeded

keras = tf.keras


def encoder():
    """Embedding, four blocks of attention and a wide layer with GELU, layer norms; batch and length are open."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    x = keras.layers.Embedding(1000, 128)(ids)
    for _ in range(4):
        x = keras.layers.LayerNormalization()(x + keras.layers.MultiHeadAttention(4, 32)(x, x))
        wide = keras.layers.Dense(512, activation="gelu")(x)
        x = keras.layers.LayerNormalization()(x + keras.layers.Dense(128)(wide))
    pooled = keras.layers.GlobalAveragePooling1D()(x)
    return keras.Model(ids, keras.layers.Dense(10, activation="softmax")(pooled))


def application(make):
    return lambda: make(weights=None, input_tensor=keras.Input((224, 224, 3), name="image"))


NETS = {
    "mobilenet_v2": application(keras.applications.MobileNetV2),
    "resnet50": application(keras.applications.ResNet50),
    "efficientnet_b0": application(keras.applications.EfficientNetB0),
    "encoder": encoder,
    "densenet121": application(keras.applications.DenseNet121),
}


FOUND = ["basic_pitch_tensorflow"]  # SavedModels as others wrote them: only the answers are recorded


def spread(layer, variable):
    """The range to draw from, by what the tensor is for."""
    name, shape = variable.name, variable.shape
    if name in ("kernel", "depthwise_kernel"):
        if isinstance(layer, keras.layers.DepthwiseConv2D):
            fan = math.prod(shape[:2])
        elif isinstance(layer, keras.layers.EinsumDense):
            fan = 128  # heads and width of the encoder, whichever way round
        else:
            fan = math.prod(shape[:-1])
        return -math.sqrt(4.5 / fan), math.sqrt(4.5 / fan)
    known = {"gamma": (0.4, 1.2), "moving_variance": (0.6, 1.4), "variance": (0.6, 1.4), "embeddings": (-1.0, 1.0)}
    return known.get(name, (-0.2, 0.2))


def layers_of(layer):
    """A layer and those inside it that own weights."""
    inner = [l for l in layer._flatten_layers(include_self=True)]
    return {id(w): l for l in inner for w in l._trainable_variables + l._non_trainable_variables}


def draw(net, base):
    """Gives every float weight of the net seeded values; returns the recipes with their bytes."""
    owner = {k: l for top in net.layers for k, l in layers_of(top).items()}
    recipes = []
    for i, variable in enumerate(net.variables):
        if "float32" not in str(variable.dtype):
            continue
        low, high = spread(owner.get(id(variable)), variable)
        recipe = [base + i, low, high, list(variable.shape)]
        values = seeded.uniform(recipe[0], recipe[3], low, high)
        variable.assign(values)
        recipes.append((recipe, values.tobytes()))
    return recipes


def layout(data, recipes):
    """The shard as recipes and, between them, literal bytes."""
    places = []
    for recipe, values in recipes:
        at = data.find(values)
        assert at >= 0, recipe
        while at >= 0:  # Keras stores a variable once for each way to it
            places.append((at, at + len(values), recipe))
            at = data.find(values, at + len(values))
    parts, end = [], 0
    for begin, after, recipe in sorted(places):
        assert begin >= end
        if begin > end:
            parts.append(base64.b64encode(data[end:begin]).decode())
        parts.append(recipe)
        end = after
    if end < len(data):
        parts.append(base64.b64encode(data[end:]).decode())
    return {"sha256": hashlib.sha256(data).hexdigest(), "parts": parts}


def answers(folder, feeds, outputs):
    loaded = tf.saved_model.load(folder)  # owns the variables
    signature = loaded.signatures["serving_default"]
    frozen = convert_variables_to_constants_v2(signature)
    names = {o: t.name for o, t in zip(sorted(signature.structured_outputs), frozen.outputs)}
    if "--names" in sys.argv:
        for operation in frozen.graph.get_operations():
            if operation.type in ("Relu", "Relu6", "AddV2", "Mul", "Softmax", "MatMul", "BiasAdd", "Conv2D"):
                print(operation.name, operation.type)
    wanted = [frozen.graph.get_tensor_by_name(names.get(o, o.removeprefix(models.SERVING))) for o in outputs]
    run = frozen.prune([t.name for t in frozen.inputs], [t.name for t in wanted])
    return dict(zip(outputs, (t.numpy() for t in run(*(tf.constant(feeds[k]) for k in sorted(feeds))))))


def record(name, base):
    keras.backend.clear_session()  # names do not depend on the order
    net = NETS[name]()
    recipes = draw(net, base)
    target = models.HERE / "keras" / name
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        net.export(folder, verbose=False)
        data = (pathlib.Path(folder) / checkpoint.SHARD).read_bytes()
        kept = {f: (pathlib.Path(folder) / f).read_bytes() for f in checkpoint.FILES[:2]}
        kept["weights.json"] = json.dumps(layout(data, recipes)).encode()
        for file, content in kept.items():
            (target / (file.replace("/", ".") + ".gz")).write_bytes(gzip.compress(content, 9, mtime=0))
        results = record_answers(f"keras_{name}", folder)
    print(name, len(data), {k: (v.shape, float(v.min()), float(v.max()), float(v.std())) for k, v in results.items()},
          {f.name: f.stat().st_size for f in target.iterdir()})


def answers_of_session(folder, feeds, outputs):
    """As answers(), by TensorFlow 1's loader, which does not trip over optimizers of old files."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], folder)
        signature = loaded.signature_def["serving_default"]
        fetched = {o: signature.outputs[o].name for o in outputs}
        return session.run(fetched, {signature.inputs[k].name: v for k, v in feeds.items()})


def record_answers(name, folder):
    model = models.MODELS[name]
    find = answers_of_session if name in FOUND else answers
    results = find(str(folder), model.feeds(), model.outputs)
    parts = {}
    for i, (output, every) in enumerate(model.outputs.items()):
        assert every == 1 or results[output].size % every, (output, every)
        parts.update({f"{i}.{k}": v for k, v in models.digest(results[output], every).items()})
    np.savez_compressed(models.RECORDED / f"{name}.npz", **parts)
    return results


if __name__ == "__main__":
    wanted = [a for a in sys.argv[1:] if not a.startswith("--")] or [*NETS, *FOUND]
    for each in wanted:
        if each in NETS:
            record(each, 1000 * (1 + list(NETS).index(each)))
        else:
            record_answers(each, models.MODELS[each].path())
