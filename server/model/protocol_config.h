// A model's configuration in the protocol's words, as a load request may bring it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace oncilla::server {

// The text of a config.yaml that says the same, for ParseConfig. InvalidArgument with its name for
// a member that there is not, that has another type, or that config.yaml has no key for.
absl::StatusOr<std::string> ConfigFromProtocol(const std::string& model, const std::string& json);

}  // namespace oncilla::server
