#!/usr/bin/env python3
"""Makes a small model of every version of every operator of ONNX's default domain, with what ONNX Runtime, or where it
refuses ONNX's reference implementation, answers, and runs onnx_tests on them.

    v/bin/python tests/conformance/sweep_versions.py FOLDER [--only OP] [--tests build/release/tests/onnx_tests]

FOLDER/OP-VERSION is one test. An operator is taken as it was defined in each version: attributes at their defaults where
the table below names none. Models that nobody answers are run all the same; what comes out is then not compared.
Prints what is refused, fails or differs, and the operators that the table cannot make a valid model of; exits with 1
where that is news."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
# Control flow and values that are no tensors have tests of their own; these give no fixed answer.
LEFT_OUT = {"If", "Loop", "Scan", "SequenceMap", "Optional", "OptionalGetElement", "OptionalHasElement",
            "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli",
            "ImageDecoder"}
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(bool)": np.bool_, "tensor(string)": object, "tensor(uint8)": np.uint8, "tensor(float16)": np.float16,
         "tensor(uint64)": np.uint64, "tensor(int8)": np.int8}


def f(*shape, low=-2.0, high=2.0):
    rng = np.random.default_rng(zlib.crc32(str(shape).encode()))
    return rng.uniform(low, high, shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


class Form:
    """Inputs in order (None: left out), attributes; `fixed` inputs are stored in the model."""

    def __init__(self, *inputs, fixed=(), outputs=None, **attrs):
        self.inputs, self.fixed, self.outputs, self.attrs = inputs, fixed, outputs, attrs


def by_attr(since, attr, *inputs, value, **attrs):
    """A list that was an attribute and is an input since a version."""
    return lambda v: Form(*inputs, ints(*value), fixed=(len(inputs),), **attrs) if v >= since else \
        Form(*inputs, **{attr: list(value)}, **attrs)


def pairwise(op):
    def form(v):
        kind = np.bool_ if op in ("And", "Or", "Xor") else np.float32
        a, b = f(2, 3, 4), f(4)
        if op == "Pow":
            a, b = abs(a), abs(b)
        if op == "Mod":
            return Form(f(2, 3, 4), f(4), fmod=1)
        if op.startswith("Bit") or op == "BitShift":
            kind = np.uint8
        a, b = (x > 0 if kind == np.bool_ else (x * 10 + 30).astype(kind) if kind == np.uint8 else x for x in (a, b))
        if op == "BitShift":
            return Form(a, b % 8, direction="LEFT")
        if op in ("Equal",) and v < 11:
            a, b = (x.astype(np.int64) for x in (a, b))
        return Form(a, b, **({"broadcast": 1} if v < 7 else {}))
    return form


def pad(v):
    if v < 2:
        return Form(f(2, 3), paddings=[0, 1, 2, 0])
    if v < 11:
        return Form(f(2, 3), pads=[0, 1, 2, 0], value=1.5)
    return Form(f(2, 3), ints(0, 1, 2, 0), scalar(1.5), fixed=(1, 2))


def slice_(v):
    if v < 10:
        return Form(f(4, 5), starts=[1, 0], ends=[3, 4], axes=[0, 1])
    return Form(f(4, 5), ints(1, 4), ints(3, 0), ints(0, 1), ints(1, -2), fixed=(1, 2, 3, 4))


def upsample(v):
    if v < 7:
        return Form(f(1, 2, 3, 3), height_scale=2.0, width_scale=3.0)
    if v < 9:
        return Form(f(1, 2, 3, 3), scales=[1.0, 1.0, 2.0, 3.0])
    return Form(f(1, 2, 3, 3), np.array([1, 1, 2, 3], np.float32), fixed=(1,))


def resize(v):
    if v < 11:
        return Form(f(1, 2, 3, 3), np.array([1, 1, 2, 3], np.float32), fixed=(1,))
    return Form(f(1, 2, 3, 3), None, np.array([1, 1, 2, 3], np.float32), fixed=(2,))


def batch_norm(v):
    tail = (f(3), f(3), f(3), abs(f(3)) + 0.5)
    if v < 6:
        return Form(f(2, 3, 4, 4), *tail, is_test=1, consumed_inputs=[0, 0, 0, 1, 1])
    if v < 7:
        return Form(f(2, 3, 4, 4), *tail, is_test=1)
    return Form(f(2, 3, 4, 4), *tail)


def topk(v):
    if v < 10:
        return Form(f(3, 6), k=2)
    return Form(f(3, 6), ints(2), fixed=(1,))


def dropout(v):
    if v < 7:
        return Form(f(3, 4), is_test=1, ratio=0.3, outputs=1)
    return Form(f(3, 4), outputs=1)


def recurrent(gates):
    def form(v):
        attrs = {"output_sequence": 1} if v < 7 else {}
        return Form(f(3, 2, 4), f(1, gates * 5, 4), f(1, gates * 5, 5), f(1, 2 * gates * 5), hidden_size=5, **attrs)
    return form


def scatter(*more):
    return lambda v: Form(f(3, 4), np.array([[0, 2, 1, 0]], np.int64), f(1, 4), *more)


def cast(v):
    return Form(f(2, 3) * 10, to="INT32" if v < 6 else TensorProto.INT32)


def quantise(v):
    return Form(f(3, 4), scalar(0.02), scalar(120, np.uint8))


def gemm(v):
    return Form(f(2, 3), f(3, 4), f(4), **({"broadcast": 1} if v < 7 else {}))


def reduce_(v, since=18):
    return by_attr(since, "axes", f(2, 3, 4), value=[1])(v)


def constant(v):
    return Form(value=numpy_helper.from_array(f(2, 3)))


def loss(v):
    return Form(np.log(abs(f(3, 4)) + 0.1), np.array([1, 0, 3], np.int64))


def attention(v):
    return Form(f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4))


IMAGE = f(1, 4, 6, 6)
TABLE = {
    "AffineGrid": lambda v: Form(f(1, 2, 3), ints(1, 2, 3, 4), fixed=(1,)),
    "ArgMax": lambda v: Form(f(2, 3, 4), axis=1), "ArgMin": lambda v: Form(f(2, 3, 4), axis=1),
    "Attention": attention, "AveragePool": lambda v: Form(IMAGE, kernel_shape=[3, 3], strides=[2, 2]),
    "Acos": lambda v: Form(f(3, 4, high=0.9, low=-0.9)), "Asin": lambda v: Form(f(3, 4, high=0.9, low=-0.9)),
    "Acosh": lambda v: Form(f(3, 4, low=1.1, high=4.0)), "Atanh": lambda v: Form(f(3, 4, low=-0.9, high=0.9)),
    "BatchNormalization": batch_norm, "BlackmanWindow": lambda v: Form(scalar(8, np.int64)),
    "BitCast": lambda v: Form(f(2, 3), to=TensorProto.INT32), "BitwiseNot": lambda v: Form(np.arange(6, dtype=np.uint8)),
    "Cast": cast, "CastLike": lambda v: Form(f(2, 3) * 10, ints(1)), "CenterCropPad": lambda v: Form(f(4, 5), ints(6, 3), fixed=(1,)),
    "Clip": lambda v: Form(f(3, 4), scalar(-1), scalar(0.5)) if v >= 11 else Form(f(3, 4), min=-1.0, max=0.5),
    "Col2Im": lambda v: Form(f(1, 4, 9), ints(4, 4), ints(2, 2), fixed=(1, 2)),
    "Compress": lambda v: Form(f(3, 4), np.array([True, False, True]), axis=0),
    "Concat": lambda v: Form(f(2, 3), f(2, 3), axis=1), "ConcatFromSequence": None,
    "Constant": constant, "ConstantOfShape": lambda v: Form(ints(2, 3)),
    "Conv": lambda v: Form(IMAGE, f(2, 4, 3, 3), f(2), pads=[1, 1, 1, 1]),
    "ConvInteger": lambda v: Form((IMAGE * 20 + 90).astype(np.uint8), (f(2, 4, 3, 3) * 20 + 90).astype(np.uint8)),
    "ConvTranspose": lambda v: Form(IMAGE, f(4, 2, 3, 3), strides=[2, 2]),
    "CumSum": lambda v: Form(f(3, 4), scalar(1, np.int64)), "CumProd": lambda v: Form(f(3, 4), scalar(1, np.int64)),
    "DFT": lambda v: Form(f(1, 8, 1)) if v < 20 else Form(f(1, 8, 1), None, scalar(1, np.int64), fixed=(2,)),
    "DeformConv": lambda v: Form(IMAGE, f(2, 4, 3, 3), f(1, 18, 4, 4)),
    "DepthToSpace": lambda v: Form(IMAGE, blocksize=2), "SpaceToDepth": lambda v: Form(IMAGE, blocksize=2),
    "DequantizeLinear": lambda v: Form(np.arange(12, dtype=np.uint8).reshape(3, 4), scalar(0.02), scalar(5, np.uint8)),
    "Det": lambda v: Form(f(2, 3, 3)), "Dropout": dropout, "Einsum": lambda v: Form(f(2, 3), f(3, 4), equation="ij,jk->ik"),
    "Expand": lambda v: Form(f(3, 1), ints(2, 3, 4), fixed=(1,)), "EyeLike": lambda v: Form(f(3, 4)),
    "Flatten": lambda v: Form(f(2, 3, 4)), "GRU": recurrent(3), "LSTM": recurrent(4), "RNN": recurrent(1),
    "Gather": lambda v: Form(f(4, 3), ints(2, 0)), "GatherElements": lambda v: Form(f(3, 3), np.array([[1, 2, 0]], np.int64)),
    "GatherND": lambda v: Form(f(3, 4), np.array([[0, 1], [2, 3]], np.int64)), "Gemm": gemm,
    "GlobalAveragePool": lambda v: Form(IMAGE), "GlobalMaxPool": lambda v: Form(IMAGE), "GlobalLpPool": lambda v: Form(IMAGE),
    "GridSample": lambda v: Form(IMAGE, f(1, 3, 3, 2, low=-1.0, high=1.0)),
    "GroupNormalization": lambda v: Form(IMAGE, f(2) if v < 21 else f(4), f(2) if v < 21 else f(4), num_groups=2),
    "HammingWindow": lambda v: Form(scalar(8, np.int64)), "HannWindow": lambda v: Form(scalar(8, np.int64)),
    "InstanceNormalization": lambda v: Form(IMAGE, f(4), f(4)), "LRN": lambda v: Form(IMAGE, size=3),
    "LayerNormalization": lambda v: Form(f(2, 3, 4), f(4), f(4), outputs=1), "RMSNormalization": lambda v: Form(f(2, 3, 4), f(4)),
    "Log": lambda v: Form(f(3, 4, low=0.1, high=3.0)), "Sqrt": lambda v: Form(f(3, 4, low=0.1, high=3.0)),
    "LpPool": lambda v: Form(IMAGE, kernel_shape=[2, 2]), "MatMul": lambda v: Form(f(2, 3), f(3, 4)),
    "LinearAttention": lambda v: Form(f(1, 3, 8), f(1, 3, 8), f(1, 3, 8), q_num_heads=2, kv_num_heads=2, update_rule="linear", outputs=2),
    "CausalConvWithState": lambda v: Form(f(1, 4, 6), f(4, 1, 3), f(4), outputs=2),
    "MeanVarianceNormalization": lambda v: Form(IMAGE),
    "MatMulInteger": lambda v: Form(np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(12, dtype=np.uint8).reshape(3, 4)),
    "MaxPool": lambda v: Form(IMAGE, kernel_shape=[3, 3], strides=[2, 2], outputs=1),
    "MaxRoiPool": lambda v: Form(IMAGE, np.array([[0, 0, 0, 4, 4]], np.float32), pooled_shape=[2, 2]),
    "MaxUnpool": lambda v: Form(f(1, 1, 2, 2), np.array([[[[0, 3], [9, 14]]]], np.int64), kernel_shape=[2, 2], strides=[2, 2]),
    "MelWeightMatrix": lambda v: Form(scalar(4, np.int64), scalar(16, np.int64), scalar(8000, np.int64), scalar(0.0), scalar(4000.0)),
    "NegativeLogLikelihoodLoss": loss, "SoftmaxCrossEntropyLoss": lambda v: Form(f(3, 4), np.array([1, 0, 3], np.int64), outputs=1),
    "NonMaxSuppression": lambda v: Form(abs(f(1, 6, 4)), abs(f(1, 1, 6)), ints(3), scalar(0.5), scalar(0.1)),
    "NonZero": lambda v: Form((f(3, 4) > 0).astype(np.float32)), "Not": lambda v: Form(f(3, 4) > 0),
    "OneHot": lambda v: Form(ints(1, 0, 2), scalar(4, np.int64), np.array([0, 1], np.float32), fixed=(1,)),
    "PRelu": lambda v: Form(f(2, 3, 4), f(4) if v >= 7 else f(3)), "Pad": pad,
    "QLinearConv": lambda v: Form((IMAGE * 20 + 90).astype(np.uint8), scalar(0.02), scalar(90, np.uint8),
                                  (f(2, 4, 3, 3) * 20 + 90).astype(np.uint8), scalar(0.03), scalar(80, np.uint8), scalar(0.1),
                                  scalar(100, np.uint8)),
    "QLinearMatMul": lambda v: Form(np.arange(6, dtype=np.uint8).reshape(2, 3), scalar(0.02), scalar(3, np.uint8),
                                    np.arange(12, dtype=np.uint8).reshape(3, 4), scalar(0.03), scalar(5, np.uint8), scalar(0.01),
                                    scalar(100, np.uint8)),
    "QuantizeLinear": quantise, "Range": lambda v: Form(scalar(1, np.int64), scalar(9, np.int64), scalar(2, np.int64)),
    "RegexFullMatch": lambda v: Form(np.array(["abc", "x"], object), pattern="a.*"),
    "Reshape": by_attr(5, "shape", f(2, 6), value=[3, -1]), "Resize": resize,
    "ReverseSequence": lambda v: Form(f(4, 3), ints(1, 4, 2)),
    "RoiAlign": lambda v: Form(IMAGE, np.array([[0, 0, 4, 4]], np.float32), ints(0), output_height=2, output_width=2),
    "RotaryEmbedding": lambda v: Form(f(1, 2, 3, 4), f(1, 3, 2), f(1, 3, 2)),
    "STFT": lambda v: Form(np.eye(16, dtype=np.float32)[5].reshape(1, 16, 1), scalar(4, np.int64), None, scalar(8, np.int64), fixed=(1, 3)),
    "Scatter": scatter(), "ScatterElements": scatter(), "ScatterND": lambda v: Form(f(4, 3), np.array([[1], [3]], np.int64), f(2, 3)),
    "Slice": slice_, "Split": lambda v: Form(f(2, 6), axis=1, outputs=2, **({"split": [2, 4]} if v < 13 else {})) if v < 18
    else Form(f(2, 6), axis=1, outputs=2, num_outputs=2),
    "Squeeze": by_attr(13, "axes", f(2, 1, 3), value=[1]), "Unsqueeze": by_attr(13, "axes", f(2, 3), value=[1]),
    "StringNormalizer": lambda v: Form(np.array(["ab", "cd"], object), stopwords=["cd"], is_case_sensitive=1),
    "StringConcat": lambda v: Form(np.array(["ab", "cd"], object), np.array(["x", "y"], object)),
    "StringSplit": lambda v: Form(np.array(["a,b", "c"], object), delimiter=","),
    "Swish": lambda v: Form(f(3, 4)), "TensorScatter": lambda v: Form(f(1, 2, 6, 3), f(1, 2, 2, 3), ints(3)),
    "TfIdfVectorizer": lambda v: Form(np.array([1, 2, 3, 2], np.int32), mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
                                      ngram_counts=[0], ngram_indexes=[0, 1], pool_int64s=[2, 3]),
    "Tile": lambda v: Form(f(2, 3), scalar(2.0), scalar(1.0), fixed=(1, 2)) if v < 6 else Form(f(2, 3), ints(1, 2), fixed=(1,)),
    "TopK": topk, "Trilu": lambda v: Form(f(3, 4)), "Unique": lambda v: Form(np.array([2, 1, 1, 3], np.float32), outputs=4),
    "Upsample": upsample, "Where": lambda v: Form(f(3, 4) > 0, f(3, 4), f(4)), "Transpose": lambda v: Form(f(2, 3, 4), perm=[1, 0, 2]),
    "LpNormalization": lambda v: Form(f(3, 4)), "IsInf": lambda v: Form(np.array([1, np.inf, -np.inf], np.float32)),
    "IsNaN": lambda v: Form(np.array([1, np.nan], np.float32)), "ReduceSum": lambda v: reduce_(v, 13),
    "ReduceLogSum": lambda v: Form(abs(f(2, 3, 4)), *([ints(1)] if v >= 18 else []), fixed=(1,), **({"axes": [1]} if v < 18 else {})),
    "ReduceLogSumExp": reduce_, "DynamicQuantizeLinear": lambda v: Form(f(3, 4)),
    "Crop": lambda v: Form(IMAGE, border=[1, 1, 1, 1]), "Affine": lambda v: Form(f(2, 3), alpha=2.0, beta=0.5),
    "SequenceConstruct": None, "SequenceAt": None, "SequenceInsert": None, "SequenceErase": None, "SequenceLength": None,
    "SequenceEmpty": None, "SplitToSequence": None,
}
for _op in ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Mod",
            "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"):
    TABLE[_op] = pairwise(_op)
for _op in ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"):
    TABLE[_op] = reduce_


def guess(schema):
    """Tensors of the first usual type that each needed input takes."""
    inputs = []
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    for i, info in enumerate(schema.inputs):
        if i >= max(schema.min_input, 1):
            break
        allowed = constraints.get(info.type_str, [info.type_str])
        name = next((t for t in TYPES if t in allowed), None)
        if name is None:
            return None
        x = f(3, 4) * (1 if name == "tensor(float)" else 5)
        inputs.append(np.array([["a", "b"]], object) if name == "tensor(string)" else x.astype(TYPES[name]))
    return Form(*inputs)


def model_of(schema, form, types=None):
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(form.inputs)]
    count = form.outputs or max(schema.min_output, 1)
    outs = [f"y{i}" for i in range(count)]
    node = helper.make_node(schema.name, names, outs, **form.attrs)
    feeds = {n: x for i, (n, x) in enumerate(zip(names, form.inputs)) if x is not None and i not in form.fixed}
    stored = [numpy_helper.from_array(x, n) for i, (n, x) in enumerate(zip(names, form.inputs)) if x is not None and i in form.fixed]
    info = lambda name, x: helper.make_tensor_value_info(
        name, TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    infos = [info(n, x) for n, x in feeds.items()]
    # Before IR version 4 what is stored is an input as well.
    ir = 3 if schema.since_version < 9 else 10
    if ir == 3:
        infos += [info(t.name, numpy_helper.to_array(t)) for t in stored]
    ends = [info(o, a) for o, a in zip(outs, types)] if types else [onnx.ValueInfoProto(name=o) for o in outs]
    graph = helper.make_graph([node], schema.name, infos, ends, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", schema.since_version)], ir_version=ir)
    return model, feeds, outs


def answer(schema, form):
    """What comes out, who says so and what the others said."""
    model, feeds, outs = model_of(schema, form)
    said = []
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(outs, feeds), "ONNX Runtime", said
    except Exception as error:
        said.append(str(error)[-160:])
    try:
        model.graph.ClearField("output")
        model.graph.output.extend(helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outs)
        return ReferenceEvaluator(model).run(outs, feeds), "reference", said
    except Exception as error:
        said.append(str(error)[-160:])
    return None, "nobody", said


def answer_of_others(schema, versions):
    """The answer of the nearest version that has one, of those with as many outputs."""
    own = TABLE[schema.name](schema.since_version)
    for other in sorted(versions, key=lambda s: (abs(s.since_version - schema.since_version), -s.since_version)):
        form = TABLE[schema.name](other.since_version)
        if other.since_version != schema.since_version and form.outputs == own.outputs:
            answers, who, _ = answer(other, form)
            if answers is not None:
                return answers, f"another version ({who})"
    return None, "nobody"


def write(folder, schema, form, answers):
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    arrays = [np.asarray(a) for a in answers] if answers is not None else None
    model, feeds, _ = model_of(schema, form, arrays)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values in (("input", feeds.values()), ("output", arrays or [])):
        for i, array in enumerate(values):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--tests", default="build/release/tests/onnx_tests")
    parser.add_argument("--verbose", action="store_true", help="what those said who did not answer")
    args = parser.parse_args()
    counts, history = {}, {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain and not schema.deprecated:
            history.setdefault(schema.name, []).append(schema)
    for schema in defs.get_all_schemas_with_history():
        name = f"{schema.name}-{schema.since_version}"
        if schema.domain or schema.name in LEFT_OUT or (args.only and schema.name != args.only) or schema.deprecated:
            continue
        if schema.name in TABLE and TABLE[schema.name] is None:
            continue
        form = TABLE[schema.name](schema.since_version) if schema.name in TABLE else guess(schema)
        if form is None:
            print(f"{name}: no model")
            continue
        answers, who, said = answer(schema, form)
        if answers is None and schema.name in TABLE:
            answers, who = answer_of_others(schema, history[schema.name])
        counts[who] = counts.get(who, 0) + 1
        if who == "nobody" and args.verbose:
            print(f"{name}: nobody answers: {said}")
        write(args.folder / name, schema, form, answers)
    print(", ".join(f"{n} answered by {who}" for who, n in sorted(counts.items())))
    report = args.folder / "report.json"
    subprocess.run([args.tests, "--device", "cpu", "--json", str(report), str(args.folder)], stdout=subprocess.DEVNULL)
    found = 0
    for test in sorted(json.loads(report.read_text())["tests"], key=lambda t: t["name"]):
        if test["verdict"] != "pass":
            print(f"{test['name']}: {test['verdict']}: {test['reason']}")
            found += 1
    print(f"{found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
