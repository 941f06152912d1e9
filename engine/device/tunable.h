// Tunable: a device that can launch a layer in several ways, and chooses by a table of measurements
// which was the fastest.
#pragma once

#include <functional>
#include <string>

#include "engine/base/status.h"

namespace oncilla {

class Tunable {
 public:
  virtual ~Tunable() = default;

  // `option`: "auto" (or empty) for the table in the device's cache folder, which overrides the one
  // of the library; "off" for none; else a file. To be called before anything is prepared. A file
  // that was asked for and cannot be used is a failure; any other problem with a table is reported
  // through `warn`, now or later, from any thread.
  virtual Status UseTuning(const std::string& option,
                           std::function<void(const std::string&)> warn) = 0;
};

}  // namespace oncilla
