// PNG through libpng. The library reports failure by longjmp, so the functions that call setjmp own
// nothing with a destructor; buffers belong to their callers.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "engine/image/codec.h"

namespace oncilla::image {
namespace {

constexpr size_t kMessageBytes = 256;

struct Stream {
  std::string_view input;
  std::string* output = nullptr;
  char message[kMessageBytes] = {};
};

void Fail(png_structp png, png_const_charp message) {
  auto* stream = static_cast<Stream*>(png_get_error_ptr(png));
  std::strncpy(stream->message, message, kMessageBytes - 1);
  png_longjmp(png, 1);
}
void Warn(png_structp, png_const_charp) {}

void Read(png_structp png, png_bytep out, size_t n) {
  auto* stream = static_cast<Stream*>(png_get_io_ptr(png));
  if (n > stream->input.size()) png_error(png, "it ends too early");
  std::memcpy(out, stream->input.data(), n);
  stream->input.remove_prefix(n);
}

// Sets up libpng's conversion from the file's pixel format to the one asked for.
void Transform(png_structp png, png_infop info, int channels, bool wide) {
  const int color = png_get_color_type(png, info), bits = png_get_bit_depth(png, info);
  const bool transparent = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  const bool alpha = (color & PNG_COLOR_MASK_ALPHA) != 0;
  if (channels % 2 == 0) {
    if (transparent) {
      png_set_tRNS_to_alpha(png);
    } else if (!alpha) {
      png_set_add_alpha(png, (1u << bits) - 1, PNG_FILLER_AFTER);
    }
  } else if (alpha || transparent) {
    png_set_strip_alpha(png);
  }
  if (bits > 8 && !wide) png_set_strip_16(png);
  png_set_packing(png);
  if (wide) png_set_swap(png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  const bool grey = (color & PNG_COLOR_MASK_COLOR) == 0;
  if (grey && bits < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (channels < 3) {
    if (!grey) png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  } else if (grey) {
    png_set_gray_to_rgb(png);
  }
}

// Reads height, width, channels and depth. Unless `rows` is null, also reads the pixels.
bool ReadPng(Stream* stream, const PngOptions* options, Pixels* out, png_bytepp rows) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, stream, Fail, Warn);
  if (!png) return false;
  png_infop info = png_create_info_struct(png);
  if (!info || setjmp(png_jmpbuf(png))) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  png_set_read_fn(png, stream, Read);
  png_set_user_limits(png, 1 << 20, 1 << 20);
  png_read_info(png, info);
  out->height = png_get_image_height(png, info);
  out->width = png_get_image_width(png, info);
  out->channels = options->channels != 0 ? options->channels : png_get_channels(png, info);
  if (options->channels == 0 && png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE) {
    out->channels = png_get_valid(png, info, PNG_INFO_tRNS) != 0 ? 4 : 3;
  }
  // Samples of 8 bits or less are read as 8 bits; the caller widens them if 16 are asked for.
  out->wide = options->wide && png_get_bit_depth(png, info) > 8;
  if (rows) {
    Transform(png, info, static_cast<int>(out->channels), out->wide);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    const auto values = static_cast<size_t>(out->width * out->channels);
    if (png_get_rowbytes(png, info) != values * (out->wide ? 2 : 1)) {
      png_error(png, "its pixels are of another form than asked for");
    }
    for (int pass = 0; pass < passes; ++pass) {
      png_read_rows(png, rows, nullptr, static_cast<png_uint_32>(out->height));
    }
    png_read_end(png, nullptr);
  }
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

Status Damaged(const char* message) {
  return InvalidArgument("Invalid PNG data: ", *message ? message : "the library has no memory");
}

void Write(png_structp png, png_bytep data, size_t n) {
  auto* stream = static_cast<Stream*>(png_get_io_ptr(png));
  // The space was reserved before: appending never allocates, so no exception passes through
  // libpng's C code.
  if (stream->output->capacity() - stream->output->size() < n) png_error(png, "there is no room");
  stream->output->append(reinterpret_cast<const char*>(data), n);
}
void Flush(png_structp) {}

bool WritePng(Stream* stream, const Pixels* pixels, int compression, png_bytepp rows) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, stream, Fail, Warn);
  if (!png) return false;
  png_infop info = png_create_info_struct(png);
  if (!info || setjmp(png_jmpbuf(png))) {
    png_destroy_write_struct(&png, &info);
    return false;
  }
  constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                             PNG_COLOR_TYPE_RGBA};
  png_set_write_fn(png, stream, Write, Flush);
  png_set_compression_level(png, compression);
  png_set_IHDR(png, info, static_cast<png_uint_32>(pixels->width),
               static_cast<png_uint_32>(pixels->height), pixels->wide ? 16 : 8,
               kColors[pixels->channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (pixels->wide) png_set_swap(png);
  png_write_image(png, rows);
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return true;
}

std::vector<png_bytep> Rows(const Pixels& pixels) {
  std::vector<png_bytep> rows;
  const int64_t stride = pixels.width * pixels.channels * (pixels.wide ? 2 : 1);
  for (int64_t y = 0; y < pixels.height; ++y) {
    rows.push_back(const_cast<png_bytep>(pixels.bytes.data()) + y * stride);
  }
  return rows;
}

}  // namespace

Result<Pixels> DecodePng(std::string_view bytes, const PngOptions& options) {
  if (options.channels < 0 || options.channels > 4) {
    return InvalidArgument("channels must be 0, 1, 2, 3 or 4, not ", options.channels);
  }
  Pixels out;
  Stream stream{bytes, nullptr, {}};
  if (!ReadPng(&stream, &options, &out, nullptr)) return Damaged(stream.message);
  ONCILLA_TRY(CheckSize(out.height, out.width));
  const auto values = static_cast<size_t>(out.height * out.width * out.channels);
  out.bytes.resize(values * (out.wide ? 2 : 1));
  std::vector<png_bytep> rows = Rows(out);
  stream = {bytes, nullptr, {}};
  if (!ReadPng(&stream, &options, &out, rows.data())) return Damaged(stream.message);
  if (options.wide && !out.wide) {
    // Widens 8 bits to 16 by repeating the byte, so that 255 becomes 65535.
    HostVector<uint8_t> both(values * 2);
    for (size_t i = 0; i < values; ++i) both[2 * i] = both[2 * i + 1] = out.bytes[i];
    out.bytes = std::move(both);
    out.wide = true;
  }
  return out;
}

Result<std::string> EncodePng(const Pixels& pixels, int compression) {
  if (pixels.channels < 1 || pixels.channels > 4) {
    return InvalidArgument("image must have 1, 2, 3, or 4 channels, not ", pixels.channels);
  }
  if (compression < -1 || compression > 9) {
    return InvalidArgument("compression must be between -1 and 9, not ", compression);
  }
  ONCILLA_TRY(CheckSize(pixels.height, pixels.width));
  std::string out;
  // Incompressible rows grow by a filter byte each and by deflate's block headers.
  out.reserve(pixels.bytes.size() + pixels.bytes.size() / 64 +
              static_cast<size_t>(pixels.height) * 32 + 4096);
  std::vector<png_bytep> rows = Rows(pixels);
  Stream stream{{}, &out, {}};
  if (!WritePng(&stream, &pixels, compression, rows.data())) {
    return Internal("PNG encoding failed: ", stream.message);
  }
  out.shrink_to_fit();
  return out;
}

}  // namespace oncilla::image
