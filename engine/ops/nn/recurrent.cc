// Recurrent layers: activations, inference, rows.
#include "engine/ops/nn/recurrent.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr std::string_view kActivations[] = {
    "affine",   "elu",      "hard_sigmoid", "leaky_relu",      "relu", "scaled_tanh", "sigmoid",
    "softplus", "softsign", "tanh",         "thresholded_relu"};

// Checks the shape of input `i`, as far as it is known.
Status RequireShape(std::span<const Fact> in, size_t i, const PartialShape& shape,
                    std::string_view what) {
  if (i >= in.size() || in[i].absent()) return Status();
  if (!MergeShapes(in[i].shape, shape).ok()) {
    return InvalidArgument(what, " has the shape ", in[i].shape, ", not ", shape);
  }
  return Status();
}

struct Layer {
  Dim steps, samples, units;
  DType dtype = DType::kInvalid;
  PartialShape y() const { return PartialShape({steps, samples, units}); }
  PartialShape state() const { return PartialShape({samples, units}); }
};

Result<Layer> InferLayer(const RecurrentAttrs& attrs, std::span<const Fact> in,
                         std::string_view op) {
  ONCILLA_TRY(ActivationsOf(attrs, op).status());
  if (!(attrs.clip >= 0)) return InvalidArgument("clip is ", attrs.clip);
  const int gates = RecurrentGates(op);
  ONCILLA_TRY(RequireFloat(in[0], "gates"));
  ONCILLA_TRY(RequireRank(in[0], 3, "gates"));
  ONCILLA_TRY(RequireRank(in[1], 2, "recurrent"));
  Layer layer;
  layer.dtype = in[0].dtype;
  for (size_t i = 1; i < in.size(); ++i) {
    if (in[i].absent()) continue;
    if (i == 2) {
      ONCILLA_TRY(RequireInteger(in[i], "lengths"));
    } else if (in[i].dtype != layer.dtype) {
      return InvalidArgument("input ", i, " is ", in[i].dtype, ", gates are ", layer.dtype);
    }
  }
  if (in[1].shape.ranked()) layer.units = in[1].shape[0];
  Dim all;
  if (layer.units.known()) all = Dim(SaturatingMul(layer.units.size, int64_t{gates}));
  ONCILLA_TRY(RequireShape(in, 1, PartialShape({layer.units, all}), "recurrent"));
  if (in[0].shape.ranked()) {
    layer.steps = in[0].shape[0];
    layer.samples = in[0].shape[1];
  }
  ONCILLA_TRY(RequireShape(in, 0, PartialShape({layer.steps, layer.samples, all}), "gates"));
  ONCILLA_TRY(RequireShape(in, 2, PartialShape({layer.samples}), "lengths"));
  ONCILLA_TRY(RequireShape(in, 3, layer.state(), "h0"));
  return layer;
}

Result<Facts> InferLstm(const RecurrentAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_ASSIGN(const Layer layer, InferLayer(attrs, in, "Lstm"));
  ONCILLA_TRY(RequireShape(in, 4, layer.state(), "c0"));
  const Dim peepholes =
      layer.units.known() ? Dim(SaturatingMul(layer.units.size, int64_t{3})) : Dim();
  ONCILLA_TRY(RequireShape(in, 5, PartialShape({peepholes}), "peepholes"));
  return Facts{Fact::Of(layer.dtype, layer.y()), Fact::Of(layer.dtype, layer.state()),
               Fact::Of(layer.dtype, layer.state())};
}

// The scale or zero point of weights of bytes: one number, or one for each column.
Status RequirePerColumn(std::span<const Fact> in, size_t i, std::string_view what) {
  if (i >= in.size() || in[i].absent() || !in[i].shape.ranked()) return Status();
  const PartialShape& shape = in[i].shape;
  const Dim columns = in[1].shape.ranked() ? in[1].shape[1] : Dim();
  const auto fits = [&](const Dim& size) {
    return !size.known() || size.size == 1 || !columns.known() || size.size == columns.size;
  };
  if (shape.rank() == 0 || (shape.rank() == 1 && fits(shape[0]))) return Status();
  return InvalidArgument(what, " has the shape ", shape);
}

Result<Facts> InferByteLstm(const RecurrentAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireRank(in[1], 2, "recurrent"));
  Facts real(in.begin(), in.begin() + std::min<std::ptrdiff_t>(std::ssize(in), 6));
  const auto has = [&](size_t i) { return i < in.size() && !in[i].absent(); };
  if (in[1].dtype == DType::kU8 || in[1].dtype == DType::kI8) {
    if (!has(6)) return InvalidArgument("recurrent is ", in[1].dtype, " and has no scale");
    if (in[6].dtype != DType::kF32) return InvalidArgument("scale is ", in[6].dtype);
    if (has(7) && in[7].dtype != in[1].dtype) {
      return InvalidArgument("zero is ", in[7].dtype, ", recurrent is ", in[1].dtype);
    }
    ONCILLA_TRY(RequirePerColumn(in, 6, "scale"));
    ONCILLA_TRY(RequirePerColumn(in, 7, "zero"));
    real[1] = Fact::Of(in[0].dtype, in[1].shape);
  } else if (has(6) || has(7)) {
    return InvalidArgument("recurrent is ", in[1].dtype, " and has a scale or zero");
  }
  return InferLstm(attrs, real);
}

Result<Facts> InferGru(const RecurrentAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_ASSIGN(const Layer layer, InferLayer(attrs, in, "Gru"));
  ONCILLA_TRY(RequireShape(in, 4, PartialShape({layer.units}), "candidate_bias"));
  if (in.size() > 4 && !in[4].absent() && !attrs.linear_before_reset) {
    return InvalidArgument("candidate_bias needs linear_before_reset");
  }
  return Facts{Fact::Of(layer.dtype, layer.y()), Fact::Of(layer.dtype, layer.state())};
}

Result<Facts> InferRnn(const RecurrentAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_ASSIGN(const Layer layer, InferLayer(attrs, in, "Rnn"));
  return Facts{Fact::Of(layer.dtype, layer.y()), Fact::Of(layer.dtype, layer.state())};
}

// Divides a last axis into `heads` equal parts; returns the size of a part.
Result<Dim> PartOf(const Fact& fact, int64_t heads, std::string_view what) {
  if (!fact.shape.ranked() || !fact.shape[2].known()) return Dim();
  if (fact.shape[2].size % heads != 0) {
    return InvalidArgument(what, " has ", fact.shape[2].size, " numbers for ", heads, " heads");
  }
  return Dim(fact.shape[2].size / heads);
}

Dim TimesHeads(const Dim& part, int64_t heads) {
  return part.known() ? Dim(SaturatingMul(part.size, heads)) : Dim();
}

// Checks decay or beta, whose last axis has one of two sizes.
Status RequireGate(std::span<const Fact> in, size_t i, bool wanted, const PartialShape& rows,
                   const Dim& one, const Dim& other, std::string_view what) {
  const bool given = i < in.size() && !in[i].absent();
  if (given != wanted) {
    return InvalidArgument(what, given ? " is given, and the rule has none" : " is missing");
  }
  if (!given) return Status();
  ONCILLA_TRY(RequireFloat(in[i], what));
  ONCILLA_TRY(RequireRank(in[i], 3, what));
  if (!in[i].shape.ranked()) return Status();
  ONCILLA_TRY(RequireShape(in, i, PartialShape({rows[0], rows[1], Dim()}), what));
  const Dim& last = in[i].shape[2];
  const auto fits = [&](const Dim& size) { return !size.known() || size.size == last.size; };
  if (last.known() && !fits(one) && !fits(other)) {
    return InvalidArgument(what, " has ", last.size, " numbers for each step");
  }
  return Status();
}

Result<Facts> InferLinearAttention(const LinearAttentionAttrs& attrs, std::span<const Fact> in) {
  if (attrs.rule != "linear" && !attrs.decays() && !attrs.corrects()) {
    return InvalidArgument("there is no rule '", attrs.rule, "'");
  }
  constexpr int64_t kMostHeads = 1 << 16;
  if (attrs.heads < 1 || attrs.query_heads < 1 || attrs.query_heads > kMostHeads ||
      attrs.query_heads % attrs.heads != 0) {
    return InvalidArgument(attrs.query_heads, " heads of queries cannot share ", attrs.heads);
  }
  constexpr const char* kNames[] = {"query", "key", "value"};
  for (size_t i = 0; i < 3; ++i) {
    ONCILLA_TRY(RequireFloat(in[i], kNames[i]));
    ONCILLA_TRY(RequireRank(in[i], 3, kNames[i]));
    if (in[i].dtype != in[0].dtype) return InvalidArgument(kNames[i], " is ", in[i].dtype);
  }
  ONCILLA_ASSIGN(const Dim width, PartOf(in[0], attrs.query_heads, "query"));
  ONCILLA_ASSIGN(const Dim own, PartOf(in[1], attrs.heads, "key"));
  ONCILLA_ASSIGN(const Dim depth, PartOf(in[2], attrs.heads, "value"));
  const Dim size = width.known() ? width : own;
  PartialShape rows({Dim(), Dim(), Dim()});
  for (size_t i = 0; i < 3; ++i) {
    const Dim last = TimesHeads(i == 2 ? depth : size, i == 0 ? attrs.query_heads : attrs.heads);
    ONCILLA_TRY(RequireShape(in, i, PartialShape({rows[0], rows[1], last}), kNames[i]));
    if (in[i].shape.ranked() && !rows[0].known()) rows[0] = in[i].shape[0];
    if (in[i].shape.ranked() && !rows[1].known()) rows[1] = in[i].shape[1];
  }
  const PartialShape state({rows[0], Dim(attrs.heads), size, depth});
  ONCILLA_TRY(RequireShape(in, 3, state, "state"));
  const bool has_state = in.size() > 3 && !in[3].absent();
  if (has_state) ONCILLA_TRY(RequireFloat(in[3], "state"));
  ONCILLA_TRY(RequireGate(in, 4, attrs.decays(), rows, Dim(attrs.heads),
                          TimesHeads(size, attrs.heads), "decay"));
  ONCILLA_TRY(
      RequireGate(in, 5, attrs.corrects(), rows, Dim(attrs.heads), Dim(int64_t{1}), "beta"));
  const PartialShape y({rows[0], rows[1], TimesHeads(depth, attrs.query_heads)});
  return Facts{Fact::Of(in[0].dtype, y), Fact::Of(has_state ? in[3].dtype : in[0].dtype, state)};
}

constexpr OpDef kRecurrentOps[] = {
    // An Lstm whose recurrent product reads h as if it were stored in bytes: in each step h is
    // quantised over the range of the sample's units, extended to contain zero, in 255 steps of
    // which zero is one, rounding half to even. The recurrent weights may be bytes: u8 or i8 minus
    // `zero` times `scale` in f32, with scale[4H] or one number, and zero like it, 0 if absent.
    Op<InferByteLstm>("ByteLstm", {.inputs = {2, 8}, .storage = StorageRule::kSteps}),
    Op<InferLstm>("Lstm", {.inputs = {2, 6}, .storage = StorageRule::kStarts}),
    Op<InferGru>("Gru", {.inputs = {2, 5}, .storage = StorageRule::kStarts}),
    Op<InferLinearAttention>("LinearAttention", {.inputs = {3, 6}, .storage = StorageRule::kState}),
    Op<InferRnn>("Rnn", {.inputs = {2, 4}, .storage = StorageRule::kStarts}),
};

}  // namespace

double RecurrentActivation::operator()(double x) const {
  if (name == "tanh") return std::tanh(x);
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "relu") return std::fmax(x, 0);
  if (name == "affine") return alpha * x + beta;
  if (name == "leaky_relu") return x >= 0 ? x : alpha * x;
  if (name == "thresholded_relu") return x >= alpha ? x : 0;
  if (name == "scaled_tanh") return alpha * std::tanh(beta * x);
  if (name == "hard_sigmoid") return std::fmin(std::fmax(alpha * x + beta, 0), 1);
  if (name == "elu") return x >= 0 ? x : alpha * std::expm1(x);
  if (name == "softsign") return x / (1 + std::fabs(x));
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));  // softplus
}

int RecurrentGates(std::string_view op) { return op == "Lstm" ? 4 : op == "Gru" ? 3 : 1; }
int RecurrentActivations(std::string_view op) { return op == "Lstm" ? 3 : op == "Gru" ? 2 : 1; }

Result<std::array<RecurrentActivation, 3>> ActivationsOf(const RecurrentAttrs& attrs,
                                                         std::string_view op) {
  const auto count = static_cast<size_t>(RecurrentActivations(op));
  std::array<RecurrentActivation, 3> out;
  for (RecurrentActivation& activation : out) activation.name = "tanh";
  if (count > 1) out[0].name = "sigmoid";
  auto fits = [&](size_t size) { return size == 0 || size == count; };
  if (!fits(attrs.activations.size()) || !fits(attrs.alphas.size()) || !fits(attrs.betas.size())) {
    return InvalidArgument("activations, alphas and betas must be ", count, " each");
  }
  for (size_t i = 0; i < count; ++i) {
    if (!attrs.activations.empty()) out[i].name = attrs.activations[i];
    if (!attrs.alphas.empty()) out[i].alpha = attrs.alphas[i];
    if (!attrs.betas.empty()) out[i].beta = attrs.betas[i];
    if (std::find(std::begin(kActivations), std::end(kActivations), out[i].name) ==
        std::end(kActivations)) {
      return InvalidArgument("there is no activation '", out[i].name, "'");
    }
  }
  return out;
}

std::span<const OpDef> RecurrentOps() { return kRecurrentOps; }

}  // namespace oncilla
