// Fast Resize over two spatial axes: for float and 16-bit floats rows first, then pixels, as two
// passes of weights; nearest pixels of any type are copied.
//
// An output row is first a weighted sum of whole input rows (long vectors, whatever the number of
// channels), kept in a small buffer; its pixels are then weighted sums of that row's pixels.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fast/resize.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include "engine/ops/nn/resize.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/vector.inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

// y[i] = sum of weights times inputs, over `count` floats. kTaps > 0 fixes the number of taps.
template <int kTaps, class From, class To>
HWY_INLINE void WeightedSum(const From* const* x, const float* weight, int taps, int64_t count,
                            To* y) {
  constexpr Floats d;
  if (kTaps > 0) taps = kTaps;
  for (int64_t i = 0; i < count; i += kLanes) {
    Vector sum = hn::Mul(hn::Set(d, weight[0]), LoadSome(x[0] + i, count - i));
    for (int t = 1; t < taps; ++t) {
      sum = hn::MulAdd(hn::Set(d, weight[t]), LoadSome(x[t] + i, count - i), sum);
    }
    StoreSome(sum, y + i, count - i);
  }
}

template <class From, class To>
void Blend(const From* const* x, const float* weight, int taps, int64_t count, To* y) {
  switch (taps) {
    case 2:
      return WeightedSum<2>(x, weight, taps, count, y);
    case 4:
      return WeightedSum<4>(x, weight, taps, count, y);
    default:
      return WeightedSum<0>(x, weight, taps, count, y);
  }
}

// Computes one output row from the blended input row.
template <class T>
void BlendPixels(const float* row, const ResizeTaps& table, int64_t pixels, int64_t channels,
                 T* y) {
  const int taps = static_cast<int>(table.taps);
  if (channels < 4) {  // too few for a vector: pixel by pixel, channel by channel
    for (int64_t o = 0; o < pixels; ++o) {
      const int32_t* index = table.index.data() + o * taps;
      const float* weight = table.weight.data() + o * taps;
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (int t = 0; t < taps; ++t) sum += weight[t] * row[index[t] * channels + c];
        y[o * channels + c] = T(sum);
      }
    }
    return;
  }
  std::vector<const float*> from(static_cast<size_t>(taps));
  for (int64_t o = 0; o < pixels; ++o) {
    for (int t = 0; t < taps; ++t) from[t] = row + table.index[o * taps + t] * channels;
    Blend(from.data(), table.weight.data() + o * taps, taps, channels, y + o * channels);
  }
}

// Computes one output row from input rows; `blended` is a buffer of one row of float.
template <class T>
void ResizeRow(const T* const* from, const float* weight, int taps, int64_t in_row, float* blended,
               const ResizeTaps& table, int64_t pixels, int64_t channels, T* y) {
  Blend(from, weight, taps, in_row, blended);
  BlendPixels(blended, table, pixels, channels, y);
}
void FloatRow(const float* const* from, const float* weight, int taps, int64_t in_row,
              float* blended, const ResizeTaps& table, int64_t pixels, int64_t channels, float* y) {
  ResizeRow(from, weight, taps, in_row, blended, table, pixels, channels, y);
}
void HalfRow(const Half* const* from, const float* weight, int taps, int64_t in_row, float* blended,
             const ResizeTaps& table, int64_t pixels, int64_t channels, Half* y) {
  ResizeRow(from, weight, taps, in_row, blended, table, pixels, channels, y);
}
void BFloat16Row(const BFloat16* const* from, const float* weight, int taps, int64_t in_row,
                 float* blended, const ResizeTaps& table, int64_t pixels, int64_t channels,
                 BFloat16* y) {
  ResizeRow(from, weight, taps, in_row, blended, table, pixels, channels, y);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(FloatRow);
HWY_EXPORT(HalfRow);
HWY_EXPORT(BFloat16Row);

class CopyPixels : public CpuKernel {
 public:
  CopyPixels(const NodeView& node, ResizeTaps rows, ResizeTaps pixels)
      : CpuKernel(node), rows_(std::move(rows)), pixels_(std::move(pixels)) {}
  std::string description() const override { return "copies"; }

  Status Run(const Args& args) const override {
    const Shape in = args.in(0).shape, out = args.out(0).shape;
    const int64_t pixel = in[3] * BytesOf(args.in(0).dtype), row = in[2] * pixel;
    const int64_t grain = std::max<int64_t>(1, 131072 / (out[2] * pixel));
    ParallelFor(args.threads, out[0] * out[1], grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const std::byte* from =
            args.inputs[0] + (i / out[1] * in[1] + rows_.index[i % out[1]]) * row;
        std::byte* y = args.outputs[0] + i * out[2] * pixel;
        for (int64_t p = 0; p < out[2]; ++p, y += pixel) {
          std::memcpy(y, from + pixels_.index[p] * pixel, static_cast<size_t>(pixel));
        }
      }
    });
    return Status();
  }

 private:
  const ResizeTaps rows_, pixels_;
};

template <class T>
class FastResize : public CpuKernel {
 public:
  FastResize(const NodeView& node, ResizeTaps rows, ResizeTaps pixels)
      : CpuKernel(node), rows_(std::move(rows)), pixels_(std::move(pixels)) {}
  std::string description() const override { return "two passes"; }

  Status Run(const Args& args) const override {
    const Shape in = args.in(0).shape, out = args.out(0).shape;
    const int64_t channels = in[3], in_row = in[2] * channels, out_row = out[2] * channels;
    const int64_t grain = std::max<int64_t>(1, 32768 / out_row);
    ParallelFor(args.threads, out[0] * out[1], grain, [&](int64_t begin, int64_t end) {
      std::vector<float> blended(static_cast<size_t>(in_row));
      std::vector<const T*> from(static_cast<size_t>(rows_.taps));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t o = i % out[1];
        const T* sample = args.In<T>(0) + i / out[1] * in[1] * in_row;
        for (int64_t t = 0; t < rows_.taps; ++t) {
          from[t] = sample + rows_.index[o * rows_.taps + t] * in_row;
        }
        T* y = args.Out<T>(0) + i * out_row;
        const float* weight = rows_.weight.data() + o * rows_.taps;
        const int taps = static_cast<int>(rows_.taps);
        if constexpr (std::is_same_v<T, Half>) {
          HWY_DYNAMIC_DISPATCH(HalfRow)
          (from.data(), weight, taps, in_row, blended.data(), pixels_, out[2], channels, y);
        } else if constexpr (std::is_same_v<T, BFloat16>) {
          HWY_DYNAMIC_DISPATCH(BFloat16Row)
          (from.data(), weight, taps, in_row, blended.data(), pixels_, out[2], channels, y);
        } else {
          HWY_DYNAMIC_DISPATCH(FloatRow)
          (from.data(), weight, taps, in_row, blended.data(), pixels_, out[2], channels, y);
        }
      }
    });
    return Status();
  }

 private:
  const ResizeTaps rows_, pixels_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastResize(const NodeView& node) {
  ONCILLA_ASSIGN(const auto given, ReadAttrs<ResizeAttrs>(*node.attrs));
  if (given.coordinates == "crop_and_resize") return nullptr;
  ONCILLA_ASSIGN(const ResizeAttrs attrs, SettledResize(given, node.inputs));
  const TensorDesc in = node.inputs[0].desc(), out = node.outputs[0].desc();
  if (in.rank() != 4 || out.elements() == 0) return nullptr;
  const bool copies = attrs.mode == "nearest";
  if (!copies && !IsCarried(in.dtype)) return nullptr;
  ONCILLA_ASSIGN(ResizeTaps rows, TapsOf(attrs, 0, in.shape[1], out.shape[1]));
  ONCILLA_ASSIGN(ResizeTaps pixels, TapsOf(attrs, 1, in.shape[2], out.shape[2]));
  std::unique_ptr<CpuKernel> kernel;
  if (copies) {
    kernel = std::make_unique<CopyPixels>(node, std::move(rows), std::move(pixels));
    return kernel;
  }
  ForCarried(in.dtype, [&]<class T>(TypeTag<T>) {
    kernel = std::make_unique<FastResize<T>>(node, std::move(rows), std::move(pixels));
  });
  return kernel;
}

}  // namespace oncilla::cpu
#endif
