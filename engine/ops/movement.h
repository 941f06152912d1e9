// Attributes of the movement family: ops that only rearrange elements.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// Inputs: x, shape (plan input). One size may be -1 (what is left); with zero_copies, a 0 takes the
// size of x at that place (ONNX's rule unless allowzero is set).
struct ReshapeAttrs {
  bool zero_copies = false;
  void Fields(auto&& field) { field("zero_copies", zero_copies); }
};

std::span<const OpDef> MovementOps();

}  // namespace oncilla
