// What conversion changes in a module: sizes of inputs that become fixed, and weights stored
// narrow. The graphs are built anew, so that inference checks every node under the new sizes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"

namespace oncilla {

struct ConvertOptions {
  std::vector<std::pair<std::string, Shape>> shapes;  // inputs of the main graph, by name
  // kF16 and kBF16: constants of f32 with at least 64 elements are stored so, with a Cast behind
  // them, which folds when the graph is compiled. Left as they are: operands that fix shapes, and
  // what would overflow.
  DType weights = DType::kF32;
};

struct ConvertCounts {
  int narrowed = 0;     // constants
  int overflowing = 0;  // constants left in f32 because a value does not fit
};

// InvalidArgument for a shape that contradicts the model; other failures are inference's.
Result<Module> Converted(const Module& module, const ConvertOptions& options,
                         ConvertCounts* counts);

}  // namespace oncilla
