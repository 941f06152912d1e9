#!/usr/bin/env python3
"""Writes the small models of testdata/tflite (model_*.tflite, refused.tflite), as TensorFlow's converter makes them, with answers:

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0 ai-edge-litert==2.3.0
  v/bin/python tests/models/make_tflite_models.py testdata/tflite [name..]

Each signature is run by LiteRT's own kernels; feeds and answers stand in its subgraph as constants that nothing reads,
like those of the cases (tflite_cases/tflite_recorder.py), and tests/unit/import/tflite_ops_test.cc runs both."""

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


def tables():
    """Words to numbers and back, by tables that are filled once."""

    class Tables(tf.Module):
        def __init__(self):
            given = tf.lookup.KeyValueTensorInitializer
            numbers = tf.constant([3, 5, 7, -1], tf.int64)
            self.numbers = tf.lookup.StaticHashTable(given(["red", "green", "blue", "\u00e4"], numbers), -100)
            self.words = tf.lookup.StaticHashTable(given(numbers[:3], ["rouge", "vert", "bleu"]), "?")

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.string), tf.TensorSpec([3], tf.int64)])
        def __call__(self, words, numbers):
            found = self.numbers.lookup(words)
            return {"numbers": found, "words": self.words.lookup(found), "others": self.words.lookup(numbers), "size": self.numbers.size()}

    module = Tables()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
    converter.experimental_enable_resource_variables = True
    feeds = {"words": np.array([["red", "x"], ["\u00e4", "blue"]], object), "numbers": np.array([5, 6, 7], np.int64)}
    return converter.convert(), {"serving_default": feeds}


def quantised_state():
    """A variable of bytes, which every run replaces: what it held comes out, and twice that."""
    state = State()
    state.begin()
    x = Fed(random("x", [2, 3], -60, 60, np.int8), (0.1, 0))
    build(state, "outer", Op("ADD", [x, Given(x.value, x.q)], [Out(np.int8, [2, 3], (0.2, 0))], options("AddOptions")))
    main, first = Maker(state, state.subgraphs[0]), Maker(state)
    for maker in (main, first):
        handle = maker.tensor("handle", [], np.int32)
        maker.graph.tensors[handle].type = 13  # RESOURCE
        maker.op(Op("VAR_HANDLE", [], [], options("VarHandleOptions", container="", sharedName="kept")), [], [handle])
        if maker is first:
            value = maker.constant("start", np.arange(6, dtype=np.int8).reshape(2, 3), (0.1, 0))
        else:
            value = maker.graph.inputs[0]
            held = maker.tensor("held", [2, 3], np.int8, None, (0.1, 0))
            maker.op(Op("READ_VARIABLE", [], [], options("ReadVariableOptions")), [handle], [held])
            maker.graph.operators[0].inputs = np.array([held, held], np.int32)
        maker.op(Op("ASSIGN_VARIABLE", [], [], options("AssignVariableOptions")), [handle, value], [])
    first.graph.name = "first"
    state.subgraphs.append(first.graph)
    main.op(Op("CALL_ONCE", [], [], options("CallOnceOptions", initSubgraphIndex=1)), [], [])
    ops = main.graph.operators  # the sum was made first
    main.graph.operators = [ops[-1], *ops[1:-1], ops[0]]
    return packed(state), {"outer": [x.value]}


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


def quantised(net, shape, wide=False, dynamic=False):
    """As the converter quantises a net with samples of its input; or, dynamic, its weights alone."""
    converter = tf.lite.TFLiteConverter.from_keras_model(net)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if dynamic:
        return converter.convert()
    converter.representative_dataset = lambda: ([random(i, [1] + shape)] for i in range(20))
    kind = tf.int16 if wide else tf.int8
    sets = tf.lite.OpsSet
    converter.target_spec.supported_ops = [
        sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 if wide else sets.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = kind
    return converter.convert()


def mobile(swish=None):
    """What MobileNets consist of: inverted residuals, squeezing and exciting, hard swish (or what is given) and its kin."""
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers

    def block(x, wide, out, stride, squeeze, activation):
        y = activation(layers.BatchNormalization()(layers.Conv2D(wide, 1, use_bias=False)(x)))
        y = activation(layers.BatchNormalization()(layers.DepthwiseConv2D(3, stride, "same", use_bias=False)(y)))
        if squeeze:
            gate = layers.GlobalAveragePooling2D(keepdims=True)(y)
            gate = layers.Conv2D(wide, 1)(layers.ReLU()(layers.Conv2D(8, 1)(gate)))
            y = y * (layers.ReLU(6.0)(gate + 3.0) * (1.0 / 6.0))
        y = layers.BatchNormalization()(layers.Conv2D(out, 1, use_bias=False)(y))
        return x + y if stride == 1 and x.shape[-1] == out else y

    swish = swish or (lambda x: x * (layers.ReLU(6.0)(x + 3.0) * (1.0 / 6.0)))
    x = image = layers.Input([32, 32, 3])
    x = swish(layers.BatchNormalization()(layers.Conv2D(8, 3, 2, "same", use_bias=False)(x)))
    x = block(x, 16, 8, 1, True, layers.ReLU(6.0))
    x = block(x, 24, 12, 2, False, layers.ReLU())
    x = block(x, 32, 12, 1, True, swish)
    x = layers.UpSampling2D(2, interpolation="bilinear")(layers.MaxPooling2D(2)(x))
    x = layers.Concatenate()([x, layers.LeakyReLU(0.2)(x)])
    x = layers.GlobalAveragePooling2D()(swish(layers.Conv2D(24, 1)(x)))
    return tf.keras.Model(image, layers.Dense(10, "softmax")(x))


def int8():
    return quantised(mobile(), [32, 32, 3]), {"serving_default": [random("image", [1, 32, 32, 3], -128, 127, np.int8)]}, {"steps": 1}


def int16x8():
    """Activations of 16 bits, weights of 8. The converter has no hard swish of these."""
    return quantised(mobile(tf.keras.layers.ReLU(6.0)), [32, 32, 3], wide=True), {"serving_default": [random("image", [1, 32, 32, 3], -32768, 32767, np.int16)]}, {}


def dynamic():
    """Weights of 8 bits, and numbers as they are; the batch is open."""
    return quantised(mobile(), [32, 32, 3], dynamic=True), {"serving_default": [random("image", [1, 32, 32, 3])]}, {"part": 2e-2}


def keywords():
    """A small net on the spectrogram of a word, with sigmoid and tanh gates."""
    tf.keras.utils.set_random_seed(4)
    layers = tf.keras.layers
    x = sound = layers.Input([49, 10, 1])
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, [10, 4], 2, "same", use_bias=False)(x)))
    for _ in range(2):
        x = layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, 1, "same", use_bias=False)(x)))
        x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 1, use_bias=False)(x)))
    x = layers.Reshape([25, 80])(x)
    x = layers.Conv1D(16, 3, 1, "same", activation="tanh")(x) * layers.Conv1D(16, 3, 1, "same", activation="sigmoid")(x)
    x = layers.AveragePooling1D(5)(x)
    x = layers.Dense(12, "softmax")(layers.Dense(16, "relu")(layers.Flatten()(x)))
    net = tf.keras.Model(sound, x)
    return quantised(net, [49, 10, 1]), {"serving_default": [random("sound", [1, 49, 10, 1], -128, 127, np.int8)]}, {"steps": 1}


def spectrum():
    """Complex numbers between ops."""

    class Spectrum(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([1000]), tf.TensorSpec([2, 4, 8])])
        def __call__(self, sound, image):
            bins = tf.signal.stft(sound, 128, 64, 128)
            plane = tf.signal.rfft2d(image)
            return {"size": tf.abs(bins), "real": tf.math.real(bins), "imag": tf.math.imag(bins),
                    "plane_real": tf.math.real(plane), "plane_imag": tf.math.imag(plane)}

    module = Spectrum()
    data = from_functions(module, [module.__call__.get_concrete_function()])
    return data, {"serving_default": {"sound": random("sound", [1000]), "image": random("image", [2, 4, 8])}}


def select():
    """TensorFlow's own ops (Flex) among TFLite's, which TensorFlow answers."""

    class Select(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([3, 4, 4]), tf.TensorSpec([3, 4])])
        def __call__(self, x, y):
            square = tf.matmul(x, x, transpose_b=True) + 3.0 * tf.eye(4)
            lower = tf.linalg.band_part(tf.linalg.cholesky(square), 1, 0)
            rolled = tf.roll(tf.math.erf(y), [1, -2], [0, 1])
            top, places = tf.math.top_k(tf.math.lgamma(y + 3.0), 2)
            return {"lower": lower, "rolled": tf.math.cumprod(rolled, 1) * 2.0, "top": top, "places": places,
                    "counts": tf.math.bincount(places[:, 0], minlength=4, maxlength=4)}

    module = Select()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    return converter.convert(), {"serving_default": {"x": random("x", [3, 4, 4]), "y": random("y", [3, 4])}}, module


def select_more():
    """TensorFlow's own ops on lists in a loop, on complex numbers, and on a table that LiteRT has not."""

    class More(tf.Module):
        def __init__(self):
            given = tf.lookup.KeyValueTensorInitializer(tf.constant([20, 10, 30], tf.int64), tf.constant([2, 1, 3], tf.int64))
            self.table = tf.lookup.StaticHashTable(given, -1)

        def layer(self, x):
            w, u = tf.constant(random("w", [4, 3])), tf.constant(random("u", [3, 3]))
            def step(t, h, rows):
                h = tf.tanh(x[:, t] @ w + h @ u)
                return t + 1, h, rows.write(t, h)
            rows = tf.TensorArray(tf.float32, 5, element_shape=[None, 3])
            rows = tf.while_loop(lambda t, h, rows: t < 5, step, (0, tf.zeros([tf.shape(x)[0], 3]), rows))[2]
            return tf.transpose(rows.stack(), [1, 0, 2])

        @tf.function(input_signature=[tf.TensorSpec([None, 5, 4]), tf.TensorSpec([None, 2], tf.int64)])
        def __call__(self, x, keys):
            bins = tf.signal.fft2d(tf.complex(x, x * 0.5))
            frames = tf.signal.stft(x[:, :, 0], 4, 1, 4)
            return {"layer": self.layer(x), "real": tf.math.real(bins), "size": tf.abs(bins),
                    "phase": tf.math.imag(frames), "found": self.table.lookup(keys)}

    module = More()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    feeds = {"x": random("x", [2, 5, 4]), "keys": np.array([[10, 11], [30, 20], [7, 10]], np.int64)}
    return converter.convert(), {"serving_default": feeds}, module


def refused():
    """What the engine does not compute: integers that stand for real numbers, custom ops, an option that no row asks for."""
    state = State()
    state.begin()
    x = random("x", [2, 4])
    weights = Given(random("w", [3, 4], -127, 127, np.int8), (0.01, 5))
    q = Fed(random("q", [2, 4], -128, 127, np.int8), (0.1, 3))
    dense = options("FullyConnectedOptions")
    build(state, "quantised", Op("POW", [q, q], [Out(np.int8, [2, 4], (0.0078125, 0))]))
    build(state, "weights_alone", Op("FULLY_CONNECTED", [x, weights], [Out(shape=[2, 3])], dense))
    build(state, "rescaled", Op("RESHAPE", [q, Given(np.array([8], np.int32))],
                                [Out(np.int8, [8], (0.2, 3))], options("ReshapeOptions")))
    build(state, "custom", Op("Unheard", [x], [Out(shape=[2, 4])], custom=b"\0\0"))
    build(state, "flex", Op("FlexUnheard", [x], [Out(shape=[2, 4])], custom=b"\0\0"))
    build(state, "flex_damaged", Op("FlexErf", [x], [Out(shape=[2, 4])], custom=b"\0\0"))
    build(state, "wrong_options", Op("SOFTMAX", [x], [Out(shape=[2, 4])], options("ConcatenationOptions", axis=1)))
    build(state, "wrong_type", Op("EXP", [x], [Out(np.int32, [2, 4])]))
    return packed(state), None


def with_answers(data, feeds, limits=None):
    """limits: what tflite_recorder.py calls steps and part. Given, LiteRT's reference kernels answer. A module answers itself."""
    if feeds is None:
        return data

    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if limits is None else OpResolverType.BUILTIN_REF
    if callable(limits):
        module, limits = limits, None
        runner_of = lambda key: lambda **given: {k: v.numpy() for k, v in module(**{k: tf.constant(v) for k, v in given.items()}).items()}
    else:
        interpreter = Interpreter(model_content=data, experimental_op_resolver_type=kernels)
        interpreter.allocate_tensors()
        runner_of = interpreter.get_signature_runner
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    for signature in model.signatureDefs:
        key = signature.signatureKey.decode()
        given = feeds[key]
        names = [m.name.decode() for m in signature.inputs]
        if not isinstance(given, dict):
            given = dict(zip(names, given))
        runner = runner_of(key)
        answers = runner(**given)
        again = runner(**given)
        maker = Maker(model, model.subgraphs[signature.subgraphIndex])
        for name, value in (limits or {}).items():
            maker.constant(name, np.float32(value))
        for name, value in given.items():
            maker.constant(f"feed:{name}", value)
        for name, value in answers.items():
            maker.constant(f"expect:{name}", value)
            if not np.array_equal(value, again[name]):
                maker.constant(f"again:{name}", again[name])
    return packed_model(model)


MODELS = {f.__name__: f for f in (convnet, loop, state, tables, quantised_state, lstm, composite, int8, int16x8, dynamic, keywords, spectrum, select, select_more, refused)}

if __name__ == "__main__":
    for name in sys.argv[2:] or MODELS:
        data = with_answers(*MODELS[name]())
        path = os.path.join(sys.argv[1], f"{name}.tflite" if name == "refused" else f"model_{name}.tflite")
        with open(path, "wb") as file:
            file.write(data)
        print(path, len(data), "bytes")
