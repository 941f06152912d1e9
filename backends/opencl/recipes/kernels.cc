// Recipes of every family by the name of their op.
#include "backends/opencl/recipes/kernels.h"

#include <map>

namespace oncilla::opencl {

const KernelRow* FindKernel(std::string_view op) {
  static const std::map<std::string_view, const KernelRow*> rows = [] {
    std::map<std::string_view, const KernelRow*> all;
    for (std::span<const KernelRow> family :
         {
#define FAMILY_own(word) word##Kernels(),
#define FAMILY_none(word)
#define FAMILY(word, ops, cpu, opencl) FAMILY_##opencl(word)
#include "engine/ops/families.inc"
         }) {
      for (const KernelRow& row : family) all.emplace(row.op, &row);
    }
    return all;
  }();
  const auto found = rows.find(op);
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace oncilla::opencl
