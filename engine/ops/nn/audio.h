// Attributes of audio ops by TensorFlow's rules: WAV files, spectrograms, cepstra.
#pragma once

#include "engine/ops/op_def.h"

namespace oncilla {

// DecodeWav(file[]) -> f32[samples, channels] in [-1, 1), the sample rate i32[]. -1: as many as the
// file has; the last channel is repeated, missing samples are zero.
struct DecodeWavAttrs {
  int64_t channels = -1, samples = -1;
  void Fields(auto&& field) {
    field("channels", channels);
    field("samples", samples);
  }
};

// EncodeWav(x f32[samples, channels], rate i32[]) -> the file, 16 bits per sample.

// Spectrogram(x f32[samples, channels]) -> [channels, frames, bins]: the magnitude of each
// frequency in windows of `window` samples, weighted by a (periodic) Hann window, padded with zeros
// to a power of two of 2 (bins - 1) points.
struct SpectrogramAttrs {
  int64_t window = 2, stride = 1;
  bool squared = false;
  void Fields(auto&& field) {
    field("window", window);
    field("stride", stride);
    field("squared", squared);
  }
};

// Mfcc(x f32[channels, frames, bins], rate i32[]) -> [channels, frames, coefficients] from squared
// magnitudes: the cosine transform of the logarithms of sums weighted by triangles that are equally
// spaced in mel between the two frequencies.
struct MfccAttrs {
  double upper = 4000, lower = 20;  // hertz
  int64_t bands = 40, coefficients = 13;
  void Fields(auto&& field) {
    field("upper", upper);
    field("lower", lower);
    field("bands", bands);
    field("coefficients", coefficients);
  }
};

// The number of points of a window's transform.
inline int64_t SpectrumPoints(int64_t window) {
  int64_t points = 1;
  while (points < window) points *= 2;
  return points;
}
// The largest window, and the most bands and coefficients.
inline constexpr int64_t kMostWindow = int64_t{1} << 24;

}  // namespace oncilla
