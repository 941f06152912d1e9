// The drivers that are installed for OpenCL's loader, and opening libraries in a process that
// exports conflicting symbols.
//
// Drivers of CPU devices and Mesa's drivers compile with LLVM. If the process has another LLVM with
// global symbols (Python's TensorFlow exports its own), a driver that is loaded in the usual way
// binds to that one, and crashes. In such a process drivers are opened with RTLD_DEEPBIND, so that
// a library's own dependencies take precedence over global symbols.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/runtime/cl_api.h"

namespace oncilla::opencl {

// The libraries that the loader would open, in its order: those of OCL_ICD_FILENAMES (separated by
// colons), and those named in the first line of the files NAME.icd of a folder. The folder is
// /etc/OpenCL/vendors unless OCL_ICD_VENDORS names another folder, one such file, or a library.
// Unreadable files are left out, as in the loader.
struct DriverChoice {
  std::string filenames, vendors;  // the two variables; empty where they are not set
  std::string folder = "/etc/OpenCL/vendors";
};
std::vector<std::string> InstalledDrivers(const DriverChoice& choice);

// dlopen with the flags that this process needs; null where that fails (dlerror says why).
void* OpenLibrary(const std::string& name);

// Opens the installed drivers before a loader does so, if the process has another LLVM: the loader
// then gets the libraries that are already open. Does nothing in any other process.
void OpenDriversApart();

}  // namespace oncilla::opencl
