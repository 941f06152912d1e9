// Recipes of ops that sample an image between its pixels: one work-item per element.
#include "engine/ops/nn/sampling.h"

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

Result<Recipe> GridSample(const GridSampleAttrs& attrs, const NodeView& node,
                          const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  if (y.elements() == 0) return Recipe();
  const int spatial = x.rank() - 2;
  const IndexType index(std::max({x.elements(), y.elements(), node.inputs[1].desc().elements()}),
                        IndexType::kPlaces);
  DispatchBuilder b(cl::kSamplingGridSample, "grid_sample", index);
  b.Define({{"T", TypeName(x.dtype)},
            {"G", TypeName(node.inputs[1].dtype)},
            {"IDX", index.name()},
            {"TAPS", attrs.mode == "nearest"  ? "1"
                     : attrs.mode == "linear" ? "2"
                                              : "4"},
            {"PADDING", attrs.padding == "zeros"    ? "0"
                        : attrs.padding == "border" ? "1"
                                                    : "2"},
            {"ALIGN", Flag(attrs.align_corners)},
            {"AXES", StrCat(spatial)}});
  b.Arg("x", In{0}).Arg("grid", In{1}).Arg("y", Out{0});
  b.Index({{"total", y.elements()}, {"places", y.shape.Product(1, y.rank() - 1)}});
  b.Int("channels", x.shape.back());
  for (int axis = 0; axis < 3; ++axis) {
    const int i = spatial - 3 + axis;
    b.Int(StrCat("size", axis), i < 0 ? 1 : x.shape[1 + i]);
  }
  return b.Flat(y.elements(), caps).Alone();
}

Result<Recipe> RoiAlign(const RoiAlignAttrs& attrs, const NodeView& node,
                        const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), y = node.outputs[0].desc();
  if (y.elements() == 0) return Recipe();
  const IndexType index(std::max(x.elements(), y.elements()), IndexType::kPlaces);
  DispatchBuilder b(cl::kSamplingRoiAlign, "roi_align", index);
  b.Define({{"T", TypeName(x.dtype)},
            {"R", TypeName(node.inputs[1].dtype)},
            {"INDEX", TypeName(node.inputs[2].dtype)},
            {"IDX", index.name()},
            {"MAX", Flag(attrs.mode == "max")},
            {"SAMPLES", StrCat(attrs.samples)},
            {"HALF_PIXEL", Flag(attrs.half_pixel)},
            {"MOST", StrCat(kMostRoiSamples)}});
  b.Arg("x", In{0}).Arg("rois", In{1}).Arg("batch", In{2}).Arg("y", Out{0});
  b.Index("total", y.elements());
  b.Int({{"images", x.shape[0]}, {"rows", x.shape[1]}, {"columns", x.shape[2]}});
  b.Int({{"channels", x.shape[3]}, {"bins_y", y.shape[1]}, {"bins_x", y.shape[2]}});
  b.Float("scale", attrs.scale).Error();
  b.Loop(attrs.samples > 0 ? attrs.samples : kMostRoiSamples);
  return b.Flat(y.elements(), caps).Alone();
}

// Coordinates in f64 are read as float, so double arithmetic is needed only to load them.
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
