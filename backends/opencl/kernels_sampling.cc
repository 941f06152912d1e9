// Recipes of ops that read an image between its pixels: one work-item per element.
#include "backends/opencl/kernels.h"
#include "backends/opencl/move.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/sampling.h"

namespace oncilla::opencl {
namespace {

std::string DTypeName(const Fact& fact) { return std::string(Name(fact.dtype)); }
std::string Flag(bool set) { return set ? "1" : "0"; }

Result<Recipe> GridSample(const GridSampleAttrs& attrs, const NodeView& node,
                          const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  Recipe recipe;
  if (y.elements() == 0) return recipe;
  const int spatial = x.rank() - 2;
  const Indices index(std::max({x.elements(), y.elements(), node.inputs[1].desc().elements()}));
  Dispatch d{.source = &cl::kResizeGridSample, .entry = "grid_sample"};
  d.defines = {{"T", DTypeName(node.inputs[0])},
               {"G", DTypeName(node.inputs[1])},
               {"IDX", index.type()},
               {"TAPS", attrs.mode == "nearest"  ? "1"
                        : attrs.mode == "linear" ? "2"
                                                 : "4"},
               {"PADDING", attrs.padding == "zeros"    ? "0"
                           : attrs.padding == "border" ? "1"
                                                       : "2"},
               {"ALIGN", Flag(attrs.align_corners)},
               {"AXES", StrCat(spatial)}};
  d.args = {In{0},
            In{1},
            Out{0},
            index(y.elements()),
            index(y.shape.Product(1, y.rank() - 1)),
            static_cast<int32_t>(x.shape.back())};
  for (int i = spatial - 3; i < spatial; ++i) {
    d.args.push_back(static_cast<int32_t>(i < 0 ? 1 : x.shape[1 + i]));
  }
  LaunchFlat(d, y.elements(), caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

Result<Recipe> RoiAlign(const RoiAlignAttrs& attrs, const NodeView& node,
                        const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  Recipe recipe;
  if (y.elements() == 0) return recipe;
  const Indices index(std::max(x.elements(), y.elements()));
  Dispatch d{.source = &cl::kResizeRoiAlign, .entry = "roi_align"};
  d.defines = {{"T", DTypeName(node.inputs[0])},       {"R", DTypeName(node.inputs[1])},
               {"INDEX", DTypeName(node.inputs[2])},   {"IDX", index.type()},
               {"MAX", Flag(attrs.mode == "max")},     {"SAMPLES", StrCat(attrs.samples)},
               {"HALF_PIXEL", Flag(attrs.half_pixel)}, {"MOST", StrCat(kMostRoiSamples)}};
  d.args = {In{0}, In{1}, In{2}, Out{0}, index(y.elements())};
  for (int64_t size : {x.shape[0], x.shape[1], x.shape[2], x.shape[3], y.shape[1], y.shape[2]}) {
    d.args.push_back(static_cast<int32_t>(size));
  }
  d.args.push_back(static_cast<float>(attrs.scale));
  d.args.push_back(ErrorWord{});
  d.longest_loop = attrs.samples > 0 ? attrs.samples : kMostRoiSamples;
  LaunchFlat(d, y.elements(), caps);
  recipe.dispatches.push_back(std::move(d));
  return recipe;
}

// f64 places are read as float, so they need double arithmetic only to be loaded.
template <class Attrs>
Status CheckPlaces(const Attrs&, const NodeView& node, const Capabilities& caps) {
  if (node.inputs[1].dtype != DType::kF64 || caps.fp64) return Status();
  return Unsupported("opencl: ", node.op->name, " with places in f64 needs double arithmetic");
}

const KernelRow kRows[] = {
    Row<GridSample>("GridSample", kFloats).CanRun<CheckPlaces<GridSampleAttrs>>(),
    Row<RoiAlign>("RoiAlign", kFloats).CanRun<CheckPlaces<RoiAlignAttrs>>(),
};

}  // namespace

std::span<const KernelRow> SamplingKernels() { return kRows; }

}  // namespace oncilla::opencl
