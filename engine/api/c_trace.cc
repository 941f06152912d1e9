// The C interface: traces of runs.
#include "engine/api/handles.h"
#include "engine/base/file.h"
#include "engine/session/trace.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

namespace {

Result<std::string> TraceOf(const oncilla_result* result, oncilla_trace_format format) {
  ONCILLA_TRY(NeedHandle(result, "result"));
  if (result->trace == nullptr) {
    return WithStage(
        Error(Code::kFailedPrecondition, "the run had no trace level (oncilla_run_options)"),
        Stage::kOptions);
  }
  switch (format) {
    case ONCILLA_TRACE_CHROME:
      return ChromeTrace(*result->trace);
    case ONCILLA_TRACE_STEP_STATS:
      return RunMetadata(*result->trace);
  }
  return InvalidArgument("format ", static_cast<int>(format), " is no format of traces");
}

}  // namespace

oncilla_status* oncilla_result_trace(const oncilla_result* result, oncilla_trace_format format,
                                     char* bytes, size_t size, size_t* needed) {
  return Guard([&]() -> Status {
    if (size > 0) ONCILLA_TRY(NeedHandle(bytes, "bytes"));
    ONCILLA_ASSIGN(const std::string trace, TraceOf(result, format));
    if (needed != nullptr) *needed = trace.size();
    if (size > 0) std::memcpy(bytes, trace.data(), std::min(size, trace.size()));
    return Status();
  });
}

oncilla_status* oncilla_result_save_trace(const oncilla_result* result, oncilla_trace_format format,
                                          const char* path) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(path, "path"));
    ONCILLA_ASSIGN(const std::string trace, TraceOf(result, format));
    return WriteFile(path, trace);
  });
}
