#!/usr/bin/env python3
"""Records what ONNX Runtime answers on the ONNX models of models.py, in recorded/NAME.npz.

    python3 -m venv v && v/bin/pip install onnxruntime==1.31.1 onnx==1.23.2 pillow numpy
    v/bin/python tests/models/make_onnx_references.py [NAME..]

Tensors inside a graph are made outputs of a copy in memory. The pictures are committed; draw() made them."""

import sys

import numpy as np
import onnx
import onnxruntime

import models
import seeded


def draw(font):
    """line.png and page.png: `font` is a TrueType file (DejaVu Sans)."""
    from PIL import Image, ImageDraw, ImageFont
    line = Image.new("L", (320, 48), 236)
    ImageDraw.Draw(line).text((10, 5), "Oncilla runs 2026", font=ImageFont.truetype(font, 33), fill=32)
    line.save(models.RECORDED / "line.png")
    page = Image.new("L", (320, 192), 225)
    ImageDraw.Draw(page).text((24, 20), "Oncilla", font=ImageFont.truetype(font, 40), fill=40)
    ImageDraw.Draw(page).text((60, 110), "small wild cat", font=ImageFont.truetype(font, 30), fill=70)
    # Grain as of a scan: on flat colours the detector's scores reach 120, whose rounding a sigmoid enlarges beyond 1e-4.
    grain = seeded.integers(50, [192, 320], 25) - 12
    Image.fromarray(np.clip(np.asarray(page) + grain, 0, 255).astype(np.uint8)).save(models.RECORDED / "page.png")


def array(feed):
    """A feed as an array; a picture as the program makes it with the flags of models.PHOTOGRAPH."""
    if isinstance(feed, np.ndarray):
        return feed
    from PIL import Image
    pixels = np.asarray(Image.open(feed).convert("RGB")).astype(np.float32)
    scaled = (pixels - np.float32(models.PHOTOGRAPH[1])) * np.float32(models.PHOTOGRAPH[3])
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])


def record(name):
    model = models.MODELS[name]
    proto = onnx.load(model.path())
    known = {o.name for o in proto.graph.output}
    for output in set(model.outputs) - known:
        proto.graph.output.append(onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {k: array(v) for k, v in model.feeds().items()}
    results = dict(zip(model.outputs, session.run(list(model.outputs), feeds)))
    if model.reads:
        assert model.reads(model.path(), results) == model.says, model.reads(model.path(), results)
    parts = {}
    for i, (output, every) in enumerate(model.outputs.items()):
        assert every == 1 or results[output].size % every, (output, every)
        parts.update({f"{i}.{k}": v for k, v in models.digest(results[output], every).items()})
    np.savez_compressed(models.RECORDED / f"{name}.npz", **parts)
    print(name, {k: (v.shape, float(v.min()), float(v.max())) for k, v in results.items()},
          (models.RECORDED / f"{name}.npz").stat().st_size)


if __name__ == "__main__":
    for each in sys.argv[1:] or [n for n, m in models.MODELS.items() if m.path().suffix == ".onnx"]:
        record(each)
