#!/usr/bin/env python3
"""Writes recorded/NAME: small models of ops that ONNX's own tests in Debian lack, with inputs and what ONNX
Runtime, or for ops that it lacks ONNX's reference implementation, answers.

    python3 -m venv v && v/bin/pip install onnxruntime==1.31.1 onnx==1.23.2 numpy
    v/bin/python tests/conformance/make_recorded.py [NAME..]

onnx_tests runs the folders as it runs ONNX's tests."""

import pathlib
import shutil
import sys
import tempfile
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OUT = pathlib.Path(__file__).resolve().parent / "recorded"
MS = "com.microsoft"
ML = "ai.onnx.ml"
CASES = {}


class Case:
    """One node: inputs by name (None: left out; fixed: stored in the model), attributes, outputs."""

    threads = 0  # of ONNX Runtime, where its answer depends on them

    def __init__(self, name, op, inputs, outputs=1, domain="", opset=21, fixed=(), reference=False, answers=None,
                 shown=None, **attrs):
        self.name, self.op, self.domain, self.opset = name, op, domain, opset
        self.answers = answers  # by the op's definition, where nobody computes it
        self.inputs, self.fixed, self.reference, self.attrs = inputs, set(fixed), reference, attrs
        self.outputs = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.shown = [o for o in self.outputs if o][:shown]  # the others are computed, but not compared
        assert name not in CASES, name
        CASES[name] = self

    def model(self, types):
        node = helper.make_node(self.op, [k if v is not None else "" for k, v in self.inputs.items()], self.outputs,
                                domain=self.domain, **self.attrs)
        given = {k: v for k, v in self.inputs.items() if v is not None}
        feeds = {k: v for k, v in given.items() if k not in self.fixed}
        infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                 for k, v in feeds.items()]
        shown = self.shown
        outs = [helper.make_tensor_value_info(o, *types[o]) if types else onnx.ValueInfoProto(name=o) for o in shown]
        stored = [numpy_helper.from_array(given[k], k) for k in given if k in self.fixed]
        graph = helper.make_graph([node], self.name, infos, outs, stored)
        opsets = [helper.make_opsetid("", self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, {ML: 3 if self.op[12:] in ("Classifier", "Regressor") else 5}.get(self.domain, 1)))
        model = helper.make_model(graph, opset_imports=opsets, producer_name="oncilla")
        model.ir_version = 10
        return model, feeds, shown

    def record(self):
        model, feeds, shown = self.model(None)
        if self.answers is not None:
            answers = self.answers
        elif self.reference:
            answers = ReferenceEvaluator(self.model({o: (TensorProto.FLOAT, None) for o in shown})[0]).run(None, feeds)
        else:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.intra_op_num_threads = self.threads
            session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                   providers=["CPUExecutionProvider"])
            answers = session.run(shown, feeds)
        answers = [np.asarray(a) for a in answers]
        types = {o: (TensorProto.STRING if a.dtype == object else helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                 for o, a in zip(shown, answers)}
        folder = OUT / self.name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "test_data_set_0").mkdir(parents=True)
        (folder / "model.onnx").write_bytes(self.model(types)[0].SerializeToString())
        for kind, arrays in (("input", feeds.values()), ("output", answers)):
            for i, array in enumerate(arrays):
                tensor = numpy_helper.from_array(array)
                (folder / "test_data_set_0" / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


class Numbers:
    """Random arrays that depend on the case's name alone."""

    def __init__(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def f(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def u8(self, *shape):
        return self.rng.integers(0, 256, shape).astype(np.uint8)

    def i8(self, *shape):
        return self.rng.integers(-128, 128, shape).astype(np.int8)

    def ids(self, most, *shape, dtype=np.int32):
        return self.rng.integers(0, most, shape).astype(dtype)


def f32(*values):
    return np.array(values, np.float32) if len(values) != 1 else np.array(values[0], np.float32)


def activations():
    n = Numbers("activations")
    Case("ms_gelu", "Gelu", {"x": n.f(2, 5)}, domain=MS)
    Case("ms_fast_gelu", "FastGelu", {"x": n.f(2, 3, 4)}, domain=MS)
    Case("ms_fast_gelu_bias", "FastGelu", {"x": n.f(2, 3, 4), "bias": n.f(4)}, domain=MS)
    Case("ms_bias_gelu", "BiasGelu", {"a": n.f(2, 3, 4), "b": n.f(4)}, domain=MS)
    Case("ms_quick_gelu", "QuickGelu", {"x": n.f(3, 5)}, domain=MS)
    Case("ms_quick_gelu_alpha", "QuickGelu", {"x": n.f(3, 5)}, domain=MS, alpha=0.7)


def norms():
    n = Numbers("norms")
    Case("ms_skip_layer_norm", "SkipLayerNormalization",
         {"x": n.f(2, 3, 8), "skip": n.f(2, 3, 8), "gamma": n.f(8), "beta": n.f(8), "bias": n.f(8)},
         ["y", "", "", "sum"], domain=MS, epsilon=1e-5)
    Case("ms_skip_layer_norm_broadcast", "SkipLayerNormalization",
         {"x": n.f(2, 3, 8), "skip": n.f(3, 8), "gamma": n.f(8)}, domain=MS)
    Case("ms_skip_simplified", "SkipSimplifiedLayerNormalization",
         {"x": n.f(2, 3, 8), "skip": n.f(2, 3, 8), "gamma": n.f(8)}, ["y", "", "", "sum"], domain=MS, epsilon=1e-6)
    Case("ms_skip_simplified_bias", "SkipSimplifiedLayerNormalization",
         {"x": n.f(2, 3, 8), "skip": n.f(2, 3, 8), "gamma": n.f(8), "bias": n.f(8)}, domain=MS)
    Case("simplified_layer_norm", "SimplifiedLayerNormalization", {"x": n.f(2, 3, 8), "scale": n.f(8)}, epsilon=1e-6)
    embeddings = {"words": n.f(11, 8), "places": n.f(6, 8)}
    tail = {"gamma": n.f(8), "beta": n.f(8)}
    Case("ms_embed_layer_norm", "EmbedLayerNormalization",
         {"ids": n.ids(11, 2, 4), "segments": n.ids(2, 2, 4), **embeddings, "types": n.f(2, 8), **tail,
          "mask": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)}, 3, domain=MS)
    Case("ms_embed_layer_norm_places", "EmbedLayerNormalization",
         {"ids": n.ids(11, 2, 4), "segments": None, **embeddings, "types": None, **tail, "mask": None,
          "position_ids": n.ids(6, 2, 4)}, 2, domain=MS)


def attention():
    n = Numbers("attention")
    x, w, bias = n.f(2, 4, 8), n.f(8, 24), n.f(24)
    mask = np.array([[1, 1, 1, 0], [1, 0, 1, 1]], np.int32)
    Case("ms_attention", "Attention", {"x": x, "w": w, "b": bias}, domain=MS, num_heads=2)
    Case("ms_attention_mask", "Attention", {"x": x, "w": w, "b": bias, "mask": mask}, domain=MS, num_heads=2)
    Case("ms_attention_lengths", "Attention", {"x": x, "w": w, "b": bias, "mask": np.array([3, 2], np.int32)},
         domain=MS, num_heads=2)
    Case("ms_attention_mask_3d", "Attention",
         {"x": x, "w": w, "b": bias, "mask": n.ids(2, 2, 4, 4) | np.eye(4, dtype=np.int32)}, domain=MS, num_heads=2)
    Case("ms_attention_causal", "Attention", {"x": x, "w": w, "b": bias}, domain=MS, num_heads=2, unidirectional=1)
    Case("ms_attention_causal_mask", "Attention", {"x": x, "w": w, "b": bias, "mask": mask}, domain=MS, num_heads=2,
         unidirectional=1, mask_filter_value=-1000.0)
    Case("ms_attention_extra_bias", "Attention",
         {"x": x, "w": w, "b": bias, "mask": None, "past": None, "extra": n.f(1, 2, 4, 4)}, domain=MS, num_heads=2,
         scale=0.3)
    Case("ms_attention_sizes", "Attention", {"x": x, "w": n.f(8, 20), "b": n.f(20)}, domain=MS, num_heads=2,
         qkv_hidden_sizes=[8, 8, 4])
    q, k, v = n.f(2, 4, 8), n.f(2, 5, 8), n.f(2, 5, 8)
    Case("ms_mha", "MultiHeadAttention", {"q": q, "k": k, "v": v}, domain=MS, num_heads=2)
    Case("ms_mha_bias", "MultiHeadAttention", {"q": q, "k": k, "v": v, "b": n.f(24)}, domain=MS, num_heads=4)
    Case("ms_mha_padding", "MultiHeadAttention",
         {"q": q, "k": k, "v": v, "b": None, "mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)},
         domain=MS, num_heads=2)
    Case("ms_mha_extra_bias", "MultiHeadAttention",
         {"q": q, "k": k, "v": v, "b": None, "mask": None, "extra": n.f(1, 2, 4, 5)}, domain=MS, num_heads=2)
    Case("ms_mha_past", "MultiHeadAttention",
         {"q": n.f(2, 1, 8), "k": n.f(2, 1, 8), "v": n.f(2, 1, 8), "b": None, "mask": None, "extra": None,
          "past_k": n.f(2, 2, 3, 4), "past_v": n.f(2, 2, 3, 4)}, 3, domain=MS, num_heads=2)
    Case("ms_mha_by_head", "MultiHeadAttention", {"q": q, "k": n.f(2, 2, 5, 4), "v": n.f(2, 2, 5, 4)}, domain=MS,
         num_heads=2)
    cos, sin = n.f(10, 4), n.f(10, 4)
    places = np.array([[0, 3, 1], [5, 2, 9]], np.int64)
    Case("ms_rotary", "RotaryEmbedding", {"x": n.f(2, 3, 16), "at": places, "cos": cos, "sin": sin}, domain=MS)
    Case("ms_rotary_offset", "RotaryEmbedding",
         {"x": n.f(2, 3, 16), "at": np.array([4], np.int64), "cos": cos, "sin": sin}, domain=MS)
    Case("ms_rotary_interleaved", "RotaryEmbedding", {"x": n.f(2, 2, 3, 8), "at": places, "cos": cos, "sin": sin},
         domain=MS, interleaved=1)
    Case("ms_rotary_part", "RotaryEmbedding", {"x": n.f(2, 3, 24), "at": places, "cos": cos, "sin": sin}, domain=MS,
         num_heads=2, rotary_embedding_dim=8)


def products():
    n = Numbers("products")
    Case("ms_fused_matmul", "FusedMatMul", {"a": n.f(2, 4, 3), "b": n.f(2, 5, 4)}, domain=MS, transA=1, transB=1,
         alpha=0.5)
    Case("ms_fused_gemm", "FusedGemm", {"a": n.f(3, 4), "b": n.f(4, 5), "c": n.f(5)}, domain=MS, activation="Relu",
         alpha=0.5, beta=2.0)
    Case("ms_fused_gemm_leaky", "FusedGemm", {"a": n.f(4, 3), "b": n.f(5, 4)}, domain=MS, activation="LeakyRelu",
         activation_alpha=0.3, transA=1, transB=1)
    conv = {"x": n.f(1, 3, 6, 5), "w": n.f(4, 3, 3, 3), "b": n.f(4)}
    Case("ms_fused_conv", "FusedConv", conv, domain=MS, activation="Relu", pads=[1, 1, 1, 1])
    Case("ms_fused_conv_sum", "FusedConv", {**conv, "z": n.f(1, 4, 2, 2)}, domain=MS, activation="Relu",
         strides=[2, 2])
    Case("ms_fused_conv_clip", "FusedConv", conv, domain=MS, activation="Clip", activation_params=[-0.5, 1.5])
    Case("ms_fused_conv_hard_sigmoid", "FusedConv", conv, domain=MS, activation="HardSigmoid",
         activation_params=[0.3, 0.4])
    Case("ms_inverse", "Inverse", {"x": n.f(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)}, domain=MS)
    Case("ms_trilu", "Trilu", {"x": n.f(2, 4, 3), "k": np.array(1, np.int64)}, domain=MS, upper=0)
    Case("ms_nhwc_max_pool", "NhwcMaxPool", {"x": n.u8(1, 5, 6, 3)}, domain=MS, kernel_shape=[3, 2], strides=[2, 2],
         pads=[1, 0, 1, 0])


def quantised():
    n = Numbers("quantised")
    u8 = lambda v: np.array(v, np.uint8)
    i8 = lambda v: np.array(v, np.int8)
    for op in ("Add", "Mul"):
        Case(f"ms_qlinear_{op.lower()}", f"QLinear{op}",
             {"a": n.u8(2, 3, 4), "as": f32(0.0513), "az": u8(120), "b": n.u8(3, 4), "bs": f32(0.0717), "bz": u8(131),
              "cs": f32(0.1031), "cz": u8(127)}, domain=MS)
        Case(f"ms_qlinear_{op.lower()}_signed", f"QLinear{op}",
             {"a": n.i8(2, 5), "as": f32(0.05), "az": i8(-3), "b": n.i8(1), "bs": f32(0.07), "bz": i8(11),
              "cs": f32(0.1), "cz": i8(-9)}, domain=MS)
    Case("ms_qlinear_sigmoid", "QLinearSigmoid",
         {"x": n.u8(3, 20), "xs": f32(0.04), "xz": u8(128), "ys": f32(1 / 256), "yz": u8(0)}, domain=MS,
         fixed=["xs", "xz", "ys", "yz"])
    Case("ms_qlinear_leaky_relu", "QLinearLeakyRelu",
         {"x": n.i8(3, 20), "xs": f32(0.04), "xz": i8(5), "ys": f32(0.03), "yz": i8(-20)}, domain=MS, alpha=0.2,
         fixed=["xs", "xz", "ys", "yz"])
    Case("ms_qlinear_softmax", "QLinearSoftmax",
         {"x": n.u8(3, 10), "xs": f32(0.04), "xz": u8(128), "ys": f32(1 / 256), "yz": u8(0)}, domain=MS,
         fixed=["xs", "xz", "ys", "yz"], axis=-1)
    CASES["ms_qlinear_softmax"].attrs["opset"] = 13  # an attribute of this op
    # No result lies between two steps, where rounding would decide.
    scales = {"xs": f32(0.0513), "xz": u8(120), "ys": f32(0.0437), "yz": u8(110)}
    Case("ms_qlinear_average_pool", "QLinearAveragePool", {"x": n.u8(1, 3, 6, 5), **scales}, domain=MS,
         kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    Case("ms_qlinear_average_pool_last", "QLinearAveragePool", {"x": n.u8(1, 6, 5, 3), **scales}, domain=MS,
         kernel_shape=[2, 2], channels_last=1, count_include_pad=1, pads=[1, 1, 0, 0])
    Case("ms_qlinear_global_pool", "QLinearGlobalAveragePool", {"x": n.u8(2, 3, 6, 5), **scales}, domain=MS)
    Case("ms_qlinear_global_pool_last", "QLinearGlobalAveragePool", {"x": n.u8(2, 6, 5, 3), **scales}, domain=MS,
         channels_last=1)
    Case("ms_qlinear_concat", "QLinearConcat",
         {"ys": f32(0.06), "yz": u8(100), "a": n.u8(2, 3), "as": f32(0.05), "az": u8(120), "b": n.u8(2, 4),
          "bs": f32(0.06), "bz": u8(100)}, domain=MS, axis=1, fixed=["ys", "yz", "as", "az", "bs", "bz"])
    Case("ms_qlinear_where", "QLinearWhere",
         {"c": n.ids(2, 3, 4).astype(bool), "x": n.u8(3, 4), "xs": f32(0.05), "xz": u8(120), "y": n.u8(4),
          "ys": f32(0.07), "yz": u8(90), "zs": f32(0.06), "zz": u8(110)}, domain=MS,
         fixed=["xs", "xz", "ys", "yz", "zs", "zz"])
    Case("ms_matmul_integer_to_float", "MatMulIntegerToFloat",
         {"a": n.u8(3, 5), "b": n.u8(5, 4), "as": f32(0.02), "bs": np.abs(n.f(4)) / 50, "az": u8(120),
          "bz": n.u8(4), "bias": n.f(4)}, domain=MS)
    Case("ms_dynamic_quantize_matmul", "DynamicQuantizeMatMul",
         {"a": n.f(3, 5), "b": n.i8(5, 4), "bs": f32(0.02), "bz": i8(3), "bias": n.f(4)}, domain=MS)
    gemm = {"a": n.u8(3, 5), "as": f32(0.02), "az": u8(120), "b": n.i8(5, 4), "bs": f32(0.03), "bz": i8(-4),
            "c": n.ids(900, 4)}
    Case("ms_qgemm", "QGemm", {**gemm, "ys": f32(0.2), "yz": u8(128)}, domain=MS)
    Case("ms_qgemm_float", "QGemm", gemm, domain=MS, alpha=0.5)
    Case("ms_qgemm_columns", "QGemm",
         {**gemm, "b": n.i8(4, 5), "bs": np.abs(n.f(4)) / 40, "bz": np.zeros(4, np.int8), "ys": f32(0.2),
          "yz": u8(128)}, domain=MS, transB=1)


def integers():
    """Exact arithmetic: many sums, so that rounding shows; factors of which many products are ties."""
    n = Numbers("integers")
    u8 = lambda v: np.array(v, np.uint8)
    i8 = lambda v: np.array(v, np.int8)
    bias = lambda *shape: n.ids(4000, *shape) - 2000
    for name, x, zero, y_zero, w, w_scale in (
            ("u8_i8", n.u8(2, 4, 9, 7), u8(121), u8(128), n.i8(6, 4, 3, 3), n.f(6) ** 2 / 50 + 0.001),
            ("u8_u8", n.u8(2, 4, 9, 7), u8(121), u8(3), n.u8(6, 4, 3, 3), f32(0.0117)),
            ("i8_i8", n.i8(2, 4, 9, 7), i8(-7), i8(11), n.i8(6, 4, 3, 3), n.f(6) ** 2 / 50 + 0.001)):
        w_zero = u8(133) if w.dtype == np.uint8 else np.zeros(w_scale.shape, np.int8)
        inputs = {"x": x, "xs": f32(0.0213), "xz": zero, "w": w, "ws": w_scale.astype(np.float32), "wz": w_zero,
                  "ys": f32(0.0731), "yz": y_zero, "b": bias(6)}
        Case(f"qlinear_conv_{name}", "QLinearConv", inputs, fixed=["xs", "xz", "w", "ws", "wz", "ys", "yz", "b"],
             pads=[1, 0, 1, 1], strides=[2, 1])
    Case("qlinear_conv_ties", "QLinearConv",
         {"x": n.u8(1, 3, 8, 8), "xs": f32(0.5), "xz": u8(128), "w": n.ids(5, 5, 3, 1, 1, dtype=np.int8), "ws": f32(0.25),
          "wz": i8(0), "ys": f32(1), "yz": u8(120)}, fixed=["xs", "xz", "w", "ws", "wz", "ys", "yz"])
    Case("qlinear_conv_depthwise", "QLinearConv",
         {"x": n.u8(1, 6, 9, 9), "xs": f32(0.02), "xz": u8(0), "w": n.i8(6, 1, 3, 3), "ws": (n.f(6) ** 2 / 20 + 0.001).astype(np.float32),
          "wz": np.zeros(6, np.int8), "ys": f32(0.031), "yz": u8(100), "b": bias(6)}, group=6, pads=[1, 1, 1, 1],
         fixed=["xs", "xz", "w", "ws", "wz", "ys", "yz", "b"])
    for name, a, a_zero, b, b_scale, b_zero, y_zero in (
            ("u8_u8", n.u8(2, 7, 33), u8(119), n.u8(33, 9), f32(0.017), u8(140), u8(117)),
            ("u8_i8_columns", n.u8(7, 33), u8(119), n.i8(33, 9), (n.f(9) ** 2 / 50 + 0.001).astype(np.float32), i8([0] * 9), u8(117)),
            ("i8_i8", n.i8(7, 33), i8(4), n.i8(33, 9), f32(0.017), i8(-3), i8(-5))):
        Case(f"qlinear_matmul_{name}", "QLinearMatMul",
             {"a": a, "as": f32(0.021), "az": a_zero, "b": b, "bs": b_scale, "bz": b_zero, "ys": f32(0.093), "yz": y_zero},
             fixed=["as", "az", "b", "bs", "bz", "ys", "yz"])
    Case("qlinear_matmul_ties", "QLinearMatMul",
         {"a": n.u8(9, 3), "as": f32(0.5), "az": u8(128), "b": n.ids(4, 3, 8, dtype=np.uint8), "bs": f32(0.25), "bz": u8(1),
          "ys": f32(0.25), "yz": u8(127)}, fixed=["as", "az", "b", "bs", "bz", "ys", "yz"])
    Case("matmul_integer_columns", "MatMulInteger", {"a": n.u8(3, 5, 17), "b": n.i8(17, 6), "az": u8(77), "bz": n.i8(6)})
    Case("conv_integer_pads", "ConvInteger", {"x": n.u8(1, 3, 6, 7), "w": n.u8(4, 3, 3, 2), "xz": u8(101), "wz": u8(55)},
         pads=[1, 0, 2, 1], dilations=[1, 2])


def features():
    n = Numbers("features")
    Case("ml_scaler", "Scaler", {"x": n.f(3, 4)}, domain=ML, offset=[1.0, 2, 3, 4], scale=[0.5, 1, 2, 3])
    for norm in ("MAX", "L1", "L2"):
        Case(f"ml_normalizer_{norm.lower()}", "Normalizer", {"x": np.abs(n.f(3, 4))}, domain=ML, norm=norm)
    holes = n.f(3, 4)
    holes[0, 1] = holes[2, 3] = np.nan
    Case("ml_imputer", "Imputer", {"x": holes}, domain=ML, imputed_value_floats=[1.0, 2, 3, 4],
         replaced_value_float=float("nan"))
    Case("ml_imputer_ints", "Imputer", {"x": np.array([[1, 0, 3], [0, 5, 6]], np.int64)}, domain=ML,
         imputed_value_int64s=[7], replaced_value_int64=0)
    Case("ml_one_hot", "OneHotEncoder", {"x": np.array([3, 1, 9, 7], np.int64)}, domain=ML, cats_int64s=[1, 7, 3])
    Case("ml_linear_regressor", "LinearRegressor", {"x": n.f(3, 4)}, domain=ML, targets=2,
         coefficients=n.f(8).tolist(), intercepts=[0.5, -0.5])
    Case("ml_linear_classifier", "LinearClassifier", {"x": n.f(5, 4)}, 2, domain=ML, classlabels_ints=[10, 20, 30],
         coefficients=n.f(12).tolist(), intercepts=[0.5, -0.5, 0.1], post_transform="SOFTMAX")
    Case("ml_label_encoder_floats", "LabelEncoder", {"x": np.array([1.5, np.nan, 2.5, 9], np.float32)}, domain=ML,
         keys_floats=[1.5, float("nan"), 2.5], values_int64s=[10, 20, 30], default_int64=-7)
    for kind, params in (("LINEAR", [0, 0, 0]), ("RBF", [0.5, 0, 0]), ("POLY", [0.4, 1.5, 2]), ("SIGMOID", [0.3, 0.2, 0])):
        Case(f"ml_svm_{kind.lower()}", "SVMRegressor", {"x": n.f(4, 3)}, domain=ML, kernel_type=kind,
             kernel_params=[float(p) for p in params], n_supports=5, support_vectors=n.f(15).tolist(),
             coefficients=n.f(5).tolist(), rho=[0.25])
    Case("ml_svm_one_class", "SVMRegressor", {"x": n.f(6, 3)}, domain=ML, kernel_type="RBF",
         kernel_params=[0.5, 0.0, 0.0], n_supports=5, support_vectors=n.f(15).tolist(),
         coefficients=np.abs(n.f(5)).tolist(), rho=[-0.7], one_class=1)
    Case("ml_feature_vectorizer", "FeatureVectorizer", {"a": n.f(2, 3), "b": n.f(2, 2)}, domain=ML,
         inputdimensions=[3, 2])


def tree_attrs(kind):
    """Two trees over three features; `kind` names the votes (target or class)."""
    return {
        "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
        "nodes_values": [0.1, -0.3, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0],
        "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0],
        f"{kind}_treeids": [0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
        f"{kind}_nodeids": [2, 2, 3, 4, 1, 1, 1, 2, 2, 2],
        f"{kind}_ids": [0, 1, 1, 2, 0, 1, 2, 0, 1, 2],
        f"{kind}_weights": [0.5, 0.25, -1.5, 0.75, 0.3, 0.6, 0.1, 0.4, 0.2, 0.7],
    }


def trees():
    n = Numbers("trees")
    x = n.f(7, 3)
    for mode in ("SUM", "AVERAGE", "MIN", "MAX"):
        Case(f"ml_tree_regressor_{mode.lower()}", "TreeEnsembleRegressor", {"x": x}, domain=ML, n_targets=3,
             aggregate_function=mode, base_values=[0.5, 0.0, -0.5], **tree_attrs("target"))
    Case("ml_tree_classifier", "TreeEnsembleClassifier", {"x": x}, 2, domain=ML, classlabels_int64s=[7, 8, 9],
         post_transform="SOFTMAX", **tree_attrs("class"))
    Case("ml_tree_classifier_softmax_zero", "TreeEnsembleClassifier", {"x": x}, 2, domain=ML, classlabels_int64s=[7, 8, 9, 10],
         post_transform="SOFTMAX_ZERO", **tree_attrs("class"))
    Case("ml_tree_classifier_words", "TreeEnsembleClassifier", {"x": x}, 2, domain=ML,
         classlabels_strings=["a", "b", "c"], **tree_attrs("class"))
    # Two classes of which one is voted for: a probability, or a score whose sign decides; sums without rounding.
    for name, voted, signed, attrs in (
            ("probable", 0, False, {}), ("signed", 0, True, {}), ("base", 0, False, {"base_values": [-0.125]}),
            ("signed_base", 0, True, {"base_values": [0.125]}), ("logistic", 0, True, {"post_transform": "LOGISTIC"}),
            ("probable_logistic", 0, False, {"post_transform": "LOGISTIC"}), ("second", 1, False, {}),
            ("second_signed", 1, True, {}), ("second_logistic", 1, True, {"post_transform": "LOGISTIC"}),
            ("second_softmax", 1, True, {"post_transform": "SOFTMAX"}),
            ("second_softmax_zero", 1, False, {"post_transform": "SOFTMAX_ZERO"}),
            ("second_probit", 1, False, {"post_transform": "PROBIT"})):
        votes = tree_attrs("class")
        count = len(votes["class_ids"])
        weights = (np.arange(count) * 7 % count - (count // 2 if signed else 0)) / (16 if signed else 32)
        votes.update(class_ids=[voted] * count, class_weights=weights.tolist())
        Case(f"ml_tree_two_{name}", "TreeEnsembleClassifier", {"x": x}, 2, domain=ML, classlabels_int64s=[5, 6], **votes,
             **attrs)


class Net:
    """A graph of plain ONNX ops with random weights."""

    def __init__(self, name):
        self.name, self.numbers, self.nodes, self.weights = name, Numbers(name), [], []

    def w(self, *shape, offset=0):
        return self.c(self.numbers.f(*shape) * np.float32(0.3) + np.float32(offset))

    def c(self, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def add(self, op, *inputs, **attrs):
        self.nodes.append(helper.make_node(op, inputs, [f"t{len(self.nodes)}"], **attrs))
        return self.nodes[-1].output[0]

    def save(self, path, inputs, result):
        infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                 for k, v in inputs.items()]
        out = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, infos, [out], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="oncilla")
        model.ir_version = 8
        onnx.save(model, path)


def encoder(path, ids, heads=4, width=16):
    """Two layers of an encoder as exporters write them."""
    net = Net("encoder")
    x = net.add("Add", net.add("Gather", net.w(30, width), "ids"), net.w(ids.shape[1], width))
    seen = net.add("Unsqueeze", net.add("Cast", "mask", to=1), net.c(np.array([1, 2])))
    bias = net.add("Mul", net.add("Sub", net.c(np.float32(1)), seen), net.c(np.float32(-10000)))

    def norm(x):
        return net.add("LayerNormalization", x, net.w(width, offset=1), net.w(width), axis=-1)

    def dense(x, inner, outer):
        return net.add("Add", net.add("MatMul", x, net.w(inner, outer)), net.w(outer))

    def by_head(x, perm):
        split = net.add("Reshape", dense(x, width, width), net.c(np.array([0, 0, heads, width // heads])))
        return net.add("Transpose", split, perm=perm)

    x = norm(x)
    for _ in range(2):
        scores = net.add("MatMul", by_head(x, [0, 2, 1, 3]), by_head(x, [0, 2, 3, 1]))
        scores = net.add("Add", net.add("Div", scores, net.c(np.float32(2))), bias)
        y = net.add("MatMul", net.add("Softmax", scores, axis=-1), by_head(x, [0, 2, 1, 3]))
        y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), net.c(np.array([0, 0, width])))
        x = norm(net.add("Add", dense(y, width, width), x))
        y = dense(x, width, 2 * width)
        erf = net.add("Erf", net.add("Div", y, net.c(np.float32(np.sqrt(2)))))
        y = net.add("Mul", net.add("Mul", y, net.add("Add", erf, net.c(np.float32(1)))), net.c(np.float32(0.5)))
        x = norm(net.add("Add", dense(y, 2 * width, width), x))
    mask = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], np.int64)
    net.save(path, {"ids": ids, "mask": mask}, x)
    return {"ids": ids, "mask": mask}


def few_bits():
    """Types of 8, 4 and 2 bits, by ONNX's reference; shapes are odd, so that packed ones do not fill their last byte."""
    import ml_dtypes
    floats = {t: getattr(ml_dtypes, t) for t in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")}
    integers = {t: getattr(ml_dtypes, t) for t in ("int4", "uint4", "int2", "uint2")}
    x = np.array([[0, 1, -1, 0.3, 17], [1e-3, 448, 500, 1e6, -1e6], [np.nan, np.inf, -np.inf, 2.5, 3.5]], np.float32)
    number = helper.np_dtype_to_tensor_dtype
    for t, dtype in floats.items():
        for saturate in (0, 1):
            Case(f"cast_{t}_{saturate}", "Cast", {"x": x}, opset=25, reference=True, to=number(np.dtype(dtype)),
                 saturate=saturate)
        small = np.array([[1, -2.5, 0.125], [3, 7, -0.5]], np.float32).astype(dtype)
        Case(f"cast_from_{t}", "Cast", {"x": small}, opset=25, reference=True, to=TensorProto.FLOAT16)
        Case(f"dequantize_{t}", "DequantizeLinear", {"x": small, "scale": f32(0.25)}, opset=25, reference=True)
    Case("transpose_float8", "Transpose", {"x": x[:2].astype(floats["float8_e5m2"])}, opset=25, reference=True,
         perm=[1, 0])
    whole = np.array([[0, 1, 2], [3, -1, -2], [-4, 7, 5]], np.int32)
    for t, dtype in integers.items():
        held = whole % 4 - (2 if t[0] == "i" else 0) if t.endswith("2") else abs(whole)
        packed = held.astype(dtype)
        Case(f"cast_{t}", "Cast", {"x": held.astype(np.float32)}, opset=25, reference=True, to=number(np.dtype(dtype)))
        Case(f"cast_from_{t}", "Cast", {"x": packed}, opset=25, reference=True, to=TensorProto.INT32)
        Case(f"dequantize_{t}", "DequantizeLinear", {"x": packed, "scale": f32(0.5, 2, 3), "zero": packed[0]},
             opset=25, fixed=("x", "scale", "zero"), reference=True, axis=1)
    for t, dtype in (*floats.items(), *integers.items()):
        held = (whole % 4 - (2 if t[0] == "i" else 0) if t.endswith("2") else abs(whole)) if t in integers else whole
        x = held.astype(dtype)
        Case(f"where_{t}", "Where", {"c": np.array([True, False] * x.size)[:x.size].reshape(x.shape), "x": x, "y": x[::-1].copy()},
             opset=25, reference=True)
        if t in integers:
            Case(f"transpose_{t}", "Transpose", {"x": x[:2]}, opset=25, reference=True, perm=[1, 0])
            Case(f"gather_{t}", "Gather", {"x": x, "at": np.array([2, 0], np.int64)}, opset=25, reference=True, axis=1)
            Case(f"concat_{t}", "Concat", {"a": x, "b": x[:, :2]}, opset=25, reference=True, axis=1)
    Case("quantize_int4_blocks", "QuantizeLinear",
         {"x": Numbers("blocks").f(3, 5) * 4, "scale": np.array([[1, 2, 0.5]] * 3, np.float32)}, opset=25, reference=True,
         axis=1, block_size=2, output_dtype=TensorProto.INT4)
    Case("cast_float4", "Cast", {"x": f32(0, 0.3, -0.8, 1.7, 5, 100, -7)}, opset=25, reference=True,
         to=TensorProto.FLOAT4E2M1)
    for mode in ("up", "down", "nearest"):
        Case(f"cast_powers_{mode}", "Cast", {"x": f32(1, 3, 0.74, 1000, 5e-39)}, opset=25, reference=True,
             to=TensorProto.FLOAT8E8M0, round_mode=mode)


def seeds():
    """Random ops with a seed, as ONNX's reference draws."""
    n = Numbers("seeds")
    x, trains = n.f(3, 4, 5), np.array(True)
    for name, ratio in (("", np.float32(0.3)), ("_f16", np.float16(0.25)), ("_f64", np.float64(0.75)),
                        ("_all", np.float32(0))):
        Case(f"seed_dropout{name}", "Dropout", {"x": x.astype(ratio.dtype), "ratio": np.array(ratio), "trains": trains},
             2, reference=True, seed=7)
    Case("seed_dropout_large", "Dropout", {"x": x, "ratio": None, "trains": trains}, answers=dropped(x, 0.5, 2**32 - 1),
         seed=2**32 - 1)
    Case("seed_uniform", "RandomUniform", {}, reference=True, shape=[7, 11], low=-2.0, high=5.5, seed=4.75)
    Case("seed_uniform_f64", "RandomUniform", {}, reference=True, shape=[3, 5], dtype=TensorProto.DOUBLE, seed=0.0)
    Case("seed_uniform_like", "RandomUniformLike", {"x": n.f(5, 3).astype(np.float16)}, reference=True, high=0.5, low=-0.5,
         seed=3.0)
    Case("seed_normal", "RandomNormal", {}, reference=True, shape=[9, 13], mean=1.5, scale=0.5, seed=11.0)
    Case("seed_normal_like", "RandomNormalLike", {"x": n.f(5, 3)}, reference=True, dtype=TensorProto.DOUBLE, seed=1e6)
    chances = np.clip(n.f(40, 50) / 4 + 0.5, 0, 1)
    Case("seed_bernoulli", "Bernoulli", {"x": chances}, reference=True, seed=5.0)
    Case("seed_bernoulli_f64", "Bernoulli", {"x": chances.astype(np.float64)}, reference=True, dtype=TensorProto.INT32,
         seed=6.0)


def regions():
    n = Numbers("regions")
    x = n.f(2, 3, 13, 17)
    rois = np.array([[0, 0, 0, 16, 12], [1, 3.5, 2.5, 9.49, 11], [0, 8, 9, 3, 2], [1, -6, -5, 4, 7], [0, 30, 30, 40, 40],
                     [1, 15, 11, 15, 11], [0.75, 2.4999, 4, 12.5, 6]], np.float32)
    Case("max_roi_pool", "MaxRoiPool", {"x": x, "rois": rois}, pooled_shape=[3, 4])
    Case("max_roi_pool_scale", "MaxRoiPool", {"x": x, "rois": rois * np.array([1] + 4 * [3], np.float32)},
         pooled_shape=[7, 7], spatial_scale=1 / 3)
    # Bins whose length no float holds, at whose ends it is rounded.
    many = np.zeros((400, 5), np.float32)
    many[:, 1:] = n.f(400, 4) * 60
    Case("max_roi_pool_many", "MaxRoiPool", {"x": n.f(1, 1, 97, 101), "rois": many}, pooled_shape=[11, 13])


def words():
    """Every letter that has two cases."""
    letters = [c for c in map(chr, range(0x110000)) if c.isprintable() and (c.lower() != c or c.upper() != c)]
    each = ["".join(letters[i:i + 64]) for i in range(0, len(letters), 64)] + ["und", "UND"]
    for action in ("LOWER", "UPPER"):
        Case(f"normalize_{action.lower()}", "StringNormalizer", {"x": np.array(each, object)}, case_change_action=action,
             locale="C.utf8", stopwords=["UND"], is_case_sensitive=1)
    fruit = np.array(["\u00c4PFEL", "\u00e4pfel", "Birnen", "stra\u00dfe", "STRASSE"], object)
    Case("normalize_stopwords", "StringNormalizer", {"x": fruit}, locale="C.utf8",
         stopwords=["\u00c4pfel", "Stra\u00dfe"])


def scans():
    """Scan of opset 8, which has lengths of sequences."""
    n = Numbers("scans")
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["sum"]), helper.make_node("Mul", ["sum", "z"], ["y"]),
         helper.make_node("Neg", ["z"], ["w"])],
        "body", [info("s"), info("x"), info("z")], [info("sum"), info("y"), info("w")])
    inputs = {"l": np.array([5, 2, 1], np.int64), "s": n.f(3, 2), "x": n.f(3, 5, 2), "z": n.f(3, 5, 2)}
    for name, directions in (("", [0, 0]), ("_back", [1, 0])):
        Case(f"scan_lengths{name}", "Scan", inputs, 3, opset=8, body=body, num_scan_inputs=2, directions=directions)


def dropped(x, ratio, seed):
    """What the reference gives where the ratio is stated, which it needs."""
    return [np.where(np.random.RandomState(seed).uniform(0, 1, x.shape) >= ratio, x / (1 - ratio), 0).astype(x.dtype)]


def optimised_encoders(work):
    """What ONNX Runtime's optimiser makes of the encoder, in fp32 and with weights of 8 bits."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    feeds = encoder(work / "encoder.onnx", Numbers("ids").ids(30, 2, 6, dtype=np.int64))
    quantize_dynamic(work / "encoder.onnx", work / "encoder_int8.onnx", weight_type=QuantType.QInt8)
    for name in ("encoder", "encoder_int8"):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(work / f"{name}_optimised.onnx")
        session = onnxruntime.InferenceSession(work / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
        folder = OUT / f"ms_{name}"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "test_data_set_0").mkdir(parents=True)
        shutil.copy(options.optimized_model_filepath, folder / "model.onnx")
        for kind, arrays in (("input", feeds.values()), ("output", session.run(None, feeds))):
            for i, array in enumerate(arrays):
                data = numpy_helper.from_array(array).SerializeToString()
                (folder / "test_data_set_0" / f"{kind}_{i}.pb").write_bytes(data)


def record(names):
    for chosen in names or CASES:
        try:
            CASES[chosen].record()
        except Exception as error:  # said by name, so that the others are still written
            print(chosen, str(error)[:300])


if __name__ == "__main__":
    for each in (activations, norms, attention, products, quantised, integers, features, trees, few_bits, seeds,
                 regions, words, scans):
        each()
    record(sys.argv[1:])
    if not sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            optimised_encoders(pathlib.Path(folder))
