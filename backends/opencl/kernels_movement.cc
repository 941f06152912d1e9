// Recipes of the movement family.
#include "backends/opencl/kernels.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/ops/movement.h"

namespace oncilla::opencl {
namespace {

// y = the bytes of x, in the widest pieces that they make.
Result<Recipe> Reshape(const ReshapeAttrs&, const NodeView& node, const Capabilities& caps) {
  const int64_t bytes = node.inputs[0].desc().bytes();
  int64_t width = 16;
  while (bytes % width != 0) width /= 2;
  const std::string_view type = width == 16  ? "uint4"
                                : width == 8 ? "ulong"
                                : width == 4 ? "uint"
                                : width == 2 ? "ushort"
                                             : "uchar";
  const int64_t n = bytes / width, group = caps.Group(256);
  Recipe recipe;
  recipe.dispatches.push_back({.source = &cl::kMovementCopy,
                               .entry = "copy",
                               .defines = {{"T", std::string(type)}},
                               .args = {In{0}, Out{0}, n},
                               .global = {RoundUp(n, group), 1, 1},
                               .local = {group, 1, 1}});
  return recipe;
}

const KernelRow kRows[] = {
    Row<Reshape>("Reshape", kFixedSize),
};

}  // namespace

std::span<const KernelRow> MovementKernels() { return kRows; }

}  // namespace oncilla::opencl
