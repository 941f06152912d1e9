// Converts photographs to tensors: PNG and JPEG files to uint8 [height, width, channels], and from
// there to what a model's input needs (size, channels, mean, scale, layout, type).
//
// Decoded by libpng and libjpeg without colour management and without rotation by EXIF, as
// TensorFlow's and most other decoders do. Alpha is dropped, not blended, where a model has no
// channel for it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/work_limits.h"
#include "engine/tensor/tensor.h"

namespace oncilla::tool {

struct Image {
  int64_t height = 0, width = 0, channels = 0;
  HostVector<uint8_t> pixels;
};

// True when the bytes begin as a PNG or a JPEG file does.
bool IsPng(std::span<const std::byte> bytes);
bool IsJpeg(std::span<const std::byte> bytes);

// `channels`: 1 (grey), 3 (RGB) or 4 (RGBA; a JPEG is opaque). At most 2^27 pixels; damage is
// DataLoss, with what the library said.
Result<Image> DecodeImage(std::span<const std::byte> bytes, int64_t channels);

// How the pixels of every image input are prepared. Empty: as they are.
struct ImageOptions {
  std::optional<std::array<int64_t, 2>> resize;  // height, width
  std::vector<double> mean, scale;               // one number, or one per channel
  std::optional<std::string> layout;  // "nhwc" or "nchw"; else what the model's shape says

  bool changes_values() const { return !mean.empty() || !scale.empty(); }
};

// The image as a batch of one for an input of this dtype and shape: (pixel - mean) * scale. The
// number of channels and, if `options` do not say, the layout are the input's. An input of unknown
// type or shape gets uint8 NHWC RGB, or float32 when mean or scale are given. Shapes that do not
// fit stay as they are; running the model refuses them.
Result<Tensor> ImageTensor(std::span<const std::byte> bytes, DType dtype, const PartialShape& shape,
                           const ImageOptions& options);

// Separable triangle filter with half-pixel centres, widened when shrinking so that no pixel is
// skipped (what Pillow calls BILINEAR). Values stay in 0..255, not rounded.
std::vector<float> Resize(const Image& image, int64_t height, int64_t width);

}  // namespace oncilla::tool
