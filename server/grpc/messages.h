// Messages of the gRPC form to the server's own types and back.
#pragma once

#include <inference.pb.h>

#include "server/core/shared_memory.h"
#include "server/service.h"

namespace oncilla::server {

absl::StatusOr<InferRequest> FromMessage(const inference::ModelInferRequest& message,
                                         const SharedMemory& memory);
void ToMessage(const InferResponse& response, inference::ModelInferResponse* message);
void ToMessage(const ModelMetadata& metadata, inference::ModelMetadataResponse* message);
void ToMessage(const ModelDescription& model, inference::ModelConfigResponse* message);
// The files are counted on `budget` before they are copied.
absl::StatusOr<LoadRequest> FromMessage(const inference::RepositoryModelLoadRequest& message,
                                        ByteBudget* budget);
TraceSettings::Values FromMessage(const inference::TraceSettingRequest& message);
void ToMessage(const TraceSettings::Values& settings, inference::TraceSettingResponse* message);
LogSettings::Values FromMessage(const inference::LogSettingsRequest& message);
void ToMessage(const LogSettings::Values& settings, inference::LogSettingsResponse* message);
void ToMessage(const std::vector<IndexEntry>& index, inference::RepositoryIndexResponse* message);
void ToMessage(const std::vector<ModelStatistics>& all,
               inference::ModelStatisticsResponse* message);
void ToMessage(const std::vector<MemoryRegion>& regions,
               inference::SystemSharedMemoryStatusResponse* message);

}  // namespace oncilla::server
