#!/usr/bin/env python3
"""Writes recorded/NAME for com.microsoft's ops of exported language models, as make_recorded.py does for the rest.

    v/bin/python tests/conformance/recorded_language.py [NAME..]"""

import sys

import ml_dtypes
import numpy as np
import onnxruntime

import make_recorded
from make_recorded import MS, Case, Numbers, f32


class Cache:
    """Inputs of GroupQueryAttention for samples with `pasts` keys before `rows` new ones."""

    def __init__(self, name, heads=4, shared=2, size=16, pasts=(0, 0), rows=3, buffer=0, packed=False, dtype=np.float32,
                 lengths=None, prompt=None, window=0):
        n = Numbers(name)
        batch = len(pasts)
        prompt = max(pasts) == 0 if prompt is None else prompt
        total = rows if prompt else max(pasts) + rows
        cast = lambda x: x.astype(dtype)
        q, k, v = (cast(n.f(batch, rows, h * size)) for h in (heads, shared, shared))
        past = [np.zeros((batch, shared, buffer, size), dtype) for _ in range(2)]
        for array in past:
            for i, length in enumerate(self.held(p, buffer, window) if window else p for p in pasts):
                array[i, :, :length] = cast(n.f(shared, length, size))
        lengths = lengths or [p + rows for p in pasts]
        self.feeds = {"q": np.concatenate([q, k, v], -1) if packed else q, "k": None if packed else k,
                      "v": None if packed else v, "pk": past[0] if buffer else None, "pv": past[1] if buffer else None,
                      "lengths": np.array(lengths, np.int32) - 1, "total": np.array(total, np.int32)}
        self.attrs = dict(num_heads=heads, kv_num_heads=shared)
        self.numbers, self.total, self.batch, self.rows, self.size, self.dtype = n, total, batch, rows, size, dtype

    @staticmethod
    def held(length, rows, window):
        """How many keys a cache of the last ones alone holds."""
        step = rows - window + 1
        return length - step * -(-max(length - rows, 0) // step)

    def waves(self, turned=None):
        half = (turned or self.size) // 2
        angles = np.arange(32)[:, None] * 10.0 ** (-np.arange(half) / half)[None]
        self.feeds |= {"cos": np.cos(angles).astype(self.dtype), "sin": np.sin(angles).astype(self.dtype)}
        self.attrs["do_rotary"] = 1
        return self

    def quantised(self, bits, kind):
        """The cache of integers, which stand in pairs in bytes if they have 4 bits."""
        n, most = self.numbers, 2 ** (bits - 1)
        for key in ("pk", "pv"):
            if self.feeds[key] is not None:
                past = n.rng.integers(-most, most, self.feeds[key].shape)
                pairs = (past[..., ::2] + 8 | past[..., 1::2] + 8 << 4).astype(np.uint8)
                filled = self.feeds[key].any(-1, keepdims=True)
                self.feeds[key] = filled * (past.astype(np.int8) if bits == 8 else pairs)
        shape = (1, self.attrs["kv_num_heads"], 1, self.size) if kind == "PER_CHANNEL" else (1,)
        self.attrs |= dict(k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits)
        scale = lambda: (np.abs(n.f(*shape)) + 0.5).astype(np.float32) * 2 / most
        return self.more(k_scale=scale(), v_scale=scale())

    def more(self, **inputs):
        for name in ("cos", "sin", "places", "bias", "sink", "k_scale", "v_scale", "q_norm", "k_norm"):
            if name in inputs:
                self.feeds[name] = inputs[name]
            else:
                self.feeds.setdefault(name, None)
        return self

    def case(self, name, fixed=(), shown=3, **attrs):
        while self.feeds and list(self.feeds.values())[-1] is None:
            self.feeds.pop(list(self.feeds)[-1])
        Case(name, "GroupQueryAttention", self.feeds, 3, domain=MS, fixed=fixed, shown=shown, **self.attrs, **attrs)


def grouped():
    Cache("gqa1").case("ms_gqa_prompt")
    Cache("gqa2", buffer=0).case("ms_gqa_prompt_scale", scale=0.3)
    Cache("gqa3", packed=True).waves().case("ms_gqa_packed_rotary")
    Cache("gqa4", packed=True).waves().case("ms_gqa_packed_rotary_interleaved", rotary_interleaved=1)
    Cache("gqa5", size=32, rows=2).waves(16).case("ms_gqa_rotary_part")
    Cache("gqa6", pasts=(4, 4), rows=1, buffer=4).waves().case("ms_gqa_next")
    Cache("gqa7", pasts=(4, 2), rows=1, buffer=4).waves().case("ms_gqa_next_lengths")
    Cache("gqa8", pasts=(4, 4), rows=1, buffer=9, packed=True).waves().case("ms_gqa_shared_buffer")
    Cache("gqa9", pasts=(5,), rows=3, buffer=8).waves().case("ms_gqa_several_next")
    Cache("gqa10", pasts=(0, 0), rows=4, buffer=10).waves().case("ms_gqa_prompt_buffer")
    Cache("gqa11", pasts=(6,), rows=2, buffer=6).waves().case("ms_gqa_window", local_window_size=3)
    Cache("gqa12", rows=5).waves().case("ms_gqa_window_prompt", local_window_size=2)
    Cache("gqa13", pasts=(4,), rows=2, buffer=4).case("ms_gqa_softcap", softcap=1.5)
    Cache("gqa14", pasts=(4,), rows=2, buffer=4).case("ms_gqa_smooth", smooth_softmax=1)
    c = Cache("gqa15", pasts=(4,), rows=2, buffer=4)
    c.more(sink=c.numbers.f(4)).case("ms_gqa_sink")
    c = Cache("gqa16", pasts=(3,), rows=2, buffer=3)
    c.more(bias=c.numbers.f(1, 4, 2, 5)).case("ms_gqa_bias")
    c = Cache("gqa17", pasts=(3,), rows=2, buffer=3).waves()
    c.more(places=np.array([[7, 2]], np.int64)).case("ms_gqa_places")
    Cache("gqa18", pasts=(4,), rows=2, buffer=4, dtype=np.float16).waves().case("ms_gqa_f16")
    Cache("gqa19", heads=2, shared=2, rows=3, lengths=[3, 2]).waves().case("ms_gqa_prompt_lengths")
    Cache("gqa21", rows=4).case("ms_gqa_not_causal", causal=0)
    c = Cache("gqa22", pasts=(4,), rows=2, buffer=4)
    c.feeds["total"] = np.array(6, np.int32)
    c.case("ms_gqa_fixed_total", fixed=["total"])
    for i, (bits, kind) in enumerate([(8, "PER_TENSOR"), (8, "PER_CHANNEL"), (4, "PER_TENSOR"), (4, "PER_CHANNEL")]):
        c = Cache(f"gqa{23 + i}", pasts=(4, 2), rows=1, buffer=6).waves().quantised(bits, kind)
        c.case(f"ms_gqa_quantised_{bits}_{kind[4:].lower()}")
    Cache("gqa27", rows=5, buffer=7).waves().quantised(8, "PER_CHANNEL").case("ms_gqa_quantised_prompt")
    normed()
    windowed()


def normed():
    """Queries and keys normed by the op, which ONNX Runtime's CPU provider lacks: it gets them normed."""
    given, plain = (Cache("gqa29", pasts=(4,), rows=2, buffer=4).waves() for _ in range(2))
    n, size = given.numbers, given.size
    weights = {"q": n.f(size), "k": n.f(size)}
    given.more(q_norm=weights["q"], k_norm=weights["k"])
    for key, weight in weights.items():
        heads = plain.feeds[key].reshape(1, 2, -1, size)
        heads = heads / np.sqrt(np.square(heads).mean(-1, keepdims=True) + 1e-3) * weight
        plain.feeds[key] = heads.reshape(plain.feeds[key].shape)
    case = Case("ms_gqa_norms_before", "GroupQueryAttention", plain.feeds, 3, domain=MS, **plain.attrs)
    session = onnxruntime.InferenceSession(case.model(None)[0].SerializeToString(), providers=["CPUExecutionProvider"])
    given.case("ms_gqa_norms", answers=session.run(None, plain.feeds), qk_norm_epsilon=1e-3)


def windowed():
    """Caches of the last keys alone. What stands behind these is left open, so only full ones are compared."""
    def case(name, pasts, rows, buffer, window, bias=False, **attrs):
        c = Cache(name, pasts=pasts, rows=rows, buffer=buffer, window=window).waves()
        if bias:
            c.more(bias=c.numbers.f(1, 4, rows, c.total))
        full = all(c.held(p + rows, buffer, window) == buffer for p in pasts)
        c.case("ms_gqa_cache_" + name, shown=3 if full else 1, local_window_size=window, sliding_window_cache=1, **attrs)

    case("prompt", (0,), 4, 4, 4)
    case("long_prompt", (0, 0), 9, 4, 4)
    case("long_prompt_slack", (0,), 10, 6, 3)
    case("filling", (2, 3), 1, 6, 3)
    case("full", (6, 6), 1, 4, 4)
    case("full_slack", (9, 13), 1, 6, 3)
    case("evicting", (6, 10), 1, 6, 3)
    case("several", (7,), 3, 6, 4)
    case("more_than_rows", (5,), 9, 5, 2)
    case("bias", (9,), 2, 6, 3, bias=True)
    case("sink", (7,), 1, 5, 5, smooth_softmax=1)
    c = Cache("cache of bytes", pasts=(9,), rows=1, buffer=6, window=3).waves().quantised(8, "PER_CHANNEL")
    c.case("ms_gqa_cache_of_bytes", shown=1, local_window_size=3, sliding_window_cache=1)


def packed_weights(n, rows, depth, block, bits, zeros=None, dtype=np.float32):
    """Weights of MatMulNBits for a product [depth, rows]."""
    blocks = -(-depth // block)
    feeds = {"w": n.u8(rows, blocks, block * bits // 8), "s": (np.abs(n.f(rows, blocks)) / 8 + 0.01).astype(dtype)}
    if zeros == "packed":
        feeds["z"] = n.u8(rows, -(-blocks * bits // 8))
    elif zeros == "float":
        feeds["z"] = (n.f(rows, blocks) + 2 ** (bits - 1)).astype(dtype)
    return feeds


def products():
    n = Numbers("products of packed weights")

    def case(name, bits, block, depth=40, rows=6, zeros=None, dtype=np.float32, lead=(2, 3), bias=False, **attrs):
        feeds = {"x": n.f(*lead, depth).astype(dtype), **packed_weights(n, rows, depth, block, bits, zeros, dtype)}
        if bias:
            feeds = {**feeds, "z": feeds.get("z"), "g": None, "bias": n.f(rows).astype(dtype)}
        Case(name, "MatMulNBits", feeds, domain=MS, fixed=[k for k in feeds if k != "x"], K=depth, N=rows, bits=bits,
             block_size=block, **attrs)

    case("ms_nbits_4", 4, 16)
    case("ms_nbits_4_32", 4, 32, depth=64)
    case("ms_nbits_4_zeros", 4, 16, zeros="packed")
    case("ms_nbits_4_float_zeros", 4, 16, zeros="float")
    case("ms_nbits_4_bias", 4, 32, zeros="packed", bias=True)
    case("ms_nbits_4_256", 4, 256, depth=300, rows=3)
    case("ms_nbits_8", 8, 16)
    case("ms_nbits_8_zeros", 8, 32, zeros="packed")
    case("ms_nbits_2", 2, 16, depth=48)
    case("ms_nbits_2_zeros", 2, 16, zeros="packed")
    case("ms_nbits_4_f16", 4, 32, depth=64, dtype=np.float16)
    case("ms_nbits_4_row", 4, 32, depth=64, rows=16, lead=(1,))
    rows = {"data": n.u8(7, 32), "at": np.array([[1, 6], [0, 3]], np.int64), "scale": np.abs(n.f(7, 4)) / 8}
    for name, more, attrs in (
            ("ms_gather_blocks_4", {}, dict(bits=4, block_size=16)),
            ("ms_gather_blocks_4_zeros", {"zeros": n.u8(7, 2)}, dict(bits=4, block_size=16)),
            ("ms_gather_blocks_8", {"scale": np.abs(n.f(7, 2)) / 8}, dict(bits=8, block_size=16)),
            ("ms_gather_blocks_8_zeros", {"scale": np.abs(n.f(7, 2)) / 8, "zeros": n.u8(7, 2)},
             dict(bits=8, block_size=16))):
        feeds = {**rows, **more}
        Case(name, "GatherBlockQuantized", feeds, domain=MS, fixed=[k for k in feeds if k != "at"], quantize_axis=1,
             **attrs)
    for name, type_name, zeros in (("int4", ml_dtypes.int4, False), ("uint4", ml_dtypes.uint4, False),
                                   ("int4_zeros", ml_dtypes.int4, True), ("uint4_zeros", ml_dtypes.uint4, True)):
        low = -8 if type_name is ml_dtypes.int4 else 0
        cast = lambda *shape: (n.ids(16, *shape) + low).astype(type_name)
        feeds = {"data": cast(7, 48), "at": rows["at"], "scale": np.abs(n.f(7, 3)) / 8, **({"zeros": cast(7, 3)} if zeros else {})}
        Case(f"ms_gather_blocks_{name}", "GatherBlockQuantized", feeds, domain=MS, quantize_axis=1, block_size=16,
             fixed=[k for k in feeds if k != "at"])
    order = n.rng.permutation(64).astype(np.int64)
    for name, zeros in (("4", True), ("4_plain", False)):
        packed = {"x": n.f(3, 64), "w": n.u8(5, 2, 16), "scale": n.f(5 * 2) / 9,
                  "zeros": n.u8(5) if zeros else None, "groups": (order // 32).astype(np.int32)}
        # ONNX Runtime's CPU provider leaves zero points out beside groups, against the op's definition.
        q, z = (np.stack([a & 15, a >> 4], -1).reshape(5, -1).astype(np.float32) for a in (packed["w"], packed["zeros"]
                                                                                         if zeros else n.u8(5)))
        matrix = (q - z[:, packed["groups"]]) * packed["scale"].reshape(5, 2)[:, packed["groups"]]
        Case(f"ms_nbits_groups_{name}", "MatMulNBits", packed, domain=MS, K=64, N=5, bits=4, block_size=32,
             fixed=["w", "scale", "zeros", "groups"], answers=[(packed["x"] @ matrix.T).astype(np.float32)] if zeros else None)


def decoder_steps():
    n = Numbers("decoder steps")
    q, k, v = n.f(2, 1, 8), n.f(2, 1, 8), n.f(2, 1, 8)
    past = {"past_k": n.f(2, 2, 6, 4), "past_v": n.f(2, 2, 6, 4), "past_length": np.array([3], np.int32)}
    op = "DecoderMaskedMultiHeadAttention"
    Case("ms_decoder_step", op, {"q": q, "k": k, "v": v, "mask": None, "more": None, **past}, 3, domain=MS, num_heads=2,
         past_present_share_buffer=1)
    Case("ms_decoder_step_mask", op, {"q": q, "k": k, "v": v, "mask": np.array([[0, 1, 1, 1], [1, 1, 1, 1]], np.int32), "more": None,
                                      **past, "beams": None, "which": None, "bias": n.f(24)}, 3, domain=MS, num_heads=2,
         past_present_share_buffer=1, scale=0.3)
    Case("ms_decoder_step_cross", op, {"q": q, "k": n.f(2, 2, 5, 4), "v": n.f(2, 2, 5, 4)}, domain=MS, num_heads=2)


def recurrences():
    n = Numbers("recurrences")
    q, k, v, state = n.f(2, 5, 8), n.f(2, 5, 8) / 2, n.f(2, 5, 6), n.f(2, 2, 4, 3)
    decay, beta = -np.abs(n.f(2, 5, 2)), np.abs(n.f(2, 5, 2)) / 4
    for rule, more in (("linear", {}), ("gated", {"decay": decay}), ("delta", {"decay": None, "beta": beta}),
                       ("gated_delta", {"decay": decay, "beta": beta})):
        Case(f"ms_linear_attention_{rule}", "LinearAttention", {"q": q, "k": k, "v": v, "state": state, **more}, 2, domain=MS,
             q_num_heads=2, kv_num_heads=2, update_rule=rule)
    Case("ms_causal_conv", "CausalConvWithState", {"x": n.f(2, 4, 7), "w": n.f(4, 1, 3), "b": n.f(4), "state": n.f(2, 4, 2)}, 2,
         domain=MS, activation="silu")
    windows(Numbers("windows"))
    Case("ms_scaled_silu", "ScaledSiLU", {"x": n.f(3, 5)}, domain=MS, alpha=1.5)
    Case("ms_scaled_silu_given", "ScaledSiLU", {"x": n.f(3, 5), "scale": f32(0.7)}, domain=MS)
    Case("ms_gated_add", "GatedAdd", {"x": n.f(3, 5), "y": n.f(3, 5), "gate": n.f(3, 1)}, domain=MS)
    for kind in ("silu", "sigmoid"):
        Case(f"ms_gated_rms_norm_{kind}", "GatedRMSNorm", {"x": n.f(2, 3, 8), "scale": n.f(4), "gate": n.f(2, 3, 8)}, domain=MS,
             activation=kind)


def windows(n):
    """Other forms of the state; ONNX Runtime's CPU provider has no state_window, which is computed here token by token."""
    def run(op, inputs, outputs, **attrs):
        case = Case("window", op, inputs, outputs, domain=MS, **attrs)
        del make_recorded.CASES["window"]
        model, feeds, shown = case.model(None)
        return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(shown, feeds)

    def windowed(op, inputs, axes, window, length, **attrs):
        """The states of prefixes, of which ONNX Runtime computes each; `axes` says along which one an input is cut."""
        inputs = {**inputs, "state": inputs["state"][-1]}
        y, last = run(op, inputs, 2, **attrs)
        slots = [np.zeros_like(last)] * window
        for j in range(max(0, window - length), window):
            cut = {k: np.take(v, range(length - window + j + 1), axes[k]) if k in axes else v for k, v in inputs.items()}
            slots[j] = run(op, cut, 2, **attrs)[1]
        return [y, np.stack(slots)]

    conv = {"w": n.f(6, 1, 3), "b": n.f(6)}
    Case("ms_causal_conv_dilation", "CausalConvWithState", {"x": n.f(2, 6, 5), **conv, "state": n.f(2, 6, 4)}, 2, domain=MS,
         dilation=2)
    Case("ms_causal_conv_dilation_start", "CausalConvWithState", {"x": n.f(2, 6, 3), "w": conv["w"]}, 2, domain=MS, dilation=3)
    Case("ms_causal_conv_last", "CausalConvWithState", {"x": n.f(2, 5, 6), **conv, "state": n.f(2, 2, 6)}, 2, domain=MS,
         channels_last=1, activation="silu")
    Case("ms_causal_conv_last_axes", "CausalConvWithState", {"x": n.f(2, 5, 2, 3), **conv, "state": n.f(2, 4, 2, 3)}, 2,
         domain=MS, channels_last=1, dilation=2)
    for length in (2, 6):
        inputs = {"x": n.f(2, 6, length), **conv, "state": n.f(4, 2, 6, 2)}
        Case(f"ms_causal_conv_window_{length}", "CausalConvWithState", inputs, 2, domain=MS, state_window=4,
             answers=windowed("CausalConvWithState", inputs, {"x": 2}, 4, length))
        inputs = {"x": n.f(2, length, 3, 2), **conv, "state": n.f(4, 2, 2, 3, 2)}
        Case(f"ms_causal_conv_window_last_{length}", "CausalConvWithState", inputs, 2, domain=MS, state_window=4, channels_last=1,
             answers=windowed("CausalConvWithState", inputs, {"x": 1}, 4, length, channels_last=1))
        attrs = {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": "gated_delta"}
        inputs = {"q": n.f(2, length, 16), "k": n.f(2, length, 8) / 2, "v": n.f(2, length, 6), "state": n.f(3, 2, 2, 4, 3),
                  "decay": -np.abs(n.f(2, length, 2)), "beta": np.abs(n.f(2, length, 2)) / 4}
        axes = {k: 1 for k in inputs if k != "state"}
        Case(f"ms_linear_attention_window_{length}", "LinearAttention", inputs, 2, domain=MS, state_window=3,
             answers=windowed("LinearAttention", inputs, axes, 3, length, **attrs), **attrs)


def distances():
    """T5's biases of distances, as its authors compute them; ONNX Runtime's CPU provider has no kernel."""
    n = Numbers("distances")
    for name, classes, farthest, length, both in (("encoder", 16, 32, 40, 1), ("decoder", 16, 32, 40, 0), ("few", 6, 9, 12, 1)):
        table = n.f(classes, 2)
        ahead = np.arange(length)[None] - np.arange(length)[:, None]
        own = classes // 2 if both else classes
        distance = np.abs(ahead) if both else np.maximum(-ahead, 0)
        exact = own // 2
        far = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact)) / np.float32(np.log(farthest / exact))
        far = np.minimum(exact + (far * np.float32(own - exact)).astype(np.int64), own - 1)
        places = np.where(distance < exact, distance, far) + (own * (ahead > 0) if both else 0)
        sizes = np.array([length], np.int64)
        Case(f"ms_relative_position_{name}", "RelativePositionBias",
             {"table": np.ascontiguousarray(table.T).reshape(table.shape), "queries": sizes, "keys": sizes}, domain=MS,
             fixed=("queries", "keys"), max_distance=farthest, is_bidirectional=both,
             answers=[table[places].transpose(2, 0, 1)[None]])


def experts():
    n = Numbers("experts")
    x, routes = n.f(5, 16), n.f(5, 4)
    for kind in ("relu", "gelu", "silu", "identity"):
        Case(f"ms_moe_{kind}", "MoE",
             {"x": x, "routes": routes, "w1": n.f(4, 24, 16) / 4, "b1": n.f(4, 24), "w2": n.f(4, 16, 24) / 4,
              "b2": n.f(4, 16)}, domain=MS, k=2, activation_type=kind)
    Case("ms_moe_normalised", "MoE",
         {"x": x, "routes": routes, "w1": n.f(4, 24, 16) / 4, "b1": None, "w2": n.f(4, 16, 24) / 4}, domain=MS, k=2,
         activation_type="silu", normalize_routing_weights=1)
    Case("ms_moe_swiglu", "MoE",
         {"x": n.f(1, 5, 16), "routes": routes, "w1": n.f(4, 48, 16) / 4, "b1": n.f(4, 48), "w2": n.f(4, 16, 24) / 4,
          "b2": n.f(4, 16)}, domain=MS, k=3, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702,
         activation_beta=1.0, swiglu_limit=2.0, normalize_routing_weights=1)
    for bits in (4, 8):
        packed = lambda *shape: n.u8(*shape[:-1], shape[-1] * bits // 8)
        scale = lambda *shape: np.abs(n.f(*shape)) / (2 ** bits) + 0.001
        quantised = {"w1": packed(4, 32, 16), "s1": scale(4, 32), "b1": n.f(4, 32), "w2": packed(4, 16, 32),
                     "s2": scale(4, 16), "b2": n.f(4, 16)}
        Case(f"ms_qmoe_{bits}", "QMoE", {"x": x, "routes": routes, **quantised}, domain=MS, k=2,
             expert_weight_bits=bits, activation_type="silu", fixed=quantised)
        swiglu = {**quantised, "w1": packed(4, 64, 16), "s1": scale(4, 64), "b1": n.f(4, 64)}
        Case(f"ms_qmoe_{bits}_swiglu", "QMoE", {"x": x, "routes": routes, **swiglu}, domain=MS, k=2,
             expert_weight_bits=bits, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702,
             activation_beta=1.0, swiglu_limit=7.0, normalize_routing_weights=1, fixed=swiglu)
        if bits == 8:  # in blocks ONNX Runtime computes some 0.6 % off the exact answer
            continue
        blocks = {"w1": packed(4, 64, 32), "s1": scale(4, 64, 2), "b1": n.f(4, 64), "w2": packed(4, 32, 32),
                  "s2": scale(4, 32, 2), "b2": n.f(4, 32)}
        Case(f"ms_qmoe_{bits}_blocks", "QMoE", {"x": n.f(5, 32), "routes": routes, **blocks}, domain=MS, k=2,
             expert_weight_bits=bits, block_size=16, activation_type="swiglu", swiglu_fusion=1, fixed=blocks)
        zeros = {**blocks, "w1": packed(4, 32, 32), "s1": scale(4, 32, 2), "b1": n.f(4, 32), "w3": None, "s3": None,
                 "b3": None, "z1": n.u8(4, 32, 2 * bits // 8), "z2": n.u8(4, 32, 2 * bits // 8)}
        Case(f"ms_qmoe_{bits}_zeros", "QMoE", {"x": n.f(5, 32), "routes": routes, **zeros}, domain=MS, k=2,
             expert_weight_bits=bits, block_size=16, activation_type="silu",
             fixed=[k for k in zeros if zeros[k] is not None])


def encoders():
    n = Numbers("more encoders")
    x, w, bias = n.f(2, 3, 8), n.f(8, 24), n.f(24)
    past = {"x": x, "w": w, "b": bias, "mask": None, "past": n.f(2, 2, 2, 4, 4)}
    Case("ms_attention_past", "Attention", past, 2, domain=MS, num_heads=2, unidirectional=1)
    Case("ms_attention_past_mask", "Attention", {**past, "mask": np.array([[0, 1, 1, 1, 1, 1, 1], [1] * 7], np.int32)},
         2, domain=MS, num_heads=2, unidirectional=1)
    Case("ms_attention_present", "Attention", {"x": x, "w": w, "b": bias}, 2, domain=MS, num_heads=2)
    u8, i8 = np.uint8, np.int8
    scaled = {"x": n.u8(2, 3, 8), "w": n.i8(8, 24), "b": bias, "xs": f32(0.02), "ws": f32(0.01), "mask": None,
              "xz": np.array(120, u8), "wz": np.array(3, i8)}
    Case("ms_qattention", "QAttention", scaled, domain=MS, num_heads=2, fixed=["w", "b"])
    Case("ms_qattention_mask", "QAttention", {**scaled, "mask": np.array([[1, 1, 0], [1, 1, 1]], np.int32)}, domain=MS,
         num_heads=2, fixed=["w", "b"])
    Case("ms_qattention_columns", "QAttention",
         {**scaled, "ws": np.abs(n.f(24)) / 50, "wz": np.zeros(24, i8), "past": n.f(2, 2, 2, 2, 4)}, 2, domain=MS,
         num_heads=2, unidirectional=1, fixed=["w", "b"])
    q = n.f(2, 4, 8)
    key = {"q": q, "k": n.f(2, 5, 8), "v": n.f(2, 5, 8), "b": None}
    Case("ms_mha_lengths", "MultiHeadAttention", {**key, "mask": np.array([3, 5], np.int32)}, domain=MS, num_heads=2)
    Case("ms_mha_mask_3d", "MultiHeadAttention",
         {**key, "mask": n.ids(2, 2, 4, 5) | np.eye(4, 5, dtype=np.int32)}, domain=MS, num_heads=2)
    Case("ms_mha_causal", "MultiHeadAttention",
         {"q": q, "k": n.f(2, 4, 8), "v": n.f(2, 4, 8), "b": n.f(24)}, 3, domain=MS, num_heads=2, unidirectional=1)
    Case("ms_mha_past_bias_mask", "MultiHeadAttention",
         {"q": n.f(2, 2, 8), "k": n.f(2, 2, 8), "v": n.f(2, 2, 8), "b": n.f(24),
          "mask": np.array([[0, 1, 1, 1, 1], [1] * 5], np.int32), "extra": n.f(2, 2, 2, 5), "past_k": n.f(2, 2, 3, 4),
          "past_v": n.f(2, 2, 3, 4)}, 3, domain=MS, num_heads=2)
    Case("ms_mha_cross_bias", "MultiHeadAttention",
         {"q": q, "k": n.f(2, 2, 5, 4), "v": n.f(2, 2, 5, 4), "b": n.f(24)}, domain=MS, num_heads=2)
    Case("ms_ngram_block", "NGramRepeatBlock",
         {"ids": np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4], [1, 2, 3, 4, 5]], np.int64), "scores": n.f(3, 6)},
         domain=MS, ngram_size=3)


if __name__ == "__main__":
    for each in (grouped, products, decoder_steps, recurrences, distances, experts, encoders):
        each()
    make_recorded.record(sys.argv[1:])
