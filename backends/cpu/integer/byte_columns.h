// The terms, factors and bounds that a product of bytes applies to its sums, per column;
// byte_product.h has the formula.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/integer/byte_product.h"
#include "backends/cpu/integer/fixed_in_floats.h"
#include "backends/cpu/integer/quad_sums.h"

namespace oncilla::cpu {

// A block of rows times the packed weights.
struct ByteBlock {
  const std::byte* x = nullptr;
  int64_t step = 0, rows = 0, steps = 0, n = 0;
  const std::byte* packed = nullptr;
  int64_t panel_bytes = 0;
  QuadSums quads;
  // For each column, in whole panels: a term that is added to its sum; its zero point, which is
  // multiplied by the row's sum of x and subtracted; its sum of weights, which is multiplied by the
  // row's zero point and subtracted. The last two may be null.
  const int32_t *terms = nullptr, *zeros = nullptr, *column_sums = nullptr;
  const int32_t *row_sums = nullptr, *row_zeros = nullptr;
  const RequantizeRule* rule = nullptr;
  const QuadEnd* bytes_end = nullptr;  // of the first panel; null where tiles end otherwise
  std::byte* y = nullptr;
};

// Computes panels [first, last).
void MultiplyByteBlock(const ByteBlock& block, int64_t first, int64_t last);

// The most rows of a tile, and the most columns of a panel.
inline constexpr int kMostTileRows = 16, kMostPanel = 64;

// The terms of a product that belong to columns (in whole panels) or to rows.
class ByteColumns {
 public:
  ByteColumns(const ByteLayout& layout, const std::byte* packed, int64_t k, int64_t n,
              const ByteRows& rows, const ByteEnd& end)
      : padded_(layout.Panels(n) * layout.panel) {
    const auto* packed_sums =
        reinterpret_cast<const int32_t*>(packed + layout.Panels(n) * layout.PanelBytes(k));
    const int32_t moved = layout.quads && !end.weights_signed ? 128 : 0;
    x_moved_ = layout.quads && rows.is_signed ? 128 : 0;
    const auto columns = static_cast<size_t>(padded_);
    terms_.resize(columns);
    zeros_.resize(columns);
    column_sums_.resize(columns);
    for (int64_t c = 0; c < n; ++c) {
      const auto at = static_cast<size_t>(c);
      zeros_[at] = (end.weight_zeros.empty() ? 0 : end.weight_zeros[at]) - moved;
      any_zero_ |= zeros_[at] != 0;
      const uint32_t sum = static_cast<uint32_t>(packed_sums[c]) -
                           static_cast<uint32_t>(k) * static_cast<uint32_t>(zeros_[at]);
      column_sums_[at] = static_cast<int32_t>(sum);
      uint32_t term = end.bias == nullptr ? 0 : static_cast<uint32_t>(end.bias[c]);
      if (layout.quads && rows.zeros == nullptr) {
        term -= static_cast<uint32_t>(rows.zero + x_moved_) * sum;
      }
      terms_[at] = static_cast<int32_t>(term);
    }
    if (layout.quads && rows.zeros != nullptr) {
      row_zeros_.assign(rows.zeros, rows.zeros + rows.count);
      for (int32_t& zero : row_zeros_) zero += x_moved_;
    }
    if (end.rule != nullptr) TakeRule(*end.rule, n);
    if (any_zero_) row_sums_.resize(static_cast<size_t>(rows.count));
  }

  bool NeedsRowSums() const { return any_zero_; }
  int32_t* row_sums() { return row_sums_.data(); }

  void Give(ByteBlock* block, int64_t row) const {
    block->terms = terms_.data();
    block->column_sums = column_sums_.data();
    block->zeros = any_zero_ ? zeros_.data() : nullptr;
    block->row_sums = any_zero_ ? row_sums_.data() + row : nullptr;
    block->row_zeros = row_zeros_.empty() ? nullptr : row_zeros_.data() + row;
    block->rule = ruled_ ? &rule_ : nullptr;
    const bool to_bytes = bytes_end_ && block->quads.run_to_bytes != nullptr &&
                          block->row_sums == nullptr && block->row_zeros == nullptr;
    block->bytes_end = to_bytes ? &*bytes_end_ : nullptr;
  }

 private:
  // Copies the factors into whole vectors, because vectors of them are read whole.
  void TakeRule(const RequantizeRule& rule, int64_t n) {
    rule_ = rule;
    ruled_ = true;
    const auto columns = static_cast<size_t>(padded_);
    if (rule.fixed()) return TakeFixedRule(rule, n);
    if (rule.terms != nullptr) {
      real_terms_.resize(columns);
      for (int64_t c = 0; c < n; ++c)
        real_terms_[static_cast<size_t>(c)] = rule.terms[rule.many_terms ? c : 0];
      rule_.terms = real_terms_.data();
    }
    scales_.resize(columns);
    for (int64_t c = 0; c < n; ++c)
      scales_[static_cast<size_t>(c)] = rule.scales[rule.many ? c : 0];
    rule_.scales = scales_.data();
    rule_.many = true;
    if (std::ranges::all_of(scales_, [](float x) { return std::isfinite(x); })) EndInBytes();
  }

  void TakeFixedRule(const RequantizeRule& rule, int64_t n) {
    const auto columns = static_cast<size_t>(padded_);
    factors_.resize(2 * columns);
    scales_.resize(columns);
    halves_.resize(columns);
    bool in_floats = true;
    for (int64_t c = 0; c < n; ++c) {
      const auto at = static_cast<size_t>(c);
      const int32_t multiplier = rule.multipliers[rule.many ? c : 0];
      const int32_t shift = rule.shifts[rule.many ? c : 0];
      factors_[at] = multiplier;
      factors_[columns + at] = shift;
      in_floats = in_floats && FixedInFloats(multiplier, shift);
      if (!in_floats) continue;
      const FixedFloats floats = FloatsOfFixed(multiplier, shift);
      scales_[at] = floats.scale;
      halves_[at] = floats.half;
    }
    rule_.multipliers = factors_.data();
    rule_.shifts = factors_.data() + padded_;
    rule_.many = true;
    if (!in_floats) return;
    EndInBytes();
    if (!bytes_end_) return;
    bytes_end_->halves = halves_.data();
    bytes_end_->multipliers = rule_.multipliers;
    bytes_end_->shifts = rule_.shifts;
  }

  // Lets tiles end as bytes, by scales_.
  void EndInBytes() {
    if (BitsOf(rule_.to) != 8) return;
    QuadEnd& end = bytes_end_.emplace();
    end.terms = terms_.data();
    end.scales = scales_.data();
    end.most = static_cast<float>(rule_.most);
    end.zero = static_cast<int16_t>(rule_.zero);
    end.least_byte = static_cast<int16_t>(rule_.least + rule_.zero);
    end.most_byte = static_cast<int16_t>(rule_.most + rule_.zero);
    end.is_signed = rule_.to == DType::kI8;
  }

  const int64_t padded_;
  int32_t x_moved_ = 0;
  bool any_zero_ = false, ruled_ = false;
  std::vector<int32_t> terms_, zeros_, column_sums_, row_sums_, row_zeros_, factors_;
  std::vector<float> scales_, halves_, real_terms_;
  RequantizeRule rule_;
  std::optional<QuadEnd> bytes_end_;
};

}  // namespace oncilla::cpu
