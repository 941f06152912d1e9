#!/usr/bin/env python3
"""Writes the node tests of the installed onnx package as folders of models and data, which it ships as code alone.

    v/bin/pip install onnx==1.23.2
    v/bin/python tests/conformance/write_node_tests.py FOLDER
    build/release/tests/onnx_tests --device cpu --failures tests/conformance/onnx_1_23_failures.txt FOLDER"""

import pathlib
import sys
import warnings

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

FORMS = {"map_type": numpy_helper.from_dict, "sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional}


def proto(value, info):
    if isinstance(value, TensorProto):
        value.name = value.name or info.name
        return value
    form = FORMS.get(info.type.WhichOneof("value"))
    return form(value, info.name) if form else numpy_helper.from_array(np.asarray(value), info.name)


def write(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir(exist_ok=True)
        given = [value for value in inputs if value is not None]
        for kind, values, infos in (("input", given, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for k, (value, info) in enumerate(zip(values, infos)):
                (data / f"{kind}_{k}.pb").write_bytes(proto(value, info).SerializeToString())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    cases = collect_testcases(None)
    for each in cases:
        write(each, pathlib.Path(sys.argv[1]) / each.name)
    print(len(cases), "tests in", sys.argv[1])
