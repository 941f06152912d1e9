// A render node that the user may not open hides its GPU from every OpenCL driver, without an
// error.
#include "tools/oncilla/commands/gpu_notes.h"

#include <unistd.h>

#include "engine/base/file.h"

namespace oncilla::tool {

std::vector<std::string> GpuNotes(const std::string& folder, bool found_gpu) {
  std::vector<std::string> notes;
  const auto entries = ListFolder(folder);
  if (!entries.ok()) return notes;  // no GPU, or none of Linux's direct rendering
  bool open_node = false;
  for (const FolderEntry& entry : *entries) {
    if (!entry.name.starts_with("renderD")) continue;
    const std::string path = JoinPath(folder, entry.name);
    if (access(path.c_str(), R_OK | W_OK) == 0) {
      open_node = true;
    } else {
      notes.push_back(path +
                      " may not be opened, so its GPU is out of reach; join its group: sudo "
                      "usermod -aG render $USER, then log in again");
    }
  }
  if (open_node && !found_gpu) {
    notes.push_back("this machine shows a GPU in " + folder +
                    ", but no OpenCL driver for it is installed: intel-opencl-icd for Intel's, "
                    "mesa-opencl-icd or ROCm for AMD's, nvidia-opencl-icd for NVIDIA's");
  }
  return notes;
}

}  // namespace oncilla::tool
