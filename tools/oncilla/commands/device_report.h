// A report on a device for users to send: claims of its driver, results of the probe, known faults,
// and the table of tuned choices that it uses. No serial number, no path, no name of the machine.
#pragma once

#include <string>
#include <string_view>

#include "engine/session/runtime.h"
#include "tools/oncilla/report.h"

namespace oncilla::tool {

struct DeviceReport {
  Json json;           // null for a device that is not OpenCL's
  std::string probes;  // for a row: "double, groups of 1024, time stamps"
  std::string tuning;  // "23 layers tuned, 4 of them with another driver", or nothing
  std::string driver;  // a cache key for this version of the driver on this kind of device
};
// Opens the device, as a session would.
Result<DeviceReport> ReportOf(Runtime& runtime, const ListedDevice& listed);

// Whether this driver passed the tests before, as recorded in the folder of compiled programs.
bool HasPassed(const Runtime& runtime, const DeviceReport& report);
void RememberPassed(const Runtime& runtime, const DeviceReport& report);

// Without paths and the names of user and machine.
std::string WithoutPrivate(std::string_view text);

}  // namespace oncilla::tool
