"""Which nodes are taken: around unsupported ones, without cycles, with readable reasons."""
import numpy as np
import onnx
import onnxruntime
import oncilla_onnxruntime as provider
import pytest
from conftest import HOLDERS, close, model, parts, reference, session, value
from onnx import helper, numpy_helper

STAYS = "Softsign"  # excluded in these tests, so that they hold whatever the engine learns
rng = np.random.default_rng(3)


def report_of(graph="graph"):
    return [g for s in provider.report("json") for g in s["graphs"] if g["graph"] == graph][-1]


def test_a_node_in_the_middle_stays(device):
    of = model([("Relu", ["x"], ["a"]), ("Mul", ["a", "x"], ["b"]), (STAYS, ["b"], ["c"]), ("Add", ["c", "x"], ["d"]), ("Tanh", ["d"], ["y"])],
               [value("x", ["n", 4])], [value("y", ["n", 4])])
    ours = session(of, device, exclude_ops=STAYS)
    for n in (1, 6):
        feed = {"x": rng.normal(size=(n, 4)).astype(np.float32)}
        close(ours.run(None, feed), reference(of).run(None, feed))
    assert parts(ours) == ([["Relu", "Mul"], ["Add", "Tanh"]], [STAYS])
    told = report_of()
    assert (told["nodes"], told["taken"], told["parts"]) == (5, 4, [2, 2])
    assert told["left"] == [{"node": "n2", "op": STAYS, "reason": "it is excluded (exclude_ops)"}]
    assert "left: 'n2' (Softsign): it is excluded (exclude_ops)" in provider.report()


def test_what_the_engine_refuses_stays(device):
    """With the importer's reason: ONNX Runtime has tensors of any rank."""
    deep = numpy_helper.from_array(np.array([1] * 39 + [4]), "deep")
    of = model([("Relu", ["x"], ["a"]), ("Neg", ["a"], ["b"]), ("Reshape", ["b", "deep"], ["c"]), ("Reshape", ["c", "flat"], ["d"]), ("Exp", ["d"], ["e"]),
                ("Tanh", ["e"], ["y"])], [value("x", [4])], [value("y", [4])], [deep, numpy_helper.from_array(np.array([4]), "flat")])
    feed = {"x": rng.normal(size=4).astype(np.float32)}
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    ours = session(of, device, session_options=plain)
    close(ours.run(None, feed), reference(of).run(None, feed))
    assert parts(ours) == ([["Relu", "Neg"], ["Exp", "Tanh"]], ["Reshape", "Reshape"])
    assert "rank" in report_of()["left"][0]["reason"]


def test_ops_are_excluded_by_domain_and_name():
    of = model([("Relu", ["x"], ["a"]), ("com.microsoft.QuickGelu", ["a"], ["b"]), ("Neg", ["b"], ["c"]), ("Exp", ["c"], ["y"])], [value("x", [3])], [value("y", [3])])
    assert parts(session(of, exclude_ops="QuickGelu"))[1] == []
    assert parts(session(of, exclude_ops=" com.microsoft.QuickGelu , Relu,")) == ([["Neg", "Exp"]], ["Relu", "QuickGelu"])


def test_excluded_ops_that_the_model_lacks_are_told(capfd):
    of = model([("com.microsoft.QuickGelu", ["x"], ["a"]), ("Neg", ["a"], ["y"])], [value("x", [3])], [value("y", [3])])
    session(of, severity=2, exclude_ops="QuickGelu,Neg,Softmaks")
    told = capfd.readouterr().err
    assert "exclude_ops names 'QuickGelu', of which" in told and "it has 'com.microsoft.QuickGelu'" in told
    assert "exclude_ops names 'Softmaks'" in told and "'Neg'" not in told


def test_small_parts_stay():
    of = model([("Relu", ["x"], ["a"]), (STAYS, ["a"], ["b"]), ("Tanh", ["b"], ["c"]), ("Exp", ["c"], ["d"]), ("Neg", ["d"], ["y"])], [value("x", [3])], [value("y", [3])])
    assert parts(session(of, min_nodes=1, exclude_ops=STAYS))[0] == [["Relu"], ["Tanh", "Exp", "Neg"]]
    ours = session(of, min_nodes=2, exclude_ops=STAYS)
    assert parts(ours)[0] == [["Tanh", "Exp", "Neg"]]
    assert "min_nodes" in [n for n in report_of()["left"] if n["op"] == "Relu"][0]["reason"]
    assert parts(session(of, min_nodes=4, exclude_ops=STAYS))[0] == []


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_have_no_circles(seed):
    """Any mixture of taken and other nodes must give a graph that ONNX Runtime accepts, and the same results."""
    random = np.random.default_rng(seed)
    names, nodes = ["x", "z"], []
    for i in range(int(random.integers(4, 30))):
        reads = [str(n) for n in random.choice(names[-6:], 2)]
        op = random.choice([STAYS, "Relu", "Tanh", "Add", "Sub", "Add"], p=[.25, .1, .1, .25, .15, .15])
        nodes.append((str(op), reads if op in ("Add", "Sub") else reads[:1], [f"v{i}"]))
        names.append(f"v{i}")
    outputs = [str(n) for n in random.choice(names[2:], min(3, len(names) - 2), replace=False)]
    of = model(nodes, [value("x", ["n"]), value("z", ["n"])], [value(n, ["n"]) for n in outputs])
    feed = {n: random.normal(size=5).astype(np.float32) for n in "xz"}
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    close(session(of, session_options=plain, min_nodes=1, exclude_ops=STAYS).run(None, feed), reference(of).run(None, feed))


def test_constants_are_handed_over(device):
    """Weights, text and packed attributes arrive as they are in the file, and what may be fed stays an input."""
    weight = numpy_helper.from_array(rng.normal(size=(4, 3)).astype(np.float32), "w")
    bias = numpy_helper.from_array(np.arange(3, dtype=np.float32), "b")
    of = model([("MatMul", ["x", "w"], ["a"]), ("Add", ["a", "b"], ["c"]), ("Clip", ["c", "", "high"], ["d"]), ("Transpose", ["d"], ["y"], {"perm": [1, 0]})],
               [value("x", ["n", 4]), value("b", [3])], [value("y", [3, "n"])],
               [weight, bias, numpy_helper.from_array(np.float32(0.5), "high")])
    ours, theirs = session(of, device), reference(of)
    x = rng.normal(size=(2, 4)).astype(np.float32)
    for feed in ({"x": x}, {"x": x, "b": np.full(3, -7, np.float32)}):
        close(ours.run(None, feed), theirs.run(None, feed))
    assert parts(ours)[1] == []


@pytest.mark.parametrize("whole", [True, False])
def test_graphs_within_nodes(device, whole):
    """A node that holds graphs is taken whole where all in it is supported; else it stays, and what its graphs hold is taken there. Either
    way the graphs read tensors and constants of the graph around them."""
    then = helper.make_graph([helper.make_node("Mul", ["x", "k"], ["t0"]), helper.make_node("Relu", ["t0"], ["t1"]),
                              helper.make_node("Neg" if whole else STAYS, ["t1"], ["t"])],
                             "then", [], [value("t", ["n"])])
    inner = helper.make_graph([helper.make_node("Mul", ["x", "k"], ["i0"]), helper.make_node("Exp", ["i0"], ["i"])], "inner", [], [value("i", ["n"])])
    deep = helper.make_graph([helper.make_node("Neg", ["x"], ["d0"]), helper.make_node("Exp", ["d0"], ["d"])], "deep", [], [value("d", ["n"])])
    other = helper.make_graph([helper.make_node("If", ["c2"], ["e"], then_branch=inner, else_branch=deep)], "other", [], [value("e", ["n"])])
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["s1"]), helper.make_node("Mul", ["s1", "k"], ["s2"]), helper.make_node("Identity", ["go"], ["again"])], "body",
        [value("i", [], onnx.TensorProto.INT64), value("go", [], onnx.TensorProto.BOOL), value("s", ["n"])],
        [value("again", [], onnx.TensorProto.BOOL), value("s2", ["n"])])
    truth = onnx.TensorProto.BOOL
    of = model([("If", ["c"], ["h"], {"then_branch": then, "else_branch": other}), ("Loop", ["times", "", "h"], ["y"], {"body": body})],
               [value("x", ["n"]), value("c", [], truth), value("c2", [], truth), value("times", [], onnx.TensorProto.INT64)], [value("y", ["n"])],
               [numpy_helper.from_array(np.float32(1.5), "k")])
    ours, theirs = session(of, device, exclude_ops=STAYS), reference(of)
    for first in (True, False):
        for second, n in ((True, 2), (False, 5)):
            feed = {"x": rng.normal(size=n).astype(np.float32), "c": np.array(first), "c2": np.array(second), "times": np.array(3)}
            close(ours.run(None, feed), theirs.run(None, feed))
    taken, left = parts(ours)
    if whole and HOLDERS:
        assert (taken, left) == ([["If", "Loop"]], []) and report_of()["left"] == []
    elif whole:
        assert sorted(left) == ["If", "If", "Loop"] and "1.27" in report_of()["left"][0]["reason"]
    elif HOLDERS:
        assert sorted(left) == ["If", STAYS] and sorted(taken) == [["If"], ["Loop"], ["Mul", "Relu"]]


def test_functions_that_hold_graphs():
    """ONNX Runtime writes SequenceMap out as a Loop, with the graph as it is then."""
    body = helper.make_graph([helper.make_node("Relu", ["e"], ["b0"]), helper.make_node("Exp", ["b0"], ["b"])], "body", [value("e", ["n"])], [value("b", ["n"])])
    of = model([("SplitToSequence", ["x"], ["s"], {"axis": 0}), ("SequenceMap", ["s"], ["m"], {"body": body}), ("ConcatFromSequence", ["m"], ["y"], {"axis": 0})],
               [value("x", [4])], [value("y", None)])
    feed = {"x": rng.normal(size=4).astype(np.float32)}
    close(session(of, min_nodes=1).run(None, feed), reference(of).run(None, feed))


def test_values_that_fix_shapes(device):
    """Inputs whose values are sizes: nothing must be planned before they are known."""
    of = model([("Neg", ["x"], ["a"]), ("Slice", ["a", "begin", "end"], ["b"]), ("Reshape", ["b", "shape"], ["y"])],
               [value("x", [4, 6]), value("begin", [2], onnx.TensorProto.INT64), value("end", [2], onnx.TensorProto.INT64), value("shape", [2], onnx.TensorProto.INT64)],
               [value("y", None)])
    ours, theirs = session(of, device), reference(of)
    assert parts(ours)[1] == []
    for begin, end, shape in (([0, 0], [2, 6], [3, 4]), ([1, 2], [4, 4], [2, 3]), ([2, 2], [2, 4], [0, 5])):
        feed = {"x": rng.normal(size=(4, 6)).astype(np.float32), "begin": np.array(begin), "end": np.array(end), "shape": np.array(shape)}
        close(ours.run(None, feed), theirs.run(None, feed))


def test_sequences_stay():
    of = model([("Relu", ["x"], ["a"]), ("Neg", ["a"], ["b"]), ("SplitToSequence", ["b"], ["s"], {"axis": 0}), ("ConcatFromSequence", ["s"], ["c"], {"axis": 0}),
                ("Exp", ["c"], ["d"]), ("Tanh", ["d"], ["y"])], [value("x", [3, 2])], [value("y", None)])
    feed = {"x": rng.normal(size=(3, 2)).astype(np.float32)}
    ours = session(of)
    close(ours.run(None, feed), reference(of).run(None, feed))
    assert sorted(parts(ours)[1]) == ["ConcatFromSequence", "SplitToSequence"]
    assert "sequence" in report_of()["left"][0]["reason"]
