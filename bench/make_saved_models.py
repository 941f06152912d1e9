#!/usr/bin/env python3
"""Writes the SavedModels of bench/peers, with seeded random weights: for speed, not for answers.

  make_saved_models.py FOLDER      (needs the packages tensorflow-cpu and numpy)

Keras' MobileNetV2, EfficientNet-B0 and ResNet-50 for one 224x224 picture; two LSTM layers of 256 units over 128 steps of 64
features with a classifier behind them; one of 64 units that skips masked steps, which stays a loop. Each folder has one
signature, whose input is x."""
import os, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np, tensorflow as tf

layers, applications = tf.keras.layers, tf.keras.applications


def spread_weights(model, rng):
    """Weights that keep activations near 1, so that no denormal number slows a net down."""
    for layer in model.layers:
        for weight in layer.weights:
            shape = tuple(weight.shape)
            if "kernel" not in weight.name or len(shape) < 2: continue
            fan = int(np.prod(shape[:-1])) if "Depthwise" not in type(layer).__name__ else shape[0] * shape[1]
            weight.assign((rng.standard_normal(shape) * (1.4 / fan) ** 0.5).astype(np.float32))


def recurrent():
    x = layers.Input((128, 64))
    y = layers.LSTM(256)(layers.LSTM(256, return_sequences=True)(x))
    return tf.keras.Model(x, layers.Dense(10, activation="softmax")(y)), (1, 128, 64)


def masked():
    x = layers.Input((128, 64))
    return tf.keras.Model(x, layers.LSTM(64)(layers.Masking()(x))), (1, 128, 64)


def picture(make):
    return make(weights=None, input_shape=(224, 224, 3)), (1, 224, 224, 3)


MODELS = {"keras_mobilenet_v2": lambda: picture(applications.MobileNetV2),
          "keras_efficientnet_b0": lambda: picture(applications.EfficientNetB0),
          "keras_resnet50": lambda: picture(applications.ResNet50), "keras_lstm": recurrent,
          "keras_masked_lstm": masked}

if __name__ == "__main__":
    if len(sys.argv) != 2: sys.exit(__doc__)
    for name, make in MODELS.items():
        if os.path.exists(os.path.join(sys.argv[1], name)): continue
        model, shape = make()
        spread_weights(model, np.random.default_rng(0))
        module = tf.Module()
        module.model = model
        module.serve = tf.function(lambda x: {"y": model(x, training=False)},
                                   input_signature=[tf.TensorSpec(shape, tf.float32, name="x")])
        tf.saved_model.save(module, os.path.join(sys.argv[1], name), signatures=module.serve)
        print(name, flush=True)
