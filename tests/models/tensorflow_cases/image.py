"""Images: sizes, crops, projections, colours, boxes, files."""
from recorder import *
import os, struct, zlib


def u8(*shape):
    return i32(*shape, lo=0, hi=256).astype(np.uint8)


for kind in ("", "corners", "half"):
    kw = dict(align_corners=kind == "corners", half_pixel_centers=kind == "half")
    for k, size in enumerate([(8, 9), (3, 2), (5, 5), (1, 1), (4, 5), (2, 13)]):
        case("ResizeBicubic_%s_%d" % (kind or "old", k), lambda a, kw=kw, size=size: raw.ResizeBicubic(images=a, size=c(list(size)), **kw), f32(2, 4, 5, 3))
        if kind != "half": case("ResizeArea_%s_%d" % (kind or "old", k), lambda a, kw=kw, size=size: raw.ResizeArea(images=a, size=c(list(size)), align_corners=kw["align_corners"]), f32(2, 4, 5, 3))
case("ResizeBicubic_u8", lambda a: raw.ResizeBicubic(images=a, size=c([3, 7])), u8(1, 4, 5, 3))
case("ResizeBicubic_fed", lambda a, s: raw.ResizeBicubic(images=a, size=s, half_pixel_centers=True), f32(1, 4, 5, 3), np.array([6, 6], np.int32))
case("ResizeArea_u8", lambda a: raw.ResizeArea(images=a, size=c([3, 2])), u8(1, 7, 9, 3))
case("ResizeArea_fed", lambda a, s: raw.ResizeArea(images=a, size=s), f32(1, 4, 5, 3), np.array([2, 2], np.int32))
case("ResizeBilinear_fed", lambda a, s: raw.ResizeBilinear(images=a, size=s, half_pixel_centers=True), f32(1, 4, 5, 3), np.array([7, 2], np.int32))
for t in (np.int32, np.float64, np.float16): case("ResizeBilinear_" + np.dtype(t).name, lambda a: raw.ResizeBilinear(images=a, size=c([7, 2])), i32(1, 4, 5, 3).astype(t))

for kernel in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"):
    for k, (size, scale, shift, anti) in enumerate([((9, 7), (1.8, 0.7), (0.0, 0.0), True), ((3, 4), (0.5, 0.4), (0.3, -0.2), True), ((4, 11), (0.6, 2.2), (-1.0, 3.0), False)]):
        case("ScaleAndTranslate_%s_%d" % (kernel, k), lambda a, s, t, kernel=kernel, anti=anti, size=size: raw.ScaleAndTranslate(images=a, size=c(list(size)), scale=s, translation=t, kernel_type=kernel, antialias=anti),
             f32(1, 5, 10, 2), np.array(scale, np.float32), np.array(shift, np.float32))
case("ScaleAndTranslate_u8", lambda a: raw.ScaleAndTranslate(images=a, size=c([3, 3]), scale=c([0.6, 0.6]), translation=c([0., 0.])), u8(2, 5, 5, 3))
case("ScaleAndTranslate_scale", lambda a, s: raw.ScaleAndTranslate(images=a, size=c([3, 3]), scale=s, translation=c([0., 0.])), f32(2, 5, 5, 3), np.array([0, 1], np.float32), error=True)
BOXES = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [0.8, 0.9, 0.1, 0.2], [-0.5, -0.5, 1.5, 1.2], [0.5, 0.5, 0.5, 0.5]], np.float32)
for method in ("bilinear", "nearest"):
    for k, size in enumerate([(3, 4), (1, 1), (7, 2)]):
        case("CropAndResize_%s_%d" % (method, k), lambda a, b, i, method=method, size=size: raw.CropAndResize(image=a, boxes=b, box_ind=i, crop_size=c(list(size)), method=method, extrapolation_value=-3.5 if size[0] == 3 else 0.), f32(2, 5, 6, 2), BOXES, np.array([0, 1, 1, 0, 1], np.int32))
case("CropAndResize_u8", lambda a, b, i: raw.CropAndResize(image=a, boxes=b, box_ind=i, crop_size=c([3, 3])), u8(2, 5, 6, 3), BOXES, np.array([0, 1, 1, 0, 1], np.int32))
case("CropAndResize_none", lambda a, b, i: raw.CropAndResize(image=a, boxes=b, box_ind=i, crop_size=c([3, 3])), f32(2, 5, 6, 3), BOXES[:0], np.zeros([0], np.int32))
case("CropAndResize_range", lambda a, b, i: raw.CropAndResize(image=a, boxes=b, box_ind=i, crop_size=c([3, 3])), f32(2, 5, 6, 3), BOXES[:1], np.array([2], np.int32), error=True)
T1 = np.array([[1, 0.2, -1.5, -0.1, 0.9, 0.7, 0, 0]], np.float32)
T2 = np.array([[0.8, 0.3, -3, -0.3, 1.2, 4, 0.01, -0.02], [-1, 0, 12, 0, 1, -9, 0, 0]], np.float32)
for inter in ("NEAREST", "BILINEAR"):
    for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for k, t in enumerate((T1, T2)):
            case("ImageProjectiveTransformV3_%s_%s_%d" % (inter, fill, k), lambda a, t, inter=inter, fill=fill: raw.ImageProjectiveTransformV3(images=a, transforms=t, output_shape=c([6, 9]), fill_value=c(2.5), interpolation=inter, fill_mode=fill), f32(2, 6, 7, 2), t)
case("ImageProjectiveTransformV2", lambda a, t: [raw.ImageProjectiveTransformV2(images=a, transforms=t, output_shape=c([4, 5]), interpolation=i) for i in ("NEAREST", "BILINEAR")], f32(2, 6, 7, 2), T1)
case("ImageProjectiveTransformV3_u8", lambda a, t: [raw.ImageProjectiveTransformV3(images=a, transforms=t, output_shape=c([4, 5]), fill_value=c(7.0), interpolation=i) for i in ("NEAREST", "BILINEAR")], u8(2, 6, 7, 2), T1)
for name, version in (("ExtractGlimpse", raw.ExtractGlimpse), ("ExtractGlimpseV2", raw.ExtractGlimpseV2)):
    for centered in (True, False):
        for normalized in (True, False):
            case("%s_%d_%d" % (name, centered, normalized), lambda a, o, v=version, ce=centered, no=normalized: v(input=a, size=c([3, 4]), offsets=o, centered=ce, normalized=no, uniform_noise=False, noise="zero"),
                 f32(3, 6, 7, 2), np.array([[0.1, 0.2], [-0.4, 0.6], [0.9, -0.9]], np.float32) * (1 if normalized else 3))
case("ExtractGlimpse_inside", lambda a, o: raw.ExtractGlimpse(input=a, size=c([2, 2]), offsets=o), f32(1, 8, 8, 2), np.array([[0, 0]], np.float32))

RGB = np.concatenate([f32(2, 3, 3, lo=0, hi=1), np.array([[[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 1, 0], [0, 0.3, 0.3], [0.2, 0, 0.2]]], np.float32)[:, :3]], 0)
case("RGBToHSV", lambda a: raw.RGBToHSV(images=a), RGB)
case("RGBToHSV_f64", lambda a: raw.RGBToHSV(images=a), RGB.astype(np.float64))
case("HSVToRGB", lambda a: raw.HSVToRGB(images=a), f32(4, 5, 3, lo=0, hi=1))
case("HSVToRGB_edges", lambda a: raw.HSVToRGB(images=a), np.array([[h / 6, s, v] for h in range(7) for s in (0, 0.5, 1) for v in (0, 1)], np.float32))
for d in (0.0, 0.3, -0.7, 1.0): case("AdjustHue_%s" % str(d).replace(".", "_").replace("-", "m"), lambda a, d=d: raw.AdjustHue(images=a, delta=c(d)), RGB)
for d in (0.0, 0.5, 1.0, 3.0): case("AdjustSaturation_%s" % str(d).replace(".", "_"), lambda a, d=d: raw.AdjustSaturation(images=a, scale=c(d)), RGB)
case("AdjustHue_fed", lambda a, d: raw.AdjustHue(images=a, delta=d), RGB, np.float32(0.25))
case("AdjustContrastv2", lambda a, k: raw.AdjustContrastv2(images=a, contrast_factor=k), f32(2, 4, 5, 3), np.float32(1.7))
case("AdjustContrastv2_one", lambda a: raw.AdjustContrastv2(images=a, contrast_factor=c(-0.5)), f32(4, 5, 2))

n = 12
CORNERS = f32(n, 4, lo=0, hi=1)
SCORES = np.round(f32(n, lo=0, hi=1), 1)
case("NonMaxSuppression", lambda b, s: [raw.NonMaxSuppression(boxes=b, scores=s, max_output_size=c(5)), raw.NonMaxSuppression(boxes=b, scores=s, max_output_size=c(99), iou_threshold=0.1)], CORNERS, SCORES)
case("NonMaxSuppressionV2", lambda b, s, m, t: raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=m, iou_threshold=t), CORNERS, SCORES, np.int32(6), np.float32(0.2))
for t, low in ((0.0, 0.0), (0.3, 0.35), (1.0, -1.0), (0.5, 0.99)):
    name = ("%s_%s" % (t, low)).replace(".", "p").replace("-", "m")
    case("NonMaxSuppressionV3_" + name, lambda b, s, t=t, low=low: raw.NonMaxSuppressionV3(boxes=b, scores=s, max_output_size=c(8), iou_threshold=c(t), score_threshold=c(low)), CORNERS, SCORES)
    for pad in (False, True):
        case("NonMaxSuppressionV4_%s_%d" % (name, pad), lambda b, s, t=t, low=low, pad=pad: list(raw.NonMaxSuppressionV4(boxes=b, scores=s, max_output_size=c(8), iou_threshold=c(t), score_threshold=c(low), pad_to_max_output_size=pad)), CORNERS, SCORES)
        for sigma in (0.0, 0.5):
            case("NonMaxSuppressionV5_%s_%d_%d" % (name, pad, sigma > 0), lambda b, s, t=t, low=low, pad=pad, sigma=sigma: list(raw.NonMaxSuppressionV5(boxes=b, scores=s, max_output_size=c(8), iou_threshold=c(t), score_threshold=c(low), soft_nms_sigma=c(sigma), pad_to_max_output_size=pad)), CORNERS, SCORES)
case("NonMaxSuppressionV3_none", lambda b, s: raw.NonMaxSuppressionV3(boxes=b, scores=s, max_output_size=c(8), iou_threshold=c(.5), score_threshold=c(.5)), CORNERS[:0], SCORES[:0])
case("NonMaxSuppressionV3_iou", lambda b, s, t: raw.NonMaxSuppressionV3(boxes=b, scores=s, max_output_size=c(8), iou_threshold=t, score_threshold=c(.5)), CORNERS, SCORES, np.float32(1.5), error=True)
case("NonMaxSuppressionWithOverlaps", lambda o, s: raw.NonMaxSuppressionWithOverlaps(overlaps=o, scores=s, max_output_size=c(8), overlap_threshold=c(0.6), score_threshold=c(0.2)), f32(n, n, lo=0, hi=1), SCORES)
for q in (1, 3):
    for pad in (False, True):
        case("CombinedNonMaxSuppression_%d_%d" % (q, pad), lambda b, s, pad=pad: list(raw.CombinedNonMaxSuppression(boxes=b, scores=s, max_output_size_per_class=c(4), max_total_size=c(10 if pad else 15), iou_threshold=c(0.4), score_threshold=c(0.3), pad_per_class=pad, clip_boxes=not pad)),
             f32(2, n, q, 4, lo=-0.2, hi=1.2), f32(2, n, 3, lo=0, hi=1))
case("CombinedNonMaxSuppression_few", lambda b, s: list(raw.CombinedNonMaxSuppression(boxes=b, scores=s, max_output_size_per_class=c(2), max_total_size=c(3), iou_threshold=c(0.4), score_threshold=c(0.9))), f32(1, 5, 1, 4, lo=0, hi=1), f32(1, 5, 2, lo=0, hi=1))
DRAWN = np.array([[[0.1, 0.2, 0.6, 0.8], [0, 0, 1, 1], [-0.3, 0.3, 0.4, 1.7], [0.9, 0.9, 0.2, 0.2], [1.5, 1.5, 2, 2]]] * 2, np.float32)
for depth in (1, 3, 4): case("DrawBoundingBoxes_%d" % depth, lambda a, b: raw.DrawBoundingBoxes(images=a, boxes=b), f32(2, 7, 9, depth), DRAWN)
case("DrawBoundingBoxesV2", lambda a, b, k: raw.DrawBoundingBoxesV2(images=a, boxes=b, colors=k), f32(2, 7, 9, 3), DRAWN, f32(2, 3, lo=0, hi=1))
case("DrawBoundingBoxesV2_none", lambda a, b, k: raw.DrawBoundingBoxesV2(images=a, boxes=b, colors=k), f32(2, 7, 9, 3), DRAWN, np.zeros([0, 4], np.float32))


# Files. Small pictures, written here.
def file(data):
    return np.array(data, object)


def png(height, width, depth, kind, rows, extra=b""):
    chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)) + extra + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) + chunk(b"IEND", b"")


def png_of(depth, kind, channels, height=3, width=8, extra=b"", most=256):
    row = width * channels * depth // 8
    return png(height, width, depth, kind, [bytes(state.rng.integers(0, most, row).astype(np.uint8)) for _ in range(height)], extra)


def chunk(t, d):
    return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))


PALETTE = chunk(b"PLTE", bytes(state.rng.integers(0, 256, 48).astype(np.uint8)))
PNGS = {"grey1": png_of(1, 0, 1), "grey4": png_of(4, 0, 1), "grey8": png_of(8, 0, 1), "grey16": png_of(16, 0, 1), "rgb8": png_of(8, 2, 3), "rgb16": png_of(16, 2, 3), "greya8": png_of(8, 4, 2), "greya16": png_of(16, 4, 2), "rgba8": png_of(8, 6, 4),
        "rgba16": png_of(16, 6, 4), "palette4": png_of(4, 3, 1, extra=PALETTE), "palette8": png_of(8, 3, 1, extra=PALETTE, most=16), "palette_clear": png_of(8, 3, 1, extra=PALETTE + chunk(b"tRNS", bytes(range(0, 160, 16))), most=16),
        "rgb_clear": png_of(8, 2, 3, extra=chunk(b"tRNS", b"\0\1\0\2\0\3"))}
for name, data in PNGS.items():
    case("DecodePng_" + name, lambda a: [raw.DecodePng(contents=a, channels=k) for k in ((0, 1, 3, 4) if "clear" not in name else (0, 3, 4))], file(data))
    case("DecodePng16_" + name, lambda a: [raw.DecodePng(contents=a, channels=k, dtype=tf.uint16) for k in (0, 1, 3, 4)], file(data)) if name in ("grey8", "grey16", "rgb8", "rgb16", "rgba16", "rgba8") else None
case("DecodePng_damaged", lambda a: raw.DecodePng(contents=a), file(PNGS["rgb8"][:60]), error=True)
case("DecodePng_nothing", lambda a: raw.DecodePng(contents=a), file(b"nothing"), error=True)
PHOTO = np.clip(np.cumsum(np.cumsum(state.rng.normal(0, 12, (21, 27, 3)), 0), 1) + 128, 0, 255).astype(np.uint8)
with tf.Graph().as_default(), v1.Session() as session:
    encode = lambda image, **kw: session.run(raw.EncodeJpeg(image=tf.constant(image), **kw))
    JPEGS = {"plain": encode(PHOTO), "low": encode(PHOTO, quality=30), "full": encode(PHOTO, chroma_downsampling=False), "progressive": encode(PHOTO, progressive=True), "grey": encode(PHOTO[:, :, :1])}
for name, data in JPEGS.items():
    for method in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        case("DecodeJpeg_%s_%s" % (name, method), lambda a, method=method: [raw.DecodeJpeg(contents=a, channels=k, dct_method=method) for k in (0, 1, 3)], file(data))
    case("DecodeJpeg_" + name + "_coarse", lambda a: raw.DecodeJpeg(contents=a, fancy_upscaling=False), file(data))
    for ratio in (2, 4, 8): case("DecodeJpeg_%s_ratio%d" % (name, ratio), lambda a, ratio=ratio: raw.DecodeJpeg(contents=a, ratio=ratio), file(data))
INKS = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../testdata/files/cmyk.jpg"), "rb").read()
case("DecodeJpeg_inks", lambda a: [raw.DecodeJpeg(contents=a), raw.DecodeJpeg(contents=a, channels=3)], file(INKS))
case("DecodeJpeg_inks_grey", lambda a: raw.DecodeJpeg(contents=a, channels=1), file(INKS), error=True)
case("DecodeJpeg_short", lambda a: raw.DecodeJpeg(contents=a), file(JPEGS["plain"][:-100]), error=True)
case("DecodeJpeg_recovered", lambda a: raw.DecodeJpeg(contents=a, try_recover_truncated=True, acceptable_fraction=0.3), file(JPEGS["plain"]))
case("DecodeJpeg_png", lambda a: raw.DecodeJpeg(contents=a), file(PNGS["rgb8"]))
case("DecodePng_jpeg", lambda a: raw.DecodePng(contents=a, channels=3), file(JPEGS["plain"]))
case("ExtractJpegShape", lambda a: [raw.ExtractJpegShape(contents=a), raw.ExtractJpegShape(contents=a, output_type=tf.int64)], file(JPEGS["plain"]))
case("DecodeAndCropJpeg", lambda a, w: [raw.DecodeAndCropJpeg(contents=a, crop_window=w), raw.DecodeAndCropJpeg(contents=a, crop_window=w, channels=1)], file(JPEGS["full"]), np.array([3, 5, 12, 17], np.int32))
bmp = lambda height, width, channels, data: b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54 + len(data), 0, 0, 54, 40, width, height, 1, 8 * channels, 0, len(data), 0, 0, 0, 0) + data
for channels in (1, 3, 4):
    stride = (5 * channels + 3) // 4 * 4
    data = bytes(state.rng.integers(0, 256, stride * 3).astype(np.uint8))
    for height in (3, -3):
        case("DecodeBmp_%d_%s" % (channels, "up" if height > 0 else "down"), lambda a, k=channels: [raw.DecodeBmp(contents=a), raw.DecodeBmp(contents=a, channels=k if k > 1 else 0)], file(bmp(height, 5, channels, data)))
case("DecodeBmp_short", lambda a: raw.DecodeBmp(contents=a), file(bmp(3, 5, 3, b"abc")), error=True)
case("DecodeBmp_png", lambda a: raw.DecodeBmp(contents=a), file(PNGS["rgb8"]), error=True)
for name, data in (("jpeg", JPEGS["plain"]), ("png", PNGS["rgb8"]), ("png16", PNGS["rgb16"])):
    for t in (tf.uint8, tf.uint16, tf.float32):
        case("DecodeImage_%s_%s" % (name, t.name), lambda a, t=t: [raw.DecodeImage(contents=a, dtype=t, expand_animations=False), raw.DecodeImage(contents=a, dtype=t, channels=1, expand_animations=False)], file(data))
case("DecodeImage_bmp", lambda a: raw.DecodeImage(contents=a, expand_animations=False), file(bmp(3, 5, 3, bytes(range(48)))))
case("DecodeImage_bmp_wide", lambda a: [raw.DecodeImage(contents=a, dtype=t, expand_animations=False) for t in (tf.uint16, tf.float32)], file(bmp(3, 5, 3, bytes(range(48)))))
case("DecodeImage_alpha", lambda a: raw.DecodeImage(contents=a, channels=4, expand_animations=False), file(PNGS["rgb8"]))
case("DecodeImage_nothing", lambda a: raw.DecodeImage(contents=a), file(b"nothing"), error=True)
for channels in (1, 3):
    case("EncodeJpeg_%d" % channels, lambda a: [raw.DecodeJpeg(contents=raw.EncodeJpeg(image=a, **kw), dct_method="INTEGER_ACCURATE") for kw in ({}, dict(quality=40), dict(progressive=True), dict(optimize_size=True), dict(chroma_downsampling=False))], PHOTO[:, :, :channels])
case("EncodeJpeg_bytes", lambda a: raw.EncodeJpeg(image=a), PHOTO)
case("EncodeJpeg_quality", lambda a: raw.DecodeJpeg(contents=raw.EncodeJpegVariableQuality(images=a, quality=c(55))), PHOTO)
case("EncodeJpeg_channels", lambda a: raw.EncodeJpeg(image=a), u8(4, 4, 2), error=True)
for t in (np.uint8, np.uint16):
    for channels in (1, 2, 3, 4): case("EncodePng_%s_%d" % (np.dtype(t).name, channels), lambda a, t=t: [raw.DecodePng(contents=raw.EncodePng(image=a, compression=k), dtype=tf.as_dtype(t)) for k in (-1, 0, 9)], i32(5, 6, channels, lo=0, hi=np.iinfo(t).max).astype(t))
case("EncodePng_batch", lambda a: [raw.DecodePng(contents=raw.EncodePng(image=a)[1])], u8(2, 3, 4, 3))
