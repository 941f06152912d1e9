// Converting a double that an integer type cannot hold is undefined in C++, so it is refused first.
#include "engine/tensor/scalar.h"

#include <cmath>
#include <limits>

#include "engine/tensor/dispatch.h"

namespace oncilla {
namespace {

template <class T>
bool Holds(double value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // The smallest value is a power of two or 0, and so is the first one above the largest: both
    // are exact as doubles.
    const double least = static_cast<double>(std::numeric_limits<T>::min());
    const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return std::trunc(value) >= least && value < above;  // false for NaN
  }
  return true;
}

}  // namespace

Result<Tensor> ScalarOf(DType dtype, double value) {
  ONCILLA_ASSIGN(Tensor tensor, Tensor::Allocate({dtype, {}}));
  bool holds = true;
  const bool number = DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    holds = Holds<T>(value);
    if (!holds) return;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      tensor.MutableAs<T>()[0] = static_cast<T>(static_cast<float>(value));
    } else {
      tensor.MutableAs<T>()[0] = static_cast<T>(value);
    }
  });
  if (!number) return Unsupported("a constant of ", dtype);
  if (!holds) return InvalidArgument(value, " is no ", dtype);
  return tensor;
}

IntegerLimits LimitsOf(DType dtype) {
  IntegerLimits limits;
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= 4) {
      limits = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    }
  });
  return limits;
}

}  // namespace oncilla
