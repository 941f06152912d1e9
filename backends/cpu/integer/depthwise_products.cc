// Fast ConvInteger of bytes with one input and one output channel in each group.
//
// Taps are processed in pairs: vectors of channels of both are widened to 16 bits and interleaved,
// so that one instruction multiplies and adds them. Weights are packed to match, block of channels
// by block: once if they are constant, otherwise in each run. The zero point of x is subtracted at
// the end, as in byte_product.h; taps outside the input read a row of zero points.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/depthwise_products.cc"
// clang-format off
#include "backends/cpu/simd.h"
// clang-format on

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/cpu/fast/fast.h"
#include "backends/cpu/integer/depthwise_quads.h"
#include "backends/cpu/integer/fixed_in_floats.h"
#include "backends/cpu/integer/requantize.inl.h"
#include "engine/ops/nn/integer.h"

#ifndef ONCILLA_FAST_INTEGER_DEPTHWISE_TYPES
#define ONCILLA_FAST_INTEGER_DEPTHWISE_TYPES
namespace oncilla::cpu {

// A row of the output: its windows slide along `width` over this many lines of the input.
struct DepthwiseRow {
  const std::byte* const* lines = nullptr;  // null where one lies outside of the input
  int64_t line_count = 0;
  const WindowAxis* width = nullptr;
  const std::byte* outside = nullptr;  // a pixel of zero points
  bool is_signed = false;
  int64_t channels = 0;
  const int16_t* weights = nullptr;
  const int32_t* terms = nullptr;        // added to the sum of each channel
  const RequantizeRule* rule = nullptr;  // null: sums are stored as they are
  // Room for the pixels of a window, an even number of them, and for the sums of a pixel.
  const std::byte** taps = nullptr;
  int32_t* sums = nullptr;
  std::byte* y = nullptr;

  int64_t pairs() const { return (line_count * width->kernel + 1) / 2; }
};

// Weights as they are stored, [taps][channels]; if there are zero points, one is subtracted for
// each channel.
struct DepthwiseWeights {
  const std::byte* data = nullptr;
  bool is_signed = false;
  int64_t taps = 0, channels = 0;
  const int32_t* zeros = nullptr;  // or null

  int64_t pairs() const { return (taps + 1) / 2; }
  int16_t at(int64_t tap, int64_t channel) const {
    if (tap >= taps) return 0;
    const std::byte* from = data + tap * channels + channel;
    const int32_t weight = is_signed ? int32_t{*reinterpret_cast<const int8_t*>(from)}
                                     : int32_t{*reinterpret_cast<const uint8_t*>(from)};
    return static_cast<int16_t>(weight - (zeros == nullptr ? 0 : zeros[channel]));
  }
};

}  // namespace oncilla::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace oncilla::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // a scalar vector holds no pairs
using Pairs = hn::Repartition<int16_t, Ints>;
#endif
// Channels of a block: a vector of 16-bit integers. With several blocks, the last one overlaps the
// one before it, so that it is full.
constexpr int64_t kBlock = 2 * kLanes;
int64_t BlockChannels() { return kBlock; }

HWY_INLINE int64_t BlockStart(int64_t block, int64_t channels) {
  return std::max<int64_t>(0, std::min(block * kBlock, channels - kBlock));
}

// Packs in the order in which SumBlock multiplies: for each block and pair of taps, the lower and
// then the upper halves of the channels in each 16 bytes.
void PackDepthwise(const DepthwiseWeights& w, int16_t* to) {
  constexpr int64_t kHalf = std::min<int64_t>(kBlock / 2, 4);
  for (int64_t start = 0; start < w.channels; start += kBlock) {
    const int64_t first = BlockStart(start / kBlock, w.channels);
    for (int64_t pair = 0; pair < w.pairs(); ++pair) {
      for (const int64_t upper : {int64_t{0}, kHalf}) {
        for (int64_t i = 0; i < kBlock / 2; ++i) {
          const int64_t channel = first + i / kHalf * 2 * kHalf + upper + i % kHalf;
          const bool there = channel < w.channels;
          *to++ = there ? w.at(2 * pair, channel) : int16_t{0};
          *to++ = there ? w.at(2 * pair + 1, channel) : int16_t{0};
        }
      }
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Loads the bytes of a block as 16-bit integers; lanes beyond `count` are zero.
template <class T>
HWY_INLINE hn::Vec<Pairs> LoadBlock(const std::byte* from, int64_t count) {
  constexpr Pairs d;
  constexpr hn::Rebind<T, Pairs> bytes;
  if (count >= kBlock) {
    return hn::PromoteTo(d, hn::LoadU(bytes, reinterpret_cast<const T*>(from)));
  }
  HWY_ALIGN T some[kBlock] = {};
  std::memcpy(some, from, static_cast<size_t>(count));
  return hn::PromoteTo(d, hn::LoadU(bytes, some));
}

// Reorders the sums of the lower and the upper halves of each 16 bytes into the order of channels.
HWY_INLINE void PutInOrder(IntVector& lower, IntVector& upper) {
  constexpr Ints d;
  static_assert(kLanes == 4 || kLanes == 8 || kLanes == 16);
  if constexpr (kLanes > 4) {
    // Blocks of four: lower 0, upper 0, lower 2, .. and lower 1, upper 1, lower 3, ..
    const auto even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(upper), lower);
    const auto odd = hn::OddEvenBlocks(upper, hn::SwapAdjacentBlocks(lower));
    lower = kLanes == 8 ? even : hn::ConcatLowerLower(d, odd, even);
    upper = kLanes == 8 ? odd : hn::ConcatUpperUpper(d, odd, even);
  }
}
#endif

// The sums of a block of channels, of which `count` exist.
template <class T>
HWY_INLINE void SumBlock(const std::byte* const* taps, int64_t pairs, const int16_t* w,
                         int64_t first, int64_t count, const int32_t* terms, int32_t* sums) {
#if HWY_TARGET == HWY_SCALAR
  uint32_t all[kBlock] = {};
  for (int64_t pair = 0; pair < pairs; ++pair) {
    for (int64_t i = 0; i < kBlock; ++i, w += 2) {
      if (i >= count) continue;
      const T* x = reinterpret_cast<const T*>(taps[2 * pair]) + first + i;
      const T* other = reinterpret_cast<const T*>(taps[2 * pair + 1]) + first + i;
      all[i] += static_cast<uint32_t>(x[0] * w[0] + other[0] * w[1]);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    sums[first + i] = static_cast<int32_t>(all[i] + static_cast<uint32_t>(terms[first + i]));
  }
#else
  constexpr Ints d;
  constexpr Pairs both;
  IntVector lower = hn::Zero(d), upper = hn::Zero(d), lower_rest = hn::Zero(d),
            upper_rest = hn::Zero(d);
  for (int64_t pair = 0; pair < pairs; ++pair, w += 2 * kBlock) {
    const auto a = LoadBlock<T>(taps[2 * pair] + first, count);
    const auto b = LoadBlock<T>(taps[2 * pair + 1] + first, count);
    lower = hn::ReorderWidenMulAccumulate(d, hn::InterleaveLower(both, a, b), hn::LoadU(both, w),
                                          lower, lower_rest);
    upper = hn::ReorderWidenMulAccumulate(d, hn::InterleaveUpper(both, a, b),
                                          hn::LoadU(both, w + kBlock), upper, upper_rest);
  }
  lower = hn::RearrangeToOddPlusEven(lower, lower_rest);
  upper = hn::RearrangeToOddPlusEven(upper, upper_rest);
  PutInOrder(lower, upper);
  if (count >= kBlock) {
    hn::StoreU(hn::Add(lower, hn::LoadU(d, terms + first)), d, sums + first);
    hn::StoreU(hn::Add(upper, hn::LoadU(d, terms + first + kLanes)), d, sums + first + kLanes);
    return;
  }
  HWY_ALIGN int32_t some[kBlock];
  hn::Store(lower, d, some);
  hn::Store(upper, d, some + kLanes);
  for (int64_t i = 0; i < count; ++i) {
    sums[first + i] = static_cast<int32_t>(static_cast<uint32_t>(some[i]) +
                                           static_cast<uint32_t>(terms[first + i]));
  }
#endif
}

// Finds the pixels under the windows of a row, from its first position on.
class TapFinder {
 public:
  explicit TapFinder(const DepthwiseRow& row)
      : row_(row),
        count_(row.line_count * row.width->kernel),
        complete_(std::all_of(row.lines, row.lines + row.line_count,
                              [](const std::byte* line) { return line != nullptr; })) {}

  HWY_INLINE void Find(int64_t at) {
    const WindowAxis& width = *row_.width;
    const int64_t start = width.start(at);
    const bool whole = complete_ && start >= 0 && start + width.extent() <= width.in;
    const std::byte** taps = row_.taps;
    if (whole && was_whole_) {
      const int64_t step = width.stride * row_.channels;
      for (int64_t i = 0; i < 2 * row_.pairs(); ++i) taps[i] += step;
      return;
    }
    was_whole_ = whole;
    for (int64_t line = 0; line < row_.line_count; ++line) {
      const std::byte* x = row_.lines[line];
      for (int64_t k = 0; k < width.kernel; ++k) {
        const int64_t w = start + k * width.dilation;
        const bool inside = x != nullptr && w >= 0 && w < width.in;
        *taps++ = inside ? x + w * row_.channels : row_.outside;
      }
    }
    // A last tap without a partner is paired with any other tap, with weights of 0.
    if (count_ % 2 != 0) *taps = taps[-1];
  }

 private:
  const DepthwiseRow& row_;
  const int64_t count_;
  const bool complete_;
  bool was_whole_ = false;
};

template <class T>
HWY_INLINE void SumPixel(const DepthwiseRow& row, int32_t* sums) {
  const int64_t channels = row.channels, pairs = row.pairs();
  const int64_t count = std::min<int64_t>(kBlock, channels);
  const int16_t* w = row.weights;
  for (int64_t start = 0; start < channels; start += kBlock, w += pairs * 2 * kBlock) {
    SumBlock<T>(row.taps, pairs, w, BlockStart(start / kBlock, channels), count, row.terms, sums);
  }
}

template <class T>
HWY_INLINE void RunRowOf(const DepthwiseRow& row) {
  TapFinder finder(row);
  if (row.rule == nullptr) {
    auto* y = reinterpret_cast<int32_t*>(row.y);
    for (int64_t at = 0; at < row.width->out; ++at, y += row.channels) {
      finder.Find(at);
      SumPixel<T>(row, y);
    }
    return;
  }
  ForRequantized(row.rule->to, [&](auto like) HWY_ATTR {
    auto* y = reinterpret_cast<decltype(like)*>(row.y);
    for (int64_t at = 0; at < row.width->out; ++at, y += row.channels) {
      finder.Find(at);
      SumPixel<T>(row, row.sums);
      if (row.rule->fixed()) {
        RequantizeSums<decltype(like), true>(*row.rule, row.sums, row.channels, 0, y);
      } else {
        RequantizeSums<decltype(like), false>(*row.rule, row.sums, row.channels, 0, y);
      }
    }
  });
}
void RunRow(const DepthwiseRow& row) {
  if (row.is_signed) return RunRowOf<int8_t>(row);
  RunRowOf<uint8_t>(row);
}

}  // namespace oncilla::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oncilla::cpu {
namespace {

HWY_EXPORT(BlockChannels);
HWY_EXPORT(PackDepthwise);
HWY_EXPORT(RunRow);

// A byte as a number, by its dtype.
int32_t ByteAt(const Args& args, size_t input, int64_t i) {
  return args.in(input).dtype == DType::kI8 ? int32_t{args.In<int8_t>(input)[i]}
                                            : int32_t{args.In<uint8_t>(input)[i]};
}

// The bytes of the packed weights, followed by the sum of weights of each channel.
int64_t PackedWeights(int64_t taps, int64_t channels) {
  const int64_t block = HWY_DYNAMIC_DISPATCH(BlockChannels)();
  return SaturatingMul(SaturatingMul((taps + 1) / 2 * 2, (channels + block - 1) / block), block);
}
int64_t PackedSize(int64_t taps, int64_t channels) {
  return SaturatingAdd(SaturatingMul(PackedWeights(taps, channels), int64_t{sizeof(int16_t)}),
                       SaturatingMul(channels, int64_t{sizeof(int32_t)}));
}
int32_t* SumsBehind(int16_t* packed, int64_t taps, int64_t channels) {
  return reinterpret_cast<int32_t*>(packed + PackedWeights(taps, channels));
}

void Pack(const DepthwiseWeights& w, std::byte* to) {
  auto* packed = reinterpret_cast<int16_t*>(to);
  HWY_DYNAMIC_DISPATCH(PackDepthwise)(w, packed);
  int32_t* sums = SumsBehind(packed, w.taps, w.channels);
  for (int64_t c = 0; c < w.channels; ++c) {
    uint32_t sum = 0;  // wraps around
    for (int64_t tap = 0; tap < w.taps; ++tap) sum += static_cast<uint32_t>(int32_t{w.at(tap, c)});
    sums[c] = static_cast<int32_t>(sum);
  }
}

// Whether constant weights are also packed for depthwise_quads.h, after the others.
bool PacksQuads(bool is_signed, int64_t taps, int64_t width) {
  return is_signed && width == kQuadWidth && taps <= kQuadLines * kQuadWidth &&
         QuadRowHere() != nullptr;
}

class FastIntegerDepthwise : public CpuKernel {
 public:
  FastIntegerDepthwise(const NodeView& node, IntegerEpilogue epilogue, const WindowGeometry& g,
                       bool packed)
      : CpuKernel(node),
        epilogue_(std::move(epilogue)),
        g_(g),
        packed_(packed),
        quads_(packed && g.axis[2].dilation == 1 && g.axis[2].stride <= 2 && !epilogue_.none() &&
               BitsOf(node.outputs[0].dtype) == 8 &&
               PacksQuads(node.inputs[1].dtype == DType::kI8, g.taps(), g.axis[2].kernel)) {}
  std::string description() const override {
    return StrCat("depthwise, ", quads_ ? "columns" : "pairs", " of taps",
                  packed_ ? ", packed" : "", epilogue_.none() ? "" : ", requantised");
  }
  int64_t scratch_bytes() const override {
    return packed_ ? 0 : PackedSize(g_.taps(), g_.in_channels);
  }

  Status Run(const Args& args) const override {
    const int64_t channels = g_.in_channels, taps = g_.taps();
    auto* given = const_cast<std::byte*>(args.inputs[1]);  // packed weights are only read
    if (!packed_) {
      DepthwiseWeights w{args.inputs[1], args.in(1).dtype == DType::kI8, taps, channels, nullptr};
      std::vector<int32_t> zeros;
      for (int64_t c = 0; args.has_input(3) && c < channels; ++c) {
        zeros.push_back(ByteAt(args, 3, args.in(3).elements() == 1 ? 0 : c));
      }
      if (!zeros.empty()) w.zeros = zeros.data();
      Pack(w, args.scratch);
      given = args.scratch;
    }
    auto* weights = reinterpret_cast<int16_t*>(given);
    const int32_t zero = args.has_input(2) ? ByteAt(args, 2, 0) : 0;
    const std::vector<int32_t> terms = Terms(args, zero, SumsBehind(weights, taps, channels));
    RequantizeRule rule;
    if (!epilogue_.none()) {
      ONCILLA_ASSIGN(rule, RuleOf(AsRequantize(epilogue_), args, 5));
    }

    const std::vector<std::byte> outside(static_cast<size_t>(channels), std::byte(zero));
    if (quads_ && InQuads(rule)) {
      RunQuads(args, rule, terms, SumsBehind(weights, taps, channels), outside.data(),
               given + PackedSize(taps, channels));
      return Status();
    }

    const WindowAxis &depth = g_.axis[0], &height = g_.axis[1], &width = g_.axis[2];
    DepthwiseRow all;
    all.line_count = depth.kernel * height.kernel;
    all.width = &width;
    all.outside = outside.data();
    all.is_signed = args.in(0).dtype == DType::kI8;
    all.channels = channels;
    all.weights = weights;
    all.terms = terms.data();
    all.rule = epilogue_.none() ? nullptr : &rule;
    const int64_t row_bytes = width.out * channels * (BitsOf(args.out(0).dtype) / 8);
    const int64_t work = SaturatingMul(SaturatingMul(taps, channels), width.out);
    ParallelFor(args.threads, g_.batch * depth.out * height.out, GrainOf(8 * work, 64),
                [&](int64_t begin, int64_t end) {
                  std::vector<const std::byte*> lines(static_cast<size_t>(all.line_count));
                  std::vector<const std::byte*> places(static_cast<size_t>(2 * all.pairs()),
                                                       outside.data());
                  std::vector<int32_t> sums(static_cast<size_t>(channels));
                  DepthwiseRow row = all;
                  row.lines = lines.data();
                  row.taps = places.data();
                  row.sums = sums.data();
                  for (int64_t i = begin; i < end; ++i) {
                    FindLines(args.inputs[0], i, lines.data());
                    row.y = args.outputs[0] + i * row_bytes;
                    HWY_DYNAMIC_DISPATCH(RunRow)(row);
                  }
                });
    return Status();
  }

 private:
  // The terms added to the sums of x * w, by the formula of byte_product.h; weights already have
  // their zero points subtracted.
  std::vector<int32_t> Terms(const Args& args, int32_t zero, const int32_t* weight_sums) const {
    std::vector<int32_t> terms(static_cast<size_t>(g_.in_channels));
    for (int64_t c = 0; c < g_.in_channels; ++c) {
      const uint32_t bias = args.has_input(4) ? static_cast<uint32_t>(args.In<int32_t>(4)[c]) : 0;
      terms[static_cast<size_t>(c)] = static_cast<int32_t>(
          bias - static_cast<uint32_t>(zero) * static_cast<uint32_t>(weight_sums[c]));
    }
    return terms;
  }

  // Whether depthwise_quads.h computes this rule.
  bool InQuads(const RequantizeRule& rule) const {
    if (!rule.fixed()) return true;
    for (int64_t c = 0; c < (rule.many ? g_.in_channels : 1); ++c) {
      if (!FixedInFloats(rule.multipliers[c], rule.shifts[c])) return false;
    }
    return true;
  }

  // Computes every row with depthwise_quads.h.
  void RunQuads(const Args& args, const RequantizeRule& rule, const std::vector<int32_t>& terms,
                const int32_t* weight_sums, const std::byte* outside,
                const std::byte* weights) const {
    const int64_t channels = g_.in_channels;
    const WindowAxis &depth = g_.axis[0], &height = g_.axis[1], &width = g_.axis[2];
    const bool is_signed = args.in(0).dtype == DType::kI8;
    const auto places = static_cast<size_t>(QuadPlaces(channels));
    std::vector<int32_t> placed_terms(places);
    std::vector<float> placed_scales(places);
    const size_t fixed_places = rule.fixed() ? places : 0;
    std::vector<float> placed_halves(fixed_places);
    std::vector<int32_t> placed_multipliers(fixed_places), placed_shifts(fixed_places);
    for (int64_t at = 0; at < channels;) {
      const QuadBlock block = QuadBlockAt(at, channels);
      for (int64_t i = 0; i < block.width; ++i) {
        const int64_t c = QuadChannel(block, i);
        if (c >= channels) continue;
        const auto term = static_cast<uint32_t>(terms[static_cast<size_t>(c)]);
        const uint32_t moved = is_signed ? 128 * static_cast<uint32_t>(weight_sums[c]) : 0;
        placed_terms[static_cast<size_t>(at + i)] = static_cast<int32_t>(term - moved);
        const auto place = static_cast<size_t>(at + i);
        const int64_t factor = rule.many ? c : 0;
        if (!rule.fixed()) {
          placed_scales[place] = rule.scales[factor];
          continue;
        }
        placed_multipliers[place] = rule.multipliers[factor];
        placed_shifts[place] = rule.shifts[factor];
        const FixedFloats floats = FloatsOfFixed(placed_multipliers[place], placed_shifts[place]);
        placed_scales[place] = floats.scale;
        placed_halves[place] = floats.half;
      }
      at += block.width;
    }
    QuadRow all;
    all.outside = outside;
    all.channels = channels;
    all.in = width.in;
    all.out = width.out;
    all.stride = width.stride;
    all.pad = width.pad_begin;
    all.is_signed = is_signed;
    all.weights = weights;
    all.terms = placed_terms.data();
    all.scales = placed_scales.data();
    if (rule.fixed()) {
      all.halves = placed_halves.data();
      all.multipliers = placed_multipliers.data();
      all.shifts = placed_shifts.data();
    }
    all.least = static_cast<float>(rule.least);
    all.most = static_cast<float>(rule.most);
    all.zero = rule.zero;
    all.y_signed = rule.to == DType::kI8;
    const QuadRowFunction run = QuadRowHere();
    const int64_t work = SaturatingMul(SaturatingMul(g_.taps(), channels), width.out);
    ParallelFor(args.threads, g_.batch * depth.out * height.out, GrainOf(4 * work, 64),
                [&](int64_t begin, int64_t end) {
                  QuadRow row = all;
                  for (int64_t i = begin; i < end; ++i) {
                    FindLines(args.inputs[0], i, row.lines);
                    row.y = args.outputs[0] + i * width.out * channels;
                    run(row);
                  }
                });
  }

  // Finds the lines of the input under the windows of an output row.
  void FindLines(const std::byte* x, int64_t row, const std::byte** lines) const {
    const WindowAxis &depth = g_.axis[0], &height = g_.axis[1];
    const int64_t oh = row % height.out, od = row / height.out % depth.out;
    const int64_t sample = row / height.out / depth.out;
    const int64_t line_bytes = g_.axis[2].in * g_.in_channels;
    for (int64_t kd = 0; kd < depth.kernel; ++kd) {
      const int64_t d = depth.start(od) + kd * depth.dilation;
      for (int64_t kh = 0; kh < height.kernel; ++kh) {
        const int64_t h = height.start(oh) + kh * height.dilation;
        const bool inside = d >= 0 && d < depth.in && h >= 0 && h < height.in;
        *lines++ = inside ? x + ((sample * depth.in + d) * height.in + h) * line_bytes : nullptr;
      }
    }
  }

  const IntegerEpilogue epilogue_;
  const WindowGeometry g_;
  const bool packed_, quads_;
};

}  // namespace

CpuPacking IntegerDepthwisePacking(const TensorDesc& filter) {
  const int64_t channels = filter.shape.back(), taps = filter.elements() / channels;
  const int64_t width = filter.shape[filter.shape.rank() - 3];
  const bool is_signed = filter.dtype == DType::kI8, quads = PacksQuads(is_signed, taps, width);
  const int64_t pairs = PackedSize(taps, channels);
  return {StrCat("taps", HWY_DYNAMIC_DISPATCH(BlockChannels)(), quads ? " and columns" : ""),
          SaturatingAdd(pairs, quads ? QuadBytes(channels) : 0),
          [=](const Threads&, const Tensor& constant, std::span<std::byte> to) {
            Pack({constant.bytes().data(), is_signed, taps, channels, nullptr}, to.data());
            if (quads) {
              PackQuads(constant.As<int8_t>().data(), taps / width, channels, to.data() + pairs);
            }
            return Status();
          }};
}

std::unique_ptr<CpuKernel> MakeFastIntegerDepthwise(const NodeView& node,
                                                    const IntegerEpilogue& epilogue,
                                                    const WindowGeometry& g, bool packed) {
  return std::make_unique<FastIntegerDepthwise>(node, epilogue, g, packed);
}

}  // namespace oncilla::cpu
#endif
