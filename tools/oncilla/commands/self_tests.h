// SelfTests: a small graph for each family of kernels, for oncilla doctor.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/import/graph_builder.h"

namespace oncilla::tool {

struct SelfTest {
  std::string_view family;  // "matrix products"
  // Builds the graph on a placeholder of `shape`, with values in [0, 1), and returns its outputs.
  std::vector<GraphBuilder::Output> (*build)(GraphBuilder& b, GraphBuilder::Output x);
  std::vector<int64_t> shape;  // of x, f32
};

// Sizes are chosen so that GPUs use their large tiles, with partial tiles at the edges.
std::span<const SelfTest> SelfTests();

}  // namespace oncilla::tool
