#!/usr/bin/env python3
"""Writes the nets of bench/peers as ONNX, with seeded random weights: for speed, not for answers.

  make_models.py FOLDER [NAME..]      (needs the packages onnx and numpy; onnxruntime for those named _int8)

ResNet-50 v1.5 (for one picture of 224x224 and for eight), MobileNetV2 and EfficientNet-B0, a MiniLM-L6 encoder (6 layers,
width 384, 12 heads) and a BERT-base (12 layers, width 768) over 128 embeddings; their graphs stand in architectures.py. Those
named _int8 are quantised by ONNX Runtime's tools: pictures' nets statically (u8 activations, s8 weights per channel, QDQ), the
encoder dynamically (integer products of what is quantised while running)."""
import os, sys, tempfile
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from architectures import Builder, efficientnet_b0, encoder, mobilenet_v2, resnet50


class Net(Builder):
    """Nodes and weights in the order in which they are written down."""

    def __init__(self, opset=17):
        self.nodes, self.weights, self.rng, self.opset = [], [], np.random.default_rng(0), opset

    def weight(self, values):
        name = "w%d" % len(self.weights)
        self.weights.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def normal(self, *shape, spread):
        return self.weight((self.rng.standard_normal(shape) * spread).astype(np.float32))

    def ints(self, values):
        return self.weight(np.array(values, np.int64))

    def number(self, value):
        return self.weight(np.float32(value))

    def full(self, value, size):
        return self.weight(np.full(size, value, np.float32))

    def op(self, kind, *inputs, **attributes):
        name = "%s_%d" % (kind, len(self.nodes))
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def save(self, path, shape, output):
        value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        graph = helper.make_graph(self.nodes, "net", [value("x", shape)], [value(output, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        save(model, path)


def bert_base(net):
    return encoder(net, 128, 768, 12, 12, 3072)


def quantise(source, path, shape):
    """An int8 net of a float one; calibrated on four inputs such as the bench feeds."""
    from onnxruntime import quantization
    int8 = quantization.QuantType
    with tempfile.TemporaryDirectory() as folder:
        ready = os.path.join(folder, "ready.onnx")
        quantization.quant_pre_process(source, ready, skip_symbolic_shape=True)
        if len(shape) != 4: return quantization.quantize_dynamic(ready, path, weight_type=int8.QInt8, per_channel=True)
        rng = np.random.default_rng(2)
        inputs = iter([{"x": rng.random(shape, dtype=np.float32)} for _ in range(4)])

        class Reader(quantization.CalibrationDataReader):
            def get_next(self):
                return next(inputs, None)

        quantization.quantize_static(ready, path, Reader(), per_channel=True, activation_type=int8.QUInt8, weight_type=int8.QInt8)


PICTURE, WORDS = [1, 3, 224, 224], [1, 128, 384]
NETS = {"resnet50": (resnet50, PICTURE), "resnet50_b8": (resnet50, [8, 3, 224, 224]), "mobilenet_v2": (mobilenet_v2, PICTURE),
        "efficientnet_b0": (efficientnet_b0, PICTURE), "minilm": (encoder, WORDS), "bert_base": (bert_base, [1, 128, 768])}
INT8_NETS = {name + "_int8": name for name in ("resnet50", "mobilenet_v2", "minilm")}


def make(folder, name):
    """The path of a net's file, written if it is not there yet."""
    path = os.path.join(folder, name + ".onnx")
    if os.path.exists(path): return path
    part = os.path.join(folder, name + ".part.onnx")  # whole or not there, also when this is interrupted
    if name in INT8_NETS:
        quantise(make(folder, INT8_NETS[name]), part, NETS[INT8_NETS[name]][1])
    else:
        graph, shape = NETS[name]
        net = Net()
        net.save(part, shape, graph(net))
    os.replace(part, path)
    return path


if __name__ == "__main__":
    if len(sys.argv) < 2: sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for each in sys.argv[2:] or [*NETS, *INT8_NETS]: make(sys.argv[1], each)
