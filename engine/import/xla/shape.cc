// Reshapes, padding and counts.
#include "engine/import/xla/shape.h"

#include <algorithm>

#include "engine/import/lowering/shared_ops.h"

namespace oncilla {
namespace {

// The product of the sizes, or -1 if one is not known.
int64_t KnownSize(const Lowering& b, const XlaSize& size) {
  if (size.of == kNoValue) return size.number;
  const PartialShape& shape = b.fact(size.of).shape;
  int64_t product = 1;
  for (int axis : size.axes) {
    if (axis >= shape.rank() || !shape[axis].known()) return -1;
    product = SaturatingMul(product, shape[axis].size);
  }
  return product;
}

}  // namespace

Result<ValueId> ShapeOf(Lowering& b, const std::vector<XlaSize>& sizes, std::string_view role) {
  std::vector<int64_t> known;
  for (const XlaSize& size : sizes) known.push_back(KnownSize(b, size));
  if (std::find(known.begin(), known.end(), -1) == known.end()) return b.Ints(std::move(known));
  Values parts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (known[i] >= 0) {
      parts.push_back(b.Ints({known[i]}));
      continue;
    }
    ValueId product = kNoValue;
    for (int axis : sizes[i].axes) {
      ONCILLA_ASSIGN(const ValueId size,
                     b.Sizes(sizes[i].of, axis, axis + 1, StrCat(role, "_size", i, "_", axis)));
      if (product == kNoValue) {
        product = size;
      } else {
        ONCILLA_ASSIGN(product, b.Add("Mul", AttrMap(), {product, size},
                                      StrCat(role, "_product", i, "_", axis)));
      }
    }
    parts.push_back(product);
  }
  return b.Add(ConcatAttrs{.axis = 0}, std::move(parts), StrCat(role, "_shape"));
}

Result<ValueId> ReshapeTo(Lowering& b, ValueId x, const std::vector<XlaSize>& sizes,
                          std::string_view role) {
  std::vector<int64_t> known;
  for (const XlaSize& size : sizes) known.push_back(KnownSize(b, size));
  const PartialShape& shape = b.fact(x).shape;
  if (shape.known() &&
      std::equal(known.begin(), known.end(), shape.dims().begin(), shape.dims().end(),
                 [](int64_t size, const Dim& dim) { return size == dim.size; })) {
    return x;
  }
  // One open size follows from the others, unless one of these is zero.
  const auto open = std::count(known.begin(), known.end(), -1);
  if (open == 0 || (open == 1 && std::count(known.begin(), known.end(), 0) == 0)) {
    return b.Add(ReshapeAttrs(), {x, b.Ints(std::move(known))}, role);
  }
  ONCILLA_ASSIGN(const ValueId to, ShapeOf(b, sizes, role));
  return b.Add(ReshapeAttrs(), {x, to}, role);
}

bool Names(const std::vector<int64_t>& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::vector<int64_t> OtherAxes(int rank, const std::vector<int64_t>& axes) {
  std::vector<int64_t> others;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (!Names(axes, axis)) others.push_back(axis);
  }
  return others;
}

Status CheckAxes(const std::vector<int64_t>& axes, int rank, std::string_view what) {
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool again = std::find(axes.begin(), axes.begin() + static_cast<ptrdiff_t>(i), axes[i]) !=
                       axes.begin() + static_cast<ptrdiff_t>(i);
    if (axes[i] < 0 || axes[i] >= rank || again) {
      return DataLoss(what, " name axis ", axes[i], " of ", rank, again ? " twice" : "");
    }
  }
  return {};
}

namespace {

// x with `count` more elements after each along one axis; those after the last are included.
Result<ValueId> Spread(Lowering& b, ValueId x, ValueId value, int axis, int64_t count,
                       const std::string& role) {
  const int rank = b.fact(x).shape.rank();
  if (rank + 1 > kMaxRank) return Unsupported("padding between elements of rank ", rank);
  ONCILLA_ASSIGN(const ValueId apart, b.Unsqueeze(x, {axis + 1}, StrCat(role, "_apart", axis)));
  std::vector<int64_t> pads(2 * static_cast<size_t>(rank + 1), 0);
  pads[static_cast<size_t>(rank + 1 + axis + 1)] = count;
  ONCILLA_ASSIGN(const ValueId filled, b.Add(PadAttrs(), {apart, b.Ints(std::move(pads)), value},
                                             StrCat(role, "_filled", axis)));
  std::vector<XlaSize> sizes;
  for (int i = 0; i < rank; ++i) {
    sizes.push_back(i == axis ? XlaSize{filled, {i, i + 1}, 1} : XlaSize::Axis(x, i));
  }
  return ReshapeTo(b, filled, sizes, StrCat(role, "_spread", axis));
}

}  // namespace

Result<ValueId> LowerXlaPad(Lowering& b, ValueId x, ValueId value, const XlaPadding& padding,
                            std::string_view role) {
  const PartialShape shape = b.fact(x).shape;
  if (!shape.ranked()) return Unsupported("padding of a tensor of unknown rank");
  const auto rank = static_cast<size_t>(shape.rank());
  if (padding.low.size() != rank || padding.high.size() != rank ||
      padding.interior.size() != rank) {
    return DataLoss("padding for other than ", rank, " axes");
  }
  constexpr int64_t kMost = int64_t{1} << 40;
  std::vector<int64_t> pads;
  bool any = false;
  for (size_t i = 0; i < rank; ++i) {
    if (std::abs(padding.low[i]) > kMost || std::abs(padding.high[i]) > kMost ||
        padding.interior[i] < 0 || padding.interior[i] > kMost) {
      return InvalidArgument("padding of ", padding.low[i], ", ", padding.interior[i], " and ",
                             padding.high[i]);
    }
    pads.push_back(padding.low[i]);
  }
  for (size_t i = 0; i < rank; ++i) pads.push_back(padding.high[i]);
  for (size_t i = 0; i < rank; ++i) {
    const int axis = static_cast<int>(i);
    if (padding.interior[i] == 0 || (shape[axis].known() && shape[axis].size <= 1)) continue;
    ONCILLA_ASSIGN(x, Spread(b, x, value, axis, padding.interior[i],
                             role.empty() ? "pad" : std::string(role)));
    pads[rank + i] -= padding.interior[i];
  }
  for (int64_t pad : pads) any |= pad != 0;
  if (!any) return x;
  return b.Add(PadAttrs(), {x, b.Ints(std::move(pads)), value}, role);
}

Result<ValueId> CountsAlong(Lowering& b, int64_t count, int axis, int rank, DType dtype,
                            std::string_view role) {
  constexpr int64_t kMost = int64_t{1} << 28;
  if (count < 0 || count > kMost) return Unsupported("a count to ", count);
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(i == axis ? count : 1);
  if (dtype == DType::kI32) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
    return b.Constant(Tensor::Of<int32_t>(dtype, shape, values));
  }
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i);
  const ValueId numbers = b.Constant(Tensor::Of<int64_t>(DType::kI64, shape, values));
  return b.Cast(numbers, dtype, role);
}

namespace {

// Whether a vector is a range of the numbers from zero on.
bool IsCount(const Graph& graph, ValueId value) {
  for (int hops = 0; hops < 8; ++hops) {
    const Value& of = graph.value(value);
    if (of.producer == kNoNode) return false;
    const Node& node = graph.node(of.producer);
    if (node.op->name == "Range" && node.inputs.size() == 3) {
      const auto start = KnownInts(graph.fact(node.inputs[0]));
      const auto step = KnownInts(graph.fact(node.inputs[2]));
      return start.has_value() && step.has_value() && start->size() == 1 && step->size() == 1 &&
             (*start)[0].size == 0 && (*step)[0].size == 1;
    }
    if (node.op->name != "Cast" && node.op->name != "Identity") return false;
    value = node.inputs[0];
  }
  return false;
}

}  // namespace

bool IsCountAlong(const Graph& graph, ValueId value, int axis) {
  const int rank = graph.fact(value).shape.rank();
  for (int hops = 0; hops < 8; ++hops) {
    const Value& of = graph.value(value);
    if (of.producer == kNoNode) break;
    const Node& node = graph.node(of.producer);
    const std::string_view op = node.op->name;
    if (op == "Range" || op == "Unsqueeze") {
      // A range of open size, with axes of size one behind it.
      const int trailing = graph.fact(value).shape.rank() - 1;
      const auto axes = op == "Unsqueeze" ? KnownInts(graph.fact(node.inputs[1])) : std::nullopt;
      if (op == "Unsqueeze" && graph.fact(node.inputs[0]).shape.rank() != 1) return false;
      if (op == "Unsqueeze" && !axes.has_value()) return false;
      for (size_t i = 0; axes.has_value() && i < axes->size(); ++i) {
        if ((*axes)[i].size != static_cast<int64_t>(i) + 1) return false;
      }
      const ValueId vector = op == "Unsqueeze" ? node.inputs[0] : value;
      return axis == rank - 1 - trailing && IsCount(graph, vector);
    }
    if (op != "Expand" && op != "Identity" && op != "Cast") return false;
    value = node.inputs[0];
  }
  const Fact& fact = graph.fact(value);
  if (!fact.has_value() || fact.shape.rank() != rank || axis >= rank) return false;
  for (int i = 0; i < rank; ++i) {
    if (i != axis && fact.shape[i].size != 1) return false;
  }
  const Result<std::vector<int64_t>> values = ToInt64s(fact.value);
  if (!values.ok()) return false;
  for (size_t i = 0; i < values->size(); ++i) {
    if ((*values)[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

Result<ValueId> LowerXlaSlice(Lowering& b, ValueId x, ValueId starts, std::vector<int64_t> sizes) {
  const PartialShape& shape = b.fact(x).shape;
  if (AllIntsKnown(b.fact(starts)) && shape.known() &&
      sizes.size() == static_cast<size_t>(shape.rank())) {
    ONCILLA_ASSIGN(std::vector<int64_t> begin, NeedInts(b.fact(starts), "the starts"));
    if (begin.size() != sizes.size()) return InvalidArgument("starts for ", begin.size(), " axes");
    std::vector<int64_t> end;
    for (size_t i = 0; i < begin.size(); ++i) {
      const int64_t whole = shape[static_cast<int>(i)].size;
      if (sizes[i] < 0 || sizes[i] > whole) return InvalidArgument("a slice of size ", sizes[i]);
      begin[i] = std::clamp<int64_t>(begin[i], 0, whole - sizes[i]);
      end.push_back(begin[i] + sizes[i]);
    }
    return b.Add("Slice", AttrMap(), {x, b.Ints(std::move(begin)), b.Ints(std::move(end))});
  }
  return DynamicSlice(b, x, starts, sizes);
}

Result<ValueId> LowerXlaPrecision(Lowering& b, ValueId x, int64_t exponent, int64_t mantissa) {
  const DType dtype = b.fact(x).dtype;
  const DType by = exponent == 8 && mantissa == 7     ? DType::kBF16
                   : exponent == 5 && mantissa == 10  ? DType::kF16
                   : exponent == 8 && mantissa == 23  ? DType::kF32
                   : exponent == 11 && mantissa == 52 ? DType::kF64
                                                      : DType::kInvalid;
  if (by == DType::kInvalid) {
    return Unsupported("to ", exponent, " bits of exponent and ", mantissa, " of mantissa");
  }
  if (by == dtype || BitsOf(by) > BitsOf(dtype)) return x;
  ONCILLA_ASSIGN(const ValueId narrow, b.Cast(x, by, "rounded"));
  return b.Cast(narrow, dtype, "");
}

}  // namespace oncilla
