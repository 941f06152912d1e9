// DLPack: exchange of tensors with other libraries without a copy. Version 1 of the protocol and
// the one before it.
#pragma once

#include "python/src/handles.h"

namespace oncilla_python {

// A capsule of the tensor: versioned if `version` (the caller's largest major number) is 1 or more.
// The library's memory is read-only, which the old form cannot express: `copy` makes a copy that
// the caller owns.
nb::object ToDlpack(nb::handle tensor, int version, bool copy);
// (type, number): (1, 0) for host memory, (4, n) for GPU:n through OpenCL.
nb::tuple DlpackDevice(const oncilla_tensor* tensor);
// A tensor over a capsule's host memory; consumes the capsule. A capsule whose memory is not dense
// or aligned is copied.
nb::object FromDlpack(nb::handle capsule);

}  // namespace oncilla_python
