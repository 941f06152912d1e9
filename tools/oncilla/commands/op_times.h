// How the time of a run is divided among its ops.
//
// Profiling costs time, on some devices much. So runs with a profile alternate with runs without:
// the former give the time of each op, the latter the real duration of a run. The difference is the
// time outside of kernels: inputs and outputs, submissions, waiting.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/session/run.h"
#include "engine/session/trace.h"
#include "tools/oncilla/commands/work.h"
#include "tools/oncilla/flags.h"

namespace oncilla::tool {

// All steps of a node, or the host's work for it.
struct OpTime {
  std::string node, op;
  std::string kernel;  // its name
  std::string device;
  bool plain = false;  // plain code of the CPU, which is exact but not fast
  double time_s = 0;
  NodeWork work;
};

// Times are means over the faster half of the runs, so that they add up, and so that another
// program that runs now and then has little influence.
struct OpTimes {
  double run_s = 0;         // of the runs without a profile
  double kernels_s = 0;     // the ops'
  std::vector<OpTime> ops;  // slowest first; empty where the device gives no times
  std::map<std::string, DeviceShare> shares;  // of profiled runs, on average

  double outside_s() const { return run_s > kernels_s ? run_s - kernels_s : 0; }
  double outside_share() const { return run_s > 0 ? outside_s() / run_s : 0; }
  double share(const OpTime& op) const { return run_s > 0 ? op.time_s / run_s : 0; }
};

// At least five runs of each kind, more within `duration_s`. `work` is that of the executor's
// graph.
Result<OpTimes> TimeOps(const OpenedModel& opened, RunRequest request, const Executor& executor,
                        const GraphWork& work, double duration_s);

// Ops that take more than `percent` of a run in plain code on the CPU, slowest first.
std::vector<const OpTime*> PlainAbove(const OpTimes& times, double percent);

}  // namespace oncilla::tool
