// Shapes as values, and tensors generated from a few numbers: inference, geometry and rows.
#include <algorithm>
#include <cmath>

#include "engine/ops/array/indexing.h"
#include "engine/ops/known_ints.h"
#include "engine/ops/rules.h"
#include "engine/tensor/dispatch.h"

namespace oncilla {
namespace {

Status RequireCountType(DType to, std::span<const Dim> sizes) {
  if (to != DType::kI32 && to != DType::kI64) {
    return InvalidArgument("sizes are i32 or i64, not ", to);
  }
  for (const Dim& d : sizes) {
    if (to == DType::kI32 && d.known() && d.size > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("the size ", d.size, " does not fit i32");
    }
  }
  return Status();
}

Result<Facts> InferShape(const ShapeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireCountType(attrs.to, {}));
  const PartialShape& shape = in[0].shape;
  if (!shape.ranked()) return Facts{Fact::Of(attrs.to, PartialShape::OfRank(1))};
  const int64_t rank = shape.rank();
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = clamp(attrs.start), end = std::max(start, clamp(attrs.end));
  std::vector<Dim> sizes(shape.dims().begin() + start, shape.dims().begin() + end);
  ONCILLA_TRY(RequireCountType(attrs.to, sizes));
  return Facts{WithCarried(Fact::Of(attrs.to, Shape{end - start}), std::move(sizes))};
}

Result<Facts> InferSize(const SizeAttrs& attrs, std::span<const Fact> in) {
  Dim count = in[0].shape.ranked() ? ProductOf(in[0].shape.dims()) : Dim();
  ONCILLA_TRY(RequireCountType(attrs.to, {&count, 1}));
  return Facts{WithCarried(Fact::Of(attrs.to, Shape{}), std::vector<Dim>{std::move(count)})};
}

Result<Facts> InferRank(const RankAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireCountType(attrs.to, {}));
  Dim rank = in[0].shape.ranked() ? Dim(in[0].shape.rank()) : Dim();
  return Facts{WithCarried(Fact::Of(attrs.to, Shape{}), std::vector<Dim>{std::move(rank)})};
}

Result<Facts> InferFill(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "shape"));
  ONCILLA_TRY(RequireRank(in[0], 1, "shape"));
  const Dim values = in[1].shape.elements();
  if (values.known() && values.size != 1) {
    return InvalidArgument("value has ", values.size, " elements");
  }
  const auto sizes = ReadKnownInts(in[0]);
  if (!sizes) return Facts{Fact::Of(in[1].dtype, PartialShape())};
  if (sizes->size() > kMaxRank) return Unsupported("rank ", sizes->size(), " is above ", kMaxRank);
  std::vector<Dim> dims;
  for (const KnownInt& size : *sizes) {
    if (size.value && *size.value < 0) return InvalidArgument("shape has the size ", *size.value);
    dims.push_back(size.dim);
  }
  Fact out = Fact::Of(in[1].dtype, PartialShape(std::move(dims)));
  const auto value = CarriedElements(in[1]);
  const Dim count = out.shape.elements();
  if (value && value->size() == 1 && out.shape.rank() <= 1 && count.known() &&
      count.size <= kMaxKnownInts) {
    return Facts{WithCarried(std::move(out),
                             std::vector<Dim>(static_cast<size_t>(count.size), value->front()))};
  }
  return Facts{std::move(out)};
}

// The number of elements of a range, computed in the type of its numbers.
template <class T>
Result<int64_t> RangeSize(T start, T limit, T delta) {
  if (delta == T{0}) return InvalidArgument("delta is 0");
  if constexpr (std::is_integral_v<T>) {
    const __int128 span = static_cast<__int128>(limit) - start, step = delta;
    if ((span > 0) != (step > 0) || span == 0) return 0;
    const __int128 count = (span + step - (step > 0 ? 1 : -1)) / step;
    if (count > std::numeric_limits<int64_t>::max()) {
      return InvalidArgument("has more elements than an int64 counts");
    }
    return static_cast<int64_t>(count);
  } else {
    const T count = std::ceil((limit - start) / delta);
    if (!(count < T{9.0e18f})) return InvalidArgument("has no finite number of elements");
    return count > 0 ? static_cast<int64_t>(count) : 0;
  }
}

Result<int64_t> RangeSize(std::span<const Fact> in) {
  Result<int64_t> size = 0;
  DispatchDType(in[0].dtype, [&]<class T>(TypeTag<T>) {
    auto at = [&](size_t i) {
      T value;
      std::copy_n(in[i].value.bytes().data(), sizeof(T), reinterpret_cast<std::byte*>(&value));
      return value;
    };
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) {
      size = RangeSize<T>(at(0), at(1), at(2));
    } else {  // half-precision floats are computed in float
      size = RangeSize<float>(static_cast<float>(at(0)), static_cast<float>(at(1)),
                              static_cast<float>(at(2)));
    }
  });
  return size;
}

Result<Facts> InferRange(const NoAttrs&, std::span<const Fact> in) {
  static constexpr std::string_view kNames[] = {"start", "limit", "delta"};
  ONCILLA_TRY(RequireSameDType(in));
  ONCILLA_TRY(RequireNumber(in[0], "start"));
  bool known = true;
  std::optional<KnownInt> ints[3];
  for (size_t i = 0; i < 3; ++i) {
    const Dim count = in[i].shape.elements();
    if (count.known() && count.size != 1) {
      return InvalidArgument(kNames[i], " has ", count.size, " elements");
    }
    known &= in[i].has_value();
    if (const auto value = ReadKnownInts(in[i]); value && value->size() == 1) {
      ints[i] = value->front();
    }
  }
  if (known) {
    ONCILLA_ASSIGN(const int64_t size, RangeSize(in));
    Fact out = Fact::Of(in[0].dtype, Shape{size});
    if (!ints[0] || !ints[2] || size > kMaxKnownInts) return Facts{std::move(out)};
    std::vector<Dim> elements;
    // Each number fits its type, but the distance from the first one may not, so the difference is
    // unsigned.
    const auto first = static_cast<uint64_t>(*ints[0]->value);
    const auto step = static_cast<uint64_t>(*ints[2]->value);
    for (uint64_t i = 0; i < static_cast<uint64_t>(size); ++i) {
      elements.emplace_back(static_cast<int64_t>(first + i * step));
    }
    return Facts{WithCarried(std::move(out), std::move(elements))};
  }
  // The range from 0 in steps of 1 to a limit that is a named size: that size.
  Dim size;
  const auto &start = ints[0], &limit = ints[1], &delta = ints[2];
  if (start && limit && delta && start->value == 0 && delta->value == 1) size = limit->dim;
  return Facts{Fact::Of(in[0].dtype, PartialShape({size}))};
}

Result<Facts> InferOneHot(const OneHotAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "indices"));
  ONCILLA_TRY(RequireInteger(in[1], "depth"));
  const Dim values = in[2].shape.elements();
  if (values.known() && values.size != 2) {
    return InvalidArgument("values has ", values.size, " elements, not off and on");
  }
  const PartialShape& from = in[0].shape;
  const auto depth = ReadKnownInts(in[1]);
  if (depth && depth->size() != 1) return InvalidArgument("depth has ", depth->size(), " elements");
  if (depth && depth->front().value && *depth->front().value < 0) {
    return InvalidArgument("depth is ", *depth->front().value);
  }
  if (!from.ranked()) return Facts{Fact::Of(in[2].dtype, PartialShape())};
  if (from.rank() >= kMaxRank) return Unsupported("rank ", from.rank() + 1, " is above ", kMaxRank);
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, from.rank() + 1));
  std::vector<Dim> dims = from.dims();
  dims.insert(dims.begin() + axis, depth ? depth->front().dim : Dim());
  return Facts{Fact::Of(in[2].dtype, PartialShape(std::move(dims)))};
}

constexpr OpDef kShapeOps[] = {
    Op<InferShape>("Shape", {}),
    Op<InferSize>("Size", {}),
    Op<InferRank>("Rank", {}),
    Op<InferFill>("Fill", {.inputs = {2, 2}, .plan_inputs = 0b1}),
    Op<InferRange>("Range", {.inputs = {3, 3}, .plan_inputs = 0b111}),
    Op<InferOneHot>(
        "OneHot", {.inputs = {3, 3}, .plan_inputs = 0b10, .axes = AxesBy(AxisRule::kInserts, -1)}),
};

}  // namespace

Result<Moves> FillMoves(const NodeView& node) {
  return Moves{{1, 0, 0, 0, {{node.outputs[0].desc().elements(), 0, 1}}}};
}

std::span<const OpDef> ShapeOps() { return kShapeOps; }

}  // namespace oncilla
