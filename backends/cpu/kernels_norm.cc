// Normalisation kernels of the CPU: plain, exact code.
#include <cmath>

#include "backends/cpu/kernel.h"
#include "engine/ops/norm.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

Status Softmax(const SoftmaxAttrs& attrs, const Args& args) {
  const Shape shape = args.in(0).shape;
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, shape.rank()));
  const int64_t outer = shape.Product(0, axis), n = shape[axis];
  const int64_t inner = shape.Product(axis + 1, shape.rank());
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    ParallelFor(args.threads, outer * inner, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t base = i / inner * n * inner + i % inner;
        const T* x = args.In<T>(0) + base;
        T* y = args.Out<T>(0) + base;
        double max = -INFINITY, sum = 0;
        for (int64_t k = 0; k < n; ++k) max = std::fmax(max, static_cast<double>(x[k * inner]));
        for (int64_t k = 0; k < n; ++k) sum += std::exp(static_cast<double>(x[k * inner]) - max);
        for (int64_t k = 0; k < n; ++k) {
          const double z = static_cast<double>(x[k * inner]) - max;
          y[k * inner] = static_cast<T>(attrs.log ? z - std::log(sum) : std::exp(z) / sum);
        }
      }
    });
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<Softmax>("Softmax", kFloats),
};

}  // namespace

std::span<const KernelRow> NormKernels() { return kRows; }

}  // namespace oncilla::cpu
