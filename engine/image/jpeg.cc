// JPEG through libjpeg(-turbo). The library reports failure by longjmp, so the functions that call
// setjmp own nothing with a destructor; buffers belong to their callers.
// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE and size_t
// clang-format on
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include "engine/image/codec.h"

namespace oncilla::image {
namespace {

struct Failure {
  jpeg_error_mgr base;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  bool strict;
};

void Fail(j_common_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  info->err->format_message(info, failure->message);
  std::longjmp(failure->jump, 1);
}
// A warning (level -1) means that data were corrupt and libjpeg made up pixels instead.
void Message(j_common_ptr info, int level) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  if (level < 0 && failure->strict) Fail(info);
}

// A data source over a file in memory. Reading past its end fails.
void InitSource(j_decompress_ptr) {}
boolean FillSource(j_decompress_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  std::strncpy(failure->message, "it ends too early", sizeof(failure->message) - 1);
  std::longjmp(failure->jump, 1);
}
void SkipSource(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > info->src->bytes_in_buffer) FillSource(info);
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= static_cast<size_t>(count);
}
void EndSource(j_decompress_ptr) {}

struct Reading {
  std::string_view bytes;
  JpegOptions options;
  Failure failure;
  jpeg_source_mgr source;
  bool inks = false;      // the rows have four inks
  bool inverted = false;  // Adobe writes inverted values: 255 is no ink
};

// Reads height, width and channels. Unless `pixels` is null, also reads the rows (four bytes a
// pixel if the file is CMYK).
bool ReadJpeg(Reading* r, Pixels* out, uint8_t* pixels) {
  jpeg_decompress_struct info;
  info.err = jpeg_std_error(&r->failure.base);
  r->failure.base.error_exit = Fail;
  r->failure.base.emit_message = Message;
  r->failure.strict = r->options.strict;
  if (setjmp(r->failure.jump)) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  r->source.next_input_byte = reinterpret_cast<const JOCTET*>(r->bytes.data());
  r->source.bytes_in_buffer = r->bytes.size();
  r->source.init_source = InitSource;
  r->source.fill_input_buffer = FillSource;
  r->source.skip_input_data = SkipSource;
  r->source.resync_to_restart = jpeg_resync_to_restart;
  r->source.term_source = EndSource;
  info.src = &r->source;
  jpeg_read_header(&info, TRUE);
  int channels = r->options.channels;
  if (channels == 0) channels = std::min(info.num_components, 3);
  r->inks =
      channels == 3 && (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK);
  r->inverted = info.saw_Adobe_marker;
  info.out_color_space = r->inks ? JCS_CMYK : channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  info.do_fancy_upsampling = r->options.fancy_upscaling ? TRUE : FALSE;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(r->options.ratio);
  info.dct_method = r->options.fast_dct ? JDCT_IFAST : JDCT_ISLOW;
  jpeg_calc_output_dimensions(&info);
  out->height = info.output_height;
  out->width = info.output_width;
  out->channels = channels;
  if (pixels) {
    jpeg_start_decompress(&info);
    const size_t stride =
        size_t{info.output_width} * (r->inks ? 4u : static_cast<unsigned>(channels));
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = pixels + info.output_scanline * stride;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  }
  jpeg_destroy_decompress(&info);
  return true;
}

Status Damaged(const char* message) {
  return InvalidArgument("Invalid JPEG data or crop window: ",
                         *message ? message : "the library has no memory");
}

uint8_t Print(int ink, int black, bool inverted) {
  return static_cast<uint8_t>(inverted ? ink * black / 255 : (255 - ink) * (255 - black) / 255);
}

bool WriteJpeg(const Pixels* pixels, const JpegStyle* style, Failure* failure, unsigned char** data,
               unsigned long* size) {
  jpeg_compress_struct info;
  info.err = jpeg_std_error(&failure->base);
  failure->base.error_exit = Fail;
  failure->base.emit_message = Message;
  failure->strict = false;
  if (setjmp(failure->jump)) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, data, size);
  info.image_width = static_cast<JDIMENSION>(pixels->width);
  info.image_height = static_cast<JDIMENSION>(pixels->height);
  info.input_components = static_cast<int>(pixels->channels);
  info.in_color_space = pixels->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  if (style->optimize) info.optimize_coding = TRUE;
  info.density_unit = style->per_inch ? 1 : 2;
  info.X_density = static_cast<UINT16>(style->x_density);
  info.Y_density = static_cast<UINT16>(style->y_density);
  jpeg_set_quality(&info, style->quality, TRUE);
  if (style->progressive) jpeg_simple_progression(&info);
  if (!style->chroma_downsampling) {
    for (int i = 0; i < info.num_components; ++i) {
      info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
    }
  }
  jpeg_start_compress(&info, TRUE);
  if (!style->xmp.empty()) {
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(style->xmp.data()),
                      static_cast<unsigned>(style->xmp.size()));
  }
  const int64_t stride = pixels->width * pixels->channels;
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels->bytes.data()) + info.next_scanline * stride;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

Result<Pixels> JpegSize(std::string_view bytes) {
  Pixels out;
  Reading reading{};
  reading.bytes = bytes;
  if (!ReadJpeg(&reading, &out, nullptr)) return Damaged(reading.failure.message);
  return out;
}

Result<Pixels> DecodeJpeg(std::string_view bytes, const JpegOptions& options) {
  if (options.channels != 0 && options.channels != 1 && options.channels != 3) {
    return InvalidArgument("channels must be 0, 1, or 3 for JPEG, not ", options.channels);
  }
  if (options.ratio != 1 && options.ratio != 2 && options.ratio != 4 && options.ratio != 8) {
    return InvalidArgument("ratio must be 1, 2, 4, or 8, got ", options.ratio);
  }
  Pixels out;
  Reading reading{};
  reading.bytes = bytes;
  reading.options = options;
  if (!ReadJpeg(&reading, &out, nullptr)) return Damaged(reading.failure.message);
  ONCILLA_TRY(CheckSize(out.height, out.width));
  const auto area = static_cast<size_t>(out.height * out.width);
  HostVector<uint8_t> inks;
  if (reading.inks) inks.resize(area * 4);
  out.bytes.resize(area * static_cast<size_t>(out.channels));
  if (!ReadJpeg(&reading, &out, reading.inks ? inks.data() : out.bytes.data())) {
    return Damaged(reading.failure.message);
  }
  for (size_t i = 0; i < area && reading.inks; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      out.bytes[i * 3 + c] = Print(inks[i * 4 + c], inks[i * 4 + 3], reading.inverted);
    }
  }
  return out;
}

Result<std::string> EncodeJpeg(const Pixels& pixels, const JpegStyle& style) {
  if (pixels.wide || (pixels.channels != 1 && pixels.channels != 3)) {
    return InvalidArgument("image must have 1 or 3 channels of 8 bits, not ", pixels.channels);
  }
  if (style.quality < 0 || style.quality > 100) {
    return InvalidArgument("quality must be in [0,100], got ", style.quality);
  }
  if (style.xmp.size() > 65000) return InvalidArgument("the metadata is too long");
  ONCILLA_TRY(CheckSize(pixels.height, pixels.width));
  unsigned char* data = nullptr;
  unsigned long size = 0;
  Failure failure{};
  const bool done = WriteJpeg(&pixels, &style, &failure, &data, &size);
  std::string out;
  if (done) out.assign(reinterpret_cast<const char*>(data), size);
  std::free(data);
  if (!done) return InvalidArgument("JPEG encoding failed: ", failure.message);
  return out;
}

}  // namespace oncilla::image
