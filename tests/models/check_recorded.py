#!/usr/bin/env python3
"""Runs the SavedModels of testdata/tensorflow in a live TensorFlow and compares with the answers that are recorded there:
whether they are still TensorFlow's. Needs TensorFlow, so no part of the usual checks.

  v/bin/python tests/models/check_recorded.py [FOLDER..]      (models/NAME, runs/NAME, text/NAME; else all)"""
import json, os, pathlib, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np, tensorflow as tf

tf.get_logger().setLevel("ERROR")
DATA = pathlib.Path(__file__).resolve().parent.parent.parent / "testdata/tensorflow"


def read(path):
    if path.suffix == ".npy": return np.load(path)
    text = json.loads(path.read_text())
    return np.array([word.encode() for word in text["data"]], dtype=object).reshape(text["shape"])


def agrees(got, want):
    got = np.asarray(got)
    if want.dtype.kind in "OSU" or got.dtype == object:
        if want.dtype.kind in "iu": got = np.array([len(word) for word in got.ravel()]).reshape(got.shape)  # see make_text_models.py
        return got.shape == want.shape and all(a == b for a, b in zip(got.ravel(), want.ravel()))
    if got.shape != want.shape or got.dtype != want.dtype: return False
    if want.dtype.kind not in "fc": return np.array_equal(got, want)
    return np.allclose(got, want, rtol=1e-4, atol=1e-5 * np.max(np.abs(want), initial=0), equal_nan=True)


def steps_of(folder):
    """(signature, {key: input}, {key: answer}) of each recorded step."""
    if folder.parent.name == "runs":
        for k, step in enumerate(json.loads((folder / "runs/steps.json").read_text())):
            yield step["signature"], {key: read(folder / "runs" / file) for key, file in step["inputs"].items()}, {
                key: read(next((folder / "runs").glob(f"out_{k}_{key}.*"))) for key in step["outputs"]}
        return
    answers, prefix = (folder.parent / "answers", folder.name + "_") if folder.parent.name == "text" else (folder / "answers", "")
    files = {role: {path.stem[len(prefix) + len(role) + 1:]: read(path) for path in answers.glob(f"{prefix}{role}_*")} for role in ("in", "out")}
    yield None, files["in"], files["out"]


def session_signatures(path):
    """The signatures by TensorFlow 1's loader, which keeps a graph's version: ops that were given up since are still run."""
    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default(): meta = tf.compat.v1.saved_model.load(session, ["serve"], path)

    class Signature:
        def __init__(self, proto):
            self.inputs, self.outputs = ({key: info.name for key, info in side.items()} for side in (proto.inputs, proto.outputs))
            self.structured_outputs, self.structured_input_signature = self.outputs, ((), self.inputs)

        def __call__(self, **feeds):
            class Value(np.ndarray): numpy = lambda self: np.asarray(self)
            out = session.run(self.outputs, {self.inputs[key]: value for key, value in feeds.items()})
            return {key: np.asarray(value).view(Value) for key, value in out.items()}
    return {key: Signature(proto) for key, proto in meta.signature_def.items() if not key.startswith("__")}


def check(folder):
    path = str(folder / "model" if folder.parent.name == "runs" else folder)
    try:
        model = tf.saved_model.load(path)
        signatures = model.signatures
    except tf.errors.UnimplementedError:
        signatures = session_signatures(path)
    steps = compared = 0
    for signature, feeds, answers in steps_of(folder):
        function = signatures[signature] if signature else next(
            f for f in signatures.values() if set(answers) == set(f.structured_outputs) and set(feeds) == set(f.structured_input_signature[1])
            and (folder.name != "counter" or f is signatures["plain"]))
        out = function(**{key: value if isinstance(signatures, dict) else tf.constant(value) for key, value in feeds.items()})
        for key, want in answers.items():
            compared += 1
            if not agrees(out[key].numpy(), want): raise AssertionError(f"step {steps}, output {key} differs")
        steps += 1
    return f"{steps} steps, {compared} outputs"


folders = [DATA / name for name in sys.argv[1:]] or [
    f for kind in ("models", "runs", "text") for f in sorted((DATA / kind).iterdir()) if f.is_dir() and f.name != "answers"]
failed = 0
for folder in folders:
    try:
        said = check(folder)
    except Exception as e:
        failed += 1
        said = "FAILED " + repr(e)[:300]
    print(folder.relative_to(DATA), said, flush=True)
sys.exit(failed > 0)
