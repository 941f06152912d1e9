// Attributes of recurrent layers, shared by inference and kernels.
//
// Each op is one direction of one layer, and only the part that must go step by step: what the
// inputs contribute to the gates comes in as one product for all steps, with its biases, so that it
// is an ordinary MatMul. A model's second direction is a second node with `reverse`.
#pragma once

#include <array>
#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// gates[T, N, G*H], recurrent[H, G*H], lengths[N]?, h0[N, H]?, .. -> y[T, N, H], h[N, H], ..
// T steps, N samples, H hidden units, G gates. With lengths, sample n has lengths[n] steps: it goes
// on from the last of them where `reverse`, y is zero behind them, and h is the state after them.
//
// Lstm: gates i, o, f, c; then c0[N, H]? and peepholes[3H]? (i, o, f); a third output c[N, H].
//   i = F(i + Pi * c'), f = F(f + Pf * c') or 1 - i with input_forget, c = f * c' + i * G(c),
//   o = F(o + Po * c), h = o * H(c)
// Gru: gates z, r, h; then candidate_bias[H]?.
//   z = F(z), r = F(r), h = (1 - z) * G(..) + z * h', where G is of h + (r * h') R, or with
//   linear_before_reset of h + r * (h' R + candidate_bias)
// Rnn: one gate, h = F(..).
// Arguments of F and G that are beyond `clip` are cut off at it (0: none are). State is kept in the
// type of the tensors from step to step, but of 16-bit tensors in f32.
struct RecurrentAttrs {
  bool reverse = false;
  double clip = 0;
  bool input_forget = false;
  bool linear_before_reset = false;
  // F, G, H by name; empty means sigmoid, tanh, tanh (Rnn: tanh). alphas and betas of each.
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

struct RecurrentActivation {
  std::string name;
  double alpha = 0, beta = 0;
  double operator()(double x) const;
};
// F, G, H; those that the op has not are tanh. InvalidArgument names what there is not.
Result<std::array<RecurrentActivation, 3>> ActivationsOf(const RecurrentAttrs& attrs,
                                                         std::string_view op);
// How many activations, and gates, an op has.
int RecurrentActivations(std::string_view op);
int RecurrentGates(std::string_view op);

}  // namespace oncilla
