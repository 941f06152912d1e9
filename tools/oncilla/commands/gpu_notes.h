// Why OpenCL does not list a GPU that the system has: permissions and missing drivers, each with
// its remedy.
#pragma once

#include <string>
#include <vector>

namespace oncilla::tool {

// `folder` is where Linux shows GPUs to programs: /dev/dri, with one renderD* per GPU. `found_gpu`:
// OpenCL listed one.
std::vector<std::string> GpuNotes(const std::string& folder, bool found_gpu);

}  // namespace oncilla::tool
