// Winograd's convolution: 3x3 windows, stride 1, of float, with fewer multiplications.
//
// The output is divided into tiles of 2x2 or 4x4 pixels. A tile's inputs (4x4 or 6x6) are
// transformed, B^T d B, as are the weights, G g G^T; each of the 16 or 36 elements of a transformed
// tile belongs to a matrix product over channels of its own (a "plane"); A^T m A converts their
// sums to outputs. That is 4 or 2.25 multiplications per output and channel instead of 9. (S.
// Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, arXiv 1509.09308.)
// The matrices are those of Toom and Cook for the points 0, 1, -1, infinity, and 0, +-11/16, +-3/2,
// infinity.
//
// Errors, root mean square and relative to that of the outputs, uniform inputs and weights, 64
// channels: direct sums 4e-7, 2x2 3e-7, 4x4 6e-7. With the customary points +-1, +-2 they would be
// 2e-6, and single elements beyond 1e-5 of the largest; most of the remaining error comes from long
// sums, so that 4x4 adds up 32 channels at a time. They are relative to the largest inputs of the
// tile's window: a number beside a much larger one loses digits.
//
// Transforms spread a value that is not finite over its tile, and intermediate sums may overflow.
// So a tile with such a result is computed again from weights that are recovered from the
// transformed ones: to within 2e-7 of the largest of their window, zeros as zeros, and with their
// original sign (a byte per window stores what rounding may lose), so that infinities and NaN are
// where the plain code has them. Weights that are not finite, or whose transforms might not be, are
// not transformed at all: the packed filter is marked so and contains panels for the direct method.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/kernel.h"
#include "engine/ops/nn/conv.h"
#include "engine/ops/nn/conv_geometry.h"

namespace oncilla::cpu {

// A packed filter[3, 3, channels, columns] for convolutions that have a tile: transformed, or as
// panels for the direct method; the packed form records which.
class WinogradFilter {
 public:
  // `tile`: pixels of a tile's edge, 2 or 4.
  WinogradFilter(int tile, int64_t channels, int64_t columns);

  int64_t packed_bytes(bool transformed = true) const;
  // Writes all of `to`, which has the size above.
  void Pack(const Threads& threads, const float* filter, bool transformed,
            std::span<std::byte> to) const;
  // The panels for a product; null if the filter was transformed.
  static const float* DirectPanels(const float* packed);

  // The panels of a plane; planes are counted by rows of a transformed tile.
  const float* Plane(const float* packed, int plane) const;
  // Recovers the weights of channel `c` for column `n` from a transformed filter, as described
  // above.
  std::array<double, 9> Window(const float* packed, int64_t c, int64_t n) const;

  int tile() const { return tile_; }
  int edge() const { return tile_ + 2; }
  int planes() const { return edge() * edge(); }
  int64_t channels() const { return channels_; }
  int64_t columns() const { return columns_; }

 private:
  int64_t signs_offset() const;  // bytes

  int tile_;
  int64_t channels_, columns_, plane_floats_;
};

class Winograd {
 public:
  // The tile for convolutions that may be faster with it, or 0. Does not use image sizes, which may
  // be unknown when a filter is packed.
  static int TileFor(const ConvAttrs& attrs, const Shape& filter);
  // Whether a convolution that has a tile is faster with it, by what is known of its output[N,
  // height, width, columns].
  static bool Pays(const Shape& filter, const PartialShape& output);

  // The geometry of a convolution that has a tile.
  Winograd(const WindowGeometry& g, int tile);

  int64_t scratch_bytes() const;
  // Results depend on sizes and data alone. `packed` is a transformed filter.
  void Run(const Threads& threads, const float* x, const float* packed, float* y,
           const Epilogue<float>& epilogue, float* scratch) const;

  const WinogradFilter& filter() const { return filter_; }
  int64_t tiles() const { return tiles_; }
  int64_t block_tiles() const { return block_tiles_; }

 private:
  friend struct WinogradRun;

  WinogradFilter filter_;
  WindowAxis height_, width_;
  int64_t tile_rows_, tile_columns_, tiles_;  // of an image, and of all
  int64_t block_tiles_;
  // Steps in floats of the scratch: transformed inputs, then sums.
  int64_t in_step_, in_plane_, sum_step_, sum_plane_;
};

}  // namespace oncilla::cpu
