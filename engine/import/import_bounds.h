// Bounds on the memory that a small file can require.
//
// ImportBounds: when functions are inlined, names grow with the depth of calls, and a node of a
// function is copied for each call: a file of a megabyte could require gigabytes of names. The
// whole import has a bound of its own, and counts as memory of the current work
// (engine/base/work_limits.h).
#pragma once

#include "engine/base/work_limits.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

// Whether a tensor of which the file stores this many bytes may be made dense: a file of a kilobyte
// must not require gigabytes.
inline Status CheckSparseSize(const TensorDesc& desc, int64_t stored_bytes) {
  constexpr int64_t kMostForFree = int64_t{64} << 20, kMostRatio = 1024;
  if (desc.bytes() <= SaturatingAdd(kMostForFree, SaturatingMul(kMostRatio, stored_bytes))) {
    return Status();
  }
  return DataLoss("a sparse tensor of ", desc.bytes(), " bytes of which ", stored_bytes,
                  " are stored");
}

class ImportBounds {
 public:
  // To be called before so many bytes of names, or edges, are made. ResourceExhausted above the
  // bound.
  Status Take(size_t name_bytes, size_t edges = 0) {
    bytes_ += name_bytes + kEdgeBytes * edges;
    if (bytes_ > kMostBytes) {
      return Exhausted("the calls of functions make more than ", kMostBytes >> 20,
                       " MiB of names and edges");
    }
    return growth_.Add(static_cast<int64_t>(name_bytes + kEdgeBytes * edges));
  }

 private:
  static constexpr size_t kEdgeBytes = 16, kMostBytes = size_t{512} << 20;
  size_t bytes_ = 0;
  Growth growth_;
};

}  // namespace oncilla
