// The body of a load request.
#pragma once

#include <string_view>

#include "server/model/model_files.h"

namespace oncilla::server {

// An empty body is a request without parameters. The files, in base64, are counted on `budget`
// before they are unpacked.
absl::StatusOr<LoadRequest> ParseLoadBody(std::string_view body, ByteBudget* budget);

}  // namespace oncilla::server
