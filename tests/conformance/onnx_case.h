// One of ONNX's own tests: a folder with model.onnx and, in test_data_set_*, the inputs and the
// expected outputs. It is run through a session like a user's model.
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

// The nodes of one family of ops in a run: how many ran on the requested device, and for those that
// the CPU ran instead, why. Counted separately, and not part of the share: nodes that did not run
// since their values were known while planning, shape arithmetic that is meant for the CPU, and
// nodes that only a host can compute (strings, sizes that depend on data), by op.
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
