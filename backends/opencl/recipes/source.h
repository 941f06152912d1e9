// Source: the text of one kernel file, embedded by tools/embed_kernels.cmake as a constant that
// lives as long as the program (cl::kNormSoftmax for cl_kernels/norm/softmax.cl).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oncilla::opencl {

struct Source {
  std::string_view path;  // "norm/softmax.cl"
  std::string_view text;  // with its common headers before it and #line marks
};

// Defines in order. Names are macros; values are any tokens on one line.
using Defines = std::vector<std::pair<std::string, std::string>>;

}  // namespace oncilla::opencl
