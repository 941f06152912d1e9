// Transposes small matrices of 4-byte elements, and interleaves planes of them, on vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oncilla::cpu {

inline constexpr int64_t kTurnedRows = 32, kTurnedColumns = 16;

// Writes the transpose of `rows` rows of `columns` elements, which are `step` bytes apart:
// `columns` rows of `rows` elements each, `to_step` bytes apart. At most kTurnedRows rows and
// kTurnedColumns columns; neither side needs to be aligned.
void TurnWords(const std::byte* from, int64_t step, int64_t rows, int64_t columns, std::byte* to,
               int64_t to_step);

// Interleaves `parts` planes (2 or 3), `plane` bytes apart, to `pixels` pixels.
void InterleaveWords(const std::byte* from, int64_t plane, int parts, int64_t pixels,
                     std::byte* to);

}  // namespace oncilla::cpu
