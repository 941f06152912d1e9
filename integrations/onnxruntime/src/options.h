// The provider's options, as ONNX Runtime passes them: texts by name.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "integrations/onnxruntime/src/ort.h"

namespace oncilla::ort {

struct Options {
  std::string device;                 // of the engine; "": that of the ONNX Runtime device
  size_t min_nodes = 2;               // a subgraph with fewer stays with ONNX Runtime
  std::set<std::string> exclude_ops;  // stay with ONNX Runtime: "Op", or "domain.Op"
  bool log_nodes = false;             // each node that stays is told in the log, with the reason
  std::string config;                 // all options of a session, as JSON (docs/config.md)
};

// The provider's own options, for messages.
inline constexpr const char* kOwnOptions = "device, min_nodes, exclude_ops, log_nodes, config";

// The options of the provider `ep` in a session: those with its prefix. Options that are not its
// own go into `config` ("precision.storage": "fp16" as a nested field) and are checked by the
// engine, which suggests near names. InvalidArgument for values of its own out of range.
Options ReadOptions(const OrtSessionOptions* options, const std::string& ep);

// The same from the texts.
Options ReadOptions(const std::vector<std::pair<std::string, std::string>>& given);

}  // namespace oncilla::ort
