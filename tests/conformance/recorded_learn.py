#!/usr/bin/env python3
"""Writes recorded/learn_NAME: small pipelines of scikit-learn as skl2onnx converts them, with what ONNX Runtime answers,
and support vector machines as single nodes. Maps are told as Oncilla tells them: values and labels of a ZipMap, keys and
values of an input.

    v/bin/pip install onnxruntime==1.31.1 onnx==1.23.2 skl2onnx==1.20.0 scikit-learn==1.9.1
    v/bin/python tests/conformance/recorded_learn.py [NAME..]"""

import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import make_recorded
from make_recorded import ML, OUT, Case, Numbers

N = Numbers("learn")
X = N.f(60, 4)
CLASSES = (X[:, 0] + X[:, 1] > 0).astype(np.int64) + (X[:, 2] > 0.3)
WORDS = np.array(["no", "perhaps", "yes"])[CLASSES]


def write(name, model, feeds, answers):
    folder = OUT / f"learn_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "test_data_set_0").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, arrays in (("input", feeds), ("output", answers)):
        for i, array in enumerate(arrays):
            path = folder / "test_data_set_0" / f"{kind}_{i}.pb"
            path.write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())


def tensors(model, answers):
    """A ZipMap's maps as a matrix, and behind all outputs the labels of its columns."""
    out, labels = [], []
    for info, answer in zip(model.graph.output, answers):
        if isinstance(answer, list) and answer and isinstance(answer[0], dict):
            zipped = next(n for n in model.graph.node if info.name in n.output)
            keys = next(list(a.ints) or [s.decode() for s in a.strings] for a in zipped.attribute)
            out.append(np.array([[row[k] for k in keys] for row in answer], np.float32))
            labels.append(np.array(keys, np.int64 if isinstance(keys[0], int) else object))
        else:
            out.append(answer)
    return out + labels


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def pipelines():
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import (AdaBoostClassifier, BaggingClassifier, GradientBoostingClassifier, IsolationForest,
                                  RandomForestClassifier)
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC, LinearSVC
    from sklearn.tree import DecisionTreeClassifier
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    numbers = [("x", FloatTensorType([None, 4]))]
    text = [("x", StringTensorType([None, 1]))]
    mixed = [("number", FloatTensorType([None, 2])), ("word", StringTensorType([None, 1]))]
    sentences = np.array([["a good day"], ["a bad day"], ["good good"], ["bad luck today"]] * 5)
    frame = ColumnTransformer([("scale", StandardScaler(), [0, 1]), ("hot", OneHotEncoder(handle_unknown="ignore"), [2])])
    table = np.concatenate([X[:, :2].astype(object), WORDS.reshape(-1, 1)], 1)
    for name, model, x, y, types, feeds in (
            ("logistic", make_pipeline(StandardScaler(), LogisticRegression()), X, CLASSES, numbers, {"x": X[:9]}),
            ("logistic_words", LogisticRegression(), X, WORDS, numbers, {"x": X[:9]}),
            ("logistic_two", LogisticRegression(), X, CLASSES > 0, numbers, {"x": X[:9]}),
            ("forest", RandomForestClassifier(5, max_depth=4, random_state=1), X, WORDS, numbers, {"x": X[:9]}),
            ("boosting", GradientBoostingClassifier(n_estimators=5, random_state=1), X, CLASSES, numbers, {"x": X[:9]}),
            ("tree_two", DecisionTreeClassifier(max_depth=4, random_state=1), X, CLASSES > 0, numbers, {"x": X[:9]}),
            ("boosting_two", GradientBoostingClassifier(n_estimators=5, random_state=1), X, CLASSES > 0, numbers, {"x": X[:9]}),
            ("bagging_two", BaggingClassifier(n_estimators=4, random_state=1), X, CLASSES > 0, numbers, {"x": X[:9]}),
            ("adaboost_two", AdaBoostClassifier(n_estimators=4, random_state=1), X, (CLASSES > 0).astype(np.int64), numbers,
             {"x": X[:9]}),
            ("svc", SVC(), X, CLASSES, numbers, {"x": X[:9]}),
            ("svc_probable", make_pipeline(StandardScaler(), SVC(probability=True, random_state=1)), X, WORDS, numbers,
             {"x": X[:9]}),
            ("svc_two", SVC(kernel="poly", degree=3), X, CLASSES > 0, numbers, {"x": X[:9]}),
            ("linear_svc", LinearSVC(), X, WORDS, numbers, {"x": X[:9]}),
            ("bayes", GaussianNB(), X, CLASSES, numbers, {"x": X[:9]}),
            ("neighbours", KNeighborsClassifier(3), X, CLASSES, numbers, {"x": X[:9]}),
            ("perceptron", MLPClassifier((6,), max_iter=30, random_state=1), X, CLASSES, numbers, {"x": X[:9]}),
            ("isolation", IsolationForest(n_estimators=5, random_state=1), X, None, numbers, {"x": X[:9]}),
            ("columns", make_pipeline(frame, LogisticRegression()), table, CLASSES, mixed,
             {"number": X[:9, :2], "word": WORDS[:9].reshape(-1, 1).astype(object)}),
            ("words", make_pipeline(TfidfVectorizer(lowercase=False), LogisticRegression()), sentences[:, 0], [0, 1] * 10, text,
             {"x": sentences[:4].astype(object)})):
        if CHOSEN and name not in CHOSEN:
            continue
        try:
            model.fit(x, y) if y is not None else model.fit(x)
            converted = to_onnx(model, initial_types=types, target_opset={"": 18, ML: 3})
            answers = run(converted, feeds)
        except Exception as error:  # said by name, so that the others are still written
            print(name, str(error)[:300])
            continue
        write(name, converted, feeds.values(), tensors(converted, answers))


def maps():
    from onnx import TensorProto, helper
    for name, op, key, value, data, attrs in (
            ("dict_words", "DictVectorizer", TensorProto.STRING, TensorProto.FLOAT, {"b": 2.5, "x": 1.0, "a": -3.0},
             {"string_vocabulary": ["a", "b", "c"]}),
            ("dict_numbers", "DictVectorizer", TensorProto.INT64, TensorProto.FLOAT, {7: 2.5, 3: 1.0},
             {"int64_vocabulary": [3, 5, 7, 9]}),
            ("cast_map_dense", "CastMap", TensorProto.INT64, TensorProto.FLOAT, {7: 2.5, 3: 1.0, 5: -4.25}, {}),
            ("cast_map_sparse", "CastMap", TensorProto.INT64, TensorProto.FLOAT, {4: 2.5, 1: 1.75},
             {"map_form": "SPARSE", "max_map": 6, "cast_to": "TO_INT64"})):
        if CHOSEN and name not in CHOSEN:
            continue
        info = onnx.ValueInfoProto(name="m")
        info.type.map_type.key_type = key
        info.type.map_type.value_type.tensor_type.elem_type = value
        node = helper.make_node(op, ["m"], ["y"], domain=ML, **attrs)
        graph = helper.make_graph([node], name, [info], [onnx.ValueInfoProto(name="y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)])
        model.ir_version = 8
        answers = run(model, {"m": data})
        output = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(answers[0].dtype), answers[0].shape)
        model.graph.output[0].CopyFrom(output)
        keys = np.array(list(data), np.int64 if key == TensorProto.INT64 else object)
        write(name, model, [keys, np.array(list(data.values()), np.float32)], answers)


def machines():
    n = Numbers("machines")
    for kind, params in (("LINEAR", [0.0, 0.0, 0.0]), ("POLY", [0.4, 0.3, 2.0]), ("RBF", [0.3, 0.0, 0.0]),
                         ("SIGMOID", [0.2, 0.1, 0.0])):
        for classes, per_class in ((2, [3, 4]), (4, [3, 2, 4, 2])):
            pairs, supports = classes * (classes - 1) // 2, sum(per_class)
            attrs = dict(kernel_type=kind, kernel_params=params, vectors_per_class=per_class,
                         support_vectors=n.f(supports * 3).tolist(), rho=n.f(pairs).tolist(),
                         coefficients=n.f((classes - 1) * supports).tolist())
            labels = {"classlabels_ints": list(range(5, 5 + classes))}
            if kind == "RBF":
                labels = {"classlabels_strings": ["a", "b", "c", "d"][:classes]}
            name = f"ml_svc_{kind.lower()}_{classes}"
            Case(name, "SVMClassifier", {"x": n.f(7, 3)}, 2, domain=ML, **attrs, **labels)
            Case(f"{name}_probable", "SVMClassifier", {"x": n.f(7, 3)}, 2, domain=ML, **attrs, **labels,
                 prob_a=(-np.abs(n.f(pairs)) - 0.2).tolist(), prob_b=n.f(pairs).tolist())


    many = n.rng.standard_normal((700, 100)).astype(np.float32)
    Case("ml_svc_rbf_many", "SVMClassifier", {"x": many[::90] + n.f(8, 100) / 4}, 2, domain=ML, kernel_type="RBF",
         kernel_params=[0.01, 0.0, 0.0], vectors_per_class=[200, 300, 200], support_vectors=many.reshape(-1).tolist(),
         rho=n.f(3).tolist(), coefficients=(n.f(1400) / 9).tolist(), classlabels_ints=[3, 1, 2])


if __name__ == "__main__":
    CHOSEN = sys.argv[1:]
    machines()
    make_recorded.record([c for c in CHOSEN if c in make_recorded.CASES] if CHOSEN else [])
    maps()
    pipelines()
