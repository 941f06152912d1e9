"""GIF images: frames, tables of colours, transparency, interlacing, long codes."""
import struct
from recorder import *


def lzw(indices, width):
    """GIF's codes for a list of indices, cut into pieces."""
    clear, bits, held, out = 1 << width, width + 1, 0, []
    acc = 0
    table = {(i,): i for i in range(clear)}
    following = clear + 2

    def put(code):
        nonlocal acc, held
        acc |= code << held
        held += bits
        while held >= 8:
            out.append(acc & 255)
            acc >>= 8
            held -= 8

    put(clear)
    word = ()
    for i in indices:
        if word + (i,) in table:
            word += (i,)
            continue
        put(table[word])
        if following < 4096:
            table[word + (i,)] = following
            following += 1
            if following - 1 == 1 << bits and bits < 12: bits += 1
        else:
            put(clear)
            table, following, bits = {(k,): k for k in range(clear)}, clear + 2, width + 1
        word = (i,)
    if word: put(table[word])
    put(clear + 1)
    if held: out.append(acc & 255)
    data = bytes(out)
    pieces = b"".join(bytes([len(data[k:k + 255])]) + data[k:k + 255] for k in range(0, len(data), 255))
    return bytes([width]) + pieces + b"\0"


def colors(n): return bytes(state.rng.integers(0, 256, 3 << n).astype(np.uint8))


def frame(x, left=0, top=0, width=4, own=None, interlaced=False, clear=None):
    """x: [height, width] of indices, in the order of the file's rows."""
    control = b"" if clear is None else b"\x21\xf9\x04" + struct.pack("<BHBB", 1 if clear >= 0 else 0, 5, max(clear, 0), 0)
    flags = (0x40 if interlaced else 0) | (0x80 | (own[0] - 1) if own else 0)
    return control + b"\x2c" + struct.pack("<HHHHB", left, top, x.shape[1], x.shape[0], flags) + (own[1] if own else b"") + lzw(x.ravel().tolist(), width)


def gif(*frames, n=4, table=True, head=b"GIF89a", end=b"\x3b", screen=(9, 7)):
    return head + struct.pack("<HHBBB", *screen, 0x80 | (n - 1) if table else 0, 0, 0) + (colors(n) if table else b"") + b"".join(frames) + end


def file(data): return np.array(data, object)
def some(h, w, most=16): return state.rng.integers(0, most, (h, w))


COMMENT = b"\x21\xfe\x03abc\x02de\0"
LOOP = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
GIFS = {
    "one": gif(frame(some(7, 9))), "old": gif(frame(some(7, 9)), head=b"GIF87a"), "two": gif(LOOP, frame(some(7, 9), clear=-1), COMMENT, frame(some(7, 9), clear=-1)),
    "part": gif(frame(some(7, 9)), frame(some(3, 4), left=2, top=1), frame(some(2, 2), left=8, top=6)), "clear": gif(frame(some(7, 9), clear=3), frame(some(7, 9), clear=5), frame(some(4, 4), left=1, top=2, clear=0)),
    "interlaced": gif(frame(some(7, 9), interlaced=True)), "own": gif(frame(some(7, 9, 4), own=(2, colors(2)), width=2), frame(some(7, 9)), n=4), "only_own": gif(frame(some(7, 9, 8), own=(3, colors(3)), width=3), table=False),
    "small_first": gif(frame(some(3, 4), left=1, top=2), frame(some(7, 9))), "wide_screen": gif(frame(some(3, 4)), screen=(20, 30)), "offset": gif(frame(some(5, 5), left=2, top=3), screen=(5, 5)),
    "bits": gif(frame(some(7, 9, 2), width=2), n=1), "long": gif(frame(some(90, 110, 256), width=8), n=8), "runs": gif(frame(np.repeat(some(40, 3), 40, 1))), "no_end": gif(frame(some(7, 9)), end=b""),
}
for name, data in GIFS.items():
    case("DecodeGif_" + name, lambda a: raw.DecodeGif(contents=a), file(data))
    for t in (tf.uint8, tf.uint16, tf.float32):
        if name in ("one", "clear", "part"): case("DecodeImage_gif_%s_%s" % (name, t.name), lambda a, t=t: raw.DecodeImage(contents=a, dtype=t, expand_animations=False), file(data))
case("DecodePng_gif", lambda a: raw.DecodePng(contents=a), file(GIFS["one"]))
case("DecodeJpeg_gif", lambda a: raw.DecodeJpeg(contents=a, channels=3), file(GIFS["clear"].replace(b"x", b"x")), error=True)
case("DecodeGif_channels", lambda a: raw.DecodeImage(contents=a, channels=4, expand_animations=False), file(GIFS["one"]), error=True)
case("DecodeGif_png", lambda a: raw.DecodeGif(contents=a), file(b"\x89PNG\r\n\x1a\n" + bytes(40)), error=True)
case("DecodeGif_nothing", lambda a: raw.DecodeGif(contents=a), file(b"nothing"), error=True)
case("DecodeGif_short", lambda a: raw.DecodeGif(contents=a), file(GIFS["one"][:60]), error=True)
case("DecodeGif_no_frame", lambda a: raw.DecodeGif(contents=a), file(gif()), error=True)
case("DecodeGif_no_colors", lambda a: raw.DecodeGif(contents=a), file(gif(frame(some(7, 9)), table=False)), error=True)
case("DecodeGif_beyond", lambda a: raw.DecodeGif(contents=a), file(gif(frame(some(7, 9, 16) | 8), n=2)), error=True)
# Where the file is a constant, it says whether there is an axis of frames.
for name in ("one", "two", "part"):
    for t in (tf.uint8, tf.float32):
        case("DecodeImage_frames_%s_%s" % (name, t.name), lambda a, t=t: raw.DecodeImage(contents=a, dtype=t), file(GIFS[name]), const=(0,))
case("DecodeImage_frames_channels", lambda a: raw.DecodeImage(contents=a, channels=3), file(GIFS["two"]), const=(0,))
case("DecodeImage_no_frames", lambda a: raw.DecodeImage(contents=raw.EncodePng(image=a)), state.rng.integers(0, 256, (3, 4, 3)).astype(np.uint8))
