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

Result<Facts> InferRoiAlign(const RoiAlignAttrs& attrs, std::span<const Fact> in) {
  if (attrs.mode != "avg" && attrs.mode != "max") {
    return InvalidArgument("there is no mode '", attrs.mode, "'");
  }
  if (attrs.height < 1 || attrs.width < 1 || attrs.height > (1 << 20) || attrs.width > (1 << 20)) {
    return InvalidArgument("the output is ", attrs.height, " x ", attrs.width);
  }
  if (attrs.samples < 0 || attrs.samples > kMostRoiSamples) {
    return InvalidArgument("samples is ", attrs.samples);
  }
  if (!std::isfinite(attrs.scale)) return InvalidArgument("scale is ", attrs.scale);
  constexpr const char* kNames[] = {"input", "rois", "batch"};
  constexpr int kRanks[] = {4, 2, 1};
  for (size_t i = 0; i < 3; ++i) ONCILLA_TRY(RequireRank(in[i], kRanks[i], kNames[i]));
  ONCILLA_TRY(RequireFloat(in[0], "input"));
  ONCILLA_TRY(RequireFloat(in[1], "rois"));
  ONCILLA_TRY(RequireInteger(in[2], "batch"));
  Dim regions, channels;
  if (in[0].shape.ranked()) {
    channels = in[0].shape[3];
    if (in[0].shape[1].size == 0 || in[0].shape[2].size == 0) {
      return InvalidArgument("input has no pixels");
    }
  }
  if (in[2].shape.ranked()) regions = in[2].shape[0];
  if (in[1].shape.ranked()) {
    ONCILLA_ASSIGN(const PartialShape rois,
                   MergeShapes(in[1].shape, PartialShape({regions, Dim(4)})));
    regions = rois[0];
  }
  return Facts{Fact::Of(in[0].dtype,
                        PartialShape({regions, Dim(attrs.height), Dim(attrs.width), channels}))};
}

constexpr OpDef kSamplingOps[] = {
    Op<InferGridSample>("GridSample", {.inputs = {2, 2}, .storage = StorageRule::kCoordinates}),
    Op<InferRoiAlign>("RoiAlign", {.inputs = {3, 3}, .storage = StorageRule::kCoordinates}),
};

}  // namespace

std::span<const OpDef> SamplingOps() { return kSamplingOps; }

}  // namespace oncilla
