// The lengths of lists are checked here; their values are checked by inference.
#include "engine/import/onnx/ops/window.h"

namespace oncilla {

Result<std::vector<int64_t>> OnnxSpatialList(const OnnxLowering& b, std::string_view name,
                                             int entries) {
  ONCILLA_ASSIGN(std::vector<int64_t> list, b.IntList(name));
  if (!list.empty() && static_cast<int>(list.size()) != entries) {
    return InvalidArgument(name, " has ", list.size(), " entries, not ", entries);
  }
  return list;
}

Result<Window> ReadOnnxWindow(const OnnxLowering& b, int spatial, bool dilations) {
  Window window;
  ONCILLA_ASSIGN(window.strides, OnnxSpatialList(b, "strides", spatial));
  if (dilations) {
    ONCILLA_ASSIGN(window.dilations, OnnxSpatialList(b, "dilations", spatial));
  }
  ONCILLA_ASSIGN(window.pads, OnnxSpatialList(b, "pads", 2 * spatial));
  ONCILLA_ASSIGN(const std::string auto_pad, b.String("auto_pad", "NOTSET"));
  if (auto_pad == "NOTSET") return window;
  window.pads.clear();  // ignored with another rule, but some files still contain them
  if (auto_pad == "VALID") {
    window.auto_pad = "valid";
  } else if (auto_pad == "SAME_UPPER") {
    window.auto_pad = "same_upper";
  } else if (auto_pad == "SAME_LOWER") {
    window.auto_pad = "same_lower";
  } else {
    return InvalidArgument("auto_pad is '", auto_pad, "'");
  }
  return window;
}

}  // namespace oncilla
