// Records of known GPUs: what their drivers claim and what the probe would find on them, so that
// planning for a device can be examined without having one.
//
// A record consists of facts and of a probe's result, not of capabilities, so that the rules
// between them (capabilities.cc, quirks.cc) apply here too.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/opencl/runtime/capabilities.h"
#include "backends/opencl/runtime/discovery.h"
#include "backends/opencl/runtime/probe.h"

namespace oncilla::opencl {

struct SimulatedRecord {
  std::string id;  // "rtx3060", as tools name it
  DeviceFacts facts;
  ProbeResult probe;
};

std::span<const SimulatedRecord> SimulatedRecords();
// InvalidArgument lists the records.
Result<const SimulatedRecord*> FindSimulated(std::string_view id);

// The capabilities that the opened device would have.
Capabilities CapabilitiesOf(const SimulatedRecord& record);

}  // namespace oncilla::opencl
