// Fast Resize: for float and 16-bit floats rows first, then pixels, as two passes of weights;
// nearest pixels of any type are copied.
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

#include "backends/cpu/fast/blend.inl.h"
#include "backends/cpu/fast/fast.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

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

// For each output row of a sample, whole input rows and their weights: the taps of all axes but the
// last, multiplied. Along one axis alone there is one row, which is its own.
class RowTaps {
 public:
  RowTaps(std::vector<ResizeTaps> axes, const Shape& in, const Shape& out)
      : axes_(std::move(axes)) {
    for (size_t i = 0; i < axes_.size(); ++i) {
      const int axis = 1 + static_cast<int>(i);
      in_size_.push_back(in[axis]);
      out_size_.push_back(out[axis]);
      in_rows_ *= in[axis];
      out_rows_ *= out[axis];
      taps_ *= axes_[i].taps;
    }
  }
  int64_t taps() const { return taps_; }
  int64_t in_rows() const { return in_rows_; }  // of a sample
  int64_t out_rows() const { return out_rows_; }

  // The input rows of an output row and their weights, as many of each as there are taps.
  void Find(int64_t o, int64_t* rows, float* weights) const {
    int64_t count = 1, after = out_rows_;
    rows[0] = 0;
    weights[0] = 1;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const ResizeTaps& table = axes_[i];
      after /= out_size_[i];
      const int64_t first = o / after % out_size_[i] * table.taps;
      // Backwards, so that each row is read before its taps take its place.
      for (int64_t k = count * table.taps; k-- > 0;) {
        const auto tap = static_cast<size_t>(first + k % table.taps);
        rows[k] = rows[k / table.taps] * in_size_[i] + table.index[tap];
        weights[k] = weights[k / table.taps] * table.weight[tap];
      }
      count *= table.taps;
    }
  }

 private:
  const std::vector<ResizeTaps> axes_;
  std::vector<int64_t> in_size_, out_size_;
  int64_t in_rows_ = 1, out_rows_ = 1, taps_ = 1;
};

class CopyPixels : public CpuKernel {
 public:
  CopyPixels(const NodeView& node, RowTaps rows, ResizeTaps pixels)
      : CpuKernel(node), rows_(std::move(rows)), pixels_(std::move(pixels)) {}
  std::string description() const override { return "copies"; }

  Status Run(const Args& args) const override {
    const Shape in = args.in(0).shape, out = args.out(0).shape;
    const int64_t pixel = in.back() * BytesOf(args.in(0).dtype);
    const int64_t row = in[in.rank() - 2] * pixel, pixels = out[out.rank() - 2];
    const int64_t grain = std::max<int64_t>(1, 131072 / (pixels * pixel));
    ParallelFor(args.threads, out[0] * rows_.out_rows(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t at = 0;
        float weight = 0;  // 1
        rows_.Find(i % rows_.out_rows(), &at, &weight);
        const std::byte* from =
            args.inputs[0] + (i / rows_.out_rows() * rows_.in_rows() + at) * row;
        std::byte* y = args.outputs[0] + i * pixels * pixel;
        for (int64_t p = 0; p < pixels; ++p, y += pixel) {
          std::memcpy(y, from + pixels_.index[p] * pixel, static_cast<size_t>(pixel));
        }
      }
    });
    return Status();
  }

 private:
  const RowTaps rows_;
  const ResizeTaps pixels_;
};

template <class T>
class FastResize : public CpuKernel {
 public:
  FastResize(const NodeView& node, RowTaps rows, ResizeTaps pixels)
      : CpuKernel(node), rows_(std::move(rows)), pixels_(std::move(pixels)) {}
  std::string description() const override { return "two passes"; }

  Status Run(const Args& args) const override {
    const Shape in = args.in(0).shape, out = args.out(0).shape;
    const int64_t channels = in.back(), pixels = out[out.rank() - 2];
    const int64_t in_row = in[in.rank() - 2] * channels, out_row = pixels * channels;
    const int64_t grain = std::max<int64_t>(1, 32768 / out_row);
    ParallelFor(args.threads, out[0] * rows_.out_rows(), grain, [&](int64_t begin, int64_t end) {
      const auto taps = static_cast<size_t>(rows_.taps());
      std::vector<float> blended(static_cast<size_t>(in_row)), weight(taps);
      std::vector<int64_t> rows(taps);
      std::vector<const T*> from(taps);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t o = i % rows_.out_rows();
        const T* sample = args.In<T>(0) + i / rows_.out_rows() * rows_.in_rows() * in_row;
        rows_.Find(o, rows.data(), weight.data());
        for (size_t t = 0; t < taps; ++t) from[t] = sample + rows[t] * in_row;
        T* y = args.Out<T>(0) + i * out_row;
        const auto row = [&](auto resize) {
          resize(from.data(), weight.data(), static_cast<int>(taps), in_row, blended.data(),
                 pixels_, pixels, channels, y);
        };
        if constexpr (std::is_same_v<T, Half>) {
          row(HWY_DYNAMIC_DISPATCH(HalfRow));
        } else if constexpr (std::is_same_v<T, BFloat16>) {
          row(HWY_DYNAMIC_DISPATCH(BFloat16Row));
        } else {
          row(HWY_DYNAMIC_DISPATCH(FloatRow));
        }
      }
    });
    return Status();
  }

 private:
  const RowTaps rows_;
  const ResizeTaps pixels_;
};

}  // namespace

Result<std::unique_ptr<CpuKernel>> MakeFastResize(const NodeView& node) {
  ONCILLA_ASSIGN(const auto given, ReadAttrs<ResizeAttrs>(*node.attrs));
  if (given.coordinates == "crop_and_resize") return nullptr;
  ONCILLA_ASSIGN(const ResizeAttrs attrs, SettledResize(given, node.inputs));
  const TensorDesc in = node.inputs[0].desc(), out = node.outputs[0].desc();
  const int spatial = in.rank() - 2;
  if (spatial < 1 || out.elements() == 0) return nullptr;
  const bool copies = attrs.mode == "nearest";
  if (!copies && !IsCarried(in.dtype)) return nullptr;
  std::vector<ResizeTaps> tables;
  for (int i = 0; i < spatial; ++i) {
    ONCILLA_ASSIGN(ResizeTaps table, TapsOf(attrs, i, in.shape[1 + i], out.shape[1 + i]));
    tables.push_back(std::move(table));
  }
  ResizeTaps pixels = std::move(tables.back());
  tables.pop_back();
  RowTaps rows(std::move(tables), in.shape, out.shape);
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
