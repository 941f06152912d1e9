// com.microsoft's ops of networks with several residual streams (hyper-connections: each layer
// reads a mix of C streams, and its result is mixed into all of them), and the gates of linear
// attention and of Engram memories. All compute in float, for inputs of any type.
#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

Result<ValueId> Wide(OnnxLowering& b, size_t input, const std::string& name) {
  return b.Cast(b.in(input), DType::kF32, name);
}

// The result in the type of the node's first input.
Result<Values> Narrow(OnnxLowering& b, ValueId y) {
  return One(b.dtype() == DType::kF32 ? b.Add("Identity", {}, {y}) : b.Cast(y, b.dtype(), ""));
}

// The first input as [.., C, H]. Files store it in this shape, or as [.., C * H] with
// `num_branches`.
struct Streams {
  ValueId x = kNoValue;
  int rank = 0;      // of x
  int64_t flat = 0;  // C, where the file stores [.., C * H]
};

// Reshapes x from [.., C * H], which has `rank` axes, to [.., C, H].
Result<ValueId> Apart(OnnxLowering& b, ValueId x, int rank, int64_t branches,
                      const std::string& name) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank - 1), 0);
  sizes.insert(sizes.end(), {branches, -1});
  return b.Add(ReshapeAttrs{.zero_copies = true}, {x, b.Ints(std::move(sizes))}, name);
}

// Reshapes y from [.., C, H] to the shape that the file uses.
Result<ValueId> AsStored(OnnxLowering& b, const Streams& streams, ValueId y) {
  if (streams.flat == 0) return y;
  std::vector<int64_t> sizes(static_cast<size_t>(streams.rank - 2), 0);
  sizes.push_back(-1);
  return b.Add(ReshapeAttrs{.zero_copies = true}, {y, b.Ints(std::move(sizes))}, "together");
}

Result<Streams> ReadStreams(OnnxLowering& b) {
  Streams streams;
  ONCILLA_ASSIGN(streams.flat, b.Int("num_branches", 0));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (streams.flat < 0 || rank < (streams.flat > 0 ? 1 : 2)) {
    return InvalidArgument("streams of rank ", rank, ", num_branches ", streams.flat);
  }
  ONCILLA_ASSIGN(streams.x, Wide(b, 0, "streams"));
  streams.rank = rank;
  if (streams.flat == 0) return streams;
  ++streams.rank;
  ONCILLA_ASSIGN(streams.x, Apart(b, streams.x, rank, streams.flat, "apart"));
  return streams;
}

// Gates in a shape that broadcasts to [.., C, H]. They come as [.., C], [.., C, 1] or [.., C, H],
// or as [.., C * H] if the streams are stored so.
Result<ValueId> ReadGates(OnnxLowering& b, const Streams& streams, size_t input, bool flat) {
  ONCILLA_ASSIGN(const int rank, b.Rank(input, "the gates"));
  ONCILLA_ASSIGN(const ValueId gates, Wide(b, input, "gates"));
  if (rank == streams.rank) return gates;
  if (rank != streams.rank - 1) return InvalidArgument("gates of rank ", rank);
  if (!flat || streams.flat == 0) return b.Unsqueeze(gates, {-1}, "gates_of_streams");
  const PartialShape shape = b.in_fact(input).shape;
  const Dim last = shape.ranked() ? shape[rank - 1] : Dim();
  if (!last.known()) return Unsupported("the number of gates is not known");
  if (last.size == streams.flat) return b.Unsqueeze(gates, {-1}, "gates_of_streams");
  return Apart(b, gates, rank, streams.flat, "gates_apart");
}

// Divides each stream by its root mean square, times a scale [C * H], [C, H] or [H].
Result<Values> LowerBranchwiseRmsNorm(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  ONCILLA_ASSIGN(const Streams streams, ReadStreams(b));
  const LayerNormAttrs attrs = {.axis = -1, .epsilon = double{epsilon}};
  ONCILLA_ASSIGN(ValueId y, b.Add("RmsNorm", attrs, {streams.x}, "norm"));
  if (b.has(1)) {
    ONCILLA_ASSIGN(const int rank, b.Rank(1, "the scale"));
    ONCILLA_ASSIGN(ValueId scale, Wide(b, 1, "scale"));
    const PartialShape x = b.fact(streams.x).shape, shape = b.in_fact(1).shape;
    if (rank == 1) {
      const Dim size = x[streams.rank - 1];
      if (!size.known() || !shape.ranked() || !shape[0].known()) {
        return Unsupported("the size of the scale or of a stream is not known");
      }
      if (shape[0].size != size.size) {
        ONCILLA_ASSIGN(scale, b.Add(ReshapeAttrs{}, {scale, b.Ints({-1, size.size})}, "scales"));
      }
    } else if (rank != 2) {
      return InvalidArgument("a scale of rank ", rank);
    }
    ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, scale}, "scaled"));
  }
  ONCILLA_ASSIGN(y, AsStored(b, streams, y));
  return Narrow(b, y);
}

// The sum of all streams, each multiplied by its gate, times `reduction_scale`.
Result<Values> LowerPreMix(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float scale, b.Float("reduction_scale", 1));
  ONCILLA_ASSIGN(const Streams streams, ReadStreams(b));
  ONCILLA_ASSIGN(const ValueId gates, ReadGates(b, streams, 1, true));
  ONCILLA_ASSIGN(const ValueId gated, b.Add("Mul", {}, {streams.x, gates}, "gated"));
  ONCILLA_ASSIGN(ValueId y,
                 b.Add("ReduceSum", ReduceAttrs{.keep_dims = false}, {gated, b.Ints({-2})}, "sum"));
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(DType::kF32, double{scale}));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, factor}, "scaled"));
  return Narrow(b, y);
}

// The streams, mixed with one another by a matrix if there is one, plus a layer's result multiplied
// by each stream's gate.
Result<Values> LowerPostMix(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Streams streams, ReadStreams(b));
  ONCILLA_ASSIGN(ValueId block, Wide(b, 1, "block"));
  ONCILLA_ASSIGN(block, b.Unsqueeze(block, {-2}, "block_of_streams"));
  ONCILLA_ASSIGN(const ValueId gates, ReadGates(b, streams, 2, false));
  ONCILLA_ASSIGN(const ValueId added, b.Add("Mul", {}, {block, gates}, "gated"));
  ValueId x = streams.x;
  if (b.has(3)) {
    ONCILLA_ASSIGN(const ValueId mix, Wide(b, 3, "mix"));
    ONCILLA_ASSIGN(x, b.Add(MatMulAttrs{.transpose_a = true}, {mix, x}, "mixed"));
  }
  ONCILLA_ASSIGN(ValueId y, b.Add("Add", {}, {x, added}, "sum"));
  ONCILLA_ASSIGN(y, AsStored(b, streams, y));
  return Narrow(b, y);
}

// Divides x [N, L, C, H] by its root mean square over the last axis, times a scale [C, H].
Result<ValueId> StreamNorm(OnnxLowering& b, ValueId x, size_t scale_input, float epsilon,
                           const std::string& name) {
  const LayerNormAttrs attrs = {.axis = -1, .epsilon = double{epsilon}};
  ONCILLA_ASSIGN(const ValueId norm, b.Add("RmsNorm", attrs, {x}, name + "_norm"));
  ONCILLA_ASSIGN(const ValueId scale, Wide(b, scale_input, name + "_scale"));
  return b.Add("Mul", {}, {norm, scale}, name + "_normed");
}

// A value for all streams, gated in each by the match of its key with its query.
Result<Values> LowerEngramGate(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-5f));
  ONCILLA_ASSIGN(const int rank, b.Rank(0, "the key"));
  if (rank != 4) return InvalidArgument("the key has rank ", rank, ", not 4");
  ONCILLA_ASSIGN(ValueId key, Wide(b, 0, "key"));
  ONCILLA_ASSIGN(ValueId query, Wide(b, 1, "query"));
  ONCILLA_ASSIGN(ValueId value, Wide(b, 2, "value"));
  ONCILLA_ASSIGN(ValueId size, b.Sizes(key, 3, 4, "size"));
  ONCILLA_ASSIGN(key, StreamNorm(b, key, 3, epsilon, "key"));
  ONCILLA_ASSIGN(query, StreamNorm(b, query, 4, epsilon, "query"));
  ONCILLA_ASSIGN(ValueId match, b.Add("Mul", {}, {key, query}, "products"));
  ONCILLA_ASSIGN(
      match, b.Add("ReduceSum", ReduceAttrs{.keep_dims = true}, {match, b.Ints({-1})}, "match"));
  ONCILLA_ASSIGN(size, b.Cast(size, DType::kF32, "size_real"));
  ONCILLA_ASSIGN(size, b.Add("Sqrt", {}, {size}, "size_root"));
  ONCILLA_ASSIGN(match, b.Add("Div", {}, {match, size}, "match_scaled"));
  // The square root of the match's absolute value with the match's sign; 1e-6 is part of the op's
  // definition.
  ONCILLA_ASSIGN(const ValueId sign, b.Add("Sign", {}, {match}, "sign"));
  ONCILLA_ASSIGN(ValueId gate, b.Add("Abs", {}, {match}, "strength"));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(DType::kF32, 1e-6));
  ONCILLA_ASSIGN(gate, b.Add("Max", {}, {gate, least}, "strength_at_least"));
  ONCILLA_ASSIGN(gate, b.Add("Sqrt", {}, {gate}, "strength_root"));
  ONCILLA_ASSIGN(gate, b.Add("Mul", {}, {gate, sign}, "signed"));
  ONCILLA_ASSIGN(gate, b.Add("Sigmoid", {}, {gate}, "gate"));
  ONCILLA_ASSIGN(value, b.Unsqueeze(value, {2}, "value_of_streams"));
  ONCILLA_ASSIGN(const ValueId gated, b.Add("Mul", {}, {gate, value}, "gated"));
  ONCILLA_ASSIGN(Values y, Narrow(b, gated));
  if (!b.wants(1)) return y;
  if (!b.has(5)) return DataLoss("conv_norm_scale is missing");
  ONCILLA_ASSIGN(const ValueId normed, StreamNorm(b, gated, 5, epsilon, "gated"));
  ONCILLA_ASSIGN(const ValueId narrow, b.Cast(normed, b.dtype(), "gated_value_normed"));
  y.push_back(narrow);
  return y;
}

// decay_scale * softplus(a + dt_bias), and the sigmoid of b.
Result<Values> LowerLinearAttentionGate(OnnxLowering& b) {
  ONCILLA_ASSIGN(ValueId decay, Wide(b, 0, "a"));
  ONCILLA_ASSIGN(decay, b.Add("Add", {}, {decay, b.in(1)}, "biased"));
  ONCILLA_ASSIGN(decay, b.Add("Softplus", {}, {decay}, "softplus"));
  ONCILLA_ASSIGN(decay, b.Add("Mul", {}, {decay, b.in(2)}, "scaled"));
  ONCILLA_ASSIGN(Values y, Narrow(b, decay));
  if (!b.wants(1)) return y;
  if (!b.has(3)) return DataLoss("b is missing");
  ONCILLA_ASSIGN(ValueId beta, Wide(b, 3, "b"));
  ONCILLA_ASSIGN(beta, b.Add("Sigmoid", {}, {beta}, "beta_wide"));
  ONCILLA_ASSIGN(beta, b.Cast(beta, b.dtype(), "beta"));
  y.push_back(beta);
  return y;
}

constexpr OnnxOpRow kRows[] = {
    {"BranchwiseRMSNorm", 1, kNewestOnnxMicrosoft, 1, "", LowerBranchwiseRmsNorm},
    {"EngramGate", 1, kNewestOnnxMicrosoft, 5, "", LowerEngramGate},
    {"HyperConnectionPostMix", 1, kNewestOnnxMicrosoft, 3, "", LowerPostMix},
    {"HyperConnectionPreMix", 1, kNewestOnnxMicrosoft, 2, "", LowerPreMix},
    {"LinearAttentionGate", 1, kNewestOnnxMicrosoft, 3, "", LowerLinearAttentionGate},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftStreamRows() { return kRows; }

}  // namespace oncilla
