// A sparse tensor is a tree: each level is an axis, or a part of one, in traversal order. A dense
// level has all of its indices below each node of the level above; a sparse level lists those that
// exist. The leaves, in order, are the stored elements.
#include "engine/import/tflite/sparse.h"

#include <algorithm>

#include "engine/base/work_limits.h"
#include "engine/import/import_bounds.h"

namespace oncilla {
namespace {

// One level: its size, the distance in the dense tensor of one step along it, and its indices.
struct Level {
  int64_t size = 0, stride = 0;
  bool dense = true;
  std::vector<int64_t> segments, indices;
};

// A vector from a union: 1 is int32, 2 is uint16, 3 is uint8.
Result<std::vector<int64_t>> ReadIndices(const FlatTable& table, int type_field) {
  ONCILLA_ASSIGN(const uint8_t type, table.Number<uint8_t>(type_field, 0));
  ONCILLA_ASSIGN(const FlatTable holder, table.Table(type_field + 1));
  const auto widened = [](const auto& values) {
    return std::vector<int64_t>(values.begin(), values.end());
  };
  if (type == 1) {
    ONCILLA_ASSIGN(const auto values, holder.Numbers<int32_t>(0));
    return widened(values);
  }
  if (type == 2) {
    ONCILLA_ASSIGN(const auto values, holder.Numbers<uint16_t>(0));
    return widened(values);
  }
  if (type == 3) {
    ONCILLA_ASSIGN(const auto values, holder.Numbers<uint8_t>(0));
    return widened(values);
  }
  return DataLoss("a sparse axis has indices of type ", int{type});
}

Result<Level> ReadLevel(const FlatTable& table, int64_t size, int64_t stride) {
  Level level;
  level.size = size;
  level.stride = stride;
  ONCILLA_ASSIGN(const int8_t format, table.Number<int8_t>(0, 0));
  level.dense = format == 0;
  if (level.dense) {
    ONCILLA_ASSIGN(const int32_t stated, table.Number<int32_t>(1, 0));
    if (stated != size) return DataLoss("an axis of ", size, " has ", stated, " places");
    return level;
  }
  if (format != 1) return Unsupported("a sparse axis of format ", int{format});
  ONCILLA_ASSIGN(level.segments, ReadIndices(table, 2));
  ONCILLA_ASSIGN(level.indices, ReadIndices(table, 4));
  return level;
}

// The levels of the tree: the axes, then the parts of axes that are divided into blocks, in
// traversal order.
Result<std::vector<Level>> ReadLevels(const FlatTable& sparsity, const Shape& shape) {
  ONCILLA_ASSIGN(const auto order, sparsity.Numbers<int32_t>(0));
  ONCILLA_ASSIGN(const auto block_map, sparsity.Numbers<int32_t>(1));
  const size_t rank = static_cast<size_t>(shape.rank()), levels = order.size();
  if (levels != rank + block_map.size() || levels > 2 * kMaxRank) {
    return DataLoss("a sparse tensor of rank ", rank, " has ", levels, " levels and ",
                    block_map.size(), " blocks");
  }
  ONCILLA_ASSIGN(const auto tables, sparsity.Tables(2));
  if (tables.size() != levels) return DataLoss("sparse levels are missing");
  std::vector<int64_t> blocks(rank, 1), size_of(levels), stride_of(levels);
  for (size_t i = 0; i < block_map.size(); ++i) {
    const int32_t axis = block_map[i];
    if (axis < 0 || static_cast<size_t>(axis) >= rank || blocks[static_cast<size_t>(axis)] != 1) {
      return DataLoss("block ", i, " of a sparse tensor is of axis ", axis);
    }
    // A block's own level is dense, with the size of the block.
    const auto level = static_cast<size_t>(
        std::find(order.begin(), order.end(), static_cast<int32_t>(rank + i)) - order.begin());
    if (level == levels) return DataLoss("a traversal leaves out a block");
    ONCILLA_ASSIGN(const int32_t block, tables[level].Number<int32_t>(1, 0));
    const int64_t whole = shape[axis];
    if (block < 1 || whole % block != 0) {
      return DataLoss("an axis of ", whole, " is cut into blocks of ", block);
    }
    blocks[static_cast<size_t>(axis)] = block;
    size_of[rank + i] = block;
    stride_of[rank + i] = shape.Product(axis + 1, shape.rank());
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    const int at = static_cast<int>(axis);
    size_of[axis] = shape[at] / blocks[axis];
    stride_of[axis] = shape.Product(at + 1, shape.rank()) * blocks[axis];
  }
  std::vector<Level> out;
  std::vector<char> seen(levels, 0);
  for (size_t i = 0; i < levels; ++i) {
    const auto axis = static_cast<size_t>(order[i]);
    if (order[i] < 0 || axis >= levels || seen[axis] != 0) {
      return DataLoss("the traversal of a sparse tensor names ", order[i]);
    }
    seen[axis] = 1;
    ONCILLA_ASSIGN(Level level, ReadLevel(tables[i], size_of[axis], stride_of[axis]));
    out.push_back(std::move(level));
  }
  return out;
}

// The nodes of the next level, as their offsets in the whole tensor.
Result<HostVector<int64_t>> Descend(const Level& level, const HostVector<int64_t>& above,
                                    int64_t most) {
  HostVector<int64_t> out;
  if (!level.dense && (level.segments.empty() || level.segments.size() - 1 != above.size())) {
    return DataLoss("a sparse axis has ", level.segments.size(), " bounds for ", above.size(),
                    " rows");
  }
  WorkLook look;
  for (size_t node = 0; node < above.size(); ++node) {
    const int64_t begin = level.dense ? 0 : level.segments[node];
    const int64_t end = level.dense ? level.size : level.segments[node + 1];
    if (begin < 0 || end < begin ||
        (!level.dense && end > static_cast<int64_t>(level.indices.size()))) {
      return DataLoss("a sparse axis has a row from ", begin, " to ", end);
    }
    if (end - begin > most - static_cast<int64_t>(out.size())) {
      return DataLoss("a sparse tensor stores more elements than it has");
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = level.dense ? i : level.indices[static_cast<size_t>(i)];
      if (place < 0 || place >= level.size) {
        return DataLoss("a sparse axis of ", level.size, " has a place ", place);
      }
      out.push_back(above[node] + place * level.stride);
    }
    ONCILLA_TRY(look.Go(end - begin + 1));
  }
  return out;
}

}  // namespace

Result<Tensor> DensifyTflite(const FlatTable& sparsity, const TensorDesc& desc,
                             std::string_view data) {
  const int64_t bytes = BytesOf(desc.dtype);
  if (bytes < 1) return Unsupported("a sparse tensor of ", desc.dtype);
  ONCILLA_TRY(CheckSparseSize(desc, std::ssize(data)));
  ONCILLA_ASSIGN(const std::vector<Level> levels, ReadLevels(sparsity, desc.shape));
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate(desc));
  if (desc.elements() == 0) return out;
  HostVector<int64_t> nodes = {0};
  for (const Level& level : levels) {
    ONCILLA_ASSIGN(nodes, Descend(level, nodes, desc.elements()));
  }
  if (SaturatingMul(std::ssize(nodes), bytes) != std::ssize(data)) {
    return DataLoss("a sparse tensor has ", data.size(), " bytes for ", nodes.size(), " elements");
  }
  const std::span<std::byte> to = out.mutable_bytes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::memcpy(to.data() + nodes[i] * bytes, data.data() + i * static_cast<size_t>(bytes),
                static_cast<size_t>(bytes));
  }
  return out;
}

}  // namespace oncilla
