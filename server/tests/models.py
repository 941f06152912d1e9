"""Small models with known answers, written as ONNX files into a repository's layout."""

import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper

PYTHON = sys.executable


def _save(folder, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(
        nodes, "graph",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs],
        [onnx.numpy_helper.from_array(a, n) for n, a in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    folder.mkdir(parents=True, exist_ok=True)
    # Under a temporary name first: a server that polls meanwhile must not see an incomplete file.
    part = folder / "part"
    onnx.save(model, part)
    part.rename(folder / "model.onnx")


def config(root, name, text):
    (root / name).mkdir(parents=True, exist_ok=True)
    (root / name / "config.yaml").write_text(text)


def affine(root, name, version=1, scale=2.0, offset=1.0):
    """y[n,3] = x[n,3] * scale + offset."""
    _save(root / name / str(version),
          [helper.make_node("Mul", ["x", "scale"], ["m"]), helper.make_node("Add", ["m", "offset"], ["y"])],
          [("x", TensorProto.FLOAT, ["n", 3])], [("y", TensorProto.FLOAT, ["n", 3])],
          [("scale", np.array(scale, np.float32)), ("offset", np.array(offset, np.float32))])


def two(root, name, version=1):
    """sum, product of two int32[2,2], and the larger as its index: int64."""
    _save(root / name / str(version),
          [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Mul", ["a", "b"], ["product"]),
           helper.make_node("ArgMax", ["sum"], ["where"], axis=1, keepdims=0)],
          [("a", TensorProto.INT32, [2, 2]), ("b", TensorProto.INT32, [2, 2])],
          [("sum", TensorProto.INT32, [2, 2]), ("product", TensorProto.INT32, [2, 2]),
           ("where", TensorProto.INT64, [2])])


TYPES = {"BOOL": (TensorProto.BOOL, np.bool_), "UINT8": (TensorProto.UINT8, np.uint8),
         "UINT16": (TensorProto.UINT16, np.uint16), "UINT32": (TensorProto.UINT32, np.uint32),
         "UINT64": (TensorProto.UINT64, np.uint64), "INT8": (TensorProto.INT8, np.int8),
         "INT16": (TensorProto.INT16, np.int16), "INT32": (TensorProto.INT32, np.int32),
         "INT64": (TensorProto.INT64, np.int64), "FP16": (TensorProto.FLOAT16, np.float16),
         "FP32": (TensorProto.FLOAT, np.float32), "FP64": (TensorProto.DOUBLE, np.float64),
         "BYTES": (TensorProto.STRING, np.object_)}


def same(root, name, datatype):
    """y = x[n] of any type."""
    onnx_type = TYPES[datatype][0]
    _save(root / name / "1", [helper.make_node("Identity", ["x"], ["y"])],
          [("x", onnx_type, ["n"])], [("y", onnx_type, ["n"])])


def scores(root, name, datatype, batch=False):
    """y = x of one type, where each row has its own scores."""
    shape = ["n", 4] if batch else [2, 2]
    _save(root / name / "1", [helper.make_node("Identity", ["x"], ["y"])],
          [("x", TYPES[datatype][0], shape)], [("y", TYPES[datatype][0], shape)])
    config(root, name, "max_batch: 4\nmax_delay_us: 300000\n" if batch else "")


def ratio(root, name):
    """y[n] = a[n] / b[n]: infinite or no number where b is 0."""
    _save(root / name / "1", [helper.make_node("Div", ["a", "b"], ["y"])],
          [("a", TensorProto.FLOAT, ["n"]), ("b", TensorProto.FLOAT, ["n"])], [("y", TensorProto.FLOAT, ["n"])])


def slow(root, name, size=256, steps=20):
    """y = x[n,size] times a rotation of its columns, `steps` matrix products long: time to be interrupted in."""
    matrix = np.roll(np.eye(size, dtype=np.float32), 1, axis=1)
    nodes, last = [], "x"
    for i in range(steps):
        out = "y" if i == steps - 1 else f"h{i}"
        nodes.append(helper.make_node("MatMul", [last, "m"], [out]))
        last = out
    _save(root / name / "1", nodes, [("x", TensorProto.FLOAT, ["n", size])], [("y", TensorProto.FLOAT, ["n", size])],
          [("m", matrix)])


def wide(root, name, rows):
    """y[n,1] of x[n,1], with 16 KiB for each row on the way; batches of up to `rows`."""
    _save(root / name / "1",
          [helper.make_node("MatMul", ["x", "m"], ["h"]), helper.make_node("Exp", ["h"], ["e"]),
           helper.make_node("MatMul", ["e", "t"], ["y"])],
          [("x", TensorProto.FLOAT, ["n", 1])], [("y", TensorProto.FLOAT, ["n", 1])],
          [("m", np.zeros((1, 4096), np.float32)), ("t", np.ones((4096, 1), np.float32))])
    config(root, name, f"max_batch: {rows}\n")


def folded(root, name, size=1024, steps=40):
    """y = x[n] + c, where c is a long product of constants: a model that takes its time to load."""
    nodes, last = [], "m"
    for i in range(steps):
        nodes.append(helper.make_node("MatMul", [last, "m"], [f"h{i}"]))
        last = f"h{i}"
    nodes += [helper.make_node("ReduceMax", [last], ["c"], keepdims=0), helper.make_node("Add", ["x", "c"], ["y"])]
    _save(root / name / "1", nodes, [("x", TensorProto.FLOAT, ["n"])], [("y", TensorProto.FLOAT, ["n"])],
          [("m", np.roll(np.eye(size, dtype=np.float32), 1, axis=1))])


def row(root, name):
    """y[n] = the value of table[4] at i[n]: an index out of range fails in the run."""
    _save(root / name / "1", [helper.make_node("Gather", ["table", "i"], ["y"])],
          [("i", TensorProto.INT64, ["n"])], [("y", TensorProto.FLOAT, ["n"])],
          [("table", np.array([10, 20, 30, 40], np.float32))])


def mean(root, name):
    """y[1] = the mean of x[n,2]: its first axis is no batch axis, though x has one."""
    _save(root / name / "1", [helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0)],
          [("x", TensorProto.FLOAT, ["n", 2])], [("y", TensorProto.FLOAT, [])])


def running_sum(root, name, config_text=None, batch=False):
    """y = x[n,3] + s, where s is the state: the y before it. Also the number of steps, int64."""
    _save(root / name / "1",
          [helper.make_node("Add", ["x", "s"], ["y"]), helper.make_node("Identity", ["y"], ["s_next"]),
           helper.make_node("Add", ["count", "one"], ["count_next"])],
          [("x", TensorProto.FLOAT, ["n", 3]), ("s", TensorProto.FLOAT, ["n", 3]), ("count", TensorProto.INT64, ["n"])],
          [("y", TensorProto.FLOAT, ["n", 3]), ("s_next", TensorProto.FLOAT, ["n", 3]),
           ("count_next", TensorProto.INT64, ["n"])],
          [("one", np.array(1, np.int64))])
    default = """
sequence_batching:
  max_sequence_idle_microseconds: 60000000
  state: [{input_name: s, output_name: s_next}, {input_name: count, output_name: count_next}]
"""
    config(root, name, ("max_batch: 4\nmax_delay_us: 300000\n" if batch else "") + (config_text or default))


def growing(root, name, config_text):
    """y = the number of all elements that were fed; the state holds all of them, from none."""
    _save(root / name / "1",
          [helper.make_node("Concat", ["all", "x"], ["all_next"], axis=0), helper.make_node("Size", ["all_next"], ["y"])],
          [("x", TensorProto.FLOAT, ["n"]), ("all", TensorProto.FLOAT, ["m"])],
          [("y", TensorProto.INT64, []), ("all_next", TensorProto.FLOAT, ["k"])])
    config(root, name, config_text)


def controlled(root, name, config_text, shape=("n", 1), id_type=TensorProto.UINT64):
    """y[n,1] = s, the sum of x since the sequence's start, plus 100 at its end; the model itself begins the sum anew where it is
    told of a start. Also what it was told: `told`, of start, ready and end, and `who`, the sequence's id."""
    _save(root / name / "1",
          [helper.make_node("Cast", ["ready"], ["ready_f"], to=TensorProto.FLOAT),
           helper.make_node("Cast", ["end"], ["end_f"], to=TensorProto.FLOAT),
           helper.make_node("Reshape", ["start", "column"], ["start_c"]), helper.make_node("Reshape", ["ready_f", "column"], ["ready_c"]),
           helper.make_node("Reshape", ["end_f", "column"], ["end_c"]), helper.make_node("Sub", ["one", "start_c"], ["going"]),
           helper.make_node("Mul", ["s", "going"], ["before"]), helper.make_node("Add", ["before", "x"], ["s_next"]),
           helper.make_node("Mul", ["end_c", "hundred"], ["last"]), helper.make_node("Add", ["s_next", "last"], ["y"]),
           helper.make_node("Concat", ["start_c", "ready_c", "end_c"], ["told"], axis=1), helper.make_node("Identity", ["id"], ["who"])],
          [("x", TensorProto.FLOAT, ["n", 1]), ("s", TensorProto.FLOAT, ["n", 1]), ("start", TensorProto.FLOAT, shape),
           ("ready", TensorProto.BOOL, shape), ("end", TensorProto.INT32, shape), ("id", id_type, shape)],
          [("y", TensorProto.FLOAT, ["n", 1]), ("s_next", TensorProto.FLOAT, ["n", 1]), ("told", TensorProto.FLOAT, ["n", 3]),
           ("who", id_type, shape)],
          [("column", np.array([-1, 1], np.int64)), ("one", np.array(1, np.float32)), ("hundred", np.array(100, np.float32))])
    config(root, name, config_text)


def recurrent(root, name, config_text=None):
    """An LSTM of 5 inputs and 8 cells with seeded weights: y[t,1,1,8] of x[t,1,5], from the states h and c."""
    seeded = np.random.default_rng(7)
    weights = [(n, seeded.uniform(-0.4, 0.4, s).astype(np.float32)) for n, s in
               (("w", (1, 32, 5)), ("r", (1, 32, 8)), ("b", (1, 64)))]
    _save(root / name / "1",
          [helper.make_node("LSTM", ["x", "w", "r", "b", "", "h", "c"], ["y", "hn", "cn"], hidden_size=8)],
          [("x", TensorProto.FLOAT, ["t", 1, 5]), ("h", TensorProto.FLOAT, [1, "b", 8]), ("c", TensorProto.FLOAT, [1, "b", 8])],
          [("y", TensorProto.FLOAT, ["t", 1, 1, 8]), ("hn", TensorProto.FLOAT, [1, "b", 8]),
           ("cn", TensorProto.FLOAT, [1, "b", 8])], [(n, a) for n, a in weights])
    if config_text:
        config(root, name, config_text)
    return dict(weights)


def frozen(root, name):
    """y:0 = x:0[n,3] + x:0, a TensorFlow graph as text, without a signature."""
    folder = root / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pbtxt").write_text("""
        node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
               attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 3 } } } } }
        node { name: 'y' op: 'Add' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
    """)


def broken(root, name):
    folder = root / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(b"\x08\x08this is no model")


def repository(root):
    """The models of the tests."""
    root = pathlib.Path(root)
    affine(root, "affine")
    affine(root, "batched")
    config(root, "batched", "max_batch: 8\nmax_delay_us: 20000\ninstances: 1\nqueue_size: 64\n")
    affine(root, "versions", 1, scale=1.0, offset=0.0)
    affine(root, "versions", 2, scale=10.0, offset=0.0)
    config(root, "versions", "version_policy: all\n")
    two(root, "two")
    for datatype in TYPES:
        same(root, f"same_{datatype.lower()}", datatype)
    ratio(root, "ratio")
    row(root, "row")
    config(root, "row", "max_batch: 4\nmax_delay_us: 50000\n")
    broken(root, "broken")
    mean(root, "mean")
    config(root, "mean", "max_batch: 4\n")
    return root
