// The recipes of every family of ops.
#pragma once

#include <span>

#include "backends/opencl/recipes/recipe.h"

namespace oncilla::opencl {

// The tables of the families (engine/ops/families.inc), each at the end of its family's file.
#define FAMILY_own(word) std::span<const KernelRow> word##Kernels();
#define FAMILY_none(word)
#define FAMILY(word, ops, cpu, opencl) FAMILY_##opencl(word)
#include "engine/ops/families.inc"
#undef FAMILY_own
#undef FAMILY_none

}  // namespace oncilla::opencl
