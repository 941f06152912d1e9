// The C interface: runtimes, sessions, models, runs. Each call checks its arguments, does one
// thing, and turns a Status into a handle.
#include <atomic>

#include "engine/api/build_info.h"
#include "engine/api/handles.h"
#include "engine/base/near_names.h"
#include "engine/session/config.h"

using namespace oncilla;       // NOLINT: this file is the border between the two namespaces
using namespace oncilla::api;  // NOLINT

namespace oncilla::api {

namespace {

std::unique_ptr<oncilla_status> MakeStatus(const Status& status) {
  auto handle = std::make_unique<oncilla_status>();
  handle->status = status;
  handle->details = Details(status);
  // Arguments are checked before anything else, so an invalid argument without a stage comes from
  // the caller.
  if (handle->details.stage == Stage::kUnknown && status.code() == Code::kInvalidArgument) {
    handle->details.stage = Stage::kOptions;
  }
  // A name in a file may contain a zero byte, which would end the caller's C string.
  for (const char c : Message(status)) {
    if (c == '\0') {
      handle->message += "\\x00";
    } else {
      handle->message += c;
    }
  }
  handle->stage = std::string(Name(handle->details.stage));
  return handle;
}

// Never freed: callers may hold it for any time, several at once.
oncilla_status* OutOfMemoryHandle() noexcept {
  static auto* const handle = MakeStatus(OutOfHostMemory()).release();
  return handle;
}
[[maybe_unused]] const auto* const made_early = OutOfMemoryHandle();

}  // namespace

oncilla_status* ToHandle(const Status& status) noexcept {
  if (status.ok()) return nullptr;
  try {
    return MakeStatus(status).release();
  } catch (...) {
    return OutOfMemoryHandle();
  }
}

Status NeedHandle(const void* handle, std::string_view what) {
  return handle != nullptr ? Status() : InvalidArgument(what, " is null");
}

// Checks the bounds of the option `threads`.
Status CheckThreads(int32_t threads, std::string_view what) {
  constexpr int32_t kMost = 1024;
  if (threads >= 0 && threads <= kMost) return Status();
  return InvalidArgument(what, ": threads is ", threads, ", not in 0 to ", kMost);
}

Result<RuntimeOptions> ReadRuntimeOptions(const oncilla_runtime_options* options,
                                          std::shared_ptr<LastCall>* last) {
  oncilla_runtime_options given{};
  ONCILLA_TRY(ReadStruct(options, "oncilla_runtime_options", &given));
  RuntimeOptions ours = RuntimeOptionsFromEnvironment();
  if (given.opencl_cpu_devices != 0) ours.opencl_cpu_devices = true;
  ONCILLA_TRY(CheckThreads(given.threads, "oncilla_runtime_options"));
  ours.threads = given.threads;
  if (given.cache_dir != nullptr) ours.cache_dir = given.cache_dir;
  if ((given.allocate == nullptr) != (given.release == nullptr)) {
    return InvalidArgument("allocate and release must be given together");
  }
  const auto done = *last = std::make_shared<LastCall>(given.done, given.done_user);
  if (given.log != nullptr) {
    ours.log = std::make_shared<const Log>(
        static_cast<LogLevel>(given.log_level),
        [log = given.log, user = given.log_user, done](LogLevel level, std::string_view message) {
          log(user, static_cast<oncilla_log_level>(level), std::string(message).c_str());
        });
  }
  if (given.allocate != nullptr) {
    auto memory = std::make_shared<HostMemory>();
    memory->allocate = [f = given.allocate, user = given.memory_user, done](
                           size_t bytes, size_t align) { return f(user, bytes, align); };
    memory->release = [f = given.release, user = given.memory_user, done](
                          void* data, size_t bytes) { f(user, data, bytes); };
    ours.host_memory = std::move(memory);
  }
  return ours;
}

}  // namespace oncilla::api

oncilla_code oncilla_status_code(const oncilla_status* status) {
  return status == nullptr ? ONCILLA_OK : static_cast<oncilla_code>(status->status.code());
}
const char* oncilla_status_message(const oncilla_status* status) {
  return status == nullptr ? "" : status->message.c_str();
}
const char* oncilla_status_stage(const oncilla_status* status) {
  return status == nullptr ? "" : status->stage.c_str();
}
const char* oncilla_status_node(const oncilla_status* status) {
  return status == nullptr ? "" : status->details.node.c_str();
}
const char* oncilla_status_device(const oncilla_status* status) {
  return status == nullptr ? "" : status->details.device.c_str();
}
int oncilla_status_driver_code(const oncilla_status* status, int32_t* code) {
  if (status == nullptr || !status->details.driver_code) return 0;
  if (code != nullptr) *code = *status->details.driver_code;
  return 1;
}
void oncilla_status_free(oncilla_status* status) {
  if (status != OutOfMemoryHandle()) delete status;
}

const char* oncilla_version(void) { return kVersion; }
const char* oncilla_build_info(void) { return kBuildInfo; }

oncilla_status* oncilla_runtime_create(const oncilla_runtime_options* options,
                                       oncilla_runtime** runtime) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(runtime, "runtime"));
    std::shared_ptr<LastCall> last;
    ONCILLA_ASSIGN(RuntimeOptions ours, ReadRuntimeOptions(options, &last));
    *runtime = new oncilla_runtime{Runtime::Create(std::move(ours))};
    last->succeeded = true;
    return Status();
  });
}
void oncilla_runtime_free(oncilla_runtime* runtime) { delete runtime; }

size_t oncilla_runtime_device_count(const oncilla_runtime* runtime) {
  return runtime == nullptr ? 0 : runtime->runtime->devices().size();
}

int oncilla_runtime_has_device(const oncilla_runtime* runtime, const char* name) {
  if (runtime == nullptr || name == nullptr || *name == 0) return 0;
  return ResolveDevice(name, runtime->runtime->devices(), {}).ok() ? 1 : 0;
}

oncilla_status* oncilla_runtime_device(const oncilla_runtime* runtime, size_t index,
                                       oncilla_device_info* info) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(runtime, "runtime"));
    const auto& devices = runtime->runtime->devices();
    if (index >= devices.size()) {
      return InvalidArgument("there is no device ", index, "; there are ", devices.size());
    }
    const ListedDevice& device = devices[index];
    oncilla_device_info value{};
    value.name = device.name.c_str();
    value.note = device.note.c_str();
    value.driver_name = device.info.name.c_str();
    value.vendor = device.info.vendor.c_str();
    value.driver_version = device.info.driver.c_str();
    value.backend = device.info.backend.c_str();
    value.memory_bytes = device.info.memory_bytes;
    value.max_allocation_bytes = device.info.max_allocation_bytes;
    value.compute_units = device.info.compute_units;
    value.id = device.info.id.c_str();
    value.on_processor = device.info.can_evaluate || device.info.is_opencl_cpu ? 1 : 0;
    return WriteStruct(value, info, "oncilla_device_info");
  });
}

namespace oncilla::api {

Result<SessionOptions> ReadSessionOptions(const oncilla_session_options* options,
                                          Runtime& runtime) {
  oncilla_session_options given{};
  ONCILLA_TRY(ReadStruct(options, "oncilla_session_options", &given));
  SessionOptions ours;
  if (given.config == nullptr && given.config_size > 0) {
    return InvalidArgument("oncilla_session_options: config is null and has ", given.config_size,
                           " bytes");
  }
  if (given.config != nullptr) {
    std::vector<std::string> notes;
    ONCILLA_TRY(ReadSessionConfig({static_cast<const char*>(given.config), given.config_size}, ours,
                                  notes));
    for (const std::string& note : notes) runtime.log().Warning(note);
  }
  if (given.device != nullptr) ours.device = given.device;
  if (given.strict != 0) ours.strict = true;
  ONCILLA_TRY(CheckThreads(given.threads, "oncilla_session_options"));
  if (given.memory_limit_bytes < 0) {
    return InvalidArgument("oncilla_session_options: memory_limit_bytes is ",
                           given.memory_limit_bytes, ", below 0");
  }
  if (given.max_concurrent_runs < 0) {
    return InvalidArgument("oncilla_session_options: max_concurrent_runs is ",
                           given.max_concurrent_runs, ", below 0");
  }
  if (given.threads > 0) ours.threads = given.threads;
  if (given.memory_limit_bytes > 0) ours.memory_limit_bytes = given.memory_limit_bytes;
  if (given.max_concurrent_runs > 0) ours.max_concurrent_runs = given.max_concurrent_runs;
  return ours;
}

}  // namespace oncilla::api

oncilla_status* oncilla_session_create(oncilla_runtime* runtime,
                                       const oncilla_session_options* options,
                                       oncilla_session** session) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(runtime, "runtime"));
    ONCILLA_TRY(NeedHandle(session, "session"));
    ONCILLA_ASSIGN(SessionOptions ours, ReadSessionOptions(options, *runtime->runtime));
    ONCILLA_ASSIGN(auto created, Session::Create(runtime->runtime, std::move(ours)));
    std::string config = PrintSessionConfig(created->options(), TextForm::kJson);
    *session = new oncilla_session{std::move(created), std::move(config)};
    return Status();
  });
}

const char* oncilla_session_config(oncilla_session* session) {
  return session == nullptr ? "" : session->config.c_str();
}

oncilla_status* oncilla_session_close(oncilla_session* session, int64_t* released_bytes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    const int64_t bytes = session->session->Close().bytes;
    if (released_bytes != nullptr) *released_bytes = bytes;
    return Status();
  });
}
void oncilla_session_free(oncilla_session* session) {
  if (session == nullptr) return;
  oncilla_status_free(oncilla_session_close(session, nullptr));
  delete session;
}

oncilla_status* oncilla_session_trim(oncilla_session* session, int64_t* released_bytes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    const int64_t bytes = session->session->memory().Trim().bytes;
    if (released_bytes != nullptr) *released_bytes = bytes;
    return Status();
  });
}

oncilla_status* oncilla_session_set_memory_limit(oncilla_session* session, const char* device,
                                                 int64_t bytes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    ONCILLA_TRY(NeedHandle(device, "device"));
    return session->session->memory().SetLimit(device, bytes);
  });
}

oncilla_status* oncilla_session_memory(oncilla_session* session, const char* device,
                                       oncilla_memory_info* info) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    ONCILLA_TRY(NeedHandle(device, "device"));
    const Session& of = *session->session;
    ONCILLA_ASSIGN(const int used, of.device_set().InUse(device));
    const DeviceMemory memory = of.memory().Devices()[static_cast<size_t>(used)];
    return WriteStruct(
        oncilla_memory_info{0, memory.in_use_bytes, memory.pool_bytes, memory.peak_bytes,
                            memory.limit_bytes, memory.largest_free_bytes, memory.fragmentation,
                            memory.reserve_bytes, memory.total_bytes, memory.total_limit_bytes,
                            of.memory().abandoned_bytes()},
        info, "oncilla_memory_info");
  });
}

namespace oncilla::api {

static std::string_view Trimmed(std::string_view text) {
  const size_t first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

Result<OpenModelOptions> ReadLoadOptions(const oncilla_load_options& given, StoredDevices usual) {
  OpenModelOptions open;
  for (std::string_view tags = given.tags == nullptr ? "" : given.tags; !tags.empty();) {
    const size_t comma = std::min(tags.find(','), tags.size());
    open.tags.emplace_back(Trimmed(tags.substr(0, comma)));
    tags.remove_prefix(std::min(comma + 1, tags.size()));
  }
  const auto refuse = [](std::string_view field, int value, std::string_view names) {
    return WithStage(InvalidArgument(field, ": ", value, " is none of ", names), Stage::kOptions);
  };
  switch (given.stored_devices) {
    case ONCILLA_STORED_DEVICES_DEFAULT:
      open.stored_devices = usual;
      break;
    case ONCILLA_STORED_DEVICES_SOFT:
      open.stored_devices = StoredDevices::kSoft;
      break;
    case ONCILLA_STORED_DEVICES_RESPECT:
      open.stored_devices = StoredDevices::kRespect;
      break;
    case ONCILLA_STORED_DEVICES_IGNORE:
      open.stored_devices = StoredDevices::kIgnore;
      break;
    default:
      return refuse("stored_devices", given.stored_devices, "ONCILLA_STORED_DEVICES_..");
  }
  if (given.load_policy != ONCILLA_LOAD_LAZY && given.load_policy != ONCILLA_LOAD_EAGER) {
    return refuse("load_policy", given.load_policy, "ONCILLA_LOAD_..");
  }
  return open;
}

Result<std::shared_ptr<Model>> LoadAsAsked(
    const oncilla_load_options& given,
    const std::function<Result<std::shared_ptr<Model>>()>& load) {
  const auto report = [&](const char* what, double share) {
    if (given.progress != nullptr) given.progress(given.progress_user, what, share);
  };
  report("load", 0);
  ONCILLA_ASSIGN(std::shared_ptr<Model> model, load());
  report("load", 1);
  if (given.load_policy != ONCILLA_LOAD_EAGER) return model;
  report("compile", 0);
  const Status status = model->Prepare({}, [&](double share) {
    if (share < 1) report("compile", share);
  });
  if (!status.ok()) {
    model->Unload();
    return status;
  }
  report("compile", 1);
  return model;
}

std::vector<int64_t> DimsOf(const PartialShape& shape) {
  std::vector<int64_t> dims;
  for (const Dim& d : shape.dims()) dims.push_back(d.known() ? d.size : -1);
  return dims;
}

Status WriteTensorInfo(const TensorInfo& from, const std::vector<int64_t>& dims,
                       oncilla_tensor_info* info) {
  oncilla_tensor_info value{};
  value.name = from.name.c_str();
  value.dtype = ToC(from.dtype);
  value.ranked = from.shape.ranked() ? 1 : 0;
  value.rank = dims.size();
  value.dims = dims.data();
  value.kind = static_cast<oncilla_kind>(from.kind);
  return WriteStruct(value, info, "oncilla_tensor_info");
}

std::unique_ptr<oncilla_model> MakeModel(std::shared_ptr<Model> loaded) {
  auto handle = std::make_unique<oncilla_model>();
  for (const Signature& s : loaded->source().signatures()) {
    auto& dims = handle->dims.emplace_back();
    for (const auto* side : {&s.inputs, &s.outputs}) {
      for (const TensorInfo& t : *side) {
        dims.push_back(DimsOf(t.shape));
      }
    }
  }
  handle->model = std::move(loaded);
  return handle;
}

}  // namespace oncilla::api

oncilla_status* oncilla_model_load(oncilla_session* session, const char* path,
                                   const oncilla_load_options* options, oncilla_model** model) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    ONCILLA_TRY(NeedHandle(path, "path"));
    ONCILLA_TRY(NeedHandle(model, "model"));
    oncilla_load_options given{};
    ONCILLA_TRY(ReadStruct(options, "oncilla_load_options", &given));
    ONCILLA_ASSIGN(const OpenModelOptions open, ReadLoadOptions(given, StoredDevices::kIgnore));
    ONCILLA_ASSIGN(auto loaded,
                   LoadAsAsked(given, [&] { return session->session->Load(path, open); }));
    *model = MakeModel(std::move(loaded)).release();
    return Status();
  });
}

oncilla_status* oncilla_model_load_bytes(oncilla_session* session, const void* bytes, size_t size,
                                         const char* name, void (*release)(void* user), void* user,
                                         const oncilla_load_options* options,
                                         oncilla_model** model) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(session, "session"));
    ONCILLA_TRY(NeedHandle(bytes, "bytes"));
    ONCILLA_TRY(NeedHandle(model, "model"));
    oncilla_load_options given{};
    ONCILLA_TRY(ReadStruct(options, "oncilla_load_options", &given));
    ONCILLA_ASSIGN(const OpenModelOptions open, ReadLoadOptions(given, StoredDevices::kIgnore));
    std::span<const std::byte> view(static_cast<const std::byte*>(bytes), size);
    // Takes ownership of the bytes only once nothing can fail any more.
    const auto let_go = std::make_shared<std::atomic<bool>>(false);
    std::shared_ptr<const void> owner;
    if (release == nullptr) {
      auto copy = std::make_shared<const std::vector<std::byte>>(view.begin(), view.end());
      view = *copy;
      owner = std::move(copy);
    } else {
      owner = std::shared_ptr<const void>(bytes, [release, user, let_go](const void*) {
        try {
          if (*let_go) release(user);
        } catch (...) {  // there is no caller left to report this to
        }
      });
    }
    const auto load = [&] {
      return session->session->LoadBytes(view, std::move(owner), name == nullptr ? "bytes" : name,
                                         open);
    };
    ONCILLA_ASSIGN(auto loaded, LoadAsAsked(given, load));
    auto handle = MakeModel(std::move(loaded));
    *let_go = true;
    *model = handle.release();
    return Status();
  });
}

oncilla_status* oncilla_model_unload(oncilla_model* model, int64_t* released_bytes) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    const int64_t bytes = model->model->Unload().bytes;
    if (released_bytes != nullptr) *released_bytes = bytes;
    return Status();
  });
}
void oncilla_model_free(oncilla_model* model) { delete model; }

namespace {

const Signature* SignatureAt(const oncilla_model* model, size_t index) {
  if (model == nullptr || index >= model->model->source().signatures().size()) return nullptr;
  return &model->model->source().signatures()[index];
}

Status WriteSide(const oncilla_model* model, size_t signature, bool output, size_t index,
                 oncilla_tensor_info* info) {
  const Signature* s = SignatureAt(model, signature);
  if (s == nullptr) return InvalidArgument("there is no signature ", signature);
  const std::vector<TensorInfo>& side = output ? s->outputs : s->inputs;
  if (index >= side.size()) {
    return InvalidArgument("there is no ", output ? "output " : "input ", index, "; there are ",
                           side.size());
  }
  const auto& dims = model->dims[signature][output ? s->inputs.size() + index : index];
  return WriteTensorInfo(side[index], dims, info);
}

}  // namespace

size_t oncilla_model_signature_count(const oncilla_model* model) {
  return model == nullptr ? 0 : model->model->source().signatures().size();
}
const char* oncilla_model_signature_key(const oncilla_model* model, size_t signature) {
  const Signature* s = SignatureAt(model, signature);
  return s == nullptr ? nullptr : s->key.c_str();
}
size_t oncilla_model_input_count(const oncilla_model* model, size_t signature) {
  const Signature* s = SignatureAt(model, signature);
  return s == nullptr ? 0 : s->inputs.size();
}
size_t oncilla_model_output_count(const oncilla_model* model, size_t signature) {
  const Signature* s = SignatureAt(model, signature);
  return s == nullptr ? 0 : s->outputs.size();
}
oncilla_status* oncilla_model_input(const oncilla_model* model, size_t signature, size_t index,
                                    oncilla_tensor_info* info) {
  return Guard([&] { return WriteSide(model, signature, false, index, info); });
}
oncilla_status* oncilla_model_output(const oncilla_model* model, size_t signature, size_t index,
                                     oncilla_tensor_info* info) {
  return Guard([&] { return WriteSide(model, signature, true, index, info); });
}

namespace oncilla::api {

Status ReadNames(const char* const* names, size_t count, std::string_view what,
                 std::vector<std::string>* out) {
  if (names == nullptr && count > 0) {
    return InvalidArgument(what, " is null, but their number is ", count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return InvalidArgument(what, "[", i, "] is null");
    out->emplace_back(names[i]);
  }
  return Status();
}

Status ReadRunRequest(const char* const* input_names, const oncilla_tensor* const* inputs,
                      size_t input_count, const oncilla_run_options* options, RunRequest* request) {
  oncilla_run_options given{};
  ONCILLA_TRY(ReadStruct(options, "oncilla_run_options", &given));
  if (given.signature != nullptr) request->signature = given.signature;
  if (given.timeout_ms < 0) return InvalidArgument("timeout_ms is ", given.timeout_ms);
  request->timeout = std::chrono::milliseconds(given.timeout_ms);
  if (given.device != nullptr) request->device = given.device;
  ONCILLA_TRY(ReadNames(given.outputs, given.output_count, "outputs", &request->fetches));
  ONCILLA_TRY(ReadNames(given.targets, given.target_count, "targets", &request->targets));
  ONCILLA_TRY(ReadNames(given.keep, given.keep_count, "keep", &request->keep));
  request->keep_all = given.keep_all != 0;
  if (given.cancellation != nullptr) request->cancel = given.cancellation->token;
  if (given.trace_level < ONCILLA_TRACE_NONE || given.trace_level > ONCILLA_TRACE_FULL) {
    return InvalidArgument("trace_level is ", given.trace_level);
  }
  request->trace = static_cast<TraceLevel>(given.trace_level);
  if (given.into_count > 0) ONCILLA_TRY(NeedHandle(given.into, "into"));
  for (size_t i = 0; i < given.into_count; ++i) {
    const oncilla_output_memory& memory = given.into[i];
    ONCILLA_TRY(NeedHandle(memory.output, StrCat("into[", i, "].output")));
    ONCILLA_TRY(NeedHandle(memory.data, StrCat("into[", i, "].data")));
    request->into.push_back({memory.output, {static_cast<std::byte*>(memory.data), memory.bytes}});
  }
  if (input_count > 0) {
    ONCILLA_TRY(NeedHandle(input_names, "input_names"));
    ONCILLA_TRY(NeedHandle(inputs, "inputs"));
  }
  for (size_t i = 0; i < input_count; ++i) {
    if (input_names[i] == nullptr) return InvalidArgument("input_names[", i, "] is null");
    if (inputs[i] == nullptr) return InvalidArgument("inputs[", i, "] is null");
    if (inputs[i]->device.valid()) {
      request->device_feeds.emplace_back(input_names[i], inputs[i]->device);
    } else {
      request->feeds.emplace_back(input_names[i], inputs[i]->tensor);
    }
  }
  return Status();
}

Status NeedTensor(const oncilla_tensor* tensor, std::string_view what, size_t index) {
  if (tensor != nullptr && !tensor->tensor.is_list()) return Status();
  return NeedTensor(tensor, StrCat(what, "[", index, "]"));
}

Status NeedTensor(const oncilla_tensor* tensor, std::string_view what) {
  ONCILLA_TRY(NeedHandle(tensor, what));
  if (!tensor->tensor.is_list()) return Status();
  return InvalidArgument(what, " is a sequence or an optional value, and must be a tensor");
}

}  // namespace oncilla::api

oncilla_status* oncilla_model_run(oncilla_model* model, const char* const* input_names,
                                  const oncilla_tensor* const* inputs, size_t input_count,
                                  const oncilla_run_options* options, oncilla_result** result) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    ONCILLA_TRY(NeedHandle(result, "result"));
    RunRequest request;
    ONCILLA_TRY(ReadRunRequest(input_names, inputs, input_count, options, &request));
    ONCILLA_ASSIGN(RunResult ran, model->model->Run(request));
    *result = MakeResult(std::move(ran)).release();
    return Status();
  });
}

oncilla_status* oncilla_model_prepare(oncilla_model* model, const char* const* input_names,
                                      const oncilla_tensor* const* inputs, size_t input_count,
                                      const oncilla_run_options* options) {
  return Guard([&]() -> Status {
    ONCILLA_TRY(NeedHandle(model, "model"));
    RunRequest request;
    ONCILLA_TRY(ReadRunRequest(input_names, inputs, input_count, options, &request));
    return model->model->Prepare(request);
  });
}
