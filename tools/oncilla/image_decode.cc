// The two image libraries, held at arm's length: both report failure by longjmp, so the functions
// that set the jump own nothing with a destructor; buffers belong to their callers.
// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE and size_t
// clang-format on
#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "tools/oncilla/image.h"

namespace oncilla::tool {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 28;
constexpr size_t kMessageBytes = 256;

struct Size {
  int64_t height = 0, width = 0;
};

struct PngInput {
  const std::byte* data;
  size_t left;
  char message[kMessageBytes];
};

void PngFail(png_structp png, png_const_charp message) {
  auto* input = static_cast<PngInput*>(png_get_error_ptr(png));
  std::strncpy(input->message, message, kMessageBytes - 1);
  png_longjmp(png, 1);
}
void PngWarn(png_structp, png_const_charp) {}

void PngRead(png_structp png, png_bytep out, size_t n) {
  auto* input = static_cast<PngInput*>(png_get_io_ptr(png));
  if (n > input->left) png_error(png, "it ends too early");
  std::memcpy(out, input->data, n);
  input->data += n;
  input->left -= n;
}

// Reads the size, and then, unless `rows` is null, the pixels as RGBA of 8 bits.
bool ReadPng(PngInput* input, Size* size, png_bytepp rows) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, input, PngFail, PngWarn);
  if (!png) return false;
  png_infop info = png_create_info_struct(png);
  if (!info || setjmp(png_jmpbuf(png))) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  png_set_read_fn(png, input, PngRead);
  png_set_user_limits(png, 1 << 20, 1 << 20);
  png_read_info(png, info);
  size->height = png_get_image_height(png, info);
  size->width = png_get_image_width(png, info);
  if (rows) {
    png_set_strip_16(png);
    png_set_expand(png);  // palettes, grey below 8 bits, transparency to alpha
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != static_cast<size_t>(size->width) * 4) {
      png_error(png, "its pixels are of an unknown form");
    }
    png_read_image(png, rows);
    png_read_end(png, nullptr);
  }
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

struct JpegFailure {
  jpeg_error_mgr base;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void JpegFail(j_common_ptr info) {
  auto* failure = reinterpret_cast<JpegFailure*>(info->err);
  info->err->format_message(info, failure->message);
  std::longjmp(failure->jump, 1);
}

// Warnings mean that bytes were missing or wrong and grey was made up instead.
void JpegMessage(j_common_ptr info, int level) {
  if (level < 0) JpegFail(info);
}

// As ReadPng, with pixels as RGB, or as grey when `grey`.
bool ReadJpeg(std::span<const std::byte> bytes, bool grey, Size* size, uint8_t* pixels,
              JpegFailure* failure) {
  jpeg_decompress_struct info;
  info.err = jpeg_std_error(&failure->base);
  failure->base.error_exit = JpegFail;
  failure->base.emit_message = JpegMessage;
  if (setjmp(failure->jump)) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  size->height = info.image_height;
  size->width = info.image_width;
  if (pixels) {
    info.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&info);
    const size_t stride = size_t{info.output_width} * (grey ? 1 : 3);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = pixels + info.output_scanline * stride;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  }
  jpeg_destroy_decompress(&info);
  return true;
}

Status Damaged(const char* format, const char* message) {
  return WithStage(DataLoss("the ", format, " image cannot be read: ",
                            *message ? message : "the library has no memory"),
                   Stage::kFile);
}

Status CheckSize(const Size& size) {
  if (size.height > 0 && size.width > 0 && SaturatingMul(size.height, size.width) <= kMaxPixels) {
    return {};
  }
  return WithStage(
      Exhausted("the image is ", size.width, "x", size.height, " pixels; at most 2^27 in all"),
      Stage::kFile);
}

// ITU-R BT.601 luma with 16 bits of fraction, as libpng and libjpeg use for 8-bit pixels.
uint8_t Grey(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

// Changes the number of channels of pixels that have `image.channels` now.
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

bool StartsWith(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

bool IsPng(std::span<const std::byte> bytes) { return StartsWith(bytes, "\x89PNG\r\n\x1a\n"); }
bool IsJpeg(std::span<const std::byte> bytes) { return StartsWith(bytes, "\xff\xd8\xff"); }

Result<Image> DecodeImage(std::span<const std::byte> bytes, int64_t channels) {
  Size size;
  if (IsPng(bytes)) {
    PngInput input{bytes.data(), bytes.size(), {}};
    if (!ReadPng(&input, &size, nullptr)) return Damaged("PNG", input.message);
    ONCILLA_TRY(CheckSize(size));
    Image image{size.height, size.width, 4, {}};
    image.pixels.resize(static_cast<size_t>(size.height * size.width * 4));
    std::vector<png_bytep> rows;
    for (int64_t y = 0; y < size.height; ++y) {
      rows.push_back(image.pixels.data() + y * size.width * 4);
    }
    input = {bytes.data(), bytes.size(), {}};
    if (!ReadPng(&input, &size, rows.data())) return Damaged("PNG", input.message);
    return WithChannels(std::move(image), channels);
  }
  if (IsJpeg(bytes)) {
    const bool grey = channels == 1;
    JpegFailure failure{};
    if (!ReadJpeg(bytes, grey, &size, nullptr, &failure)) return Damaged("JPEG", failure.message);
    ONCILLA_TRY(CheckSize(size));
    Image image{size.height, size.width, grey ? 1 : 3, {}};
    image.pixels.resize(static_cast<size_t>(size.height * size.width * image.channels));
    if (!ReadJpeg(bytes, grey, &size, image.pixels.data(), &failure)) {
      return Damaged("JPEG", failure.message);
    }
    return WithChannels(std::move(image), channels);
  }
  return WithStage(DataLoss("it is neither a PNG nor a JPEG image"), Stage::kFile);
}

}  // namespace oncilla::tool
