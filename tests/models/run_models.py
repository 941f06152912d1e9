#!/usr/bin/env python3
"""Runs a model of testdata/tensorflow/runs through the program, step by step, and compares with what TensorFlow answered:
  run_models.py --oncilla PROGRAM --device SPEC FOLDER

Floats agree when |a - b| <= 1e-4 (|b| + 0.1 max|b|), everything else when it is equal. See make_run_models.py for how the models came to be."""
import argparse, json, pathlib, subprocess, sys, tempfile
import numpy as np


def read(path):
    if path.suffix == ".npy": return np.load(path)
    text = json.loads(path.read_text())
    return np.array(text["data"], dtype=object).reshape(text["shape"])


def difference(got, want):
    """Nothing when they agree, else what is wrong."""
    if got.dtype != want.dtype or got.shape != want.shape: return f"is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if want.dtype.kind not in "fc": return "" if np.array_equal(got, want) else f"is\n{got}\nnot\n{want}"
    if want.size == 0: return ""
    if not np.array_equal(np.isnan(got), np.isnan(want)): return "has NaN in other places"
    error = np.nan_to_num(np.abs(got - want) / np.maximum(np.abs(want) + 0.1 * np.nanmax(np.abs(want)), 1e-30))
    return "" if error.max() <= 1e-4 else f"differs by {error.max():.3g}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--oncilla", required=True)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("folder", type=pathlib.Path)
    flags = arguments.parse_args()
    runs = flags.folder / "runs"
    steps = json.loads((runs / "steps.json").read_text())
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for step in steps:
            step["inputs"] = {key: str((runs / file).resolve()) for key, file in step["inputs"].items()}
            step["output_dir"] = str(scratch / step["output_dir"])
        (scratch / "steps.json").write_text(json.dumps(steps))
        command = [flags.oncilla, "run", str(flags.folder / "model"), "--steps", str(scratch / "steps.json"), "--device", flags.device]
        if flags.device == "gpu": command.append("--opencl-cpu-devices")
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            print(done.stderr)
            return f"exit code {done.returncode}"
        wrong = compared = 0
        for k, step in enumerate(steps):
            for key in step["outputs"]:
                want = read(next(runs.glob(f"out_{k}_{key}.*")))
                got = read(next(pathlib.Path(step["output_dir"]).glob(f"{key}.*")))
                text = difference(got, want)
                compared += 1
                if text:
                    print(f"step {k} ({step['signature']}), output {key} {text}")
                    wrong += 1
    print(f"{flags.folder.name} on {flags.device}: {len(steps)} steps, {compared} outputs, {wrong} wrong")
    return wrong


sys.exit(1 if main() else 0)
