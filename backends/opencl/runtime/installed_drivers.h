// The drivers that are installed for OpenCL's loader, and opening libraries in a process that
// brings names of its own.
//
// Drivers of CPU devices and Mesa's drivers compile with LLVM. Where the process has another LLVM
// whose names are global (Python's TensorFlow exports its own), a driver that is loaded in the usual
// way binds to that one, and crashes. Such a process gets its drivers opened with RTLD_DEEPBIND, so
// that a library's own dependencies come before the global names.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/runtime/cl_api.h"

namespace oncilla::opencl {

// The libraries that the loader would open, in its order: those of OCL_ICD_FILENAMES (separated by
// colons), and those that the files NAME.icd of a folder name in their first line. The folder is
// /etc/OpenCL/vendors unless OCL_ICD_VENDORS names another folder, one such file, or a library. What
// cannot be read is left out: the loader passes over it too.
struct DriverChoice {
  std::string filenames, vendors;  // the two variables; empty where they are not set
  std::string folder = "/etc/OpenCL/vendors";
};
std::vector<std::string> InstalledDrivers(const DriverChoice& choice);

// dlopen with the flags that this process needs; null where that fails (dlerror says why).
void* OpenLibrary(const std::string& name);

// Opens the installed drivers before a loader does so, where the process has another LLVM: the
// loader then gets what is open already. Does nothing in any other process.
void OpenDriversApart();

}  // namespace oncilla::opencl
