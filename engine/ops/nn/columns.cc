// Ops on columns of sliding windows (im2col, col2im, deformable convolution): inference and rows.
#include "engine/ops/nn/columns.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr int64_t kMostSize = int64_t{1} << 30;

int64_t At(const std::vector<int64_t>& list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

Status CheckLists(size_t spatial, const std::vector<int64_t>& strides,
                  const std::vector<int64_t>& dilations, const std::vector<int64_t>& pads) {
  const auto fits = [](const std::vector<int64_t>& list, size_t size) {
    return list.empty() || list.size() == size;
  };
  if (!fits(strides, spatial) || !fits(dilations, spatial) || !fits(pads, 2 * spatial)) {
    return InvalidArgument("strides, dilations and pads do not fit ", spatial, " spatial axes");
  }
  for (const auto* list : {&strides, &dilations}) {
    for (int64_t v : *list) {
      if (v < 1 || v > kMostSize) return InvalidArgument("a stride or dilation is ", v);
    }
  }
  for (int64_t v : pads) {
    if (v < 0 || v > kMostSize) return InvalidArgument("a padding is ", v);
  }
  return Status();
}

// One axis with the positions of its windows; at least one position is required.
Result<WindowAxis> AxisOf(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                          int64_t pad_begin, int64_t pad_end) {
  if (in < 0 || in > kMostSize || kernel < 1 || kernel > kMostSize) {
    return InvalidArgument("a window of ", kernel, " over ", in);
  }
  WindowAxis axis;
  axis.in = in, axis.kernel = kernel, axis.stride = stride, axis.dilation = dilation;
  axis.pad_begin = pad_begin, axis.pad_end = pad_end;
  const int64_t extent = SaturatingMul(kernel - 1, dilation);
  const int64_t room = in + pad_begin + pad_end - 1 - extent;
  if (room < 0) return InvalidArgument("a window of ", extent + 1, " does not fit over ", in);
  axis.out = room / stride + 1;
  return axis;
}

Result<Facts> InferFoldColumns(const FoldColumnsAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  ONCILLA_TRY(RequireRank(in[0], 3, "input"));
  for (size_t i : {size_t{1}, size_t{2}}) {
    ONCILLA_TRY(RequireInteger(in[i], i == 1 ? "image" : "block"));
    ONCILLA_TRY(RequireRank(in[i], 1, i == 1 ? "image" : "block"));
  }
  const PartialShape& x = in[0].shape;
  const auto image = KnownInts(in[1]), block = KnownInts(in[2]);
  if (!image) return Facts{Fact::Of(in[0].dtype, PartialShape())};
  if (block && block->size() != image->size()) {
    return InvalidArgument("image has ", image->size(), " sizes, block ", block->size());
  }
  if (image->size() + 2 > kMaxRank) return InvalidArgument(image->size(), " spatial axes");
  Dim channels;
  if (in[1].has_value() && in[2].has_value()) {
    ONCILLA_ASSIGN(const auto sizes, ToInt64s(in[1].value));
    ONCILLA_ASSIGN(const auto window, ToInt64s(in[2].value));
    ONCILLA_ASSIGN(const auto axes, FoldAxes(attrs, sizes, window));
    int64_t taps = 1, columns = 1;
    for (const WindowAxis& axis : axes) {
      taps = SaturatingMul(taps, axis.kernel);
      columns = SaturatingMul(columns, axis.out);
    }
    if (x.ranked() && x[2].known() && x[2].size != columns) {
      return InvalidArgument("there are ", x[2].size, " columns for ", columns, " windows");
    }
    if (x.ranked() && x[1].known()) {
      if (x[1].size % taps != 0) {
        return InvalidArgument("columns of ", x[1].size, " for windows of ", taps);
      }
      channels = Dim(x[1].size / taps);
    }
  }
  std::vector<Dim> dims = {x.ranked() ? x[0] : Dim(), channels};
  for (const Dim& size : *image) {
    if (size.known() && size.size < 0) return InvalidArgument("image contains ", size.size);
    dims.push_back(size);
  }
  return Facts{Fact::Of(in[0].dtype, PartialShape(std::move(dims)))};
}

// Checks that a last axis is the product of other sizes, as far as they are known.
Status RequireLast(const Fact& fact, int64_t size, std::string_view what) {
  if (fact.shape.ranked() && fact.shape[3].known() && fact.shape[3].size != size) {
    return InvalidArgument(what, " has ", fact.shape[3].size, " numbers for each place, not ",
                           size);
  }
  return Status();
}

Result<Facts> InferDeformConv(const DeformConvAttrs& attrs, std::span<const Fact> in) {
  constexpr const char* kNames[] = {"input", "filter", "offset", "bias", "mask"};
  constexpr int kRanks[] = {4, 4, 4, 1, 4};
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].absent()) continue;
    ONCILLA_TRY(RequireFloat(in[i], kNames[i]));
    ONCILLA_TRY(RequireRank(in[i], kRanks[i], kNames[i]));
    if (in[i].dtype != in[0].dtype) return InvalidArgument(kNames[i], " is ", in[i].dtype);
  }
  ONCILLA_TRY(CheckLists(2, attrs.strides, attrs.dilations, attrs.pads));
  if (attrs.groups < 1 || attrs.offset_groups < 1) {
    return InvalidArgument(attrs.groups, " groups and ", attrs.offset_groups, " of offsets");
  }
  const PartialShape &x = in[0].shape, &filter = in[1].shape;
  PartialShape y({Dim(), Dim(), Dim(), Dim()});
  if (x.ranked()) y[0] = x[0];
  if (filter.ranked()) y[3] = filter[3];
  if (x.ranked() && x[3].known() && x[3].size % attrs.offset_groups != 0) {
    return InvalidArgument(x[3].size, " channels in ", attrs.offset_groups, " groups of offsets");
  }
  if (!x.known() || !filter.known()) return Facts{Fact::Of(in[0].dtype, std::move(y))};
  if (SaturatingMul(filter[2].size, attrs.groups) != x[3].size ||
      filter[3].size % attrs.groups != 0) {
    return InvalidArgument("filter ", filter, " does not fit ", x[3].size, " channels in ",
                           attrs.groups, " groups");
  }
  ONCILLA_ASSIGN(const auto axes, DeformAxes(attrs, x.ToShape(), filter.ToShape()));
  y[1] = Dim(axes[0].out), y[2] = Dim(axes[1].out);
  const int64_t taps =
      SaturatingMul(SaturatingMul(filter[0].size, filter[1].size), attrs.offset_groups);
  ONCILLA_TRY(RequireLast(in[2], SaturatingMul(taps, int64_t{2}), "offset"));
  ONCILLA_TRY(MergeShapes(in[2].shape, PartialShape({y[0], y[1], y[2], Dim()})).status());
  if (in.size() > 3 && !in[3].absent()) {
    ONCILLA_TRY(MergeShapes(in[3].shape, PartialShape({y[3]})).status());
  }
  if (in.size() > 4 && !in[4].absent()) {
    ONCILLA_TRY(RequireLast(in[4], taps, "mask"));
    ONCILLA_TRY(MergeShapes(in[4].shape, PartialShape({y[0], y[1], y[2], Dim()})).status());
  }
  return Facts{Fact::Of(in[0].dtype, std::move(y))};
}

constexpr OpDef kColumnsOps[] = {
    Op<InferDeformConv>("DeformConv", {.inputs = {3, 5}, .storage = StorageRule::kCoordinates}),
    Op<InferFoldColumns>(
        "FoldColumns",
        {.inputs = {3, 3}, .plan_inputs = 0b110, .axes = Samples(), .storage = StorageRule::kSums}),
};

}  // namespace

Result<std::vector<WindowAxis>> FoldAxes(const FoldColumnsAttrs& attrs,
                                         std::span<const int64_t> image,
                                         std::span<const int64_t> block) {
  const size_t spatial = image.size();
  if (spatial < 1 || block.size() != spatial) {
    return InvalidArgument("image has ", spatial, " sizes, block ", block.size());
  }
  ONCILLA_TRY(CheckLists(spatial, attrs.strides, attrs.dilations, attrs.pads));
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < spatial; ++i) {
    ONCILLA_ASSIGN(const WindowAxis axis,
                   AxisOf(image[i], block[i], At(attrs.strides, i, 1), At(attrs.dilations, i, 1),
                          At(attrs.pads, i, 0), At(attrs.pads, spatial + i, 0)));
    axes.push_back(axis);
  }
  return axes;
}

Result<std::array<WindowAxis, 2>> DeformAxes(const DeformConvAttrs& attrs, const Shape& x,
                                             const Shape& filter) {
  ONCILLA_TRY(CheckLists(2, attrs.strides, attrs.dilations, attrs.pads));
  std::array<WindowAxis, 2> axes;
  for (size_t i = 0; i < 2; ++i) {
    const int at = static_cast<int>(i);
    ONCILLA_ASSIGN(axes[i],
                   AxisOf(x[1 + at], filter[at], At(attrs.strides, i, 1), At(attrs.dilations, i, 1),
                          At(attrs.pads, i, 0), At(attrs.pads, 2 + i, 0)));
  }
  return axes;
}

std::span<const OpDef> ColumnsOps() { return kColumnsOps; }

}  // namespace oncilla
