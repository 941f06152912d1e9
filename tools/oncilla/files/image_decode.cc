// Reads image files for the program, with the engine's codecs.
#include <algorithm>

#include "engine/image/codec.h"
#include "tools/oncilla/files/image.h"

namespace oncilla::tool {
namespace {

// ITU-R BT.601 luma with 16 bits of fraction, as libpng and libjpeg use for 8-bit pixels.
uint8_t Grey(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

// Converts pixels from `image.channels` to `channels` channels.
Image WithChannels(Image image, int64_t channels) {
  if (image.channels == channels) return image;
  Image out{image.height, image.width, channels, {}};
  const int64_t area = image.height * image.width;
  out.pixels.resize(static_cast<size_t>(area * channels));
  for (int64_t i = 0; i < area; ++i) {
    const uint8_t* from = image.pixels.data() + i * image.channels;
    uint8_t* to = out.pixels.data() + i * channels;
    if (channels == 1) {
      to[0] = Grey(from);
    } else {
      std::copy_n(from, 3, to);
      if (channels == 4) to[3] = 255;
    }
  }
  return out;
}

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool IsPng(std::span<const std::byte> bytes) {
  return image::FormatOf(Text(bytes)) == image::Format::kPng;
}
bool IsJpeg(std::span<const std::byte> bytes) {
  return image::FormatOf(Text(bytes)) == image::Format::kJpeg;
}

Result<Image> DecodeImage(std::span<const std::byte> bytes, int64_t channels) {
  const image::Format format = image::FormatOf(Text(bytes));
  Result<image::Pixels> pixels = DataLoss("it is neither a PNG nor a JPEG image");
  if (format == image::Format::kPng) {
    pixels = image::DecodePng(Text(bytes), {.channels = 4});
  } else if (format == image::Format::kJpeg) {
    pixels = image::DecodeJpeg(Text(bytes), {.channels = channels == 1 ? 1 : 3, .strict = true});
  }
  if (pixels.ok()) {
    return WithChannels({pixels->height, pixels->width, pixels->channels, std::move(pixels->bytes)},
                        channels);
  }
  if (pixels.status().code() != Code::kInvalidArgument) {
    return WithStage(pixels.status(), Stage::kFile);
  }
  return WithStage(
      DataLoss("the ", image::Name(format), " image cannot be read: ", Message(pixels.status())),
      Stage::kFile);
}

}  // namespace oncilla::tool
