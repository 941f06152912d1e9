// The classification extension: the largest elements of an output, as texts, in place of the
// output.
#pragma once

#include "server/core/request.h"

namespace oncilla::server {

// "VALUE:INDEX" of the `count` largest elements, or of all if there are fewer, the largest first
// and the first of equal ones first; `rows`: for each row along the first axis. NaN comes last.
// InvalidArgument for a type that has no order, or no text form.
absl::StatusOr<Tensor> Classified(const std::string& name, const Tensor& tensor, uint64_t count,
                                  bool rows);

}  // namespace oncilla::server
