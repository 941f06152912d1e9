// One run of a compiled graph: its limits, its feeds by name, its execution, and the report.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "engine/import/model_source.h"
#include "engine/run/executor.h"
#include "engine/session/run_request.h"
#include "engine/session/session.h"

namespace oncilla {

// The limits of work that has none of its own: the session's end, and the watchdog.
RunControl Watched(const Session& session);
// The same with a cancellation token and a time limit; the session's default limit if `timeout` is
// 0.
RunControl ControlOf(const Session& session, std::chrono::steady_clock::time_point begin,
                     std::chrono::milliseconds timeout, const CancellationToken& cancel);

// The facts for which a graph may be imported if it cannot be imported for any feeds of these names
// (see ImportRequest): types, shapes, and the values of small integer tensors, which may be sizes
// or axes, and of single strings, which may be names.
Facts FactsOfFeeds(std::span<const NamedTensor> feeds);
Facts FactsOfFeeds(std::span<const NamedRunValue> feeds);  // without the values of those on devices

// A host value for an input of the graph, checked by the rules of the model's format; for a
// sequence, whether its elements are what the graph assumes.
Result<RunValue> CheckedFeed(const ModelSource& source, const std::string& name, const Fact& wanted,
                             const Tensor& value);

// Which outputs stay on their devices. InvalidArgument for a name that is not an output.
Result<std::vector<bool>> KeepMask(const Graph& graph, const std::vector<std::string>& keep,
                                   bool all);
Status NoOutputToKeep(const std::string& name);

// Runs the compiled graph: takes the writers' turn if it changes variables, and the steps of the
// session's policy if memory is short. Feeds in the order of the graph's inputs. If the run lost a
// device, the device is marked as lost.
Result<std::vector<RunValue>> Execute(Session& session, VariableStore& variables,
                                      Executor& executor, std::span<const RunValue> feeds,
                                      const std::vector<bool>& keep, const RunControl& control,
                                      MemoryOutcome* memory = nullptr);

// A run with feeds by name, and its report. `preferred` is the device's index in the session.
Result<RunResult> RunOnce(Session& session, const ModelSource& source, VariableStore& variables,
                          Executor& executor, int preferred, const RunRequest& request,
                          RunControl control, std::chrono::steady_clock::time_point begin);

// Marks the device that a failure reports as lost, and adds its name if the failure has none: then
// it is the device of the run.
Status AfterFailure(Session& session, const Status& failure, const std::string& device);

}  // namespace oncilla
