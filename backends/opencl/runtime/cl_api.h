// OpenCL, opened at run time: a table of function pointers, and how it is found.
//
// Search order: LibraryOptions::library; the loader libOpenCL.so.1; if there is no loader, or it
// knows no platform, the drivers themselves, through the dispatch table that an installable driver
// attaches to each of its handles. Libraries are never closed: drivers keep threads. A machine
// without OpenCL gives no platforms and a reason, never a failure. Raw calls go through Api; calls
// that create objects have wrappers in cl_objects.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/runtime/cl_calls.h"
#include "backends/opencl/runtime/cl_headers.h"
#include "engine/base/status.h"

namespace oncilla::opencl {

struct Api {
#define ONCILLA_CL_MEMBER(name) decltype(&oncilla_type_of_cl##name) name = nullptr;
  ONCILLA_CL_CALLS(ONCILLA_CL_MEMBER)
#undef ONCILLA_CL_MEMBER
};

struct LibraryOptions {
  // When not empty, the only library tried: a loader or a driver. A path or a name to search for.
  std::string library;
  std::vector<std::string> loaders = {"libOpenCL.so.1", "libOpenCL.so"};
  std::vector<std::string> drivers = {"libnvidia-opencl.so.1", "libamdocl64.so", "libintelocl.so",
                                      "libpocl.so.2", "libmali.so.1"};
  // Whether the user chose the loader's drivers: then others are not tried.
  bool drivers_chosen = false;

  // ONCILLA_OPENCL_LIBRARY, and whether OCL_ICD_VENDORS or OCL_ICD_FILENAMES is set.
  static LibraryOptions FromEnvironment();
};

struct Platform {
  std::shared_ptr<const Api> api;  // outlives every handle made through it
  cl_platform_id id = nullptr;
  std::string library;
};

struct Opened {
  std::vector<Platform> platforms;
  std::string reason;  // why there are none; empty otherwise
};

// Thread-safe.
Opened OpenPlatforms(const LibraryOptions& options);

// The table of the library with which an application's own objects were made: `library`, if it is
// not empty, or the loader as OpenPlatforms finds it, which the process has loaded already. Calls
// no driver. NotFound, with the reason. Thread-safe.
Result<std::shared_ptr<const Api>> OpenApi(const LibraryOptions& options);
// The same from a function that returns entry points by name ("clFinish"), for a loader that is
// linked statically.
Result<std::shared_ptr<const Api>> ApiFrom(
    const std::function<void*(const char* name)>& entry_point);

// "CL_INVALID_BUFFER_SIZE", or "error -9999".
std::string ErrorName(cl_int error);

// OK, or "clCreateBuffer: CL_INVALID_BUFFER_SIZE (-61)" with the driver code as a detail. Codes for
// lack of memory (-4 -5 -6 -61) are ResourceExhausted, codes of a lost device are Unavailable, a
// refused build is InvalidArgument, the rest Internal.
Status Check(cl_int error, std::string_view call);

}  // namespace oncilla::opencl
