// Traces: the record of a profiled run in formats of other tools. Pure functions of its report.
//
// All times are on the host's steady clock. Times of steps are those of the device's own events,
// shifted so that the last one ends when the host learns of it; likewise those of copies, if the
// driver reports them. Otherwise the begin and end of a copy are estimated from what the host knows
// of it and the steps around it.
#pragma once

#include <string>
#include <vector>

#include "engine/run/enqueue.h"
#include "engine/session/model.h"

namespace oncilla {

// Chrome's trace event format, as JSON, which Perfetto and chrome://tracing open: a row for the
// host, and for each device one for its steps and one for its copies, with arrows from where the
// host submitted a copy; counters of each device's pool (bytes in use, allocated, and
// fragmentation: before and after the run and each segment) and of its arena's live bytes at each
// step. PeaksOf() is in its "otherData". Format: "Trace Event Format",
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
std::string ChromeTrace(const RunReport& report);

// A serialized tensorflow.RunMetadata with step_stats: per device, per node its name, start, end,
// op and the bytes of its outputs. Copies are nodes "MEMCPYHtoD" and "MEMCPYDtoH" of a device
// ".../stream:copies", as TensorFlow's own tracer has them.
std::string RunMetadata(const RunReport& report);

// Per device and op, the node during which the most bytes of the arena were in use, largest first.
struct OpPeak {
  std::string device, op, node;
  int64_t live_bytes = 0;
  int64_t output_bytes = 0;  // of that node
};
std::vector<OpPeak> PeaksOf(const RunReport& report);

// The report of a run on one of the application's queues (run/enqueue.h), for the functions above:
// only the steps, with times on the device's clock.
RunReport ReportOf(EnqueuedProfile profile);

// How a run's time was used, per device of the report: the shares of the wall time during which a
// step, or a copy, ran there; and the gaps in which the device had no step to run although more
// steps followed. A gap is attributed to the node whose step ended it.
struct DeviceShare {
  std::string device;
  double busy = 0;
  double copying = 0;
  double gaps = 0;             // their share of the wall time
  int64_t longest_gap_ns = 0;  // 0: there was none
  std::string waited = {};     // the node after the longest gap
};
std::vector<DeviceShare> SharesOf(const RunReport& report);

}  // namespace oncilla
