// Products of a few rows on GPUs, which are limited by reading the other operand: a lane computes
// some columns, K is divided among slices of a group and, if columns are few, among groups
// (cl_kernels/matmul/columns.cl, cl_kernels/packed/columns.cl).
//
// As with tiles, the number of parts into which K is divided depends only on sizes, the device's
// class and its table of measured choices.
#pragma once

#include <optional>

#include "backends/opencl/recipes/matmul_recipe.h"

namespace oncilla::opencl {

// The layout of a group of these kernels.
struct ColumnGroup {
  int64_t lanes, slices, rows;  // of columns, of K; rows that share what is read
  std::string name() const { return StrCat("LANES=", lanes, " SLICES=", slices); }
};
// The group for `columns` lanes' worth of columns and so many rows in all; nothing if groups are
// too small.
std::optional<ColumnGroup> ColumnGroupOf(int64_t rows, int64_t columns, const Capabilities& caps);
// The other groups for as many rows that are in the kernels' VARIANT lines, including that one.
std::vector<ColumnGroup> AllColumnGroups(const ColumnGroup& generic, const Capabilities& caps);

// Whether MatMul uses these kernels: few rows, and a b that can be read in quads along its columns.
bool TakesColumns(const MatMulGeometry& g, DType dtype, const Capabilities& caps);
// `most`: the largest index in an operand or the result.
Recipe ColumnsMatMul(const std::string& activation, const MatMulGeometry& g, const NodeView& node,
                     int64_t most, const Capabilities& caps);

}  // namespace oncilla::opencl
