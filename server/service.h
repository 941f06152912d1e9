// Service: the interface of the server for both front ends. Metadata, validation, statistics and
// the state of the server are implemented here, once for HTTP and gRPC.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <oncilla/oncilla.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/core/byte_budget.h"
#include "server/core/request.h"
#include "server/core/shared_memory.h"
#include "server/model/repository.h"
#include "server/watch/history.h"
#include "server/watch/log.h"
#include "server/watch/trace_settings.h"

namespace oncilla::server {

struct ServiceOptions {
  RepositoryOptions repository;
  bool shared_memory = false;
  std::string token;  // clients must show it; empty: none
  size_t max_request_bytes = 256u << 20;
  size_t max_held_bytes = 0;  // of all requests together
};

// How a version is served: what it takes and gives, and what config.yaml says.
struct ModelDescription {
  ModelMetadata metadata;
  ModelConfig config;
};

// The statistics of a version, with its name.
struct ModelStatistics {
  std::string name, version;
  Statistics counted;
  std::vector<DeviceUse> memory;
  std::map<std::string, int64_t> placement;  // nodes by device
  size_t waiting = 0, running = 0;
  bool stateful = false;
  SequenceCounts sequences;  // of a model that is
};

// A request in progress. A default-constructed one is over.
class PendingInfer {
 public:
  PendingInfer() = default;
  PendingInfer(std::shared_ptr<ServedModel> model, std::shared_ptr<Job> job)
      : model_(std::move(model)), job_(std::move(job)) {}
  void Cancel() const {
    if (job_ != nullptr) model_->Cancel(job_);
  }

 private:
  std::shared_ptr<ServedModel> model_;
  std::shared_ptr<Job> job_;
};

// One front end's counts, for the metrics.
struct FrontCounts {
  std::atomic<uint64_t> connections{0};  // open now
  std::atomic<uint64_t> refused{0};      // connections above the limit
  std::atomic<uint64_t> bytes_in{0}, bytes_out{0};
  std::array<std::atomic<uint64_t>, 17> codes{};  // requests by absl::StatusCode
};

class Service {
 public:
  Service(ServiceOptions options, Runtime runtime, Log* log);

  absl::Status Start() { return repository_.Start(); }

  // Ready: the models of the start are loaded, and the server is not shutting down.
  bool ready() const { return repository_.started() && !draining_; }
  // Ends readiness; requests are still served.
  void BeginDrain() { draining_ = true; }
  // Refuses new inference, waits until none is in progress, at most until `deadline`, and closes
  // all models.
  void Close(Clock::time_point deadline);

  static std::vector<std::string> Extensions();
  absl::StatusOr<ModelMetadata> Metadata(const std::string& name, const std::string& version) const;
  absl::StatusOr<ModelDescription> Describe(const std::string& name,
                                            const std::string& version) const;
  bool ModelReady(const std::string& name, const std::string& version) const;

  // Checks, queues and runs a request. `done` is called once, perhaps before this returns.
  PendingInfer Infer(InferRequest request, InferDone done);

  std::vector<IndexEntry> Index(bool only_ready) const { return repository_.Index(only_ready); }
  void Load(const std::string& name, LoadRequest request, std::function<void(absl::Status)> done) {
    repository_.Load(name, std::move(request), std::move(done));
  }
  absl::Status Unload(const std::string& name) { return repository_.Unload(name); }

  // Of one model or, with an empty name, of all that are ready.
  absl::StatusOr<std::vector<ModelStatistics>> StatisticsOf(const std::string& name,
                                                            const std::string& version) const;

  // The trace settings of a model or, with an empty name, of all; NotFound for an unknown model.
  // Applies `values` first.
  absl::StatusOr<TraceSettings::Values> Tracing(const std::string& model,
                                                const TraceSettings::Values& values);

  // The settings of the event log. Applies `values` first.
  absl::StatusOr<LogSettings::Values> Logging(const LogSettings::Values& values);

  // Records what the models hold of each device now; called every few seconds.
  void SampleMemory() { history_.Add(MemoryNow()); }
  // What all models hold of each device, summed.
  std::vector<DeviceUse> MemoryNow() const;
  const MemoryHistory& history() const { return history_; }

  // What both front ends hold for unanswered requests.
  ByteBudget& requests_held() { return requests_held_; }
  SharedMemory& shared_memory() { return shared_memory_; }
  const ServiceOptions& options() const { return options_; }
  const Runtime& runtime() const { return runtime_; }
  Log& log() { return *log_; }
  FrontCounts& http_counts() { return http_; }
  FrontCounts& grpc_counts() { return grpc_; }
  FrontCounts& metrics_counts() { return metrics_; }

  // Whether "Bearer <token>", or "" for none, has the right token. Takes the same time for all
  // wrong ones.
  bool Allows(std::string_view authorization) const;

 private:
  void End();
  absl::Status WriteOutputs(InferResponse& response) const;

  const ServiceOptions options_;
  const Runtime runtime_;
  Log* const log_;
  Repository repository_;
  ByteBudget requests_held_;
  SharedMemory shared_memory_;
  FrontCounts http_, grpc_, metrics_;
  MemoryHistory history_;
  TraceSettings tracing_;
  std::atomic<bool> draining_{false}, refusing_{false};
  std::mutex mutex_;
  std::condition_variable idle_;
  size_t under_way_ = 0;
};

}  // namespace oncilla::server
