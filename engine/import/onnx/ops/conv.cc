// ONNX's convolutions: channels-first, filters [out, in/groups, spatial..]. The canonical ops are
// channels-last, so there are transposes around them, which passes move, cancel and fold.
#include "engine/import/onnx/lowering.h"
#include "engine/import/onnx/ops/window.h"

namespace oncilla {
namespace {

// The rank of x and the filter, from whichever has a known one.
Result<int> ConvRank(OnnxLowering& b) {
  auto rank = b.Rank(0);
  if (!rank.ok()) rank = b.Rank(1);
  if (rank.ok() && (*rank < 3 || *rank > 5)) {
    return Unsupported("with ", *rank - 2, " spatial axes");
  }
  return rank;
}

// kernel_shape repeats the filter's shape; if both are known they must agree.
Status CheckKernelShape(OnnxLowering& b, int spatial) {
  ONCILLA_ASSIGN(const auto kernel, OnnxSpatialList(b, "kernel_shape", spatial));
  const PartialShape filter = b.in_fact(1).shape;
  if (!filter.ranked() || filter.rank() != spatial + 2) return {};
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Dim& size = filter[static_cast<int>(i) + 2];
    if (size.known() && size.size != kernel[i]) {
      return InvalidArgument("kernel_shape says ", kernel[i], " and the filter is ", filter);
    }
  }
  return {};
}

// Transposes [a, b, spatial..] to [spatial.., b, a].
Result<ValueId> FilterLast(OnnxLowering& b, int rank) {
  std::vector<int64_t> perm;
  for (int i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  perm.push_back(0);
  return b.Transpose(b.in(1), std::move(perm), "filter");
}

Result<Values> LowerConv(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, ConvRank(b));
  ONCILLA_TRY(CheckKernelShape(b, rank - 2));
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, rank - 2, true));
  auto attrs = window.As<ConvAttrs>();
  ONCILLA_ASSIGN(attrs.groups, b.Int("group", 1));
  ONCILLA_ASSIGN(const ValueId filter, FilterLast(b, rank));
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x, filter, b.in(2)}, "inner"));
  return One(b.ChannelsFirst(y, rank));
}

Result<Values> LowerConvTranspose(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, ConvRank(b));
  const int spatial = rank - 2;
  ONCILLA_TRY(CheckKernelShape(b, spatial));
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, spatial, true));
  auto attrs = window.As<ConvTransposeAttrs>();
  ONCILLA_ASSIGN(attrs.groups, b.Int("group", 1));
  ONCILLA_ASSIGN(attrs.output_pads, OnnxSpatialList(b, "output_padding", spatial));
  ONCILLA_ASSIGN(std::vector<int64_t> output_shape, b.IntList("output_shape"));
  ValueId sizes = kNoValue;
  if (!output_shape.empty()) {
    // Some files list all axes of the result.
    if (static_cast<int>(output_shape.size()) == rank) {
      output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
    }
    if (static_cast<int>(output_shape.size()) != spatial) {
      return InvalidArgument("output_shape has ", output_shape.size(), " entries, not ", spatial);
    }
    sizes = b.Ints(std::move(output_shape));
    // The padding follows from the sizes; an odd element goes to the beginning unless SAME_UPPER is
    // given.
    if (attrs.auto_pad != "same_upper") attrs.auto_pad = "same_lower";
    attrs.pads.clear();
  }
  ONCILLA_ASSIGN(const ValueId filter, FilterLast(b, rank));
  ONCILLA_ASSIGN(const ValueId x, b.ChannelsLast(b.in(0), rank));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x, filter, b.in(2), sizes}, "inner"));
  return One(b.ChannelsFirst(y, rank));
}

constexpr OnnxOpRow kRows[] = {
    {"Conv", 1, kNewestOnnxOpset, 2, "", LowerConv},
    {"ConvTranspose", 1, kNewestOnnxOpset, 2, "", LowerConvTranspose},
};

}  // namespace

std::span<const OnnxOpRow> OnnxConvRows() { return kRows; }

}  // namespace oncilla
