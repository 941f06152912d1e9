// One run of a compiled graph: its limits, its feeds by name, carrying it out, and the report.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "engine/import/model_source.h"
#include "engine/run/executor.h"
#include "engine/session/run_request.h"
#include "engine/session/session.h"

namespace oncilla {

// What ends work that has no limits of its own: the session, and a device that hangs.
RunControl Watched(const Session& session);
// The same with a time limit, that of the session's options where `timeout` is 0, and a token.
RunControl ControlOf(const Session& session, std::chrono::steady_clock::time_point begin,
                     std::chrono::milliseconds timeout, const CancellationToken& cancel);

// What a graph may be made for where it cannot be made for any feeds of these names (see
// ImportRequest): types, shapes, and the values of small tensors of integers, which may be sizes or
// axes, and of single strings, which may be names.
Facts FactsOfFeeds(std::span<const NamedTensor> feeds);
Facts FactsOfFeeds(std::span<const NamedRunValue> feeds);  // of values on devices without values

// A value of the host's for an input of the graph, as the model's format checks it; of a sequence,
// whether its elements are what the graph relies on.
Result<RunValue> CheckedFeed(const ModelSource& source, const std::string& name, const Fact& wanted,
                             const Tensor& value);

// Which outputs stay on their devices. InvalidArgument for a name that is not an output.
Result<std::vector<bool>> KeepMask(const Graph& graph, const std::vector<std::string>& keep,
                                   bool all);
Status NoOutputToKeep(const std::string& name);

// Runs what was compiled, in turn with others where variables change, with the steps of the
// session's policy where memory is short. Feeds in the order of the graph's inputs. A device that
// the run lost is marked as lost.
Result<std::vector<RunValue>> Execute(Session& session, VariableStore& variables,
                                      Executor& executor, std::span<const RunValue> feeds,
                                      const std::vector<bool>& keep, const RunControl& control,
                                      MemoryOutcome* memory = nullptr);

// A run with feeds by name, and its report. `preferred` is the device's place in the session.
Result<RunResult> RunOnce(Session& session, const ModelSource& source, VariableStore& variables,
                          Executor& executor, int preferred, const RunRequest& request,
                          RunControl control, std::chrono::steady_clock::time_point begin);

// Marks the device that a failure says is lost, and names it where the failure does not: that is
// the device that the run was on.
Status AfterFailure(Session& session, const Status& failure, const std::string& device);

}  // namespace oncilla
