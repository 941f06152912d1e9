#!/usr/bin/env python3
"""Writes recorded/attention_*: ONNX's Attention, and attention written out as PyTorch and Keras export it, with what ONNX
Runtime (for the op itself ONNX's reference) answers, as make_recorded.py does.

    v/bin/python tests/conformance/recorded_attention.py"""

import numpy as np

import make_recorded
from make_recorded import Case, Numbers
from recorded_nets import Net


def ops():
    n = Numbers("attention")
    rows = {"q": n.f(2, 3, 12), "k": n.f(2, 5, 12), "v": n.f(2, 5, 6)}
    heads = {"q": n.f(2, 4, 3, 8), "k": n.f(2, 2, 5, 8), "v": n.f(2, 2, 5, 6)}
    past = {"past_k": n.f(2, 2, 4, 8), "past_v": n.f(2, 2, 4, 6)}

    def case(name, inputs, outputs=1, opset=23, **attrs):
        Case("attention_" + name, "Attention", inputs, outputs, opset=opset, reference=True, **attrs)

    case("rows", rows, q_num_heads=3, kv_num_heads=3)
    case("shared", heads)
    case("causal", heads, is_causal=1)
    case("mask", {**heads, "mask": n.f(3, 5)})
    case("mask_seen", {**heads, "mask": n.f(2, 1, 3, 5) > 0.3})
    case("mask_per_head", {**heads, "mask": n.f(4, 3, 5)}, softcap=1.5, scale=0.7)
    case("past", {**heads, "mask": None, **past}, ["y", "k_all", "v_all"], is_causal=1)
    case("past_mask", {**heads, "mask": n.f(2, 4, 3, 9), **past}, ["y", "k_all", "v_all"])
    case("lengths", {**heads, "mask": None, "past_k": None, "past_v": None, "lengths": np.array([5, 3], np.int64)}, opset=24,
         is_causal=1)
    case("product", {**heads, "mask": n.f(3, 5)}, ["y", "", "", "scores"], qk_matmul_output_mode=1)


class Written(Net):
    """Attention of x [batch, rows, heads * size], node by node."""

    heads, size = 3, 8

    def number(self, value):
        return self.const(np.float32(value))

    def project(self, x, heads=None, bias=True):
        width = self.heads * self.size
        y = self.add("MatMul", x, self.const(self.numbers.f(width, (heads or self.heads) * self.size) / 4))
        return self.add("Add", y, self.const(self.numbers.f((heads or self.heads) * self.size))) if bias else y

    def split(self, y, perm=(0, 2, 1, 3), heads=None):
        y = self.add("Reshape", y, self.const(np.array([0, 0, heads or self.heads, self.size], np.int64)))
        return self.add("Transpose", y, perm=list(perm))

    def joined(self, y):
        y = self.add("Transpose", y, perm=[0, 2, 1, 3])
        return self.add("Reshape", y, self.const(np.array([0, 0, self.heads * self.size], np.int64)))

    def finish(self, scores, v):
        weights = self.add("Softmax", scores, axis=-1)
        self.outputs = [self.project(self.joined(self.add("MatMul", weights, v)))]
        self.record()


def bert():
    """Scores divided by a root, a mask of numbers to add; dimensions by zeros, as BERT's exporter writes them."""
    g = Written("attention_bert")
    x, mask = g.input(g.numbers.f(2, 7, 24)), g.input((g.numbers.f(2, 1, 1, 7) > 0).astype(np.float32))
    q, k, v = (g.split(g.project(x), p) for p in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
    scores = g.add("Div", g.add("MatMul", q, k), g.number(8**0.5))
    hidden = g.add("Mul", g.add("Sub", g.number(1), mask), g.number(np.finfo(np.float32).min))
    g.finish(g.add("Add", scores, hidden), v)


def scaled_dot_product():
    """Both factors scaled by the fourth root, as PyTorch lowers scaled_dot_product_attention; a mask that is put in."""
    g = Written("attention_sdpa")
    x, seen = g.input(g.numbers.f(1, 6, 24)), g.input(np.tril(np.ones((6, 6), bool)))
    q, k, v = (g.split(g.project(x, bias=b), p) for b, p in ((True, (0, 2, 1, 3)), (False, (0, 2, 3, 1)), (True, (0, 2, 1, 3))))
    root = g.number(8**-0.25)
    scores = g.add("MatMul", g.add("Mul", q, root), g.add("Mul", k, root))
    g.finish(g.add("Where", seen, scores, g.number(-np.inf)), v)


def cross():
    """Queries of one input, keys and values of another, of which heads share one."""
    g = Written("attention_cross")
    x, z = g.input(g.numbers.f(2, 4, 24)), g.input(g.numbers.f(2, 9, 24))
    q = g.split(g.project(x))

    def shared(perm):
        y = g.split(g.project(z, 1), heads=1)
        y = g.add("Unsqueeze", y, g.const(np.array([2], np.int64)))
        y = g.add("Expand", y, g.const(np.array([2, 1, 3, 9, 8], np.int64)))
        y = g.add("Reshape", y, g.const(np.array([2, 3, 9, 8], np.int64)))
        return g.add("Transpose", y, perm=perm) if perm else y

    scores = g.add("Mul", g.add("MatMul", q, shared([0, 1, 3, 2])), g.number(0.3))
    g.finish(scores, shared(None))


if __name__ == "__main__":
    ops()
    make_recorded.record([])
    for each in (bert, scaled_dot_product, cross):
        each()
