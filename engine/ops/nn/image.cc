// Ops on images with TensorFlow's semantics: inference and rows.
#include "engine/ops/nn/image.h"

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Status RequireOne(const Fact& fact, std::string_view what) {
  const Dim count = fact.shape.elements();
  if (!count.known() || count.size == 1) return Status();
  return InvalidArgument(what, " has ", count.size, " elements instead of one");
}

Status RequireString(const Fact& fact) {
  if (fact.dtype == DType::kString) return Status();
  return InvalidArgument("a file must be a string, not ", fact.dtype);
}

// Checks that the input's shape is compatible with `shape`.
Status RequireShape(const Fact& fact, PartialShape shape, std::string_view what) {
  const auto merged = MergeShapes(fact.shape, shape);
  return merged.ok() ? Status() : In(merged.status(), what);
}

Status RequireF32(const Fact& fact, std::string_view what) {
  if (fact.dtype == DType::kF32) return Status();
  return InvalidArgument(what, " must be f32, not ", fact.dtype);
}

// The two sizes of an image that an input gives, as far as they are known.
Result<std::vector<Dim>> TwoSizes(const Fact& fact) {
  ONCILLA_TRY(RequireInteger(fact, "size"));
  ONCILLA_TRY(RequireShape(fact, PartialShape({Dim(2)}), "size"));
  if (!AllIntsKnown(fact)) return std::vector<Dim>(2);
  ONCILLA_ASSIGN(const std::vector<int64_t> sizes, NeedInts(fact, "size"));
  for (int64_t size : sizes) {
    if (size < 1) return InvalidArgument("size must be positive, not ", size);
  }
  return std::vector<Dim>{Dim(sizes[0]), Dim(sizes[1])};
}

Result<std::vector<Dim>> ImageDims(const Fact& x) {
  ONCILLA_TRY(RequireRank(x, 4, "images"));
  if (!x.shape.ranked()) return std::vector<Dim>(4);
  return x.shape.dims();
}

Result<Facts> InferDecodeImage(const DecodeImageAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0]));
  ONCILLA_TRY(RequireOne(in[0], "the file"));
  if (attrs.channels < 0 || attrs.channels > 4) {
    return InvalidArgument("channels is ", attrs.channels);
  }
  if (attrs.to != DType::kU8 && attrs.to != DType::kU16 && attrs.to != DType::kF32) {
    return InvalidArgument("pixels cannot become ", attrs.to);
  }
  const Dim channels = attrs.channels == 0 ? Dim() : Dim(attrs.channels);
  if (attrs.formats == "gif") {
    if (attrs.channels != 0 && attrs.channels != 3) return InvalidArgument("GIF has 3 channels");
    return Facts{Fact::Of(attrs.to, PartialShape({Dim(), Dim(), Dim(), Dim(3)}))};
  }
  return Facts{Fact::Of(attrs.to, PartialShape({Dim(), Dim(), channels}))};
}

Result<Facts> InferJpegShape(const JpegShapeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0]));
  ONCILLA_TRY(RequireOne(in[0], "the file"));
  if (!IsInteger(attrs.to)) return InvalidArgument("sizes cannot become ", attrs.to);
  return Facts{Fact::Of(attrs.to, PartialShape({Dim(3)}))};
}

Result<Facts> InferEncodeImage(const EncodeImageAttrs& attrs, std::span<const Fact> in) {
  if (attrs.format != "png" && attrs.format != "jpeg") {
    return InvalidArgument("there is no format '", attrs.format, "'");
  }
  if (in[0].dtype != DType::kU8 && (in[0].dtype != DType::kU16 || attrs.format == "jpeg")) {
    return InvalidArgument("pixels of ", in[0].dtype);
  }
  for (int64_t density : {attrs.x_density, attrs.y_density}) {
    if (density < 0 || density > 65535) return InvalidArgument("a density is ", density);
  }
  if (!in[0].shape.ranked()) return Facts{Fact::Of(DType::kString, PartialShape())};
  const int rank = in[0].shape.rank();
  if (rank < 3) return InvalidArgument("images have shape ", in[0].shape);
  std::vector<Dim> dims = in[0].shape.dims();
  dims.resize(static_cast<size_t>(rank - 3));
  return Facts{Fact::Of(DType::kString, PartialShape(std::move(dims)))};
}

Result<Facts> InferCropAndResize(const CropAndResizeAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireNumber(in[0], "images"));
  ONCILLA_TRY(RequireF32(in[1], "boxes"));
  ONCILLA_TRY(RequireInteger(in[2], "box_ind"));
  ONCILLA_ASSIGN(const std::vector<Dim> x, ImageDims(in[0]));
  ONCILLA_ASSIGN(const std::vector<Dim> size, TwoSizes(in[3]));
  ONCILLA_TRY(RequireRank(in[1], 2, "boxes"));
  ONCILLA_TRY(RequireRank(in[2], 1, "box_ind"));
  Dim count;
  if (in[2].shape.ranked()) count = in[2].shape[0];
  ONCILLA_TRY(RequireShape(in[1], PartialShape({count, Dim(4)}), "boxes"));
  if (!count.known() && in[1].shape.ranked()) count = in[1].shape[0];
  return Facts{Fact::Of(DType::kF32, PartialShape({count, size[0], size[1], x[3]}))};
}

Result<Facts> InferScaleAndTranslate(const ScaleAndTranslateAttrs& attrs,
                                     std::span<const Fact> in) {
  static constexpr std::string_view kKernels[] = {"lanczos1",  "lanczos3",     "lanczos5",
                                                  "gaussian",  "box",          "triangle",
                                                  "keyscubic", "mitchellcubic"};
  bool known = false;
  for (std::string_view kernel : kKernels) known = known || kernel == attrs.kernel;
  if (!known) return InvalidArgument("there is no kernel '", attrs.kernel, "'");
  ONCILLA_TRY(RequireNumber(in[0], "images"));
  ONCILLA_ASSIGN(const std::vector<Dim> x, ImageDims(in[0]));
  ONCILLA_ASSIGN(const std::vector<Dim> size, TwoSizes(in[1]));
  for (size_t i = 2; i < 4; ++i) {
    const std::string_view what = i == 2 ? "scale" : "translation";
    ONCILLA_TRY(RequireF32(in[i], what));
    ONCILLA_TRY(RequireShape(in[i], PartialShape({Dim(2)}), what));
  }
  return Facts{Fact::Of(DType::kF32, PartialShape({x[0], size[0], size[1], x[3]}))};
}

Result<Facts> InferProjectImage(const ProjectImageAttrs& attrs, std::span<const Fact> in) {
  if (attrs.beyond != "constant" && attrs.beyond != "reflect" && attrs.beyond != "wrap" &&
      attrs.beyond != "nearest") {
    return InvalidArgument("there is no fill mode '", attrs.beyond, "'");
  }
  ONCILLA_TRY(RequireNumber(in[0], "images"));
  ONCILLA_TRY(RequireF32(in[1], "transforms"));
  ONCILLA_TRY(RequireF32(in[3], "fill_value"));
  ONCILLA_TRY(RequireOne(in[3], "fill_value"));
  ONCILLA_ASSIGN(const std::vector<Dim> x, ImageDims(in[0]));
  ONCILLA_ASSIGN(const std::vector<Dim> size, TwoSizes(in[2]));
  ONCILLA_TRY(RequireShape(in[1], PartialShape({Dim(), Dim(8)}), "transforms"));
  if (in[1].shape.ranked() && in[1].shape[0].known() && in[1].shape[0].size != 1 && x[0].known() &&
      x[0].size != in[1].shape[0].size) {
    return InvalidArgument("there are ", in[1].shape[0], " transforms for ", x[0], " images");
  }
  return Facts{Fact::Of(in[0].dtype, PartialShape({x[0], size[0], size[1], x[3]}))};
}

Result<Facts> InferExtractGlimpse(const ExtractGlimpseAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireF32(in[0], "images"));
  ONCILLA_TRY(RequireF32(in[2], "offsets"));
  ONCILLA_ASSIGN(const std::vector<Dim> x, ImageDims(in[0]));
  ONCILLA_ASSIGN(const std::vector<Dim> size, TwoSizes(in[1]));
  ONCILLA_TRY(RequireShape(in[2], PartialShape({x[0], Dim(2)}), "offsets"));
  return Facts{Fact::Of(DType::kF32, PartialShape({x[0], size[0], size[1], x[3]}))};
}

Result<Facts> InferDrawBoxes(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "images"));
  ONCILLA_TRY(RequireF32(in[1], "boxes"));
  ONCILLA_ASSIGN(const std::vector<Dim> x, ImageDims(in[0]));
  if (x[3].known() && x[3].size != 1 && x[3].size != 3 && x[3].size != 4) {
    return InvalidArgument("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), not ",
                           x[3].size);
  }
  ONCILLA_TRY(RequireShape(in[1], PartialShape({x[0], Dim(), Dim(4)}), "boxes"));
  if (in.size() > 2 && !in[2].absent()) {
    ONCILLA_TRY(RequireF32(in[2], "colors"));
    ONCILLA_TRY(RequireRank(in[2], 2, "colors"));
    if (in[2].shape.ranked() && in[2].shape[1].known() && x[3].known() &&
        in[2].shape[1].size < x[3].size) {
      return InvalidArgument("colors of ", in[2].shape[1].size, " channels for ", x[3].size);
    }
  }
  return Facts{in[0].shape.ranked() ? Fact::Of(in[0].dtype, in[0].shape)
                                    : Fact::Of(in[0].dtype, PartialShape::OfRank(4))};
}

constexpr OpDef kImageOps[] = {
    Op<InferDecodeImage>("DecodeImage",
                         {.inputs = {1, 1}, .host_only = true, .data_dependent = true}),
    Op<InferJpegShape>("JpegShape", {.inputs = {1, 1}, .host_only = true}),
    Op<InferEncodeImage>("EncodeImage", {.inputs = {1, 1}, .host_only = true}),
    Op<InferCropAndResize>(
        "CropAndResize",
        {.inputs = {4, 4}, .plan_inputs = 0b1000, .storage = StorageRule::kCoordinates}),
    Op<InferScaleAndTranslate>("ScaleAndTranslate", {.inputs = {4, 4}, .plan_inputs = 0b10}),
    Op<InferProjectImage>("ProjectImage", {.inputs = {4, 4}, .plan_inputs = 0b100}),
    Op<InferExtractGlimpse>("ExtractGlimpse", {.inputs = {3, 3}, .plan_inputs = 0b10}),
    Op<InferDrawBoxes>("DrawBoxes", {.inputs = {2, 3}}),
};

Status RequireThresholds(std::span<const Fact> in) {
  for (const Fact& fact : in) {
    ONCILLA_TRY(RequireF32(fact, "a threshold"));
    ONCILLA_TRY(RequireOne(fact, "a threshold"));
  }
  return {};
}

Result<Facts> InferSelectBoxes(const SelectBoxesAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireF32(in[0], "boxes"));
  ONCILLA_TRY(RequireF32(in[1], "scores"));
  ONCILLA_TRY(RequireInteger(in[2], "max"));
  ONCILLA_TRY(RequireOne(in[2], "max"));
  ONCILLA_TRY(RequireThresholds(in.subspan(3)));
  ONCILLA_TRY(RequireRank(in[1], 1, "scores"));
  const Dim count = in[1].shape.ranked() ? in[1].shape[0] : Dim();
  ONCILLA_TRY(RequireShape(in[0], PartialShape({count, attrs.overlaps ? count : Dim(4)}), "boxes"));
  Dim most;
  if (attrs.pad && AllIntsKnown(in[2])) {
    ONCILLA_ASSIGN(const std::vector<int64_t> max, NeedInts(in[2], "max"));
    if (max[0] < 0) return InvalidArgument("max_output_size must be non-negative, not ", max[0]);
    most = Dim(max[0]);
  }
  return Facts{Fact::Of(DType::kI32, PartialShape({most})),
               Fact::Of(DType::kF32, PartialShape({most})),
               Fact::Of(DType::kI32, PartialShape(Shape{}))};
}

Result<Facts> InferSelectByClass(const SelectBoxesByClassAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireF32(in[0], "boxes"));
  ONCILLA_TRY(RequireF32(in[1], "scores"));
  ONCILLA_TRY(RequireThresholds(in.subspan(4)));
  ONCILLA_TRY(RequireRank(in[1], 3, "scores"));
  std::vector<Dim> scores(3);
  if (in[1].shape.ranked()) scores = in[1].shape.dims();
  ONCILLA_TRY(RequireShape(in[0], PartialShape({scores[0], scores[1], Dim(), Dim(4)}), "boxes"));
  if (in[0].shape.ranked() && in[0].shape[2].known() && in[0].shape[2].size != 1 &&
      scores[2].known() && in[0].shape[2].size != scores[2].size) {
    return InvalidArgument("boxes of ", in[0].shape[2].size, " classes, scores of ",
                           scores[2].size);
  }
  Dim most;
  if (AllIntsKnown(in[2]) && AllIntsKnown(in[3])) {
    ONCILLA_ASSIGN(const std::vector<int64_t> per_class, NeedInts(in[2], "max per class"));
    ONCILLA_ASSIGN(const std::vector<int64_t> total, NeedInts(in[3], "max total"));
    if (per_class.size() != 1 || per_class[0] < 1) {
      return InvalidArgument("max_size_per_class must be positive");
    }
    if (total.size() != 1 || total[0] < 1) {
      return InvalidArgument("max_total_size must be positive");
    }
    if (!attrs.pad_per_class) {
      most = total[0];
    } else if (scores[2].known()) {
      most = std::min(total[0], SaturatingMul(per_class[0], scores[2].size));
    }
  }
  const Dim batch = scores[0].known() || !in[0].shape.ranked() ? scores[0] : in[0].shape[0];
  return Facts{Fact::Of(DType::kF32, PartialShape({batch, most, Dim(4)})),
               Fact::Of(DType::kF32, PartialShape({batch, most})),
               Fact::Of(DType::kF32, PartialShape({batch, most})),
               Fact::Of(DType::kI32, PartialShape({batch}))};
}

constexpr OpDef kBoxOps[] = {
    Op<InferSelectBoxes>("SelectBoxes",
                         {.inputs = {6, 6}, .plan_inputs = 0b100, .data_dependent = true}),
    Op<InferSelectByClass>("SelectBoxesByClass", {.inputs = {6, 6}, .plan_inputs = 0b1100}),
};

}  // namespace

std::span<const OpDef> ImageOps() { return kImageOps; }
std::span<const OpDef> BoxOps() { return kBoxOps; }

}  // namespace oncilla
