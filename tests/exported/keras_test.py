#!/usr/bin/env python3
"""Models exported by Keras must give TensorFlow's results: as SavedModels, frozen, and as TFLite.

    python3 -m venv v && v/bin/pip install -r tests/exported/requirements_keras.txt
    v/bin/python tests/exported/keras_test.py build/release/oncilla [--match TEXT] [--device cpu] [--keep FOLDER]

A form that TensorFlow cannot write is named and does not count. A float agrees when |a - b| <= 2e-4 max|b|, or 2e-3 and 2e-2 of a
net of 16-bit numbers; everything else when it is equal."""

import json
import subprocess
import sys

import numpy as np

import keras_hub_models  # noqa: F401
import keras_models
import running

# TensorFlow computes these nets in 16 bits, step by step.
MOST = {"nets/mixed_float16": 2e-3, "nets/mixed_bfloat16": 2e-2}


def verdict(args, name, form, names, folder):
    if "absent" in names:
        return "skipped", "no export: " + names["absent"]
    inputs, wanted = np.load(folder / "inputs.npz"), np.load(folder / "outputs.npz")
    files = {}
    for each, called in names["inputs"].items():
        files[called] = folder / running.file_of(each)
        value = inputs[each]
        np.save(files[called], value.astype("U") if value.dtype.kind == "S" else value)
    out = folder / f"out_{form}"
    failure = running.run(args.oncilla, folder / form, files, args.device, out)
    if failure:
        return "FAILED", failure
    for each, called in names["outputs"].items():
        answer = wanted[each].astype(object) if wanted[each].dtype.kind == "S" else wanted[each]
        if answer.size == 0:
            return "FAILED", f"{each}: TensorFlow's answer is empty, so that nothing is compared"
        wrong = running.difference(running.read(out, called), answer, MOST.get(name, 2e-4))
        if wrong:
            return "FAILED", f"{each}: {wrong}"
    return "ok", ""


def check(args, name, folder):
    made = subprocess.run([sys.executable, running.HERE / "export_keras.py", name, folder], capture_output=True, text=True)
    if made.returncode != 0:
        yield name, "skipped", "no export: " + (made.stderr.strip().splitlines() or ["?"])[-1]
        return
    for form, names in json.loads((folder / "forms.json").read_text()).items():
        yield (f"{name}.{form}", *verdict(args, name, form, names, folder))


if __name__ == "__main__":
    running.main(keras_models.names, check, __doc__)
