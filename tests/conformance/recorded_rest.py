#!/usr/bin/env python3
"""Writes recorded/NAME for the last ops of ONNX Runtime's CPU provider, and for what few models have of others, as
make_recorded.py does for the rest.

    v/bin/python tests/conformance/recorded_rest.py [NAME..]"""

import sys

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

import make_recorded
from make_recorded import ML, MS, Case, Numbers, f32


def masked_pools():
    n = Numbers("masked_pools")
    pool = lambda name, x, mask, **attrs: Case("ms_masked_pool" + name, "MaxpoolWithMask", {"x": x, "mask": mask}, domain=MS,
                                               **attrs)
    open_places = lambda *shape: (n.rng.random(shape) > 0.3).astype(np.int32)
    image, one = n.f(2, 3, 6, 7), open_places(1, 1, 6, 7)
    pool("", image, one, kernel_shape=[3, 3], strides=[2, 2])
    pool("_pads", image, one, kernel_shape=[3, 2], pads=[2, 1, 0, 1])
    pool("_same_upper", image, one, kernel_shape=[3, 4], strides=[3, 2], auto_pad="SAME_UPPER")
    pool("_same_lower", image, one, kernel_shape=[3, 4], strides=[3, 2], auto_pad="SAME_LOWER", storage_order=1)
    pool("_each", image, open_places(2, 3, 6, 7), kernel_shape=[2, 3])
    pool("_channels", image, open_places(1, 3, 6, 7), kernel_shape=[2, 3])
    pool("_more_channels", image, open_places(3, 5, 6, 7), kernel_shape=[2, 3])
    pool("_closed", image, np.zeros((1, 1, 6, 7), np.int32), kernel_shape=[2, 2])
    odd = image.copy()
    odd[0, 0, 0, 1], odd[0, 1, 2:] = np.nan, -np.inf
    pool("_odd_numbers", odd, np.ones((1, 1, 6, 7), np.int32), kernel_shape=[2, 2])
    pool("_line", n.f(2, 3, 9), open_places(2, 1, 9), kernel_shape=[4], strides=[2], pads=[1, 2])
    pool("_volume", n.f(1, 2, 4, 5, 6), open_places(1, 1, 4, 5, 6), kernel_shape=[2, 3, 2], strides=[1, 2, 2],
         pads=[0, 1, 1, 1, 0, 1])


def attention_lstms():
    n = Numbers("attention_lstms")
    steps, samples, size, units, places, depth, width, seen = 5, 3, 4, 6, 7, 5, 8, 9

    def lstm(name, directions=1, layer=True, left_out=(), outputs=3, **attrs):
        attention = seen if layer else depth
        feeds = {"x": n.f(steps, samples, size), "w": n.f(directions, 4 * units, size + attention) / 2,
                 "r": n.f(directions, 4 * units, units) / 2, "b": n.f(directions, 8 * units),
                 "lengths": np.array([4, 5, 2], np.int32), "h": n.f(directions, samples, units),
                 "c": n.f(directions, samples, units), "p": n.f(directions, 3 * units), "query": n.f(directions, units, width),
                 "keys": n.f(directions, depth, width), "score": n.f(directions, width), "memory": n.f(samples, places, depth),
                 "memory_lengths": np.array([7, 3, 1], np.int32), "layer": n.f(directions, depth + units, seen) / 2}
        if not layer:
            left_out = (*left_out, "layer")
        Case("ms_attn_lstm" + name, "AttnLSTM", {k: None if k in left_out else v for k, v in feeds.items()}, outputs, domain=MS,
             hidden_size=units, **attrs)

    lstm("")
    lstm("_least", left_out=("b", "lengths", "h", "c", "p", "memory_lengths"), layer=False, outputs=1)
    lstm("_reverse", direction="reverse")
    lstm("_reverse_whole", direction="reverse", left_out=("lengths", "p"))
    lstm("_both", directions=2, direction="bidirectional")
    lstm("_both_plain", directions=2, direction="bidirectional", layer=False, left_out=("memory_lengths",))
    lstm("_curves", activations=["HardSigmoid", "Softsign", "LeakyRelu"], activation_alpha=[0.3, 0.2], activation_beta=[0.4])
    lstm("_both_curves", directions=2, direction="bidirectional",
         activations=["Sigmoid", "Relu", "Tanh", "HardSigmoid", "Tanh", "Elu"], activation_alpha=[0.3, 0.7],
         activation_beta=[0.4])
    lstm("_clipped", clip=0.5, left_out=("p",))
    lstm("_coupled", input_forget=1)


def four_bits():
    # ONNX Runtime has these on processors with AVX-512 alone.
    n = Numbers("four_bits")
    for kind in (0, 1):
        for depth, columns in ((64, 5), (40, 3)):
            blocks = -(-depth // 32)
            numbers, factors = n.ids(16, columns, blocks, 32, dtype=np.uint8), n.f(columns, blocks)
            zeros = n.ids(16, columns, blocks, dtype=np.uint8) if kind else np.full((columns, blocks), 8, np.uint8)
            pairs = numbers[..., :16] | numbers[..., 16:] << 4
            parts = [factors.reshape(-1, 1).view(np.uint8)] + [zeros.reshape(-1, 1)] * kind + [pairs.reshape(-1, 16)]
            blob = np.concatenate(parts, axis=1).reshape(-1)
            feeds = {"x": n.f(2, 3, depth), "b": blob, "shape": np.array([depth, columns])}
            Case(f"ms_matmul_fp_q4_{kind}_{depth}", "MatMulFpQ4", feeds, domain=MS, fixed=["b", "shape"], blk_quant_type=kind)


def resizes():
    n = Numbers("resizes")
    image, volume = n.f(2, 3, 4, 5), n.f(2, 2, 3, 2, 3, 2)

    def resize(name, x, scales=None, sizes=None, region=(), **attrs):
        feeds = {"x": x, "region": np.array(region, np.float32), "scales": None if scales is None else f32(*scales),
                 **({} if sizes is None else {"sizes": np.array(sizes)})}
        Case("resize_" + name, "Resize", feeds, opset=19, fixed=["region", "scales", "sizes"], **attrs)

    resize("four_axes", image, [2, 1.5, 0.5, 3])
    resize("four_axes_sizes", image, sizes=[3, 2, 5, 7], nearest_mode="ceil",
           coordinate_transformation_mode="align_corners")
    resize("six_axes", volume, [2, 1.5, 2, 1.5, 2, 3], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    resize("five_of_six_axes", volume, [2, 1.5, 1, 1.5, 2, 3])
    resize("four_axes_region", image, sizes=[4, 3, 5, 7], region=[0, 0.2, -0.3, 0, 1, 0.8, 1, 1.4],
           coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=-7.0)


def words():
    strings = lambda *values: np.array(values, object)
    text = strings(" a b  c ", "", "  ", "x", "q w e r  ").reshape(5, 1)
    split = lambda name, x, **attrs: Case("string_split_" + name, "StringSplit", {"x": x}, 2, opset=20, **attrs)
    split("unsplit", text, maxsplit=0)
    split("unsplit_empty", text[1:3], maxsplit=0)
    split("unsplit_line", text[:, 0], maxsplit=0, delimiter=" ")
    parts = strings("", ",", "a,", "a,b,c", ",,")
    split("commas", parts, delimiter=",")
    split("commas_rest", parts, delimiter=",", maxsplit=1)
    split("commas_empty", parts[:1], delimiter=",")
    split("rest", text, maxsplit=1)
    split("rest_of_two", text, maxsplit=2)
    table = strings("a", "b", "c", "d").reshape(2, 2)
    places = {"x": table, "i": np.array([[0, 1], [0, 1]]), "u": strings("x", "y", "z", "w").reshape(2, 2)}
    Case("scatter_words_add", "ScatterElements", places, opset=18, reduction="add")
    Case("scatter_words_add_columns", "ScatterElements", places, opset=18, reduction="add", axis=1)
    Case("scatter_nd_words_add", "ScatterND", {**places, "i": np.array([[1], [1]])}, opset=18, reduction="add")


def grams():
    lengths, history, heads = [3, 1, 6], 3, 2

    def packed(name, past=False, past_segments=False, capture=None, outputs=4, dtype=np.int64, **attrs):
        n = Numbers("grams_" + name)
        count, total = history * heads, sum(lengths)
        segments = np.array([0, 0, 1, 2, 2, 2, 3, 3, 1, 1], np.int32)
        feeds = {"ids": n.ids(9, total, dtype=dtype), "factors": n.ids(1 << 30, history + 1, dtype=dtype) * 2 + 1,
                 "sizes": np.array([11, 13, 17, 19, 23, 29], dtype), "bounds": np.cumsum([0, *lengths]).astype(np.int32),
                 "past": n.ids(9, 3, history, dtype=dtype) if past else None, "offsets": np.arange(count).astype(dtype) * 100,
                 "eos": np.array(3, dtype), "segments": segments,
                 "past_segments": np.array([[5, 0, 0], [1, 1, 2], [0, 0, 1]], np.int32) if past_segments else None,
                 "captured": None if capture is None else np.array(capture, np.int32)}
        if capture is not None:
            attrs["state_update_capacity"] = 4
        names = [f"y{i}" for i in range(outputs)]
        while list(feeds.values())[-1] is None:
            feeds.popitem()
        Case("ms_ngram_packed_" + name, "VarlenNGramHashMapping", feeds, names, domain=MS, max_ngram_size=history + 1,
             n_head_per_ngram=heads, pad_id=7, **attrs)

    packed("segments", outputs=3)
    packed("segments_past", outputs=3, past=True)
    packed("segments_both", outputs=3, past=True, past_segments=True)
    packed("segments_eos", outputs=3, past=True, past_segments=True, reset_on_eos=1, dtype=np.int32)
    packed("states", past=True, past_segments=True, capture=[2, 5, 9])
    packed("states_fresh", capture=[3, 0, 1], dtype=np.int32)


def byte_lstms():
    n = Numbers("byte_lstms")
    steps, size, units = 7, 6, 5
    for name, batch, directions, dtype, columns, lengths in (
            ("batch", 3, 1, np.int8, False, None), ("batch_columns", 2, 1, np.uint8, True, None),
            ("batch_lengths", 4, 1, np.int8, True, [7, 3, 5, 0]), ("batch_both", 3, 2, np.uint8, False, [2, 7, 6]),
            ("batch_short", 2, 2, np.uint8, False, [2, 4])):
        cast = lambda *shape: n.u8(*shape) if dtype == np.uint8 else n.i8(*shape)
        shape = (directions, 4 * units) if columns else (directions,)
        zero = np.full(shape, 128 if dtype == np.uint8 else 0, dtype)
        feeds = {"x": n.f(steps, batch, size), "w": cast(directions, size, 4 * units), "r": cast(directions, units, 4 * units),
                 "b": n.f(directions, 8 * units), "lengths": None if lengths is None else np.array(lengths, np.int32),
                 "h0": n.f(directions, batch, units), "c0": n.f(directions, batch, units), "p": None,
                 "ws": (np.abs(n.f(*shape)) / 90 + 0.001).astype(np.float32), "wz": zero,
                 "rs": (np.abs(n.f(*shape)) / 90 + 0.001).astype(np.float32), "rz": zero}
        case = Case(f"ms_dynamic_lstm_{name}", "DynamicQuantizeLSTM", feeds, 3, domain=MS, hidden_size=units,
                    direction="bidirectional" if directions == 2 else "forward", fixed=["w", "r", "b", "ws", "wz", "rs", "rz"])
        case.threads = batch  # states of the samples of one thread are rounded by one scale


def separators():
    text = np.array(["abc def", "", "  x yy zzz", "1a2bb3 ccc", "a.b.c", "h\u00e9llo w\u00f6rld", "aaa", "no"], object)
    for name, least, attrs in (
            ("any", 1, {"separators": [" ", "."]}), ("pair", 1, {"separators": ["b", "\\w\\w"]}),
            ("first", 1, {"separators": [" ", "^a"]}), ("last", 2, {"separators": [" ", "a$"]}),
            ("others", 1, {"separators": ["[ ]", "[^a-c]"]}), ("longest", 1, {"separators": ["a|ab", " "]}),
            ("letter", 1, {"separators": ["\u00e9", "\\W"]}), ("expression", 1, {"tokenexp": "a|ab"})):
        Case("ms_tokenizer_pieces_" + name, "Tokenizer", {"x": text}, domain=MS, mark=0, mincharnum=least, pad_value="#",
             **attrs)


def one_score():
    """Forests for two classes of which one is voted for."""
    x = Numbers("one_score").f(9, 1)
    stump = dict(nodes_treeids=[0, 0, 0, 1, 1, 1], nodes_nodeids=[0, 1, 2, 0, 1, 2], nodes_featureids=[0] * 6,
                 nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 2, nodes_values=[-0.5, 0, 0, 0.5, 0, 0],
                 nodes_truenodeids=[1, 0, 0, 1, 0, 0], nodes_falsenodeids=[2, 0, 0, 2, 0, 0],
                 class_treeids=[0, 0, 1, 1], class_nodeids=[1, 2, 1, 2])
    for voted, signed, transform, base in ((0, 0, "SOFTMAX", ()), (0, 1, "SOFTMAX", (0.125,)), (0, 0, "SOFTMAX_ZERO", ()),
                                           (0, 0, "NONE", (0.125, 0.25)), (0, 1, "LOGISTIC", (0.125, 0.25)),
                                           (0, 1, "SOFTMAX", (0.125, 0.25)), (0, 0, "SOFTMAX_ZERO", (0.125, 0.25)),
                                           (1, 0, "NONE", (0.125,)), (1, 1, "SOFTMAX", (0.125,))):
        weights = [-0.5, 0.25, -0.125, 0.75] if signed else [0.125, 0.25, 0.0625, 0.5]
        name = f"ml_tree_one_score_{voted}_{'signed' if signed else 'probable'}_{transform.lower()}_{len(base)}"
        Case(name, "TreeEnsembleClassifier", {"x": x}, 2, domain=ML, classlabels_int64s=[5, 6], post_transform=transform,
             class_ids=[voted] * 4, class_weights=weights, **stump, **({"base_values": list(base)} if base else {}))


def shared_branches():
    """A set of categories as a chain of comparisons that share a branch, as exporters of LightGBM write it."""
    n = Numbers("shared_branches")
    x = np.stack([n.rng.integers(0, 9, 21), n.rng.standard_normal(21)], 1).astype(np.float32)
    Case("ml_tree_shared_branch", "TreeEnsembleRegressor", {"x": x}, domain=ML, n_targets=1, nodes_treeids=[0] * 7,
         nodes_nodeids=list(range(7)), nodes_featureids=[0, 0, 0, 1, 0, 0, 0],
         nodes_modes=["BRANCH_EQ"] * 3 + ["BRANCH_LEQ"] + ["LEAF"] * 3, nodes_values=[1.0, 4.0, 7.0, 0.25, 0.0, 0.0, 0.0],
         nodes_truenodeids=[3, 3, 3, 4, 0, 0, 0], nodes_falsenodeids=[1, 2, 6, 5, 0, 0, 0], target_treeids=[0] * 3,
         target_nodeids=[4, 5, 6], target_ids=[0] * 3, target_weights=[1.0, 2.0, 4.0])


def forests():
    """Trees of several depths, each test alone and together, for so many rows that some are descended side by side."""
    n = Numbers("forests")

    def tree(depth, modes, rows, at):
        """Appends [mode, feature, value, missing, yes, no] of a random tree; returns its root."""
        root = len(rows)
        rows.append(["LEAF", 0, 0.0, 0, 0, 0])
        if depth > 0 and n.rng.random() < 0.9:
            mode = modes[n.rng.integers(len(modes))]
            yes, no = tree(depth - 1, modes, rows, at), tree(depth - 1, modes, rows, at)
            rows[root] = [mode, int(n.rng.integers(3)), float(n.rng.integers(-2, 3)), int(n.rng.random() < at), yes, no]
        return root

    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    for name, used, missing, count, combine in [(m[7:].lower(), [m], 0, 37, "SUM") for m in modes] + [
            ("mixed", modes, 0, 37, "AVERAGE"), ("missing", modes, 0.5, 37, "MIN"), ("one_row", modes, 0, 1, "MAX"),
            ("two_rows", modes[:1], 0.5, 2, "SUM")]:
        x = n.rng.integers(-3, 4, (count, 3)).astype(np.float32)
        if missing > 0: x[n.rng.random(x.shape) < 0.3] = np.nan
        attrs = {f"nodes_{key}": [] for key in ("treeids", "nodeids", "modes", "featureids", "values",
                                                "missing_value_tracks_true", "truenodeids", "falsenodeids")}
        attrs |= {f"target_{key}": [] for key in ("treeids", "nodeids", "ids", "weights")}
        for t in range(11):
            rows = []
            tree(5, used, rows, missing)
            for i, row in enumerate(rows):
                mode, feature, value, tracks, yes, no = row
                for key, v in (("treeids", t), ("nodeids", i), ("modes", mode), ("featureids", feature), ("values", value),
                               ("missing_value_tracks_true", tracks), ("truenodeids", yes), ("falsenodeids", no)):
                    attrs[f"nodes_{key}"].append(v)
                if mode != "LEAF": continue
                for key, v in (("treeids", t), ("nodeids", i), ("ids", int(n.rng.integers(2))),
                               ("weights", float(n.rng.integers(-8, 9)) / 8)):
                    attrs[f"target_{key}"].append(v)
        Case(f"ml_forest_{name}", "TreeEnsembleRegressor", {"x": x}, domain=ML, n_targets=2, aggregate_function=combine, **attrs)


def far_taps():
    """Dilated convolutions of which some taps see nothing but padding."""
    n = Numbers("far_taps")
    exact = lambda *shape: np.round(n.f(*shape) * 4) / 4  # sums of products of which none is rounded

    def conv(name, size, kernel, dilations, pads, channels=(20, 33), **attrs):
        x, w = exact(2, channels[0], *size), exact(channels[1], channels[0] // attrs.get("group", 1), *kernel)
        Case(f"conv_far_taps_{name}", "Conv", {"x": x, "w": w, "b": exact(channels[1])}, dilations=dilations, pads=pads * 2,
             **attrs)

    conv("plane", (9, 31), (3, 3), [6, 13], [6, 13])
    conv("beyond", (5, 6), (3, 3), [24, 24], [24, 24])
    conv("strides", (17, 20), (3, 5), [7, 4], [7, 8], (4, 33), strides=[2, 3])
    conv("even", (12, 9), (2, 4), [9, 5], [5, 8])
    conv("line", (40,), (5,), [17], [34])
    conv("space", (6, 7, 8), (3, 2, 3), [5, 6, 4], [5, 3, 4])
    conv("groups", (9, 10), (3, 3), [6, 6], [6, 6], (24, 32), group=2)
    conv("nothing", (4, 4), (2, 2), [30, 30], [20, 20])


def few_outputs():
    """Convolutions to few channels, along rows longer than one strip, and depthwise ones of few channels."""
    n = Numbers("few_outputs")
    exact = lambda *shape: np.round(n.f(*shape) * 4) / 4

    def conv(name, size, kernel, channels, batch=1, **attrs):
        x, w = exact(batch, channels[0], *size), exact(channels[1], channels[0] // attrs.get("group", 1), *kernel)
        Case(f"conv_few_outputs_{name}", "Conv", {"x": x, "w": w, "b": exact(channels[1])}, **attrs)

    conv("one", (1, 1300), (1, 7), (1, 1), pads=[0, 3, 0, 3])
    conv("two_line", (1100,), (5,), (3, 2), 2, pads=[9, 7], dilations=[4])
    conv("three", (9, 150), (3, 3), (5, 3), pads=[1, 1, 1, 1])
    conv("four_steps", (13, 47), (4, 3), (18, 4), 2, strides=[2, 1], dilations=[3, 2], pads=[4, 3, 5, 2])
    conv("five", (6, 40), (2, 2), (33, 5), pads=[0, 0, 1, 1])
    conv("six_no_pads", (5, 70), (3, 5), (7, 6), 2)
    conv("seven_space", (3, 4, 21), (1, 3, 3), (2, 7), pads=[0, 1, 1, 0, 1, 1], strides=[2, 1, 1])
    conv("eight", (3, 65), (3, 3), (8, 8), pads=[1, 1, 1, 1])
    conv("beyond", (2, 3), (3, 3), (4, 3), pads=[40, 40, 40, 40], dilations=[20, 30])
    conv("each_of_three", (20, 130), (5, 5), (3, 3), 2, group=3, pads=[2, 2, 2, 2])
    conv("each_of_eight", (7, 33), (3, 3), (8, 8), group=8, dilations=[2, 2], pads=[2, 0, 2, 4])
    conv("each_of_two_line", (700,), (31,), (2, 2), group=2, pads=[15, 15])


def compressed():
    """Conditions that have the shape of the input, as Paddle exports masked_select."""
    x = Numbers("compressed").f(3, 5)
    Case("compress_square", "Compress", {"x": x, "condition": x > 0.25})
    Case("compress_square_rows", "Compress", {"x": x, "condition": np.array([[True], [False], [True]])}, axis=0)


def transforms():
    """Transforms so long that they take two steps: of one side and both, real and complex, and back."""
    n = Numbers("transforms")

    def dft(name, x, axis, by, length=None, **attrs):
        whole = x[..., 0].astype(np.float64) + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
        y = by(whole, length, axis)
        parts = [y.real, y.imag] if np.iscomplexobj(y) else [y]
        given = {"x": x, "length": None if length is None else np.array(length), "axis": np.array(axis)}
        # ONNX Runtime's are 1e-4 off.
        Case(f"dft_long_{name}", "DFT", given, fixed=("length", "axis"), opset=20,
             answers=[np.stack(parts, -1).astype(np.float32)], **attrs)

    one_side = lambda x, length, axis: np.fft.rfft(x.real, length, axis)
    dft("one_side", n.f(1, 1155, 1), 1, one_side, onesided=1)
    dft("complex", n.f(1024, 2, 2), 0, np.fft.fft)
    dft("inverse", n.f(2, 1200, 2), 1, np.fft.ifft, inverse=1)
    dft("longer", n.f(2, 1100, 1), 1, np.fft.fft, 1296)
    dft("back_to_real", n.f(1, 600, 2), 1, np.fft.irfft, 1024, inverse=1, onesided=1)
    x, window = n.f(1, 1700, 1), n.f(1024)
    frames = np.stack([x[0, at:at + 1024, 0] * window.astype(np.float64) for at in (0, 300, 600)])
    bins = np.fft.rfft(frames)
    Case("stft_long", "STFT", {"x": x, "step": np.array(300), "window": window}, fixed=("step",), opset=17,
         answers=[np.stack([bins.real, bins.imag], -1)[None].astype(np.float32)])


def carried_constants():
    """A loop that carries its weights, which each round passes on, as tf2onnx writes variables."""
    n = Numbers("carried_constants")
    w, bias = np.round(n.f(5, 5) * 2) / 4, np.round(n.f(5) * 4) / 4
    info = lambda name, kind, shape: helper.make_tensor_value_info(name, kind, shape)
    real = TensorProto.FLOAT
    nodes = [helper.make_node("MatMul", ["h_in", "w_in"], ["product"]), helper.make_node("Add", ["product", "b_in"], ["sum"]),
             helper.make_node("Clip", ["sum", "least", "most"], ["h_out"]), helper.make_node("Identity", ["w_in"], ["w_out"]),
             helper.make_node("Identity", ["b_in"], ["b_out"]), helper.make_node("Identity", ["go_in"], ["go_out"]), helper.make_node("Identity", ["h_out"], ["h_all"])]
    body = helper.make_graph(
        nodes, "body",
        [info("i", TensorProto.INT64, []), info("go_in", TensorProto.BOOL, []), info("h_in", real, [2, 5]),
         info("w_in", real, [5, 5]), info("b_in", real, [5])],
        [info("go_out", TensorProto.BOOL, []), info("h_out", real, [2, 5]), info("w_out", real, [5, 5]),
         info("b_out", real, [5]), info("h_all", real, [2, 5])],
        [helper.make_tensor("least", real, [], [-4.0]), helper.make_tensor("most", real, [], [4.0])])
    Case("loop_carries_constants", "Loop",
         {"rounds": np.array(4), "go": np.array(True), "h": np.round(n.f(2, 5) * 4) / 4, "w": w, "b": bias},
         fixed=("w", "b"), outputs=4, body=body)


def many_axes():
    n = Numbers("many_axes")
    ten, twelve = (2, 3, 1, 2, 2, 1, 3, 2, 1, 2), (2, 1, 3, 1, 2, 2, 1, 1, 2, 1, 2, 2)
    mixed = [9, 3, 0, 6, 1, 8, 4, 7, 2, 5]
    Case("axes_transpose", "Transpose", {"x": n.f(*ten)}, perm=mixed)
    Case("axes_transpose_twelve", "Transpose", {"x": n.f(*twelve)}, perm=list(range(12))[::-1])
    Case("axes_transpose_bytes", "Transpose", {"x": n.u8(*ten)}, perm=mixed)
    Case("axes_add", "Add", {"x": n.f(*ten), "y": n.f(3, 4, 2, 2, 1, 1, 1, 4, 1)})
    Case("axes_reduce", "ReduceMean", {"x": n.f(*ten), "axes": np.array([1, 4, 6, 9])}, opset=18, fixed=["axes"])
    Case("axes_slice", "Slice", {"x": n.f(*ten), "s": np.array([1, 1]), "e": np.array([3, 2]), "a": np.array([1, 7])},
         fixed=["s", "e", "a"])
    Case("axes_concat", "Concat", {"x": n.f(*ten), "y": n.f(*ten)}, axis=5)
    Case("axes_gather", "Gather", {"x": n.f(*ten), "i": n.ids(3, 2, 3, dtype=np.int64)}, axis=6)
    Case("axes_gather_elements", "GatherElements", {"x": n.f(*ten), "i": n.ids(2, *ten, dtype=np.int64)}, axis=3)
    Case("axes_scatter_elements", "ScatterElements",
         {"x": n.f(*ten), "i": np.zeros((2, 3, 1, 1, 2, 1, 3, 2, 1, 2), np.int64), "u": n.f(2, 3, 1, 1, 2, 1, 3, 2, 1, 2)},
         opset=18, axis=3)
    Case("axes_pad", "Pad", {"x": n.f(*ten), "p": np.array([0, 1] * 10)}, fixed=["p"])
    Case("axes_pad_reflected", "Pad", {"x": n.f(*ten), "p": np.array([0, 1] + [0] * 18)}, fixed=["p"], mode="reflect")
    Case("axes_tile", "Tile", {"x": n.f(*ten), "r": np.array([1, 2, 1, 1, 2, 3, 1, 1, 2, 1])}, fixed=["r"])
    Case("axes_expand", "Expand", {"x": n.f(2, 1, 3), "s": np.array([2, 1, 2, 1, 2, 1, 2, 2, 4, 3])}, fixed=["s"])
    Case("axes_matmul", "MatMul", {"x": n.f(*ten), "y": n.f(2, 1, 1, 3, 2, 2, 5)})
    Case("axes_softmax", "Softmax", {"x": n.f(*ten)}, axis=6)
    Case("axes_where", "Where", {"c": n.f(*ten) > 0, "x": n.f(*ten), "y": n.f(2)})
    Case("axes_cumsum", "CumSum", {"x": n.f(*ten), "a": np.array(4)}, fixed=["a"])
    Case("axes_top", "TopK", {"x": n.f(*ten), "k": np.array([2])}, 2, fixed=["k"], axis=6)


def stacked():
    x = Numbers("stacked").f(4, 3)
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
        to = getattr(TensorProto, name.upper().replace("_", ""))
        info = lambda name, kind: helper.make_tensor_value_info(name, kind, [3])
        body = helper.make_graph([helper.make_node("Cast", ["row"], ["small"], to=to)], "body",
                                 [info("row", TensorProto.FLOAT)], [info("small", to)])
        # ONNX Runtime gives most of these to C++ alone.
        Case(f"scan_{name}", "Scan", {"x": x}, body=body, num_scan_inputs=1, answers=[x.astype(getattr(ml_dtypes, name))])


if __name__ == "__main__":
    for each in (masked_pools, attention_lstms, four_bits, resizes, words, grams, byte_lstms,
                 separators, one_score, shared_branches, forests, far_taps, few_outputs, compressed,
                 transforms, carried_constants, many_axes,
                 stacked):
        each()
    make_recorded.record(sys.argv[1:])
