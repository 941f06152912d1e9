// Products of bytes, with sums in 32 bits: by tiles of words for GPUs
// (cl_kernels/common/byte_tile.clh), by panels on CPUs (cl_kernels/matmul/integer_panels.cl). Both
// give every sum exactly.
#pragma once

#include <optional>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "engine/ops/nn/conv_geometry.h"
#include "engine/ops/nn/integer.h"

namespace oncilla::opencl {

// The bias of a product of integers; null if it has none.
const Fact* BiasOf(const NodeView& node);
// Adds the zero points and the bias that the node has.
void AddZerosAndBias(const NodeView& node, const char* const (&names)[2],
                     const char* const (&defines)[2], DispatchBuilder& b);
// The type that kernels store results as: real numbers as ints of the same bits.
std::string ResultType(const NodeView& node);
// Adds the defines and arguments of common/requantize.clh.
void AddEpilogue(const IntegerEpilogue& epilogue, const NodeView& node, DispatchBuilder& b);

// The layout of a constant second operand; it does not depend on sizes that are still unknown.
Packing PackFilter(const ConvIntegerAttrs& attrs, const NodeView& node, const Capabilities& caps);
Packing PackWeights(const MatMulIntegerAttrs& attrs, const NodeView& node,
                    const Capabilities& caps);

// The launches; nothing if the kernels with one work-item per sum are to be used. The operands are
// packed in words if InWords returns true.
Result<std::optional<Recipe>> ByteConv(const ConvIntegerAttrs& attrs, const WindowGeometry& g,
                                       const NodeView& node, const Capabilities& caps);
Result<std::optional<Recipe>> ByteMatMul(const MatMulIntegerAttrs& attrs, const MatMulGeometry& g,
                                         const NodeView& node, const Capabilities& caps);
bool InWords(const ConvIntegerAttrs& attrs, const NodeView& node, const Capabilities& caps);
bool InWords(const MatMulIntegerAttrs& attrs, const NodeView& node, const Capabilities& caps);

// The pitch of a matrix in words, as in cl_kernels/matmul/integer_pack.cl.
inline int64_t WordPitch(int64_t columns) { return RoundUp(columns, 4); }
inline int64_t WordMatrix(int64_t taps, int64_t rows, int64_t columns) {
  return (1 + taps * DivideUp(rows, 4)) * WordPitch(columns);
}

}  // namespace oncilla::opencl
