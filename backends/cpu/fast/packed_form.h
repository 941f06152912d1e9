// The form in which weights of each dtype are packed for fast products.
#pragma once

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/gemm/gemm.h"

namespace oncilla::cpu {

// The name of a packing in this form.
template <class Packed>
constexpr std::string_view PackedName() {
  return std::is_same_v<Packed, BFloat16Pair> ? "pairs" : "panels";
}
// The tiles that read it, for descriptions.
template <class Packed>
const char* TileNameOf() {
  return std::is_same_v<Packed, BFloat16Pair> ? PairTileName() : TileName();
}

// Returns fn(TypeTag<T>, TypeTag<Packed>) with the form in which numbers of a carried dtype are
// packed on this processor.
template <class F>
auto WithPackedForm(DType dtype, F&& fn) {
  switch (dtype) {
    case DType::kF16:
      return fn(TypeTag<Half>{}, TypeTag<Half>{});
    case DType::kBF16:
      return MultipliesPairs() ? fn(TypeTag<BFloat16>{}, TypeTag<BFloat16Pair>{})
                               : fn(TypeTag<BFloat16>{}, TypeTag<BFloat16>{});
    default:
      return fn(TypeTag<float>{}, TypeTag<float>{});
  }
}

}  // namespace oncilla::cpu
