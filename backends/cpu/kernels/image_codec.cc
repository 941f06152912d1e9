// Image files to tensors and back: host functions.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "engine/image/codec.h"
#include "engine/ops/nn/image.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;
using image::Format;

// Sets `count` to the number of frames of a GIF.
Result<image::Pixels> Decode(const DecodeImageAttrs& attrs, const std::string& file,
                             int64_t* count) {
  const Format format = image::FormatOf(file);
  if (format == Format::kUnknown) {
    return InvalidArgument("Unknown image file format. One of JPEG, PNG, GIF, BMP required. Got ",
                           file.size(), " bytes");
  }
  std::string name(image::Name(format));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return static_cast<char>(c + 32); });
  if (format == Format::kGif && attrs.formats.find("gif") == std::string::npos) {
    return Unsupported(
        "a GIF whose frames would be a fourth axis; set expand_animations to false, or use "
        "DecodeGif");
  }
  if (attrs.formats.find(name) == std::string::npos) {
    return InvalidArgument("Trying to decode ", image::Name(format),
                           " format using an op for others (", attrs.formats, ")");
  }
  const auto channels = static_cast<int>(attrs.channels);
  if (format == Format::kGif) {
    if (channels != 0 && channels != 3) {
      return InvalidArgument("channels must be 0 or 3 for GIF, but got ", channels);
    }
    const bool all = attrs.formats == "gif";
    ONCILLA_ASSIGN(image::Frames frames, image::DecodeGif(file, !all));
    if (attrs.formats.find("still_gif") != std::string::npos && frames.in_file != 1) {
      return InvalidArgument("Got ", frames.in_file,
                             " frames, but animated gifs can only be "
                             "decoded by tf.io.decode_gif or tf.io.decode_image");
    }
    // Frames are stored one below the other.
    frames.pixels.height *= frames.count;
    *count = frames.count;
    return std::move(frames.pixels);
  }
  if (format == Format::kBmp) return image::DecodeBmp(file, channels);
  if (format == Format::kPng) {
    return image::DecodePng(file, {.channels = channels, .wide = attrs.to != DType::kU8});
  }
  return image::DecodeJpeg(file, {.channels = channels,
                                  .ratio = static_cast<int>(attrs.ratio),
                                  .fancy_upscaling = attrs.fancy_upscaling,
                                  .fast_dct = !attrs.accurate_dct});
}

Tensors DecodeImage(const DecodeImageAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  int64_t frames = 1;
  ONCILLA_ASSIGN(const image::Pixels pixels, Decode(attrs, in[0].strings()[0], &frames));
  Shape shape = {pixels.height / frames, pixels.width, pixels.channels};
  if (attrs.formats == "gif") shape.Insert(0, frames);
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({attrs.to, shape}));
  if (BytesOf(attrs.to) == (pixels.wide ? 2 : 1)) {
    std::memcpy(out.mutable_bytes().data(), pixels.bytes.data(), pixels.bytes.size());
    return std::vector<Tensor>{std::move(out)};
  }
  const auto count = static_cast<size_t>(shape.elements());
  for (size_t i = 0; i < count; ++i) {
    uint16_t value = pixels.bytes[i];
    if (pixels.wide) std::memcpy(&value, pixels.bytes.data() + 2 * i, 2);
    if (attrs.to == DType::kU16) {
      out.MutableAs<uint16_t>()[i] = static_cast<uint16_t>(value * 256u);
    } else {
      const float scale = 1.0f / (pixels.wide ? 65535.0f : 255.0f);
      out.MutableAs<float>()[i] = static_cast<float>(value) * scale;
    }
  }
  return std::vector<Tensor>{std::move(out)};
}

Tensors JpegShape(const JpegShapeAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const image::Pixels size, image::JpegSize(in[0].strings()[0]));
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({attrs.to, {3}}));
  const int64_t values[] = {size.height, size.width, size.channels};
  DispatchDType(attrs.to, [&]<class T>(TypeTag<T>) {
    for (size_t i = 0; i < 3; ++i) out.MutableAs<T>()[i] = static_cast<T>(values[i]);
  });
  return std::vector<Tensor>{std::move(out)};
}

Tensors EncodeImage(const EncodeImageAttrs& attrs, const NodeView& node,
                    std::span<const Tensor> in) {
  const Shape& x = in[0].shape();
  const int rank = x.rank();
  image::Pixels pixels{x[rank - 3], x[rank - 2], x[rank - 1], in[0].dtype() == DType::kU16, {}};
  const image::JpegStyle style{
      static_cast<int>(attrs.quality),   attrs.progressive, attrs.optimize,
      attrs.chroma_downsampling,         attrs.per_inch,    static_cast<int>(attrs.x_density),
      static_cast<int>(attrs.y_density), attrs.xmp};
  const auto bytes = static_cast<size_t>(x.Product(rank - 3, rank) * BytesOf(in[0].dtype()));
  std::vector<std::string> files(static_cast<size_t>(x.Product(0, rank - 3)));
  for (size_t i = 0; i < files.size(); ++i) {
    const auto* from = reinterpret_cast<const uint8_t*>(in[0].bytes().data()) + i * bytes;
    pixels.bytes.assign(from, from + bytes);
    ONCILLA_ASSIGN(files[i], attrs.format == "jpeg"
                                 ? image::EncodeJpeg(pixels, style)
                                 : image::EncodePng(pixels, static_cast<int>(attrs.compression)));
  }
  return std::vector<Tensor>{Tensor::Strings(node.outputs[0].desc().shape, std::move(files))};
}

const KernelRow kRows[] = {
    HostRow<DecodeImage>("DecodeImage", kStrings),
    HostRow<JpegShape>("JpegShape", kStrings),
    HostRow<EncodeImage>("EncodeImage", Set(DType::kU8) | Set(DType::kU16)),
};

}  // namespace

std::span<const KernelRow> CodecKernels() { return kRows; }

}  // namespace oncilla::cpu
