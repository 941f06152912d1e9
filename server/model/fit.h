// Whether the runs that a configuration allows at the same time fit into memory: into the model's
// own limit, and beside the other models.
#pragma once

#include <map>
#include <mutex>
#include <oncilla/oncilla.hpp>
#include <string>

#include "absl/status/status.h"

namespace oncilla::server {

// The memory of each device that each model was promised, for its weights and its runs. A model
// takes it only when requests come, so what other models hold now is less than they may need.
class Promises {
 public:
  // To be called when the largest batch, of `rows` rows, was prepared: its plans tell what a run
  // takes. ResourceExhausted where `runs` of them, beside the weights and the other models, do not
  // fit, with how much would; otherwise the promise is kept until End.
  absl::Status Make(const void* owner, const Session& session, int64_t rows, int runs);
  void End(const void* owner);

 private:
  std::mutex mutex_;
  std::map<const void*, std::map<std::string, int64_t>> bytes_;  // by owner and device
};

}  // namespace oncilla::server
