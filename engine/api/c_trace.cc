// The C interface: traces of runs.
#include "engine/api/handles.h"
#include "engine/base/file.h"
#include "engine/session/trace.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

namespace {

Result<std::string> TraceOf(const RunReport& report, oncilla_trace_format format) {
  switch (format) {
    case ONCILLA_TRACE_CHROME:
      return ChromeTrace(report);
    case ONCILLA_TRACE_STEP_STATS:
      return RunMetadata(report);
  }
  return InvalidArgument("format ", static_cast<int>(format), " is not a trace format");
}

Result<std::string> TraceOf(const oncilla_result* result, oncilla_trace_format format) {
  ONCILLA_TRY(NeedHandle(result, "result"));
  if (result->report == nullptr || !result->report->traced) {
    return WithStage(
        Error(Code::kFailedPrecondition, "the run had no trace level (oncilla_run_options)"),
        Stage::kOptions);
  }
  return TraceOf(*result->report, format);
}

Status GiveText(const std::string& text, char* bytes, size_t size, size_t* needed) {
  if (size > 0) ONCILLA_TRY(NeedHandle(bytes, "bytes"));
  if (needed != nullptr) *needed = text.size();
  if (size > 0) std::memcpy(bytes, text.data(), std::min(size, text.size()));
  return Status();
}

}  // namespace

oncilla_status* oncilla_result_trace(const oncilla_result* result, oncilla_trace_format format,
                                     char* bytes, size_t size, size_t* needed) {
  return Guard([&]() -> Status {
    ONCILLA_ASSIGN(const std::string trace, TraceOf(result, format));
    return GiveText(trace, bytes, size, needed);
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

oncilla_status* oncilla_enqueued_trace(const oncilla_enqueued* run, oncilla_trace_format format,
                                       char* bytes, size_t size, size_t* needed) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(run, "run"));
    ONCILLA_ASSIGN(EnqueuedProfile profile, run->run.Profile());
    ONCILLA_ASSIGN(const std::string trace, TraceOf(ReportOf(std::move(profile)), format));
    return GiveText(trace, bytes, size, needed);
  });
}
