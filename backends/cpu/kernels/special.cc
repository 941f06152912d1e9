// Special functions on the CPU: computed in double and rounded once. Only NextAfter works in its
// own type.
#include "engine/ops/math/special.h"

#include <cmath>

#include "backends/cpu/algorithms/special_math.h"
#include "backends/cpu/kernel.h"
#include "engine/ops/broadcast.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

template <class T>
T To(double v) {
  if constexpr (std::is_same_v<T, double>) return v;
  return static_cast<T>(static_cast<float>(v));
}

// Calls fn(element of the output, element of each input) for all elements of a broadcast.
template <size_t N, class F>
void ForBroadcast(const Args& args, F&& fn) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < N; ++i) shapes.push_back(args.in(i).shape);
  const BroadcastAxes axes = MergeBroadcast(args.out(0).shape, shapes);
  ParallelFor(args.threads, axes.elements, 512, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::array<int64_t, N> at = {};
      int64_t left = i;
      for (int axis = axes.rank; axis-- > 0;) {
        const auto a = static_cast<size_t>(axis);
        for (size_t k = 0; k < N; ++k) at[k] += left % axes.sizes[a] * axes.strides[k][a];
        left /= axes.sizes[a];
      }
      fn(i, at);
    }
  });
}

template <auto F, size_t N>
Status Apply(const NoAttrs&, const Args& args) {
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      ForBroadcast<N>(args, [&](int64_t i, const std::array<int64_t, N>& at) {
        const auto v = [&](size_t k) { return static_cast<double>(args.In<T>(k)[at[k]]); };
        double y = 0;
        if constexpr (N == 1) y = F(v(0));
        if constexpr (N == 2) y = F(v(0), v(1));
        if constexpr (N == 3) y = F(v(0), v(1), v(2));
        args.Out<T>(0)[i] = To<T>(y);
      });
    }
  });
  return Status();
}

// The next number of a 16-bit format in the direction of another one: its bits, as a magnitude,
// plus or minus one.
template <class T>
T NextOf(T from, T to) {
  const auto a = static_cast<float>(from), b = static_cast<float>(to);
  if (a != a || a == b) return a != a ? from : to;
  if (b != b) return to;
  T out = from;
  if (a == 0) {
    out.bits = static_cast<uint16_t>(b > 0 ? 1 : 0x8001);
  } else {
    out.bits = static_cast<uint16_t>((b > a) == (a > 0) ? from.bits + 1 : from.bits - 1);
  }
  return out;
}
float NextOf(float from, float to) { return std::nextafter(from, to); }
double NextOf(double from, double to) { return std::nextafter(from, to); }

Status NextAfter(const NoAttrs&, const Args& args) {
  DispatchDType(args.in(0).dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_integral_v<T>) {
      ForBroadcast<2>(args, [&](int64_t i, const std::array<int64_t, 2>& at) {
        args.Out<T>(0)[i] = NextOf(args.In<T>(0)[at[0]], args.In<T>(1)[at[1]]);
      });
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<Apply<&LogGamma, 1>>("Lgamma", kFloats),
    Row<Apply<&Digamma, 1>>("Digamma", kFloats),
    Row<Apply<&ErfInverse, 1>>("Erfinv", kFloats),
    Row<Apply<&NormalQuantile, 1>>("Ndtri", kFloats),
    Row<Apply<&ScaledBesselI0, 1>>("BesselI0e", kFloats),
    Row<Apply<&ScaledBesselI1, 1>>("BesselI1e", kFloats),
    Row<Apply<&LowerGamma, 2>>("Igamma", kFloats),
    Row<Apply<&UpperGamma, 2>>("Igammac", kFloats),
    Row<Apply<&HurwitzZeta, 2>>("Zeta", kFloats),
    Row<Apply<&Polygamma, 2>>("Polygamma", kFloats),
    Row<Apply<&IncompleteBeta, 3>>("Betainc", kFloats),
    Row<NextAfter>("NextAfter", kFloats),
};

}  // namespace

std::span<const KernelRow> SpecialKernels() { return kRows; }

}  // namespace oncilla::cpu
