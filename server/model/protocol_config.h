// A model's configuration in the protocol's form, as a load request may contain it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace oncilla::server {

// The equivalent text of a config.yaml, for ParseConfig. InvalidArgument with its name for a member
// that does not exist, has another type, or has no key in config.yaml.
absl::StatusOr<std::string> ConfigFromProtocol(const std::string& model, const std::string& json);

}  // namespace oncilla::server
