// The transforms of Winograd's convolution, one tile at a time, on vectors of channels.
#pragma once

#include <cstdint>

#include "engine/ops/math/activation.h"

namespace oncilla::cpu {

// The points of the 4x4 tile's matrices: 0, +-a, +-b, infinity. All elements of A and B are
// computed from these and are exact in float.
inline constexpr double kWinogradA = 0.6875, kWinogradB = 1.5;

inline constexpr int kWinogradEdge = 6;  // of the largest tile's inputs

// The windows of one input channel, for at most as many columns as a panel has.
struct WinogradWeights {
  double g[kWinogradEdge][3] = {};
  const float* filter = nullptr;  // the first window's first weight, next to those of other columns
  int64_t tap = 0;                // floats from one weight of a window to the next
  int64_t columns = 0;
  float* to = nullptr;     // a row of a panel in plane 0
  int64_t plane = 0;       // floats from one plane to the next
  int64_t to_columns = 0;  // columns of a panel: missing ones become zeros
};

// A tile of `edge` x `edge` inputs of an image, zeros outside.
struct WinogradInput {
  const float* image = nullptr;
  int64_t height = 0, width = 0, channels = 0;
  int64_t top = 0, left = 0;  // of the tile, in the image; negative inside the padding
  float* to = nullptr;        // channel 0 of the tile in plane 0
  int64_t plane = 0;          // floats from one plane to the next
};

// The outputs of a tile that lie in the image.
struct WinogradOutput {
  const float* from = nullptr;  // column 0 of the tile in plane 0
  int64_t plane = 0;
  int64_t columns = 0;
  int64_t rows = 0, row_pixels = 0;  // existing pixels; at most the tile's
  int64_t line = 0;                  // floats from one row of the image to the next
  float* y = nullptr;                // the first pixel
  const float* bias = nullptr;
  const float* residual = nullptr;  // laid out like y
  Activation activation = Activation::kNone;
};

struct WinogradFunctions {
  void (*input)(const WinogradInput&);
  // G g G^T of each window, in double.
  void (*weights)(const WinogradWeights&);
  // Returns whether all sums were finite; outputs are written in any case.
  bool (*output)(const WinogradOutput&);
};

// The functions for tiles of 2x2 or of 4x4 outputs.
const WinogradFunctions& WinogradFunctionsFor(int tile);

}  // namespace oncilla::cpu
