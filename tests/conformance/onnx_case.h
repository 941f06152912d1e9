// One of ONNX's own tests: a folder with model.onnx and, in test_data_set_*, what goes in and what
// must come out. Run through a session as a user's model would be.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/session/session.h"

namespace oncilla::testing {

enum class OnnxVerdict {
  kPass,
  kUnsupported,  // refused with Unimplemented, at import or when compiled
  kWrong,        // ran, and something else came out
  kFailed,       // refused or failed in any other way
  kCrashed,      // took the process down, or did not answer
};
std::string_view Name(OnnxVerdict verdict);

// Nodes of one family of ops as they ran: how many on the device asked for, and for those that the
// CPU ran in its place, why. Apart from both, and no part of the share: nodes that nobody ran since
// their values were known while planning, shape arithmetic that the CPU is meant to run, and what
// only a host can do (strings, sizes that depend on data), by op.
struct FamilyShare {
  int on_device = 0;
  std::map<std::string, int> refused;
  int planned = 0, shapes = 0;
  std::map<std::string, int> host;
};

struct OnnxOutcome {
  OnnxVerdict verdict = OnnxVerdict::kFailed;
  std::string reason;
  std::vector<std::string> ops;  // ONNX's ops in the model
  std::map<std::string, FamilyShare> families;
};

// Outputs agree by ONNX's rule: same type and shape, and |a - b| <= 1e-7 + 1e-3 |b| for each
// element b expected; NaN equals NaN; other types are equal.
Status CompareAsOnnx(const Tensor& got, const Tensor& expected);

OnnxOutcome RunOnnxCase(const std::string& folder, const std::shared_ptr<Session>& session);

}  // namespace oncilla::testing
