// Picking slices of host tensors, and host tensors of integers of any width.
#include "backends/cpu/kernels/pick.h"

#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/move.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {

Result<Tensor> Pick(const Tensor& from, const IntList& at, int64_t inner, Shape shape,
                    const Tensor* otherwise) {
  auto copy = [&]<class T>(const T* x, const T* fallback, bool one, T* y) {
    for (int64_t i : at) {
      if (i >= 0) {
        y = std::copy_n(x + i * inner, inner, y);
      } else if (fallback != nullptr) {
        y = one ? std::fill_n(y, inner, *fallback) : std::copy_n(fallback, inner, y);
      } else {
        y = std::fill_n(y, inner, T());
      }
    }
  };
  const bool one = otherwise != nullptr && otherwise->elements() == 1;
  if (otherwise != nullptr && !one && otherwise->elements() != inner) {
    return InvalidArgument("the default has ", otherwise->elements(), " elements, neither one nor ",
                           inner);
  }
  if (from.dtype() == DType::kString) {
    Growth growth;
    for (int64_t i : at) {
      ONCILLA_TRY(growth.Add(inner * static_cast<int64_t>(sizeof(std::string))));
      for (int64_t k = 0; i >= 0 && k < inner; ++k) {
        ONCILLA_TRY(growth.Add(std::ssize(from.strings()[static_cast<size_t>(i * inner + k)])));
      }
    }
    std::vector<std::string> out(static_cast<size_t>(shape.elements()));
    copy(from.strings().data(), otherwise == nullptr ? nullptr : otherwise->strings().data(), one,
         out.data());
    growth.Clear();
    return Tensor::Strings(std::move(shape), std::move(out));
  }
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({from.dtype(), std::move(shape)}));
  DispatchBytes(BytesOf(from.dtype()), [&]<class T>(T) {
    copy(from.As<T>().data(), otherwise == nullptr ? nullptr : otherwise->As<T>().data(), one,
         out.MutableAs<T>().data());
  });
  return out;
}

IntList IntsOf(const Tensor& tensor) {
  return ReadInts(tensor.bytes().data(), tensor.dtype(), tensor.elements());
}

Result<Tensor> IntTensor(DType dtype, Shape shape, std::span<const int64_t> values) {
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({dtype, std::move(shape)}));
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      std::transform(values.begin(), values.end(), out.MutableAs<T>().begin(),
                     [](int64_t v) { return static_cast<T>(v); });
    }
  });
  return out;
}

}  // namespace oncilla::cpu
