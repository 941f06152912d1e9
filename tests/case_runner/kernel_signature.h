// Compares a kernel's own parameter list with a recipe's arguments, without a device.
//
// The program of a dispatch (defines, generated text, source) is preprocessed by a small
// preprocessor, because conditionals and macros make parameters; the kernel's list is then compared
// with the dispatch: number, names, order and kinds.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/recipes/recipe.h"

namespace oncilla::testing {

struct Parameter {
  std::string type;  // "int", "__global const float*", "__local float*"
  std::string name;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

// The parameters of kernel `entry` in a program's text, all macros expanded.
Result<std::vector<Parameter>> ParametersOf(const std::string& program, const std::string& entry);

// Refuses a dispatch whose arguments do not match the kernel's parameters.
Status CheckSignature(const opencl::Dispatch& dispatch);

}  // namespace oncilla::testing
