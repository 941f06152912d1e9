// The common form of requests and responses, to and from which both front ends convert their
// messages.
#pragma once

#include <chrono>
#include <functional>
#include <oncilla/oncilla.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/core/status.h"

namespace oncilla::server {

using Clock = std::chrono::steady_clock;
constexpr Clock::time_point kNever = Clock::time_point::max();

// `timeout` from now, or kNever for 0 and for times that the clock cannot represent.
inline Clock::time_point After(std::chrono::microseconds timeout) {
  constexpr auto kMost = std::chrono::hours(24 * 365);
  return timeout.count() <= 0 || timeout > kMost ? kNever : Clock::now() + timeout;
}

// A part of a registered shared memory region.
struct MemoryTarget {
  std::string region;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// An output that the client asks for by name.
struct WantedOutput {
  std::string name;
  bool binary = false;   // HTTP: as bytes after the JSON
  uint64_t classes = 0;  // number of largest elements to return as texts; 0: the output itself
  std::optional<MemoryTarget> into;  // written there instead of being sent
};

// The sequence that a request belongs to. A number is kept as it is, a text in quotation marks.
struct SequenceMark {
  std::string id;  // empty: none
  bool start = false, end = false;
};

struct InferRequest {
  std::string model;
  std::string version;  // empty: the newest that is ready
  std::string id;
  std::vector<NamedTensor> inputs;
  std::vector<WantedOutput> outputs;  // empty: all
  bool binary_outputs = false;        // of outputs that are not asked for by name
  Clock::time_point deadline = kNever;
  uint64_t priority = 0;  // 1 goes before 2; 0: the model's default
  SequenceMark sequence;  // ignored by a model that keeps no state
};

struct InferOutput {
  std::string name;
  Tensor tensor;  // in host memory
  bool binary = false;
  uint64_t classes = 0;              // until the tensor is that of the classes
  std::optional<MemoryTarget> into;  // already written there: `bytes` is the size of the tensor
};

// How long the parts of an answered request took, and the rows of the batch that it was in.
struct RequestTimes {
  std::chrono::nanoseconds queue{}, input{}, infer{}, output{};
  int64_t rows = 0;
};

struct InferResponse {
  std::string model;
  std::string version;
  std::string id;
  std::vector<InferOutput> outputs;
  RequestTimes times;
  bool traced = false;  // the log tells the times
};

using InferDone = std::function<void(absl::StatusOr<InferResponse>)>;

// A tensor of a model as the protocol describes it.
struct TensorMetadata {
  std::string name;
  std::string datatype;
  std::vector<int64_t> shape;  // -1: any size; {-1} also where the rank is not known
  bool ranked = true;
};

struct ModelMetadata {
  std::string name;
  std::vector<std::string> versions;  // those that are ready
  std::string platform;
  std::vector<TensorMetadata> inputs;
  std::vector<TensorMetadata> outputs;
};

// A line of the repository's index.
struct IndexEntry {
  std::string name;
  std::string version;
  std::string state;   // UNKNOWN, LOADING, READY, UNLOADING, UNAVAILABLE
  std::string reason;  // why it is not ready, or why a newer form of it is not
};

}  // namespace oncilla::server
