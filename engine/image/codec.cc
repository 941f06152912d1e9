// Format detection and size checks that all formats share.
#include "engine/image/codec.h"

namespace oncilla::image {

Format FormatOf(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return Format::kPng;
  if (bytes.starts_with("\xff\xd8\xff")) return Format::kJpeg;
  if (bytes.starts_with("GIF8")) return Format::kGif;
  if (bytes.starts_with("BM")) return Format::kBmp;
  return Format::kUnknown;
}

std::string_view Name(Format format) {
  switch (format) {
    case Format::kPng:
      return "PNG";
    case Format::kJpeg:
      return "JPEG";
    case Format::kGif:
      return "GIF";
    case Format::kBmp:
      return "BMP";
    case Format::kUnknown:
      break;
  }
  return "unknown";
}

Status CheckSize(int64_t height, int64_t width) {
  constexpr int64_t kMaxPixels = int64_t{1} << 28;
  if (height > 0 && width > 0 && height <= kMaxPixels / width) return {};
  return Exhausted("the image is ", width, "x", height, " pixels; at most 2^28 in all");
}

}  // namespace oncilla::image
