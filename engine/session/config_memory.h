// The memory part of a session's configuration: between our messages and the struct.
#pragma once

#include "engine/session/session.h"
#include "proto/config.pb.h"

namespace oncilla {

// Changes what is given. InvalidArgument for an unknown step, and for options that contradict each
// other.
Status ApplyMemoryConfig(const config::proto::SessionConfig& from, SessionOptions& to);
// Writes what is not the default.
void PrintMemoryConfig(const SessionOptions& from, config::proto::SessionConfig& to);

}  // namespace oncilla
