// Changes to a module during conversion: sizes of inputs that become fixed, and weights stored in
// 16 bits. The graphs are rebuilt, so that inference checks every node under the new sizes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"

namespace oncilla {

struct ConvertOptions {
  std::vector<std::pair<std::string, Shape>> shapes;  // inputs of the main graph, by name
  // kF16 and kBF16: constants of f32 with at least 64 elements are stored in this type, followed by
  // a Cast, which is folded when the graph is compiled. Operands that fix shapes, and constants
  // that would overflow, are left unchanged.
  DType weights = DType::kF32;
};

struct ConvertCounts {
  int narrowed = 0;     // constants
  int overflowing = 0;  // constants left in f32 because a value does not fit
};

// InvalidArgument for a shape that contradicts the model; other failures come from inference.
Result<Module> Converted(const Module& module, const ConvertOptions& options,
                         ConvertCounts* counts);

}  // namespace oncilla
