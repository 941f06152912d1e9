// Products of a few rows on GPUs, whose time is that of reading the other operand: a lane for some
// columns, K divided among slices of a group and, where columns are few, among groups
// (cl_kernels/matmul/columns.cl, cl_kernels/packed/columns.cl).
//
// Into how many parts K is divided depends, as with tiles, on sizes, the device's class and its
// table of measured choices alone.
#pragma once

#include <optional>

#include "backends/opencl/recipes/matmul_recipe.h"

namespace oncilla::opencl {

// How the groups of these kernels lie.
struct ColumnGroup {
  int64_t lanes, slices, rows;  // of columns, of K; rows that share what is read
  std::string name() const { return StrCat("LANES=", lanes, " SLICES=", slices); }
};
// For `columns` lanes' worth of columns and so many rows in all; nothing where groups are too
// small.
std::optional<ColumnGroup> ColumnGroupOf(int64_t rows, int64_t columns, const Capabilities& caps);
// The other groups for as many rows that the kernels' VARIANT lines name, that one included.
std::vector<ColumnGroup> AllColumnGroups(const ColumnGroup& generic, const Capabilities& caps);

// Whether MatMul goes this way: few rows, and a b that can be read in quads along its columns.
bool TakesColumns(const MatMulGeometry& g, DType dtype, const Capabilities& caps);
// `most`: the largest place in an operand or the result.
Recipe ColumnsMatMul(const std::string& activation, const MatMulGeometry& g, const NodeView& node,
                     int64_t most, const Capabilities& caps);

}  // namespace oncilla::opencl
