// The JSON of all replies but those to inference: metadata, index, statistics, shared memory,
// errors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "server/service.h"

namespace oncilla::server {

using ReplyJson = nlohmann::ordered_json;

// Never throws: text that is no UTF-8 is replaced.
std::string Dump(const ReplyJson& json);

ReplyJson ErrorJson(const std::string& message);
ReplyJson ServerJson();
ReplyJson MetadataJson(const ModelMetadata& metadata);
ReplyJson ConfigJson(const ModelDescription& model);
ReplyJson TracingJson(const TraceSettings::Values& settings);
ReplyJson LoggingJson(const LogSettings::Values& settings);
ReplyJson IndexJson(const std::vector<IndexEntry>& index);
ReplyJson StatisticsJson(const std::vector<ModelStatistics>& all);
ReplyJson RegionsJson(const std::vector<MemoryRegion>& regions);

}  // namespace oncilla::server
