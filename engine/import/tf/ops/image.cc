// TensorFlow's ops on images: decoding, colours, crops, projections, boxes.
#include "engine/import/tf/lowering.h"

namespace oncilla {
namespace {

Result<ValueId> ToF32(TfLowering& b, ValueId x, std::string_view role) {
  if (b.fact(x).dtype == DType::kF32) return x;
  return b.Cast(x, DType::kF32, role);
}

// Casts back to the type of input 0, under the node's own name.
Result<Values> FromF32(TfLowering& b, ValueId y) {
  return One(b.Add(CastAttrs{b.in_fact(0).dtype}, {y}));
}

// Files.

Result<Values> LowerDecode(TfLowering& b) {
  DecodeImageAttrs attrs;
  if (b.op() == "DecodeGif") {
    attrs.formats = "gif";
    return One(b.Add(attrs, {b.in(0)}));
  }
  ONCILLA_ASSIGN(attrs.channels, b.attrs().Int("channels"));
  if (b.op() == "DecodeBmp") attrs.formats = "bmp";
  if (b.op() == "DecodeJpeg" || b.op() == "DecodePng") attrs.formats = "jpeg png still_gif";
  if (b.op() == "DecodeImage") {
    // With frames as a fourth axis the rank depends on the file. A constant tells it; where the
    // file is data, a GIF fails the run.
    ONCILLA_ASSIGN(const bool frames, b.attrs().Bool("expand_animations"));
    if (!frames) attrs.formats += " first_gif";
    const Fact& file = b.in_fact(0);
    const bool known = file.has_value() && file.value.elements() == 1;
    if (frames && known && file.value.strings()[0].starts_with("GIF8")) attrs.formats = "gif";
  }
  if (b.op() == "DecodePng" || b.op() == "DecodeImage") {
    ONCILLA_ASSIGN(attrs.to, b.attrs().Type("dtype"));
  }
  if (b.op() == "DecodeJpeg" || b.op() == "DecodeAndCropJpeg") {
    ONCILLA_ASSIGN(attrs.ratio, b.attrs().Int("ratio"));
    ONCILLA_ASSIGN(attrs.fancy_upscaling, b.attrs().Bool("fancy_upscaling"));
    ONCILLA_ASSIGN(const std::string method, b.attrs().String("dct_method"));
    // A truncated file fails even if try_recover_truncated is set: how the missing part is filled
    // in differs between versions of libjpeg.
    if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE") {
      return InvalidArgument("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
    }
    attrs.accurate_dct = method == "INTEGER_ACCURATE";
  }
  if (b.op() != "DecodeAndCropJpeg") return One(b.Add(attrs, {b.in(0)}));
  attrs.formats = "jpeg";
  ONCILLA_ASSIGN(const ValueId whole, b.Add(attrs, {b.in(0)}, "whole"));
  // The crop window: top, left, height, width.
  ONCILLA_ASSIGN(const ValueId begin,
                 b.Add("Slice", {}, {b.in(1), b.Ints({0}), b.Ints({2})}, "begin"));
  ONCILLA_ASSIGN(const ValueId size,
                 b.Add("Slice", {}, {b.in(1), b.Ints({2}), b.Ints({4})}, "size"));
  ONCILLA_ASSIGN(const ValueId end, b.Add("Add", {}, {begin, size}, "end"));
  return One(b.Add("Slice", {}, {whole, begin, end, b.Ints({0, 1})}));
}

Result<Values> LowerJpegShape(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("output_type"));
  return One(b.Add(JpegShapeAttrs{.to = to}, {b.in(0)}));
}

Result<Values> LowerEncodePng(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t compression, b.attrs().Int("compression"));
  return One(
      b.Add(EncodeImageAttrs{.format = "png", .compression = compression, .xmp = {}}, {b.in(0)}));
}

Result<Values> LowerEncodeJpeg(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string form, b.attrs().String("format"));
  const Dim channels =
      b.in_fact(0).shape.ranked() && b.in_fact(0).shape.rank() == 3 ? b.in_fact(0).shape[2] : Dim();
  if (!form.empty() && channels.known() && channels.size != (form == "rgb" ? 3 : 1)) {
    return InvalidArgument("format '", form, "' of ", channels.size, " channels");
  }
  EncodeImageAttrs attrs = {.format = "jpeg", .xmp = {}};
  ONCILLA_ASSIGN(attrs.quality, b.attrs().Int("quality"));
  ONCILLA_ASSIGN(attrs.x_density, b.attrs().Int("x_density"));
  ONCILLA_ASSIGN(attrs.y_density, b.attrs().Int("y_density"));
  ONCILLA_ASSIGN(attrs.progressive, b.attrs().Bool("progressive"));
  ONCILLA_ASSIGN(attrs.optimize, b.attrs().Bool("optimize_size"));
  ONCILLA_ASSIGN(attrs.chroma_downsampling, b.attrs().Bool("chroma_downsampling"));
  ONCILLA_ASSIGN(const std::string unit, b.attrs().String("density_unit"));
  ONCILLA_ASSIGN(const std::string xmp, b.attrs().String("xmp_metadata"));
  if (!xmp.empty()) return Unsupported("with XMP metadata");
  attrs.per_inch = unit == "in";
  return One(b.Add(attrs, {b.in(0)}));
}

Result<Values> LowerEncodeJpegVariable(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t quality, b.KnownInt(1, "the quality"));
  return One(b.Add(EncodeImageAttrs{.format = "jpeg", .quality = quality, .xmp = {}}, {b.in(0)}));
}

// Colours: the three channels are handled separately, each with the last axis kept.

struct Parts {
  ValueId x[3] = {kNoValue, kNoValue, kNoValue};
};

class Colors {
 public:
  explicit Colors(TfLowering& b) : b_(b) {}

  Result<ValueId> Op(std::string_view op, Values in) {
    return b_.Add(op, {}, std::move(in), StrCat("step", step_++));
  }
  Result<ValueId> Number(double value) { return b_.Scalar(dtype_, value); }

  Result<Parts> Split(ValueId x) {
    dtype_ = b_.fact(x).dtype;
    const PartialShape& shape = b_.fact(x).shape;
    if (shape.ranked() && (shape.rank() == 0 || (shape[shape.rank() - 1].known() &&
                                                 shape[shape.rank() - 1].size != 3))) {
      return InvalidArgument("images must have 3 channels, not shape ", shape);
    }
    ONCILLA_ASSIGN(const Values parts,
                   b_.AddAll(SplitAttrs{.axis = -1, .parts = 3}, {x}, StrCat("parts", step_++)));
    return Parts{{parts[0], parts[1], parts[2]}};
  }
  Result<ValueId> Join(const Parts& p, std::string_view role) {
    return b_.Add(ConcatAttrs{.axis = -1}, {p.x[0], p.x[1], p.x[2]}, role);
  }

  // From red, green, blue to hue, saturation, value.
  Result<Parts> ToHsv(const Parts& rgb) {
    const auto& [r, g, bl] = rgb.x;
    ONCILLA_ASSIGN(ValueId v, Op("Max", {r, g}));
    ONCILLA_ASSIGN(v, Op("Max", {v, bl}));
    ONCILLA_ASSIGN(ValueId low, Op("Min", {r, g}));
    ONCILLA_ASSIGN(low, Op("Min", {low, bl}));
    ONCILLA_ASSIGN(const ValueId range, Op("Sub", {v, low}));
    ONCILLA_ASSIGN(const ValueId none, Number(0));
    ONCILLA_ASSIGN(const ValueId one, Number(1));
    ONCILLA_ASSIGN(const ValueId bright, Op("Greater", {v, none}));
    ONCILLA_ASSIGN(const ValueId ratio, Op("Div", {range, v}));
    ONCILLA_ASSIGN(const ValueId s, Op("Where", {bright, ratio, none}));
    ONCILLA_ASSIGN(const ValueId sixth, Number(1.0 / 6.0));
    ONCILLA_ASSIGN(const ValueId step, Op("Div", {sixth, range}));
    const auto turn = [&](ValueId a, ValueId c, double sixths) -> Result<ValueId> {
      ONCILLA_ASSIGN(const ValueId difference, Op("Sub", {a, c}));
      ONCILLA_ASSIGN(const ValueId part, Op("Mul", {step, difference}));
      if (sixths == 0) return part;
      ONCILLA_ASSIGN(const ValueId offset, Number(sixths / 6.0));
      return Op("Add", {part, offset});
    };
    ONCILLA_ASSIGN(const ValueId red, turn(g, bl, 0));
    ONCILLA_ASSIGN(const ValueId green, turn(bl, r, 2));
    ONCILLA_ASSIGN(const ValueId blue, turn(r, g, 4));
    ONCILLA_ASSIGN(const ValueId is_red, Op("Equal", {r, v}));
    ONCILLA_ASSIGN(const ValueId is_green, Op("Equal", {g, v}));
    ONCILLA_ASSIGN(ValueId h, Op("Where", {is_green, green, blue}));
    ONCILLA_ASSIGN(h, Op("Where", {is_red, red, h}));
    ONCILLA_ASSIGN(const ValueId colored, Op("Greater", {range, none}));
    ONCILLA_ASSIGN(h, Op("Where", {colored, h, none}));
    ONCILLA_ASSIGN(const ValueId negative, Op("Less", {h, none}));
    ONCILLA_ASSIGN(const ValueId turned, Op("Add", {h, one}));
    ONCILLA_ASSIGN(h, Op("Where", {negative, turned, h}));
    return Parts{{h, s, v}};
  }

  // From hue, saturation, value: each channel is ((1 - s) + s * clip(|6 h - a| ..)) * v.
  Result<Parts> ToRgb(const Parts& hsv) {
    const auto& [h, s, v] = hsv.x;
    ONCILLA_ASSIGN(const ValueId none, Number(0));
    ONCILLA_ASSIGN(const ValueId one, Number(1));
    ONCILLA_ASSIGN(const ValueId two, Number(2));
    ONCILLA_ASSIGN(const ValueId three, Number(3));
    ONCILLA_ASSIGN(const ValueId four, Number(4));
    ONCILLA_ASSIGN(const ValueId six, Number(6));
    ONCILLA_ASSIGN(const ValueId turns, Op("Mul", {h, six}));
    ONCILLA_ASSIGN(const ValueId rest, Op("Sub", {one, s}));
    const auto distance = [&](ValueId from) -> Result<ValueId> {
      ONCILLA_ASSIGN(const ValueId d, Op("Sub", {turns, from}));
      return Op("Abs", {d});
    };
    // Copies, because clang 14 cannot capture a structured binding in a lambda, as C++20 allows.
    const ValueId saturation = s, brightness = v;
    const auto channel = [&](ValueId level) -> Result<ValueId> {
      ONCILLA_ASSIGN(ValueId y, Op("Clip", {level, none, one}));
      ONCILLA_ASSIGN(y, Op("Mul", {saturation, y}));
      ONCILLA_ASSIGN(y, Op("Add", {rest, y}));
      return Op("Mul", {y, brightness});
    };
    ONCILLA_ASSIGN(const ValueId d3, distance(three));
    ONCILLA_ASSIGN(const ValueId d2, distance(two));
    ONCILLA_ASSIGN(const ValueId d4, distance(four));
    ONCILLA_ASSIGN(const ValueId r_level, Op("Sub", {d3, one}));
    ONCILLA_ASSIGN(const ValueId g_level, Op("Sub", {two, d2}));
    ONCILLA_ASSIGN(const ValueId b_level, Op("Sub", {two, d4}));
    ONCILLA_ASSIGN(const ValueId r, channel(r_level));
    ONCILLA_ASSIGN(const ValueId g, channel(g_level));
    ONCILLA_ASSIGN(const ValueId bl, channel(b_level));
    return Parts{{r, g, bl}};
  }

 private:
  TfLowering& b_;
  DType dtype_ = DType::kF32;
  int step_ = 0;
};

Result<Values> LowerColorSpace(TfLowering& b) {
  Colors colors(b);
  ONCILLA_ASSIGN(const Parts in, colors.Split(b.in(0)));
  ONCILLA_ASSIGN(const Parts out, b.op() == "RGBToHSV" ? colors.ToHsv(in) : colors.ToRgb(in));
  return One(colors.Join(out, ""));
}

Result<Values> LowerAdjustColor(TfLowering& b) {
  Colors colors(b);
  ONCILLA_ASSIGN(const ValueId x, ToF32(b, b.in(0), "float"));
  ONCILLA_ASSIGN(const Parts rgb, colors.Split(x));
  ONCILLA_ASSIGN(Parts hsv, colors.ToHsv(rgb));
  if (b.op() == "AdjustHue") {
    ONCILLA_ASSIGN(const ValueId one, colors.Number(1));
    ONCILLA_ASSIGN(const ValueId turned, colors.Op("Add", {hsv.x[0], b.in(1)}));
    ONCILLA_ASSIGN(hsv.x[0], colors.Op("FloorMod", {turned, one}));
  } else {
    ONCILLA_ASSIGN(const ValueId none, colors.Number(0));
    ONCILLA_ASSIGN(const ValueId one, colors.Number(1));
    ONCILLA_ASSIGN(const ValueId scaled, colors.Op("Mul", {hsv.x[1], b.in(1)}));
    ONCILLA_ASSIGN(hsv.x[1], colors.Op("Clip", {scaled, none, one}));
  }
  ONCILLA_ASSIGN(const Parts out, colors.ToRgb(hsv));
  const bool wide = b.in_fact(0).dtype == DType::kF32;
  ONCILLA_ASSIGN(const ValueId y, colors.Join(out, wide ? "" : "joined"));
  if (wide) return Values{y};
  return FromF32(b, y);
}

// Scales each channel of each image around its mean.
Result<Values> LowerContrast(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId x, ToF32(b, b.in(0), "float"));
  ONCILLA_ASSIGN(const ValueId mean, b.Add("ReduceMean", ReduceAttrs{.keep_dims = true},
                                           {x, b.Ints({-3, -2})}, "mean"));
  ONCILLA_ASSIGN(ValueId y, b.Add("Sub", {}, {x, mean}, "difference"));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, b.in(1)}, "scaled"));
  const bool wide = b.in_fact(0).dtype == DType::kF32;
  ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, mean}, wide ? "" : "moved"));
  if (wide) return Values{y};
  return FromF32(b, y);
}

// Crops and projections.

Result<Values> LowerCropAndResize(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string method, b.attrs().String("method"));
  ONCILLA_ASSIGN(const float outside, b.attrs().Float("extrapolation_value"));
  if (method != "bilinear" && method != "nearest") return InvalidArgument("method ", method);
  return One(b.Add(CropAndResizeAttrs{.nearest = method == "nearest", .outside = outside},
                   {b.in(0), b.in(1), b.in(2), b.in(3)}));
}

Result<Values> LowerScaleAndTranslate(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string kernel, b.attrs().String("kernel_type"));
  ONCILLA_ASSIGN(const bool antialias, b.attrs().Bool("antialias"));
  return One(b.Add(ScaleAndTranslateAttrs{.kernel = kernel, .antialias = antialias},
                   {b.in(0), b.in(1), b.in(2), b.in(3)}));
}

Result<Values> LowerProject(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string interpolation, b.attrs().String("interpolation"));
  ONCILLA_ASSIGN(std::string beyond, b.attrs().String("fill_mode"));
  for (char& c : beyond) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (interpolation != "NEAREST" && interpolation != "BILINEAR") {
    return InvalidArgument("Invalid interpolation ", interpolation,
                           ". Supported types: NEAREST, BILINEAR");
  }
  ONCILLA_ASSIGN(ValueId fill, b.Scalar(DType::kF32, 0));
  if (b.op() == "ImageProjectiveTransformV3") {
    if (b.inputs() < 4) return DataLoss("input 3 is missing");
    fill = b.in(3);
  }
  return One(b.Add(ProjectImageAttrs{.bilinear = interpolation == "BILINEAR", .beyond = beyond},
                   {b.in(0), b.in(1), b.in(2), fill}));
}

Result<Values> LowerGlimpse(TfLowering& b) {
  ONCILLA_ASSIGN(const bool centered, b.attrs().Bool("centered"));
  ONCILLA_ASSIGN(const bool normalized, b.attrs().Bool("normalized"));
  ONCILLA_ASSIGN(const std::string noise, b.attrs().String("noise"));
  return One(b.Add(ExtractGlimpseAttrs{.centered = centered,
                                       .normalized = normalized,
                                       .random = noise != "zero",
                                       .second = b.op() == "ExtractGlimpseV2"},
                   {b.in(0), b.in(1), b.in(2)}));
}

// Boxes.

Result<Values> LowerSuppression(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId boxes, ToF32(b, b.in(0), "boxes"));
  ONCILLA_ASSIGN(const ValueId scores, ToF32(b, b.in(1), "scores"));
  ONCILLA_ASSIGN(ValueId iou, b.Scalar(DType::kF32, 0.5));
  ONCILLA_ASSIGN(ValueId score,
                 b.Scalar(DType::kF32, static_cast<double>(std::numeric_limits<float>::lowest())));
  ONCILLA_ASSIGN(ValueId sigma, b.Scalar(DType::kF32, 0));
  if (b.op() == "NonMaxSuppression") {
    ONCILLA_ASSIGN(const float value, b.attrs().Float("iou_threshold"));
    ONCILLA_ASSIGN(iou, b.Scalar(DType::kF32, static_cast<double>(value)));
  }
  if (b.inputs() > 3) {
    ONCILLA_ASSIGN(iou, ToF32(b, b.in(3), "iou"));
  }
  if (b.inputs() > 4) {
    ONCILLA_ASSIGN(score, ToF32(b, b.in(4), "score"));
  }
  if (b.inputs() > 5) {
    ONCILLA_ASSIGN(sigma, ToF32(b, b.in(5), "sigma"));
  }
  SelectBoxesAttrs attrs = {.overlaps = b.op() == "NonMaxSuppressionWithOverlaps"};
  const bool fourth = b.op() == "NonMaxSuppressionV4", fifth = b.op() == "NonMaxSuppressionV5";
  if (fourth || fifth) {
    ONCILLA_ASSIGN(attrs.pad, b.attrs().Bool("pad_to_max_output_size"));
  }
  ONCILLA_ASSIGN(Values out, b.AddAll(attrs, {boxes, scores, b.in(2), iou, score, sigma}));
  if (fourth) return Values{out[0], out[2]};
  if (!fifth) return Values{out[0]};
  ONCILLA_ASSIGN(out[1], b.Cast(out[1], b.in_fact(1).dtype, "kept"));
  return out;
}

Result<Values> LowerCombined(TfLowering& b) {
  ONCILLA_ASSIGN(const bool pad, b.attrs().Bool("pad_per_class"));
  ONCILLA_ASSIGN(const bool clip, b.attrs().Bool("clip_boxes"));
  return b.AddAll(SelectBoxesByClassAttrs{.pad_per_class = pad, .clip = clip}, b.all_inputs());
}

constexpr TfOpRow kRows[] = {
    {"AdjustContrastv2", 2, "", LowerContrast},
    {"AdjustHue", 2, "", LowerAdjustColor},
    {"AdjustSaturation", 2, "", LowerAdjustColor},
    {"CombinedNonMaxSuppression", 6, "", LowerCombined},
    {"CropAndResize", 4, "", LowerCropAndResize},
    {"DecodeAndCropJpeg", 2, "", LowerDecode},
    {"DecodeBmp", 1, "", LowerDecode},
    {"DecodeGif", 1, "", LowerDecode},
    {"DecodeImage", 1, "", LowerDecode},
    {"DecodeJpeg", 1, "", LowerDecode},
    {"DecodePng", 1, "", LowerDecode},
    {"DrawBoundingBoxes", 2, "DrawBoxes"},
    {"DrawBoundingBoxesV2", 3, "DrawBoxes"},
    {"EncodeJpeg", 1, "", LowerEncodeJpeg},
    {"EncodeJpegVariableQuality", 2, "", LowerEncodeJpegVariable},
    {"EncodePng", 1, "", LowerEncodePng},
    {"ExtractGlimpse", 3, "", LowerGlimpse},
    {"ExtractGlimpseV2", 3, "", LowerGlimpse},
    {"ExtractJpegShape", 1, "", LowerJpegShape},
    {"HSVToRGB", 1, "", LowerColorSpace},
    {"ImageProjectiveTransformV2", 3, "", LowerProject},
    {"ImageProjectiveTransformV3", 4, "", LowerProject},
    {"NonMaxSuppression", 3, "", LowerSuppression},
    {"NonMaxSuppressionV2", 4, "", LowerSuppression},
    {"NonMaxSuppressionV3", 5, "", LowerSuppression},
    {"NonMaxSuppressionV4", 5, "", LowerSuppression},
    {"NonMaxSuppressionV5", 6, "", LowerSuppression},
    {"NonMaxSuppressionWithOverlaps", 5, "", LowerSuppression},
    {"RGBToHSV", 1, "", LowerColorSpace},
    {"ScaleAndTranslate", 4, "", LowerScaleAndTranslate},
};

}  // namespace

std::span<const TfOpRow> TfImageRows() { return kRows; }

}  // namespace oncilla
