// Recipes of products with packed weights: a group of work-items for each column and a few rows.
#include "engine/ops/math/packed.h"

#include <algorithm>
#include <bit>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "backends/opencl/recipes/kernels.h"
#include "backends/opencl/recipes/tuning.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

Result<Recipe> MatMulPacked(const MatMulPackedAttrs& attrs, const NodeView& node,
                            const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), weights = node.inputs[1].desc();
  const int64_t total = node.outputs[0].desc().elements();
  if (total == 0) return Recipe();
  const int rank = weights.rank();
  const int64_t columns = weights.shape[rank - 3], blocks = weights.shape[rank - 2];
  const int64_t block_bytes = weights.shape[rank - 1], bytes = blocks * block_bytes;
  const int64_t rows = total / columns;
  const bool chosen = node.has_input(4), zeros = node.has_input(3);
  // Rows that go through one matrix share what is unpacked.
  constexpr int64_t kMostRows = 8;
  const int64_t tile =
      chosen
          ? 1
          : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(rows, kMostRows))));
  const int64_t width = block_bytes % 4 == 0 ? 4 : 1;
  const int64_t items = std::max<int64_t>(bytes / width / TuningOf(caps).row_elements, 1);
  const auto most = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(items)));
  const int64_t group = std::min(caps.Group(TuningOf(caps).flat_group), most);
  const IndexType index(std::max({x.elements(), weights.elements(), total}));
  DispatchBuilder b(cl::kPackedMatmul, "matmul_packed", index);
  b.Define({{"T", TypeName(x.dtype)},
            {"BITS", StrCat(attrs.bits)},
            {"WIDTH", StrCat(width)},
            {"ROWS", StrCat(tile)},
            {"GROUP", StrCat(group)},
            {"IDX", index.name()}});
  b.Arg("x", In{0}).Arg("weights", In{1}).Arg("scales", In{2});
  if (zeros) {
    const bool packed = node.inputs[3].dtype == DType::kU8;
    b.Define(packed ? "PACKED_ZEROS" : "ZEROS", "1").Arg("zeros", In{3});
  }
  if (chosen) b.Define("CHOICE", TypeName(node.inputs[4].dtype)).Arg("choice", In{4});
  b.Arg("y", Out{0}).Index({{"rows", rows}, {"columns", columns}, {"depth", attrs.depth}});
  b.Index({{"blocks", blocks}, {"block_bytes", block_bytes}});
  if (chosen) b.Index("matrices", weights.shape[0]).Error();
  b.Groups({columns, DivideUp(rows, tile), 1}, {group, 1, 1});
  return b.Loop(std::max(DivideUp(bytes / width, group), tile)).Alone();
}

const KernelRow kRows[] = {
    Row<MatMulPacked>("MatMulPacked", kFloats),
};

}  // namespace

std::span<const KernelRow> PackedKernels() { return kRows; }

}  // namespace oncilla::opencl
