// Everything there is to say about a session's memory: per device limits, totals and fragmentation;
// who holds what; per model the constants, variables and plans with their peaks; over time, where a
// timeline is kept; and the pool as it was when memory last ran out.
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
// What it says of one model.
std::string MemoryReportJson(const Model& model);

}  // namespace oncilla
