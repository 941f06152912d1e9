// Lists are checked for their length here; values are checked by inference.
#include "engine/import/onnx_window.h"

namespace oncilla {

Result<std::vector<int64_t>> OnnxSpatialList(const OnnxLowering& b, std::string_view name,
                                             int entries) {
  ONCILLA_ASSIGN(std::vector<int64_t> list, b.IntList(name));
  if (!list.empty() && static_cast<int>(list.size()) != entries) {
    return InvalidArgument(name, " has ", list.size(), " entries, not ", entries);
  }
  return list;
}

Result<AttrMap> OnnxWindowAttrs(const OnnxLowering& b, int spatial, bool dilations) {
  AttrMap attrs;
  const auto add = [&](std::string_view name, int entries) -> Status {
    ONCILLA_ASSIGN(std::vector<int64_t> list, OnnxSpatialList(b, name, entries));
    if (!list.empty()) attrs.emplace(std::string(name), std::move(list));
    return {};
  };
  ONCILLA_TRY(add("strides", spatial));
  if (dilations) ONCILLA_TRY(add("dilations", spatial));
  ONCILLA_TRY(add("pads", 2 * spatial));
  ONCILLA_ASSIGN(const std::string auto_pad, b.String("auto_pad", "NOTSET"));
  if (auto_pad == "NOTSET") return attrs;
  attrs.erase("pads");  // they mean nothing beside another rule; files still carry them
  if (auto_pad == "VALID") {
    attrs.emplace("auto_pad", std::string("valid"));
  } else if (auto_pad == "SAME_UPPER") {
    attrs.emplace("auto_pad", std::string("same_upper"));
  } else if (auto_pad == "SAME_LOWER") {
    attrs.emplace("auto_pad", std::string("same_lower"));
  } else {
    return InvalidArgument("auto_pad is '", auto_pad, "'");
  }
  return attrs;
}

}  // namespace oncilla
