// What ONNX's convolutions and pools have in common: attributes of their windows.
#pragma once

#include "engine/import/lowering/window.h"
#include "engine/import/onnx/lowering.h"

namespace oncilla {

// strides, dilations, pads and auto_pad as canonical attributes, checked against the number of
// spatial axes.
Result<Window> ReadOnnxWindow(const OnnxLowering& b, int spatial, bool dilations);

// A list attribute with one entry per spatial axis (twice that for pads); empty when missing.
Result<std::vector<int64_t>> OnnxSpatialList(const OnnxLowering& b, std::string_view name,
                                             int entries);

}  // namespace oncilla
