#!/usr/bin/env python3
"""What PyTorch exports runs as ONNX Runtime runs it.

    python3 -m venv v && v/bin/pip install -r tests/exported/requirements.txt
    v/bin/python tests/exported/exported_test.py build/release/oncilla [--match TEXT] [--exporter script|dynamo]
                                                 [--device cpu] [--keep FOLDER]

A model that PyTorch cannot export, or ONNX Runtime not run, is named and does not count. A float agrees when
|a - b| <= 2e-4 max|b|, everything else when it is equal. Of Transformers' models no more softmaxes may be left than
SOFTMAXES says: the others became Attention."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

import torch_models

HERE = pathlib.Path(__file__).resolve().parent

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


def file_of(name):
    return re.sub(rb"[^A-Za-z0-9_.-]", lambda m: b"%%%02X" % m[0][0], name.encode()).decode() + ".npy"


def difference(a, b):
    """What is wrong with a where b is right, or nothing."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{list(a.shape)} for {b.dtype}{list(b.shape)}"
    if b.dtype.kind != "f":
        return "" if np.array_equal(a, b) else f"{np.mean(a != b):.3f} of the elements differ"
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)):
        return "other elements are finite"
    if not finite.any():
        return ""
    error = np.abs(a[finite].astype(np.float64) - b[finite]).max() / max(np.abs(b[finite]).max(), 1e-30)
    return "" if error <= 2e-4 else f"differs by {error:.1e}"


def run(oncilla, folder, feeds, device):
    command = [oncilla, "run", folder / "model.onnx", "--device", device, "--output-dir", folder / "out", "-q"]
    command += ["--opencl-cpu-devices"] if device.startswith("gpu") else []
    given = [option for name in feeds for option in ("--input", f"{name}={folder / name}.npy")]
    ran = subprocess.run([*command, *given], capture_output=True, text=True, timeout=600)
    if ran.returncode != 0:
        return ran.stderr.strip() or f"ended with {ran.returncode}"
    plan = subprocess.run([oncilla, "inspect", folder / "model.onnx", "--device", "cpu", "--plan", *given],
                          capture_output=True, text=True, timeout=600)
    (folder / "plan.txt").write_text(plan.stdout)
    return "" if plan.returncode == 0 else plan.stderr.strip()


def check(args, name, folder):
    """("ok" | "skipped" | "FAILED", why)."""
    made = subprocess.run([sys.executable, HERE / "export.py", name, args.exporter, folder], capture_output=True, text=True)
    if made.returncode != 0:
        return "skipped", "no export: " + (made.stderr.strip().splitlines() or ["?"])[-1]
    try:
        wanted, feeds = expected(folder)
    except Exception as error:  # of any kind that ONNX Runtime has
        return "skipped", f"ONNX Runtime: {error}"
    failure = run(args.oncilla, folder, feeds, args.device)
    if failure:
        return "FAILED", failure
    if not any(value.size for value in wanted.values()):
        return "FAILED", "ONNX Runtime's answers are empty, so that nothing is compared"
    for output, value in wanted.items():
        wrong = difference(np.load(folder / "out" / file_of(output)), value)
        if wrong:
            return "FAILED", f"{output}: {wrong}"
    softmaxes = len(re.findall(r"^  Softmax ", (folder / "plan.txt").read_text(), re.M))
    if name.startswith("transformers/") and softmaxes > SOFTMAXES.get(name, 0):
        return "FAILED", f"{softmaxes} softmaxes did not become Attention"
    return "ok", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("oncilla", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--match", default="", help="only models whose name has this text")
    parser.add_argument("--exporter", default="script", choices=["script", "dynamo"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the models, feeds and answers")
    args = parser.parse_args()
    counts = {}
    for name in torch_models.names():
        if args.match not in name:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = args.keep / name if args.keep else pathlib.Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            state, why = check(args, name, folder)
        counts[state] = counts.get(state, 0) + 1
        print(f"{state:8}{name}" + (f"  {why[:300]}" if why else ""), flush=True)
    print(json.dumps(counts))
    if not counts:
        sys.exit(f"no model's name has '{args.match}'")
    sys.exit(1 if counts.get("FAILED") else 0)


if __name__ == "__main__":
    main()
