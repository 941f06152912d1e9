// A model's configuration (config.pbtxt) as Triton passes it, in JSON: the settings that the
// backend reads, checks and fills in.
#pragma once

#include <nlohmann/json.hpp>
#include <oncilla/oncilla.hpp>
#include <string>
#include <vector>

#include "integrations/triton/src/abi.h"

namespace oncilla::triton {

// A user's settings of a model in `parameters`: the backend's own, and options of the engine's
// session.
struct Options {
  std::vector<std::string> devices;  // instances take them in turn; empty: by the instance's kind
  std::string signature;             // of a TensorFlow model; "": the default one
  std::string tags;                  // of a SavedModel, with commas
  std::string session;               // all other options, as JSON (docs/config.md); "": none
};
inline constexpr const char* kOwnParameters = "device, signature, tags, memory_limit, config";

// Reads `parameters` of a model's configuration. Names that are not the backend's own are options
// of the session ("precision.storage": a nested field), which the engine checks.
Options ReadOptions(const nlohmann::json& config);

// A number of a configuration: 64-bit integers may be text in JSON.
int64_t NumberOf(const nlohmann::json& value);

// The number of instances that the configuration asks for, at least 1.
int InstanceCountOf(const nlohmann::json& config);
// Whether all of its instances are of KIND_CPU; false if it names none.
bool IsForCpu(const nlohmann::json& config);

// The engine's type, or 0 for one that the engine or Triton does not have; and the reverse,
// kNoType.
oncilla_dtype DTypeOf(TRITONSERVER_DataType type);
DataType DataTypeOf(oncilla_dtype dtype);

// Fills in `input` and `output` from a model's signature if the configuration has none, and returns
// whether anything changed. Throws for tensors that a configuration cannot describe: a sequence, a
// type that Triton does not have, an unknown rank.
bool Complete(nlohmann::json& config, const std::vector<TensorInfo>& inputs,
              const std::vector<TensorInfo>& outputs);

// Compares a configuration with the model's signature: names, types, shapes, and whether the model
// supports batches (max_batch_size above 0). Throws with the first difference.
void CheckAgainst(const nlohmann::json& config, const std::vector<TensorInfo>& inputs,
                  const std::vector<TensorInfo>& outputs);

// Whether a model's tensor is a scalar; in a request it is one element, [1], since Triton has no
// scalars.
bool IsScalar(const TensorInfo& info);

// "[2,3,-1]"
std::string ShapeText(const std::vector<int64_t>& dims);

}  // namespace oncilla::triton
