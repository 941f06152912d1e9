// Small matrices of 4-byte elements turned and planes of them woven together, on vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oncilla::cpu {

inline constexpr int64_t kTurnedRows = 32, kTurnedColumns = 16;

// Writes `columns` rows of `rows` elements each, kTurnedRows elements apart, out of `rows` rows of
// `columns`, which are `step` bytes apart. At most kTurnedRows rows and kTurnedColumns columns; what
// lies where may be aligned or not.
void TurnWords(const std::byte* from, int64_t step, int64_t rows, int64_t columns, std::byte* to);

// `parts` planes (2 or 3), `plane` bytes apart, become the parts of `pixels` pixels.
void InterleaveWords(const std::byte* from, int64_t plane, int parts, int64_t pixels,
                     std::byte* to);

}  // namespace oncilla::cpu
