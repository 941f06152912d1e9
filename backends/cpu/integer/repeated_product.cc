// Repeated products of bytes: the columns' terms of byte_product.h, kept, and the division of one
// product among threads.
#include "backends/cpu/integer/repeated_product.h"

#include <algorithm>

namespace oncilla::cpu {
namespace {

// Products of a piece, for which waking another thread pays; and its most rows.
constexpr int64_t kLeastProducts = 1 << 17, kMostRows = 96;

}  // namespace

RepeatedByteProduct::RepeatedByteProduct(const std::byte* packed, int64_t k, int64_t n,
                                         const ByteEnd& end)
    : layout_(LayoutOfBytes()), k_(k), n_(n), columns_(layout_, packed, k, n, ByteRows(), end) {
  block_.steps = layout_.Steps(k);
  block_.n = n;
  block_.packed = packed;
  block_.panel_bytes = layout_.PanelBytes(k);
  if (layout_.quads) block_.quads = QuadSumsHere();
  columns_.Give(&block_, 0);
}

void RepeatedByteProduct::Run(const Threads& threads, const std::byte* x, int64_t step,
                              int64_t rows, const int32_t* zeros, const int32_t* sums,
                              int32_t* y) const {
  const int64_t panels = layout_.Panels(n_), blocks = (rows + kMostRows - 1) / kMostRows;
  const int64_t groups = std::clamp<int64_t>(rows * k_ * n_ / (blocks * kLeastProducts), 1, panels);
  ParallelFor(threads, blocks * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t group = piece / blocks, at = piece % blocks;
      const int64_t row = rows * at / blocks;
      ByteBlock block = block_;
      block.x = x + row * step;
      block.step = step;
      block.rows = rows * (at + 1) / blocks - row;
      // Pairs are written minus their zero points.
      block.row_zeros = layout_.quads ? zeros + row : nullptr;
      block.row_sums = NeedsRowSums() ? sums + row : nullptr;
      block.y = reinterpret_cast<std::byte*>(y + row * n_);
      MultiplyByteBlock(block, panels * group / groups, panels * (group + 1) / groups);
    }
  });
}

}  // namespace oncilla::cpu
