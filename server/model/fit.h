// Whether the runs that a configuration allows at the same time fit into memory: within the model's
// own limit, and together with the other models.
#pragma once

#include <map>
#include <mutex>
#include <oncilla/oncilla.hpp>
#include <string>

#include "absl/status/status.h"

namespace oncilla::server {

// The memory of each device that is reserved for each model's weights and runs. A model allocates
// it only when requests arrive, so what other models hold now is less than they may need.
class Promises {
 public:
  // To be called when the largest batch, of `rows` rows, was prepared: its plans tell how much a
  // run needs. ResourceExhausted if `runs` of them, with the weights and the other models, do not
  // fit, with the number that would; otherwise the reservation is kept until End.
  absl::Status Make(const void* owner, const Session& session, int64_t rows, int runs);
  void End(const void* owner);

 private:
  std::mutex mutex_;
  std::map<const void*, std::map<std::string, int64_t>> bytes_;  // by owner and device
};

}  // namespace oncilla::server
