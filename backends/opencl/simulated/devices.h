// Devices that are not there: what the drivers of known GPUs claim and what the probe would find on
// them, as records, so that planning can be followed for a device without having one.
//
// A record is made of facts and of a probe's result and not of capabilities, so that the rules
// between them (capabilities.cc, quirks.cc) hold here too.
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
// InvalidArgument lists what there is.
Result<const SimulatedRecord*> FindSimulated(std::string_view id);

// As an opened device would have them.
Capabilities CapabilitiesOf(const SimulatedRecord& record);

}  // namespace oncilla::opencl
