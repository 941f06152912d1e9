// Products of the same weights with rows that become known one after the other, as the states of a
// recurrent layer do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/integer/byte_columns.h"

namespace oncilla::cpu {

// What belongs to the columns is computed once; a product allocates nothing.
class RepeatedByteProduct {
 public:
  // `end` gives the zero points of the weights and whether these are signed; it has no rule.
  RepeatedByteProduct(const std::byte* packed, int64_t k, int64_t n, const ByteEnd& end);

  // Whether a product needs the sums of its rows.
  bool NeedsRowSums() const { return columns_.NeedsRowSums(); }
  // y[rows][n] = the sums of the rows of unsigned bytes at x as ByteFiller writes them, `step`
  // bytes apart. `zeros` and `sums`: each row's zero point, and the sum of what ByteFiller has
  // written for it, which is read where it is needed.
  void Run(const Threads& threads, const std::byte* x, int64_t step, int64_t rows,
           const int32_t* zeros, const int32_t* sums, int32_t* y) const;

 private:
  const ByteLayout layout_;
  const int64_t k_, n_;
  const ByteColumns columns_;
  ByteBlock block_;
};

}  // namespace oncilla::cpu
