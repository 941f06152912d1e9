// The complete report on a session's memory: per device limits, totals and fragmentation; bytes per
// owner; per model the constants, variables and plans with their peaks; the timeline, if one is
// recorded; and the state of the pool when memory last ran out.
#pragma once

#include <string>

namespace oncilla {

class Model;
class Session;

// A JSON list: per device limits, totals and fragmentation.
std::string DeviceMemoryJson(const Session& session);
std::string MemoryReportText(const Session& session);
// One JSON object: "devices" (DeviceMemoryJson), "owners", "models", "timeline", "last_shortage"
// (null when there was none).
std::string MemoryReportJson(const Session& session);
// The entry of one model in that report.
std::string MemoryReportJson(const Model& model);

}  // namespace oncilla
