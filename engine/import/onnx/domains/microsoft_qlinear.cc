// com.microsoft's ops on quantised tensors, in the same steps as ONNX Runtime's CPU provider: where
// it looks up results in a table of all 256 bytes, so does the graph, and where it computes, the
// graph adds and rounds in the same order. Products and sums of 8-bit integers are exact. Results
// within a few units in the last place of a tie may differ by one step, because ONNX Runtime's
// kernels for newer processors use fused multiply-add.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "engine/import/onnx/ops/quantize.h"
#include "engine/import/onnx/ops/window.h"
#include "engine/tensor/dispatch.h"
#include "engine/tensor/scalar.h"

namespace oncilla {
namespace {

// A scale with its optional zero point, both of rank 0. All of these ops quantise whole tensors;
// some files store the numbers as vectors of one element.
struct Scaling {
  ValueId scale = kNoValue, zero = kNoValue;
};
Result<Scaling> ReadScaling(OnnxLowering& b, size_t scale, size_t zero, const std::string& of) {
  Scaling out;
  if (!b.has(scale)) return DataLoss("the scale of ", of, " is missing");
  if (b.dtype(scale) != DType::kF32) return Unsupported("a scale of ", b.dtype(scale));
  ONCILLA_ASSIGN(out.scale, b.ToScalar(b.in(scale), of + "_scale"));
  if (b.has(zero)) {
    const DType dtype = b.dtype(zero);
    if (dtype != DType::kU8 && dtype != DType::kI8) return Unsupported("a zero point of ", dtype);
    ONCILLA_ASSIGN(out.zero, b.ToScalar(b.in(zero), of + "_zero"));
  }
  return out;
}

// A zero point has the type of the tensor that it belongs to.
Status CheckZero(OnnxLowering& b, const Scaling& scaling, DType dtype) {
  if (scaling.zero == kNoValue || b.fact(scaling.zero).dtype == dtype) return Status();
  return InvalidArgument("a zero point of ", b.fact(scaling.zero).dtype, " for ", dtype);
}

// A quantised operand.
struct Operand : Scaling {
  ValueId x = kNoValue;
  DType dtype = DType::kInvalid;
};
Result<Operand> ReadOperand(OnnxLowering& b, size_t x, const std::string& of) {
  if (!b.has(x)) return DataLoss(of, " is missing");
  ONCILLA_ASSIGN(const Scaling scaling, ReadScaling(b, x + 1, x + 2, of));
  Operand out = {scaling, b.in(x), b.dtype(x)};
  if (out.dtype != DType::kU8 && out.dtype != DType::kI8) return Unsupported("of ", out.dtype);
  ONCILLA_TRY(CheckZero(b, out, out.dtype));
  return out;
}

// x - zero point, in i32.
Result<ValueId> Raised(OnnxLowering& b, const Operand& operand, const std::string& of) {
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(operand.x, DType::kI32, of + "_wide"));
  if (operand.zero == kNoValue) return wide;
  ONCILLA_ASSIGN(const ValueId zero, b.Cast(operand.zero, DType::kI32, of + "_wide_zero"));
  return b.Add("Sub", {}, {wide, zero}, of + "_raised");
}

// (x - zero point) * scale, in float.
Result<ValueId> Widened(OnnxLowering& b, const Operand& operand, const std::string& of) {
  ONCILLA_ASSIGN(const ValueId raised, Raised(b, operand, of));
  ONCILLA_ASSIGN(const ValueId real, b.Cast(raised, DType::kF32, of + "_real"));
  return b.Add("Mul", {}, {real, operand.scale}, of + "_scaled");
}

// The zero point in float; 0 if there is none.
Result<ValueId> ZeroInFloat(OnnxLowering& b, const Scaling& scaling, const std::string& of) {
  if (scaling.zero == kNoValue) return b.Scalar(DType::kF32, 0);
  return b.Cast(scaling.zero, DType::kF32, of + "_float_zero");
}

// Quantises as ONNX Runtime does: x / scale is rounded first, and then the zero point is added.
Result<ValueId> Quantized(OnnxLowering& b, ValueId x, const Scaling& y, DType to) {
  ONCILLA_ASSIGN(const ValueId steps, b.Add("Div", {}, {x, y.scale}, "steps"));
  return RoundInto(b, steps, y.zero, to);
}

// Scales and zero points as numbers, if all of them are constants.
struct Numbers {
  double scale = 1, zero = 0;
};
std::optional<Numbers> NumbersOf(OnnxLowering& b, const Scaling& scaling) {
  Numbers out;
  const auto read = [&](ValueId value, double& number) {
    if (!b.fact(value).has_value()) return false;
    const auto read = ToDoubles(b.fact(value).value);
    if (!read.ok() || read->size() != 1) return false;
    number = (*read)[0];
    return true;
  };
  if (!read(scaling.scale, out.scale)) return std::nullopt;
  if (scaling.zero != kNoValue && !read(scaling.zero, out.zero)) return std::nullopt;
  return out;
}

// Applies `fn` to each of the 256 values of T, in the order of their bytes: dequantised, computed
// and quantised again in float.
using FloatFunction = std::function<float(float)>;
template <class T>
Tensor TableOf(const Numbers& x, const Numbers& y, const FloatFunction& fn) {
  using Limits = std::numeric_limits<T>;
  const int x_zero = static_cast<int>(x.zero), y_zero = static_cast<int>(y.zero);
  const auto least = static_cast<float>(Limits::min() - y_zero);
  const auto most = static_cast<float>(Limits::max() - y_zero);
  std::vector<T> table(256);
  for (size_t i = 0; i < table.size(); ++i) {
    const int number = static_cast<T>(i);
    const float real = static_cast<float>(x.scale) * static_cast<float>(number - x_zero);
    const float steps = fn(real) / static_cast<float>(y.scale);
    // NaN becomes the lowest number.
    const float cut = steps > least ? std::min(steps, most) : least;
    table[i] = static_cast<T>(static_cast<int>(std::nearbyint(cut)) + y_zero);
  }
  return Tensor::Of<T>(kDTypeOf<T>, {256}, table);
}

// fn of a quantised operand, by a table; `from` and `to` are the scaling of operand and result.
Result<ValueId> LookedUp(OnnxLowering& b, const Operand& x, const Numbers& from, const Numbers& to,
                         const FloatFunction& fn, const std::string& role) {
  const bool is_signed = x.dtype == DType::kI8;
  const ValueId table =
      b.Constant(is_signed ? TableOf<int8_t>(from, to, fn) : TableOf<uint8_t>(from, to, fn));
  return b.Add("ByteTable", {}, {x.x, table}, role);
}

// Converts operands to y's scale and zero point by tables. Returns nothing if a scale or zero point
// is not constant.
Result<std::optional<Values>> OfOneScale(OnnxLowering& b, std::span<const Operand> operands,
                                         const Scaling& y) {
  const auto to = NumbersOf(b, y);
  Values out;
  for (const Operand& x : operands) {
    ONCILLA_TRY(CheckZero(b, y, x.dtype));
    const auto from = NumbersOf(b, x);
    if (!from || !to) return std::optional<Values>();
    if (from->scale == to->scale && from->zero == to->zero) {
      out.push_back(x.x);
      continue;
    }
    const auto same = [](float v) { return v; };
    ONCILLA_ASSIGN(const ValueId moved,
                   LookedUp(b, x, *from, *to, same, StrCat("operand", out.size())));
    out.push_back(moved);
  }
  return std::optional<Values>(std::move(out));
}

// An op with one operand: a table if all scales and zero points are constants, otherwise the nodes
// that `add` adds, in float.
using AddFunction = std::function<Result<ValueId>(ValueId)>;
Result<Values> LowerUnary(OnnxLowering& b, const FloatFunction& fn, const AddFunction& add) {
  ONCILLA_ASSIGN(const Operand x, ReadOperand(b, 0, "x"));
  ONCILLA_ASSIGN(const Scaling y, ReadScaling(b, 3, 4, "y"));
  ONCILLA_TRY(CheckZero(b, y, x.dtype));
  const auto from = NumbersOf(b, x), to = NumbersOf(b, y);
  if (from && to) return One(LookedUp(b, x, *from, *to, fn, ""));
  ONCILLA_ASSIGN(const ValueId real, Widened(b, x, "x"));
  ONCILLA_ASSIGN(const ValueId result, add(real));
  return One(Quantized(b, result, y, x.dtype));
}

Result<Values> LowerQLinearSigmoid(OnnxLowering& b) {
  // Exact sigmoids give the same tables as ONNX Runtime's approximation, since no result is that
  // close to a tie.
  const auto fn = [](float v) { return static_cast<float>(1 / (1 + std::exp(-double{v}))); };
  return LowerUnary(b, fn, [&](ValueId v) { return b.Add("Sigmoid", {}, {v}, "result"); });
}

Result<Values> LowerQLinearLeakyRelu(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 0.01f));
  const auto fn = [=](float v) { return v >= 0 ? v : alpha * v; };
  return LowerUnary(
      b, fn, [&](ValueId v) { return b.Add("LeakyRelu", AlphaAttrs{alpha}, {v}, "result"); });
}

// The order of ONNX Runtime: the zero points are combined in one number, which is added first.
Result<Values> LowerQLinearAdd(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Operand x, ReadOperand(b, 0, "a"));
  ONCILLA_ASSIGN(const Operand y, ReadOperand(b, 3, "b"));
  ONCILLA_ASSIGN(const Scaling z, ReadScaling(b, 6, 7, "c"));
  ONCILLA_TRY(CheckZero(b, z, x.dtype));
  if (x.dtype != y.dtype) return InvalidArgument("of ", x.dtype, " and ", y.dtype);
  ONCILLA_ASSIGN(const ValueId z_zero, ZeroInFloat(b, z, "c"));
  ONCILLA_ASSIGN(const ValueId x_zero, ZeroInFloat(b, x, "a"));
  ONCILLA_ASSIGN(const ValueId y_zero, ZeroInFloat(b, y, "b"));
  ONCILLA_ASSIGN(const ValueId x_ratio, b.Add("Div", {}, {x.scale, z.scale}, "a_ratio"));
  ONCILLA_ASSIGN(const ValueId y_ratio, b.Add("Div", {}, {y.scale, z.scale}, "b_ratio"));
  ONCILLA_ASSIGN(const ValueId y_offset, b.Add("Mul", {}, {y_ratio, y_zero}, "b_offset"));
  ONCILLA_ASSIGN(const ValueId offsets, b.Add("Fma", {}, {x_ratio, x_zero, y_offset}, "offsets"));
  ONCILLA_ASSIGN(const ValueId fixed, b.Add("Sub", {}, {z_zero, offsets}, "fixed"));
  ONCILLA_ASSIGN(ValueId left, b.Cast(x.x, DType::kF32, "a_real"));
  ONCILLA_ASSIGN(ValueId right, b.Cast(y.x, DType::kF32, "b_real"));
  ONCILLA_ASSIGN(right, b.Add("Fma", {}, {right, y_ratio, fixed}, "b_scaled"));
  ONCILLA_ASSIGN(left, b.Add("Fma", {}, {left, x_ratio, right}, "sum"));
  return One(RoundInto(b, left, kNoValue, x.dtype));
}

Result<Values> LowerQLinearMul(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Operand x, ReadOperand(b, 0, "a"));
  ONCILLA_ASSIGN(const Operand y, ReadOperand(b, 3, "b"));
  ONCILLA_ASSIGN(const Scaling z, ReadScaling(b, 6, 7, "c"));
  ONCILLA_TRY(CheckZero(b, z, x.dtype));
  if (x.dtype != y.dtype) return InvalidArgument("of ", x.dtype, " and ", y.dtype);
  ONCILLA_ASSIGN(const ValueId left, Raised(b, x, "a"));
  ONCILLA_ASSIGN(const ValueId right, Raised(b, y, "b"));
  ONCILLA_ASSIGN(const ValueId product, b.Add("Mul", {}, {left, right}, "product"));
  ONCILLA_ASSIGN(const ValueId real, b.Cast(product, DType::kF32, "real"));
  ONCILLA_ASSIGN(ValueId ratio, b.Add("Mul", {}, {x.scale, y.scale}, "scales"));
  ONCILLA_ASSIGN(ratio, b.Add("Div", {}, {ratio, z.scale}, "ratio"));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {real, ratio}, "scaled"));
  ONCILLA_ASSIGN(const ValueId z_zero, ZeroInFloat(b, z, "c"));
  ONCILLA_ASSIGN(const ValueId moved, b.Add("Add", {}, {scaled, z_zero}, "moved"));
  return One(RoundInto(b, moved, kNoValue, x.dtype));
}

// Exponentials of the differences to the largest number, divided by their sum. As in ONNX Runtime,
// the number of steps that make 1 is an integer. Where that exceeds the type, its kernel for signed
// numbers wraps around; here the result is clipped.
Result<Values> LowerQLinearSoftmax(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t opset, b.NeedInt("opset"));
  ONCILLA_ASSIGN(int64_t axis, b.Int("axis", opset < 13 ? 1 : -1));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  ONCILLA_ASSIGN(axis, NormalizeAxis(axis, rank));
  ONCILLA_ASSIGN(const Operand x, ReadOperand(b, 0, "x"));
  ONCILLA_ASSIGN(const Scaling y, ReadScaling(b, 3, 4, "y"));
  ONCILLA_TRY(CheckZero(b, y, x.dtype));
  // Before opset 13 the axes from `axis` on were treated as one.
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < (opset < 13 ? rank : axis + 1); ++i) axes.push_back(i);
  const ValueId along = b.Ints(std::move(axes));
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(x.x, DType::kI32, "wide"));
  const ReduceAttrs keep = {.keep_dims = true};
  ONCILLA_ASSIGN(const ValueId most, b.Add("ReduceMax", keep, {wide, along}, "most"));
  ValueId powers = kNoValue;
  if (const auto numbers = NumbersOf(b, x)) {
    std::vector<float> table(256);
    for (size_t i = 0; i < table.size(); ++i) {
      table[i] = static_cast<float>(std::exp(-static_cast<double>(i) * numbers->scale));
    }
    const ValueId values = b.Constant(Tensor::Of<float>(DType::kF32, {256}, table));
    ONCILLA_ASSIGN(const ValueId below, b.Add("Sub", {}, {most, wide}, "below"));
    const GatherAttrs place = {.negative_indices = false};
    ONCILLA_ASSIGN(powers, b.Add(place, {values, below}, "powers"));
  } else {
    ONCILLA_ASSIGN(const ValueId below, b.Add("Sub", {}, {wide, most}, "below"));
    ONCILLA_ASSIGN(powers, b.Cast(below, DType::kF32, "real"));
    ONCILLA_ASSIGN(powers, b.Add("Mul", {}, {powers, x.scale}, "scaled"));
    ONCILLA_ASSIGN(powers, b.Add("Exp", {}, {powers}, "powers"));
  }
  ONCILLA_ASSIGN(const ValueId sum, b.Add("ReduceSum", keep, {powers, along}, "sum"));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF32, 1));
  ONCILLA_ASSIGN(ValueId steps, b.Add("Div", {}, {one, y.scale}, "steps_of_one"));
  ONCILLA_ASSIGN(steps, b.Add("Floor", {}, {steps}, "whole_steps"));
  ONCILLA_ASSIGN(const ValueId scaled, b.Add("Mul", {}, {powers, steps}, "in_steps"));
  ONCILLA_ASSIGN(const ValueId shares, b.Add("Div", {}, {scaled, sum}, "shares"));
  return One(RoundInto(b, shares, y.zero, x.dtype));
}

Result<Values> LowerQLinearAveragePool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool last, b.Flag("channels_last", false));
  ONCILLA_ASSIGN(const bool count_pads, b.Flag("count_include_pad", false));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank < 3 || rank > 5) return Unsupported("with ", rank - 2, " spatial axes");
  ONCILLA_ASSIGN(const Window window, ReadOnnxWindow(b, rank - 2, false));
  AveragePoolAttrs attrs = {window.As<PoolWindow>(), count_pads};
  ONCILLA_ASSIGN(attrs.kernel, OnnxSpatialList(b, "kernel_shape", rank - 2));
  if (attrs.kernel.empty()) return DataLoss("attribute 'kernel_shape' is missing");
  ONCILLA_ASSIGN(attrs.ceil, b.Flag("ceil_mode", false));
  // ONNX Runtime also counts elements beyond the padding, unlike every other average pool.
  if (attrs.ceil && count_pads) return Unsupported("with ceil_mode and count_include_pad");
  ONCILLA_ASSIGN(const Operand x, ReadOperand(b, 0, "x"));
  ONCILLA_ASSIGN(const Scaling y, ReadScaling(b, 3, 4, "y"));
  ONCILLA_TRY(CheckZero(b, y, x.dtype));
  ONCILLA_ASSIGN(ValueId z, Widened(b, x, "x"));
  if (!last) {
    ONCILLA_ASSIGN(z, b.ChannelsLast(z, rank));
  }
  ONCILLA_ASSIGN(z, b.Add(attrs, {z}, "result"));
  if (!last) {
    ONCILLA_ASSIGN(z, b.ChannelsFirst(z, rank, "channels_first"));
  }
  ONCILLA_ASSIGN(const ValueId zero, ZeroInFloat(b, y, "y"));
  ONCILLA_ASSIGN(z, b.Add("Div", {}, {z, y.scale}, "steps"));
  ONCILLA_ASSIGN(z, b.Add("Add", {}, {z, zero}, "moved"));
  return One(RoundInto(b, z, kNoValue, x.dtype));
}

// The exact sum over `axes` of the real numbers, times scale / (y scale * count).
Result<Values> LowerMean(OnnxLowering& b, std::vector<int64_t> axes, bool keep_dims) {
  ONCILLA_ASSIGN(const Operand x, ReadOperand(b, 0, "x"));
  ONCILLA_ASSIGN(const Scaling y, ReadScaling(b, 3, 4, "y"));
  ONCILLA_TRY(CheckZero(b, y, x.dtype));
  ValueId count = kNoValue;
  for (const int64_t axis : axes) {
    const auto at = static_cast<int>(axis);
    ONCILLA_ASSIGN(ValueId size, b.Sizes(x.x, at, at + 1, StrCat("size", axis)));
    ONCILLA_ASSIGN(size, b.ToScalar(size, StrCat("count", axis)));
    if (count != kNoValue) {
      ONCILLA_ASSIGN(size, b.Add("Mul", {}, {count, size}, StrCat("counts", axis)));
    }
    count = size;
  }
  ONCILLA_ASSIGN(count, b.Cast(count, DType::kF32, "count"));
  ONCILLA_ASSIGN(const ValueId parts, b.Add("Mul", {}, {y.scale, count}, "parts"));
  ONCILLA_ASSIGN(const ValueId ratio, b.Add("Div", {}, {x.scale, parts}, "ratio"));
  ONCILLA_ASSIGN(const ValueId raised, Raised(b, x, "x"));
  ONCILLA_ASSIGN(const ValueId sum, b.Add("ReduceSum", ReduceAttrs{.keep_dims = keep_dims},
                                          {raised, b.Ints(std::move(axes))}, "sum"));
  return One(AddRequantized(b, sum, ratio, y.zero, x.dtype, ""));
}

Result<Values> LowerQLinearGlobalAveragePool(OnnxLowering& b) {
  ONCILLA_ASSIGN(const bool last, b.Flag("channels_last", false));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  if (rank < 3) return InvalidArgument("an input of rank ", rank);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank - 2; ++i) axes.push_back(i + (last ? 1 : 2));
  return LowerMean(b, std::move(axes), true);
}

// ONNX Runtime defines this op but has no kernel for it; it is rounded like the pool above.
Result<Values> LowerQLinearReduceMean(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> given, b.IntList("axes"));
  ONCILLA_ASSIGN(const int64_t keep_dims, b.NeedInt("keepdims"));
  ONCILLA_ASSIGN(const int rank, b.Rank(0));
  std::vector<int64_t> axes;
  for (int64_t i = 0; given.empty() && i < rank; ++i) axes.push_back(i);
  for (const int64_t axis : given) {
    ONCILLA_ASSIGN(const int at, NormalizeAxis(axis, rank));
    if (std::find(axes.begin(), axes.end(), at) != axes.end()) {
      return InvalidArgument("axis ", axis, " is given twice");
    }
    axes.push_back(at);
  }
  if (axes.empty()) return Unsupported("of a number");
  return LowerMean(b, std::move(axes), keep_dims != 0);
}

// Inputs: scale and zero point of the result, then tensor, scale and zero point of each part.
Result<Values> LowerQLinearConcat(OnnxLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.NeedInt("axis"));
  if (b.inputs() < 5 || (b.inputs() - 2) % 3 != 0) {
    return InvalidArgument("has ", b.inputs(), " inputs, not 2 and 3 of each part");
  }
  ONCILLA_ASSIGN(const Scaling y, ReadScaling(b, 0, 1, "y"));
  std::vector<Operand> parts;
  for (size_t i = 2; i < b.inputs(); i += 3) {
    ONCILLA_ASSIGN(const Operand part, ReadOperand(b, i, StrCat("part", i / 3)));
    if (!parts.empty() && part.dtype != parts[0].dtype) {
      return InvalidArgument("parts of ", parts[0].dtype, " and ", part.dtype);
    }
    parts.push_back(part);
  }
  ONCILLA_ASSIGN(const auto same, OfOneScale(b, parts, y));
  if (same) return One(b.Add(ConcatAttrs{.axis = axis}, *same));
  Values real;
  for (const Operand& part : parts) {
    ONCILLA_ASSIGN(const ValueId x, Widened(b, part, StrCat("part", real.size())));
    real.push_back(x);
  }
  ONCILLA_ASSIGN(const ValueId z, b.Add(ConcatAttrs{.axis = axis}, std::move(real), "result"));
  return One(Quantized(b, z, y, parts[0].dtype));
}

Result<Values> LowerQLinearWhere(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Operand x, ReadOperand(b, 1, "x"));
  ONCILLA_ASSIGN(const Operand y, ReadOperand(b, 4, "y"));
  ONCILLA_ASSIGN(const Scaling z, ReadScaling(b, 7, 8, "z"));
  if (x.dtype != y.dtype) return InvalidArgument("of ", x.dtype, " and ", y.dtype);
  const Operand both[] = {x, y};
  ONCILLA_ASSIGN(const auto same, OfOneScale(b, both, z));
  if (same) return One(b.Add("Where", {}, {b.in(0), (*same)[0], (*same)[1]}));
  ONCILLA_ASSIGN(const ValueId left, Widened(b, x, "x"));
  ONCILLA_ASSIGN(const ValueId right, Widened(b, y, "y"));
  ONCILLA_ASSIGN(const ValueId chosen, b.Add("Where", {}, {b.in(0), left, right}, "result"));
  return One(Quantized(b, chosen, z, x.dtype));
}

constexpr OnnxOpRow kRows[] = {
    {"QLinearAdd", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearAdd},
    {"QLinearAveragePool", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearAveragePool},
    {"QLinearConcat", 1, kNewestOnnxMicrosoft, 5, "", LowerQLinearConcat},
    {"QLinearGlobalAveragePool", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearGlobalAveragePool},
    {"QLinearLeakyRelu", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearLeakyRelu},
    {"QLinearMul", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearMul},
    {"QLinearReduceMean", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearReduceMean},
    {"QLinearSigmoid", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearSigmoid},
    {"QLinearSoftmax", 1, kNewestOnnxMicrosoft, 2, "", LowerQLinearSoftmax},
    {"QLinearWhere", 1, kNewestOnnxMicrosoft, 9, "", LowerQLinearWhere},
};

}  // namespace

std::span<const OnnxOpRow> MicrosoftQLinearRows() { return kRows; }

}  // namespace oncilla
