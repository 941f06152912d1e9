// Filters of Winograd's convolutions: the windows themselves, followed by G g G^T of each window,
// computed in double.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/opencl/recipes/matmul_recipe.h"
#include "backends/opencl/recipes/winograd.h"

namespace oncilla::opencl {
namespace {

constexpr int kMostEdge = 6;
// The points of the 4 x 4 tile, as in cl_kernels/conv/winograd.cl.
constexpr double kA = 0.6875, kB = 1.5;
// Below this, transforms of weights lose digits.
constexpr float kSmallest = 1e-30f;

using Matrix = std::array<std::array<double, 3>, kMostEdge>;
const Matrix& MatrixFor(int tile) {
  static const Matrix small = {{{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}};
  static const Matrix large = [] {
    const double zero = kA * kA * kB * kB, at_a = 2 * kA * kA * (kA * kA - kB * kB);
    const double at_b = 2 * kB * kB * (kB * kB - kA * kA);
    return Matrix{{{1 / zero, 0, 0},
                   {1 / at_a, kA / at_a, kA * kA / at_a},
                   {1 / at_a, -kA / at_a, kA * kA / at_a},
                   {1 / at_b, kB / at_b, kB * kB / at_b},
                   {1 / at_b, -kB / at_b, kB * kB / at_b},
                   {0, 0, 1}}};
  }();
  return tile == 2 ? small : large;
}

// The layout of a transformed filter: planes of panels of `width` columns.
struct Transformed {
  int tile;
  int64_t channels, columns, width, plane;
};

// The windows of one channel, for up to kLanes neighbouring columns.
constexpr int64_t kLanes = 8;
using Lanes = std::array<double, kLanes>;
void TransformWindows(const float* filter, int64_t tap, int64_t count, const Transformed& to,
                      float* first) {
  const Matrix& g = MatrixFor(to.tile);
  const int edge = to.tile + 2;
  std::array<std::array<Lanes, 3>, 3> window = {};
  for (size_t k = 0; k < 9; ++k) {
    const float* from = filter + static_cast<int64_t>(k) * tap;
    for (int64_t n = 0; n < count; ++n) window[k / 3][k % 3][n] = static_cast<double>(from[n]);
  }
  for (int i = 0; i < edge; ++i) {
    std::array<Lanes, 3> half;
    for (size_t j = 0; j < 3; ++j) {
      for (int64_t n = 0; n < kLanes; ++n) {
        half[j][n] =
            g[i][0] * window[0][j][n] + g[i][1] * window[1][j][n] + g[i][2] * window[2][j][n];
      }
    }
    for (int j = 0; j < edge; ++j) {
      float* out = first + (i * edge + j) * to.plane;
      for (int64_t n = 0; n < count; ++n) {
        out[n] =
            static_cast<float>(g[j][0] * half[0][n] + g[j][1] * half[1][n] + g[j][2] * half[2][n]);
      }
    }
  }
}

// Columns of a panel beyond the filter stay zero.
void TransformFilter(std::span<const float> filter, const Transformed& to, float* planes) {
  float most = 0;
  for (const float w : filter) most = std::max(most, std::abs(w));
  if (most > 0 && most < kSmallest) {
    // NaN in all planes makes the kernel compute every output from the weights themselves.
    std::fill_n(planes, (to.tile + 2) * (to.tile + 2) * to.plane,
                std::numeric_limits<float>::quiet_NaN());
    return;
  }
  const int64_t windows = to.channels * to.columns;
  for (int64_t c = 0; c < to.channels; ++c) {
    for (int64_t n = 0; n < to.columns; n += kLanes) {
      const int64_t count = std::min(kLanes, to.columns - n);
      float* first = planes + (n / to.width * to.channels + c) * to.width + n % to.width;
      TransformWindows(filter.data() + c * to.columns + n, windows, count, to, first);
    }
  }
}

}  // namespace

Packing WithTransforms(const Packing& direct, int tile, const TensorDesc& filter,
                       const Capabilities& caps) {
  const int64_t channels = filter.shape[2], columns = filter.shape[3];
  const int64_t width = TuningOf(caps).panels ? PanelColumns(caps) : columns;
  const int64_t plane = SaturatingMul(RoundUp(columns, width), channels);
  const int64_t begin = RoundUp(direct.bytes, caps.base_alignment);
  const int64_t planes = (tile + 2) * (tile + 2);
  const auto pack = [=](const Tensor& constant, std::span<std::byte> to) {
    std::ranges::fill(to, std::byte{0});
    if (direct.write != nullptr) {
      ONCILLA_TRY(direct.write(constant, to.first(static_cast<size_t>(direct.bytes))));
    } else {
      std::ranges::copy(constant.bytes(), to.begin());
    }
    TransformFilter(constant.As<float>(), {tile, channels, columns, width, plane},
                    reinterpret_cast<float*>(to.data() + begin));
    return Status();
  };
  return {StrCat("winograd", tile, " ", direct.name),
          SaturatingAdd(begin, SaturatingMul(4 * planes, plane)), pack};
}

}  // namespace oncilla::opencl
