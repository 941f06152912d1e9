// The live sequences, and the state of each.
#include "server/model/sequences.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "server/core/tensor_codec.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

}  // namespace

struct Sequences::Sequence {
  std::string id;
  uint64_t accepted = 0;  // number of requests so far, which is the next one's number
  size_t unfinished = 0;
  bool open = true;         // false once the last accepted request ends the sequence
  bool running = false;     // a request is using it
  uint64_t broken = kNone;  // the first request that failed since the last start
  std::vector<Tensor> state;
  int64_t bytes = 0;  // of the state
  Clock::time_point idle_since;
};

Sequences::Sequences(SequenceOptions options) : options_(std::move(options)) {}
Sequences::~Sequences() = default;

absl::StatusOr<Sequences::Place> Sequences::Accept(const SequenceMark& mark) {
  if (mark.id.empty()) {
    return absl::InvalidArgumentError(
        "the model keeps state for sequences: a request needs a 'sequence_id', neither 0 nor "
        "empty");
  }
  const auto found = live_.find(mark.id);
  if (!mark.start && (found == live_.end() || !found->second->open)) {
    return absl::InvalidArgumentError(
        StrCat("there is no live sequence ", mark.id,
               ": its first request must have 'sequence_start', and it ends with one that has "
               "'sequence_end', when it is idle for ",
               options_.max_idle.count(), " microseconds, and with the model"));
  }
  std::shared_ptr<Sequence> sequence = found == live_.end() ? nullptr : found->second;
  if (sequence == nullptr) {
    if (live_.size() >= options_.max_live) {
      return absl::ResourceExhaustedError(
          StrCat("the model has ", live_.size(), " live sequences already, the most it may have"));
    }
    sequence = live_[mark.id] = std::make_shared<Sequence>();
    sequence->id = mark.id;
  }
  if (mark.start) ++counts_.started;
  counts_.live = live_.size();
  sequence->open = !mark.end;
  ++sequence->unfinished;
  return Place{sequence, sequence->accepted++, mark.start};
}

void Sequences::Leave(const Place& place, bool failed) {
  if (place.sequence == nullptr) return;
  Sequence& sequence = *place.sequence;
  if (failed && sequence.broken == kNone) sequence.broken = place.number;
  if (failed && place.number < sequence.broken) sequence.broken = place.number;
  if (--sequence.unfinished == 0) sequence.idle_since = Clock::now();
  EraseIfOver(place.sequence);
}

bool Sequences::CanRun(const Place& place) const {
  return place.sequence == nullptr || !place.sequence->running;
}

void Sequences::Hold(const Place& place) {
  if (place.sequence != nullptr) place.sequence->running = true;
}

void Sequences::Release(const Place& place) {
  if (place.sequence == nullptr) return;
  place.sequence->running = false;
  EraseIfOver(place.sequence);
}

// A sequence stays while one of its requests runs, even if the client has disconnected: otherwise
// another sequence could be started under its id and run at the same time.
void Sequences::EraseIfOver(const std::shared_ptr<Sequence>& sequence) {
  if (sequence->open || sequence->unfinished > 0 || sequence->running) return;
  SetState(*sequence, {}, 0);
  live_.erase(sequence->id);
  counts_.live = live_.size();
}

absl::StatusOr<std::vector<Tensor>> Sequences::StateFor(const Place& place) {
  Sequence& sequence = *place.sequence;
  if (place.start) {
    if (sequence.broken < place.number) sequence.broken = kNone;
    SetState(sequence, {}, 0);
  } else if (sequence.broken < place.number) {
    SetState(sequence, {}, 0);
    return absl::AbortedError(StrCat("an earlier request of sequence ", sequence.id,
                                     " failed, so that its state is not known: start it again"));
  }
  if (!sequence.state.empty()) return sequence.state;
  std::vector<Tensor> initial;
  for (const StateTensor& state : options_.states) initial.push_back(state.initial);
  return initial;
}

absl::Status Sequences::Keep(const Place& place, std::vector<Tensor> state) {
  Sequence& sequence = *place.sequence;
  int64_t bytes = 0;
  for (size_t i = 0; i < state.size(); ++i) {
    const StateTensor& declared = options_.states[i];
    const std::vector<int64_t> dims = state[i].dims();
    const bool fits =
        std::equal(dims.begin(), dims.end(), declared.dims.begin(), declared.dims.end(),
                   [](int64_t size, int64_t most) { return most < 0 || size == most; });
    if (!fits) {
      return absl::FailedPreconditionError(StrCat(
          "output '", declared.output, "' is the next state and has the shape [",
          absl::StrJoin(dims, ","), "]; the state is [", absl::StrJoin(declared.dims, ","), "]"));
    }
    const auto own = RawBytes(state[i]);
    if (!own.ok()) return own.status();
    bytes += static_cast<int64_t>(*own);
  }
  const int64_t others = counts_.bytes - sequence.bytes;
  if (bytes > options_.max_bytes - others) {
    return absl::ResourceExhaustedError(StrCat(
        "the state of sequence ", sequence.id, " takes ", bytes, " bytes, those of others take ",
        others, ", and all may take ", options_.max_bytes, " (memory_limit in sequence_batching)"));
  }
  SetState(sequence, std::move(state), bytes);
  return absl::OkStatus();
}

void Sequences::SetState(Sequence& sequence, std::vector<Tensor> state, int64_t bytes) {
  counts_.bytes += bytes - sequence.bytes;
  sequence.state = std::move(state);
  sequence.bytes = bytes;
}

Clock::time_point Sequences::Expire(Clock::time_point now) {
  auto next = kNever;
  for (auto it = live_.begin(); it != live_.end();) {
    Sequence& sequence = *it->second;
    const bool idle = sequence.unfinished == 0 && !sequence.running;
    if (idle && sequence.idle_since + options_.max_idle <= now) {
      SetState(sequence, {}, 0);
      it = live_.erase(it);
      ++counts_.expired;
      continue;
    }
    if (idle) next = std::min(next, sequence.idle_since + options_.max_idle);
    ++it;
  }
  counts_.live = live_.size();
  return next;
}

void Sequences::Clear() {
  live_.clear();
  counts_.live = 0;
  counts_.bytes = 0;
}

}  // namespace oncilla::server
