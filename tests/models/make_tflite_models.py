#!/usr/bin/env python3
"""Writes the small models of testdata/tflite (model_*.tflite, refused.tflite), as TensorFlow's converter makes them, with answers:

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0 ai-edge-litert==2.3.0
  v/bin/python tests/models/make_tflite_models.py testdata/tflite [name..]

Each signature is run by LiteRT's own kernels; feeds and answers stand in its subgraph as constants that nothing reads,
like those of the cases (tflite_cases/tflite_recorder.py), and tests/unit/tflite_ops_test.cc runs both."""

import os
import sys

import numpy as np
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import flexbuffers
from ai_edge_litert.interpreter import Interpreter, OpResolverType

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tflite_cases"))
from tflite_recorder import Fed, Given, Maker, Op, Out, State, build, options, packed, packed_model, random  # noqa: E402


def convnet():
    """Weights of 16 bits behind DEQUANTIZE; the batch is open."""
    tf.keras.utils.set_random_seed(1)
    net = tf.keras.Sequential([
        tf.keras.layers.Input([8, 8, 3]), tf.keras.layers.Conv2D(4, 3, 2, "same", activation="relu"),
        tf.keras.layers.DepthwiseConv2D(3, padding="same"), tf.keras.layers.BatchNormalization(),
        tf.keras.layers.ReLU(6.0), tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(5, "softmax")])
    converter = tf.lite.TFLiteConverter.from_keras_model(net)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.target_spec.supported_types = [tf.float16]
    return converter.convert(), {"serving_default": [random("image", [1, 8, 8, 3])]}


def from_functions(module, functions):
    converter = tf.lite.TFLiteConverter.from_concrete_functions(functions, module)
    return converter.convert()


def loop():
    """WHILE and IF, with what a loop only hands on."""

    class Loop(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2, 3]), tf.TensorSpec([], tf.int32)])
        def grow(self, x, n):
            i = tf.constant(0)
            while i < n:
                x = x * 1.5 + tf.cast(i, tf.float32)
                i += 1
            if tf.reduce_sum(x) > 10.0:
                y = x - 1.0
            else:
                y = tf.sin(x)
            return {"y": y, "i": i}

    module = Loop()
    data = from_functions(module, [module.grow.get_concrete_function()])
    return data, {"serving_default": {"x": random("x", [2, 3]), "n": np.int32(4)}}


def state():
    """A variable that one call changes for the next."""

    class Counter(tf.Module):
        def __init__(self):
            self.sum = tf.Variable(tf.constant([1.0, 2.0, 3.0]))

        @tf.function(input_signature=[tf.TensorSpec([3])])
        def add(self, x):
            self.sum.assign(self.sum + x)
            return {"sum": self.sum.read_value()}

    module = Counter()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.add.get_concrete_function()], module)
    converter.experimental_enable_resource_variables = True
    return converter.convert(), {"serving_default": {"x": random("x", [3])}}


def lstm():
    """Two layers, which the converter writes as loops."""
    tf.keras.utils.set_random_seed(2)
    net = tf.keras.Sequential([tf.keras.layers.Input([6, 4], batch_size=2), tf.keras.layers.LSTM(5, return_sequences=True),
                               tf.keras.layers.LSTM(3)])
    data = tf.lite.TFLiteConverter.from_keras_model(net).convert()
    return data, {"serving_default": [random("steps", [2, 6, 4])]}


def composite():
    """STABLEHLO_COMPOSITE, which stands for a subgraph."""
    state = State()
    state.begin()
    x = random("x", [2, 3])
    build(state, "outer", Op("TANH", [x], [Out(shape=[2, 3])]))
    build(state, "inner", Op("EXP", [x], [Out(shape=[2, 3])]))
    del state.signatures[1]
    call, code = state.subgraphs[0].operators[0], schema.OperatorCodeT()
    code.builtinCode, code.deprecatedBuiltinCode, code.version = schema.BuiltinOperator.STABLEHLO_COMPOSITE, 127, 1
    state.codes[call.opcodeIndex] = code
    call.builtinOptions2Type = schema.BuiltinOptions2.StableHLOCompositeOptions
    call.builtinOptions2 = schema.StableHLOCompositeOptionsT()
    attributes = flexbuffers.Builder()
    with attributes.Map():
        attributes.Key("none")
        attributes.Int(0)
    call.builtinOptions2.compositeAttributes = np.frombuffer(bytes(attributes.Finish()), np.uint8)
    call.builtinOptions2.name, call.builtinOptions2.decompositionSubgraphIndex = "exp", 1
    return packed(state), {"outer": [x]}


def refused():
    """What the engine does not compute: integers that stand for real numbers, custom ops, an option that no row asks for."""
    state = State()
    state.begin()
    x = random("x", [2, 4])
    weights = Given(random("w", [3, 4], -127, 127, np.int8), (0.01, 0))
    q = Fed(random("q", [2, 4], -128, 127, np.int8), (0.1, 3))
    dense = options("FullyConnectedOptions")
    build(state, "quantised", Op("TANH", [q], [Out(np.int8, [2, 4], (0.0078125, 0))]))
    build(state, "weights_alone", Op("FULLY_CONNECTED", [x, weights], [Out(shape=[2, 3])], dense))
    build(state, "rescaled", Op("RESHAPE", [q, Given(np.array([8], np.int32))],
                                [Out(np.int8, [8], (0.2, 3))], options("ReshapeOptions")))
    build(state, "custom", Op("Unheard", [x], [Out(shape=[2, 4])], custom=b"\0\0"))
    build(state, "flex", Op("FlexErf", [x], [Out(shape=[2, 4])], custom=b"\0\0"))
    build(state, "wrong_options", Op("SOFTMAX", [x], [Out(shape=[2, 4])], options("ConcatenationOptions", axis=1)))
    build(state, "wrong_type", Op("EXP", [x], [Out(np.int32, [2, 4])]))
    return packed(state), None


def with_answers(data, feeds):
    if feeds is None:
        return data

    interpreter = Interpreter(model_content=data,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    for signature in model.signatureDefs:
        key = signature.signatureKey.decode()
        given = feeds[key]
        names = [m.name.decode() for m in signature.inputs]
        if not isinstance(given, dict):
            given = dict(zip(names, given))
        runner = interpreter.get_signature_runner(key)
        answers = runner(**given)
        again = runner(**given)
        maker = Maker(model, model.subgraphs[signature.subgraphIndex])
        for name, value in given.items():
            maker.constant(f"feed:{name}", value)
        for name, value in answers.items():
            maker.constant(f"expect:{name}", value)
            if not np.array_equal(value, again[name]):
                maker.constant(f"again:{name}", again[name])
    return packed_model(model)


MODELS = {f.__name__: f for f in (convnet, loop, state, lstm, composite, refused)}

if __name__ == "__main__":
    for name in sys.argv[2:] or MODELS:
        data = with_answers(*MODELS[name]())
        path = os.path.join(sys.argv[1], f"{name}.tflite" if name == "refused" else f"model_{name}.tflite")
        with open(path, "wb") as file:
            file.write(data)
        print(path, len(data), "bytes")
