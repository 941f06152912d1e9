#!/usr/bin/env python3
"""Writes recorded/NAME for forms of com.microsoft's and ai.onnx.ml's ops that a sweep over what ONNX Runtime's CPU provider
runs found missing, as make_recorded.py does for the rest.

    v/bin/python tests/conformance/recorded_sweep_ml.py [NAME..]"""

import sys

import ml_dtypes
import numpy as np
from onnx import numpy_helper

import make_recorded
from make_recorded import ML, MS, Case, Numbers, f32

F16 = np.float16
ints = lambda *values: np.array(values, np.int32)


def norms():
    n = Numbers("sweep_norms")
    x = {"x": n.f(2, 3, 8), "skip": n.f(2, 3, 8)}
    scale, beta, bias = n.f(8), n.f(8), n.f(8)
    half = lambda feeds: {k: v.astype(F16) for k, v in feeds.items()}
    whole, simple = {**x, "gamma": scale, "beta": beta, "bias": bias}, {**x, "gamma": scale, "bias": bias}
    skip = lambda name, *args, **attrs: Case("ms_skip_norm_" + name, *args, domain=MS, epsilon=1e-2, **attrs)
    skip("statistics", "SkipLayerNormalization", whole, 4)
    skip("mean", "SkipLayerNormalization", {k: whole[k] for k in ("x", "skip", "gamma")}, 2)
    skip("inverse_f16", "SkipLayerNormalization", half(whole), ["y", "", "inverse"])
    skip("simplified_statistics", "SkipSimplifiedLayerNormalization", simple, 4)
    skip("simplified_inverse_f16", "SkipSimplifiedLayerNormalization", half(simple), ["y", "", "inverse", "sum"])
    Case("simplified_layer_norm_inverse", "SimplifiedLayerNormalization", {"x": x["x"], "scale": scale}, 2, epsilon=1e-2)
    Case("simplified_layer_norm_axis", "SimplifiedLayerNormalization", {"x": x["x"], "scale": n.f(3, 8)}, 2, axis=1)
    Case("simplified_layer_norm_f16", "SimplifiedLayerNormalization", half({"x": x["x"], "scale": scale}), 2)
    words = {"ids": n.ids(11, 2, 4), "segments": None, "words": n.f(11, 8), "places": n.f(6, 8), "types": n.f(2, 8),
             "gamma": scale, "beta": beta}
    Case("ms_embed_layer_norm_first_segment", "EmbedLayerNormalization", words, 3, domain=MS)
    Case("ms_embed_layer_norm_f16", "EmbedLayerNormalization",
         {k: v.astype(F16) if v is not None and v.dtype == np.float32 else v for k, v in words.items()}, 3, domain=MS)


def products():
    n = Numbers("sweep_products")
    gemm = {"a": n.f(3, 4), "b": n.f(4, 5), "c": n.f(5)}
    for kind in "Elu Celu ThresholdedRelu HardSigmoid ParametricSoftplus ScaledTanh".split():
        Case("ms_fused_gemm_" + kind.lower(), "FusedGemm", gemm, domain=MS, activation=kind, alpha=0.5,
             activation_alpha=0.3, activation_beta=0.4)
    for kind in "Softplus Softsign Sigmoid Tanh".split():
        Case("ms_fused_gemm_" + kind.lower(), "FusedGemm", gemm, domain=MS, activation=kind, beta=2.0)
    conv = {"x": n.f(1, 3, 6, 5), "w": n.f(4, 3, 3, 3)}
    Case("ms_fused_conv_hard_swish", "FusedConv", conv, domain=MS, activation="HardSwish", pads=[1, 1, 1, 1])
    product = lambda name, a, b, **attrs: Case("ms_fused_matmul_" + name, "FusedMatMul", {"a": a, "b": b}, domain=MS,
                                               **attrs)
    product("batch_a", n.f(3, 2, 5, 4), n.f(2, 5, 4, 6), transBatchA=1)
    product("batch_b", n.f(5, 3, 4), n.f(4, 5, 6), transBatchB=1, alpha=0.5)
    product("batch_both", n.f(3, 2, 5, 4), n.f(6, 2, 5, 4), transBatchA=1, transBatchB=1, transB=1)
    product("batch_turned", n.f(3, 2, 5, 4), n.f(3, 2, 5, 4), transBatchA=1, transBatchB=1, transA=1)
    number = lambda value: np.array(value, np.float32)
    zero = np.array(3, np.uint8)
    q = {"a": n.u8(3, 4), "sa": number(0.1), "za": zero, "b": n.u8(4, 5), "sb": number(0.02), "zb": zero,
         "c": n.ids(99, 5)}
    Case("ms_qgemm_scale_alone", "QGemm", {**q, "sy": number(0.5)}, domain=MS)
    Case("ms_qgemm_zero_alone", "QGemm", {**q, "sy": None, "zy": zero}, domain=MS, alpha=0.5)
    pads = np.array([[1, 1, 0, 2]])
    Case("ms_pad_row", "Pad", {"x": n.f(3, 4), "pads": pads}, domain=MS)
    Case("ms_pad_row_stored", "Pad", {"x": n.f(3, 4), "pads": pads, "value": number(7)}, domain=MS, fixed=["pads"])


def turns():
    n = Numbers("sweep_turns")
    at = {"at": np.array([[0, 3, 1], [5, 2, 9]], np.int64), "cos": n.f(10, 4), "sin": n.f(10, 4)}
    Case("ms_rotary_scale", "RotaryEmbedding", {"x": n.f(2, 3, 16), **at}, domain=MS, scale=0.5)
    Case("ms_rotary_packed", "RotaryEmbedding", {"x": n.f(2, 3, 16), **at}, domain=MS, is_packed_batching=1)
    sections = dict(mrope_section=[2, 1, 1], num_heads=2, domain=MS)
    at["at"] = n.ids(10, 3, 2, 3, dtype=np.int64)
    Case("ms_mrope_scale", "MRotaryEmbedding", {"x": n.f(2, 3, 16), **at}, scale=0.3, **sections)
    Case("ms_mrope_scale_part", "MRotaryEmbedding", {"x": n.f(2, 3, 24), **at}, scale=0.5, rotary_embedding_dim=8,
         **sections)
    Case("ms_mrope_packed", "MRotaryEmbedding", {"x": n.f(2, 3, 16), **at}, is_packed_batching=1, **sections)


def masks():
    n = Numbers("sweep_masks")
    own = {"x": n.f(2, 4, 8), "w": n.f(8, 24), "b": n.f(24)}
    attention = lambda name, mask, **attrs: Case("ms_attention_" + name, "Attention", {**own, "mask": ints(*mask)},
                                                 domain=MS, num_heads=2, **attrs)
    attention("ends_and_starts", (3, 2, 1, 0))
    attention("ends_and_starts_causal", (4, 3, 0, 0), unidirectional=1)
    attention("starts_out_of_range", (9, 3, -1, 1), mask_filter_value=-1000.0)
    attention("sums", (3, 2, 0, 4, 8, 0, 4, 8))
    sizes = dict(domain=MS, num_heads=2, qkv_hidden_sizes=[8, 8, 4], shown=1)
    Case("ms_attention_sizes_present", "Attention", {"x": own["x"], "w": n.f(8, 20), "b": n.f(20)}, 2, **sizes)
    parts = {"q": n.f(2, 4, 8), "k": n.f(2, 5, 8), "v": n.f(2, 5, 8), "b": None}
    Case("ms_mha_sums", "MultiHeadAttention", {**parts, "mask": ints(3, 5, 0, 4, 8, 0, 5, 10)}, domain=MS, num_heads=2)


def caches():
    n = Numbers("sweep_caches")
    def shared(name, rows, filled, heads=2, new=None, **attrs):
        new = new or rows
        buffer = {"k_past": n.f(2, heads, 9, 4), "v_past": n.f(2, heads, 9, 4), "filled": ints(filled)}
        Case("ms_mha_buffer_" + name, "MultiHeadAttention",
             {"q": n.f(2, rows, 8), "k": n.f(2, new, 8), "v": n.f(2, new, 8), "b": None, "mask": None, "extra": None,
              **buffer}, 3, domain=MS, num_heads=heads, **attrs)
    shared("step", 1, 3)
    shared("empty", 3, 0)
    shared("last", 1, 8)
    shared("causal", 4, 3, unidirectional=1)
    shared("longer", 4, 3, new=5)

    def grouped(name, rows=4, past=0, lengths=(3, 3), total=4, bias=False, sink=False, dtype=np.float32, **attrs):
        real = lambda *shape: n.f(*shape).astype(dtype)
        feeds = {"q": real(2, rows, 64), "k": real(2, rows, 32), "v": real(2, rows, 32), "pk": real(2, 2, past, 16),
                 "pv": real(2, 2, past, 16), "lengths": ints(*lengths), "total": np.array(total, np.int32), "cos": None,
                 "sin": None, "at": None, "bias": real(1, 4, rows, total) if bias else None,
                 "sink": real(4) if sink else None}
        while list(feeds.values())[-1] is None:
            feeds.popitem()
        Case("ms_gqa_shown_" + name, "GroupQueryAttention", feeds, 4, domain=MS, num_heads=4, kv_num_heads=2, **attrs)
    for stage, name in ((1, "scores"), (2, "weights")):
        grouped(name, qk_output=stage)
        grouped(name + "_window", qk_output=stage, local_window_size=2, softcap=2.0)
        grouped(name + "_step", rows=1, past=5, lengths=(5, 5), total=6, qk_output=stage, scale=0.3)
    grouped("weights_sink", sink=True, qk_output=2)
    grouped("weights_smooth", smooth_softmax=1, qk_output=2)
    grouped("scores_bias", bias=True, qk_output=1)
    grouped("weights_f16", dtype=F16, qk_output=2)


def tables():
    n = Numbers("sweep_tables")
    def blocks(name, shape, scaled, taken, ids, dtype=ml_dtypes.uint4, block=16, zeros=False, scales=None):
        data = n.f(*shape) if np.dtype(dtype).name.startswith("float") else n.ids(16, *shape) - 8 * (dtype == ml_dtypes.int4)
        sizes = list(shape)
        sizes[scaled] = -(-shape[scaled] // (block or shape[scaled]))
        feeds = {"data": data.astype(dtype), "ids": np.array(ids), "scales": n.f(*(scales or sizes))}
        if zeros:
            feeds["zeros"] = (n.ids(16, *sizes) - 8 * (dtype == ml_dtypes.int4)).astype(dtype)
        Case("ms_gather_blocks_" + name, "GatherBlockQuantized", feeds, domain=MS, gather_axis=taken, quantize_axis=scaled,
             block_size=block, fixed=["data", "scales", "zeros"])
    blocks("first_axis", (8, 64), 0, 1, [1, 3])
    blocks("same_axis", (40, 8), 0, 0, [1, -2], zeros=True)
    blocks("same_last_axis", (4, 40), 1, 1, [1, 39, 16], zeros=True)
    blocks("middle_axis", (4, 40, 8), 1, 0, [[1], [2]], dtype=ml_dtypes.int4, zeros=True)
    blocks("before_taken", (4, 32, 6), 1, 2, [[1], [2]], dtype=ml_dtypes.int4)
    blocks("behind_taken", (4, 3, 40), 2, 1, [[1, 2], [0, 0]], zeros=True)
    for kind in "e4m3fn e5m2 e4m3fnuz e5m2fnuz".split():
        blocks("f8" + kind, (8, 40), 1, 0, [1, -1], dtype=getattr(ml_dtypes, "float8_" + kind))
    f8 = dict(dtype=ml_dtypes.float8_e4m3fn)
    blocks("one_block", (8, 40), 1, 0, [1, -1], block=0, **f8)
    blocks("one_row_of_scales", (8, 40), 1, 0, [1, -1], scales=(1, 3), **f8)
    blocks("one_scale", (8, 40), 1, 0, [[1], [-1]], block=0, scales=(1, 1), **f8)
    blocks("f8_same_axis", (40, 8), 0, 0, [1, -2], **f8)
    blocks("f4", (8, 40), 1, 0, [1, 3], dtype=ml_dtypes.float4_e2m1fn)


def experts():
    n = Numbers("sweep_experts")
    def mixture(name, bits, zeros=False, router=False, inner=32, **attrs):
        packed = 8 // bits
        scale = lambda rows: (np.abs(n.f(4, rows)) * 0.02 + 0.01).astype(np.float32)
        feeds = {"x": n.f(5, 32), "scores": n.f(5, 4), "w1": n.u8(4, inner, 32 // packed), "s1": scale(inner), "b1": None,
                 "w2": n.u8(4, 32, inner // packed), "s2": scale(32), "b2": None, "w3": None, "s3": None, "b3": None,
                 "z1": n.u8(4, -(-inner // packed)) if zeros else None, "z2": n.u8(4, 32 // packed) if zeros else None,
                 "z3": None, "router": np.abs(n.f(5, 4)) if router else None}
        while list(feeds.values())[-1] is None:
            feeds.popitem()
        Case("ms_qmoe_" + name, "QMoE", feeds, domain=MS, activation_type="relu", expert_weight_bits=bits,
             fixed=[k for k in feeds if k[0] in "wz" or k in ("s1", "s2")], **attrs)
    mixture("2", 2, k=2)
    mixture("2_zeros", 2, zeros=True, k=2)
    mixture("2_zeros_filled_up", 2, zeros=True, inner=36)
    mixture("4_zeros_of_rows", 4, zeros=True, k=2)
    mixture("4_router", 4, router=True, k=2)
    mixture("4_router_normalised", 4, router=True, k=2, normalize_routing_weights=1)


def words():
    text = np.array(["hello world", "a,b c", "", "  x "], object)
    def cut(name, x=text, mark=0, mincharnum=1, **attrs):
        Case("ms_tokenizer_" + name, "Tokenizer", {"x": np.array(x, object)}, domain=MS, mark=mark, mincharnum=mincharnum,
             pad_value="#", **attrs)
    cut("separator", separators=[" "])
    cut("separators", separators=[" ", ","])
    cut("separators_mark", separators=[" ", ","], mark=1)
    cut("separators_long", separators=[" "], mincharnum=2, mark=1)
    cut("separators_order", ["abcabc", "ab"], separators=["b", "bc"])
    cut("separators_order_turned", ["abcabc", "ab"], separators=["bc", "b"])
    cut("separators_matrix", [["a b", "c"], ["d e f", ""]], separators=[r"\s+"])
    cut("separators_expression", ["aXXbXc", "a.b", "^X"], separators=["[.^]|X+"])
    cut("separators_first_anchored", ["aXaXc"], separators=["^a", "X"])
    cut("letters", ["\u00e4\u00f6 \u00fc", "x\ny"], separators=[""])
    cut("letters_mark", ["\u00e4\u00f6 \u00fc", "x", ""], separators=[""], mark=1)
    cut("none", ["", "  "], separators=[" "], mark=1)
    cut("both", separators=[" "], tokenexp="o")
    cut("mark", tokenexp="[a-z]+", mark=1)
    cut("long", ["ab c defg", "\u00f6 \u00f6\u00e4 \u00f6\u00e4\u00fc", "1"], tokenexp="[^ 0-9]+", mincharnum=2)
    cut("long_mark", ["ab c defg", "\u00f6 \u00f6\u00e4 \u00f6\u00e4\u00fc", "1"], tokenexp="[^ 0-9]+", mincharnum=3, mark=1)


def linear():
    n = Numbers("sweep_linear")
    x, weights = n.f(6, 3), n.f(3).tolist()
    classify = lambda name, x, **attrs: Case("ml_linear_" + name, "LinearClassifier", {"x": x}, 2, domain=ML, **attrs)
    one = dict(coefficients=weights, intercepts=[0.1])
    for transform in "NONE LOGISTIC SOFTMAX SOFTMAX_ZERO".split():
        classify("one_score_" + transform.lower(), x, classlabels_ints=[4, 7], post_transform=transform, **one)
    classify("one_score_words", x.astype(np.float64), classlabels_strings=["a", "b"], **one)
    classify("one_score_row", x[0], classlabels_ints=[4, 7], **one)
    classify("row", x[0], classlabels_ints=[4, 7], coefficients=n.f(6).tolist(), intercepts=[0.1, 0.2])
    regress = lambda name, x, **attrs: Case("ml_linear_regressor_" + name, "LinearRegressor", {"x": x}, domain=ML,
                                            coefficients=n.f(3 * attrs.get("targets", 1)).tolist(), **attrs)
    regress("row", x[0], intercepts=[0.5])
    regress("row_targets", x[0], targets=2, post_transform="LOGISTIC")


def encoders():
    n = Numbers("sweep_encoders")
    encode = lambda name, x, **attrs: Case("ml_one_hot_" + name, "OneHotEncoder", {"x": np.array(x)}, domain=ML, **attrs)
    encode("known", [[1], [3]], cats_int64s=[1, 3], zeros=0)
    encode("known_words", np.array(["b", "a"], object), cats_strings=["a", "b", "c"], zeros=0)
    encode("known_floats", np.array([1.7, 3.2], np.float32), cats_int64s=[1, 3], zeros=0)
    encode("twice", [1, 3, 2], cats_int64s=[1, 3, 1])
    def join(name, sizes, *arrays):
        Case("ml_feature_vectorizer_" + name, "FeatureVectorizer", {f"x{i}": a for i, a in enumerate(arrays)}, domain=ML,
             inputdimensions=sizes)
    join("narrow", [2, 2], n.f(2, 3), n.f(2, 2))
    join("wide", [4, 3], n.f(2, 3), n.f(2, 2))
    join("rank3", [3, 5], n.f(2, 2, 2), n.f(2, 2, 2))
    join("rank4", [9], n.f(2, 2, 2, 2))
    join("rows", [2, 3], n.ids(99, 3), n.ids(99, 2))


def machines():
    n = Numbers("sweep_machines")
    x, vectors = n.f(6, 3), n.f(4, 3).ravel().tolist()
    labels = lambda count: dict(classlabels_ints=[3, 5, 8][:count])
    kernel = dict(kernel_params=[0.5, 0.2, 2.0], kernel_type="LINEAR")  # which ONNX Runtime wants to be stated
    classify = lambda name, x, **attrs: Case("ml_svc_" + name, "SVMClassifier", {"x": x}, 2, domain=ML,
                                             **{**kernel, **attrs})
    for transform in "NONE LOGISTIC SOFTMAX SOFTMAX_ZERO".split():
        end = "" if transform == "NONE" else "_" + transform.lower()
        classify("features_3" + end, x, coefficients=n.f(9).tolist(), rho=[0.1], post_transform=transform, **labels(3))
        classify("features_2" + end, x, coefficients=n.f(6).tolist(), rho=[0.1], post_transform=transform, **labels(2))
        if end:
            classify("two" + end, x, coefficients=n.f(4).tolist(), rho=[0.1], support_vectors=vectors,
                     vectors_per_class=[2, 2], kernel_type="RBF", post_transform=transform, **labels(2))
    positive = np.abs(n.f(6)).tolist()
    classify("features_positive", 0.3 * x, coefficients=positive, rho=[0.1], kernel_type="RBF", **labels(2))
    classify("features_probable", x, coefficients=n.f(6).tolist(), rho=[0.1], prob_a=[-1.0], prob_b=[0.1], **labels(2))
    classify("features_words", x, coefficients=n.f(6).tolist(), rho=[0.1], classlabels_strings=["no", "yes"])
    classify("features_row", x[0], coefficients=n.f(9).tolist(), rho=[0.1], **labels(3))
    classify("row", x[0], coefficients=n.f(8).tolist(), rho=[0.1, 0.2, 0.3], support_vectors=vectors,
             vectors_per_class=[1, 1, 2], kernel_type="POLY", **labels(3))
    regress = lambda name, x, **attrs: Case("ml_svm_" + name, "SVMRegressor", {"x": x}, domain=ML, rho=[0.1],
                                            **{**kernel, **attrs})
    regress("features", x, coefficients=n.f(3).tolist(), n_supports=0)
    regress("features_kernel", x, coefficients=n.f(3).tolist(), n_supports=0, kernel_type="RBF", one_class=1)
    held = dict(coefficients=n.f(4).tolist(), n_supports=4, support_vectors=vectors)
    regress("row", x[0], kernel_type="RBF", **held)
    for transform in "LOGISTIC SOFTMAX PROBIT".split():
        regress("post_" + transform.lower(), x, post_transform=transform, **held)


def trees():
    x = f32(0.05, -0.3, np.nan, 0.5, 1, 2, -1, 3, 4, 4).reshape(5, 2)
    values = lambda *numbers: numpy_helper.from_array(f32(*numbers))
    modes = numpy_helper.from_array(np.array([6, 6], np.uint8))
    for name, members in (("_open", (1, 4, np.nan, 3, 2)), ("_ended", (1, 4, np.nan, 3, 2, np.nan))):
        Case("ml_tree_members" + name, "TreeEnsemble", {"x": x}, domain=ML, n_targets=1, aggregate_function=1,
             leaf_targetids=[0, 0, 0], leaf_weights=values(0.1, 0.2, 0.4), membership_values=values(*members),
             nodes_featureids=[0, 1], nodes_splits=values(0, 0), nodes_modes=modes, nodes_truenodeids=[0, 1],
             nodes_trueleafs=[1, 1], nodes_falsenodeids=[1, 2], nodes_falseleafs=[0, 1], tree_roots=[0])


if __name__ == "__main__":
    for each in (norms, products, turns, masks, caches, tables, experts, words, linear, encoders, machines, trees):
        each()
    make_recorded.record(sys.argv[1:])
