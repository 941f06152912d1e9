#!/usr/bin/env python3
"""Writes recorded/NAME for what else ONNX Runtime's CPU provider runs, as make_recorded.py does for the rest: ops that ONNX
took back, and those of com.microsoft that few models contain.

    v/bin/python tests/conformance/recorded_runtime.py [NAME..]"""

import sys

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

import make_recorded
from make_recorded import ML, MS, Case, Numbers, f32

F16 = np.float16


def taken_back():
    n = Numbers("taken_back")
    x, image = n.f(3, 5), n.f(2, 3, 6, 7)
    old = dict(opset=7)
    Case("old_affine", "Affine", {"x": x}, alpha=1.5, beta=-0.25, **old)
    Case("old_scaled_tanh", "ScaledTanh", {"x": x}, alpha=1.5, beta=0.5, **old)
    Case("old_parametric_softplus", "ParametricSoftplus", {"x": 10 * x}, alpha=1.5, beta=0.5, **old)
    Case("old_scale", "Scale", {"x": x}, scale=0.3, **old)
    Case("old_image_scaler", "ImageScaler", {"x": image}, scale=0.3, bias=[0.5, -0.5, 0.25], **old)
    Case("old_crop", "Crop", {"x": image}, border=[1, 2, 3, 0], **old)
    Case("old_crop_size", "Crop", {"x": image}, border=[1, 2, 0, 0], scale=[3, 5], **old)
    bounds = {"starts": np.array([1, -4]), "ends": np.array([6, -1])}
    Case("old_dynamic_slice", "DynamicSlice", {"x": image, **bounds, "axes": np.array([2, 3])}, **old)
    Case("old_dynamic_slice_first", "DynamicSlice", {"x": n.f(7, 5), **bounds}, **old)


def categories():
    words = dict(cats_strings=["a", "b", "c", "b"], cats_int64s=[5, 6, 7, 8])
    numbers = dict(cats_strings=["a", "b", "c"], cats_int64s=[5, 6, 5])
    Case("ml_category_numbers", "CategoryMapper", {"x": np.array([["a", "b"], ["z", "c"]], object)}, domain=ML,
         default_int64=-7, **words)
    Case("ml_category_words", "CategoryMapper", {"x": np.array([[5, 6], [9, 6]])}, domain=ML, default_string="none",
         **numbers)


def streams():
    n = Numbers("streams")
    x, flat = n.f(2, 3, 4, 8), n.f(2, 3, 32)
    cast = lambda a, dtype: a.astype(dtype)
    norm = lambda name, *args, **attrs: Case("ms_branch_norm" + name, "BranchwiseRMSNorm", *args, domain=MS, **attrs)
    norm("", {"x": x})
    norm("_row", {"x": x, "scale": n.f(8)}, epsilon=1e-3)
    norm("_each", {"x": x, "scale": n.f(4, 8)})
    norm("_flat", {"x": flat, "scale": n.f(32)}, num_branches=4)
    norm("_f16", {"x": cast(flat, F16), "scale": n.f(8)}, num_branches=4)
    before = lambda name, *args, **attrs: Case("ms_pre_mix" + name, "HyperConnectionPreMix", *args, domain=MS, **attrs)
    before("", {"x": x, "gates": n.f(2, 3, 4)})
    before("_one", {"x": x, "gates": n.f(2, 3, 4, 1)}, reduction_scale=0.25)
    before("_each", {"x": x, "gates": n.f(2, 3, 4, 8)})
    before("_flat", {"x": flat, "gates": n.f(2, 3, 4)}, num_branches=4)
    before("_flat_each", {"x": flat, "gates": n.f(2, 3, 32)}, num_branches=4)
    before("_flat_apart", {"x": flat, "gates": n.f(2, 3, 4, 8)}, num_branches=4)
    before("_f16", {"x": cast(x, F16), "gates": n.f(2, 3, 4)})
    after = lambda name, *args, **attrs: Case("ms_post_mix" + name, "HyperConnectionPostMix", *args, domain=MS, **attrs)
    block, mix = n.f(2, 3, 8), n.f(2, 3, 4, 4)
    after("", {"x": x, "block": block, "gates": n.f(2, 3, 4)})
    after("_matrix", {"x": x, "block": block, "gates": n.f(2, 3, 4, 1), "mix": mix})
    after("_each", {"x": x, "block": block, "gates": n.f(2, 3, 4, 8), "mix": mix})
    after("_flat", {"x": flat, "block": block, "gates": n.f(2, 3, 4), "mix": mix}, num_branches=4)
    after("_f16", {"x": cast(x, F16), "block": cast(block, F16), "gates": n.f(2, 3, 4), "mix": mix})


def gates():
    n = Numbers("gates")
    feeds = {"key": n.f(2, 3, 4, 8), "query": n.f(2, 3, 4, 8), "value": n.f(2, 3, 8), "key_scale": n.f(4, 8),
             "query_scale": n.f(4, 8)}
    Case("ms_engram_gate", "EngramGate", feeds, domain=MS)
    Case("ms_engram_gate_normed", "EngramGate", {**feeds, "conv_scale": n.f(4, 8)}, 2, domain=MS, epsilon=1e-3)
    Case("ms_engram_gate_f16", "EngramGate", {k: v.astype(F16) for k, v in feeds.items()}, domain=MS)
    feeds = {"a": n.f(2, 3, 4), "bias": n.f(4), "scale": -np.abs(n.f(4)), "b": n.f(2, 3, 4)}
    Case("ms_linear_gate", "LinearAttentionGate", feeds, 2, domain=MS)
    Case("ms_linear_gate_alone", "LinearAttentionGate", {k: feeds[k] for k in ("a", "bias", "scale")}, domain=MS)
    Case("ms_linear_gate_f16", "LinearAttentionGate",
         {k: v.astype(F16) if k in "ab" else v for k, v in feeds.items()}, 2, domain=MS)


def grams(name, op="NGramHashMapping", dtype=np.int64, most=3, heads=2, outputs=2, batch=2, length=5, offsets=False,
          past=False, eos=None, segments=False, lengths=None, **attrs):
    n = Numbers(name)
    ids = (lambda *shape: n.ids(9, *shape, dtype=dtype))
    count = (most - 1) * heads
    feeds = {"ids": ids(sum(lengths)) if lengths else ids(batch, length),
             "factors": n.ids(1 << 30, most, dtype=dtype) * 2 + 1,
             "sizes": np.array([11, 13, 17, 19, 23, 29][:count], dtype)}
    if lengths:
        feeds["bounds"] = np.cumsum([0, *lengths]).astype(np.int32)
        batch = len(lengths)
    feeds |= {"past": ids(batch, most - 1) if past else None,
              "offsets": np.arange(count).astype(dtype) * 100 if offsets else None,
              "eos": np.array(eos, dtype) if eos is not None else None,
              "segments": np.sort(n.ids(3, batch, length), axis=1) if segments else None}
    while list(feeds.values())[-1] is None:
        feeds.popitem()
    Case("ms_ngram_" + name, op, feeds, outputs, domain=MS, max_ngram_size=most, n_head_per_ngram=heads, pad_id=7,
         **attrs)


def tokens():
    grams("plain", outputs=1)
    grams("i32", dtype=np.int32)
    grams("past", past=True, most=4)
    grams("offsets", past=True, offsets=True)
    grams("eos_fills", eos=3)
    grams("eos", eos=3, past=True, reset_on_eos=1, length=12)
    grams("segments", segments=True, length=9)
    grams("segments_eos", segments=True, eos=3, past=True, reset_on_eos=1, length=9, offsets=True)
    grams("one", length=1, past=True, most=4)
    varlen = dict(op="VarlenNGramHashMapping", lengths=[3, 1, 6])
    grams("packed", outputs=1, **varlen)
    grams("packed_past", past=True, most=4, **varlen)
    grams("packed_eos", past=True, eos=3, reset_on_eos=1, offsets=True, dtype=np.int32, **varlen)
    follow = lambda name, source, now, matched, said=None, **attrs: Case(
        "ms_bifurcation" + name, "BifurcationDetector",
        {"source": np.array(source), "now": np.array(now), "matched": np.array([matched]),
         **({} if said is None else {"said": np.array(said)})}, 2, domain=MS, **attrs)
    source = [1, 5, 3, 4, 2, 5, 3, 9]
    follow("", source, [2], 0, [1, 5, 3, 9, 2, 5, 6, 7, 8])
    follow("_all", source, [2, 3], 5, [5, 3, 9, 1])
    follow("_end", source, [2, 3], 8, [4])
    follow("_none", source, [2], 3)
    follow("_twice", source, [7, 5, 3], 3)
    follow("_short", [4], [4], 0)
    follow("_long", source, [7, 4, 2, 5], 3, min_ngram_size=2, max_ngram_size=5)


class SparseCase(Case):
    """With the stored inputs sparse."""

    def model(self, types):
        model, feeds, shown = super().model(types)
        for stored in model.graph.initializer:
            dense = numpy_helper.to_array(stored)
            places = np.flatnonzero(dense)
            values = numpy_helper.from_array(dense.ravel()[places], stored.name)
            model.graph.sparse_initializer.append(
                helper.make_sparse_tensor(values, numpy_helper.from_array(places, stored.name + "_places"), dense.shape))
        del model.graph.initializer[:]
        return model, feeds, shown


def arrays():
    n = Numbers("arrays")
    Case("ms_unfold", "UnfoldTensor", {"x": n.f(2, 7)}, domain=MS, size=3)
    Case("ms_unfold_axis", "UnfoldTensor", {"x": n.ids(99, 2, 9, 3)}, domain=MS, size=4, step=2, dim=1)
    Case("ms_unique", "Unique", {"x": f32(2, 1, 1, 3, 4, 3)}, 3, domain=MS)
    image = n.f(2, 3, 6, 7)
    boxes = f32(0, 0, 1, 1, 0.1, 0.2, 0.72, 0.9, 0.9, 0.8, 0.2, 0.1, -0.2, 0, 1.3, 1).reshape(4, 4)
    at = {"x": image, "boxes": boxes, "image": np.array([0, 1, 1, 0], np.int32)}
    size = lambda *hw: {"size": np.array(hw, np.int32)}
    Case("ms_crop_resize", "CropAndResize", {**at, **size(4, 5)}, domain=MS, extrapolation_value=0.5, fixed=["size"])
    Case("ms_crop_resize_nearest", "CropAndResize", {**at, **size(3, 3)}, domain=MS, mode="nearest", fixed=["size"])
    Case("ms_crop_resize_one", "CropAndResize", {**at, **size(1, 1)}, domain=MS)
    words = np.zeros((5, 8), np.int32)
    for row, letters in enumerate([(3, 1, 4, 1, 5, 2), (2,), (6, 5, 3), (1, 2, 3, 4, 5, 6, 7, 8), (2, 0, 7)]):
        words[row, :len(letters)] = letters
    feeds = {"words": words, "filter": n.f(6, 1, 3, 4), "bias": n.f(6), "letters": n.f(9, 4)}
    Case("ms_word_conv", "WordConvEmbedding", feeds, domain=MS, embedding_size=6, conv_window_size=3, char_embedding_size=4)
    hashed = lambda name, x, **attrs: Case("ms_murmur3" + name, "MurmurHash3", {"x": x}, domain=MS, **attrs)
    hashed("_words", np.array([["", "a", "ab"], ["abc", "abcd", "a longer text"]], object))
    hashed("_i32", n.ids(1 << 30, 7), positive=0)
    hashed("_f64", n.f(5).astype(np.float64), seed=42)
    hashed("_u64", n.ids(1 << 60, 5, dtype=np.uint64), positive=0, seed=7)
    Case("ms_warp", "DynamicTimeWarping", {"x": np.abs(n.f(5, 9))}, domain=MS)
    Case("ms_warp_batch", "DynamicTimeWarping", {"x": n.ids(3, 1, 12, 7).astype(np.float32)}, domain=MS)
    Case("ms_sample", "SampleOp", {"x": n.f(3)}, domain=MS)
    a, dense = f32(0, 2, 0, 1, 0, 0, 0, 0, 3, 0, -1, 0).reshape(3, 4), n.f(5, 4)
    SparseCase("ms_sparse_product", "SparseToDenseMatMul", {"a": a, "b": dense}, domain=MS, fixed=["a"], transB=1, alpha=2.0,
               answers=[(2 * a @ dense.T).astype(np.float32)])
    feeds = {"x": n.f(1, 2, 4, 5), "w": n.f(2, 3, 3, 3), "pads": np.array([1, 0, 1, 2])}
    Case("ms_transposed_pads", "ConvTransposeWithDynamicPads", {**feeds, "bias": n.f(3)}, domain=MS, fixed=["pads"],
         strides=[2, 2])


def rotary(name, rows=3, heads=2, size=16, layout=0, sections=(4, 2, 2), rank=3, turned=0, dtype=np.float32, **attrs):
    n = Numbers(name)
    half = sum(sections)
    shape = (2, rows, heads * size) if rank == 3 else (2, heads, rows, size)
    angles = np.arange(32)[:, None] * 10.0 ** (-np.arange(half) / half)[None]
    feeds = {"x": n.f(*shape), "places": n.ids(32, 3, 2, rows, dtype=np.int64), "cos": np.cos(angles), "sin": np.sin(angles)}
    feeds = {k: v if k == "places" else v.astype(dtype) for k, v in feeds.items()}
    if turned:
        attrs["rotary_embedding_dim"] = turned
    if turned or rank == 3:
        attrs["num_heads"] = heads
    Case("ms_mrope_" + name, "MRotaryEmbedding", feeds, domain=MS, mrope_section=list(sections), mrope_layout=layout, **attrs)


def rotations():
    rotary("sections")
    rotary("in_turn", layout=1, sections=(4, 2, 2))
    rotary("in_turn_uneven", layout=1, sections=(5, 2, 1), rank=4)
    rotary("pairs", interleaved=1)
    rotary("part", sections=(2, 1, 1), turned=8)
    rotary("f16", dtype=F16)


def sparse(name, heads=4, shared=2, size=16, rows=1, pasts=(20, 37), buffer=64, packed=False, block=16, dtype=np.float32,
           rotated=False, **attrs):
    n = Numbers(name)
    batch = len(pasts)
    cast = lambda a: a.astype(dtype)
    layouts = np.array([[[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]],
                        [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]])
    ends = np.concatenate([np.zeros((2, 1)), layouts.sum(-1).cumsum(-1)], 1).astype(np.int32)
    columns = np.full((2, ends[:, -1].max()), -1, np.int32)
    for i, layout in enumerate(layouts):
        columns[i, :ends[i, -1]] = np.nonzero(layout)[1]
    q, k, v = (cast(n.f(batch, rows, h * size)) for h in (heads, shared, shared))
    past = [np.zeros((batch, shared, buffer, size), dtype) for _ in range(2)]
    for array in past:
        for i, length in enumerate(pasts):
            array[i, :, :length] = cast(n.f(shared, length, size))
    feeds = {"q": np.concatenate([q, k, v], -1) if packed else q, "k": None if packed else k, "v": None if packed else v,
             "pk": past[0], "pv": past[1], "rows": ends, "columns": columns,
             "total": np.array(max(pasts) + rows, np.int32), "lengths": np.array([p + rows for p in pasts], np.int32)}
    if rotated:
        angles = np.arange(64)[:, None] * 10.0 ** (-np.arange(size // 2) / (size // 2))[None]
        feeds |= {"cos": cast(np.cos(angles)), "sin": cast(np.sin(angles))}
        attrs["do_rotary"] = 1
    case = Case("ms_sparse_attention_" + name, "SparseAttention", feeds, 3, domain=MS, fixed=["rows", "columns"],
                num_heads=heads, kv_num_heads=shared, sparse_block_size=block, **attrs)
    case.answers = in_place(case) if len(set(pasts)) == 1 else by_hand(case, layouts, heads // shared, block)


def by_hand(case, layouts, share, block):
    """A step of samples of different lengths, which ONNX Runtime mixes up: its rows of scores overlap."""
    feeds, answers = case.inputs, []
    keys, values = feeds["pk"].copy(), feeds["pv"].copy()
    for i, length in enumerate(feeds["lengths"]):
        for past, new in ((keys, "k"), (values, "v")):
            past[i, :, length - 1] = feeds[new][i].reshape(past.shape[1], -1)
        for head, query in enumerate(feeds["q"][i].reshape(-1, keys.shape[-1])):
            layout = layouts[head % len(layouts)][(length - 1) // block]
            scores = keys[i, head // share, :length] @ query / np.sqrt(len(query))
            scores[np.repeat(layout, block)[:length] == 0] = -np.inf
            weights = np.exp(scores - scores.max())
            answers.append(weights / weights.sum() @ values[i, head // share, :length])
    shape = feeds["q"].shape
    return [np.array(answers, np.float32).reshape(shape), keys, values]


def in_place(case):
    """What ONNX Runtime answers where it writes the present keys and values over the past ones, as it demands."""
    model, feeds, shown = case.model(None)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    arrays = {name: array.copy() for name, array in feeds.items()}  # which the values below refer to
    held = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
    for name, value in held.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output(shown[0])
    for name, past in zip(shown[1:], ("pk", "pv")):
        binding.bind_ortvalue_output(name, held[past])
    session.run_with_iobinding(binding)
    return [binding.copy_outputs_to_cpu()[0], arrays["pk"], arrays["pv"]]


def sparsely():
    sparse("prompt", rows=40, pasts=(0, 0))
    sparse("step", pasts=(37, 37))
    sparse("lengths")
    sparse("packed", pasts=(40, 40), packed=True, rotated=True)
    sparse("rotated", rows=33, pasts=(0,), rotated=True, scale=0.2)


def tables():
    n = Numbers("tables")
    def product(name, depth, columns, block, kind, **attrs):
        count = depth * columns
        a = n.f(2, 3, columns if attrs.get("transB") == 0 else depth)
        feeds = {"a": a, "b": n.u8((count + 1) // 2), "most": np.abs(n.f(-(-count // block)))}
        if attrs.get("transB") == 0:  # which ONNX Runtime's CPU provider does not read
            quantiles = 2 * (np.arange(16) == 15) - 1.0
            feeds["b"] = (feeds["b"] & 1) * 15 + (feeds["b"] & 16) // 16 * 240  # of NF4 -1 and 1 alone
            places = np.stack([feeds["b"] >> 4, feeds["b"] & 15], 1).reshape(-1, block)
            weights = (quantiles[places] * feeds["most"][:, None]).reshape(columns, depth)
            attrs |= dict(answers=[(a @ weights).astype(np.float32)])
        Case("ms_bnb4_" + name, "MatMulBnb4", feeds, domain=MS, fixed=["b", "most"], K=depth, N=columns, block_size=block,
             quant_type=kind, **attrs)
    product("nf4", 32, 5, 16, 1)
    product("fp4", 48, 3, 64, 0)
    product("rest", 20, 3, 16, 1)
    product("straight", 32, 4, 32, 1, transB=0)


if __name__ == "__main__":
    for each in (taken_back, categories, streams, gates, tokens, arrays, rotations, sparsely, tables):
        each()
    make_recorded.record(sys.argv[1:])
