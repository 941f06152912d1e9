// Ops on packed weights: inference and rows.
#include "engine/ops/math/packed.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int64_t kMostDepth = int64_t{1} << 40;

Status CheckAttrs(const MatMulPackedAttrs& attrs) {
  if (attrs.bits != 2 && attrs.bits != 4 && attrs.bits != 8) {
    return InvalidArgument("bits is ", attrs.bits, ", not 2, 4 or 8");
  }
  if (attrs.depth < 1 || attrs.depth > kMostDepth) {
    return InvalidArgument("depth is ", attrs.depth);
  }
  if (attrs.block < 1 || attrs.block > kMostDepth || attrs.block * attrs.bits % 8 != 0) {
    return InvalidArgument("blocks of ", attrs.block, " weights of ", attrs.bits,
                           " bits are not whole bytes");
  }
  return {};
}

Status Fits(const Fact& fact, const std::vector<Dim>& dims, std::string_view what) {
  const auto merged = MergeShapes(fact.shape, PartialShape(dims));
  return merged.ok() ? Status() : In(merged.status(), what);
}

Result<Facts> InferMatMulPacked(const MatMulPackedAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckAttrs(attrs));
  ONCILLA_TRY(RequireFloat(in[0], "x"));
  if (in[1].dtype != DType::kU8) return InvalidArgument("weights are ", in[1].dtype, ", not u8");
  if (in[2].dtype != in[0].dtype) {
    return InvalidArgument("scales are ", in[2].dtype, " and x is ", in[0].dtype);
  }
  const bool has_zeros = in.size() > 3 && !in[3].absent();
  const bool chosen = in.size() > 4 && !in[4].absent();
  const int rank = chosen ? 4 : 3;
  ONCILLA_TRY(RequireRank(in[1], rank, "weights"));
  const int64_t blocks = (attrs.depth + attrs.block - 1) / attrs.block;
  std::vector<Dim> lead(static_cast<size_t>(rank - 2));
  if (in[1].shape.ranked()) {
    for (int i = 0; i < rank - 2; ++i) lead[static_cast<size_t>(i)] = in[1].shape[i];
  }
  const auto with = [&](std::initializer_list<int64_t> sizes) {
    std::vector<Dim> dims = lead;
    for (int64_t size : sizes) dims.emplace_back(size);
    return dims;
  };
  ONCILLA_TRY(Fits(in[1], with({blocks, attrs.block * attrs.bits / 8}), "weights"));
  ONCILLA_TRY(Fits(in[2], with({blocks}), "scales"));
  if (has_zeros && in[3].dtype == DType::kU8) {
    ONCILLA_TRY(Fits(in[3], with({(blocks * attrs.bits + 7) / 8}), "zeros"));
  } else if (has_zeros) {
    if (in[3].dtype != in[0].dtype) {
      return InvalidArgument("zeros are ", in[3].dtype, ", neither u8 nor ", in[0].dtype);
    }
    ONCILLA_TRY(Fits(in[3], with({blocks}), "zeros"));
  }
  if (chosen && in[4].dtype != DType::kI32 && in[4].dtype != DType::kI64) {
    return InvalidArgument("matrix is ", in[4].dtype, ", not i32 or i64");
  }
  if (!in[0].shape.ranked()) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  if (in[0].shape.rank() < 1) return InvalidArgument("x is a scalar");
  std::vector<Dim> dims = in[0].shape.dims();
  if (dims.back().known() && dims.back().size != attrs.depth) {
    return InvalidArgument("x has rows of ", dims.back().size, ", weights of ", attrs.depth);
  }
  dims.pop_back();
  const Dim rows = PartialShape(dims).elements();
  if (chosen) {
    const Dim choices = in[4].shape.elements();
    if (rows.known() && choices.known() && rows.size != choices.size) {
      return InvalidArgument(choices.size, " choices of a matrix for ", rows.size, " rows");
    }
  }
  dims.push_back(lead.back());
  return Facts{Fact::Of(in[0].dtype, PartialShape(std::move(dims)))};
}

Result<Facts> InferUnpackBits(const UnpackBitsAttrs& attrs, std::span<const Fact> in) {
  if (attrs.bits != 1 && attrs.bits != 2 && attrs.bits != 4) {
    return InvalidArgument("bits is ", attrs.bits, ", not 1, 2 or 4");
  }
  if (in[0].dtype != DType::kU8) return InvalidArgument("x is ", in[0].dtype, ", not u8");
  if (!in[0].shape.ranked()) return Facts{Fact::Of(DType::kU8, PartialShape())};
  if (in[0].shape.rank() < 1) return InvalidArgument("x is a scalar");
  std::vector<Dim> dims = in[0].shape.dims();
  Dim& last = dims.back();
  last = last.known() ? Dim(SaturatingMul(last.size, 8 / attrs.bits)) : Dim();
  return Facts{Fact::Of(DType::kU8, PartialShape(std::move(dims)))};
}

constexpr OpDef kPackedOps[] = {
    Op<InferMatMulPacked>("MatMulPacked",
                          {.inputs = {3, 5}, .storage = StorageRule::kSums, .work = Work::kNone}),
    Op<InferUnpackBits>("UnpackBits", {.inputs = {1, 1}}),
};

}  // namespace

std::span<const OpDef> PackedOps() { return kPackedOps; }

}  // namespace oncilla
