#!/usr/bin/env python3
"""Writes the seeds of the fuzzers:
    tests/fuzz/make_seeds.py FOLDER PROGRAM
FOLDER/onnx: the smallest of ONNX's own node tests (Debian's libonnx-testdata); FOLDER/saved_model and
FOLDER/graphdef: the small SavedModels of testdata and the graphs inside them; FOLDER/checkpoint: their
indexes, as a whole and as entries (see checkpoint_fuzz.cc); FOLDER/text: texts, the small one in parts;
FOLDER/tflite: the small models and cases of testdata;
FOLDER/container: the graph parts of what PROGRAM (oncilla) converts the SavedModels to."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ONNX_NODE_TESTS = pathlib.Path("/usr/share/libonnx-testdata/data/node")
MAX_ONNX_BYTES = 4096


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def views(data, wanted):
    """The length-delimited fields `wanted` of a message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            _, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            if number == wanted:
                yield data[at:at + size]
            at += size
        else:
            at += 8 if kind == 1 else 4


def entries(index):
    """Keys and values of the first data block of an index, as checkpoint_fuzz.cc takes them."""
    at, key, out = 0, b"", b"\3"
    while at < len(index):
        shared, at = varint(index, at)
        own, at = varint(index, at)
        size, at = varint(index, at)
        if shared > len(key) or own + size > 4096 or (shared == 0 and own == 0 and key):
            break
        key = key[:shared] + index[at:at + own]
        value = index[at + own:at + own + size]
        at += own + size
        if len(key) < 32 and len(value) < 256:
            out += bytes([len(key), len(value)]) + key + value
    return out


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in ("onnx", "saved_model", "graphdef", "checkpoint", "text", "container", "tflite"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    models = sorted((ROOT / "testdata/tensorflow/models").glob("*/saved_model.pb"))
    for path in models:
        name, data = path.parent.name, path.read_bytes()
        (folder / "saved_model" / name).write_bytes(data)
        for meta_graph in views(data, 2):
            for graph_def in views(meta_graph, 2):
                (folder / "graphdef" / name).write_bytes(graph_def)
        index = (path.parent / "variables/variables.index").read_bytes()
        (folder / "checkpoint" / f"{name}_file").write_bytes(b"\0" + index)
        (folder / "checkpoint" / f"{name}_block").write_bytes(b"\1" + index[:-48])
        (folder / "checkpoint" / f"{name}_entries").write_bytes(entries(index))
    for path in sorted((ROOT / "testdata/tflite").glob("*.tflite")):
        (folder / "tflite" / path.stem).write_bytes(path.read_bytes())
    texts = ROOT / "testdata/tensorflow/text"
    (folder / "text/frozen").write_bytes((texts / "frozen.pbtxt").read_bytes())
    (folder / "text/version1").write_bytes((texts / "version1/saved_model.pbtxt").read_bytes())
    (folder / "text/node").write_bytes((texts / "frozen.pbtxt").read_bytes()[:700])
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work) / "model"
        for path in models + sorted((ROOT / "testdata/tensorflow/runs").glob("*/model/saved_model.pb")):
            command = [sys.argv[2], "convert", path.parent, "-o", file, "--no-verify"]
            if subprocess.run(command, capture_output=True).returncode == 0:
                data = file.read_bytes()
                size = int.from_bytes(data[16:24], "little")
                name = path.parent.parent.name if path.parent.name == "model" else path.parent.name
                (folder / "container" / name).write_bytes(data[64:64 + size])
    count = 0
    for path in sorted(ONNX_NODE_TESTS.glob("*/model.onnx")):
        if path.stat().st_size <= MAX_ONNX_BYTES:
            (folder / "onnx" / path.parent.name).write_bytes(path.read_bytes())
            count += 1
    print(f"{len(models)} SavedModels, {count} ONNX files")
    if not models or not count or not any((folder / "container").iterdir()):
        sys.exit("there are no seeds")


main()
