// A model that Triton serves: loaded into a session of its own, and run for batches of requests.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <oncilla/oncilla.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "integrations/triton/src/abi.h"
#include "integrations/triton/src/config.h"
#include "integrations/triton/src/request.h"

namespace oncilla::triton {

class ServedModel {
 public:
  // Loads the model in the version's folder, fills in the configuration if Triton requests that,
  // and checks it.
  ServedModel(TRITONBACKEND_Model* handle, const Runtime& runtime);

  // The device of one more instance of this kind; "": the session's.
  std::string DeviceFor(TRITONSERVER_InstanceGroupKind kind, const std::string& instance);

  // Answers requests: each of them gets one response, and is released.
  void Execute(TRITONBACKEND_ModelInstance* instance, const std::string& device,
               TRITONBACKEND_Request** requests, uint32_t count) const;

  // Frees all memory, and logs how much that was.
  void Close();

 private:
  using Group = std::vector<Request*>;
  void Load(const Runtime& runtime, const nlohmann::json& config, const std::string& path);
  void Configure(TRITONBACKEND_Model* handle, nlohmann::json config);
  void RunGroup(TRITONBACKEND_ModelInstance* instance, const std::string& device,
                const Group& group, uint64_t begin) const;
  // Runs requests as one and sends their responses.
  void RunJoined(TRITONBACKEND_ModelInstance* instance, const std::string& device,
                 const Group& group, uint64_t begin) const;
  RunResult Run(const std::string& device, const Group& group, const Model::Inputs& inputs,
                const std::vector<std::string>& outputs) const;

  std::string label_;  // "name" version 1, for messages
  Options options_;
  bool batches_ = false;
  std::set<std::string> scalars_;  // inputs that have no axes
  std::optional<Session> session_;
  std::optional<Model> model_;
  std::atomic<size_t> instances_ = 0;  // created so far
};

}  // namespace oncilla::triton
