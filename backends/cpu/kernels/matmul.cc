// MatMul on the CPU: plain, exact code.
#include "engine/ops/math/matmul.h"

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/kernel.h"
#include "engine/ops/math/activation.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

// Sums are double; sums of integers are modulo 2^64, whose low bits are right for any narrower
// type.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <class T>
T Finish(Sum<T> sum, Activation activation) {
  if constexpr (std::is_integral_v<T>) {
    const T x = static_cast<T>(sum);
    if (activation == Activation::kNone) return x;
    const T positive = x > T{0} ? x : T{0};
    return activation == Activation::kRelu6 && positive > T{6} ? T{6} : positive;
  } else {
    return static_cast<T>(Apply(activation, sum));
  }
}

Status MatMul(const MatMulAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const Activation activation, ActivationFromName(attrs.activation));
  const MatMulGeometry g = GeometryOf(attrs, args.in(0).shape, args.in(1).shape);
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      const T* bias = args.has_input(2) ? args.In<T>(2) : nullptr;
      const T* residual = args.has_input(3) ? args.In<T>(3) : nullptr;
      const int64_t grain = GrainOf(SaturatingMul(g.n, g.k), 4);
      ParallelFor(args.threads, g.batch * g.m, grain, [&](int64_t begin, int64_t end) {
        std::vector<Sum<T>> sums(static_cast<size_t>(g.n));
        Lookout look(args.threads);
        for (int64_t row = begin; row < end; ++row) {
          const T* a = args.In<T>(0) + g.a_offset(row / g.m) + row % g.m * g.a_row;
          const T* b = args.In<T>(1) + g.b_offset(row / g.m);
          for (int64_t j = 0; j < g.n; ++j) {
            sums[j] = bias != nullptr ? static_cast<Sum<T>>(bias[j]) : 0;
            if (residual != nullptr) sums[j] += static_cast<Sum<T>>(residual[row * g.n + j]);
          }
          for (int64_t k = 0; k < g.k; ++k) {
            if (look.Ended(g.n)) return;
            const auto x = static_cast<Sum<T>>(a[k * g.a_col]);
            const T* b_row = b + k * g.b_row;
            for (int64_t j = 0; j < g.n; ++j) {
              sums[j] += x * static_cast<Sum<T>>(b_row[j * g.b_col]);
            }
          }
          T* y = args.Out<T>(0) + row * g.n;
          for (int64_t j = 0; j < g.n; ++j) y[j] = Finish<T>(sums[j], activation);
        }
      });
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<MatMul>("MatMul", kNumbers, &MakeFastMatMul, &MatMulPacking),
};

}  // namespace

std::span<const KernelRow> MatMulKernels() { return kRows; }

}  // namespace oncilla::cpu
