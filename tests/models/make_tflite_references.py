#!/usr/bin/env python3
"""Records what LiteRT answers on the TFLite models of models.py, in recorded/NAME.npz.

    python3 -m venv v && v/bin/pip install ai-edge-litert==2.3.0
    v/bin/python tests/models/make_tflite_references.py [NAME..]

LiteRT's own kernels run, none of its delegates. It has not MediaPipe's transposed convolution with a bias, which is put
down as its own TRANSPOSE_CONV in a copy in memory: with these strides and filters they are the same."""

import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import models


def without_customs(data):
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    graph = model.subgraphs[0]
    for op in graph.operators:
        code = model.operatorCodes[op.opcodeIndex]
        if code.customCode != b"Convolution2DTransposeBias":
            continue
        padding, width, height = np.array(op.customOptions, np.uint8).view(np.int32)
        assert padding == 1 and (width, height) == (2, 2) and list(graph.tensors[op.inputs[1]].shape[1:3]) == [2, 2]
        sizes = schema.TensorT()
        sizes.name, sizes.type, sizes.shape = b"sizes", 2, np.array([4], np.int32)
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.array(graph.tensors[op.outputs[0]].shape, np.int32).tobytes(), np.uint8)
        model.buffers.append(buffer)
        sizes.buffer = len(model.buffers) - 1
        graph.tensors.append(sizes)
        op.inputs = np.array([len(graph.tensors) - 1, op.inputs[1], op.inputs[0], op.inputs[2]], np.int32)
        op.customOptions, op.builtinOptionsType = None, schema.BuiltinOptions.TransposeConvOptions
        op.builtinOptions = schema.TransposeConvOptionsT()
        op.builtinOptions.padding, op.builtinOptions.strideW, op.builtinOptions.strideH = 0, 2, 2
        code.customCode, code.builtinCode, code.deprecatedBuiltinCode, code.version = None, 67, 67, 3
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def record(name):
    model = models.MODELS[name]
    data = model.path().read_bytes()
    if b"Convolution2DTransposeBias" in data:
        data = without_customs(data)
    interpreter = Interpreter(model_content=data,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    feeds = model.feeds()
    if keys := list(interpreter.get_signature_list()):
        results = interpreter.get_signature_runner(keys[0])(**feeds)
    else:
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], feeds[detail["name"]])
        interpreter.invoke()
        results = {d["name"]: np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()}
    parts = {}
    for i, (output, every) in enumerate(model.outputs.items()):
        assert every == 1 or results[output].size % every, (output, every)
        parts.update({f"{i}.{k}": v for k, v in models.digest(results[output], every).items()})
    np.savez_compressed(models.RECORDED / f"{name}.npz", **parts)
    print(name, {k: (v.shape, float(v.min()), float(v.max())) for k, v in results.items()},
          (models.RECORDED / f"{name}.npz").stat().st_size)


if __name__ == "__main__":
    for each in sys.argv[1:] or [n for n, m in models.MODELS.items() if m.path().suffix == ".tflite"]:
        record(each)
