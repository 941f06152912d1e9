// Attributes of ops on images by TensorFlow's rules: files, crops, projections, boxes.
// Images are [N, height, width, C] unless said otherwise; boxes are (y, x, y, x).
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// DecodeImage(file) -> [height, width, C] of u8, u16 or f32 (0 to 1); "gif" alone adds a leading
// axis of frames.
struct DecodeImageAttrs {
  std::string formats = "jpeg png bmp";  // the accepted ones; first_gif, still_gif: one frame
  int64_t channels = 0;                  // 0: as in the file
  DType to = DType::kU8;
  int64_t ratio = 1;  // for JPEG, like the others: the factor by which it is scaled down
  bool fancy_upscaling = true, accurate_dct = false;
  void Fields(auto&& field) {
    field("formats", formats);
    field("channels", channels);
    field("to", to);
    field("ratio", ratio);
    field("fancy_upscaling", fancy_upscaling);
    field("accurate_dct", accurate_dct);
  }
};

// JpegShape(file) -> [height, width, channels].
struct JpegShapeAttrs {
  DType to = DType::kI32;
  void Fields(auto&& field) { field("to", to); }
};

// EncodeImage(x[.., height, width, C]) -> files. x: u8, or u16 for PNG.
struct EncodeImageAttrs {
  std::string format = "png";  // or jpeg
  int64_t compression = -1;    // of PNG
  int64_t quality = 95;        // for JPEG, like the others below
  bool progressive = false, optimize = false, chroma_downsampling = true, per_inch = true;
  int64_t x_density = 300, y_density = 300;
  std::string xmp;
  void Fields(auto&& field) {
    field("format", format);
    field("compression", compression);
    field("quality", quality);
    field("progressive", progressive);
    field("optimize", optimize);
    field("chroma_downsampling", chroma_downsampling);
    field("per_inch", per_inch);
    field("x_density", x_density);
    field("y_density", y_density);
    field("xmp", xmp);
  }
};

// CropAndResize(x, boxes[R, 4], image[R], *size[2]) -> f32[R, size, C]: boxes are fractions of the
// image; pixels beyond the image are `outside`.
struct CropAndResizeAttrs {
  bool nearest = false;
  double outside = 0;
  void Fields(auto&& field) {
    field("nearest", nearest);
    field("outside", outside);
  }
};

// ScaleAndTranslate(x, *size[2], scale[2], translation[2]) -> f32: resampled with a kernel
// (lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic, mitchellcubic); with
// `antialias` it is widened where the image shrinks.
struct ScaleAndTranslateAttrs {
  std::string kernel = "lanczos3";
  bool antialias = true;
  void Fields(auto&& field) {
    field("kernel", kernel);
    field("antialias", antialias);
  }
};

// ProjectImage(x, transforms[N or 1, 8], *size[2], fill[]) -> y like x: y(x, y) is x at
// ((t0 x + t1 y + t2) / k, (t3 x + t4 y + t5) / k), k = t6 x + t7 y + 1.
struct ProjectImageAttrs {
  bool bilinear = false;
  std::string beyond = "constant";  // constant, reflect, wrap, nearest
  void Fields(auto&& field) {
    field("bilinear", bilinear);
    field("beyond", beyond);
  }
};

// ExtractGlimpse(x, *size[2], offsets[N, 2]) -> [N, size, C]: windows, zero beyond the image; with
// `random` a window that extends beyond it fails the run.
struct ExtractGlimpseAttrs {
  bool centered = true, normalized = true, random = false;
  bool second = false;  // ExtractGlimpseV2's rules, where offsets may be of a corner
  void Fields(auto&& field) {
    field("centered", centered);
    field("normalized", normalized);
    field("random", random);
    field("second", second);
  }
};

// DrawBoxes(x, boxes[N, R, 4], colors[K, C']?) -> y like x: frames one pixel wide, box i in color i
// mod K. Without colors, TensorFlow's ten colors are used.

// SelectBoxes(boxes[n, 4], scores[n], *max, iou, score, sigma) -> indices i32[m], their scores,
// count i32[]: best ones first, without those that overlap a better one by more than iou or whose
// score is not above `score`. sigma > 0 lowers scores by overlap instead. `overlaps`: boxes is a
// matrix [n, n] of overlaps. `pad`: m is max, filled with zeros.
struct SelectBoxesAttrs {
  bool overlaps = false;
  bool pad = false;
  void Fields(auto&& field) {
    field("overlaps", overlaps);
    field("pad", pad);
  }
};

// SelectBoxesByClass(boxes[N, n, 1 or classes, 4], scores[N, n, classes], *per_class, *total, iou,
// score) -> boxes[N, m, 4], scores[N, m], classes[N, m] as f32, counts i32[N]; m is total, or with
// `pad_per_class` at most per_class for each class. `clip` clips boxes to [0, 1].
struct SelectBoxesByClassAttrs {
  bool pad_per_class = false;
  bool clip = true;
  void Fields(auto&& field) {
    field("pad_per_class", pad_per_class);
    field("clip", clip);
  }
};

}  // namespace oncilla
