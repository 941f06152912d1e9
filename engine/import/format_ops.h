// The ops that each format's importer lowers, as its rows say: what `oncilla ops --formats` lists.
#pragma once

#include <string>
#include <vector>

namespace oncilla {

struct FormatOps {
  std::string format;            // "TensorFlow", "TFLite", "ONNX" or "ONNX, domain com.microsoft"
  std::vector<std::string> ops;  // sorted; of ONNX with the versions, where not all of them are
};
// What is lowered with the graph around it (control flow, calls, variables) is among them where the
// format has a fixed list of it.
std::vector<FormatOps> SupportedFormatOps();

}  // namespace oncilla
