// A kernel's own parameter list against a recipe's arguments, without a device.
//
// The program of a dispatch (defines, generated text, source) goes through a small preprocessor,
// because conditionals and macros make parameters; what is left of the kernel's list is compared
// with the dispatch: how many, their names, their order and their kinds.
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

// Refuses a dispatch whose arguments are not what the kernel takes.
Status CheckSignature(const opencl::Dispatch& dispatch);

}  // namespace oncilla::testing
