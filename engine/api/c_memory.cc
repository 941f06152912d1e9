// The C interface: limits, use and reports of memory per device, and calls that release memory.
#include <algorithm>
#include <cstring>

#include "engine/api/handles.h"
#include "engine/session/memory_report.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

namespace {

Status WriteText(const std::string& all, char* text, size_t size, size_t* needed) {
  if (needed != nullptr) *needed = all.size() + 1;
  if (size == 0) return Status();
  ONCILLA_TRY(NeedHandle(text, "text"));
  const size_t fits = std::min(all.size(), size - 1);
  std::memcpy(text, all.data(), fits);
  text[fits] = 0;
  return Status();
}

}  // namespace

size_t oncilla_session_device_count(const oncilla_session* session) {
  return session == nullptr ? 0 : session->session->device_set().visible().size();
}

oncilla_status* oncilla_session_device_info(const oncilla_session* session, size_t index,
                                            oncilla_session_device* info) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    const std::vector<ListedDevice>& visible = session->session->device_set().visible();
    if (index >= visible.size()) {
      return InvalidArgument("there is no device ", index, "; the session sees ", visible.size());
    }
    oncilla_session_device value{};
    value.name = visible[index].name.c_str();
    value.driver_name = visible[index].info.name.c_str();
    const auto names = session->session->device_set().names();
    value.preferred = names[static_cast<size_t>(session->session->device_set().preferred())] ==
                      visible[index].name;
    for (const DeviceMemory& memory : session->session->memory().Devices()) {
      if (memory.device != visible[index].name) continue;
      value.in_use = 1;
      value.limit_bytes = memory.limit_bytes;
      value.pool_bytes = memory.pool_bytes;
    }
    return WriteStruct(value, info, "oncilla_session_device");
  });
}

oncilla_status* oncilla_session_defragment(oncilla_session* session, int64_t* released_bytes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    ONCILLA_ASSIGN(const Released released, session->session->memory().Defragment());
    if (released_bytes != nullptr) *released_bytes = released.bytes;
    return Status();
  });
}

oncilla_status* oncilla_session_reset(oncilla_session* session, int64_t* released_bytes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    const int64_t bytes = session->session->Reset().bytes;
    if (released_bytes != nullptr) *released_bytes = bytes;
    return Status();
  });
}

oncilla_status* oncilla_session_reset_peaks(oncilla_session* session) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    session->session->memory().ResetPeaks();
    return Status();
  });
}

oncilla_status* oncilla_session_record_memory(oncilla_session* session, size_t changes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    constexpr size_t kMost = size_t{1} << 24;
    if (changes > kMost) return InvalidArgument("at most ", kMost, " changes are kept");
    session->session->memory().ledger().StartTimeline(changes);
    return Status();
  });
}

oncilla_status* oncilla_session_memory_report(oncilla_session* session, int json, char* text,
                                              size_t size, size_t* needed) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    return WriteText(
        json != 0 ? session->session->memory().ReportJson() : session->session->memory().Report(),
        text, size, needed);
  });
}

oncilla_status* oncilla_model_memory_report(oncilla_model* model, char* text, size_t size,
                                            size_t* needed) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    return WriteText(MemoryReportJson(*model->model), text, size, needed);
  });
}

oncilla_status* oncilla_runtime_close_sessions(oncilla_runtime* runtime, int64_t* released_bytes,
                                               char* text, size_t size, size_t* needed) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(runtime, "runtime"));
    const ResetReport report = CloseSessions(*runtime->runtime);
    if (released_bytes != nullptr) *released_bytes = report.bytes;
    std::string lines;
    for (const std::string& line : report.still_referenced) lines += line + "\n";
    return WriteText(lines, text, size, needed);
  });
}
