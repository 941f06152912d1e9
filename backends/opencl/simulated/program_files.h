// Programs as files, for compilers of devices that are not available (tools/compile_kernels,
// tools/kernel_report).
#pragma once

#include <map>
#include <string>

#include "backends/opencl/recipes/source.h"
#include "backends/opencl/runtime/places.h"
#include "engine/base/status.h"

namespace oncilla::opencl {

class ProgramFiles {
 public:
  explicit ProgramFiles(std::string folder) : folder_(std::move(folder)) {}

  // Writes the text for the driver as FOLDER/<family>_<kernel>_<hash of the text>.cl, unless this
  // object has done so before; returns the file's name without folder and extension.
  Result<std::string> Add(const Source& source, std::string_view generated, const Defines& defines,
                          const Places& places = {});
  // The number of different programs of each source that were written.
  const std::map<std::string, size_t>& counts() const { return counts_; }

 private:
  const std::string folder_;
  std::map<std::string, std::string> names_;  // by the hash of the text
  std::map<std::string, size_t> counts_;
};

}  // namespace oncilla::opencl
