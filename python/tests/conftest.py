"""Fixtures: models of one op, files of the source tree."""
from __future__ import annotations

import os
import pathlib
import sys

import pytest

os.environ.setdefault("OCL_ICD_VENDORS", "pocl.icd")
import oncilla

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def testdata():
    return ROOT / "testdata"


@pytest.fixture(scope="session")
def quickstart(testdata):
    return testdata / "quickstart/efficientnet_lite0"


def one_op(op, dtype="float32", shape=(None,), session=None, **attributes):
    """A model x:0 -> y:0 on the CPU."""
    graph = oncilla.Graph()
    x = graph.placeholder(dtype, shape, name="x")
    graph.op(op, x, name="y", **attributes)
    return oncilla.load(graph, session=session) if session else oncilla.load(graph, device="cpu")


@pytest.fixture
def neg():
    with one_op("Neg") as model:
        yield lambda x: model.run({"x:0": x}, outputs="y:0")["y:0"]


@pytest.fixture
def slow():
    """A model that runs for many seconds: n:0 counts down a loop of matrix products."""
    import slow_model
    with oncilla.load(slow_model.make(), device="cpu") as model:
        yield model


def run_python(code, *arguments, **options):
    """Runs code in an interpreter of its own, with this package."""
    import subprocess
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(pathlib.Path(oncilla.__file__).parents[1]),
                                                        str(pathlib.Path(__file__).parent)])}
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120, env=env,
                          **options)
