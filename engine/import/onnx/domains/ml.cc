// ai.onnx.ml's ops on features, labels and categories, and linear models.
#include "engine/import/onnx/domains/ml.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/import/lowering/shared_ops.h"
#include "engine/ops/check.h"

namespace oncilla {

namespace {

// A softmax of the scores that are not zero; the others stay zero.
Result<ValueId> AddSoftmaxZero(OnnxLowering& b, ValueId scores, std::string_view role) {
  const ValueId last = b.Ints({-1});
  const ReduceAttrs keep = {.keep_dims = true};
  ONCILLA_ASSIGN(const ValueId bound, b.Scalar(b.fact(scores).dtype, 1e-7));
  ONCILLA_ASSIGN(const ValueId size, b.Add("Abs", {}, {scores}, "size"));
  ONCILLA_ASSIGN(const ValueId counts, b.Add("Greater", {}, {size, bound}, "counts"));
  ONCILLA_ASSIGN(const ValueId most, b.Add("ReduceMax", keep, {scores, last}, "most"));
  ONCILLA_ASSIGN(const ValueId below, b.Add("Sub", {}, {scores, most}, "below"));
  ONCILLA_ASSIGN(const ValueId powers, b.Add("Exp", {}, {below}, "powers"));
  ONCILLA_ASSIGN(const ValueId none, b.Scalar(b.fact(scores).dtype, 0));
  ONCILLA_ASSIGN(const ValueId counted, b.Add("Where", {}, {counts, powers, none}, "counted"));
  ONCILLA_ASSIGN(const ValueId sum, b.Add("ReduceSum", keep, {counted, last}, "sum"));
  return b.Add("Div", {}, {counted, sum}, role);
}

}  // namespace

Result<ValueId> AddPostTransform(OnnxLowering& b, ValueId scores, std::string_view transform,
                                 std::string_view role) {
  if (transform == "NONE") return b.Add("Identity", {}, {scores}, role);
  if (transform == "SOFTMAX") return b.Add(SoftmaxAttrs{.axis = -1}, {scores}, role);
  if (transform == "SOFTMAX_ZERO") return AddSoftmaxZero(b, scores, role);
  if (transform == "LOGISTIC") return b.Add("Sigmoid", {}, {scores}, role);
  if (transform == "PROBIT") {
    // The inverse of the normal distribution's cumulative distribution function.
    return b.Add("Ndtri", {}, {scores}, role);
  }
  return Unsupported("post_transform ", transform);
}

Result<ValueId> AddRows(OnnxLowering& b) {
  const Result<int> rank = b.Rank(0);
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kF32, "x"));
  if (!rank.ok()) return b.Add(EnsureShapeAttrs{.dims = {-1, -1}}, {x}, "rows");
  return *rank == 1 ? b.Unsqueeze(x, {0}, "row") : x;
}

Result<ValueId> AddBothScores(OnnxLowering& b, ValueId score, std::string_view transform) {
  ValueId first = kNoValue, second = score;
  if (transform == "LOGISTIC") {
    ONCILLA_ASSIGN(first, b.Add("Neg", {}, {score}, "other_side"));
    ONCILLA_ASSIGN(first, b.Add("Sigmoid", {}, {first}, "of_first"));
    ONCILLA_ASSIGN(second, b.Add("Sigmoid", {}, {score}, "of_second"));
  } else if (transform == "NONE" || transform == "SOFTMAX" || transform == "SOFTMAX_ZERO") {
    ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF32, 1));
    ONCILLA_ASSIGN(first, b.Add("Sub", {}, {one, score}, "of_first"));
  } else {
    return Unsupported("post_transform ", transform, " of one score for two classes");
  }
  return b.Add(ConcatAttrs{.axis = 1}, {first, second}, "of_both");
}

Result<ValueId> AddLabelAt(OnnxLowering& b, ValueId place, int64_t classes, std::string_view ints,
                           std::string_view strings) {
  ONCILLA_ASSIGN(const std::vector<int64_t> numbers, b.IntList(ints));
  ONCILLA_ASSIGN(const std::vector<Bytes> words, b.StringList(strings));
  if (numbers.empty() == words.empty()) {
    return InvalidArgument("one of ", ints, " and ", strings, " must be given");
  }
  const auto given = static_cast<int64_t>(numbers.size() + words.size());
  if (given != classes) return InvalidArgument(given, " labels for ", classes, " classes");
  const ValueId labels =
      b.Constant(words.empty() ? Tensor::Int64s(numbers)
                               : Tensor::Strings({given}, {words.begin(), words.end()}));
  return b.Add("Gather", {}, {labels, place}, "label");
}

Result<ValueId> AddTopLabel(OnnxLowering& b, ValueId scores, int64_t classes, std::string_view ints,
                            std::string_view strings) {
  ONCILLA_ASSIGN(const ValueId place,
                 b.Add("ArgMax", ArgAttrs{.axis = 1, .keep_dims = false}, {scores}, "top"));
  return AddLabelAt(b, place, classes, ints, strings);
}

namespace {

Result<ValueId> Floats(OnnxLowering& b, std::string_view name) {
  ONCILLA_ASSIGN(const std::vector<float> list, b.FloatList(name));
  return b.Constant(Tensor::Of<float>(DType::kF32, {std::ssize(list)}, list));
}

Result<Values> LowerBinarizer(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float threshold, b.Float("threshold", 0));
  ONCILLA_ASSIGN(const ValueId bound, b.Scalar(DType::kF64, double{threshold}));
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kF64, "x"));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Greater", {}, {x, bound}, "above"));
  return One(b.Cast(above, b.dtype(), ""));
}

// Selects elements along the last axis; a vector counts as one row.
Result<Values> LowerArrayFeatureExtractor(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(const ValueId places,
                 b.Add(ReshapeAttrs{.zero_copies = true}, {b.in(1), b.Ints({-1})}, "places"));
  const GatherAttrs last = {.axis = -1, .negative_indices = false};
  if (rank != 1) return One(b.Add(last, {b.in(0), places}));
  ONCILLA_ASSIGN(const ValueId row, b.Add(last, {b.in(0), places}, "row"));
  return One(b.Unsqueeze(row, {0}, ""));
}

// The list of a map's keys or values, from the attribute of its type with this prefix.
Result<Tensor> ListOf(OnnxLowering& b, const std::string& name) {
  if (b.version() >= 4 && b.HasAttr(name + "_tensor")) {
    ONCILLA_ASSIGN(const Tensor tensor, b.TensorAttr(name + "_tensor"));
    return tensor.Reshaped({tensor.elements()});
  }
  if (b.HasAttr(name + "_strings")) {
    ONCILLA_ASSIGN(const auto words, b.StringList(name + "_strings"));
    return Tensor::Strings({std::ssize(words)}, {words.begin(), words.end()});
  }
  if (b.HasAttr(name + "_int64s")) {
    ONCILLA_ASSIGN(const auto numbers, b.IntList(name + "_int64s"));
    return Tensor::Int64s(numbers);
  }
  if (b.HasAttr(name + "_floats")) {
    ONCILLA_ASSIGN(const auto numbers, b.FloatList(name + "_floats"));
    return Tensor::Of<float>(DType::kF32, {std::ssize(numbers)}, numbers);
  }
  return DataLoss("the list of ", name, " is missing");
}

// The value for keys that the map lacks.
Result<ValueId> DefaultOf(OnnxLowering& b, DType dtype) {
  ONCILLA_ASSIGN(const std::string word, b.String("default_string", "_Unused"));
  ONCILLA_ASSIGN(const int64_t whole, b.Int("default_int64", -1));
  ONCILLA_ASSIGN(const float number, b.Float("default_float", -0.0f));
  if (b.version() >= 4 && b.HasAttr("default_tensor")) {
    ONCILLA_ASSIGN(const Tensor tensor, b.TensorAttr("default_tensor"));
    if (tensor.elements() != 1 || tensor.dtype() != dtype) {
      return InvalidArgument("the default is ", tensor.desc(), " for values of ", dtype);
    }
    return b.Constant(tensor.Reshaped({}));
  }
  if (dtype == DType::kString) return b.Constant(Tensor::Strings({}, {word}));
  if (dtype == DType::kI64) return b.Constant(Tensor::ScalarInt64(whole));
  return b.Scalar(dtype, IsFloat(dtype) ? double{number} : -1);
}

// Looks up by comparing with every key, for numbers that cannot be keys of tables. NaN matches NaN.
Result<ValueId> FindByComparing(OnnxLowering& b, const Tensor& keys, const Tensor& values,
                                ValueId otherwise) {
  const ValueId list = b.Constant(keys);
  ONCILLA_ASSIGN(const ValueId x, b.Unsqueeze(b.in(0), {-1}, "x"));
  ONCILLA_ASSIGN(ValueId same, b.Add("Equal", {}, {x, list}, "same"));
  if (IsFloat(keys.dtype())) {
    ONCILLA_ASSIGN(const ValueId none, b.Add("IsNaN", {}, {x}, "x_nan"));
    ONCILLA_ASSIGN(const ValueId key_none, b.Add("IsNaN", {}, {list}, "keys_nan"));
    ONCILLA_ASSIGN(const ValueId both, b.Add("And", {}, {none, key_none}, "both_nan"));
    ONCILLA_ASSIGN(same, b.Add("Or", {}, {same, both}, "matches"));
  }
  ONCILLA_ASSIGN(const ValueId found, b.Add("ReduceAny", ReduceAttrs{.keep_dims = false},
                                            {same, b.Ints({-1})}, "found"));
  ONCILLA_ASSIGN(const ValueId number, b.Cast(same, DType::kI32, "number"));
  ONCILLA_ASSIGN(
      const ValueId place,
      b.Add("ArgMax", ArgAttrs{.axis = -1, .keep_dims = false, .last = true}, {number}, "place"));
  ONCILLA_ASSIGN(const ValueId value, b.Add("Gather", {}, {b.Constant(values), place}, "value"));
  return Choose(b, found, value, otherwise);
}

// Looks up strings or integers. If a key occurs twice, the last one counts.
Result<ValueId> FindInTable(OnnxLowering& b, const Tensor& keys, const Tensor& values,
                            ValueId otherwise) {
  std::map<std::string, int64_t> last;
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < keys.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    const auto bytes = keys.bytes();
    const auto size = static_cast<size_t>(BytesOf(keys.dtype()));
    last[keys.dtype() == DType::kString
             ? keys.strings()[at]
             : std::string(reinterpret_cast<const char*>(bytes.data()) + at * size, size)] = i;
  }
  for (const auto& [key, place] : last) kept.push_back(place);
  const ValueId places = b.Ints(std::move(kept));
  ONCILLA_ASSIGN(const ValueId k, b.Add("Gather", {}, {b.Constant(keys), places}, "keys"));
  ONCILLA_ASSIGN(const ValueId v, b.Add("Gather", {}, {b.Constant(values), places}, "values"));
  ONCILLA_ASSIGN(const Values table, b.AddAll("TableMake", {}, {k, v}, "table"));
  return b.Add("TableFind", {}, {table[0], table[1], b.in(0), otherwise});
}

Result<Values> LowerLabelEncoder(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Tensor keys, ListOf(b, "keys"));
  ONCILLA_ASSIGN(const Tensor values, ListOf(b, "values"));
  ONCILLA_ASSIGN(const ValueId otherwise, DefaultOf(b, values.dtype()));
  if (keys.elements() != values.elements() || keys.elements() == 0) {
    return InvalidArgument(keys.elements(), " keys for ", values.elements(), " values");
  }
  if (keys.dtype() != b.dtype()) {
    return InvalidArgument("keys of ", keys.dtype(), " for an input of ", b.dtype());
  }
  if (keys.dtype() != DType::kString && !IsInteger(keys.dtype())) {
    return One(FindByComparing(b, keys, values, otherwise));
  }
  return One(FindInTable(b, keys, values, otherwise));
}

// Version 1: maps words to their positions in a list, or positions to words.
Result<Values> LowerFirstLabelEncoder(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::vector<Bytes> words, b.StringList("classes_strings"));
  ONCILLA_ASSIGN(const std::string word, b.String("default_string", "_Unused"));
  ONCILLA_ASSIGN(const int64_t place, b.Int("default_int64", -1));
  if (words.empty()) return DataLoss("the list of classes is missing");
  const int64_t count = std::ssize(words);
  ValueId keys = b.Constant(Tensor::Strings({count}, {words.begin(), words.end()}));
  std::vector<int64_t> numbers(words.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  ValueId values = b.Ints(std::move(numbers));
  ValueId otherwise = b.Constant(Tensor::ScalarInt64(place));
  if (b.dtype() != DType::kString) {
    if (b.dtype() != DType::kI64) return InvalidArgument("of ", b.dtype());
    std::swap(keys, values);
    otherwise = b.Constant(Tensor::Strings({}, {word}));
  } else {
    std::vector<Bytes> sorted = words;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      return Unsupported("with a class that is listed twice");
    }
  }
  ONCILLA_ASSIGN(const Values table, b.AddAll("TableMake", {}, {keys, values}, "table"));
  return One(b.Add("TableFind", {}, {table[0], table[1], b.in(0), otherwise}));
}

// Maps words to numbers, or numbers to words.
Result<Values> LowerCategoryMapper(OnnxLowering& b) {
  ONCILLA_ASSIGN(Tensor keys, ListOf(b, "cats"));
  ONCILLA_ASSIGN(const std::vector<int64_t> list, b.IntList("cats_int64s"));
  Tensor values = Tensor::Int64s(list);
  if (keys.elements() != values.elements() || keys.elements() == 0) {
    return InvalidArgument(keys.elements(), " words for ", values.elements(), " numbers");
  }
  if (b.dtype() != DType::kString) std::swap(keys, values);
  if (keys.dtype() != b.dtype()) return InvalidArgument("of ", b.dtype());
  ONCILLA_ASSIGN(const ValueId otherwise, DefaultOf(b, values.dtype()));
  return One(FindInTable(b, keys, values, otherwise));
}

Result<Values> LowerScaler(OnnxLowering& b) {
  ONCILLA_ASSIGN(const ValueId scale, Floats(b, "scale"));
  ONCILLA_ASSIGN(const ValueId offset, Floats(b, "offset"));
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kF32, "x"));
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Sub", {}, {x, offset}, "moved"));
  return One(b.Add("Mul", {}, {moved, scale}));
}

// Divides rows by their maximum, sum, or root of the sum of squares; a divisor of zero is skipped.
Result<Values> LowerNormalizer(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::string norm, b.String("norm", "MAX"));
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kF32, "x"));
  const char* op = norm == "MAX" ? "ReduceMax" : norm == "L1" ? "ReduceL1" : "ReduceL2";
  if (norm != "MAX" && norm != "L1" && norm != "L2") {
    return InvalidArgument("norm is '", norm, "'");
  }
  ONCILLA_ASSIGN(const ValueId size,
                 b.Add(op, ReduceAttrs{.keep_dims = true}, {x, b.Ints({-1})}, "size"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF32, 0));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF32, 1));
  ONCILLA_ASSIGN(const ValueId none, b.Add("Equal", {}, {size, zero}, "none"));
  ONCILLA_ASSIGN(const ValueId divisor, b.Add("Where", {}, {none, one, size}, "divisor"));
  return One(b.Add("Div", {}, {x, divisor}));
}

Result<Values> LowerImputer(OnnxLowering& b) {
  ValueId replaced = kNoValue, put = kNoValue, hit = kNoValue;
  if (IsFloat(b.dtype())) {
    ONCILLA_ASSIGN(const float value, b.Float("replaced_value_float", 0));
    b.Ignore("replaced_value_int64");
    ONCILLA_ASSIGN(replaced, b.Scalar(b.dtype(), double{value}));
    ONCILLA_ASSIGN(put, Floats(b, "imputed_value_floats"));
    if (std::isnan(value)) {
      ONCILLA_ASSIGN(hit, b.Add("IsNaN", {}, {b.in(0)}, "hit"));
    }
  } else {
    ONCILLA_ASSIGN(const int64_t value, b.Int("replaced_value_int64", 0));
    b.Ignore("replaced_value_float");
    ONCILLA_ASSIGN(std::vector<int64_t> list, b.IntList("imputed_value_int64s"));
    ONCILLA_ASSIGN(replaced, b.Cast(b.Constant(Tensor::ScalarInt64(value)), b.dtype(), "from"));
    put = b.Ints(std::move(list));
  }
  if (b.fact(put).shape.elements().size == 0) return DataLoss("the values to put are missing");
  ONCILLA_ASSIGN(put, b.Cast(put, b.dtype(), "put"));
  if (hit == kNoValue) {
    ONCILLA_ASSIGN(hit, b.Add("Equal", {}, {b.in(0), replaced}, "hit"));
  }
  return One(b.Add("Where", {}, {hit, put, b.in(0)}));
}

// Fails the run where a value equals no category: `same` has a column for each.
Status CheckAllKnown(OnnxLowering& b, ValueId same) {
  ONCILLA_ASSIGN(const ValueId known, b.Add("ReduceAny", ReduceAttrs{.keep_dims = false},
                                            {same, b.Ints({-1})}, "known"));
  ONCILLA_ASSIGN(const ValueId all, b.Add("ReduceAll", {}, {known}, "all_known"));
  const ValueId text = b.Constant(Tensor::Strings({}, {"a value is not one of the categories:"}));
  return b.AddAll(AssertAttrs{}, {all, text, b.in(0)}, "check_categories").status();
}

// 1 for each element that does not occur again.
template <class T>
std::vector<uint8_t> LastPlaces(const std::vector<T>& list) {
  std::map<T, size_t> last;
  for (size_t i = 0; i < list.size(); ++i) last[list[i]] = i;
  std::vector<uint8_t> out(list.size(), 0);
  for (const auto& [key, place] : last) out[place] = 1;
  return out;
}

Result<Values> LowerOneHotEncoder(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool zeros, b.Flag("zeros", true));
  ONCILLA_ASSIGN(const auto words, b.StringList("cats_strings"));
  ONCILLA_ASSIGN(const auto numbers, b.IntList("cats_int64s"));
  const bool text = b.dtype() == DType::kString;
  if (text ? words.empty() : numbers.empty()) return DataLoss("the list of categories is missing");
  const auto count = static_cast<int64_t>(text ? words.size() : numbers.size());
  ValueId same = kNoValue;
  if (text) {
    const ValueId list = b.Constant(Tensor::Strings({count}, {words.begin(), words.end()}));
    ONCILLA_ASSIGN(const ValueId x, b.Unsqueeze(b.in(0), {-1}, "x"));
    ONCILLA_ASSIGN(same, b.Add("EqualStrings", {}, {x, list}, "same"));
  } else {
    ONCILLA_ASSIGN(ValueId x, b.Cast(b.in(0), DType::kI64, "whole"));
    ONCILLA_ASSIGN(x, b.Unsqueeze(x, {-1}, "x"));
    ONCILLA_ASSIGN(same, b.Add("Equal", {}, {x, b.Constant(Tensor::Int64s(numbers))}, "same"));
  }
  if (!zeros) ONCILLA_TRY(CheckAllKnown(b, same));
  // Of a category that is listed several times, only the last position counts.
  const std::vector<uint8_t> last = text ? LastPlaces(words) : LastPlaces(numbers);
  if (std::find(last.begin(), last.end(), 0) != last.end()) {
    const ValueId mask = b.Constant(Tensor::Of<uint8_t>(DType::kBool, {count}, last));
    ONCILLA_ASSIGN(same, b.Add("And", {}, {same, mask}, "same_last"));
  }
  return One(b.Cast(same, DType::kF32, ""));
}

// x [N, F] times the coefficients [classes, F], plus the intercepts.
Result<ValueId> AddLinear(OnnxLowering& b, int64_t targets) {
  ONCILLA_ASSIGN(const std::vector<float> weights, b.FloatList("coefficients"));
  ONCILLA_ASSIGN(const std::vector<float> intercepts, b.FloatList("intercepts"));
  const auto count = std::ssize(weights);
  if (targets < 1 || count == 0 || count % targets != 0) {
    return InvalidArgument(count, " coefficients for ", targets, " targets");
  }
  if (!intercepts.empty() && std::ssize(intercepts) != targets) {
    return InvalidArgument(intercepts.size(), " intercepts for ", targets, " targets");
  }
  ONCILLA_ASSIGN(const ValueId x, AddRows(b));
  const ValueId matrix =
      b.Constant(Tensor::Of<float>(DType::kF32, {targets, count / targets}, weights));
  const ValueId bias = intercepts.empty()
                           ? kNoValue
                           : b.Constant(Tensor::Of<float>(DType::kF32, {targets}, intercepts));
  return b.Add(MatMulAttrs{.transpose_b = true}, {x, matrix, bias}, "scores");
}

Result<Values> LowerLinearRegressor(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t targets, b.Int("targets", 1));
  ONCILLA_ASSIGN(const std::string transform, b.String("post_transform", "NONE"));
  ONCILLA_ASSIGN(const ValueId scores, AddLinear(b, targets));
  return One(AddPostTransform(b, scores, transform, ""));
}

// Two classes with one score: the second class wins if the score is above zero.
Result<Values> LowerOneScore(OnnxLowering& b, const std::string& transform) {
  ONCILLA_ASSIGN(const ValueId score, AddLinear(b, 1));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF32, 0));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Greater", {}, {score, zero}, "above"));
  ONCILLA_ASSIGN(const ValueId number, b.Cast(above, DType::kI64, "number"));
  ONCILLA_ASSIGN(const ValueId place, b.Add(ReshapeAttrs{}, {number, b.Ints({-1})}, "place"));
  ONCILLA_ASSIGN(const ValueId label,
                 AddLabelAt(b, place, 2, "classlabels_ints", "classlabels_strings"));
  ONCILLA_ASSIGN(const ValueId shown, AddBothScores(b, score, transform));
  return Values{label, shown};
}

Result<Values> LowerLinearClassifier(OnnxLowering& b) {
  b.Ignore("multi_class");
  ONCILLA_ASSIGN(const std::string transform, b.String("post_transform", "NONE"));
  ONCILLA_ASSIGN(const std::vector<int64_t> numbers, b.IntList("classlabels_ints"));
  ONCILLA_ASSIGN(const std::vector<Bytes> words, b.StringList("classlabels_strings"));
  ONCILLA_ASSIGN(const std::vector<float> intercepts, b.FloatList("intercepts"));
  const auto classes = static_cast<int64_t>(std::max(numbers.size(), words.size()));
  if (intercepts.size() == 1 && classes == 2) return LowerOneScore(b, transform);
  ONCILLA_ASSIGN(const ValueId scores, AddLinear(b, classes));
  ONCILLA_ASSIGN(const ValueId label,
                 AddTopLabel(b, scores, classes, "classlabels_ints", "classlabels_strings"));
  ONCILLA_ASSIGN(const ValueId shown, AddPostTransform(b, scores, transform, "shown"));
  return Values{label, shown};
}

// Input i as f32 [N, size]: all axes but the first are merged, and missing columns are 0; a vector
// is one row.
Result<ValueId> AddFeatures(OnnxLowering& b, size_t i, int64_t size) {
  if (size < 0) return InvalidArgument("inputdimensions contains ", size);
  ONCILLA_ASSIGN(const int rank, b.Rank(i));
  if (rank < 1) return InvalidArgument("input ", i, " has rank ", rank);
  const auto name = [&](const char* what) { return StrCat(what, i); };
  ONCILLA_ASSIGN(ValueId x, b.Cast(b.in(i), DType::kF32, name("float")));
  if (rank == 1) {
    ONCILLA_ASSIGN(x, b.Unsqueeze(x, {0}, name("row")));
  } else if (rank > 2) {
    ONCILLA_ASSIGN(x, b.Add(FlattenAttrs{.axis = 1}, {x}, name("flat")));
  }
  const PartialShape shape = b.fact(x).shape;
  const Dim width = shape.ranked() ? shape[1] : Dim();
  if (width.known() && width.size == size) return x;
  if (!width.known() || width.size > size) {
    ONCILLA_ASSIGN(
        x, b.Add("Slice", {}, {x, b.Ints({0}), b.Ints({size}), b.Ints({1})}, name("first")));
  }
  if (width.known() && width.size > size) return x;
  ONCILLA_ASSIGN(const ValueId own, b.Sizes(x, 1, 2, name("width")));
  ONCILLA_ASSIGN(const ValueId lacking, b.Add("Sub", {}, {b.Ints({size}), own}, name("lacking")));
  ONCILLA_ASSIGN(const ValueId pads,
                 b.Add(ConcatAttrs{.axis = 0}, {b.Ints({0, 0, 0}), lacking}, name("pads")));
  return b.Add(PadAttrs{}, {x, pads}, name("filled_up"));
}

Result<Values> LowerFeatureVectorizer(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> sizes, b.IntList("inputdimensions"));
  if (sizes.size() != b.inputs()) {
    return InvalidArgument(sizes.size(), " sizes for ", b.inputs(), " inputs");
  }
  Values parts;
  for (size_t i = 0; i < b.inputs(); ++i) {
    ONCILLA_ASSIGN(const ValueId part, AddFeatures(b, i, sizes[i]));
    parts.push_back(part);
  }
  return One(b.Add(ConcatAttrs{.axis = 1}, std::move(parts)));
}

// The result stays a matrix; the keys of its columns are kept separately (maps.h).
Result<Values> LowerZipMap(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> numbers, b.IntList("classlabels_int64s"));
  ONCILLA_ASSIGN(const std::vector<Bytes> words, b.StringList("classlabels_strings"));
  if (numbers.empty() == words.empty()) {
    return InvalidArgument("one of classlabels_int64s and classlabels_strings must be given");
  }
  const auto count = static_cast<int64_t>(numbers.size() + words.size());
  const PartialShape shape = b.in_fact(0).shape;
  if (shape.ranked() && (shape.rank() < 1 || shape.rank() > 2)) {
    return InvalidArgument("an input of rank ", shape.rank());
  }
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  std::vector<int64_t> dims(static_cast<size_t>(rank), -1);
  dims.back() = count;
  ONCILLA_ASSIGN(const ValueId y, b.Add(EnsureShapeAttrs{.dims = std::move(dims)}, {b.in(0)}));
  return Values{y,
                b.Constant(words.empty() ? Tensor::Int64s(numbers)
                                         : Tensor::Strings({count}, {words.begin(), words.end()}))};
}

// The map's value for each word of a vocabulary, in order, as one row; zero for words that it
// lacks. The map comes as two inputs, keys and values.
Result<Values> LowerDictVectorizer(OnnxLowering& b) {
  if (b.inputs() != 2) return Unsupported("of a map that is not an input of the model");
  ONCILLA_ASSIGN(const std::vector<int64_t> numbers, b.IntList("int64_vocabulary"));
  ONCILLA_ASSIGN(const std::vector<Bytes> words, b.StringList("string_vocabulary"));
  if (numbers.empty() == words.empty()) {
    return InvalidArgument("one of int64_vocabulary and string_vocabulary must be given");
  }
  const auto count = static_cast<int64_t>(numbers.size() + words.size());
  const ValueId vocabulary =
      b.Constant(words.empty() ? Tensor::Int64s(numbers)
                               : Tensor::Strings({1, count}, {words.begin(), words.end()}));
  if (b.dtype(0) != b.fact(vocabulary).dtype) {
    return InvalidArgument("keys of ", b.dtype(0), " for a vocabulary of ",
                           b.fact(vocabulary).dtype);
  }
  ONCILLA_ASSIGN(const ValueId row, b.Add(ReshapeAttrs{}, {vocabulary, b.Ints({1, count})}, "row"));
  ValueId none = b.Constant(Tensor::Strings({}, {""}));
  if (b.dtype(1) != DType::kString) {
    ONCILLA_ASSIGN(none, b.Scalar(b.dtype(1), 0));
  }
  ONCILLA_ASSIGN(const Values table, b.AddAll("TableMake", {}, {b.in(0), b.in(1)}, "table"));
  return One(b.Add("TableFind", {}, {table[0], table[1], row, none}));
}

// The values of a map from positions to values as one row: in the order of the keys, or each at the
// position that its key gives.
Result<Values> LowerCastMap(OnnxLowering& b) {
  if (b.inputs() != 2) return Unsupported("of a map that is not an input of the model");
  ONCILLA_ASSIGN(const std::string form, b.String("map_form", "DENSE"));
  ONCILLA_ASSIGN(const std::string to, b.String("cast_to", "TO_FLOAT"));
  ONCILLA_ASSIGN(const int64_t most, b.Int("max_map", 1));
  if (b.dtype(0) != DType::kI64) return InvalidArgument("keys of ", b.dtype(0));
  if (b.dtype(1) != DType::kF32 || to == "TO_STRING") {
    return Unsupported("of values of ", b.dtype(1), " with cast_to ", to);
  }
  if (to != "TO_FLOAT" && to != "TO_INT64") return InvalidArgument("cast_to is '", to, "'");
  ValueId y = kNoValue;
  if (form == "DENSE") {
    ONCILLA_ASSIGN(const ValueId count, b.Add(SizeAttrs{}, {b.in(0)}, "count"));
    ONCILLA_ASSIGN(const ValueId vector, b.Add(ReshapeAttrs{}, {count, b.Ints({1})}, "all"));
    ONCILLA_ASSIGN(const Values sorted,
                   b.AddAll(TopKAttrs{.axis = 0, .largest = false}, {b.in(0), vector}, "sorted"));
    ONCILLA_ASSIGN(y, b.Add(GatherAttrs{}, {b.in(1), sorted[1]}, "values"));
    ONCILLA_ASSIGN(y, b.Unsqueeze(y, {0}, to == "TO_FLOAT" ? "" : "row"));
  } else if (form == "SPARSE") {
    if (most < 1 || most > (int64_t{1} << 30)) return InvalidArgument("max_map is ", most);
    const ValueId zero = b.Constant(Tensor::ScalarInt64(0));
    const ValueId one = b.Constant(Tensor::ScalarInt64(1));
    const ValueId end = b.Constant(Tensor::ScalarInt64(most));
    ONCILLA_ASSIGN(const ValueId places, b.Add("Range", {}, {zero, end, one}, "places"));
    ONCILLA_ASSIGN(const ValueId row, b.Unsqueeze(places, {0}, "row"));
    ONCILLA_ASSIGN(const ValueId none, b.Scalar(DType::kF32, 0));
    ONCILLA_ASSIGN(const Values table, b.AddAll("TableMake", {}, {b.in(0), b.in(1)}, "table"));
    ONCILLA_ASSIGN(y, b.Add("TableFind", {}, {table[0], table[1], row, none},
                            to == "TO_FLOAT" ? "" : "values"));
  } else {
    return InvalidArgument("map_form is '", form, "'");
  }
  return to == "TO_FLOAT" ? Result<Values>(Values{y}) : One(b.Cast(y, DType::kI64, ""));
}

constexpr OnnxOpRow kRows[] = {
    {"ArrayFeatureExtractor", 1, kNewestOnnxMl, 2, "", LowerArrayFeatureExtractor},
    {"Binarizer", 1, kNewestOnnxMl, 1, "", LowerBinarizer},
    {"CastMap", 1, kNewestOnnxMl, 1, "", LowerCastMap},
    {"CategoryMapper", 1, kNewestOnnxMl, 1, "", LowerCategoryMapper},
    {"DictVectorizer", 1, kNewestOnnxMl, 1, "", LowerDictVectorizer},
    {"FeatureVectorizer", 1, kNewestOnnxMl, 1, "", LowerFeatureVectorizer},
    {"Imputer", 1, kNewestOnnxMl, 1, "", LowerImputer},
    {"LabelEncoder", 1, 1, 1, "", LowerFirstLabelEncoder},
    {"LabelEncoder", 2, kNewestOnnxMl, 1, "", LowerLabelEncoder},
    {"LinearClassifier", 1, kNewestOnnxMl, 1, "", LowerLinearClassifier},
    {"LinearRegressor", 1, kNewestOnnxMl, 1, "", LowerLinearRegressor},
    {"Normalizer", 1, kNewestOnnxMl, 1, "", LowerNormalizer},
    {"OneHotEncoder", 1, kNewestOnnxMl, 1, "", LowerOneHotEncoder},
    {"Scaler", 1, kNewestOnnxMl, 1, "", LowerScaler},
    {"ZipMap", 1, kNewestOnnxMl, 1, "", LowerZipMap},
};

}  // namespace

std::span<const OnnxOpRow> OnnxMlRows() { return kRows; }

}  // namespace oncilla
