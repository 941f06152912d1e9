# Makes the small files beside it with the programs that people really use (NumPy, Pillow, ml_dtypes,
# onnx), for the tests of oncilla's own readers. Needs: pip install numpy pillow ml_dtypes onnx
import hashlib
import pathlib

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from PIL import Image

here = pathlib.Path(__file__).parent
grid = np.arange(6).reshape(2, 3)
np.save(here / "f32.npy", grid.astype("<f4") / 2)
np.save(here / "f64_big_endian.npy", grid.astype(">f8") / 2)
np.save(here / "i16_fortran.npy", np.asfortranarray(grid.astype("<i2")))
np.save(here / "bf16.npy", (grid / 2).astype(ml_dtypes.bfloat16))
np.save(here / "unicode.npy", np.array(["caf\u00e9", "", "\U0001f43e x"]))
np.save(here / "bytes.npy", np.array([b"ab", b"c"]))
np.save(here / "objects.npy", np.array([{}, None], dtype=object))
np.save(here / "scalar.npy", np.int64(-7))
np.savez(here / "stored.npz", a=grid.astype("<i8"), b=np.array([True, False]))
np.savez_compressed(here / "deflated.npz", image=np.tile(grid.astype("u1"), (40, 50)))

rng = np.random.default_rng(3)
rgb = rng.integers(0, 256, (12, 17, 3), dtype=np.uint8)
alpha = rng.integers(0, 256, (12, 17, 1), dtype=np.uint8)
Image.fromarray(rgb).save(here / "rgb.png")
Image.fromarray(np.concatenate([rgb, alpha], 2)).save(here / "rgba.png")
Image.fromarray(rgb[:, :, 0]).save(here / "grey.png")
Image.fromarray(rgb).quantize(16).save(here / "palette.png", bits=4)
Image.fromarray((rgb[:, :, 0].astype("u2") << 8) | 37).save(here / "grey16.png")
smooth = np.asarray(Image.fromarray(rgb).resize((33, 21), Image.BICUBIC))
Image.fromarray(smooth).save(here / "smooth.jpg", quality=90)
Image.fromarray(smooth).convert("L").save(here / "grey.jpg", quality=90)
Image.fromarray(smooth).convert("CMYK").save(here / "cmyk.jpg", quality=90)

for name, t in {"i64": grid.astype("i8"), "strings": np.array(["a", "\u00fc"], dtype=object)}.items():
    (here / f"{name}.pb").write_bytes(numpy_helper.from_array(t, name).SerializeToString())
listed = onnx.helper.make_tensor("h", onnx.TensorProto.FLOAT16, [3], [1.5, -2, 65504])
(here / "f16_list.pb").write_bytes(listed.SerializeToString())

for name in ["rgb.png", "rgba.png", "grey.png", "palette.png", "smooth.jpg", "grey.jpg"]:
    image = np.asarray(Image.open(here / name).convert("RGB"))
    print(name, image.shape, hashlib.sha256(image.tobytes()).hexdigest())
for name in ["rgb.png", "smooth.jpg"]:
    image = np.asarray(Image.open(here / name).convert("L"))
    print(name, "grey", image.shape, hashlib.sha256(image.tobytes()).hexdigest())
# Resized one channel at a time in float, so that Pillow does not round.
channels = [Image.fromarray(rgb[:, :, c].astype("f4")).resize((7, 5), Image.BILINEAR) for c in range(3)]
small = np.stack([np.asarray(c) for c in channels], 2)
print("small", small[0, 0], small[2, 3], small[4, 6])
channels = [Image.fromarray(rgb[:, :, c].astype("f4")).resize((40, 30), Image.BILINEAR) for c in range(3)]
large = np.stack([np.asarray(c) for c in channels], 2)
print("large", large[0, 0], large[13, 21], large[29, 39])
