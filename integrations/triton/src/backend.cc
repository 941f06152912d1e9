// The functions that Triton calls, for the backend, its models and their instances.
#include <charconv>
#include <memory>

#include "integrations/triton/src/border.h"
#include "integrations/triton/src/model.h"

using namespace oncilla::triton;  // NOLINT: the functions below are C's

namespace {

using nlohmann::json;

// State that all models of this backend share: the devices, and the threads of the CPU device.
struct Backend {
  oncilla::Runtime runtime;
};

struct Instance {
  ServedModel* model = nullptr;
  std::string device;
};

template <class T>
T& StateOf(void* state) {
  if (state == nullptr) throw Failure(kInternal, "oncilla: the object was not initialised");
  return *static_cast<T*>(state);
}

void CheckVersion() {
  uint32_t major = 0, minor = 0;
  Check(TRITONBACKEND_ApiVersion(&major, &minor));
  if (major == kApiMajor && minor >= kApiMinor) return;
  throw Failure(kUnsupported, "oncilla: the server's backend interface is " +
                                  std::to_string(major) + "." + std::to_string(minor) + ", and " +
                                  std::to_string(kApiMajor) + "." + std::to_string(kApiMinor) +
                                  " or a later one of that major version is needed");
}

int CountOf(const std::string& name, const std::string& value) {
  int count = 0;
  const char* end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, count);
  if (error == std::errc() && stopped == end && count >= 0) return count;
  throw Failure(kInvalidArgument, "oncilla: --backend-config=oncilla," + name + "=" + value +
                                      " is not a number from 0");
}

// Reads --backend-config=oncilla,NAME=VALUE. Triton adds its own settings, whose names contain
// hyphens.
oncilla::RuntimeOptions ReadSettings(TRITONBACKEND_Backend* handle) {
  TRITONSERVER_Message* message = nullptr;  // Triton's own, unlike a model's
  Check(TRITONBACKEND_BackendConfig(handle, &message));
  const json config = json::parse(JsonOf(message), nullptr, false);
  oncilla::RuntimeOptions options;
  if (!config.is_object()) return options;
  const json settings = config.value("cmdline", json::object());
  for (const auto& [name, given] : settings.items()) {
    const std::string value = given.is_string() ? given.get<std::string>() : given.dump();
    if (name == "threads") {
      options.threads = CountOf(name, value);
    } else if (name == "cache_dir") {
      options.cache_dir = value;
    } else if (name == "opencl_cpu_devices") {
      options.opencl_cpu_devices = value == "true" || value == "1";
    } else if (name.find('-') == std::string::npos) {
      throw Failure(kInvalidArgument, "oncilla: there is no setting '" + name +
                                          "'; there are: threads, cache_dir, opencl_cpu_devices");
    }
  }
  return options;
}

}  // namespace

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return Guard([&] {
    CheckVersion();
    oncilla::RuntimeOptions options = ReadSettings(backend);
    options.log = [](oncilla_log_level level, const std::string& message) {
      Log(level == ONCILLA_LOG_ERROR     ? kError
          : level == ONCILLA_LOG_WARNING ? kWarning
          : level == ONCILLA_LOG_INFO    ? kInfo
                                         : kVerbose,
          "oncilla: " + message);
    };
    auto made = std::make_unique<Backend>(Backend{Value(oncilla::Runtime::Create(options))});
    for (const oncilla::DeviceInfo& device : made->runtime.Devices()) {
      if (!device.name.empty()) Log(kInfo, "oncilla: " + device.name + " is " + device.driver_name);
    }
    Check(TRITONBACKEND_BackendSetState(backend, made.get()));
    (void)made.release();  // freed in Finalize
  });
}

TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  return Guard([&] {
    void* state = nullptr;
    Check(TRITONBACKEND_BackendState(backend, &state));
    delete static_cast<Backend*>(state);
  });
}

TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend*,
                                                      TRITONBACKEND_BackendAttribute* attributes) {
  // If a model names no instances, the engine chooses the device.
  return TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes, kKindModel, 1, nullptr,
                                                                 0);
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return Guard([&] {
    TRITONBACKEND_Backend* backend = nullptr;
    void* state = nullptr;
    Check(TRITONBACKEND_ModelBackend(model, &backend));
    Check(TRITONBACKEND_BackendState(backend, &state));
    auto made = std::make_unique<ServedModel>(model, StateOf<Backend>(state).runtime);
    Check(TRITONBACKEND_ModelSetState(model, made.get()));
    (void)made.release();  // freed in ModelFinalize
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return Guard([&] {
    void* state = nullptr;
    Check(TRITONBACKEND_ModelState(model, &state));
    const std::unique_ptr<ServedModel> own(static_cast<ServedModel*>(state));
    if (own != nullptr) own->Close();
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  return Guard([&] {
    TRITONBACKEND_Model* model = nullptr;
    TRITONSERVER_InstanceGroupKind kind = kKindAuto;
    const char* name = nullptr;
    void* state = nullptr;
    Check(TRITONBACKEND_ModelInstanceModel(instance, &model));
    Check(TRITONBACKEND_ModelInstanceKind(instance, &kind));
    Check(TRITONBACKEND_ModelInstanceName(instance, &name));
    Check(TRITONBACKEND_ModelState(model, &state));
    auto& served = StateOf<ServedModel>(state);
    auto made = std::make_unique<Instance>(Instance{&served, served.DeviceFor(kind, name)});
    Check(TRITONBACKEND_ModelInstanceSetState(instance, made.get()));
    (void)made.release();  // freed in ModelInstanceFinalize
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) {
  return Guard([&] {
    void* state = nullptr;
    Check(TRITONBACKEND_ModelInstanceState(instance, &state));
    delete static_cast<Instance*>(state);
  });
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       uint32_t count) {
  return Guard([&] {
    void* state = nullptr;
    Check(TRITONBACKEND_ModelInstanceState(instance, &state));
    const auto& own = StateOf<Instance>(state);
    own.model->Execute(instance, own.device, requests, count);
  });
}
