// Converts number by number and records how much is lost.
#include "engine/tensor/narrow.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/half.h"

namespace oncilla {
namespace {

template <class Narrow>
bool Convert(const std::byte* from, std::span<uint16_t> to, Narrowing& result) {
  float largest = 0, worst = 0;
  bool fits = true;
  for (size_t i = 0; i < to.size(); ++i) {
    float value = 0;
    std::memcpy(&value, from + 4 * i, 4);
    const Narrow narrow(value);
    to[i] = narrow.bits;
    if (!std::isfinite(value)) continue;
    const auto back = static_cast<float>(narrow);
    const float magnitude = std::abs(value);
    largest = std::max(largest, magnitude);
    fits &= std::isfinite(back);
    if (magnitude > 0) worst = std::max(worst, std::abs(back - value) / magnitude);
  }
  result.largest = largest;
  result.relative_error = worst;
  return fits;
}

}  // namespace

Result<Narrowing> Narrowed(const Tensor& f32, DType dtype) {
  Narrowing result;
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({dtype, f32.shape()}));
  const std::byte* from = f32.bytes().data();
  const auto to = out.MutableAs<uint16_t>();
  const bool fits =
      dtype == DType::kF16 ? Convert<Half>(from, to, result) : Convert<BFloat16>(from, to, result);
  if (fits) result.tensor = std::move(out);
  return result;
}

}  // namespace oncilla
