// Windows bitmaps: a header, then rows of pixels padded to four bytes, usually stored from the
// bottom up.
#include "engine/image/codec.h"

namespace oncilla::image {
namespace {

int64_t Field(std::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return size == 4 ? static_cast<int32_t>(value) : static_cast<int16_t>(value);
}

}  // namespace

Result<Pixels> DecodeBmp(std::string_view bytes, int channels) {
  if (bytes.size() < 32) {
    return InvalidArgument("Incomplete bmp content, requires at least 32 bytes, got ", bytes.size(),
                           " bytes");
  }
  const int64_t header = Field(bytes, 10, 4), width = Field(bytes, 18, 4);
  const int64_t signed_height = Field(bytes, 22, 4), bits = Field(bytes, 28, 2);
  const int64_t own = bits / 8;
  if (bits % 8 != 0 || (own != 1 && own != 3 && own != 4)) {
    return InvalidArgument("Number of channels inherent in the image must be 1, 3 or 4, was ", own);
  }
  if (channels != 0 && channels != own) {
    return InvalidArgument("channels attribute ", channels,
                           " does not match bits per pixel from "
                           "file ",
                           bits);
  }
  const bool top_down = signed_height < 0;
  const int64_t height = top_down ? -signed_height : signed_height;
  if (header < 0) return InvalidArgument("Negative header size");
  ONCILLA_TRY(CheckSize(height, width));
  const int64_t stride = (width * own + 3) / 4 * 4;
  const auto size = static_cast<int64_t>(bytes.size());
  if (header > size || stride * (height - 1) + width * own > size - header) {
    return InvalidArgument("Incomplete bmp content: ", size, " bytes for ", width, "x", height,
                           " pixels");
  }
  Pixels out{height, width, own, false, {}};
  out.bytes.resize(static_cast<size_t>(height * width * own));
  for (int64_t y = 0; y < height; ++y) {
    const char* from = bytes.data() + header + (top_down ? y : height - 1 - y) * stride;
    uint8_t* to = out.bytes.data() + y * width * own;
    for (int64_t x = 0; x < width; ++x, from += own, to += own) {
      if (own == 1) {
        to[0] = static_cast<uint8_t>(from[0]);
        continue;
      }
      for (int64_t c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(from[2 - c]);
      if (own == 4) to[3] = static_cast<uint8_t>(from[3]);
    }
  }
  return out;
}

}  // namespace oncilla::image
