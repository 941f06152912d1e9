// The recipes that cases ask for on devices of several kinds. Recipes are pure functions of a node
// and a device's capabilities, so no device and no driver is needed.
#pragma once

#include <optional>
#include <vector>

#include "backends/opencl/recipes/recipe.h"
#include "tests/case_runner/case_file.h"

namespace oncilla::testing {

// The kinds of devices whose programs differ; their limits are those of common devices.
std::vector<opencl::Capabilities> KindsOfDevices();

// Nothing for cases that must fail, or that the device leaves to the CPU.
Result<std::optional<opencl::Recipe>> RecipeOf(const Case& c, const OpSet& ops,
                                               const opencl::Capabilities& caps);

}  // namespace oncilla::testing
