// com.microsoft's products with packed weights of few bits; mixtures of experts; and ops of text
// generation, which are refused with advice.
#include <array>
#include <limits>

#include "engine/import/onnx/lowering.h"
#include "engine/ops/math/packed.h"

namespace oncilla {
namespace {

Result<int64_t> ReadBits(OnnxLowering& b, std::string_view name) {
  ONCILLA_ASSIGN(const int64_t bits, b.Int(name, 4));
  if (bits != 2 && bits != 4 && bits != 8) return Unsupported("with weights of ", bits, " bits");
  return bits;
}

// x reshaped to `sizes`; older models store matrices as vectors.
Result<ValueId> Shaped(OnnxLowering& b, ValueId x, std::vector<int64_t> sizes,
                       const std::string& name) {
  if (x == kNoValue) return x;
  const PartialShape shape = b.fact(x).shape;
  if (shape.ranked() && shape.rank() == std::ssize(sizes)) return x;
  return b.Add(ReshapeAttrs{}, {x, b.Ints(std::move(sizes))}, name);
}

int64_t BytesFor(int64_t count, int64_t bits) { return (SaturatingMul(count, bits) + 7) / 8; }

// The first `count` numbers of `bits` bits each along the last axis of a u8 tensor.
Result<ValueId> Numbers(OnnxLowering& b, ValueId x, int64_t bits, int64_t count,
                        const std::string& name) {
  if (bits == 8) return x;
  ONCILLA_ASSIGN(const ValueId all,
                 b.Add("UnpackBits", UnpackBitsAttrs{.bits = bits}, {x}, name + "_all"));
  return b.Add("Slice", {}, {all, b.Ints({0}), b.Ints({count}), b.Ints({-1})}, name);
}

// MatMulNBits with input 4 (g_idx), which gives the index of the scale and zero point of each row
// of the matrix. The matrix is unpacked from constants when the graph is compiled. (ONNX Runtime's
// CPU provider ignores zero points here; the op's definition does not.)
struct PackedMatrix {
  ValueId weights = kNoValue, scales = kNoValue, zeros = kNoValue;
};
Result<Values> LowerInGroups(OnnxLowering& b, const MatMulPackedAttrs& attrs, int64_t columns,
                             const PackedMatrix& packed) {
  const DType to = b.dtype();
  const int64_t blocks = (attrs.depth + attrs.block - 1) / attrs.block;
  const PartialShape groups = b.in_fact(4).shape;
  // Some exporters pad the list to whole blocks.
  if (!groups.ranked() || groups.rank() != 1 || !groups[0].known() ||
      groups[0].size < attrs.depth) {
    return Unsupported("with g_idx of the shape ", groups, " for ", attrs.depth, " rows");
  }
  ONCILLA_ASSIGN(const ValueId flat,
                 b.Add(ReshapeAttrs{}, {packed.weights, b.Ints({columns, -1})}, "bytes"));
  ONCILLA_ASSIGN(ValueId x, Numbers(b, flat, attrs.bits, attrs.depth, "numbers"));
  if (attrs.bits == 8) {
    ONCILLA_ASSIGN(
        x, b.Add("Slice", {}, {x, b.Ints({0}), b.Ints({attrs.depth}), b.Ints({-1})}, "numbers"));
  }
  ONCILLA_ASSIGN(x, b.Cast(x, to, "numbers_real"));
  ONCILLA_ASSIGN(
      const ValueId group,
      b.Add("Slice", {}, {b.in(4), b.Ints({0}), b.Ints({attrs.depth}), b.Ints({0})}, "groups"));
  const GatherAttrs by_group = {.axis = 1, .negative_indices = false};
  ValueId zeros = packed.zeros;
  if (zeros == kNoValue) {
    ONCILLA_ASSIGN(zeros, b.Scalar(to, static_cast<double>(int64_t{1} << (attrs.bits - 1))));
  } else {
    if (b.fact(zeros).dtype == DType::kU8) {
      ONCILLA_ASSIGN(zeros, Numbers(b, zeros, attrs.bits, blocks, "zeros"));
      ONCILLA_ASSIGN(zeros, b.Cast(zeros, to, "zeros_real"));
    }
    ONCILLA_ASSIGN(zeros, b.Add(by_group, {zeros, group}, "zeros_of_rows"));
  }
  ONCILLA_ASSIGN(x, b.Add("Sub", {}, {x, zeros}, "moved"));
  ONCILLA_ASSIGN(const ValueId scales, b.Add(by_group, {packed.scales, group}, "scales_of_rows"));
  ONCILLA_ASSIGN(x, b.Add("Mul", {}, {x, scales}, "matrix"));
  return One(b.Add(MatMulAttrs{.transpose_b = true}, {b.in(0), x, b.in(5)}));
}

Result<Values> LowerMatMulNBits(OnnxLowering& b) {
  MatMulPackedAttrs attrs;
  ONCILLA_ASSIGN(const int64_t accuracy, b.Int("accuracy_level", 0));
  attrs.round_rows = accuracy == 4;  // the others permit floats of 16 bits
  ONCILLA_ASSIGN(attrs.bits, ReadBits(b, "bits"));
  ONCILLA_ASSIGN(attrs.block, b.NeedInt("block_size"));
  ONCILLA_ASSIGN(attrs.depth, b.NeedInt("K"));
  ONCILLA_ASSIGN(const int64_t columns, b.NeedInt("N"));
  ONCILLA_ASSIGN(const int64_t prepacked, b.Int("weight_prepacked", 0));
  if (prepacked != 0) return Unsupported("with weights in a layout of a device's own");
  constexpr int64_t kMost = int64_t{1} << 40;
  if (attrs.block < 1 || attrs.block > kMost || attrs.depth < 1 || attrs.depth > kMost ||
      columns < 1 || columns > kMost) {
    return InvalidArgument("K ", attrs.depth, ", N ", columns, ", block_size ", attrs.block);
  }
  const int64_t blocks = (attrs.depth + attrs.block - 1) / attrs.block;
  ONCILLA_ASSIGN(
      const ValueId weights,
      Shaped(b, b.in(1), {columns, blocks, BytesFor(attrs.block, attrs.bits)}, "weights"));
  ONCILLA_ASSIGN(const ValueId scales, Shaped(b, b.in(2), {columns, blocks}, "scales"));
  ValueId zeros = b.in(3);
  if (zeros != kNoValue) {
    const bool packed = b.dtype(3) == DType::kU8;
    ONCILLA_ASSIGN(
        zeros,
        Shaped(b, zeros, {columns, packed ? BytesFor(blocks, attrs.bits) : blocks}, "zeros"));
  }
  const bool bias = b.has(5);
  if (b.has(4)) return LowerInGroups(b, attrs, columns, {weights, scales, zeros});
  Values inputs = {b.in(0), weights, scales};
  if (zeros != kNoValue) inputs.push_back(zeros);
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, std::move(inputs), bias ? "product" : ""));
  if (!bias) return Values{y};
  return One(b.Add("Add", {}, {y, b.in(5)}));
}

// Converts x of a 4-bit type to bytes; leaves bytes as they are.
Result<ValueId> AsBytes(OnnxLowering& b, ValueId x, const std::string& name) {
  const DType dtype = b.fact(x).dtype;
  if (dtype == DType::kU8) return x;
  const CastStoredAttrs to = {.to = dtype == DType::kI4 ? DType::kI8 : DType::kU8};
  return b.Add("CastStored", to, {x}, name + "_bytes");
}

// GatherBlockQuantized: a table of numbers of few bits. Slices are taken along one axis; each
// `block` numbers along another (or the same) axis share a scale and a zero point.
struct BlockTable {
  DType dtype;          // of the data
  int64_t bits = 4;     // of a number
  int64_t block = 128;  // how many numbers along the scaled axis share a scale
  int64_t size = 0;     // how many numbers there are along the scaled axis
  int rank = 0, taken = 0, scaled = 0;
  int scaled_out = 0;  // the scaled axis of the result
  bool bytes_of_several() const { return dtype == DType::kU8; }
};

// Floating-point types of 8 or 4 bits.
bool IsReal(DType dtype) { return IsSmallFloat(dtype) && dtype != DType::kF8E8M0; }

Result<BlockTable> ReadBlockTable(OnnxLowering& b) {
  BlockTable t{.dtype = b.dtype()};
  ONCILLA_ASSIGN(t.bits, ReadBits(b, "bits"));
  ONCILLA_ASSIGN(t.block, b.Int("block_size", 128));
  ONCILLA_ASSIGN(const int64_t axis, b.Int("gather_axis", 0));
  ONCILLA_ASSIGN(const int64_t along, b.Int("quantize_axis", 1));
  const bool real = IsReal(t.dtype);
  if (!real && !t.bytes_of_several() && t.dtype != DType::kI4 && t.dtype != DType::kU4) {
    return Unsupported("of data of ", t.dtype);
  }
  ONCILLA_ASSIGN(t.rank, b.Rank(0));
  ONCILLA_ASSIGN(const int index_rank, b.Rank(1, "the indices"));
  ONCILLA_ASSIGN(t.taken, NormalizeAxis(axis, t.rank));
  ONCILLA_ASSIGN(t.scaled, NormalizeAxis(along, t.rank));
  if (t.bytes_of_several() && (t.scaled != t.rank - 1 || t.taken == t.scaled)) {
    return Unsupported("of bytes with quantize_axis ", along, " and gather_axis ", axis,
                       " of rank ", t.rank);
  }
  const PartialShape shape = b.in_fact(0).shape;
  const Dim width = shape.ranked() ? shape[t.scaled] : Dim();
  constexpr int64_t kMost = int64_t{1} << 40;
  if (!width.known() || width.size < 1 || width.size > kMost) {
    return Unsupported("of an unknown number of numbers along quantize_axis");
  }
  t.size = t.bytes_of_several() ? width.size * 8 / t.bits : width.size;
  if (real && t.block == 0) t.block = t.size;
  if (t.block < 1 || t.block > kMost) return InvalidArgument("block_size is ", t.block);
  // Each of the numbers gets an entry in the list of block indices (OfBlocks).
  constexpr int64_t kMostListed = int64_t{1} << 24;
  if (t.size > kMostListed && t.block < t.size && t.taken != t.scaled) {
    return Unsupported("with ", t.size, " numbers along quantize_axis");
  }
  t.scaled_out = t.scaled <= t.taken ? t.scaled : t.scaled + index_rank - 1;
  return t;
}

// The scale or zero point of each number that is taken.
Result<ValueId> OfBlocks(OnnxLowering& b, const BlockTable& t, ValueId x, const std::string& name) {
  const ValueId block = b.Constant(Tensor::ScalarInt64(t.block));
  ValueId places = b.in(1);
  if (t.taken == t.scaled) {
    const ValueId size = b.Constant(Tensor::ScalarInt64(t.size));
    ONCILLA_ASSIGN(places, b.Cast(places, DType::kI64, name + "_wide_places"));
    ONCILLA_ASSIGN(places, b.Add("FloorMod", {}, {places, size}, name + "_from_start"));
    ONCILLA_ASSIGN(places, b.Add("FloorDiv", {}, {places, block}, name + "_blocks"));
    return b.Add(GatherAttrs{.axis = t.taken}, {x, places}, name);
  }
  const PartialShape own = b.fact(x).shape, data = b.in_fact(0).shape;
  if (!own.ranked()) return Unsupported("the rank of the ", name, " is not known");
  if (own.rank() != t.rank) return InvalidArgument(name, " of the shape ", own);
  if (own[t.taken].known() && own[t.taken].size == 1 && !own[t.taken].Same(data[t.taken])) {
    // A single scale for all slices, which only tables of floating-point numbers have.
    ONCILLA_ASSIGN(const ValueId none, b.Scalar(b.dtype(1), 0));
    ONCILLA_ASSIGN(places, b.Add("Mul", {}, {places, none}, name + "_firsts"));
  }
  ONCILLA_ASSIGN(x, b.Add(GatherAttrs{.axis = t.taken}, {x, places}, name + "_rows"));
  if (t.block >= t.size) return x;
  std::vector<int64_t> of;
  for (int64_t i = 0; i < t.size; ++i) of.push_back(i / t.block);
  return b.Add(GatherAttrs{.axis = t.scaled_out}, {x, b.Ints(std::move(of))}, name);
}

// Only the slices that are taken are unpacked.
Result<Values> LowerGatherBlockQuantized(OnnxLowering& b) {
  ONCILLA_ASSIGN(const BlockTable t, ReadBlockTable(b));
  const DType to = b.dtype(2);
  const GatherAttrs rows = {.axis = t.taken};
  const int64_t held = t.bytes_of_several() ? t.bits : 8;
  ValueId x = kNoValue;
  // Tensors of such types are constants, which are widened when the graph is compiled.
  if (IsReal(t.dtype)) {
    ONCILLA_ASSIGN(x, b.Add("CastStored", CastStoredAttrs{.to = DType::kF32}, {b.in(0)}, "data"));
    ONCILLA_ASSIGN(x, b.Add(rows, {x, b.in(1)}, "rows"));
  } else {
    ONCILLA_ASSIGN(x, AsBytes(b, b.in(0), "data"));
    ONCILLA_ASSIGN(x, b.Add(rows, {x, b.in(1)}, "rows"));
    ONCILLA_ASSIGN(x, Numbers(b, x, held, t.size, "numbers"));
  }
  ONCILLA_ASSIGN(x, b.Cast(x, to, "numbers_real"));
  if (b.has(3)) {
    if (b.dtype(3) != t.dtype || IsReal(t.dtype)) {
      return InvalidArgument("zero points of ", b.dtype(3), " for data of ", t.dtype);
    }
    ONCILLA_ASSIGN(ValueId zeros, AsBytes(b, b.in(3), "zero_points"));
    ONCILLA_ASSIGN(zeros, Numbers(b, zeros, held, (t.size + t.block - 1) / t.block, "zeros"));
    ONCILLA_ASSIGN(zeros, OfBlocks(b, t, zeros, "zeros_of_numbers"));
    ONCILLA_ASSIGN(zeros, b.Cast(zeros, to, "zeros_real"));
    ONCILLA_ASSIGN(x, b.Add("Sub", {}, {x, zeros}, "moved"));
  } else if (t.bytes_of_several()) {
    ONCILLA_ASSIGN(const ValueId middle,
                   b.Scalar(to, static_cast<double>(int64_t{1} << (t.bits - 1))));
    ONCILLA_ASSIGN(x, b.Add("Sub", {}, {x, middle}, "moved"));
  }
  ONCILLA_ASSIGN(const ValueId scales, OfBlocks(b, t, b.in(2), "scales"));
  return One(b.Add("Mul", {}, {x, scales}));
}

// The activation between the two products of an expert.
Result<ValueId> AddExpertActivation(OnnxLowering& b, ValueId x) {
  ONCILLA_ASSIGN(const std::string kind, b.String("activation_type", "relu"));
  ONCILLA_ASSIGN(const float alpha, b.Float("activation_alpha", 1));
  ONCILLA_ASSIGN(const float beta, b.Float("activation_beta", 0));
  ONCILLA_ASSIGN(const float limit,
                 b.Float("swiglu_limit", std::numeric_limits<float>::infinity()));
  ONCILLA_ASSIGN(const int64_t fusion, b.Int("swiglu_fusion", 0));
  if (kind == "identity") return x;
  if (kind == "relu") return b.Add("Relu", {}, {x}, "activated");
  if (kind == "gelu") return b.Add(GeluAttrs{.approximate = true}, {x}, "activated");
  if (kind == "silu") return b.Add("Silu", {}, {x}, "activated");
  if (kind != "swiglu") return Unsupported("with the activation ", kind);
  if (fusion != 1) return Unsupported("with swiglu_fusion ", fusion, "; 1 is");
  // Gates and values alternate: gate * sigmoid(alpha gate) * (value + beta), clipped at the limit.
  const DType dtype = b.fact(x).dtype;
  const auto part = [&](int64_t first, const char* name) {
    return b.Add("Slice", {},
                 {x, b.Ints({first}), b.Ints({std::numeric_limits<int64_t>::max()}), b.Ints({-1}),
                  b.Ints({2})},
                 name);
  };
  ONCILLA_ASSIGN(ValueId gate, part(0, "gate"));
  ONCILLA_ASSIGN(ValueId value, part(1, "gated"));
  if (limit < std::numeric_limits<float>::infinity()) {
    ONCILLA_ASSIGN(const ValueId most, b.Scalar(dtype, double{limit}));
    ONCILLA_ASSIGN(const ValueId least, b.Scalar(dtype, -double{limit}));
    ONCILLA_ASSIGN(gate, b.Add("Min", {}, {gate, most}, "gate_cut"));
    ONCILLA_ASSIGN(value, b.Add("Clip", {}, {value, least, most}, "gated_cut"));
  }
  ONCILLA_ASSIGN(const ValueId slope, b.Scalar(dtype, double{alpha}));
  ONCILLA_ASSIGN(const ValueId offset, b.Scalar(dtype, double{beta}));
  ONCILLA_ASSIGN(ValueId open, b.Add("Mul", {}, {gate, slope}, "steep"));
  ONCILLA_ASSIGN(open, b.Add("Sigmoid", {}, {open}, "open"));
  ONCILLA_ASSIGN(gate, b.Add("Mul", {}, {gate, open}, "gate_open"));
  ONCILLA_ASSIGN(value, b.Add("Add", {}, {value, offset}, "gated_raised"));
  return b.Add("Mul", {}, {gate, value}, "activated");
}

// The k experts with the largest scores for each row, [M, k], and their weights: the softmax over
// those k scores, or their share of the softmax over all experts.
struct Routes {
  int64_t k = 1, experts = 0, width = 0;
  ValueId rows = kNoValue;  // x as f32[M, width]
  ValueId ids = kNoValue, weights = kNoValue;
};
Result<Routes> ReadRoutes(OnnxLowering& b, bool among_chosen) {
  Routes r;
  ONCILLA_ASSIGN(r.k, b.Int("k", 1));
  ONCILLA_ASSIGN(const bool sparse, b.Flag("use_sparse_mixer", false));
  if (sparse) return Unsupported("with use_sparse_mixer");
  const PartialShape x = b.in_fact(0).shape, scores = b.in_fact(1).shape;
  if (!x.ranked() || x.rank() < 2 || !x[x.rank() - 1].known() || !scores.ranked() ||
      scores.rank() != 2 || !scores[1].known()) {
    return Unsupported("the width of the input or the number of experts is not known");
  }
  r.width = x[x.rank() - 1].size, r.experts = scores[1].size;
  if (r.k < 1 || r.k > r.experts) return InvalidArgument(r.k, " of ", r.experts, " experts");
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(0), DType::kF32, "x"));
  ONCILLA_ASSIGN(r.rows, b.Add(ReshapeAttrs{}, {wide, b.Ints({-1, r.width})}, "rows"));
  ONCILLA_ASSIGN(ValueId score, b.Cast(b.in(1), DType::kF32, "scores"));
  if (!among_chosen) {
    ONCILLA_ASSIGN(score, b.Add("Softmax", {}, {score}, "parts"));
  }
  ONCILLA_ASSIGN(const Values top,
                 b.AddAll(TopKAttrs{.axis = 1}, {score, b.Ints({r.k})}, "chosen"));
  r.weights = top[0], r.ids = top[1];
  if (among_chosen) {
    ONCILLA_ASSIGN(r.weights, b.Add("Softmax", {}, {top[0]}, "weights"));
  }
  return r;
}

// y in the shape of the first input, except for the last axis, and in its type.
Result<Values> AsInput(OnnxLowering& b, ValueId y) {
  const PartialShape shape = b.in_fact(0).shape;
  ONCILLA_ASSIGN(const ValueId lead, b.Sizes(b.in(0), 0, shape.rank() - 1, "lead"));
  ONCILLA_ASSIGN(const ValueId last, b.Sizes(y, 1, 2, "width"));
  ONCILLA_ASSIGN(const ValueId sizes, b.Add(ConcatAttrs{.axis = 0}, {lead, last}, "sizes"));
  const bool narrow = b.dtype() != DType::kF32;
  ONCILLA_ASSIGN(const ValueId out, b.Add(ReshapeAttrs{}, {y, sizes}, narrow ? "wide_y" : ""));
  return narrow ? One(b.Cast(out, b.dtype(), "")) : Result<Values>(Values{out});
}

// The products of all experts with all rows, [E, M, N], plus the bias.
Result<ValueId> AddAllExperts(OnnxLowering& b, ValueId x, size_t weights, size_t bias,
                              const std::string& name) {
  ONCILLA_ASSIGN(const ValueId w, b.Cast(b.in(weights), DType::kF32, name + "_weights"));
  ONCILLA_ASSIGN(ValueId y, b.Add(MatMulAttrs{.transpose_b = true}, {x, w}, name));
  if (!b.has(bias)) return y;
  ONCILLA_ASSIGN(ValueId more, b.Cast(b.in(bias), DType::kF32, name + "_bias_wide"));
  ONCILLA_ASSIGN(more, b.Unsqueeze(more, {1}, name + "_bias"));
  return b.Add("Add", {}, {y, more}, name + "_biased");
}

// Every expert computes every row: E / k times the necessary work, but in few large products. The
// results of experts that were not chosen are discarded, even if they are NaN.
Result<Values> LowerMoe(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool normalised, b.Flag("normalize_routing_weights", false));
  if (b.has(6) || b.has(7)) return Unsupported("with a third product (fc3)");
  ONCILLA_ASSIGN(const Routes r, ReadRoutes(b, normalised));
  ONCILLA_ASSIGN(const ValueId x, b.Unsqueeze(r.rows, {0}, "rows_of_all"));
  ONCILLA_ASSIGN(ValueId y, AddAllExperts(b, x, 2, 3, "first"));
  ONCILLA_ASSIGN(y, AddExpertActivation(b, y));
  ONCILLA_ASSIGN(y, AddAllExperts(b, y, 4, 5, "second"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF32, 0));
  ONCILLA_ASSIGN(const ValueId shape, b.Sizes(b.in(1), 0, 2, "routes_shape"));
  ONCILLA_ASSIGN(ValueId weights, b.Add("Expand", {}, {zero, shape}, "no_weights"));
  ONCILLA_ASSIGN(weights, b.Add(ScatterElementsAttrs{.axis = 1}, {weights, r.ids, r.weights},
                                "weight_of_each"));
  ONCILLA_ASSIGN(weights, b.Transpose(weights, {1, 0}, "weights_by_expert"));
  ONCILLA_ASSIGN(weights, b.Unsqueeze(weights, {2}, "weights_upright"));
  ONCILLA_ASSIGN(const ValueId none, b.Add("Equal", {}, {weights, zero}, "not_chosen"));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, weights}, "weighted"));
  ONCILLA_ASSIGN(y, b.Add("Where", {}, {none, zero, y}, "chosen_only"));
  ONCILLA_ASSIGN(y, b.Add("ReduceSum", ReduceAttrs{.keep_dims = false}, {y, b.Ints({0})}, "sum"));
  return AsInput(b, y);
}

// One of the two products of the experts, with packed weights.
struct PackedProduct {
  size_t weights = 0, zeros = 0;  // inputs; scales and bias follow the weights
  int64_t bits = 4, block = 0;
};
// The zero points in the layout of MatMulPacked; `sizes` is [experts, columns, blocks]. If each row
// is one block, they come as [experts, bytes], packed along the columns.
Result<ValueId> ZerosOfExperts(OnnxLowering& b, const PackedProduct& p,
                               const std::array<int64_t, 3>& sizes, const std::string& name) {
  ValueId x = b.in(p.zeros);
  if (b.dtype(p.zeros) != DType::kU8) return Unsupported("zero points of ", b.dtype(p.zeros));
  ONCILLA_ASSIGN(const int rank, b.Rank(p.zeros, "the zero points"));
  const auto& [experts, columns, blocks] = sizes;
  if (rank != 2 || p.block != 0 || p.bits == 8) {
    return b.Add(ReshapeAttrs{}, {x, b.Ints({experts, columns, BytesFor(blocks, p.bits)})},
                 name + "_zeros");
  }
  ONCILLA_ASSIGN(x, Numbers(b, x, p.bits, columns, name + "_zero_numbers"));
  ONCILLA_ASSIGN(x, b.Cast(x, DType::kF32, name + "_zeros_real"));
  return b.Add(ReshapeAttrs{}, {x, b.Ints({experts, columns, 1})}, name + "_zeros");
}

// The product of the rows f32[M, k, depth] with the weights of the expert that `ids` names for
// each.
Result<ValueId> AddPackedExperts(OnnxLowering& b, ValueId x, ValueId ids, const PackedProduct& p,
                                 const std::string& name) {
  const PartialShape shape = b.in_fact(p.weights).shape;
  const PartialShape rows = b.fact(x).shape;
  if (!shape.ranked() || shape.rank() != 3 || !shape.known() || !rows.ranked() ||
      !rows[2].known()) {
    return Unsupported("the sizes of the weights at input ", p.weights, " are not known");
  }
  MatMulPackedAttrs attrs = {.bits = p.bits, .block = p.block, .depth = rows[2].size};
  if (attrs.block == 0) attrs.block = attrs.depth;
  if (attrs.depth < 1 || attrs.depth % attrs.block != 0) {
    return Unsupported("with blocks of ", attrs.block, " in rows of ", attrs.depth);
  }
  const int64_t experts = shape[0].size, columns = shape[1].size;
  const int64_t blocks = attrs.depth / attrs.block;
  const auto shaped = [&](ValueId t, std::vector<int64_t> sizes, const char* what) {
    return b.Add(ReshapeAttrs{}, {t, b.Ints(std::move(sizes))}, name + what);
  };
  ONCILLA_ASSIGN(const ValueId weights,
                 shaped(b.in(p.weights),
                        {experts, columns, blocks, BytesFor(attrs.block, attrs.bits)}, "_weights"));
  ONCILLA_ASSIGN(ValueId scales, b.Cast(b.in(p.weights + 1), DType::kF32, name + "_scales_wide"));
  ONCILLA_ASSIGN(scales, shaped(scales, {experts, columns, blocks}, "_scales"));
  ValueId zeros = kNoValue;
  if (b.has(p.zeros)) {
    ONCILLA_ASSIGN(zeros, ZerosOfExperts(b, p, {experts, columns, blocks}, name));
  }
  ONCILLA_ASSIGN(ValueId y, b.Add(attrs, {x, weights, scales, zeros, ids}, name));
  if (!b.has(p.weights + 2)) return y;
  ONCILLA_ASSIGN(ValueId bias, b.Cast(b.in(p.weights + 2), DType::kF32, name + "_bias_wide"));
  ONCILLA_ASSIGN(bias, b.Add(GatherAttrs{}, {bias, ids}, name + "_bias"));
  return b.Add("Add", {}, {y, bias}, name + "_biased");
}

Status CheckQMoe(OnnxLowering& b, int64_t bits) {
  b.Ignore("accuracy_level");
  ONCILLA_ASSIGN(const std::string kind, b.String("quant_type", "int"));
  if (kind != "int") return Unsupported("with quant_type ", kind);
  ONCILLA_ASSIGN(const int64_t prepacked, b.Int("weights_prepacked", 0));
  if (prepacked > 0) return Unsupported("with weights in a layout of a device's own");
  for (const char* name :
       {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"}) {
    ONCILLA_ASSIGN(const int64_t own, b.Int(name, 0));
    if (own > 0 && own != bits) return Unsupported("with ", name, " ", own);
  }
  for (size_t i : {8, 9, 10, 13}) {
    if (b.has(i)) return Unsupported("with a third product (fc3)");
  }
  for (size_t i = 15; i < b.inputs(); ++i) {
    if (b.has(i)) return Unsupported("with input ", i, ", a scale");
  }
  return {};
}

// The weights of the chosen experts: the softmax of their scores, or values from the input
// router_weights [M, experts], divided by their sum if normalize_routing_weights is set.
Result<ValueId> WeightsOfChosen(OnnxLowering& b, const Routes& r) {
  constexpr size_t kRouterWeights = 14;
  ONCILLA_ASSIGN(const bool normalised, b.Flag("normalize_routing_weights", false));
  if (!b.has(kRouterWeights)) return r.weights;
  ONCILLA_ASSIGN(const ValueId all, b.Cast(b.in(kRouterWeights), DType::kF32, "router_weights"));
  ONCILLA_ASSIGN(const ValueId own,
                 b.Add(GatherElementsAttrs{.axis = 1}, {all, r.ids}, "router_weights_of_chosen"));
  if (!normalised) return own;
  ONCILLA_ASSIGN(const ValueId sum, b.Add("ReduceSum", ReduceAttrs{.keep_dims = true},
                                          {own, b.Ints({1})}, "router_sum"));
  return b.Add("Div", {}, {own, sum}, "router_parts");
}

// Only the chosen experts compute, and their weights stay packed.
Result<Values> LowerQMoe(OnnxLowering& b) {
  PackedProduct first = {.weights = 2, .zeros = 11};
  ONCILLA_ASSIGN(first.bits, ReadBits(b, "expert_weight_bits"));
  ONCILLA_ASSIGN(first.block, b.Int("block_size", 0));
  if (first.block < 0) first.block = 0;
  ONCILLA_TRY(CheckQMoe(b, first.bits));
  ONCILLA_ASSIGN(const Routes r, ReadRoutes(b, true));
  ONCILLA_ASSIGN(ValueId x, b.Unsqueeze(r.rows, {1}, "rows_apart"));
  ONCILLA_ASSIGN(x, b.Add("Expand", {}, {x, b.Ints({1, r.k, 1})}, "rows_of_chosen"));
  ONCILLA_ASSIGN(ValueId y, AddPackedExperts(b, x, r.ids, first, "first"));
  ONCILLA_ASSIGN(y, AddExpertActivation(b, y));
  PackedProduct second = first;
  second.weights = 5, second.zeros = 12;
  ONCILLA_ASSIGN(y, AddPackedExperts(b, y, r.ids, second, "second"));
  ONCILLA_ASSIGN(ValueId weights, WeightsOfChosen(b, r));
  ONCILLA_ASSIGN(weights, b.Unsqueeze(weights, {1}, "weights_in_a_row"));
  ONCILLA_ASSIGN(y, b.Add("MatMul", {}, {weights, y}, "weighted"));
  ONCILLA_ASSIGN(y, b.Add("Squeeze", {}, {y, b.Ints({1})}, "sum"));
  return AsInput(b, y);
}

Result<Values> RefuseGeneration(OnnxLowering&) {
  return Unsupported(
      "as it holds the loop of text generation: run its decoder, the graph inside, "
      "step by step and choose the next word outside");
}
Result<Values> RefuseDevicePacking(OnnxLowering&) {
  return Unsupported(
      "as it is made for servers on GPUs: export the model for the CPU provider, "
      "with MultiHeadAttention or GroupQueryAttention");
}

constexpr OnnxOpRow kRows[] = {
    {"GatherBlockQuantized", 1, kNewestOnnxMicrosoft, 3, "", LowerGatherBlockQuantized},
    {"MatMulNBits", 1, kNewestOnnxMicrosoft, 3, "", LowerMatMulNBits},
    {"MoE", 1, kNewestOnnxMicrosoft, 3, "", LowerMoe},
    {"QMoE", 1, kNewestOnnxMicrosoft, 4, "", LowerQMoe},
};

constexpr OnnxOpRow kRefusedRows[] = {
    {"BeamSearch", 1, kNewestOnnxMicrosoft, 0, "", RefuseGeneration},
    {"GreedySearch", 1, kNewestOnnxMicrosoft, 0, "", RefuseGeneration},
    {"PackedAttention", 1, kNewestOnnxMicrosoft, 0, "", RefuseDevicePacking},
    {"PackedMultiHeadAttention", 1, kNewestOnnxMicrosoft, 0, "", RefuseDevicePacking},
    {"PagedAttention", 1, kNewestOnnxMicrosoft, 0, "", RefuseDevicePacking},
    {"Sampling", 1, kNewestOnnxMicrosoft, 0, "", RefuseGeneration},
    {"WhisperBeamSearch", 1, kNewestOnnxMicrosoft, 0, "", RefuseGeneration},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftPackedRows() { return kRows; }
std::span<const OnnxOpRow> MicrosoftRefusedRows() { return kRefusedRows; }

}  // namespace oncilla
