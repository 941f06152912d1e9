// ServedModel: one version of a model that is ready to serve: its session, signature, queue and
// statistics.
#pragma once

#include <map>
#include <memory>
#include <oncilla/oncilla.hpp>
#include <optional>
#include <string>

#include "server/core/request.h"
#include "server/core/text.h"
#include "server/model/batcher.h"
#include "server/model/config.h"
#include "server/model/controls.h"
#include "server/model/fit.h"
#include "server/model/load_interrupt.h"
#include "server/model/statistics.h"

namespace oncilla::server {

// Bytes that a version holds on a device.
struct DeviceUse {
  std::string device;  // "GPU:0"
  std::string type() const { return device.substr(0, device.find(':')); }
  int64_t number() const { return ParseNumber(device.substr(device.find(':') + 1)).value_or(0); }
  int64_t in_use_bytes = 0;
  int64_t pool_bytes = 0;
  int64_t limit_bytes = 0;
};

class ServedModel {
 public:
  struct Source {
    std::string name;
    std::string version;
    std::string path;    // the model's file or folder
    std::string device;  // where the config names none
    ModelConfig config;
    std::shared_ptr<const void> files = nullptr;  // kept as long as the model
  };
  // Loads and compiles the model and, if its inputs' sizes allow, plans its largest batch, so that
  // it fails here if it does not fit together with the other models of `promises`. The message
  // names no file. Aborted if it was interrupted.
  static absl::StatusOr<std::shared_ptr<ServedModel>> Load(const Runtime& runtime,
                                                           const Source& source,
                                                           std::shared_ptr<Promises> promises,
                                                           LoadInterrupt* interrupt);
  ~ServedModel();

  // The names and types of inputs and outputs; `versions` is left empty.
  const ModelMetadata& metadata() const { return metadata_; }
  const ModelConfig& config() const { return config_; }
  const std::string& version() const { return version_; }

  // Checks the request against the signature and adds it to the queue. `done` may be called before
  // this returns. The job is null if the request was refused.
  std::shared_ptr<Job> Submit(InferRequest request, InferDone done);
  void Cancel(const std::shared_ptr<Job>& job) { batcher_->Cancel(job); }

  // Accepts no further requests, waits for those in progress, at most until `deadline`, and frees
  // all memory.
  void Close(Clock::time_point deadline);

  Statistics statistics() const { return statistics_.Snapshot(); }
  size_t waiting() const { return batcher_->waiting(); }
  size_t running() const { return batcher_->running(); }
  SequenceCounts sequences() const { return batcher_->sequences(); }
  std::vector<DeviceUse> memory() const;
  // How many nodes of the graph run on each device: "GPU:0".
  const std::map<std::string, int64_t>& placement() const { return placement_; }

 private:
  ServedModel(Session session, Model model, const Source& source,
              std::shared_ptr<Promises> promises);
  static absl::StatusOr<std::shared_ptr<ServedModel>> LoadWatched(
      const Runtime& runtime, const Source& source, std::shared_ptr<Promises> promises,
      LoadInterrupt* interrupt);
  absl::Status ReadSignature();
  absl::Status ReadStates();
  absl::Status CheckBatching();
  absl::Status CheckDeclared();
  absl::Status PrepareLargest();
  absl::Status CountPlacement();
  absl::Status CheckRequest(InferRequest& request) const;
  absl::Status CheckPriority(InferRequest& request) const;
  absl::Status CheckRows(const InferRequest& request, int64_t& rows) const;
  absl::StatusOr<std::vector<Tensor>> Run(const std::string& device, const Batcher::Inputs& inputs,
                                          const std::vector<std::string>& outputs,
                                          int64_t timeout_ms,
                                          const Cancellation& cancellation) const;
  bool joins() const { return config_.joins(); }

  const std::shared_ptr<const void> files_;
  Session session_;
  Model model_;
  ModelConfig config_;
  const std::string version_;
  ModelMetadata metadata_;
  std::optional<SequenceOptions> sequences_;
  std::vector<ControlTensor> controls_;
  std::map<std::string, int64_t> placement_;
  StatisticsRecorder statistics_;
  const std::shared_ptr<Promises> promises_;
  std::unique_ptr<Batcher> batcher_;
};

}  // namespace oncilla::server
