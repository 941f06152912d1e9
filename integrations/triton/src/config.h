// A model's configuration (config.pbtxt) as Triton hands it over, in JSON: what the backend reads
// of it, what it checks, and what it fills in.
#pragma once

#include <nlohmann/json.hpp>
#include <oncilla/oncilla.hpp>
#include <string>
#include <vector>

#include "integrations/triton/src/abi.h"

namespace oncilla::triton {

// What a user sets of a model by `parameters`: own names, and those of an engine's session.
struct Options {
  std::vector<std::string> devices;  // instances take them in turn; empty: by the instance's kind
  std::string signature;             // of a TensorFlow model; "": the default one
  std::string tags;                  // of a SavedModel, with commas
  std::string session;               // all other options, as JSON (docs/config.md); "": none
};
inline constexpr const char* kOwnParameters = "device, signature, tags, memory_limit, config";

// Reads `parameters` of a model's configuration. Names that are none of the backend's own are
// options of the session ("precision.storage": a field within a field), which the engine judges.
Options ReadOptions(const nlohmann::json& config);

// A number of a configuration: JSON of 64-bit integers may be text.
int64_t NumberOf(const nlohmann::json& value);

// The number of instances that the configuration asks for, at least 1.
int InstanceCountOf(const nlohmann::json& config);
// Whether all of its instances are of KIND_CPU; not where it names none.
bool IsForCpu(const nlohmann::json& config);

// The engine's type, or 0 for one that the engine or Triton lacks; and the other way round,
// kNoType.
oncilla_dtype DTypeOf(TRITONSERVER_DataType type);
DataType DataTypeOf(oncilla_dtype dtype);

// Fills in `input` and `output` from a model's signature where the configuration has none, and
// returns whether anything changed. Throws where the signature has what a configuration cannot
// say: a sequence, a type that Triton lacks, an unknown rank.
bool Complete(nlohmann::json& config, const std::vector<TensorInfo>& inputs,
              const std::vector<TensorInfo>& outputs);

// Compares a configuration with the model's signature: names, types, shapes, and whether batches
// (max_batch_size above 0) are what the model takes. Throws with the first difference.
void CheckAgainst(const nlohmann::json& config, const std::vector<TensorInfo>& inputs,
                  const std::vector<TensorInfo>& outputs);

// Whether a model's tensor has no axes; in a request it is one element, [1], since Triton has no
// scalars.
bool IsScalar(const TensorInfo& info);

// "[2,3,-1]"
std::string ShapeText(const std::vector<int64_t>& dims);

}  // namespace oncilla::triton
