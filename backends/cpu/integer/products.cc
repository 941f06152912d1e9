// Fast ConvInteger and MatMulInteger of bytes with sums in i32, including the steps after the sums
// (byte_product.h). Weights are packed once if they are constant, otherwise in each run.
#include <algorithm>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/integer/byte_product.h"
#include "backends/cpu/windows.h"
#include "engine/ops/nn/integer.h"

namespace oncilla::cpu {
namespace {

// With fewer rows, packing weights that are not constant does not pay.
constexpr int64_t kFewestRows = 4;

bool IsByte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

// Whether the operands are bytes, and the sums i32 that are stored or converted to real numbers or
// to integers of 8 or 16 bits.
bool TakesTypes(const NodeView& node, const IntegerEpilogue& epilogue) {
  const Fact* bias = node.has_input(4) ? &node.inputs[4] : nullptr;
  return IsByte(node.inputs[0].dtype) && IsByte(node.inputs[1].dtype) &&
         SumType(node.inputs[0].dtype, bias) == DType::kI32 &&
         (epilogue.none() || epilogue.real() || BitsOf(epilogue.to) <= 16);
}

bool IsSignedByte(const TensorDesc& desc) { return desc.dtype == DType::kI8; }

// Zero point number i, or the only one; 0 without zero points.
int32_t ZeroOf(const Args& args, size_t input, int64_t i) {
  if (!args.has_input(input)) return 0;
  const int64_t at = args.in(input).elements() == 1 ? 0 : i;
  return IsSignedByte(args.in(input)) ? int32_t{args.In<int8_t>(input)[at]}
                                      : int32_t{args.In<uint8_t>(input)[at]};
}

// Weights k x n, dense.
ByteMatrix DenseWeights(const TensorDesc& desc, const std::byte* data, int64_t k, int64_t n) {
  return DenseBytes(data, IsSignedByte(desc), k, n);
}

void Pack(const ByteMatrix& w, const Args& args) { PackAllBytes(args.threads, w, args.scratch); }

// The steps after the sums of a product with n columns. `rule` is storage that the result points
// to.
Result<ByteEnd> EndOf(const IntegerEpilogue& epilogue, const Args& args, int64_t n,
                      RequantizeRule* rule) {
  ByteEnd end;
  end.bias = args.has_input(4) ? args.In<int32_t>(4) : nullptr;
  end.weights_signed = IsSignedByte(args.in(1));
  if (args.has_input(3)) {
    for (int64_t c = 0; c < n; ++c) end.weight_zeros.push_back(ZeroOf(args, 3, c));
  }
  end.y = args.outputs[0];
  if (epilogue.none()) return end;
  ONCILLA_ASSIGN(*rule, RuleOf(epilogue, args));
  end.rule = rule;
  return end;
}

std::string Describe(const IntegerEpilogue& epilogue, bool packed) {
  return StrCat("byte product ", LayoutOfBytes().name(), packed ? ", packed" : ", packs",
                epilogue.none()   ? ""
                : epilogue.real() ? ", to real numbers"
                                  : ", requantised");
}

class FastConvInteger : public CpuKernel {
 public:
  FastConvInteger(const NodeView& node, ConvIntegerAttrs attrs, const WindowGeometry& g,
                  bool packed)
      : CpuKernel(node),
        epilogue_(std::move(attrs.epilogue)),
        g_(g),
        runs_(RunsOfWholeWindow(g)),
        packed_(packed) {}
  std::string description() const override { return Describe(epilogue_, packed_); }
  int64_t scratch_bytes() const override {
    return packed_ ? 0 : PackedByteSize(depth(), g_.out_channels);
  }

  Status Run(const Args& args) const override {
    if (!packed_) Pack(DenseWeights(args.in(1), args.inputs[1], depth(), g_.out_channels), args);
    RequantizeRule rule;
    ONCILLA_ASSIGN(const ByteEnd end, EndOf(epilogue_, args, g_.out_channels, &rule));
    ByteRows rows;
    rows.count = g_.batch * g_.out_pixels();
    rows.is_signed = IsSignedByte(args.in(0));
    rows.zero = ZeroOf(args, 2, 0);
    if (IsMatrix() && ReadsInPlace(g_.in_channels, rows.is_signed)) {
      rows.in_place = args.inputs[0];
      rows.step = g_.in_channels;
    }
    const ByteFiller filler(rows.is_signed, rows.zero);
    const bool dense = IsMatrix() && LayoutOfBytes().RowBytes(depth()) == depth();
    const auto fill = [&](int64_t first, int64_t last, std::byte* to) {
      if (dense) {
        filler.Fill(args.inputs[0] + first * depth(), (last - first) * depth(), to);
      } else {
        FillWindows(filler, args.inputs[0], first, last, to);
      }
    };
    MultiplyBytes(args.threads, packed_ ? args.inputs[1] : args.scratch, depth(), g_.out_channels,
                  rows, fill, end);
    return Status();
  }

 private:
  int64_t depth() const { return g_.taps() * g_.in_channels; }

  // Whether the rows of the matrix are the input's pixels in place, without a window.
  bool IsMatrix() const {
    return g_.taps() == 1 && std::all_of(g_.axis.begin(), g_.axis.end(), [](const WindowAxis& a) {
             return a.stride == 1 && a.pad_begin == 0 && a.in == a.out;
           });
  }

  // The runs of contiguous taps of a window inside the input: offsets from its first tap.
  static std::vector<ByteRun> RunsOfWholeWindow(const WindowGeometry& g) {
    const WindowAxis &depth = g.axis[0], &height = g.axis[1], &width = g.axis[2];
    const int64_t channels = g.in_channels;
    const int64_t taps = width.dilation == 1 ? width.kernel : 1;  // side by side
    std::vector<ByteRun> runs;
    for (int64_t kd = 0; kd < depth.kernel; ++kd) {
      for (int64_t kh = 0; kh < height.kernel; ++kh) {
        const int64_t line = (kd * depth.dilation * height.in + kh * height.dilation) * width.in;
        for (int64_t kw = 0; kw < width.kernel; kw += taps) {
          const int64_t tap = (kd * height.kernel + kh) * width.kernel + kw;
          runs.push_back(
              {(line + kw * width.dilation) * channels, tap * channels, taps * channels});
        }
      }
    }
    return runs;
  }

  // Gathers the windows of output pixels. Pixels that are contiguous are copied at once.
  void FillWindows(const ByteFiller& filler, const std::byte* x, int64_t first, int64_t last,
                   std::byte* to) const {
    const int64_t channels = g_.in_channels, row_bytes = LayoutOfBytes().RowBytes(depth());
    WindowPlace place(g_, first);
    for (; first < last; ++first, to += row_bytes, place.Next()) {
      if (place.SeesWhole()) {
        filler.FillRuns(x + place.FirstPixel() * channels, runs_, to);
        continue;
      }
      filler.FillZeros(depth(), to);
      ForTapRuns(place, false, [&](int64_t at, int64_t tap, int64_t count) {
        filler.Fill(x + at * channels, count * channels, to, tap * channels);
      });
    }
  }

  const IntegerEpilogue epilogue_;
  const WindowGeometry g_;
  const std::vector<ByteRun> runs_;
  const bool packed_;
};

// A convolution in which each sample has a zero point of its own, by a kernel for one sample.
class EachSample : public CpuKernel {
 public:
  EachSample(const NodeView& node, std::unique_ptr<CpuKernel> one)
      : CpuKernel(node), one_(std::move(one)) {}
  std::string description() const override {
    return StrCat(one_->description(), ", sample by sample");
  }
  int64_t scratch_bytes() const override { return one_->scratch_bytes(); }

  Status Run(const Args& args) const override {
    const int64_t samples = args.in(0).shape[0];
    const int64_t x_bytes = args.in(0).bytes() / samples, y_bytes = args.out(0).bytes() / samples;
    std::vector<const std::byte*> inputs(args.inputs.begin(), args.inputs.end());
    std::byte* y = args.outputs[0];
    const NodeView node = one_->node();
    for (int64_t i = 0; i < samples && !args.threads.ended(); ++i) {
      ONCILLA_TRY(one_->Run({node, inputs, {&y, 1}, args.scratch, args.threads}));
      inputs[0] += x_bytes;
      ++inputs[2];
      y += y_bytes;
    }
    return Status();
  }

 private:
  const std::unique_ptr<CpuKernel> one_;
};

// The kernel for one sample of a convolution, with one zero point.
Result<std::unique_ptr<CpuKernel>> MakeForSample(const NodeView& node) {
  const auto first = [](const Fact& fact) {
    PartialShape shape = fact.shape;
    shape[0] = 1;
    return Fact::Of(fact.dtype, std::move(shape));
  };
  Facts inputs(node.inputs.begin(), node.inputs.end());
  inputs[0] = first(inputs[0]);
  inputs[2] = first(inputs[2]);
  const Facts outputs = {first(node.outputs[0])};
  return MakeFastConvInteger({node.op, node.attrs, inputs, outputs, node.name});
}

class FastMatMulInteger : public CpuKernel {
 public:
  FastMatMulInteger(const NodeView& node, MatMulIntegerAttrs attrs, MatMulGeometry g,
                    int64_t rows_of_a, bool packed)
      : CpuKernel(node),
        epilogue_(std::move(attrs.epilogue)),
        g_(std::move(g)),
        rows_of_a_(rows_of_a),
        packed_(packed) {}
  std::string description() const override { return Describe(epilogue_, packed_); }
  int64_t scratch_bytes() const override { return packed_ ? 0 : PackedByteSize(g_.k, g_.n); }

  Status Run(const Args& args) const override {
    RequantizeRule rule;
    ONCILLA_ASSIGN(ByteEnd end, EndOf(epilogue_, args, g_.n, &rule));
    const int64_t y_bytes = g_.m * g_.n * (BitsOf(args.out(0).dtype) / 8);
    const int64_t row_bytes = LayoutOfBytes().RowBytes(g_.k);
    const std::vector<int32_t> zeros = RowZeros(args);
    ByteRows rows;
    rows.count = g_.m;
    rows.step = g_.a_row;
    rows.is_signed = IsSignedByte(args.in(0));
    rows.zero = ZeroOf(args, 2, 0);
    if (!zeros.empty()) rows.zeros = zeros.data();
    int64_t held = -1;
    for (int64_t z = 0; z < g_.batch && !args.threads.ended(); ++z) {
      if (const int64_t b = g_.b_offset(z); !packed_ && b != held) {
        ByteMatrix w = DenseWeights(args.in(1), args.inputs[1] + b, g_.k, g_.n);
        w.row = g_.b_row;
        w.column = g_.b_col;
        Pack(w, args);
        held = b;
      }
      const std::byte* a = args.inputs[0] + g_.a_offset(z);
      if (ReadsInPlace(g_.k, rows.is_signed)) rows.in_place = a;
      const auto fill = [&](int64_t row, int64_t last, std::byte* to) {
        for (; row < last; ++row, to += row_bytes) {
          const int32_t zero = zeros.empty() ? rows.zero : zeros[static_cast<size_t>(row)];
          ByteFiller(rows.is_signed, zero).Fill(a + row * g_.a_row, g_.k, to);
        }
      };
      MultiplyBytes(args.threads, packed_ ? args.inputs[1] : args.scratch, g_.k, g_.n, rows, fill,
                    end);
      end.y += y_bytes;
    }
    return Status();
  }

 private:
  // The zero point of each row of a; empty if all rows share one.
  std::vector<int32_t> RowZeros(const Args& args) const {
    std::vector<int32_t> zeros;
    if (!args.has_input(2) || args.in(2).elements() == 1) return zeros;
    for (int64_t row = 0; row < g_.m; ++row) zeros.push_back(ZeroOf(args, 2, row % rows_of_a_));
    return zeros;
  }

  const IntegerEpilogue epilogue_;
  const MatMulGeometry g_;
  const int64_t rows_of_a_;
  const bool packed_;
};

// Whether constant weights are packed. This must follow from attributes, types and the constant
// alone.
bool PacksFilter(const NodeView& node, const ConvIntegerAttrs& attrs) {
  const Fact& filter = node.inputs[1];
  return filter.constant && attrs.groups == 1 && filter.desc().elements() > 0 &&
         TakesTypes(node, attrs.epilogue);
}
bool PacksDepthwise(const NodeView& node, const ConvIntegerAttrs& attrs) {
  const Fact& filter = node.inputs[1];
  if (!filter.constant || filter.desc().elements() == 0) return false;
  const Shape shape = filter.desc().shape;
  return attrs.groups > 1 && shape[shape.rank() - 2] == 1 && shape.back() == attrs.groups &&
         !node.has_input(3) && !attrs.epilogue.real() && TakesTypes(node, attrs.epilogue);
}

// Plain code computes nodes in which the rows of a are not contiguous.
bool PacksMatrix(const NodeView& node, const MatMulIntegerAttrs& attrs) {
  const Fact& b = node.inputs[1];
  return b.constant && b.desc().shape.rank() == 2 && b.desc().elements() > 0 &&
         !attrs.transpose_a && TakesTypes(node, attrs.epilogue);
}

}  // namespace

Result<CpuPacking> ConvIntegerPacking(const NodeView& node, int input) {
  const TensorDesc desc = node.inputs[static_cast<size_t>(input)].desc();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ConvIntegerAttrs>(*node.attrs));
  if (input == 1 && PacksDepthwise(node, attrs)) return IntegerDepthwisePacking(desc);
  if (input != 1 || !PacksFilter(node, attrs)) return CpuPacking{"dense", desc.bytes(), nullptr};
  const int64_t n = desc.shape.back();
  return PackingOfBytes(DenseWeights(desc, nullptr, desc.elements() / n, n), "");
}

Result<CpuPacking> MatMulIntegerPacking(const NodeView& node, int input) {
  const TensorDesc desc = node.inputs[static_cast<size_t>(input)].desc();
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<MatMulIntegerAttrs>(*node.attrs));
  if (input != 1 || !PacksMatrix(node, attrs)) return CpuPacking{"dense", desc.bytes(), nullptr};
  const bool t = attrs.transpose_b;
  ByteMatrix w = DenseWeights(desc, nullptr, desc.shape[t ? 1 : 0], desc.shape[t ? 0 : 1]);
  if (t) w.row = 1, w.column = w.k;
  return PackingOfBytes(w, t ? "t" : "");
}

Result<std::unique_ptr<CpuKernel>> MakeFastConvInteger(const NodeView& node) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<ConvIntegerAttrs>(*node.attrs));
  if (!TakesTypes(node, attrs.epilogue) || node.outputs[0].desc().elements() == 0) return nullptr;
  if (node.has_input(2) && node.inputs[2].desc().elements() > 1) {
    ONCILLA_ASSIGN(auto one, MakeForSample(node));
    if (one == nullptr) return one;
    return std::unique_ptr<CpuKernel>(std::make_unique<EachSample>(node, std::move(one)));
  }
  ONCILLA_ASSIGN(const WindowGeometry g, ConvGeometry(AsConv(attrs), node));
  const bool packed = PacksFilter(node, attrs);
  if (g.groups != 1) {
    if (attrs.epilogue.real()) return nullptr;
    if (g.groups != g.in_channels || g.groups != g.out_channels || g.taps() == 0) return nullptr;
    return MakeFastIntegerDepthwise(node, attrs.epilogue, g, PacksDepthwise(node, attrs));
  }
  if (!packed && (g.taps() * g.in_channels == 0 || g.batch * g.out_pixels() < kFewestRows)) {
    return nullptr;
  }
  return std::unique_ptr<CpuKernel>(
      std::make_unique<FastConvInteger>(node, std::move(attrs), g, packed));
}

Result<std::unique_ptr<CpuKernel>> MakeFastMatMulInteger(const NodeView& node) {
  ONCILLA_ASSIGN(auto attrs, ReadAttrs<MatMulIntegerAttrs>(*node.attrs));
  if (!TakesTypes(node, attrs.epilogue) || node.outputs[0].desc().elements() == 0) return nullptr;
  const Shape a = node.inputs[0].desc().shape;
  MatMulGeometry g = GeometryOf(AsMatMul(attrs), a, node.inputs[1].desc().shape);
  const bool packed = PacksMatrix(node, attrs);
  if (!packed && (g.a_col != 1 || g.m < kFewestRows || g.k == 0)) return nullptr;
  const int64_t rows = a.rank() < 2 ? 1 : a[a.rank() - 2];
  return std::unique_ptr<CpuKernel>(
      std::make_unique<FastMatMulInteger>(node, std::move(attrs), std::move(g), rows, packed));
}

}  // namespace oncilla::cpu
