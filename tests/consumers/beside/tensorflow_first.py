#!/usr/bin/env python3
"""Runs models in a process that has imported TensorFlow before: patterns, whose library TensorFlow has too, and the quickstart's
net, on the CPU and on the first GPU, which is PoCL's in tools/nightly: a driver with LLVM, whose names TensorFlow exports.
tensorflow_first.py LIBRARY QUICKSTART_MODEL"""
import ctypes, os, pathlib, sys, tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # first

oncilla = ctypes.CDLL(sys.argv[1])
POINTER = ctypes.c_void_p


def call(name, *arguments):
    """A function that returns a status."""
    function = getattr(oncilla, name)
    function.restype = POINTER
    status = function(*arguments)
    if status:
        oncilla.oncilla_status_message.restype = ctypes.c_char_p
        sys.exit(f"{name}: {oncilla.oncilla_status_message(POINTER(status)).decode()}")


def handle(name, *arguments):
    """What a function makes through its last argument."""
    made = POINTER()
    call(name, *arguments, ctypes.byref(made))
    return made


class SessionOptions(ctypes.Structure):
    """The first members: the library reads no more than `size` bytes."""
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p)]


def load(runtime, device, path):
    options = SessionOptions(ctypes.sizeof(SessionOptions), device.encode())
    session = handle("oncilla_session_create", runtime, ctypes.byref(options))
    return handle("oncilla_model_load", session, str(path).encode(), None)


def run(model, name, tensor, output):
    names, tensors = (ctypes.c_char_p * 1)(name), (POINTER * 1)(tensor)
    result = handle("oncilla_model_run", model, names, tensors, ctypes.c_size_t(1), None)
    oncilla.oncilla_result_find.restype = POINTER
    found = POINTER(oncilla.oncilla_result_find(result, output))
    size = ctypes.c_size_t()
    oncilla.oncilla_tensor_string.restype = ctypes.c_char_p
    return oncilla.oncilla_tensor_string(found, ctypes.c_size_t(0), ctypes.byref(size)).decode()


def main():
    runtime = handle("oncilla_runtime_create", None)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "patterns.pbtxt"
        path.write_text("""node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }
            node { name: 'y' op: 'StaticRegexReplace' input: 'x'
                   attr { key: 'pattern' value { s: '(a+)b*$' } } attr { key: 'rewrite' value { s: '<\\\\1>' } } }""")
        model = load(runtime, "cpu", path)
        text = handle("oncilla_tensor_create_strings", (ctypes.c_int64 * 1)(1), ctypes.c_size_t(1), (ctypes.c_char_p * 1)(b"caabb"), None, ctypes.c_size_t(1))
        ours, theirs = run(model, b"x:0", text, b"y:0"), tf.strings.regex_replace("caabb", "(a+)b*$", r"<\1>").numpy().decode()
        print("patterns:", ours, theirs)
        wrong = ours != theirs or ours != "c<aa>"
    image = tf.io.decode_png(pathlib.Path(sys.argv[2]).parent.joinpath("coffee.png").read_bytes()).numpy()[None]
    dims, tensor = (ctypes.c_int64 * 4)(*image.shape), POINTER()
    call("oncilla_tensor_create", ctypes.c_int(UINT8), dims, ctypes.c_size_t(4), image.ctypes.data_as(POINTER),
         ctypes.c_size_t(image.nbytes), ctypes.byref(tensor))
    for device in ("cpu", "gpu:0"):
        label = run(load(runtime, device, sys.argv[2]), b"image", tensor, b"label")
        print(f"quickstart on {device}:", label)
        wrong |= label != "espresso"
    return wrong


UINT8 = 0
for line in pathlib.Path(__file__).resolve().parents[3].joinpath("engine/api/oncilla.h").read_text().splitlines():
    if "ONCILLA_UINT8 =" in line: UINT8 = int(line.split("=")[1].split(",")[0])
sys.exit(1 if main() else 0)
