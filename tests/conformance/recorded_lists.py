#!/usr/bin/env python3
"""Writes recorded/lists_NAME: lists, optional values and stacked results of loops, of types that share bytes.

    v/bin/python tests/conformance/recorded_lists.py [NAME..]

Rows have three or five elements, so that most of them do not begin at a whole byte. The answers are by the ops' definition:
ONNX Runtime has no lists of these types."""

import shutil
import sys

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

import make_recorded
from make_recorded import CASES, OUT, Numbers

TYPES = {"int4": (TensorProto.INT4, 16), "uint4": (TensorProto.UINT4, 16), "int2": (TensorProto.INT2, 4),
         "uint2": (TensorProto.UINT2, 4), "float4e2m1": (TensorProto.FLOAT4E2M1, 16)}
DTYPES = {"float4e2m1": ml_dtypes.float4_e2m1fn}
node = helper.make_node


class ListCase:
    """Nodes; a fed or expected value that is a list is a sequence."""

    def __init__(self, name, type, nodes, feeds, answers):
        self.name, self.type, self.nodes, self.feeds, self.answers = name, type, nodes, feeds, answers
        assert name not in CASES, name
        CASES[name] = self

    def info(self, name, value):
        if isinstance(value, list):
            return helper.make_tensor_sequence_value_info(name, self.type, None)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)

    def record(self):
        graph = helper.make_graph(self.nodes, self.name, [self.info(*feed) for feed in self.feeds.items()],
                                  [self.info(*answer) for answer in self.answers.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], producer_name="oncilla")
        model.ir_version = 13
        folder = OUT / self.name / "test_data_set_0"
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder.parent / "model.onnx").write_bytes(model.SerializeToString())
        for kind, values in (("input", self.feeds), ("output", self.answers)):
            for i, value in enumerate(values.values()):
                proto = numpy_helper.from_list(value) if isinstance(value, list) else numpy_helper.from_array(value)
                (folder / f"{kind}_{i}.pb").write_bytes(proto.SerializeToString())


def lists(word):
    type, codes = TYPES[word]
    dtype = DTYPES.get(word) or getattr(ml_dtypes, word)
    rng = Numbers(word).rng

    def few(*shape):
        codes_of = rng.integers(0, codes, shape).astype(np.uint8)
        if word.startswith("int"):
            return (codes_of.astype(np.int8) - codes // 2).astype(dtype)
        return codes_of.view(dtype) if word in DTYPES else codes_of.astype(dtype)

    x, y, rows = few(3, 5), few(3, 5), few(3)
    last, two = np.array(-1), np.array([1, 2])
    ListCase(f"lists_{word}_at", type, [node("SequenceConstruct", ["x", "y"], ["q"]), node("SequenceAt", ["q", "i"], ["o"])],
             {"x": x, "y": y, "i": last}, {"o": y})
    ListCase(f"lists_{word}_joined", type, [node("ConcatFromSequence", ["q"], ["o"], axis=1), node("ConcatFromSequence", ["q"], ["s"], axis=1, new_axis=1)],
             {"q": [x, y]}, {"o": np.concatenate([x, y], 1), "s": np.stack([x, y], 1)})
    ListCase(f"lists_{word}_split", type, [node("SplitToSequence", ["x"], ["rows"], axis=0, keepdims=0),
                                           node("SplitToSequence", ["x", "n"], ["parts"], axis=1)],
             {"x": x[:, :3], "n": two}, {"rows": list(x[:, :3]), "parts": [x[:, :1], x[:, 1:3]]})
    ListCase(f"lists_{word}_changed", type, [node("SequenceEmpty", [], ["none"], dtype=type), node("SequenceInsert", ["none", "x"], ["one"]),
                                             node("SequenceInsert", ["one", "y", "first"], ["two"]), node("SequenceErase", ["two", "i"], ["o"])],
             {"x": x, "y": y, "first": np.array(0), "i": last}, {"two": [y, x], "o": [y]})
    ListCase(f"lists_{word}_optional", type, [node("Optional", ["x"], ["q"]), node("OptionalGetElement", ["q"], ["o"]), node("OptionalHasElement", ["q"], ["has"])],
             {"x": x}, {"o": x, "has": np.array(True)})
    row = lambda name: helper.make_tensor_value_info(name, type, [3])
    body = helper.make_graph([node("Identity", ["state"], ["after"]), node("Identity", ["row"], ["out"])], "body",
                             [row("state"), row("row")], [row("after"), row("out")])
    ListCase(f"lists_{word}_scan", type, [node("Scan", ["s", "x"], ["after", "all"], body=body, num_scan_inputs=1)],
             {"s": rows, "x": x[:, :3]}, {"after": rows, "all": x[:, :3]})
    flag = lambda name: helper.make_tensor_value_info(name, TensorProto.BOOL, [])
    body = helper.make_graph([node("Identity", ["go"], ["more"]), node("Identity", ["v"], ["w"]), node("Identity", ["v"], ["out"])], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []), flag("go"), row("v")],
                             [flag("more"), row("w"), row("out")])
    ListCase(f"lists_{word}_loop", type, [node("Loop", ["n", "", "x"], ["o", "all"], body=body)],
             {"n": np.array(3), "x": rows}, {"o": rows, "all": np.stack([rows] * 3)})


if __name__ == "__main__":
    for each in TYPES:
        lists(each)
    make_recorded.record(sys.argv[1:])
