#!/usr/bin/env python3
"""Writes the four nets of bench/peers as ONNX, with seeded random weights: for speed, not for answers.

  make_models.py FOLDER      (needs the packages onnx and numpy)

ResNet-50 v1.5, MobileNetV2 and EfficientNet-B0 for 224x224 pictures, and a MiniLM-L6 encoder (6 layers, width
384, 12 heads) over 128 embeddings; their graphs stand in architectures.py."""
import os, sys
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


PICTURE = [1, 3, 224, 224]
NETS = {"resnet50": (resnet50, PICTURE), "mobilenet_v2": (mobilenet_v2, PICTURE),
        "efficientnet_b0": (efficientnet_b0, PICTURE), "minilm": (encoder, [1, 128, 384])}

if __name__ == "__main__":
    if len(sys.argv) != 2: sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, (make, shape) in NETS.items():
        net = Net()
        net.save(os.path.join(sys.argv[1], name + ".onnx"), shape, make(net))
