// The ops that each format's importer supports, by its rows: the list of `oncilla ops --formats`.
#pragma once

#include <string>
#include <vector>

namespace oncilla {

struct FormatOps {
  std::string format;            // "TensorFlow", "TFLite", "ONNX" or "ONNX, domain com.microsoft"
  std::vector<std::string> ops;  // sorted; for ONNX with the versions, if not all are supported
};
// Ops that are lowered together with the graph around them (control flow, calls, variables) are
// included if the format's importer has a fixed list of them.
std::vector<FormatOps> SupportedFormatOps();

}  // namespace oncilla
