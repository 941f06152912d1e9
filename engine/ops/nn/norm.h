// Attributes of the normalisation family, shared by inference and kernels.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// x -> exp(x - max) / sum over one axis, or its logarithm.
struct SoftmaxAttrs {
  int64_t axis = -1;
  bool log = false;
  void Fields(auto&& field) {
    field("axis", axis);
    field("log", log);
  }
};

// Inputs: x, scale, offset, mean, variance, one number per channel each.
// (x - mean) / sqrt(variance + epsilon) * scale + offset.
struct BatchNormAttrs {
  int64_t axis = -1;
  double epsilon = 1e-5;
  void Fields(auto&& field) {
    field("axis", axis);
    field("epsilon", epsilon);
  }
};

// LayerNorm (x, scale?, offset?) and RmsNorm (x, scale?): over the axes from `axis` on; scale and
// offset broadcast to the sizes of those axes.
struct LayerNormAttrs {
  int64_t axis = -1;
  double epsilon = 1e-5;
  void Fields(auto&& field) {
    field("axis", axis);
    field("epsilon", epsilon);
  }
};

// Inputs: x, scale, offset, one number per channel. Channels last; mean and variance per sample and
// channel.
struct InstanceNormAttrs {
  double epsilon = 1e-5;
  void Fields(auto&& field) { field("epsilon", epsilon); }
};

// Inputs: x, scale, offset, as above. Mean and variance are per sample and group of channels.
struct GroupNormAttrs {
  int64_t groups = 0;
  double epsilon = 1e-5;
  void Fields(auto&& field) {
    field("groups", groups);
    field("epsilon", epsilon);
  }
};

// x / (bias + alpha / size * sum of squares of `size` neighbours along the axis)^beta; an even size
// includes one more neighbour after the element than before it (ONNX's formula).
struct LrnAttrs {
  int64_t size = 0;
  double alpha = 1e-4;
  double beta = 0.75;
  double bias = 1;
  int64_t axis = -1;
  void Fields(auto&& field) {
    field("size", size);
    field("alpha", alpha);
    field("beta", beta);
    field("bias", bias);
    field("axis", axis);
  }
};

// x divided by its p-norm (1 or 2) along an axis; all zeros stay zeros.
struct LpNormalizeAttrs {
  int64_t axis = -1;
  int64_t p = 2;
  void Fields(auto&& field) {
    field("axis", axis);
    field("p", p);
  }
};

}  // namespace oncilla
