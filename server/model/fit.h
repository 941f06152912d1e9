// Whether the runs that a configuration allows at the same time fit into a session's memory.
#pragma once

#include <oncilla/oncilla.hpp>

#include "absl/status/status.h"

namespace oncilla::server {

// To be called when the largest batch, of `rows` rows, was prepared: its plans tell what a run
// takes. ResourceExhausted where `runs` of them, beside the weights, do not fit, with how much
// would.
absl::Status CheckFit(const Session& session, int64_t rows, int runs);

}  // namespace oncilla::server
