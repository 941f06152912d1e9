#!/usr/bin/env python3
"""PyTorch models changed by ONNX Runtime's optimisers and quantisers must give ONNX Runtime's results.

    python3 -m venv v && v/bin/pip install -r tests/exported/requirements_torch.txt
    v/bin/python tests/exported/rewritten_test.py build/release/oncilla [--match TEXT] [--device cpu] [--keep FOLDER]

What a tool cannot rewrite, or ONNX Runtime not run, is named and does not count. An answer agrees when |a - b| <= 2e-4 max|b|, or
where it is as close to that of the model that was not rewritten as ONNX Runtime's is: roundings, of which each may make a step of a
quantised number, add up differently wherever real numbers stand between quantised ones."""

import subprocess
import sys

import numpy as np
import onnxruntime

import rewrite_onnx
import running

NETS = ("optimised", "halves", "dynamic_i8", "qdq_u8", "qdq_u8_columns", "qdq_i8_columns", "qdq_i16", "qdq_u16_columns", "ops_u8",
        "ops_u8_u8_columns")
TEXT = ("optimised", "halves", "dynamic_i8", "dynamic_u8_columns", "qdq_u8_columns", "ops_u8_u8_columns", "packed_4",
        "packed_4_symmetric", "packed_8")
FUSED = {"bart": "bart", "t5": "bart", "gpt2": "gpt2", "opt": "gpt2", "llama": "gpt2", "qwen3": "gpt2", "vit": "vit", "swin": "vit",
         "segformer": "vit"}
MODELS = {
    **{f"transformers/{name}": (*TEXT, f"fused_{kind}", f"fused_{kind}_halves")
       for name in ("bert", "distilbert", "gpt2", "t5", "vit", "albert", "bart", "llama", "swin", "segformer", "wav2vec2", "roberta",
                    "mobilebert", "electra", "opt", "qwen3")
       for kind in (FUSED.get(name, "bert"),)},
    **{name: NETS for name in (
        "torchvision/resnet18", "torchvision/mobilenet_v2", "torchvision/mobilenet_v3_small", "torchvision/efficientnet_b0",
        "torchvision/shufflenet_v2_x1_0", "torchvision/squeezenet1_1", "torchvision/googlenet", "torchvision/regnet_x_400mf",
        "torchvision/deeplabv3_mobilenet_v3_large", "timm/deit_tiny_patch16_224", "timm/ghostnet_100", "timm/lcnet_050",
        "timm/mobilevit_xs", "timm/convnextv2_atto", "timm/repvit_m0_9", "timm/mobileone_s0")},
}


def script(name, *arguments):
    """Nothing, or why a script failed."""
    ran = subprocess.run([sys.executable, running.HERE / name, *arguments], capture_output=True, text=True)
    return "" if ran.returncode == 0 else (ran.stderr.strip().splitlines() or ["?"])[-1]


def answers_of(model, folder):
    """ONNX Runtime's answers, and the files of the feeds that the model kept, by name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    files = {each.name: folder / f"{each.name}.npy" for each in session.get_inputs()}
    values = session.run(None, {name: np.load(file) for name, file in files.items()})
    return dict(zip([each.name for each in session.get_outputs()], values)), files


def error(values, exact):
    """The mean error of a tensor, as a fraction of the mean of what is exact."""
    values, exact = values.astype(np.float64), exact.astype(np.float64)
    return np.sqrt(np.mean(np.square(values - exact)) / max(np.mean(np.square(exact)), 1e-60))


def verdict(args, way, exact, folder):
    out = folder / way
    if failure := script("rewrite_onnx.py", way, folder, out):
        return "skipped", f"not rewritten: {failure}"
    try:
        wanted, files = answers_of(out / "model.onnx", folder)
    except Exception as problem:  # of any kind that ONNX Runtime has
        return "skipped", f"ONNX Runtime: {problem}"
    if failure := running.run(args.oncilla, out / "model.onnx", files, args.device, out / "out"):
        return "FAILED", failure
    notes = []
    for (name, value), true in zip(wanted.items(), exact.values()):
        got = running.read(out / "out", name)
        why = running.difference(got, value)
        if not why:
            continue
        if got.dtype != value.dtype or got.shape != value.shape or not np.isfinite(got).all():
            return "FAILED", f"{name}: {why}"
        own, theirs = error(got, true), error(value, true)
        # ONNX Runtime computes chains of 16-bit nodes in 32 bits and rounds at their ends.
        if own > (2 if way.endswith("halves") else 1.2) * theirs:
            return "FAILED", f"{name}: {why}; it is {own:.1e} from the exact answer, ONNX Runtime's {theirs:.1e}"
        notes.append(f"as close as ONNX Runtime ({own / theirs:.2f})")
    return "ok", notes[0] if notes else ""


def check(args, name, folder):
    if failure := script("export_torch.py", name, "script", folder):
        yield name, "skipped", f"no export: {failure}"
        return
    exact, _ = answers_of(folder / "model.onnx", folder)
    for way in MODELS[name]:
        yield (f"{name} {way}", *verdict(args, way, exact, folder))


if __name__ == "__main__":
    running.main(lambda: MODELS, check, __doc__)
