// The C interface: what storing numbers in 16 bits costs (oncilla_precision.h).
#include "engine/api/handles.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

namespace {

Status WriteErrors(const std::vector<NumberErrors>& all, size_t index, oncilla_number_errors* to) {
  if (index >= all.size()) {
    return InvalidArgument("there is no value ", index, "; there are ", all.size());
  }
  const NumberErrors& errors = all[index];
  oncilla_number_errors value{};
  value.name = errors.name.c_str();
  value.largest = errors.largest;
  value.max_error = errors.max_error;
  value.rms_error = errors.rms_error;
  value.relative_error = errors.relative();
  value.top1_agreement = errors.top1;
  value.overflowed = errors.overflowed;
  value.others_that_differ = errors.others;
  return WriteStruct(value, to, "oncilla_number_errors");
}

}  // namespace

oncilla_status* oncilla_precision_check_run(oncilla_runtime* runtime, const char* path,
                                            const char* const* input_names,
                                            const oncilla_tensor* const* inputs, size_t input_count,
                                            const oncilla_precision_options* options,
                                            oncilla_precision_check** check) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(runtime, "runtime"));
    ONCILLA_TRY(NeedHandle(path, "path"));
    ONCILLA_TRY(NeedHandle(check, "check"));
    oncilla_precision_options given{};
    ONCILLA_TRY(ReadStruct(options, "oncilla_precision_options", &given));
    oncilla_load_options load{};
    ONCILLA_TRY(ReadStruct(given.load, "oncilla_load_options", &load));
    ONCILLA_ASSIGN(const OpenModelOptions open, ReadLoadOptions(load, StoredDevices::kIgnore));
    ONCILLA_ASSIGN(SessionOptions session, ReadSessionOptions(given.session, *runtime->runtime));
    if (given.storage != nullptr) {
      ONCILLA_ASSIGN(session.precision.storage, PrecisionFromName(given.storage));
    }
    if (given.inner_values < 0) return InvalidArgument("inner_values is ", given.inner_values);
    RunRequest request;
    ONCILLA_TRY(ReadRunRequest(input_names, inputs, input_count, given.run, &request));
    if (!request.device_feeds.empty()) {
      return InvalidArgument("input '", request.device_feeds[0].first, "' is not in host memory");
    }
    auto handle = std::make_unique<oncilla_precision_check>();
    ONCILLA_ASSIGN(handle->check, CheckPrecision(runtime->runtime, session, path, open,
                                                 std::move(request), given.inner_values));
    handle->text = Print(handle->check);
    *check = handle.release();
    return Status();
  });
}

size_t oncilla_precision_check_output_count(const oncilla_precision_check* check) {
  return check == nullptr ? 0 : check->check.outputs.size();
}
size_t oncilla_precision_check_inner_count(const oncilla_precision_check* check) {
  return check == nullptr ? 0 : check->check.nodes.size();
}
oncilla_status* oncilla_precision_check_output(const oncilla_precision_check* check, size_t index,
                                               oncilla_number_errors* errors) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(check, "check"));
    return WriteErrors(check->check.outputs, index, errors);
  });
}
oncilla_status* oncilla_precision_check_inner(const oncilla_precision_check* check, size_t index,
                                              oncilla_number_errors* errors) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(check, "check"));
    return WriteErrors(check->check.nodes, index, errors);
  });
}
const char* oncilla_precision_check_text(const oncilla_precision_check* check) {
  return check == nullptr ? "" : check->text.c_str();
}
void oncilla_precision_check_free(oncilla_precision_check* check) { delete check; }
