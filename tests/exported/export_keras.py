#!/usr/bin/env python3
"""Exports one model of keras_models.py: export_keras.py NAME FOLDER writes saved_model/, frozen.pb and model.tflite, as far as
TensorFlow can; inputs.npz and outputs.npz, by the names of the SavedModel's signature; and forms.json, which says for each form
how its inputs and outputs are called, or why it is absent."""

import json
import os
import pathlib
import sys

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2  # noqa: E402

import keras_hub_models  # noqa: E402, F401
import keras_models  # noqa: E402


def settle(model):
    """Statistics, scales and biases as training leaves them, not zeros and ones."""
    rng = np.random.default_rng(11)
    for weight in model.weights:
        if "moving_mean" in weight.path:
            weight.assign(rng.normal(0, 0.1, weight.shape))
        elif "moving_variance" in weight.path:
            weight.assign(rng.uniform(0.8, 1.2, weight.shape))
        elif str(weight.dtype).startswith("float") and any(name in weight.path for name in ("gamma", "beta", "bias")):
            weight.assign(np.asarray(weight) + rng.normal(0, 0.05, weight.shape))


def named(signature, feeds):
    """The feeds by the signature's names. Keras names arguments after its inputs, in their order."""
    names = list(signature.structured_input_signature[1])
    if isinstance(feeds, dict):
        return {name: feeds[name] for name in names}
    order = [tensor.name.split(":")[0] for tensor in signature.inputs if tensor.dtype != tf.resource]
    return dict(zip([name for name in order if name in names], tf.nest.flatten(feeds)))


def saved(model, feeds, folder):
    model.export(folder / "saved_model", format="tf_saved_model", verbose=False)
    signature = tf.saved_model.load(folder / "saved_model").signatures["serving_default"]
    inputs = named(signature, feeds)
    answers = signature(**{name: tf.constant(value) for name, value in inputs.items()})
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "outputs.npz", **{name: value.numpy().astype("S") if value.dtype == tf.string else value.numpy()
                                        for name, value in answers.items()})
    return {"inputs": {name: name for name in inputs}, "outputs": {name: name for name in answers}}


def frozen(folder, forms):
    module = tf.saved_model.load(folder / "saved_model")
    signature = module.signatures["serving_default"]
    constant = convert_variables_to_constants_v2(signature)
    if any(tensor.dtype == tf.resource for tensor in constant.inputs):
        raise ValueError("TensorFlow leaves a table as an input")
    tf.io.write_graph(constant.graph, str(folder), "frozen.pb", as_text=False)
    given = [tensor.name.split(":")[0] for tensor in constant.inputs]
    made = [tensor.name for tensor in constant.outputs]
    # The graph's inputs have the names of the arguments, and its outputs come in the order of their names.
    return {"inputs": {name: next(each for each in given if each == name or each.endswith("_" + name))
                       for name in forms["saved_model"]["inputs"]},
            "outputs": dict(zip(sorted(forms["saved_model"]["outputs"]), made))}


def tflite(folder, forms):
    converter = tf.lite.TFLiteConverter.from_saved_model(str(folder / "saved_model"))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    (folder / "model.tflite").write_bytes(converter.convert())
    return forms["saved_model"]


def main():
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    keras.utils.set_random_seed(3)
    model, feeds = keras_models.make(name)
    settle(model)
    feeds = tf.nest.map_structure(lambda value: value.astype("S") if value.dtype.kind == "U" else value, feeds)
    model(tf.nest.map_structure(tf.constant, feeds), training=False)
    forms = {}
    makers = {"saved_model": lambda: saved(model, feeds, folder), "frozen.pb": lambda: frozen(folder, forms),
              "model.tflite": lambda: tflite(folder, forms)}
    for form, maker in makers.items():
        try:
            forms[form] = maker()
        except Exception as error:  # of any kind that exporters have
            forms[form] = {"absent": f"{type(error).__name__}: {str(error)[-200:]}"}
            if form == "saved_model":
                raise
    (folder / "forms.json").write_text(json.dumps(forms))


if __name__ == "__main__":
    main()
