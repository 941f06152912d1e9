// Tunable: a device that can launch a layer in several ways, and look up in a table which was the
// fastest when somebody measured it.
#pragma once

#include <functional>
#include <string>

#include "engine/base/status.h"

namespace oncilla {

class Tunable {
 public:
  virtual ~Tunable() = default;

  // `option`: "auto" (or nothing) for the table in the device's cache folder over the one that the
  // library brings along, "off" for none, else a file. Before anything is prepared. A file that was
  // asked for and cannot be used is a failure; anything else that is wrong with a table is told by
  // `warn`, now and later, from any thread.
  virtual Status UseTuning(const std::string& option,
                           std::function<void(const std::string&)> warn) = 0;
};

}  // namespace oncilla
