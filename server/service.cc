// The calls of the protocol, which both front ends use.
#include "server/service.h"

#include <algorithm>

#include "server/core/tensor_codec.h"

namespace oncilla::server {

Service::Service(ServiceOptions options, Runtime runtime, Log* log)
    : options_(std::move(options)),
      runtime_(std::move(runtime)),
      log_(log),
      repository_(
          options_.repository, runtime_,
          [log](const std::string& what, const std::string& model, const std::string& version,
                const std::string& reason) { log->Event(what, model, version, reason); }),
      requests_held_(options_.max_held_bytes),
      shared_memory_(options_.shared_memory) {}

void Service::Close(Clock::time_point deadline) {
  draining_ = refusing_ = true;
  {
    std::unique_lock lock(mutex_);
    idle_.wait_until(lock, deadline, [&] { return under_way_ == 0; });
  }
  repository_.Close(deadline);
}

std::vector<std::string> Service::Extensions() {
  return {"binary_tensor_data",
          "classification",
          "model_repository",
          "model_repository(unload_dependents)",
          "model_configuration",
          "schedule_policy",
          "sequence",
          "sequence(string_id)",
          "statistics",
          "system_shared_memory",
          "trace",
          "logging"};
}

absl::StatusOr<ModelMetadata> Service::Metadata(const std::string& name,
                                                const std::string& version) const {
  const auto model = repository_.Find(name, version);
  if (!model.ok()) return model.status();
  ModelMetadata metadata = (*model)->metadata();
  metadata.versions = repository_.ReadyVersions(name);
  return metadata;
}

absl::StatusOr<ModelDescription> Service::Describe(const std::string& name,
                                                   const std::string& version) const {
  const auto model = repository_.Find(name, version);
  if (!model.ok()) return model.status();
  return ModelDescription{(*model)->metadata(), (*model)->config()};
}

absl::StatusOr<TraceSettings::Values> Service::Tracing(const std::string& model,
                                                       const TraceSettings::Values& values) {
  if (!model.empty()) {
    const absl::Status known = repository_.Find(model, "").status();
    if (known.code() == absl::StatusCode::kNotFound) return known;
  }
  const absl::Status status = tracing_.Set(model, values);
  if (!status.ok()) return status;
  return tracing_.Get(model);
}

absl::StatusOr<LogSettings::Values> Service::Logging(const LogSettings::Values& values) {
  const absl::Status status = log_->settings().Set(values);
  if (!status.ok()) return status;
  return log_->settings().Get();
}

bool Service::ModelReady(const std::string& name, const std::string& version) const {
  return !draining_ && repository_.Find(name, version).ok();
}

void Service::End() {
  const std::lock_guard lock(mutex_);
  if (--under_way_ == 0) idle_.notify_all();
}

absl::Status Service::WriteOutputs(InferResponse& response) const {
  for (InferOutput& output : response.outputs) {
    const auto bytes = RawBytes(output.tensor);
    if (!bytes.ok()) return bytes.status();
    if (!output.into) continue;
    std::string raw;
    raw.reserve(*bytes);
    AppendRaw(output.tensor, raw);
    const absl::Status written = shared_memory_.Write(*output.into, raw);
    if (!written.ok()) return written;
    output.into->bytes = raw.size();
  }
  return absl::OkStatus();
}

PendingInfer Service::Infer(InferRequest request, InferDone done) {
  if (refusing_) {
    done(absl::UnavailableError("the server is ending"));
    return {};
  }
  const auto model = repository_.Find(request.model, request.version);
  if (!model.ok()) {
    done(model.status());
    return {};
  }
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  const bool traced = tracing_.Take(request.model);
  auto job = (*model)->Submit(std::move(request), [this, traced, done = std::move(done)](
                                                      absl::StatusOr<InferResponse> outcome) {
    if (outcome.ok()) {
      outcome->traced = traced;
      const absl::Status written = WriteOutputs(*outcome);
      if (!written.ok()) outcome = written;
    }
    done(std::move(outcome));
    End();
  });
  return {*model, std::move(job)};
}

absl::StatusOr<std::vector<ModelStatistics>> Service::StatisticsOf(
    const std::string& name, const std::string& version) const {
  std::vector<std::shared_ptr<ServedModel>> models;
  if (!name.empty() && !version.empty()) {
    auto model = repository_.Find(name, version);
    if (!model.ok()) return model.status();
    models.push_back(*std::move(model));
  } else {
    if (!name.empty()) {
      const auto model = repository_.Find(name, "");
      if (!model.ok()) return model.status();
    }
    for (const auto& model : repository_.ReadyModels()) {
      if (name.empty() || model->metadata().name == name) models.push_back(model);
    }
  }
  std::vector<ModelStatistics> all;
  for (const auto& model : models) {
    all.push_back({model->metadata().name, model->version(), model->statistics(), model->memory(),
                   model->placement(), model->waiting(), model->running(),
                   model->config().sequences.has_value(), model->sequences()});
  }
  return all;
}

std::vector<DeviceUse> Service::MemoryNow() const {
  std::vector<DeviceUse> sums;
  for (const auto& model : repository_.ReadyModels()) {
    for (const DeviceUse& use : model->memory()) {
      auto sum = std::find_if(sums.begin(), sums.end(),
                              [&](const DeviceUse& s) { return s.device == use.device; });
      if (sum == sums.end()) sum = sums.insert(sums.end(), {use.device, 0, 0, 0});
      sum->in_use_bytes += use.in_use_bytes;
      sum->pool_bytes += use.pool_bytes;
    }
  }
  return sums;
}

bool Service::Allows(std::string_view authorization) const {
  if (options_.token.empty()) return true;
  constexpr std::string_view kBearer = "Bearer ";
  if (authorization.substr(0, kBearer.size()) != kBearer) return false;
  authorization.remove_prefix(kBearer.size());
  // Compares in constant time, so that the time does not reveal how much of a guess was right.
  unsigned difference = authorization.size() != options_.token.size();
  for (size_t i = 0; i < authorization.size(); ++i) {
    difference |= static_cast<unsigned char>(authorization[i]) ^
                  static_cast<unsigned char>(options_.token[i % options_.token.size()]);
  }
  return difference == 0;
}

}  // namespace oncilla::server
