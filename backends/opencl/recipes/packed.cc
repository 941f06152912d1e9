// Recipes of products with packed weights: a lane for each column if the constants can be laid out
// for that, otherwise a group of work-items for each column and a few rows.
#include "engine/ops/math/packed.h"

#include <algorithm>
#include <bit>

#include "backends/opencl/recipes/choices.h"
#include "backends/opencl/recipes/columns.h"
#include "backends/opencl/recipes/kernels.h"
#include "cl_kernels/kernels.gen.h"

namespace oncilla::opencl {
namespace {

constexpr int64_t kChunk = 16;  // bytes of a column that packed/columns.cl reads at once

// Depends on the constants alone, which are laid out before sizes are known. It does not depend on
// the size of groups, which may still shrink.
bool IsLaidOut(const MatMulPackedAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const auto constant = [&](size_t i) { return !node.has_input(i) || node.inputs[i].constant; };
  if (TuningOf(caps).panels || !caps.local_groups || !IsCarried(node.inputs[0].dtype) ||
      (attrs.bits != 4 && attrs.bits != 8) || node.has_input(4) || !constant(1) || !constant(2) ||
      !constant(3)) {
    return false;
  }
  const Shape weights = node.inputs[1].shape.ToShape();
  return weights.rank() == 3 && weights[2] % kChunk == 0 && weights.elements() > 0;
}

// Exchanges two axes: [outer][middle][bytes] becomes [middle][outer][bytes].
Packing Exchanged(std::string name, int64_t outer, int64_t middle, int64_t bytes) {
  const auto pack = [=](const Tensor& constant, std::span<std::byte> to) {
    const std::byte* from = constant.bytes().data();
    for (int64_t i = 0; i < outer; ++i) {
      for (int64_t j = 0; j < middle; ++j, from += bytes) {
        std::copy_n(from, bytes, to.data() + (j * outer + i) * bytes);
      }
    }
    return Status();
  };
  return {std::move(name), outer * middle * bytes, pack};
}

// Unpacks zero points [columns][bytes of blocks] of `bits` bits to bytes [blocks][columns].
Packing UnpackedZeros(int64_t columns, int64_t blocks, int64_t bits) {
  const auto pack = [=](const Tensor& constant, std::span<std::byte> to) {
    const std::byte* from = constant.bytes().data();
    const int64_t line = (blocks * bits + 7) / 8;
    const auto mask = std::byte(static_cast<uint8_t>((1 << bits) - 1));
    for (int64_t i = 0; i < columns; ++i) {
      for (int64_t j = 0; j < blocks; ++j) {
        const std::byte code = from[i * line + j * bits / 8] >> static_cast<int>(j * bits % 8);
        to[static_cast<size_t>(j * columns + i)] = code & mask;
      }
    }
    return Status();
  };
  return {StrCat("zeros", bits), columns * blocks, pack};
}

Result<Packing> PackWeights(const MatMulPackedAttrs& attrs, const NodeView& node, int input,
                            const Capabilities& caps) {
  const Fact& fact = node.inputs[static_cast<size_t>(input)];
  const TensorDesc desc = fact.desc();
  if (input < 1 || input > 3 || !IsLaidOut(attrs, node, caps)) {
    return Packing{"dense", desc.bytes(), nullptr};
  }
  const Shape weights = node.inputs[1].shape.ToShape();
  const int64_t columns = weights[0], blocks = weights[1];
  if (input == 1) {
    return Exchanged("chunks16", columns, blocks * weights[2] / kChunk, kChunk);
  }
  if (input == 3 && desc.dtype == DType::kU8) return UnpackedZeros(columns, blocks, attrs.bits);
  return Exchanged("exchanged", columns, blocks, BytesOf(desc.dtype));
}

Recipe Columns(const MatMulPackedAttrs& attrs, const NodeView& node, const Capabilities& caps) {
  const Shape weights = node.inputs[1].shape.ToShape();
  const int64_t columns = weights[0], block_chunks = weights[2] / kChunk;
  const int64_t chunks = weights[1] * block_chunks;
  const int64_t total = node.outputs[0].desc().elements(), rows = total / columns;
  // On a device that needs no larger group, a group is a single work-item.
  const std::optional<ColumnGroup> usual = ColumnGroupOf(rows, columns, caps);
  ColumnGroup group = usual.value_or(ColumnGroup{1, 1, std::min<int64_t>(rows, 1)});
  Recipe recipe;
  if (usual.has_value()) {
    const std::string layer = StrCat("packed columns ", rows, "x", columns, "x", attrs.depth, " ",
                                     TypeName(node.inputs[0].dtype), " bits ", attrs.bits,
                                     " block ", block_chunks, node.has_input(3) ? " zeros" : "");
    group = Choose(
        layer, *usual, [&] { return AllColumnGroups(*usual, caps); }, caps, recipe.decision);
  }
  const DType dtype = node.inputs[0].dtype;
  const IndexType index(std::max(
      {node.inputs[0].desc().elements() + 128, weights.elements(), total, columns + group.lanes}));
  DispatchBuilder b(cl::kPackedColumns, "matmul_packed_columns", index);
  b.Define({{"T", TypeName(dtype)},
            {"BITS", StrCat(attrs.bits)},
            {"IDX", index.name()},
            {"ROWS", StrCat(group.rows)},
            {"LANES", StrCat(group.lanes)},
            {"SLICES", StrCat(group.slices)},
            {"X_WIDE", Flag(attrs.depth % 4 == 0)}});
  b.Arg("x", In{0}).Arg("weights", In{1}).Arg("scales", In{2});
  if (node.has_input(3)) {
    b.Define(node.inputs[3].dtype == DType::kU8 ? "CODE_ZEROS" : "ZEROS", "1").Arg("zeros", In{3});
  }
  b.Arg("y", Out{0}).Index({{"rows", rows}, {"columns", columns}, {"depth", attrs.depth}});
  b.Index({{"chunks", chunks}, {"block_chunks", block_chunks}});
  b.Groups({DivideUp(columns, group.lanes), DivideUp(rows, group.rows), 1},
           {group.lanes, group.slices, 1});
  b.Loop(std::max(DivideUp(chunks, group.slices), int64_t{32})).AddTo(recipe);
  return recipe;
}

Result<Recipe> MatMulPacked(const MatMulPackedAttrs& attrs, const NodeView& node,
                            const Capabilities& caps) {
  const TensorDesc x = node.inputs[0].desc(), weights = node.inputs[1].desc();
  const int64_t total = node.outputs[0].desc().elements();
  if (total == 0) return Recipe();
  if (IsLaidOut(attrs, node, caps)) return Columns(attrs, node, caps);
  const int rank = weights.rank();
  const int64_t columns = weights.shape[rank - 3], blocks = weights.shape[rank - 2];
  const int64_t block_bytes = weights.shape[rank - 1], bytes = blocks * block_bytes;
  const int64_t rows = total / columns;
  const bool chosen = node.has_input(4), zeros = node.has_input(3);
  // Rows that use the same matrix share the unpacked weights.
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
    Row<MatMulPacked>("MatMulPacked", kFloats).Packs<PackWeights>(),
};

}  // namespace

std::span<const KernelRow> PackedKernels() { return kRows; }

}  // namespace oncilla::opencl
