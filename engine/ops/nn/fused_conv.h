// Attributes and geometry of convolutions that are fused with preceding or following ops. Passes
// create these ops if a device supports them; importers do not.
#pragma once

#include "engine/ops/nn/conv.h"

namespace oncilla {

// Conv of x times gate[N, 1.., Cin]: x, filter, bias?, residual?, gate -> y. The gate is a factor
// for each channel of each sample, as in squeeze-and-excitation.
struct GatedConvInput {
  enum : size_t { kX, kFilter, kBias, kResidual, kGate };
};

// Three convolutions of images in one: x[N, H, W, Cin], expand[h, w, Cin, C]?, its bias[C]?,
// depthwise[kh, kw, 1, C], its bias[C]?, project[1, 1, C, Cout]?, its bias[Cout]?, residual (like
// y)? -> y = activation(project(depthwise_activation(depthwise(expand_activation(expand(x))))) +
// residual). Each sum includes its bias. Absent parts are left out: without expand, the filters of
// `depthwise` are applied to x; without project, their result is y. Then `mean` adds a second
// result, the mean of y over its pixels, [N, 1, 1, C].
struct InvertedResidualAttrs {
  std::vector<int64_t> expand_strides, expand_dilations, expand_pads;
  std::string expand_auto_pad = "explicit", expand_activation = "none";
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad = "explicit", depthwise_activation = "none";
  std::string activation = "none";
  bool mean = false;
  void Fields(auto&& field) {
    field("expand_strides", expand_strides);
    field("expand_dilations", expand_dilations);
    field("expand_pads", expand_pads);
    field("expand_auto_pad", expand_auto_pad);
    field("expand_activation", expand_activation);
    field("strides", strides);
    field("dilations", dilations);
    field("pads", pads);
    field("auto_pad", auto_pad);
    field("depthwise_activation", depthwise_activation);
    field("activation", activation);
    field("mean", mean);
  }
  ConvAttrs Expand() const;
  ConvAttrs Depthwise(int64_t channels) const;
};
struct InvertedResidualInput {
  enum : size_t {
    kX,
    kExpand,
    kExpandBias,
    kDepthwise,
    kDepthwiseBias,
    kProject,
    kProjectBias,
    kResidual
  };
};

// For an InvertedResidual that passed inference with all sizes known. Without expand, that member
// is unused.
struct InvertedResidualGeometry {
  WindowGeometry expand, depthwise;
  bool expands = false;
  int64_t columns = 0;  // of project; 0: there is none
};
Result<InvertedResidualGeometry> GeometryOf(const InvertedResidualAttrs& attrs,
                                            const NodeView& node);

// The geometry of a convolution of an input and a filter of these shapes.
Result<WindowGeometry> ConvGeometry(const ConvAttrs& attrs, const Shape& x, const Shape& filter);

}  // namespace oncilla
