"""SavedModels whose weights are drawn from a seed. The repository holds what TensorFlow wrote but the numbers: the graph and
the checkpoint's index, compressed; the data shard is made again here, byte for byte, and compared with the SHA-256 of
TensorFlow's own. weights.json lists the shard from front to back: a tensor as [seed, low, high, shape], other bytes as
base64 (the object graph among them)."""

import base64
import gzip
import hashlib
import json

import seeded

SHARD = "variables/variables.data-00000-of-00001"
FILES = ("saved_model.pb", "variables/variables.index", "weights.json")


def shard(layout):
    out = bytearray()
    for part in layout["parts"]:
        if isinstance(part, str):
            out += base64.b64decode(part)
        else:
            seed, low, high, shape = part
            out += seeded.uniform(seed, shape, low, high).astype("<f4").tobytes()
    return bytes(out)


def write(source, folder):
    """The SavedModel kept in `source`, whole, in `folder`."""
    (folder / "variables").mkdir()
    for name in FILES[:2]:
        (folder / name).write_bytes(gzip.decompress((source / (name.replace("/", ".") + ".gz")).read_bytes()))
    layout = json.loads(gzip.decompress((source / "weights.json.gz").read_bytes()))
    data = shard(layout)
    if hashlib.sha256(data).hexdigest() != layout["sha256"]:
        raise RuntimeError(f"the weights of {source.name} come out otherwise than when they were recorded")
    (folder / SHARD).write_bytes(data)
