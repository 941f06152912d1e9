// How results and costs are shown: text for people, JSON for programs (schemas in schema/).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/session/model.h"
#include "engine/session/trace.h"

namespace oncilla::tool {

using Json = nlohmann::ordered_json;

// "logits  f32[1,1000]  -0.5 1.25 ... | min -3 max 9 mean 0.1"
std::string PrintTensor(const std::string& name, const Tensor& tensor);

// {"name", "dtype", "shape"} and, for at most 100 elements, "data".
Json TensorJson(const std::string& name, const Tensor& tensor);

// What ran where, why, what it cost in copies and memory: one line.
std::string CostLine(const RunReport& report, Session& session);

// The beginning of every document: schema version, command, program.
Json DocumentJson(std::string_view command);
Json DevicesJson(Session& session);
Json MemoryJson(const Session& session);
// How the time of a device went in a profiled run (trace.h).
Json ShareJson(const DeviceShare& share);
// "GPU:0: 63 % of the run in kernels, 2 % in copies, 12 % waiting, longest 1.20 ms for 'conv1'"
std::string ShareLine(const DeviceShare& share);
Json RunReportJson(const RunReport& report);
Json CountersJson(const ModelCounters& counters);

// Text that JSON can hold: bytes that are not UTF-8 become '?'.
std::string JsonText(std::string_view text);

// Writes to stdout, and says when that fails (a full disk, a closed pipe).
Status PrintResult(std::string_view text);
Status PrintDocument(const Json& json);

}  // namespace oncilla::tool
