// What the library offers to ONNX Runtime: the devices of the engine, and providers on them.
#pragma once

#include <memory>
#include <mutex>
#include <oncilla/oncilla.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "integrations/onnxruntime/src/ep.h"

namespace oncilla::ort {

// Lives until ONNX Runtime has released it and the last of its providers is gone, since sessions
// may outlive the registration of the library.
class Factory : public OrtEpFactory {
 public:
  static Factory* Create(const OrtLogger* logger);
  void Release();

  // The reports of all providers that are alive, of this factory and others.
  static std::string ReportAll(bool json);

 private:
  explicit Factory(const OrtLogger* logger);
  ~Factory();

  void ListDevices(const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** ep_devices,
                   size_t room, size_t* written);
  OrtEpDevice* MakeDevice(const DeviceInfo& info, const OrtHardwareDevice* const* devices,
                          size_t count, std::set<const OrtHardwareDevice*>& used);
  OrtEp* Open(const OrtKeyValuePairs* const* metadata, size_t count,
              const OrtSessionOptions* options, const OrtLogger* logger);
  void Close(Ep* ep);
  void Drop();

  // The engine's log goes to ONNX Runtime's log, which is no longer valid after the library was
  // unregistered.
  struct LogTarget {
    std::mutex mutex;
    const OrtLogger* logger = nullptr;
  };
  const std::shared_ptr<LogTarget> log_;
  const Runtime runtime_;
  std::vector<OrtHardwareDevice*> made_;  // of devices that ONNX Runtime does not know
  std::mutex mutex_;
  size_t held_ = 1;  // by ONNX Runtime and by each provider
};

}  // namespace oncilla::ort
