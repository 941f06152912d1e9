// What becomes of a run whose memory is not there: the policy's steps, and an error that says what
// would fit.
//
// A plan's memory is known before anything runs, so that a run that does not fit fails before its
// first kernel; only where sizes depend on data may a later part of it fail.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/run/executor.h"
#include "engine/session/memory_options.h"

namespace oncilla {

class Session;

// What was done so that the run had its memory; empty when it had it at once.
struct MemoryOutcome {
  std::vector<std::string> steps;  // "gave back 12.0 MiB", "waited 31 ms", "ran 64 rows in 2 parts"
  int parts = 1;
};

// executor.RunValues(), and when memory is short the steps of the policy. The run must be counted
// among the session's runs under way. ResourceExhausted as below, with stage kRun.
Result<std::vector<RunValue>> RunWithinMemory(Session& session, Executor& executor,
                                              std::span<const RunValue> feeds,
                                              const std::vector<bool>& keep,
                                              const RunControl& control,
                                              const OutOfMemoryPolicy& policy,
                                              MemoryOutcome& outcome);

// Whether an instance of the plan would find its memory now, on every device.
bool Fits(const Plan& plan, Session& session);

// The failure with what the run takes on each device, during which node the peak falls, bytes by
// dtype, and the largest batch that would fit. Costs the time of a few plans, at most 40 ms.
Status WithMemoryAdvice(Status failure, Session& session, Executor& executor,
                        std::span<const Tensor> feeds, const EarlyEnd& end);

}  // namespace oncilla
