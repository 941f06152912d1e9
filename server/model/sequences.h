// Sequences: the active sequences of a model that keeps state between the requests of one client:
// the state for each request, and its update. Requests of a sequence run one after another, in the
// order in which they were accepted.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/request.h"

namespace oncilla::server {

// An output that is fed as an input to the next request of its sequence, or a variable of the
// model: its value after a run is assigned before the next one. Both names of a variable are
// VariableKey.
struct StateTensor {
  std::string input, output;
  bool variable = false;
  std::vector<int64_t> dims;  // that it may have; -1: any size
  Tensor initial;             // for the first request of a sequence
};

// The prefix of a variable's name among inputs and outputs, none of which may begin so.
inline constexpr std::string_view kVariableKey = "variable ";

struct SequenceOptions {
  std::chrono::microseconds max_idle{
      1'000'000};  // a sequence without requests ends after this time
  size_t max_live = 256;
  int64_t max_bytes = 0;  // that the states of all sequences may hold together
  std::vector<StateTensor> states;
};

struct SequenceCounts {
  size_t live = 0;
  int64_t bytes = 0;                  // of their states
  uint64_t started = 0, expired = 0;  // since the model was loaded; expired: by being idle
};

// Not thread-safe: the batcher's mutex guards it.
class Sequences {
 private:
  struct Sequence;

 public:
  // A request's place in its sequence.
  struct Place {
    std::shared_ptr<Sequence> sequence;  // null: of none
    uint64_t number = 0;
    bool start = false;
  };

  explicit Sequences(SequenceOptions options);
  ~Sequences();

  const std::vector<StateTensor>& states() const { return options_.states; }

  // Accepts a request. InvalidArgument if it names no sequence, or continues one that is not
  // active; ResourceExhausted if it starts one too many. A start within an active sequence restarts
  // it after the requests that were accepted before.
  absl::StatusOr<Place> Accept(const SequenceMark& mark);
  // To be called once for each accepted request when it is over, whether it ran or not. One that
  // failed breaks its sequence: later ones fail, until one that restarts it.
  void Leave(const Place& place, bool failed);

  // Whether no other request of the sequence runs.
  bool CanRun(const Place& place) const;
  // From here to Release the request has exclusive use of the sequence.
  void Hold(const Place& place);
  void Release(const Place& place);
  // The state for the request, in the order of states(). Aborted if an earlier one failed.
  absl::StatusOr<std::vector<Tensor>> StateFor(const Place& place);
  // Stores the state for the next request. ResourceExhausted if all states would exceed the limit.
  absl::Status Keep(const Place& place, std::vector<Tensor> state);

  // Ends the sequences that were idle for too long; returns when the next one would be.
  Clock::time_point Expire(Clock::time_point now);
  void Clear();
  SequenceCounts counts() const { return counts_; }

 private:
  void SetState(Sequence& sequence, std::vector<Tensor> state, int64_t bytes);
  void EraseIfOver(const std::shared_ptr<Sequence>& sequence);

  const SequenceOptions options_;
  std::map<std::string, std::shared_ptr<Sequence>> live_;  // by id
  SequenceCounts counts_;
};

}  // namespace oncilla::server
