// Failures as the server reports them: one status type for both front ends, one table from codes
// to those of HTTP, and the removal of the server's paths from messages for clients.
#pragma once

#include <oncilla/oncilla.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oncilla::server {

// Converts the engine's failure; its codes have the same numbers. `what` is put before the message
// unless it is empty.
absl::Status FromEngine(const oncilla::Status& status, std::string_view what = {});

inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

// The status of an HTTP response; gRPC uses the codes themselves.
int HttpCodeOf(absl::StatusCode code);
// "INVALID_ARGUMENT", as metrics and logs write it.
std::string NameOf(absl::StatusCode code);

// From now on `path` and the slash after it are left out of messages for clients. To be called
// before the front ends start.
void HidePath(const std::string& path);
// The failure with `path` called "the model", for failures whose path is not the same for all
// models.
absl::Status WithoutPath(const absl::Status& status, const std::string& path);
// A message for clients: without hidden paths and this machine's name, at most 4 KiB, and valid
// UTF-8.
std::string ForClients(std::string_view message);

}  // namespace oncilla::server
