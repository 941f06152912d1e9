// Attributes of recurrent layers, shared by inference and kernels.
//
// Each op is one direction of one layer, and only its sequential part: the contribution of the
// inputs to the gates is passed in, with its biases, as one product for all steps, so that it is an
// ordinary MatMul. A model's second direction is a second node with `reverse`.
#pragma once

#include <array>
#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// gates[T, N, G*H], recurrent[H, G*H], lengths[N]?, h0[N, H]?, .. -> y[T, N, H], h[N, H], ..
// T steps, N samples, H hidden units, G gates. With lengths, sample n has lengths[n] steps:
// `reverse` starts at the last of them, y is zero after them, and h is the state after them.
//
// Lstm: gates i, o, f, c; then c0[N, H]? and peepholes[3H]? (i, o, f); a third output c[N, H].
//   i = F(i + Pi * c'), f = F(f + Pf * c') or 1 - i with input_forget, c = f * c' + i * G(c),
//   o = F(o + Po * c), h = o * H(c)
// ByteLstm: an Lstm whose products take h rounded to bytes; then scale and zero of recurrent
// weights
//   that are bytes themselves.
// Gru: gates z, r, h; then candidate_bias[H]?.
//   z = F(z), r = F(r), h = (1 - z) * G(..) + z * h', where G is of h + (r * h') R, or with
//   linear_before_reset of h + r * (h' R + candidate_bias)
// Rnn: one gate, h = F(..).
// Arguments of F and G are clipped to [-clip, clip] (0: not clipped). Between steps the state has
// the type of the tensors, or f32 for 16-bit tensors.
struct RecurrentAttrs {
  bool reverse = false;
  double clip = 0;
  bool input_forget = false;
  bool linear_before_reset = false;
  // F, G, H by name; empty means sigmoid, tanh, tanh (Rnn: tanh). One alpha and beta for each.
  std::vector<std::string> activations;
  std::vector<double> alphas, betas;
  void Fields(auto&& field) {
    field("reverse", reverse);
    field("clip", clip);
    field("input_forget", input_forget);
    field("linear_before_reset", linear_before_reset);
    field("activations", activations);
    field("alphas", alphas);
    field("betas", betas);
  }
};

// query[B, T, Hq * K], key[B, T, H * K], value[B, T, H * V], state[B, H, K, V]?, decay?, beta? ->
// y[B, T, Hq * V], state. Linear attention: each of H heads keeps a matrix S from step to step,
// initially `state` or zero, and Hq / H heads of queries read it:
//   S = exp(decay) S + key (value - exp(decay) S' key)' beta, y = scale * S' query
// where rule "linear" has no decay, correction or beta, "gated" no correction and no beta, "delta"
// no decay, "gated_delta" all. decay is [B, T, H] or [B, T, H * K]; beta is [B, T, H] or [B, T, 1].
// A scale of 0 means 1 / sqrt(K). The new state has the type of `state`, else the query's.
struct LinearAttentionAttrs {
  int64_t query_heads = 1, heads = 1;
  double scale = 0;
  std::string rule = "gated_delta";  // linear, gated, delta, gated_delta
  bool decays() const { return rule == "gated" || rule == "gated_delta"; }
  bool corrects() const { return rule == "delta" || rule == "gated_delta"; }
  void Fields(auto&& field) {
    field("query_heads", query_heads);
    field("heads", heads);
    field("scale", scale);
    field("rule", rule);
  }
};

struct RecurrentActivation {
  std::string name;
  double alpha = 0, beta = 0;
  double operator()(double x) const;
};
// F, G, H; those that the op does not use are tanh. InvalidArgument for an unknown name.
Result<std::array<RecurrentActivation, 3>> ActivationsOf(const RecurrentAttrs& attrs,
                                                         std::string_view op);
// The number of activations, and of gates, of an op.
int RecurrentActivations(std::string_view op);
int RecurrentGates(std::string_view op);

}  // namespace oncilla
