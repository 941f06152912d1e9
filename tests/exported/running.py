"""Runs the program on an exported model and compares its results; shared by the tests of all exporters."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def file_of(name, ending=".npy"):
    """The file in which --output-dir writes an output."""
    return re.sub(rb"[^A-Za-z0-9_.-]", lambda m: b"%%%02X" % m[0][0], name.encode()).decode() + ending


def read(folder, name):
    """An output as --output-dir wrote it; strings as bytes."""
    if (folder / file_of(name)).exists():
        return np.load(folder / file_of(name))
    text = json.loads((folder / file_of(name, ".json")).read_text())
    return np.array([each.encode() for each in text["data"]], object).reshape(text["shape"])


def difference(a, b, most=2e-4):
    """What is wrong with a where b is right, or nothing. Floats may differ by `most` of the largest."""
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
    return "" if error <= most else f"differs by {error:.1e}"


def run(oncilla, model, inputs, device, out):
    """Nothing, or why the run failed. inputs: a file for each name."""
    command = [oncilla, "run", model, "--device", device, "--output-dir", out, "-q"]
    command += ["--opencl-cpu-devices"] if device.startswith("gpu") else []
    ran = subprocess.run([*command, *options_of(inputs)], capture_output=True, text=True, timeout=600)
    return "" if ran.returncode == 0 else ran.stderr.strip() or f"ended with {ran.returncode}"


def options_of(inputs):
    return [option for name, file in inputs.items() for option in ("--input", f"{name}={file}")]


def main(names, check, description, add_options=lambda parser: None):
    """check(args, name, folder) yields a (what, "ok" | "skipped" | "FAILED", why) for each thing that it looked at."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("oncilla", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--match", default="", help="only models whose name has this text")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the models, feeds and answers")
    add_options(parser)
    args = parser.parse_args()
    counts = {}
    for name in names():
        if args.match not in name:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = args.keep / name if args.keep else pathlib.Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            for what, state, why in check(args, name, folder):
                counts[state] = counts.get(state, 0) + 1
                print(f"{state:8}{what}" + (f"  {' '.join(why.split())[:300]}" if why else ""), flush=True)
    print(json.dumps(counts))
    if not counts:
        sys.exit(f"no model's name has '{args.match}'")
    sys.exit(1 if counts.get("FAILED") else 0)
