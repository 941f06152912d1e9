// A service with small models for the fuzzers of both front ends.
#pragma once

#include "server/service.h"

namespace oncilla::server {

// Made once, with its models loaded; lives as long as the program. The models take floats, strings
// and integers: "affine" (x:0[n,3]), "words" (x:0[n]) and "numbers" (a:0[n], b:0[n]), each with the
// output y:0.
Service& FuzzService();
// Runs a request and waits for its outcome. Ends the program where that does not come.
absl::StatusOr<InferResponse> Await(Service& service, InferRequest request);

}  // namespace oncilla::server
