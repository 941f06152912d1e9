#!/usr/bin/env python3
"""Models exported by PyTorch must give ONNX Runtime's results.

    python3 -m venv v && v/bin/pip install -r tests/exported/requirements_torch.txt
    v/bin/python tests/exported/torch_test.py build/release/oncilla [--match TEXT] [--exporter script|dynamo]
                                                 [--device cpu] [--keep FOLDER]

A model that PyTorch cannot export, or ONNX Runtime not run, is named and does not count. A float agrees when
|a - b| <= 2e-4 max|b|, everything else when it is equal. Of Transformers' models no more softmaxes may be left than
SOFTMAXES says: the others became Attention."""

import re
import subprocess
import sys

import numpy as np
import onnxruntime

import running
import torch_models

# Softmaxes that are no attention, or of a kind that is not found yet (docs/roadmap.md).
SOFTMAXES = {
    "transformers/bloom": 2, "transformers/clap": 5, "transformers/convbert": 2, "transformers/deberta_v2": 2, "transformers/falcon": 2,
    "transformers/longformer": 2, "transformers/mask2former": 6, "transformers/squeezebert": 2, "transformers/xlnet": 2,
    "transformers/deberta": 2,
}


def expected(folder):
    """ONNX Runtime's answers by name, and the feeds that the model kept."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    feeds = {each.name: np.load(folder / f"{each.name}.npy") for each in session.get_inputs()}
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, feeds))), list(feeds)


def run(args, folder, names):
    feeds = {name: folder / f"{name}.npy" for name in names}
    failure = running.run(args.oncilla, folder / "model.onnx", feeds, args.device, folder / "out")
    if failure:
        return failure
    plan = subprocess.run([args.oncilla, "inspect", folder / "model.onnx", "--device", "cpu", "--plan",
                           *running.options_of(feeds)], capture_output=True, text=True, timeout=600)
    (folder / "plan.txt").write_text(plan.stdout)
    return "" if plan.returncode == 0 else plan.stderr.strip()


def verdict(args, name, folder):
    made = subprocess.run([sys.executable, running.HERE / "export_torch.py", name, args.exporter, folder],
                          capture_output=True, text=True)
    if made.returncode != 0:
        return "skipped", "no export: " + (made.stderr.strip().splitlines() or ["?"])[-1]
    try:
        wanted, feeds = expected(folder)
    except Exception as error:  # of any kind that ONNX Runtime has
        return "skipped", f"ONNX Runtime: {error}"
    failure = run(args, folder, feeds)
    if failure:
        return "FAILED", failure
    if not any(value.size for value in wanted.values()):
        return "FAILED", "ONNX Runtime's answers are empty, so that nothing is compared"
    for output, value in wanted.items():
        wrong = running.difference(np.load(folder / "out" / running.file_of(output)), value)
        if wrong:
            return "FAILED", f"{output}: {wrong}"
    softmaxes = len(re.findall(r"^  Softmax ", (folder / "plan.txt").read_text(), re.M))
    if name.startswith("transformers/") and softmaxes > SOFTMAXES.get(name, 0):
        return "FAILED", f"{softmaxes} softmaxes did not become Attention"
    return "ok", ""


def check(args, name, folder):
    yield (name, *verdict(args, name, folder))


if __name__ == "__main__":
    running.main(torch_models.names, check, __doc__, lambda parser: parser.add_argument(
        "--exporter", default="script", choices=["script", "dynamo"]))
