// RunCase: one case on one device, at the level of Device: no graph, no session.
#pragma once

#include "engine/device/device.h"
#include "tests/case_runner/case_file.h"

namespace oncilla::testing {

enum class Verdict { kPass, kFail, kUnsupported };

struct Outcome {
  Verdict verdict = Verdict::kPass;
  std::string message;
};

// `reference` is the CPU with plain code. With `offset`, all buffers lie at non-zero offsets inside
// one larger region full of a poison pattern, which must be intact around them afterwards.
Outcome RunCase(const Case& c, const OpSet& ops, Device& device, Device& reference, bool offset);

}  // namespace oncilla::testing
