// The C interface: results of runs.
#include "engine/api/handles.h"
#include "engine/base/near_names.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

namespace oncilla::api {

std::unique_ptr<oncilla_result> MakeResult(RunResult ran) {
  auto handle = std::make_unique<oncilla_result>();
  for (size_t i = 0; i < ran.outputs.size(); ++i) {
    auto& [name, tensor] = ran.outputs[i];
    handle->names.push_back(name);
    const bool kept = i < ran.kept.size() && ran.kept[i].valid();
    handle->tensors.push_back(kept ? MakeTensor(std::move(ran.kept[i]))
                                   : MakeTensor(std::move(tensor)));
  }
  handle->report = std::make_unique<const RunReport>(std::move(ran.report));
  return handle;
}

}  // namespace oncilla::api

size_t oncilla_result_count(const oncilla_result* result) {
  return result == nullptr ? 0 : result->tensors.size();
}
const char* oncilla_result_name(const oncilla_result* result, size_t index) {
  return result == nullptr || index >= result->names.size() ? nullptr
                                                            : result->names[index].c_str();
}
const oncilla_tensor* oncilla_result_tensor(const oncilla_result* result, size_t index) {
  return result == nullptr || index >= result->tensors.size() ? nullptr : &result->tensors[index];
}
oncilla_status* oncilla_result_take(oncilla_result* result, size_t index, oncilla_tensor** tensor) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(result, "result"));
    ONCILLA_TRY(NeedHandle(tensor, "tensor"));
    if (index >= result->tensors.size()) {
      return NotFound("there is no output ", index, " among ", result->tensors.size());
    }
    oncilla_tensor& from = result->tensors[index];
    if (!from.device.valid() && !from.tensor.valid() && !from.tensor.is_list()) {
      return NotFound("output '", result->names[index], "' was taken before");
    }
    *tensor = new oncilla_tensor(std::move(from));
    from = oncilla_tensor();
    return Status();
  });
}
const oncilla_tensor* oncilla_result_find(const oncilla_result* result, const char* name) {
  for (size_t i = 0; result != nullptr && name != nullptr && i < result->names.size(); ++i) {
    if (result->names[i] == name) return &result->tensors[i];
  }
  return nullptr;
}
oncilla_status* oncilla_result_copy(const oncilla_result* result, const char* name, void* memory,
                                    size_t bytes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(result, "result"));
    ONCILLA_TRY(NeedHandle(name, "name"));
    const oncilla_tensor* found = oncilla_result_find(result, name);
    if (found == nullptr) {
      return NotFound("the result has no output '", name, "'", DidYouMean(name, result->names));
    }
    ONCILLA_TRY(NeedTensor(found, StrCat("output '", name, "'")));
    const TensorDesc& desc = found->desc();
    if (desc.dtype == DType::kString) return InvalidArgument("'", name, "' holds strings");
    if (static_cast<size_t>(desc.bytes()) != bytes) {
      return InvalidArgument("'", name, "' is ", desc, " of ", desc.bytes(), " bytes, not ", bytes);
    }
    if (bytes > 0) ONCILLA_TRY(NeedHandle(memory, "memory"));
    ONCILLA_ASSIGN(const Tensor host, found->value().ToHost());
    if (bytes > 0) std::memcpy(memory, host.bytes().data(), bytes);
    return Status();
  });
}
const char* oncilla_result_report(const oncilla_result* result) {
  if (result == nullptr || result->report == nullptr) return "";
  if (result->line.empty()) {
    const Status made = Fenced([&]() -> Status {
      result->line = result->report->Line();
      return Status();
    });
    if (!made.ok()) return "";  // no memory for the text
  }
  return result->line.c_str();
}
void oncilla_result_free(oncilla_result* result) { delete result; }
