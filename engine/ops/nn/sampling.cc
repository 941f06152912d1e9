// Sampling ops: inference and rows.
#include "engine/ops/nn/sampling.h"

#include <cmath>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Result<Facts> InferGridSample(const GridSampleAttrs& attrs, std::span<const Fact> in) {
  if (attrs.mode != "nearest" && attrs.mode != "linear" && attrs.mode != "cubic") {
    return InvalidArgument("there is no mode '", attrs.mode, "'");
  }
  if (attrs.padding != "zeros" && attrs.padding != "border" && attrs.padding != "reflection") {
    return InvalidArgument("there is no padding '", attrs.padding, "'");
  }
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  ONCILLA_TRY(RequireFloat(in[1], "grid"));
  const PartialShape &x = in[0].shape, &grid = in[1].shape;
  if (!x.ranked() || !grid.ranked()) {
    const int rank = x.ranked() ? x.rank() : grid.ranked() ? grid.rank() : -1;
    return Facts{Fact::Of(in[0].dtype, rank < 0 ? PartialShape() : PartialShape::OfRank(rank))};
  }
  const int spatial = x.rank() - 2;
  if (grid.rank() != x.rank() || spatial < 2 || spatial > 3) {
    return InvalidArgument("input and grid must have 2 or 3 spatial axes, not shapes ", x, " and ",
                           grid);
  }
  if (attrs.mode == "cubic" && spatial != 2) return InvalidArgument("mode cubic needs 2 axes");
  if (grid[spatial + 1].known() && grid[spatial + 1].size != spatial) {
    return InvalidArgument("grid has ", grid[spatial + 1], " coordinates, not ", spatial);
  }
  for (int i = 0; i < spatial; ++i) {
    if (x[1 + i].size == 0) return InvalidArgument("input has no pixels");
  }
  PartialShape shape = grid;
  ONCILLA_ASSIGN(const PartialShape samples,
                 MergeShapes(PartialShape({x[0]}), PartialShape({grid[0]})));
  shape[0] = samples[0];
  shape[spatial + 1] = x[spatial + 1];
  return Facts{Fact::Of(in[0].dtype, std::move(shape))};
}

Status CheckBins(int64_t height, int64_t width, double scale) {
  if (height < 1 || width < 1 || height > (1 << 20) || width > (1 << 20)) {
    return InvalidArgument("the output is ", height, " x ", width);
  }
  return std::isfinite(scale) ? Status() : InvalidArgument("scale is ", scale);
}

// Regions are vectors of `numbers` values; `count` is what is known otherwise of their number.
Result<Facts> RegionsOf(const Fact& x, const Fact& rois, int64_t numbers, Dim count, Dim height,
                        Dim width) {
  ONCILLA_TRY(RequireRank(x, 4, "input"));
  ONCILLA_TRY(RequireRank(rois, 2, "rois"));
  ONCILLA_TRY(RequireFloat(x, "input"));
  ONCILLA_TRY(RequireFloat(rois, "rois"));
  Dim channels;
  if (x.shape.ranked()) {
    channels = x.shape[3];
    if (x.shape[1].size == 0 || x.shape[2].size == 0) return InvalidArgument("input has no pixels");
  }
  if (rois.shape.ranked()) {
    ONCILLA_ASSIGN(const PartialShape shape,
                   MergeShapes(rois.shape, PartialShape({count, Dim(numbers)})));
    count = shape[0];
  }
  return Facts{Fact::Of(x.dtype, PartialShape({count, height, width, channels}))};
}

Result<Facts> InferRoiAlign(const RoiAlignAttrs& attrs, std::span<const Fact> in) {
  if (attrs.mode != "avg" && attrs.mode != "max") {
    return InvalidArgument("there is no mode '", attrs.mode, "'");
  }
  ONCILLA_TRY(CheckBins(attrs.height, attrs.width, attrs.scale));
  if (attrs.samples < 0 || attrs.samples > kMostRoiSamples) {
    return InvalidArgument("samples is ", attrs.samples);
  }
  ONCILLA_TRY(RequireRank(in[2], 1, "batch"));
  ONCILLA_TRY(RequireInteger(in[2], "batch"));
  const Dim count = in[2].shape.ranked() ? in[2].shape[0] : Dim();
  return RegionsOf(in[0], in[1], 4, count, Dim(attrs.height), Dim(attrs.width));
}

Result<Facts> InferMaxRoiPool(const MaxRoiPoolAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(CheckBins(attrs.height, attrs.width, attrs.scale));
  if (!(attrs.scale > 0)) return InvalidArgument("scale is ", attrs.scale);
  return RegionsOf(in[0], in[1], 5, Dim(), Dim(attrs.height), Dim(attrs.width));
}

constexpr OpDef kSamplingOps[] = {
    Op<InferGridSample>("GridSample", {.inputs = {2, 2}, .storage = StorageRule::kCoordinates}),
    Op<InferMaxRoiPool>("MaxRoiPool", {.inputs = {2, 2}, .storage = StorageRule::kCoordinates}),
    Op<InferRoiAlign>("RoiAlign", {.inputs = {3, 3}, .storage = StorageRule::kCoordinates}),
};

}  // namespace

std::span<const OpDef> SamplingOps() { return kSamplingOps; }

}  // namespace oncilla
