#!/usr/bin/env python3
"""Language models exported by onnxruntime-genai's builder must give ONNX Runtime's results: a prompt, then one step.

    python3 -m venv v && v/bin/pip install -r tests/exported/requirements_language.txt
    v/bin/python tests/exported/language_test.py build/release/oncilla [--match TEXT] [--device cpu] [--keep FOLDER]

A model that cannot be exported, or that ONNX Runtime cannot start, is named and does not count. |a - b| <= 2e-4 max|b|, or 4e-3 for models of 16 bits. What a cache
of the last keys holds behind these is open, and is not compared."""

import json
import subprocess
import sys

import numpy as np
import onnxruntime

import language_models
import running

PRECISIONS = ("fp32", "int4", "int8", "fp16")
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
# ONNX Runtime rounds what experts' weights of 8 bits are applied to, as no attribute can prevent.
MOST = {("lfm2_moe", "int8"): 3e-2}
WINDOW = 8  # rows of a cache of the last keys
SLIDING = "past_sliding_length"


class Step:
    """Feeds for a number of words behind `past` ones."""

    def __init__(self, inputs, head_size, rng):
        self.inputs, self.rng = inputs, rng
        self.sizes = {"batch_size": 1, "kv_cache_dim": head_size, SLIDING: WINDOW}

    def feeds(self, words, past, state):
        given = {"input_ids": self.rng.integers(4, language_models.SIZES["vocab_size"], (1, words)),
                 "attention_mask": np.ones((1, past + words)), "position_ids": np.arange(past, past + words)[None]}
        sizes = {**self.sizes, "past_sequence_length": past}
        feeds = {}
        for each in self.inputs:
            dims = [sizes.get(dim, dim) for dim in each.shape]
            value = given.get(each.name)
            if value is None:
                value = state[each.name] if each.name in state else np.zeros(dims)
            feeds[each.name] = value.astype(TYPES[each.type])
        return feeds

    def state(self, answers):
        names = {each.name for each in self.inputs}
        renamed = {old: [old.replace("present", new, 1) for new in ("past_key_values", "past")] for old in answers}
        return {new: answers[old] for old, both in renamed.items() for new in both if new in names}


def wrong_in(answers, folder, most, rows):
    """What is wrong in the answers in a folder; `rows` are compared of caches of the last keys."""
    for name, value in answers.items():
        got = running.read(folder, name)
        held = rows.get(name, value.shape[2] if value.ndim == 4 else None)
        if value.ndim == 4 and got.ndim == 4:
            value, got = value[:, :, :held], got[:, :, :held]
        if why := running.difference(got, value, most):
            return f"{name}: {why}"
    return ""


def verdict(args, name, precision, folder):
    made = subprocess.run([sys.executable, running.HERE / "language_models.py", name, precision, folder],
                          capture_output=True, text=True)
    if made.returncode != 0:
        return "skipped", "no export: " + (made.stderr.strip().splitlines() or ["?"])[-1]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    model = folder / "onnx" / "model.onnx"
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    head_size = json.loads((folder / "onnx" / "genai_config.json").read_text())["model"]["decoder"]["head_size"]
    step = Step(session.get_inputs(), head_size, np.random.default_rng(0))
    layers = {each.name.split(".")[1] for each in session.get_inputs() if SLIDING in each.shape}
    names = [each.name for each in session.get_outputs()]
    state, past = {}, 0
    for words in (11, 1, 3):
        feeds = step.feeds(words, past, state)
        try:
            answers = dict(zip(names, session.run(None, feeds)))
        except Exception as error:  # of any kind that ONNX Runtime has
            return ("ok" if past else "skipped"), f"ONNX Runtime, {words} words: {error}"
        past += words
        files = {}
        for each, value in feeds.items():
            files[each] = folder / running.file_of(each)
            np.save(files[each], value)
        if failure := running.run(args.oncilla, model, files, args.device, folder / "out"):
            return "FAILED", f"{words} words: {failure}"
        rows = {each: min(past, WINDOW) for each in names if each.startswith("present") and each.split(".")[1] in layers}
        most = MOST.get((name, precision), 4e-3 if precision == "fp16" else 2e-4)
        if why := wrong_in(answers, folder / "out", most, rows):
            return "FAILED", f"{words} words: {why}"
        state = step.state(answers)
    return "ok", ""


def check(args, name, folder):
    for precision in PRECISIONS:
        inner = folder / precision
        inner.mkdir(exist_ok=True)
        yield (f"{name} {precision}", *verdict(args, name, precision, inner))


if __name__ == "__main__":
    running.main(lambda: language_models.MODELS, check, __doc__)
