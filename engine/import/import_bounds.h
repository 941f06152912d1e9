// What a small file may come to.
//
// ImportBounds: while its functions are put in place of their calls, names grow with each call that
// nodes are inside of, and a node of a function stands there once for each call: a file of a
// megabyte can ask for names of gigabytes. All of an import together has a bound of its own, and
// counts as memory of the work at hand (engine/base/work_limits.h).
#pragma once

#include "engine/base/work_limits.h"
#include "engine/tensor/tensor.h"

namespace oncilla {

// Whether a tensor of which the file stores so many bytes may be made dense: a file of a kilobyte
// must not ask for gigabytes.
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
  // Before so many bytes of names, or edges, are made. ResourceExhausted.
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
