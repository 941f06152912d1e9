// Winograd's convolution: sizes, packing of filters, the blocks of a run, and recomputed tiles.
//
// A run processes its tiles in blocks whose transformed inputs and sums fit the second-level cache.
// The steps for a block: transform the inputs (TakeIn), multiply every plane (RunTask), transform
// the sums to outputs (PutOut). Threads share each of the three.
#include "backends/cpu/conv/winograd.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "backends/cpu/conv/winograd_lanes.h"

namespace oncilla::cpu {
namespace {

// A packed filter: a header whose first float says whether it is transformed; the planes, as
// panels; a byte of signs per window. Each part begins at a multiple of 64 bytes.
constexpr int64_t kHeaderFloats = 16;
constexpr int kMaxEdge = kWinogradEdge;
// Bytes that a block's transformed inputs and sums may take.
constexpr int64_t kBlockBytes = 2 * 1024 * 1024;
constexpr int64_t kLeastTiles = 14;
// With smaller images the transforms cost more than they save.
constexpr int64_t kLeastSide = 12;
// The least work that is worth a thread: floats to transform, multiplications.
constexpr int64_t kTransformGrain = 20'000, kProductGrain = 500'000;
// Channels that 4x4 tiles sum before the partial sum is added to the total (winograd.h says why).
constexpr int64_t kPartialSum = 32;
// Weights that a thread checks in one chunk.
constexpr int64_t kLookedAt = 1 << 18;
// Weights within these bounds have transforms that neither overflow nor lose digits.
constexpr float kSmallest = 1e-30f, kLargest = 1e30f;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// An odd number of cache lines, so that neither rows nor planes fall onto the same lines of the
// first cache.
int64_t OddLines(int64_t floats) { return (CeilDiv(floats, 16) | 1) * 16; }

// The matrices for weights. Rows 1 and 2 of G differ in the sign of the middle element alone, so
// that `middle` times the difference of their products gives back the middle of a window; `first`
// times row 0 gives back its first element, and the last row is its last element.
struct Matrices {
  std::array<std::array<double, 3>, kMaxEdge> g;
  double first, middle;
};
const Matrices& MatricesFor(int tile) {
  static const Matrices small = {{{{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}}, 1, 1};
  static const Matrices large = [] {
    const double a = kWinogradA, b = kWinogradB;
    const double zero = a * a * b * b, at_a = 2 * a * a * (a * a - b * b);
    const double at_b = 2 * b * b * (b * b - a * a);
    return Matrices{{{{1 / zero, 0, 0},
                      {1 / at_a, a / at_a, a * a / at_a},
                      {1 / at_a, -a / at_a, a * a / at_a},
                      {1 / at_b, b / at_b, b * b / at_b},
                      {1 / at_b, -b / at_b, b * b / at_b},
                      {0, 0, 1}}},
                    zero,
                    at_a / (2 * a)};
  }();
  return tile == 2 ? small : large;
}

// The weights whose sign may change by rounding when they are recovered from the transform: all but
// the corners.
constexpr int kSigned[5] = {1, 3, 4, 5, 7};

// Their signs as five digits in base 3: negative, zero, positive.
uint8_t SignsOf(const std::array<float, 9>& window) {
  int code = 0;
  for (int k : kSigned) code = code * 3 + (window[k] > 0) - (window[k] < 0) + 1;
  return static_cast<uint8_t>(code);
}
// The number nearest to `w` that has the recorded sign.
double WithSign(double w, int digit) {
  constexpr double kTiny = 1e-45;
  return digit == 1 ? 0 : digit == 2 ? std::max(w, kTiny) : std::min(w, -kTiny);
}

}  // namespace

WinogradFilter::WinogradFilter(int tile, int64_t channels, int64_t columns)
    : tile_(tile),
      channels_(channels),
      columns_(columns),
      plane_floats_(PackedElements(channels, columns)) {}

int64_t WinogradFilter::signs_offset() const {
  return SaturatingMul(4, SaturatingAdd(kHeaderFloats, SaturatingMul(planes(), plane_floats_)));
}
int64_t WinogradFilter::packed_bytes(bool transformed) const {
  if (transformed) return SaturatingAdd(signs_offset(), SaturatingMul(channels_, columns_));
  return SaturatingMul(4, SaturatingAdd(kHeaderFloats, SaturatingMul(9, plane_floats_)));
}
const float* WinogradFilter::DirectPanels(const float* packed) {
  return packed[0] == 1 ? nullptr : packed + kHeaderFloats;
}
const float* WinogradFilter::Plane(const float* packed, int plane) const {
  return packed + kHeaderFloats + plane * plane_floats_;
}

void WinogradFilter::Pack(const Threads& threads, const float* filter, bool transformed,
                          std::span<std::byte> to) const {
  const int64_t windows = channels_ * columns_;
  std::atomic<bool> usual = true;
  std::atomic<bool> zeros = true;  // including those that are too small
  ParallelFor(threads, 9 * windows, kLookedAt, [&](int64_t begin, int64_t end) {
    float most = 0;
    bool finite = true;
    for (int64_t i = begin; i < end; ++i) {
      finite &= std::isfinite(filter[i]);
      most = std::max(most, std::abs(filter[i]));
    }
    if (!finite || most > kLargest) usual = false;
    if (most >= kSmallest) zeros = false;
  });
  auto* header = reinterpret_cast<float*>(to.data());
  std::fill_n(header, kHeaderFloats, 0.0f);
  float* panels = header + kHeaderFloats;
  if (!transformed || !usual || zeros) {
    cpu::Pack(threads, filter, columns_, 1, 9 * channels_, columns_, panels);
    const int64_t written = 4 * (kHeaderFloats + 9 * plane_floats_);
    std::fill(to.begin() + written, to.end(), std::byte{0});
    return;
  }
  header[0] = 1;
  WinogradWeights w;
  for (int i = 0; i < edge(); ++i) std::copy_n(MatricesFor(tile_).g[i].data(), 3, w.g[i]);
  w.tap = windows;
  w.plane = plane_floats_;
  auto* signs = reinterpret_cast<uint8_t*>(to.data() + signs_offset());
  const int64_t width = PanelColumns();
  ParallelFor(threads, channels_, GrainOf(9 * columns_, channels_),
              [&](int64_t begin, int64_t end) {
                WinogradWeights row = w;
                for (int64_t c = begin; c < end; ++c) {
                  for (int64_t n = 0; n < columns_; n += width) {
                    row.filter = filter + c * columns_ + n;
                    row.columns = std::min(width, columns_ - n);
                    row.to = panels + (n / width * channels_ + c) * width;
                    row.to_columns = width;
                    WinogradFunctionsFor(tile_).weights(row);
                  }
                  for (int64_t i = c * columns_; i < (c + 1) * columns_; ++i) {
                    std::array<float, 9> window;
                    for (int k = 0; k < 9; ++k) window[k] = filter[k * windows + i];
                    signs[i] = SignsOf(window);
                  }
                }
              });
}

std::array<double, 9> WinogradFilter::Window(const float* packed, int64_t c, int64_t n) const {
  const Matrices& m = MatricesFor(tile_);
  const int64_t width = PanelColumns(), at = (n / width * channels_ + c) * width + n % width;
  const int last = edge() - 1;
  // Inverts the transform, first along the rows of planes and then along their columns.
  double half[kMaxEdge][3];
  for (int i : {0, 1, 2, last}) {
    auto u = [&](int j) { return static_cast<double>(Plane(packed, i * edge() + j)[at]); };
    half[i][0] = m.first * u(0);
    half[i][1] = m.middle * (u(1) - u(2));
    half[i][2] = u(last);
  }
  std::array<double, 9> window;
  for (int j = 0; j < 3; ++j) {
    window[j] = m.first * half[0][j];
    window[3 + j] = m.middle * (half[1][j] - half[2][j]);
    window[6 + j] = half[last][j];
  }
  int code = reinterpret_cast<const uint8_t*>(packed)[signs_offset() + c * columns_ + n];
  for (int i = 5; i-- > 0; code /= 3) window[kSigned[i]] = WithSign(window[kSigned[i]], code % 3);
  return window;
}

int Winograd::TileFor(const ConvAttrs& attrs, const Shape& filter) {
  auto ones = [](const std::vector<int64_t>& v) {
    return std::all_of(v.begin(), v.end(), [](int64_t i) { return i == 1; });
  };
  if (attrs.groups != 1 || !ones(attrs.strides) || !ones(attrs.dilations) || filter.rank() != 4 ||
      filter[0] != 3 || filter[1] != 3) {
    return 0;
  }
  const int64_t least = std::min(filter[2], filter[3]), most = std::max(filter[2], filter[3]);
  if (least >= 48 && most <= 128) return 4;
  if (least >= 96 && most <= 512) return 2;
  return 0;
}

// Small images have too few tiles to make up for reading so many weights. Where sizes are not
// known, images are taken to be large, except for filters so big that only the last layers of
// classifiers have them.
bool Winograd::Pays(const Shape& filter, const PartialShape& output) {
  const bool known = output.ranked() && output[1].known() && output[2].known();
  const int64_t most = std::max(filter[2], filter[3]);
  if (!known) return most <= 256;
  return std::min(output[1].size, output[2].size) >= kLeastSide;
}

Winograd::Winograd(const WindowGeometry& g, int tile)
    : filter_(tile, g.in_channels, g.out_channels),
      height_(g.axis[1]),
      width_(g.axis[2]),
      tile_rows_(CeilDiv(height_.out, tile)),
      tile_columns_(CeilDiv(width_.out, tile)),
      tiles_(SaturatingMul(g.batch, SaturatingMul(tile_rows_, tile_columns_))),
      in_step_(OddLines(g.in_channels)),
      sum_step_(OddLines(g.out_channels)) {
  const int64_t tile_bytes =
      SaturatingMul(filter_.planes() * 4, SaturatingAdd(in_step_, sum_step_));
  const int64_t most = std::max(kBlockBytes / tile_bytes, kLeastTiles);
  block_tiles_ = CeilDiv(tiles_, CeilDiv(tiles_, most));
  in_plane_ = OddLines(SaturatingMul(block_tiles_, in_step_));
  sum_plane_ = OddLines(SaturatingMul(block_tiles_, sum_step_));
}

int64_t Winograd::scratch_bytes() const {
  return SaturatingMul(filter_.planes() * 4, SaturatingAdd(in_plane_, sum_plane_));
}

// The data of one run that its three steps share.
struct WinogradRun {
  const Winograd& w;
  const float* x;
  const float* packed;
  float* y;
  const Epilogue<float>& epilogue;
  float* inputs;  // transformed
  float* sums;

  struct Place {
    int64_t image, row, column;  // the first output of a tile
  };
  Place PlaceOf(int64_t tile) const {
    const int64_t of_image = tile % (w.tile_rows_ * w.tile_columns_);
    return {tile / (w.tile_rows_ * w.tile_columns_), of_image / w.tile_columns_ * w.filter_.tile(),
            of_image % w.tile_columns_ * w.filter_.tile()};
  }
  const float* Image(int64_t image) const {
    return x + image * w.height_.in * w.width_.in * w.filter_.channels();
  }
  int64_t OutputOf(const Place& at) const {
    return ((at.image * w.height_.out + at.row) * w.width_.out + at.column) * w.filter_.columns();
  }

  // Transforms the inputs of `tile` into position `slot` of the block.
  void TakeIn(int64_t tile, int64_t slot) const {
    const Place at = PlaceOf(tile);
    WinogradFunctionsFor(w.filter_.tile())
        .input({Image(at.image), w.height_.in, w.width_.in, w.filter_.channels(),
                w.height_.start(at.row), w.width_.start(at.column), inputs + slot * w.in_step_,
                w.in_plane_});
  }

  void PutOut(int64_t tile, int64_t slot) const {
    const Place at = PlaceOf(tile);
    const int64_t to = OutputOf(at);
    // Transforms the sums of a tile to outputs. When one of them is not finite, the tile's pixels
    // are computed directly.
    WinogradOutput out;
    out.from = sums + slot * w.sum_step_;
    out.plane = w.sum_plane_;
    out.columns = w.filter_.columns();
    out.rows = std::min<int64_t>(w.filter_.tile(), w.height_.out - at.row);
    out.row_pixels = std::min<int64_t>(w.filter_.tile(), w.width_.out - at.column);
    out.line = w.width_.out * w.filter_.columns();
    out.y = y + to;
    out.bias = epilogue.bias;
    out.residual = epilogue.residual != nullptr ? epilogue.residual + to : nullptr;
    out.activation = epilogue.activation;
    if (WinogradFunctionsFor(w.filter_.tile()).output(out)) return;
    for (int64_t i = 0; i < out.rows; ++i) {
      for (int64_t j = 0; j < out.row_pixels; ++j) {
        ComputeAnew({at.image, at.row + i, at.column + j});
      }
    }
  }

  // Computes one output pixel directly, from the weights that the transformed filter gives back
  // (winograd.h).
  void ComputeAnew(const Place& at) const {
    const auto rows = w.height_.Seen(at.row), pixels = w.width_.Seen(at.column);
    const int64_t to = OutputOf(at), top = w.height_.start(at.row),
                  left = w.width_.start(at.column);
    std::vector<const float*> seen(9, nullptr);
    bool nan = false;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = pixels.begin; j < pixels.end; ++j) {
        const float* from =
            Image(at.image) + ((top + i) * w.width_.in + left + j) * w.filter_.channels();
        seen[i * 3 + j] = from;
        nan |=
            std::any_of(from, from + w.filter_.channels(), [](float v) { return std::isnan(v); });
      }
    }
    for (int64_t n = 0; n < w.filter_.columns(); ++n) {
      double sum = epilogue.bias != nullptr ? static_cast<double>(epilogue.bias[n]) : 0;
      if (epilogue.residual != nullptr) sum += static_cast<double>(epilogue.residual[to + n]);
      if (nan) sum = NAN;
      for (int64_t c = 0; c < w.filter_.channels() && !nan; ++c) {
        const auto window = w.filter_.Window(packed, c, n);
        for (int k = 0; k < 9; ++k) {
          if (seen[k] != nullptr) sum += static_cast<double>(seen[k][c]) * window[k];
        }
      }
      y[to + n] = static_cast<float>(Apply(epilogue.activation, sum));
    }
  }
};

void Winograd::Run(const Threads& threads, const float* x, const float* packed, float* y,
                   const Epilogue<float>& epilogue, float* scratch) const {
  static constexpr int64_t kOneTap = 0;
  const WinogradRun run{
      *this, x, packed, y, epilogue, scratch, scratch + filter_.planes() * in_plane_};
  for (int64_t first = 0; first < tiles_ && !threads.ended(); first += block_tiles_) {
    const int64_t count = std::min(block_tiles_, tiles_ - first);
    const int64_t planes = filter_.planes();
    const int64_t in_grain = CeilDiv(kTransformGrain, planes * in_step_);
    ParallelFor(threads, count, in_grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run.TakeIn(first + i, i);
    });
    Product<float> p;
    p.line_rows = count;
    p.row_step = in_step_;
    p.taps = &kOneTap;
    p.run = filter_.channels();
    p.columns = filter_.columns();
    p.c_step = sum_step_;
    if (filter_.tile() == 4) p.partial_sum = kPartialSum;
    const Split split = SplitOf(p, planes);
    const int64_t products = planes * split.tasks();
    const int64_t grain =
        CeilDiv(kProductGrain * products, planes * count * filter_.channels() * filter_.columns());
    ParallelFor(threads, products, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t plane = i / split.tasks();
        Product<float> part = p;
        part.a = run.inputs + plane * in_plane_;
        part.b = filter_.Plane(packed, static_cast<int>(plane));
        part.c = run.sums + plane * sum_plane_;
        RunTask(part, split, i % split.tasks());
      }
    });
    const int64_t out_grain = CeilDiv(kTransformGrain, planes * sum_step_);
    ParallelFor(threads, count, out_grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run.PutOut(first + i, i);
    });
  }
}

}  // namespace oncilla::cpu
