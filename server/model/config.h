// ModelConfig: the contents of config.yaml in a model's folder. docs/serving.md lists the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/model/batcher.h"

namespace oncilla::server {

// Which of the versions on disk are served.
struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };
  Kind kind = Kind::kLatest;
  int64_t latest = 1;             // kLatest: so many, the highest numbers
  std::vector<int64_t> specific;  // kSpecific
};

// An input or output as a configuration declares it, in the protocol's words for configurations.
struct DeclaredTensor {
  std::string name;
  std::string data_type;      // "TYPE_FP32"
  std::vector<int64_t> dims;  // without the batch's axis where requests are joined; -1: open
};

// A state of sequences as a configuration declares it: an output that becomes the input of the next
// request. Sizes are without the batch's axis where requests are joined.
struct DeclaredState {
  std::string input_name, output_name;
  std::string data_type;                             // "": the model's
  std::optional<std::vector<int64_t>> dims;          // none: the model's
  std::optional<std::vector<int64_t>> initial_dims;  // of the first state, zeros; none: 1 for -1
};

// What an input of the model receives about its sequence: whether the request is the first or the
// last one, that there is one, or the sequence's id.
enum class ControlKind { kStart, kReady, kEnd, kId };
// Names by ControlKind, as the protocol has them.
inline constexpr const char* kControlKinds[] = {"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY",
                                                "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID"};

// An input that the server feeds, as a configuration declares it.
struct DeclaredControl {
  std::string name;
  ControlKind kind = ControlKind::kStart;
  std::string data_type;   // "TYPE_FP32"
  double no = 0, yes = 0;  // of all kinds but kId
};

// A model that keeps state for the sequences of its clients.
struct SequenceBatching {
  int64_t max_idle_us = 1'000'000;
  int64_t max_sequences = 256;
  int64_t memory_limit_bytes = int64_t{256} << 20;  // of the states of all sequences
  std::vector<DeclaredState> state;
  std::vector<DeclaredControl> controls;
  std::vector<std::string> variables;  // of the model, of which each sequence has its own
};

struct ModelConfig {
  std::string file;       // in the version's folder; empty: the only one that is called model*
  std::string device;     // empty: the server's --device
  std::string signature;  // empty: the default one
  std::string tags;       // of a SavedModel
  int64_t max_batch = 0;  // 0: requests are not joined
  int64_t max_delay_us = 0;
  std::vector<InstanceGroup> instances = {{}};
  int64_t queue_size = 256;
  int64_t timeout_ms = 0;          // of requests that give none themselves; 0: none
  int64_t priority_levels = 0;     // 1 is the highest; 0: requests go in their order
  int64_t default_priority = 0;    // of requests that give none; 0: the lowest
  int64_t memory_limit_bytes = 0;  // of each version on each device; 0: the session's default
  VersionPolicy version_policy;
  std::optional<SequenceBatching> sequences;
  std::vector<DeclaredTensor> inputs, outputs;  // what the model must have; empty: anything
  std::string session;  // further options of the engine's session, as JSON; "" for none

  bool joins() const { return max_batch > 1; }
};

// Reads a config.yaml, or an equivalent text from elsewhere, called `source` in messages.
// InvalidArgument with the line for a key that does not exist and a value out of range.
absl::StatusOr<ModelConfig> ParseConfig(const std::string& yaml,
                                        const std::string& source = "config.yaml");
// The parameters that are memory_limit and variables (as a list of JSON) in sequence_batching.
inline constexpr const char* kSequenceMemoryLimit = "sequence_memory_limit";
inline constexpr const char* kSequenceVariables = "sequence_variables";
// Settings that the protocol's configurations do not have, as parameters by the names of the keys.
std::vector<std::pair<std::string, std::string>> ParametersOf(const ModelConfig& config);
// The session's options as JSON: those of the config, with max_concurrent_runs set to the number of
// instances.
std::string SessionConfig(const ModelConfig& config);

}  // namespace oncilla::server
