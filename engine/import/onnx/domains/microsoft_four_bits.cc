// com.microsoft's products with weights of four bits in formats of their own: bitsandbytes', which
// nodes unpack that constant folding removes, and that of old models of ONNX Runtime (MatMulFpQ4).
#include "engine/import/onnx/lowering.h"
#include "engine/ops/math/packed.h"

namespace oncilla {
namespace {

// The values of the 4-bit codes of bitsandbytes: FP4 (a sign, then 0, 1/192, 2/3, ..), and NF4,
// quantiles of the normal distribution.
constexpr float kBnb4Tables[2][16] = {
    {0.0f, 5.208333333e-03f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f,
     -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
     -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
     0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
     0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f}};

// Weights [N, K] as pairs of 4-bit codes, the first in the upper half of a byte. Each `block_size`
// consecutive codes, which may span several rows, share a factor.
Result<Values> LowerMatMulBnb4(OnnxLowering& b) {
  b.Ignore("training_mode");
  ONCILLA_ASSIGN(const int64_t depth, b.NeedInt("K"));
  ONCILLA_ASSIGN(const int64_t columns, b.NeedInt("N"));
  ONCILLA_ASSIGN(const int64_t block, b.NeedInt("block_size"));
  ONCILLA_ASSIGN(const int64_t kind, b.NeedInt("quant_type"));
  ONCILLA_ASSIGN(const bool transposed, b.Flag("transB", true));
  constexpr int64_t kMost = int64_t{1} << 30;
  if (depth < 1 || depth > kMost || columns < 1 || columns > kMost || block < 2 || block > kMost ||
      block % 2 != 0 || (kind != 0 && kind != 1)) {
    return InvalidArgument("K ", depth, ", N ", columns, ", block_size ", block, ", quant_type ",
                           kind);
  }
  const int64_t count = depth * columns, blocks = (count + block - 1) / block;
  ONCILLA_ASSIGN(const ValueId bytes,
                 b.Add(ReshapeAttrs{}, {b.in(1), b.Ints({(count + 1) / 2, 1})}, "bytes"));
  ONCILLA_ASSIGN(const ValueId four, b.Scalar(DType::kU8, 4));
  ONCILLA_ASSIGN(const ValueId mask, b.Scalar(DType::kU8, 15));
  ONCILLA_ASSIGN(const ValueId upper, b.Add("ShiftRight", {}, {bytes, four}, "upper"));
  ONCILLA_ASSIGN(const ValueId lower, b.Add("BitAnd", {}, {bytes, mask}, "lower"));
  ONCILLA_ASSIGN(ValueId places, b.Add(ConcatAttrs{.axis = 1}, {upper, lower}, "pairs"));
  ONCILLA_ASSIGN(places, b.Add(ReshapeAttrs{}, {places, b.Ints({-1})}, "places"));
  // Pad the last block to its full size.
  const int64_t more = blocks * block - (count + 1) / 2 * 2;
  if (more > 0) {
    ONCILLA_ASSIGN(places, b.Add("Pad", {}, {places, b.Ints({0, more})}, "places_of_blocks"));
  }
  ONCILLA_ASSIGN(places, b.Add(ReshapeAttrs{}, {places, b.Ints({blocks, block})}, "blocks"));
  ONCILLA_ASSIGN(places, b.Cast(places, DType::kI32, "block_places"));
  const ValueId table = b.Constant(Tensor::Of<float>(DType::kF32, {16}, kBnb4Tables[kind]));
  ONCILLA_ASSIGN(ValueId weights, b.Add("Gather", {}, {table, places}, "numbers"));
  ONCILLA_ASSIGN(weights, b.Cast(weights, b.dtype(), "numbers_in_type"));
  ONCILLA_ASSIGN(const ValueId most,
                 b.Add(ReshapeAttrs{}, {b.in(2), b.Ints({blocks, 1})}, "factors"));
  ONCILLA_ASSIGN(weights, b.Add("Mul", {}, {weights, most}, "scaled"));
  ONCILLA_ASSIGN(weights, b.Add(ReshapeAttrs{}, {weights, b.Ints({-1})}, "in_one"));
  if (blocks * block != count) {
    ONCILLA_ASSIGN(weights, b.Add("Slice", {}, {weights, b.Ints({0}), b.Ints({count}), b.Ints({0})},
                                  "without_rest"));
  }
  ONCILLA_ASSIGN(weights, b.Add(ReshapeAttrs{}, {weights, b.Ints({columns, depth})}, "weights"));
  return One(b.Add(MatMulAttrs{.transpose_b = transposed}, {b.in(0), weights}));
}

// Bytes [n, 16], each with numbers i and i + 16 of 32, as bytes with numbers 2 i and 2 i + 1.
Result<ValueId> NeighboursInPairs(OnnxLowering& b, ValueId bytes) {
  ONCILLA_ASSIGN(const ValueId four, b.Scalar(DType::kU8, 4));
  ONCILLA_ASSIGN(const ValueId mask, b.Scalar(DType::kU8, 15));
  ONCILLA_ASSIGN(const ValueId upper, b.Add("ShiftRight", {}, {bytes, four}, "upper"));
  ONCILLA_ASSIGN(const ValueId lower, b.Add("BitAnd", {}, {bytes, mask}, "lower"));
  ONCILLA_ASSIGN(ValueId x, b.Add(ConcatAttrs{.axis = 1}, {lower, upper}, "numbers"));
  ONCILLA_ASSIGN(x, b.Add(ReshapeAttrs{}, {x, b.Ints({-1, 16, 2})}, "neighbours"));
  ONCILLA_ASSIGN(const ValueId one,
                 b.Add("Slice", {}, {x, b.Ints({0}), b.Ints({1}), b.Ints({2})}, "first_ones"));
  ONCILLA_ASSIGN(ValueId other,
                 b.Add("Slice", {}, {x, b.Ints({1}), b.Ints({2}), b.Ints({2})}, "second_ones"));
  ONCILLA_ASSIGN(other, b.Add("ShiftLeft", {}, {other, four}, "second_halves"));
  return b.Add("BitOr", {}, {one, other}, "neighbours_in_pairs");
}

// Weights [K, N] as a list of blocks of 32 numbers down a column, one column after the other: a
// factor of four bytes, with blk_quant_type 1 a zero point, and 16 bytes with the first 16 numbers
// in their lower halves, the others in the upper ones. Nodes that constant folding removes bring
// them into the order of MatMulPacked.
Result<Values> LowerMatMulFpQ4(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t kind, b.Int("blk_quant_type", 1));
  // ONNX Runtime's other types have blocks of 64 and 128.
  if (kind != 0 && kind != 1) return Unsupported("with blk_quant_type ", kind);
  ONCILLA_ASSIGN(const std::vector<int64_t> sizes, b.KnownInts(2, "the matrix's shape"));
  constexpr int64_t kMost = int64_t{1} << 30, kBlock = 32, kScale = 4;
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[0] > kMost || sizes[1] < 1 || sizes[1] > kMost) {
    return InvalidArgument("the matrix's shape is not two sizes from 1 to ", kMost);
  }
  if (b.dtype(0) != DType::kF32 || b.dtype(1) != DType::kU8) {
    return InvalidArgument("of ", b.dtype(0), " and ", b.dtype(1));
  }
  const int64_t depth = sizes[0], columns = sizes[1];
  const int64_t blocks = (depth + kBlock - 1) / kBlock;
  const int64_t first = kind == 0 ? kScale : kScale + 1, bytes = first + kBlock / 2;
  const auto part = [&](ValueId x, int64_t begin, int64_t end, const char* name) {
    return b.Add("Slice", {}, {x, b.Ints({begin}), b.Ints({end}), b.Ints({1})}, name);
  };
  ONCILLA_ASSIGN(const ValueId list,
                 b.Add(ReshapeAttrs{}, {b.in(1), b.Ints({columns * blocks, bytes})}, "blocks"));
  ONCILLA_ASSIGN(const ValueId factor_bytes, part(list, 0, kScale, "factor_bytes"));
  ONCILLA_ASSIGN(ValueId factors,
                 b.Add("Bitcast", BitcastAttrs{.to = DType::kF32}, {factor_bytes}, "factors"));
  ONCILLA_ASSIGN(factors,
                 b.Add(ReshapeAttrs{}, {factors, b.Ints({columns, blocks})}, "factors_by_column"));
  ONCILLA_ASSIGN(const ValueId bytes_of_pairs, part(list, first, bytes, "pairs"));
  ONCILLA_ASSIGN(const ValueId pairs, NeighboursInPairs(b, bytes_of_pairs));
  const ValueId shape = b.Ints({columns, blocks, kBlock / 2});
  ONCILLA_ASSIGN(const ValueId weights, b.Add(ReshapeAttrs{}, {pairs, shape}, "weights"));
  Values inputs = {b.in(0), weights, factors};
  if (kind != 0) {
    ONCILLA_ASSIGN(ValueId zeros, part(list, kScale, first, "zero_points"));
    ONCILLA_ASSIGN(zeros, b.Cast(zeros, DType::kF32, "zeros_real"));
    ONCILLA_ASSIGN(zeros, b.Add(ReshapeAttrs{}, {zeros, b.Ints({columns, blocks})}, "zeros"));
    inputs.push_back(zeros);
  }
  const MatMulPackedAttrs attrs = {.bits = 4, .block = kBlock, .depth = depth};
  return One(b.Add(attrs, std::move(inputs)));
}

constexpr OnnxOpRow kRows[] = {
    {"MatMulBnb4", 1, kNewestOnnxMicrosoft, 3, "", LowerMatMulBnb4},
    {"MatMulFpQ4", 1, kNewestOnnxMicrosoft, 3, "", LowerMatMulFpQ4},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftFourBitRows() { return kRows; }

}  // namespace oncilla
