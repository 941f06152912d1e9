// ONNX's ops that take indices from a tensor, ops whose result size depends on data, and tensors
// generated from attributes or a few numbers.
#include <array>

#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

Result<Values> LowerConstant(OnnxLowering& b) {
  Tensor value;
  if (b.HasAttr("sparse_value")) {
    ONCILLA_ASSIGN(value, b.SparseAttr("sparse_value"));
  } else if (b.HasAttr("value_float")) {
    ONCILLA_ASSIGN(const float number, b.Float("value_float", 0));
    value = Tensor::Scalar(number);
  } else if (b.HasAttr("value_floats")) {
    ONCILLA_ASSIGN(const std::vector<float> list, b.FloatList("value_floats"));
    value = Tensor::Of<float>(DType::kF32, {std::ssize(list)}, list);
  } else if (b.HasAttr("value_int")) {
    ONCILLA_ASSIGN(const int64_t number, b.Int("value_int", 0));
    value = Tensor::ScalarInt64(number);
  } else if (b.HasAttr("value_ints")) {
    ONCILLA_ASSIGN(const std::vector<int64_t> list, b.IntList("value_ints"));
    value = Tensor::Int64s(list);
  } else if (b.HasAttr("value_string")) {
    ONCILLA_ASSIGN(std::string text, b.String("value_string", ""));
    value = Tensor::Strings({}, {std::move(text)});
  } else if (b.HasAttr("value_strings")) {
    ONCILLA_ASSIGN(const std::vector<Bytes> list, b.StringList("value_strings"));
    value = Tensor::Strings({std::ssize(list)}, {list.begin(), list.end()});
  } else {
    ONCILLA_ASSIGN(value, b.TensorAttr("value"));
  }
  return Values{b.Constant(std::move(value))};
}

// Attribute `value` is a tensor of one element; a float zero if it is missing.
Result<Values> LowerConstantOfShape(OnnxLowering& b) {
  Tensor value = Tensor::Scalar(0);
  if (b.HasAttr("value")) {
    ONCILLA_ASSIGN(const Tensor one, b.TensorAttr("value"));
    if (one.elements() != 1) return InvalidArgument("value has ", one.elements(), " elements");
    value = one.Reshaped({});
  }
  return One(b.Add("Fill", {}, {b.in(0), b.Constant(std::move(value))}));
}

Result<Values> LowerGather(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", 0));
  return One(b.Add(GatherAttrs{.axis = axis}, {b.in(0), b.in(1)}));
}

Result<Values> LowerGatherElements(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", 0));
  return One(b.Add(GatherElementsAttrs{.axis = axis}, {b.in(0), b.in(1)}));
}

Result<Values> LowerGatherND(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t batch, b.Int("batch_dims", 0));
  return One(b.Add(GatherNDAttrs{.batch_dims = batch}, {b.in(0), b.in(1)}));
}

// The part that all scatter ops share. For bools, a sum is "or" and a product "and", as in NumPy; a
// maximum or minimum of bytes gives the same.
template <class Attrs>
Result<Values> AddScatter(OnnxLowering& b, Attrs attrs) {
  ONCILLA_ASSIGN(attrs.reduction, b.String("reduction", "none"));
  const bool bools = b.dtype() == DType::kBool && attrs.reduction != "none";
  if (!bools) return One(b.Add(attrs, {b.in(0), b.in(1), b.in(2)}));
  attrs.reduction = attrs.reduction == "add" || attrs.reduction == "max" ? "max" : "min";
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kU8, "bytes"));
  ONCILLA_ASSIGN(const ValueId updates, b.Cast(b.in(2), DType::kU8, "update_bytes"));
  ONCILLA_ASSIGN(const ValueId y, b.Add(attrs, {x, b.in(1), updates}, "scattered"));
  return One(b.Cast(y, DType::kBool, ""));
}

// Scatter is the former name of ScatterElements.
Result<Values> LowerScatterElements(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", 0));
  return AddScatter(b, ScatterElementsAttrs{.axis = axis});
}

Result<Values> LowerScatterND(OnnxLowering& b) { return AddScatter(b, ScatterNDAttrs{}); }

// Indices and depth may have any numeric type.
Result<Values> LowerOneHot(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", -1));
  ValueId indices = b.in(0), depth = b.in(1);
  if (!IsInteger(b.dtype(0))) {
    ONCILLA_ASSIGN(indices, b.Cast(indices, DType::kI64, "indices"));
  }
  if (!IsInteger(b.dtype(1))) {
    ONCILLA_ASSIGN(depth, b.Cast(depth, DType::kI64, "depth"));
  }
  return One(b.Add(OneHotAttrs{.axis = axis, .negative_indices = true}, {indices, depth, b.in(2)}));
}

// 16-bit floats are computed in a wider type (from opset 27 on), so that x + 1 never equals x.
Result<Values> LowerRange(OnnxLowering& b) {
  const DType dtype = b.dtype();
  DType compute = dtype;
  if (b.version() >= 27) {
    ONCILLA_ASSIGN(const DType stash, b.Type("stash_type", DType::kF32));
    if (dtype == DType::kF16 || dtype == DType::kBF16) compute = stash;
  }
  Values bounds;
  for (size_t i = 0; i < 3; ++i) {
    ValueId given = b.in(i);
    if (given == kNoValue) {  // com.microsoft's Range has the default step 1
      ONCILLA_ASSIGN(given, b.Scalar(dtype, 1));
    }
    ONCILLA_ASSIGN(const ValueId bound, b.Cast(given, compute, StrCat("bound", i)));
    bounds.push_back(bound);
  }
  ONCILLA_ASSIGN(const ValueId y,
                 b.Add("Range", {}, std::move(bounds), compute == dtype ? "" : "wide"));
  return One(b.Cast(y, dtype, ""));
}

// Writes rows into a cache at positions along an axis (the keys or values of one step).
Result<Values> LowerTensorScatter(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis_attr, b.Int("axis", -2));
  ONCILLA_ASSIGN(const std::string mode, b.String("mode", "linear"));
  if (mode != "linear" && mode != "circular") return InvalidArgument("mode is '", mode, "'");
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(axis_attr, rank));
  if (axis == 0) return InvalidArgument("axis is that of the batch");
  ONCILLA_ASSIGN(ValueId size, b.Sizes(b.in(0), axis, axis + 1, "size_vector"));
  ONCILLA_ASSIGN(ValueId rows, b.Sizes(b.in(1), axis, axis + 1, "rows_vector"));
  ONCILLA_ASSIGN(rows, b.Add("Squeeze", {}, {rows, b.Ints({0})}, "rows"));
  const ValueId none = b.Constant(Tensor::ScalarInt64(0));
  const ValueId one = b.Constant(Tensor::ScalarInt64(1));
  ONCILLA_ASSIGN(ValueId place, b.Add("Range", {}, {none, rows, one}, "row"));
  if (b.has(2)) {
    ONCILLA_ASSIGN(const ValueId first, b.Unsqueeze(b.in(2), {1}, "first"));
    ONCILLA_ASSIGN(place, b.Add("Add", {}, {first, place}, "place"));
  } else {
    ONCILLA_ASSIGN(place, b.Unsqueeze(place, {0}, "place"));
  }
  if (mode == "circular") {
    ONCILLA_ASSIGN(place, b.Add("FloorMod", {}, {place, size}, "around"));
  } else {
    // A negative position does not count from the end; it must fail like any outside the cache.
    ONCILLA_ASSIGN(const ValueId before, b.Add("Less", {}, {place, none}, "before"));
    ONCILLA_ASSIGN(place, b.Add("Where", {}, {before, size, place}, "checked"));
  }
  // Reshape [N, rows] to the shape of the update.
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  ONCILLA_ASSIGN(place, b.Unsqueeze(place, std::move(axes), "along"));
  ONCILLA_ASSIGN(const ValueId shape, b.Sizes(b.in(1), 0, rank, "update_shape"));
  ONCILLA_ASSIGN(place, b.Add("Expand", {}, {place, shape}, "places"));
  return One(b.Add(ScatterElementsAttrs{.axis = axis}, {b.in(0), place, b.in(1)}));
}

Result<Values> LowerShape(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t start, b.Int("start", 0));
  ONCILLA_ASSIGN(const int64_t end, b.Int("end", ShapeAttrs().end));
  return One(b.Add(ShapeAttrs{.start = start, .end = end}, {b.in(0)}));
}

Result<Values> LowerCompress(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", kFlatAxis));
  ValueId condition = b.in(1);
  // The standard wants rank 1. ONNX Runtime takes the elements of any shape in order, which is how
  // Paddle's masked_select is exported.
  if (const PartialShape& shape = b.in_fact(1).shape; shape.ranked() && shape.rank() != 1) {
    ONCILLA_ASSIGN(condition, b.Add("Reshape", {}, {condition, b.Ints({-1})}, "condition"));
  }
  return One(b.Add(CompressAttrs{axis}, {b.in(0), condition}));
}

Result<Values> LowerUnique(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool sorted, b.Flag("sorted", true));
  ONCILLA_ASSIGN(const int64_t axis, b.Int("axis", kFlatAxis));
  return b.AddAll(UniqueAttrs{.axis = axis, .sorted = sorted}, {b.in(0)});
}

Result<Values> LowerEyeLike(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t k, b.Int("k", 0));
  ONCILLA_ASSIGN(const DType to, b.Type("dtype", b.dtype()));
  return One(b.Add(EyeLikeAttrs{.k = k, .to = to}, {b.in(0)}));
}

Result<Values> LowerTrilu(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool upper, b.Flag("upper", true));
  return One(b.Add(TriluAttrs{.upper = upper}, {b.in(0), b.in(1)}));
}

Result<Values> LowerNonMaxSuppression(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool centre, b.Flag("center_point_box", false));
  return One(b.Add(NonMaxSuppressionAttrs{.center_point_box = centre}, b.all_inputs()));
}

constexpr OnnxOpRow kRows[] = {
    {"Compress", 9, kNewestOnnxOpset, 2, "", LowerCompress},
    {"Constant", 1, kNewestOnnxOpset, 0, "", LowerConstant},
    {"ConstantOfShape", 9, kNewestOnnxOpset, 1, "", LowerConstantOfShape},
    {"EyeLike", 9, kNewestOnnxOpset, 1, "", LowerEyeLike},
    {"Gather", 1, kNewestOnnxOpset, 2, "", LowerGather},
    {"GatherElements", 11, kNewestOnnxOpset, 2, "", LowerGatherElements},
    {"GatherND", 11, kNewestOnnxOpset, 2, "", LowerGatherND},
    {"NonMaxSuppression", 10, kNewestOnnxOpset, 2, "", LowerNonMaxSuppression},
    {"NonZero", 9, kNewestOnnxOpset, 1, "NonZero"},
    {"OneHot", 9, kNewestOnnxOpset, 3, "", LowerOneHot},
    {"Range", 11, kNewestOnnxOpset, 3, "", LowerRange},
    {"Scatter", 9, kNewestOnnxOpset, 3, "", LowerScatterElements},
    {"ScatterElements", 11, kNewestOnnxOpset, 3, "", LowerScatterElements},
    {"ScatterND", 11, kNewestOnnxOpset, 3, "", LowerScatterND},
    {"Shape", 1, kNewestOnnxOpset, 1, "", LowerShape},
    {"Size", 1, kNewestOnnxOpset, 1, "Size"},
    {"TensorScatter", 24, kNewestOnnxOpset, 2, "", LowerTensorScatter},
    {"Trilu", 14, kNewestOnnxOpset, 1, "", LowerTrilu},
    {"Unique", 11, kNewestOnnxOpset, 1, "", LowerUnique},
};

constexpr OnnxOpRow kMicrosoftRows[] = {
    {"GatherND", 1, kNewestOnnxMicrosoft, 2, "", LowerGatherND},
    {"Range", 1, kNewestOnnxMicrosoft, 2, "", LowerRange},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftIndexingRows() { return kMicrosoftRows; }
std::span<const OnnxOpRow> OnnxIndexingRows() { return kRows; }

}  // namespace oncilla
