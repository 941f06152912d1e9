// Attributes and geometry of convolutions, shared by inference and kernels.
#pragma once

#include <span>

#include "engine/ops/nn/conv_geometry.h"
#include "engine/ops/op_def.h"

namespace oncilla {

// x[N, spatial.., Cin], filter[spatial.., Cin/groups, Cout], bias[Cout]?, residual (like y)? -> y.
// Output channels of one group are adjacent. y = activation(conv + bias + residual).
// Padding is zeros; whether it is multiplied by the weight (0 * inf) is unspecified.
struct ConvAttrs {
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad = "explicit";
  int64_t groups = 1;
  std::string activation = "none";
  void Fields(auto&& field) {
    field("strides", strides);
    field("dilations", dilations);
    field("pads", pads);
    field("auto_pad", auto_pad);
    field("groups", groups);
    field("activation", activation);
  }
};

// x[N, spatial.., Cin], filter[spatial.., Cout/groups, Cin], bias[Cout]?, output_size? -> y: the
// gradient of a convolution. Input channels of one group are adjacent.
struct ConvTransposeAttrs {
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad = "explicit";
  int64_t groups = 1;
  std::vector<int64_t> output_pads;  // added to the end of each spatial axis of y
  // With auto_pad same: output_size must be one that a convolution maps to x's sizes, as in
  // TensorFlow.
  bool exact_size = false;
  void Fields(auto&& field) {
    field("strides", strides);
    field("dilations", dilations);
    field("pads", pads);
    field("auto_pad", auto_pad);
    field("groups", groups);
    field("output_pads", output_pads);
    field("exact_size", exact_size);
  }
};

// The shape of Conv's result from x, filter and, if given, bias; unranked if neither x nor the
// filter has a rank. Integer convolutions have the same rules.
Result<PartialShape> ConvShape(const ConvAttrs& attrs, std::span<const Fact> in);

// The geometry of a node that passed inference with all sizes known. `node` gives shapes and the
// value of output_size.
Result<WindowGeometry> ConvGeometry(const ConvAttrs& attrs, const NodeView& node);
Result<WindowGeometry> ConvTransposeGeometry(const ConvTransposeAttrs& attrs, const NodeView& node);

}  // namespace oncilla
