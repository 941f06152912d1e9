"""Fixtures: the provider's library, its devices, models made of nodes, and sessions with and without it.

The library is $ONCILLA_ORT_EP, or the one of the installed package oncilla_onnxruntime."""
import os
import pathlib
import sys

os.environ.setdefault("OCL_ICD_VENDORS", "pocl.icd")

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parents[3]
if "ONCILLA_ORT_EP" in os.environ:
    sys.path.insert(0, str(ROOT / "integrations/onnxruntime/python"))
sys.path.insert(0, str(ROOT / "tests/models"))
import oncilla_onnxruntime as provider

provider.register()
# Before 1.27, nodes with graphs stay with ONNX Runtime.
HOLDERS = tuple(int(n) for n in onnxruntime.__version__.split(".")[:2]) >= (1, 27)
NAMES = [d.ep_metadata["oncilla_device"] for d in onnxruntime.get_ep_devices() if d.ep_name == provider.EP_NAME]


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", NAMES)


def value(name, shape, dtype=onnx.TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, values=()):
    """A serialized model; nodes are (op, inputs, outputs, attributes..)."""
    made = []
    for number, (op, reads, writes, *attributes) in enumerate(nodes):
        domain, _, kind = op.rpartition(".")
        made.append(helper.make_node(kind, reads, writes, name=f"n{number}", domain=domain, **(attributes[0] if attributes else {})))
    graph = helper.make_graph(made, "graph", inputs, outputs, list(initializers), value_info=list(values))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def session(of, on="cpu", session_options=None, severity=3, **options):
    """With the provider on a device, or an exception: Python's own fallback to the CPU provider is off."""
    so = session_options or onnxruntime.SessionOptions()
    so.log_severity_level = severity
    so.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    so.add_provider_for_devices(provider.devices(on), provider.provider_options(so, **options))
    return onnxruntime.InferenceSession(of, so, enable_fallback=0)


def reference(of):
    return onnxruntime.InferenceSession(of, providers=["CPUExecutionProvider"])


def parts(of):
    """The parts that the provider took, each as the ops in it, and the ops that stayed."""
    taken, left = [], []
    for part in of.get_provider_graph_assignment_info():
        ops = [node.op_type for node in part.get_nodes()]
        if part.ep_name == provider.EP_NAME:
            taken.append(ops)
        else:
            left += ops
    return taken, left


def close(ours, theirs, tolerance=1e-4, scale=0.0):
    """Answers that agree within a share of the largest number of each output, or of `scale`; all else must be equal."""
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs):
        assert mine.dtype == other.dtype and mine.shape == other.shape
        if mine.dtype.kind != "f":
            assert np.array_equal(mine, other)
            continue
        mine, other = mine.astype(np.float64), other.astype(np.float64)
        largest = np.nanmax(np.abs(other), initial=scale, where=np.isfinite(other))
        assert np.allclose(mine, other, rtol=tolerance, atol=tolerance * largest + 1e-9, equal_nan=True)
