// Inference requests and responses as the REST form of the protocol has them: JSON, with tensors in
// it or, by the binary tensor extension, behind it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/core/request.h"
#include "server/core/shared_memory.h"

namespace oncilla::server {

// `json_bytes`: the size of the JSON part of the body, if the header
// Inference-Header-Content-Length is present. The model's name and version are left to the caller.
absl::StatusOr<InferRequest> ParseInferBody(std::string_view body, std::optional<size_t> json_bytes,
                                            const SharedMemory& memory);

struct InferBody {
  std::string body;
  std::optional<size_t> json_bytes;  // set where bytes follow
};
// InvalidArgument where an output in JSON holds a number that JSON has no form for, or bytes that
// are no UTF-8.
absl::StatusOr<InferBody> WriteInferBody(const InferResponse& response);

}  // namespace oncilla::server
