// There are two ways to fill the table of functions: the symbols of a library that exports OpenCL
// (a loader, some drivers), and the dispatch table of an installable driver (extension cl_khr_icd:
// the first word of each handle points to it).
#include "backends/opencl/runtime/cl_api.h"

#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "backends/opencl/runtime/installed_drivers.h"

namespace oncilla::opencl {
namespace {

// Returns false, and names the first missing function, when the library is not an OpenCL 1.2 API.
template <class EntryPoint>
bool Fill(const EntryPoint& entry_point, Api& api, std::string& missing) {
#define ONCILLA_CL_FILL(name)                                               \
  api.name = reinterpret_cast<decltype(api.name)>(entry_point("cl" #name)); \
  if (api.name == nullptr && missing.empty()) missing = "cl" #name;
  ONCILLA_CL_CALLS(ONCILLA_CL_FILL)
#undef ONCILLA_CL_FILL
  return missing.empty();
}

bool FillFromSymbols(void* library, Api& api, std::string& missing) {
  return Fill([&](const char* name) { return ::dlsym(library, name); }, api, missing);
}

bool FillFromDispatch(cl_platform_id platform, Api& api, std::string& missing) {
  const cl_icd_dispatch* table = *reinterpret_cast<const cl_icd_dispatch* const*>(platform);
  if (table == nullptr) {
    missing = "its dispatch table";
    return false;
  }
#define ONCILLA_CL_FILL(name)                 \
  api.name = table->oncilla_type_of_cl##name; \
  if (api.name == nullptr && missing.empty()) missing = "cl" #name;
  ONCILLA_CL_CALLS(ONCILLA_CL_FILL)
#undef ONCILLA_CL_FILL
  return missing.empty();
}

using GetIds = cl_int(CL_API_CALL*)(cl_uint, cl_platform_id*, cl_uint*);

std::vector<cl_platform_id> Ids(GetIds get, cl_int& error) {
  cl_uint count = 0;
  error = get(0, nullptr, &count);
  if (error != CL_SUCCESS || count == 0) return {};
  std::vector<cl_platform_id> ids(count);
  cl_uint found = 0;
  error = get(count, ids.data(), &found);
  ids.resize(error == CL_SUCCESS ? std::min(found, count) : 0);
  return ids;
}

// Adds the platforms of the library at `name`, or appends to `reason` why there are none.
void OpenAsLoader(const std::string& name, void* library, Opened& opened, std::string& reason) {
  auto api = std::make_shared<Api>();
  std::string missing;
  if (!FillFromSymbols(library, *api, missing)) {
    reason += StrCat(name, " has no ", missing, "; ");
    return;
  }
  cl_int error = CL_SUCCESS;
  for (cl_platform_id id : Ids(api->GetPlatformIDs, error)) {
    opened.platforms.push_back({api, id, name});
  }
  if (opened.platforms.empty()) {
    reason += StrCat(name, " found no platform (",
                     error == CL_SUCCESS ? "CL_SUCCESS" : ErrorName(error), "); ");
  }
}

void OpenAsDriver(const std::string& name, void* library, Opened& opened, std::string& reason) {
  using GetAddress = void*(CL_API_CALL*)(const char*);
  auto address = reinterpret_cast<GetAddress>(::dlsym(library, "clGetExtensionFunctionAddress"));
  auto get = reinterpret_cast<GetIds>(::dlsym(library, "clIcdGetPlatformIDsKHR"));
  if (get == nullptr && address != nullptr) {
    get = reinterpret_cast<GetIds>(address("clIcdGetPlatformIDsKHR"));
  }
  if (get == nullptr) {
    reason += StrCat(name, " is not an installable driver; ");
    return;
  }
  cl_int error = CL_SUCCESS;
  bool any = false;
  for (cl_platform_id id : Ids(get, error)) {
    auto api = std::make_shared<Api>();
    std::string missing;
    if (FillFromDispatch(id, *api, missing)) {
      opened.platforms.push_back({std::move(api), id, name});
      any = true;
    } else {
      reason += StrCat(name, " lacks ", missing, "; ");
    }
  }
  if (!any) reason += StrCat(name, " offers no platform (", ErrorName(error), "); ");
}

void* Open(const std::string& name, std::string& reason) {
  ::dlerror();
  void* library = OpenLibrary(name);
  if (library == nullptr) {
    const char* text = ::dlerror();
    reason += text != nullptr ? StrCat(text, "; ") : StrCat("cannot open ", name, "; ");
  }
  return library;
}

// The process that first loaded a driver; 0 before that. A driver's threads do not exist in a
// forked child, and the driver would wait for them forever.
std::atomic<int64_t> driven_by{0};

void NoteDriver() {
  int64_t none = 0;
  driven_by.compare_exchange_strong(none, getpid());
}

// The reason why OpenCL cannot be used in this process; empty if it can.
std::string ForkedAway() {
  const int64_t first = driven_by;
  if (first == 0 || first == getpid()) return "";
  return StrCat("this process was forked from one (", first,
                ") that had used OpenCL, whose drivers ",
                "do not work in a child: fork before the first use of OpenCL, or start the ",
                "child by exec");
}

struct NamedError {
  cl_int code;
  const char* name;
};
constexpr NamedError kErrors[] = {
#define ONCILLA_CL_ERROR(name) \
  { name, #name }
    ONCILLA_CL_ERROR(CL_SUCCESS),
    ONCILLA_CL_ERROR(CL_DEVICE_NOT_FOUND),
    ONCILLA_CL_ERROR(CL_DEVICE_NOT_AVAILABLE),
    ONCILLA_CL_ERROR(CL_COMPILER_NOT_AVAILABLE),
    ONCILLA_CL_ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    ONCILLA_CL_ERROR(CL_OUT_OF_RESOURCES),
    ONCILLA_CL_ERROR(CL_OUT_OF_HOST_MEMORY),
    ONCILLA_CL_ERROR(CL_PROFILING_INFO_NOT_AVAILABLE),
    ONCILLA_CL_ERROR(CL_MEM_COPY_OVERLAP),
    ONCILLA_CL_ERROR(CL_IMAGE_FORMAT_MISMATCH),
    ONCILLA_CL_ERROR(CL_IMAGE_FORMAT_NOT_SUPPORTED),
    ONCILLA_CL_ERROR(CL_BUILD_PROGRAM_FAILURE),
    ONCILLA_CL_ERROR(CL_MAP_FAILURE),
    ONCILLA_CL_ERROR(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    ONCILLA_CL_ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    ONCILLA_CL_ERROR(CL_COMPILE_PROGRAM_FAILURE),
    ONCILLA_CL_ERROR(CL_LINKER_NOT_AVAILABLE),
    ONCILLA_CL_ERROR(CL_LINK_PROGRAM_FAILURE),
    ONCILLA_CL_ERROR(CL_DEVICE_PARTITION_FAILED),
    ONCILLA_CL_ERROR(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
    ONCILLA_CL_ERROR(CL_INVALID_VALUE),
    ONCILLA_CL_ERROR(CL_INVALID_DEVICE_TYPE),
    ONCILLA_CL_ERROR(CL_INVALID_PLATFORM),
    ONCILLA_CL_ERROR(CL_INVALID_DEVICE),
    ONCILLA_CL_ERROR(CL_INVALID_CONTEXT),
    ONCILLA_CL_ERROR(CL_INVALID_QUEUE_PROPERTIES),
    ONCILLA_CL_ERROR(CL_INVALID_COMMAND_QUEUE),
    ONCILLA_CL_ERROR(CL_INVALID_HOST_PTR),
    ONCILLA_CL_ERROR(CL_INVALID_MEM_OBJECT),
    ONCILLA_CL_ERROR(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
    ONCILLA_CL_ERROR(CL_INVALID_IMAGE_SIZE),
    ONCILLA_CL_ERROR(CL_INVALID_SAMPLER),
    ONCILLA_CL_ERROR(CL_INVALID_BINARY),
    ONCILLA_CL_ERROR(CL_INVALID_BUILD_OPTIONS),
    ONCILLA_CL_ERROR(CL_INVALID_PROGRAM),
    ONCILLA_CL_ERROR(CL_INVALID_PROGRAM_EXECUTABLE),
    ONCILLA_CL_ERROR(CL_INVALID_KERNEL_NAME),
    ONCILLA_CL_ERROR(CL_INVALID_KERNEL_DEFINITION),
    ONCILLA_CL_ERROR(CL_INVALID_KERNEL),
    ONCILLA_CL_ERROR(CL_INVALID_ARG_INDEX),
    ONCILLA_CL_ERROR(CL_INVALID_ARG_VALUE),
    ONCILLA_CL_ERROR(CL_INVALID_ARG_SIZE),
    ONCILLA_CL_ERROR(CL_INVALID_KERNEL_ARGS),
    ONCILLA_CL_ERROR(CL_INVALID_WORK_DIMENSION),
    ONCILLA_CL_ERROR(CL_INVALID_WORK_GROUP_SIZE),
    ONCILLA_CL_ERROR(CL_INVALID_WORK_ITEM_SIZE),
    ONCILLA_CL_ERROR(CL_INVALID_GLOBAL_OFFSET),
    ONCILLA_CL_ERROR(CL_INVALID_EVENT_WAIT_LIST),
    ONCILLA_CL_ERROR(CL_INVALID_EVENT),
    ONCILLA_CL_ERROR(CL_INVALID_OPERATION),
    ONCILLA_CL_ERROR(CL_INVALID_GL_OBJECT),
    ONCILLA_CL_ERROR(CL_INVALID_BUFFER_SIZE),
    ONCILLA_CL_ERROR(CL_INVALID_MIP_LEVEL),
    ONCILLA_CL_ERROR(CL_INVALID_GLOBAL_WORK_SIZE),
    ONCILLA_CL_ERROR(CL_INVALID_PROPERTY),
    ONCILLA_CL_ERROR(CL_INVALID_IMAGE_DESCRIPTOR),
    ONCILLA_CL_ERROR(CL_INVALID_COMPILER_OPTIONS),
    ONCILLA_CL_ERROR(CL_INVALID_LINKER_OPTIONS),
    ONCILLA_CL_ERROR(CL_INVALID_DEVICE_PARTITION_COUNT),
#undef ONCILLA_CL_ERROR
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    {-9999, "illegal memory access in a kernel (NVIDIA)"},
};

Code CodeOf(cl_int error) {
  switch (error) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return Code::kResourceExhausted;
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
    case CL_INVALID_COMMAND_QUEUE:  // returned by a queue of a lost device
      return Code::kUnavailable;
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_INVALID_BUILD_OPTIONS:
      return Code::kInvalidArgument;
    default:
      return Code::kInternal;
  }
}

}  // namespace

LibraryOptions LibraryOptions::FromEnvironment() {
  LibraryOptions options;
  if (const char* library = std::getenv("ONCILLA_OPENCL_LIBRARY")) options.library = library;
  options.drivers_chosen =
      std::getenv("OCL_ICD_VENDORS") != nullptr || std::getenv("OCL_ICD_FILENAMES") != nullptr;
  return options;
}

Opened OpenPlatforms(const LibraryOptions& options) {
  Opened opened;
  opened.reason = ForkedAway();
  if (!opened.reason.empty()) return opened;
  std::string reason;
  if (!options.library.empty()) {
    if (void* library = Open(options.library, reason)) {
      OpenAsLoader(options.library, library, opened, reason);
      if (opened.platforms.empty()) OpenAsDriver(options.library, library, opened, reason);
    }
  } else {
    bool loader_found = false;
    OpenDriversApart();
    for (const std::string& name : options.loaders) {
      if (void* library = Open(name, reason)) {
        loader_found = true;
        OpenAsLoader(name, library, opened, reason);
        break;
      }
    }
    if (opened.platforms.empty() && !(loader_found && options.drivers_chosen)) {
      std::string tried;  // missing drivers of other vendors are not reported
      for (const std::string& name : options.drivers) {
        if (void* library = Open(name, tried)) OpenAsDriver(name, library, opened, reason);
      }
    }
  }
  if (!opened.platforms.empty()) NoteDriver();
  if (opened.platforms.empty()) {
    if (reason.ends_with("; ")) reason.resize(reason.size() - 2);
    opened.reason = reason.empty() ? "no OpenCL library was found" : std::move(reason);
  }
  return opened;
}

Result<std::shared_ptr<const Api>> OpenApi(const LibraryOptions& options) {
  std::string reason = ForkedAway();
  if (!reason.empty()) return WithStage(NotFound("no OpenCL: ", reason), Stage::kDevice);
  std::vector<std::string> names = options.loaders;
  if (!options.library.empty()) names = {options.library};
  for (const std::string& name : names) {
    void* library = Open(name, reason);
    if (library == nullptr) continue;
    auto api = std::make_shared<Api>();
    std::string missing;
    if (FillFromSymbols(library, *api, missing)) {
      NoteDriver();  // the application has an object of a driver already
      return std::shared_ptr<const Api>(std::move(api));
    }
    reason += StrCat(name, " has no ", missing, "; ");
  }
  if (reason.ends_with("; ")) reason.resize(reason.size() - 2);
  return WithStage(NotFound("no OpenCL library: ", reason), Stage::kDevice);
}

Result<std::shared_ptr<const Api>> ApiFrom(
    const std::function<void*(const char* name)>& entry_point) {
  const std::string reason = ForkedAway();
  if (!reason.empty()) return WithStage(NotFound("no OpenCL: ", reason), Stage::kDevice);
  auto api = std::make_shared<Api>();
  std::string missing;
  if (!Fill(entry_point, *api, missing)) {
    return WithStage(NotFound("the application's OpenCL has no ", missing), Stage::kDevice);
  }
  NoteDriver();
  return std::shared_ptr<const Api>(std::move(api));
}

std::string ErrorName(cl_int error) {
  for (const NamedError& e : kErrors) {
    if (e.code == error) return e.name;
  }
  return StrCat("error ", error);
}

Status Check(cl_int error, std::string_view call) {
  if (error == CL_SUCCESS) return Status();
  return WithStage(
      WithDriverCode(Error(CodeOf(error), call, ": ", ErrorName(error), " (", error, ")"), error),
      Stage::kDevice);
}

}  // namespace oncilla::opencl
