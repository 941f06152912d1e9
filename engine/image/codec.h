// Decodes and encodes image files. Pixels are stored from the top row down, channels last, without
// colour management and without rotation by EXIF.
//
// Damaged files are InvalidArgument with the library's message; images of more than 2^28 pixels are
// ResourceExhausted before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/work_limits.h"

namespace oncilla::image {

struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  bool wide = false;          // 16 bits per value, in native byte order
  HostVector<uint8_t> bytes;  // two per value if wide
};

enum class Format { kUnknown, kPng, kJpeg, kGif, kBmp };
// Detects the format by the first bytes.
Format FormatOf(std::string_view bytes);
std::string_view Name(Format format);

struct JpegOptions {
  int channels = 0;  // 1, 3, or 0: as in the file, at most 3
  int ratio = 1;     // 1, 2, 4, 8: the factor by which the image is scaled down
  bool fancy_upscaling = true;
  bool fast_dct = false;
  bool strict = false;  // also fails for damage from which the library can recover
};
Result<Pixels> DecodeJpeg(std::string_view bytes, const JpegOptions& options);
// Height, width and channels only.
Result<Pixels> JpegSize(std::string_view bytes);

struct PngOptions {
  int channels = 0;  // 1 (grey), 2, 3, 4, or 0: as in the file
  bool wide = false;
};
Result<Pixels> DecodePng(std::string_view bytes, const PngOptions& options);

// Supports images without palette and compression: 8, 24 or 32 bits; `channels` is 0 or the file's
// number.
Result<Pixels> DecodeBmp(std::string_view bytes, int channels);

// Frames one after another, each of the size of the largest in the file; where a frame draws
// nothing, the previous one shows, or black.
struct Frames {
  int64_t count = 0, in_file = 0;
  Pixels pixels;  // height and width of one
};
Result<Frames> DecodeGif(std::string_view bytes, bool first_only);

struct JpegStyle {
  int quality = 95;
  bool progressive = false, optimize = false, chroma_downsampling = true;
  bool per_inch = true;
  int x_density = 300, y_density = 300;
  std::string xmp;
};
// Pixels must have 1 or 3 channels.
Result<std::string> EncodeJpeg(const Pixels& pixels, const JpegStyle& style);
// Pixels must have 1 to 4 channels. `compression` is 0 to 9, or -1 for the library's default.
Result<std::string> EncodePng(const Pixels& pixels, int compression);

// Fails for an image without pixels or of more than 2^28.
Status CheckSize(int64_t height, int64_t width);

}  // namespace oncilla::image
