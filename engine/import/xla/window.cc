// Windows as pools, running sums, or folded element by element.
#include "engine/import/xla/window.h"

#include <algorithm>

namespace oncilla {
namespace {

// Elements of a window that is folded one by one.
constexpr int64_t kMostTaps = 512;

Status Fill(std::vector<int64_t>& values, int rank, int64_t otherwise, int64_t least,
            std::string_view what) {
  if (values.empty()) values.assign(static_cast<size_t>(rank), otherwise);
  if (static_cast<int>(values.size()) != rank) return DataLoss("a window's ", what);
  for (int64_t value : values) {
    if (value < least || value > (int64_t{1} << 31)) return InvalidArgument(what, " of ", value);
  }
  return {};
}

// Axes along which anything happens.
std::vector<int64_t> ActiveAxes(const XlaWindow& w) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < w.size.size(); ++i) {
    if (w.size[i] != 1 || w.strides[i] != 1 || w.low[i] != 0 || w.high[i] != 0) {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  return axes;
}

// A running sum or product: windows of all elements up to each one (or from each one on).
Result<std::optional<Values>> AsRunning(Lowering& b, XlaFold fold, ValueId x, const XlaWindow& w) {
  using Found = std::optional<Values>;
  const std::vector<int64_t> axes = ActiveAxes(w);
  if (axes.size() != 1 || (fold != XlaFold::kAdd && fold != XlaFold::kMul)) return Found();
  const auto axis = static_cast<size_t>(axes[0]);
  const Dim& dim = b.fact(x).shape[static_cast<int>(axis)];
  if (!dim.known() || dim.size != w.size[axis] || w.strides[axis] != 1 || w.dilation[axis] != 1 ||
      b.fact(x).dtype == DType::kBool) {
    return Found();
  }
  const bool forward = w.low[axis] == dim.size - 1 && w.high[axis] == 0;
  const bool back = w.high[axis] == dim.size - 1 && w.low[axis] == 0;
  if (!forward && !back) return Found();
  ONCILLA_ASSIGN(const ValueId y, b.Add(fold == XlaFold::kAdd ? "CumSum" : "CumProd",
                                        CumulativeAttrs{.exclusive = false, .reverse = back},
                                        {x, b.Ints({axes[0]})}));
  return Found(Values{y});
}

struct Pooled {
  ValueId x = kNoValue;
  std::vector<int64_t> axes;  // the windows' axes
  std::vector<int64_t> perm;  // of the axes before the others are merged; empty: none
};

PoolWindow PoolOf(const XlaWindow& w, const std::vector<int64_t>& axes) {
  PoolWindow pool;
  std::vector<int64_t> ends;
  for (int64_t axis : axes) {
    const auto i = static_cast<size_t>(axis);
    pool.kernel.push_back(w.size[i]);
    pool.strides.push_back(w.strides[i]);
    pool.dilations.push_back(w.dilation[i]);
    pool.pads.push_back(w.low[i]);
    ends.push_back(w.high[i]);
  }
  pool.pads.insert(pool.pads.end(), ends.begin(), ends.end());
  return pool;
}

Result<ValueId> AddPool(Lowering& b, XlaFold fold, ValueId x, const PoolWindow& pool) {
  if (fold == XlaFold::kMax) {
    MaxPoolAttrs attrs;
    static_cast<PoolWindow&>(attrs) = pool;
    return b.Add(attrs, {x}, "pool");
  }
  if (fold == XlaFold::kMin) {
    MaxPoolAttrs attrs;
    static_cast<PoolWindow&>(attrs) = pool;
    ONCILLA_ASSIGN(const ValueId negative, b.Add("Neg", AttrMap(), {x}, "negative"));
    ONCILLA_ASSIGN(const ValueId most, b.Add(attrs, {negative}, "pool"));
    return b.Add("Neg", AttrMap(), {most}, "least");
  }
  AveragePoolAttrs attrs;
  static_cast<PoolWindow&>(attrs) = pool;
  attrs.count_pads = true;
  double count = 1;
  for (int64_t size : pool.kernel) count *= static_cast<double>(size);
  ONCILLA_ASSIGN(const ValueId mean, b.Add(attrs, {x}, "pool"));
  ONCILLA_ASSIGN(const ValueId elements, b.Scalar(b.fact(x).dtype, count));
  return b.Add("Mul", AttrMap(), {mean, elements}, "sum");
}

// A pool along one to three axes, with those before them as the batch and those after as channels.
Result<std::optional<Values>> AsPool(Lowering& b, XlaFold fold, ValueId x, ValueId init,
                                     const XlaWindow& w) {
  using Found = std::optional<Values>;
  std::vector<int64_t> axes = ActiveAxes(w);
  const bool kind = fold == XlaFold::kMax || fold == XlaFold::kMin || fold == XlaFold::kAdd;
  if (!kind || axes.empty() || !IsFloat(b.fact(x).dtype)) return Found();
  const int rank = b.fact(x).shape.rank();
  // Axes between those of the windows take part with windows of one element.
  std::vector<int64_t> range;
  for (int64_t axis = axes.front(); axis <= axes.back(); ++axis) range.push_back(axis);
  std::vector<int64_t> perm;
  if (range.size() > 3) {
    if (axes.size() > 3) return Found();
    perm = OtherAxes(rank, axes);
    perm.insert(perm.end(), axes.begin(), axes.end());
  } else {
    axes = range;
  }
  ONCILLA_ASSIGN(const ValueId moved,
                 perm.empty() ? Result<ValueId>(x) : b.Transpose(x, perm, "window_axes"));
  const int first = perm.empty() ? static_cast<int>(axes[0]) : rank - static_cast<int>(axes.size());
  const int count = static_cast<int>(axes.size());
  const auto group = [&](ValueId of, int from, int to) {
    XlaSize size{of, {}, 1};
    for (int i = from; i < to; ++i) size.axes.push_back(i);
    return from == to ? XlaSize::Number(1) : size;
  };
  std::vector<XlaSize> sizes = {group(moved, 0, first)};
  for (int i = 0; i < count; ++i) sizes.push_back(XlaSize::Axis(moved, first + i));
  sizes.push_back(group(moved, first + count, rank));
  ValueId merged = moved;
  if (first != 1 || first + count + 1 != rank) {
    ONCILLA_ASSIGN(merged, ReshapeTo(b, moved, sizes, "merged"));
  }
  ONCILLA_ASSIGN(ValueId y, AddPool(b, fold, merged, PoolOf(w, axes)));
  if (merged != moved) {
    sizes.clear();
    for (int i = 0; i < first; ++i) sizes.push_back(XlaSize::Axis(moved, i));
    for (int i = 0; i < count; ++i) sizes.push_back(XlaSize::Axis(y, 1 + i));
    for (int i = first + count; i < rank; ++i) sizes.push_back(XlaSize::Axis(moved, i));
    ONCILLA_ASSIGN(y, ReshapeTo(b, y, sizes, "apart"));
  }
  if (!perm.empty()) {
    std::vector<int64_t> back(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) {
      back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    }
    ONCILLA_ASSIGN(y, b.Transpose(y, back, "axes_back"));
  }
  if (IsNeutral(fold, b.fact(init))) return Found(Values{y});
  ONCILLA_ASSIGN(y, AddFold(b, fold, y, init, "with_init"));
  return Found(Values{y});
}

// Folds the elements of the windows one by one: the first of all windows, the second, and so on.
Result<Values> ByTaps(Lowering& b, const Values& operands, const Values& inits, const XlaWindow& w,
                      const Graph& body) {
  const PartialShape shape = b.fact(operands[0]).shape;
  if (!shape.known()) return Unsupported("windows with a body of their own over open sizes");
  int64_t taps = 1;
  for (int64_t size : w.size) taps = SaturatingMul(taps, size);
  if (taps > kMostTaps)
    return Unsupported("windows of ", taps, " elements with a body of their own");
  const size_t rank = w.size.size();
  Values padded, folded = inits;
  XlaPadding padding{w.low, w.high, std::vector<int64_t>(rank, 0)};
  std::vector<int64_t> out;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t whole = shape[static_cast<int>(i)].size + w.low[i] + w.high[i];
    const int64_t extent = (w.size[i] - 1) * w.dilation[i] + 1;
    out.push_back(whole < extent ? 0 : (whole - extent) / w.strides[i] + 1);
    if (out.back() == 0) return Unsupported("windows larger than what they are of");
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    ONCILLA_ASSIGN(const ValueId x,
                   LowerXlaPad(b, operands[i], inits[i], padding, StrCat("padded", i)));
    padded.push_back(x);
  }
  std::vector<int64_t> tap(rank, 0), axes = OtherAxes(static_cast<int>(rank), {});
  for (int64_t t = 0; t < taps; ++t) {
    std::vector<int64_t> starts, ends;
    for (size_t i = 0; i < rank; ++i) {
      starts.push_back(tap[i] * w.dilation[i]);
      ends.push_back(starts.back() + (out[i] - 1) * w.strides[i] + 1);
    }
    Values arguments = folded;
    for (size_t i = 0; i < padded.size(); ++i) {
      ONCILLA_ASSIGN(const ValueId part, b.Add("Slice", AttrMap(),
                                               {padded[i], b.Ints(starts), b.Ints(ends),
                                                b.Ints(axes), b.Ints(w.strides)},
                                               StrCat("tap", t, "_", i)));
      arguments.push_back(part);
    }
    ONCILLA_ASSIGN(folded, ApplyBody(b, body, arguments, StrCat("fold", t)));
    for (size_t i = rank; i-- > 0 && ++tap[i] == w.size[i];) tap[i] = 0;
  }
  return folded;
}

}  // namespace

Result<Values> LowerXlaReduceWindow(Lowering& b, const Values& operands, const Values& inits,
                                    XlaWindow window, const Graph& body) {
  if (operands.empty() || operands.size() != inits.size()) {
    return DataLoss("windows of ", operands.size(), " operands with ", inits.size(), " inits");
  }
  if (!b.fact(operands[0]).shape.ranked()) return Unsupported("windows of unknown rank");
  const int rank = b.fact(operands[0]).shape.rank();
  for (ValueId operand : operands) {
    if (b.fact(operand).shape.rank() != rank) return DataLoss("operands of several ranks");
  }
  ONCILLA_TRY(Fill(window.size, rank, 1, 1, "size"));
  ONCILLA_TRY(Fill(window.strides, rank, 1, 1, "stride"));
  ONCILLA_TRY(Fill(window.base_dilation, rank, 1, 1, "dilation"));
  ONCILLA_TRY(Fill(window.dilation, rank, 1, 1, "dilation"));
  ONCILLA_TRY(Fill(window.low, rank, 0, -(int64_t{1} << 31), "padding"));
  ONCILLA_TRY(Fill(window.high, rank, 0, -(int64_t{1} << 31), "padding"));
  // Gaps between elements, and cropping, are done apart.
  Values x = operands;
  XlaPadding gaps{std::vector<int64_t>(static_cast<size_t>(rank), 0), {}, {}};
  gaps.high = gaps.interior = gaps.low;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    gaps.interior[i] = window.base_dilation[i] - 1;
    gaps.low[i] = std::min<int64_t>(window.low[i], 0);
    gaps.high[i] = std::min<int64_t>(window.high[i], 0);
    window.low[i] = std::max<int64_t>(window.low[i], 0);
    window.high[i] = std::max<int64_t>(window.high[i], 0);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    ONCILLA_ASSIGN(x[i], LowerXlaPad(b, x[i], inits[i], gaps, StrCat("gaps", i)));
  }
  const std::optional<XlaFold> fold = x.size() == 1 ? FoldOf(body) : std::nullopt;
  if (fold.has_value() && IsNeutral(*fold, b.fact(inits[0]))) {
    ONCILLA_ASSIGN(std::optional<Values> running, AsRunning(b, *fold, x[0], window));
    if (running.has_value()) return *std::move(running);
  }
  if (fold.has_value()) {
    // Padding with other than the neutral number is folded like all elements; for a largest or
    // smallest one that comes to the same as folding it once.
    const bool neutral = IsNeutral(*fold, b.fact(inits[0]));
    if (neutral || *fold != XlaFold::kAdd) {
      ONCILLA_ASSIGN(std::optional<Values> pool, AsPool(b, *fold, x[0], inits[0], window));
      if (pool.has_value()) return *std::move(pool);
    }
  }
  return ByTaps(b, x, inits, window, body);
}

namespace {

// The one axis that a window's sizes say is covered as a whole.
Result<int> RunningAxis(const Lowering& b, ValueId x, ValueId size) {
  const auto sizes = KnownInts(b.fact(size));
  const PartialShape& shape = b.fact(x).shape;
  int found = -1;
  if (sizes.has_value() && static_cast<int>(sizes->size()) == shape.rank()) {
    for (int i = 0; i < shape.rank(); ++i) {
      const Dim& dim = (*sizes)[static_cast<size_t>(i)];
      if (dim.known() && dim.size == 1) continue;
      if (found >= 0 || !dim.Same(shape[i])) {
        return Unsupported("windows of open size over ", shape);
      }
      found = i;
    }
  }
  if (found < 0) return Unsupported("windows of open size over ", shape);
  return found;
}

}  // namespace

Result<Values> LowerXlaRunning(Lowering& b, ValueId x, ValueId init, ValueId size, ValueId padding,
                               const Graph& body) {
  ONCILLA_ASSIGN(const int axis, RunningAxis(b, x, size));
  const std::optional<XlaFold> fold = FoldOf(body);
  if (!fold.has_value() || (*fold != XlaFold::kAdd && *fold != XlaFold::kMul) ||
      b.fact(x).dtype == DType::kBool || !IsNeutral(*fold, b.fact(init))) {
    return Unsupported("windows of open size with a body of their own");
  }
  const int rank = b.fact(x).shape.rank();
  // Before the axis there must be room for all elements but one, and nothing elsewhere.
  ONCILLA_ASSIGN(const ValueId whole, b.Sizes(x, axis, axis + 1, "length"));
  ONCILLA_ASSIGN(const ValueId before, b.Add("Sub", AttrMap(), {whole, b.Ints({1})}, "before"));
  const std::vector<int64_t> none(static_cast<size_t>(2 * axis), 0);
  const std::vector<int64_t> behind(static_cast<size_t>(2 * (rank - axis) - 1), 0);
  ONCILLA_ASSIGN(const ValueId wanted,
                 b.Add(ConcatAttrs{.axis = 0}, {b.Ints(none), before, b.Ints(behind)}, "wanted"));
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(padding, DType::kI64, "padding"));
  ONCILLA_ASSIGN(const ValueId flat, b.Add(ReshapeAttrs(), {wide, b.Ints({-1})}, "padding_list"));
  ONCILLA_ASSIGN(const ValueId each, b.Add("Equal", AttrMap(), {flat, wanted}, "each_fits"));
  ONCILLA_ASSIGN(const ValueId fits, b.Add("ReduceAll", ReduceAttrs(), {each}, "fits"));
  const ValueId text = b.Constant(
      Tensor::Strings({}, {"windows of open size are supported as running sums only; padded by"}));
  ONCILLA_TRY(b.AddAll(AssertAttrs{}, {fits, text, flat}, "check").status());
  return One(
      b.Add(*fold == XlaFold::kAdd ? "CumSum" : "CumProd", CumulativeAttrs(), {x, b.Ints({axis})}));
}

}  // namespace oncilla
