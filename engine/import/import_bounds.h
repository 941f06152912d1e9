// ImportBounds: what a small file may come to while its functions are put in place of their calls.
//
// Names grow with each call that nodes are inside of, and a node of a function stands there once
// for each call: a file of a megabyte can ask for names of gigabytes. All of an import together has
// a bound of its own, and counts as memory of the work at hand (engine/base/work_limits.h).
#pragma once

#include "engine/base/work_limits.h"

namespace oncilla {

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
