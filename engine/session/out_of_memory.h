// Handles runs whose memory cannot be allocated: the policy's steps, and an error that says what
// would fit.
//
// A plan's memory is known before anything runs, so that a run that does not fit fails before its
// first kernel; only where sizes depend on data may it fail later.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/run/executor.h"
#include "engine/session/memory_options.h"

namespace oncilla {

class Session;

// What was done to obtain the run's memory; empty when it was available at once.
struct MemoryOutcome {
  std::vector<std::string> steps;  // "gave back 12.0 MiB", "waited 31 ms", "ran 64 rows in 2 parts"
  int parts = 1;
};

// Calls executor.RunValues() and, when memory is short, takes the policy's steps. The run must be
// registered with the session's RunsUnderWay. ResourceExhausted as below, with stage kRun.
Result<std::vector<RunValue>> RunWithinMemory(Session& session, Executor& executor,
                                              std::span<const RunValue> feeds,
                                              const std::vector<bool>& keep,
                                              const RunControl& control,
                                              const OutOfMemoryPolicy& policy,
                                              MemoryOutcome& outcome);

// Whether the memory of an instance of the plan could be allocated now, on every device.
bool Fits(const Plan& plan, Session& session);

// Adds to the failure what the run takes on each device, the node at which the peak occurs, bytes
// by dtype, and the largest batch that would fit. Costs the time of a few plans, at most 40 ms.
Status WithMemoryAdvice(Status failure, Session& session, Executor& executor,
                        std::span<const Tensor> feeds, const EarlyEnd& end);

}  // namespace oncilla
