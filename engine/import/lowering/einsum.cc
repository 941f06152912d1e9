// Each label is one character. Letters stand for themselves; the axes that "..." covers get private
// labels, equal for equal distance from the last of them. If only the run knows the ranks of
// operands with "...", all axes that it covers are merged into one with one label.
#include "engine/import/lowering/einsum.h"

#include <algorithm>
#include <limits>
#include <map>

namespace oncilla {
namespace {

struct Operand {
  ValueId value = kNoValue;
  std::string labels;  // one per axis
};

bool Has(const std::string& labels, char c) { return labels.find(c) != std::string::npos; }

constexpr char kFirstPrivate = '\x10';  // below all letters
bool IsPrivate(char label) { return label < 'A'; }

size_t PrivateOf(const std::string& labels) {
  return static_cast<size_t>(std::count_if(labels.begin(), labels.end(), IsPrivate));
}

std::string WithoutRepeats(const std::string& labels) {
  std::string out;
  for (char c : labels) {
    if (!Has(out, c)) out += c;
  }
  return out;
}

// The position of each of `labels` in x; repeated labels give successive positions.
std::vector<int64_t> PlacesOf(const std::string& labels, const std::string& x) {
  std::vector<int64_t> places;
  for (char c : labels) {
    size_t at = x.find(c);
    while (std::count(places.begin(), places.end(), static_cast<int64_t>(at)) > 0) {
      at = x.find(c, at + 1);
    }
    places.push_back(static_cast<int64_t>(at));
  }
  return places;
}

Result<std::string> ReadLabels(std::string_view text, int rank, std::string_view what) {
  if (rank > kMaxRank) return Unsupported("the rank ", rank, " of ", what);
  const size_t dots = text.find("...");
  const size_t axes = static_cast<size_t>(rank);
  const size_t named = dots == std::string_view::npos ? text.size() : text.size() - 3;
  if (axes < named || (dots == std::string_view::npos && axes != named)) {
    return InvalidArgument(what, " has the rank ", rank, " and the labels ", text);
  }
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (size_t k = axes - named; k > 0; --k) out += static_cast<char>(kFirstPrivate + k - 1);
      i += 2;
      continue;
    }
    const char c = text[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
      return InvalidArgument("the equation has the character '", c, "'");
    }
    out += c;
  }
  return out;
}

// The axes that "..." covers, merged into one axis per operand, for operands whose rank is known
// only at run time. If several operands have "...", these axes are broadcast to the same sizes
// first.
class MergedDots {
 public:
  explicit MergedDots(Lowering& b) : b_(b) {}

  bool empty() const { return operands_.empty(); }

  Status Take(size_t i, std::string_view text) {
    Dots dots = {.x = b_.in(i), .name = StrCat("operand", i)};
    dots.front = static_cast<int64_t>(text.find("..."));
    dots.back = static_cast<int64_t>(text.size()) - 3 - dots.front;
    const double named = static_cast<double>(dots.front + dots.back);
    ONCILLA_ASSIGN(const ValueId rank,
                   b_.Add(RankAttrs{.to = DType::kI64}, {dots.x}, dots.name + "_rank"));
    ONCILLA_ASSIGN(const ValueId least, b_.Scalar(DType::kI64, named));
    ONCILLA_ASSIGN(const ValueId fits, b_.Add("GreaterEqual", {}, {rank, least}, "fits"));
    const std::string message = StrCat("operand ", i, " has the labels ", text, " and the rank");
    const ValueId what = b_.Constant(Tensor::Strings({}, {message}));
    ONCILLA_TRY(b_.AddAll(AssertAttrs{}, {fits, what, rank}, dots.name + "_check").status());
    const int64_t end = dots.back == 0 ? kToTheEnd : -dots.back;
    ONCILLA_ASSIGN(dots.sizes, Sizes(dots.x, dots.front, end, dots.name + "_dots"));
    if (sizes_ == kNoValue) {
      sizes_ = dots.sizes;
    } else {
      ONCILLA_ASSIGN(sizes_, b_.Add("BroadcastSizes", {}, {sizes_, dots.sizes}, "dots"));
    }
    operands_.emplace(i, std::move(dots));
    return {};
  }

  // Operand i with its "..." axes merged into one. To be called once Take has seen every operand.
  Result<ValueId> Merge(size_t i) const {
    const Dots& dots = operands_.at(i);
    ValueId x = dots.x;
    ONCILLA_ASSIGN(const ValueId front, Sizes(x, 0, dots.front, dots.name + "_front"));
    ValueId back = b_.Ints({});
    if (dots.back > 0) {
      ONCILLA_ASSIGN(back, Sizes(x, -dots.back, kToTheEnd, dots.name + "_back"));
    }
    if (operands_.size() > 1) {
      // Insert ones before the covered axes, so that they align with those of all operands at the
      // end.
      ONCILLA_ASSIGN(const ValueId all, b_.Add("Shape", {}, {sizes_}, "all_dots"));
      ONCILLA_ASSIGN(const ValueId own, b_.Add("Shape", {}, {dots.sizes}, "own_dots"));
      ONCILLA_ASSIGN(const ValueId missing, b_.Add("Sub", {}, {all, own}, "missing_dots"));
      ONCILLA_ASSIGN(const ValueId one, b_.Scalar(DType::kI64, 1));
      ONCILLA_ASSIGN(const ValueId ones, b_.Add("Fill", {}, {missing, one}, "ones"));
      ONCILLA_ASSIGN(const ValueId wide, Join({front, ones, dots.sizes, back}, "wide_shape"));
      ONCILLA_ASSIGN(x, b_.Add("Reshape", {}, {x, wide}, dots.name + "_wide"));
      ONCILLA_ASSIGN(const ValueId stretched, Join({front, sizes_, back}, "stretched_shape"));
      ONCILLA_ASSIGN(x, b_.Add("Expand", {}, {x, stretched}, dots.name + "_stretched"));
    }
    ONCILLA_ASSIGN(const ValueId count,
                   b_.Add("ReduceProd", ReduceAttrs{.keep_dims = true}, {sizes_}, "count"));
    ONCILLA_ASSIGN(const ValueId shape, Join({front, count, back}, "merged_shape"));
    ONCILLA_ASSIGN(x, b_.Add("Reshape", {}, {x, shape}, dots.name + "_merged"));
    const auto axes = static_cast<size_t>(dots.front + dots.back + 1);
    return b_.Add(EnsureShapeAttrs{.dims = std::vector<int64_t>(axes, -1)}, {x}, dots.name);
  }

  // The result y, in which the merged axis `place` is split into all covered axes again.
  Result<ValueId> Unmerge(ValueId y, int64_t place) const {
    ONCILLA_ASSIGN(const ValueId front, Sizes(y, 0, place, "result_front"));
    ONCILLA_ASSIGN(const ValueId back, Sizes(y, place + 1, kToTheEnd, "result_back"));
    ONCILLA_ASSIGN(const ValueId shape, Join({front, sizes_, back}, "result_shape"));
    return b_.Add("Reshape", {}, {y, shape});
  }

 private:
  static constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
  struct Dots {
    ValueId x = kNoValue;
    std::string name;
    int64_t front = 0, back = 0;  // numbers of labels before and after "..."
    ValueId sizes = kNoValue;
  };

  Result<ValueId> Sizes(ValueId x, int64_t begin, int64_t end, const std::string& role) const {
    return b_.Add(ShapeAttrs{.start = begin, .end = end}, {x}, role);
  }
  Result<ValueId> Join(Values lists, const std::string& role) const {
    return b_.Add(ConcatAttrs{.axis = 0}, std::move(lists), role);
  }

  Lowering& b_;
  std::map<size_t, Dots> operands_;
  ValueId sizes_ = kNoValue;  // of the covered axes, broadcast over all operands
};

class Einsum {
 public:
  Einsum(Lowering& b, LabelSizes sizes) : b_(b), label_sizes_(sizes), dots_(b) {}

  Result<ValueId> Lower(std::string equation) {
    std::erase(equation, ' ');
    ONCILLA_ASSIGN(const std::string wanted, Read(equation));
    const std::string out = WithoutRepeats(wanted);
    Operand x = operands_[0];
    for (size_t i = 1; i < operands_.size(); ++i) {
      std::string needed = out;
      for (size_t k = i + 1; k < operands_.size(); ++k) needed += operands_[k].labels;
      const bool last = i + 1 == operands_.size();
      prefix_ = operands_.size() == 2 ? "" : StrCat("step", i, "_");
      Operand y = operands_[i];
      ONCILLA_TRY(SumAlone(x, y.labels + needed, "sum_x"));
      ONCILLA_TRY(SumAlone(y, x.labels + needed, "sum_y"));
      std::string kept = out;
      if (!last) {
        kept = WithoutRepeats(x.labels + y.labels);
        std::erase_if(kept, [&](char c) { return !Has(needed, c); });
      }
      ONCILLA_ASSIGN(x.value, Product(x, y, kept, last ? end_ : prefix_ + "all"));
      x.labels = kept;
    }
    if (operands_.size() == 1) {
      ONCILLA_TRY(SumAlone(x, out, "sum_x"));
      ONCILLA_ASSIGN(x.value, Arrange(x, out, end_));
      x.labels = out;
    }
    ONCILLA_ASSIGN(const ValueId y, Spread(std::move(x), wanted));
    if (dots_.empty()) return y;
    return dots_.Unmerge(y, static_cast<int64_t>(wanted.find(kFirstPrivate)));
  }

 private:
  // An operand of unknown rank must have one axis per label; the run checks that.
  Result<ValueId> Ranked(size_t i, std::string_view text, const std::string& what) {
    const ValueId x = b_.in(i);
    const bool open = text.find("...") != std::string_view::npos || text.size() > kMaxRank;
    if (x == kNoValue || b_.fact(x).shape.ranked() || open) return x;
    if (b_.Rank(i, what).ok()) return x;
    return b_.Add(EnsureShapeAttrs{.dims = std::vector<int64_t>(text.size(), -1)}, {x},
                  StrCat("operand", i));
  }

  Status ReadOperands(const std::vector<std::string_view>& texts) {
    const auto has_dots = [&](size_t i) { return texts[i].find("...") != std::string_view::npos; };
    Status open;  // why the rank of an operand with dots is not known
    for (size_t i = 0; i < texts.size() && open.ok(); ++i) {
      if (has_dots(i)) open = b_.Rank(i, StrCat("operand ", i)).status();
    }
    if (!open.ok() && !b_.RanksStayOpen()) return open;
    for (size_t i = 0; i < texts.size() && !open.ok(); ++i) {
      if (has_dots(i)) ONCILLA_TRY(dots_.Take(i, texts[i]));
    }
    if (!dots_.empty()) end_ = "merged";
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string what = StrCat("operand ", i);
      const bool merged = !dots_.empty() && has_dots(i);
      ONCILLA_ASSIGN(const ValueId value, merged ? dots_.Merge(i) : Ranked(i, texts[i], what));
      const int rank = b_.fact(value).shape.ranked() ? b_.fact(value).shape.rank() : -1;
      ONCILLA_ASSIGN(const int axes, rank >= 0 ? Result<int>(rank) : b_.Rank(i, what));
      ONCILLA_ASSIGN(std::string labels, ReadLabels(texts[i], axes, what));
      Operand& x = operands_.emplace_back(Operand{value, std::move(labels)});
      while (WithoutRepeats(x.labels) != x.labels) ONCILLA_TRY(TakeDiagonal(x, what));
    }
    return {};
  }

  // Reads the operands and returns the labels of the result.
  Result<std::string> Read(const std::string& equation) {
    const size_t arrow = equation.find("->");
    const std::string_view left = std::string_view(equation).substr(0, arrow);
    if (static_cast<size_t>(std::count(left.begin(), left.end(), ',')) + 1 != b_.inputs()) {
      return Unsupported("the equation ", equation, " with ", b_.inputs(), " inputs");
    }
    std::vector<std::string_view> texts;
    std::string all;
    for (size_t begin = 0; texts.size() < b_.inputs(); begin += texts.back().size() + 1) {
      texts.push_back(left.substr(begin, left.find(',', begin) - begin));
      all += texts.back();
    }
    ONCILLA_TRY(ReadOperands(texts));
    ONCILLA_TRY(SettleSizes());
    size_t spread = 0;
    for (const Operand& x : operands_) spread = std::max(spread, PrivateOf(x.labels));
    std::string result;
    if (arrow != std::string::npos) {
      result = equation.substr(arrow + 2);
    } else {
      // Without an arrow, the result has the ellipsis and then, sorted, the letters that occur
      // once.
      std::sort(all.begin(), all.end());
      for (char c : all) {
        if (c != '.' && std::count(all.begin(), all.end(), c) == 1) result += c;
      }
      if (spread > 0) result = "..." + result;
    }
    // The "..." of the result covers as many axes as the longest one among the operands.
    const bool dots = result.find("...") != std::string::npos;
    if (!dots && spread > 0) {
      return InvalidArgument("the equation has '...' in an operand and not in the result");
    }
    const size_t rank = dots ? result.size() - 3 + spread : result.size();
    ONCILLA_ASSIGN(std::string labels, ReadLabels(result, static_cast<int>(rank), "the result"));
    for (char c : labels) {
      const auto has = [&](const Operand& x) { return Has(x.labels, c); };
      if (std::any_of(operands_.begin(), operands_.end(), has)) continue;
      return InvalidArgument("the label ", c, " of the result is in no operand");
    }
    return labels;
  }

  // Checks that the sizes of each letter agree in all operands. An axis of size one that broadcasts
  // to another operand's size is removed: the product of the remaining axes is the same.
  Status SettleSizes() {
    for (size_t i = 0; i < operands_.size(); ++i) {
      for (char label : std::string(operands_[i].labels)) {
        if (IsPrivate(label)) continue;
        const Dim own = DimOf(operands_[i], label);
        if (!own.known()) continue;
        bool stretches = false;
        for (size_t k = 0; k < operands_.size(); ++k) {
          if (k == i || !Has(operands_[k].labels, label)) continue;
          const Dim other = DimOf(operands_[k], label);
          const bool one = own.size == 1 || (other.known() && other.size == 1);
          if (other.known() && other.size != own.size && (!one || !Stretches())) {
            return InvalidArgument("operands ", std::min(i, k), " and ", std::max(i, k),
                                   " have the sizes ", (i < k ? own : other).size, " and ",
                                   (i < k ? other : own).size, " for the label ", label);
          }
          stretches = stretches || other.size != 1;  // that of an unknown one is negative
        }
        if (!Stretches() || own.size != 1 || !stretches) continue;
        Operand& x = operands_[i];
        const size_t axis = x.labels.find(label);
        const ValueId at = b_.Ints({static_cast<int64_t>(axis)});
        ONCILLA_ASSIGN(x.value, b_.Add("Squeeze", {}, {x.value, at},
                                       StrCat("operand", i, "_without_", label)));
        x.labels.erase(axis, 1);
      }
    }
    return {};
  }
  bool Stretches() const { return label_sizes_ == LabelSizes::kStretch; }

  // Merges the two axes of the first label that is repeated within an operand: sets everything off
  // the diagonal to zero and sums over the second axis.
  Status TakeDiagonal(Operand& x, const std::string& what) {
    size_t second = 1;
    while (x.labels.find(x.labels[second]) == second) ++second;
    const char label = x.labels[second];
    const size_t first = x.labels.find(label);
    const Dim rows = DimAt(x, first), columns = DimAt(x, second);
    if (rows.known() && columns.known() && rows.size != columns.size) {
      return InvalidArgument(what, " has the sizes ", rows.size, " and ", columns.size,
                             " for the label ", label);
    }
    if (!rows.Same(columns)) {
      return Unsupported("two sizes of the label ", label, " that are not known to be equal");
    }
    // A mask of the diagonal: row index == column index.
    std::vector<int64_t> around_row, around_column;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (i != first) around_row.push_back(static_cast<int64_t>(i));
      if (i != second) around_column.push_back(static_cast<int64_t>(i));
    }
    const ValueId none = b_.Constant(Tensor::ScalarInt64(0));
    const ValueId one = b_.Constant(Tensor::ScalarInt64(1));
    const int row = static_cast<int>(first);
    ONCILLA_ASSIGN(const ValueId size, b_.Sizes(x.value, row, row + 1, "size"));
    ONCILLA_ASSIGN(const ValueId at, b_.Add("Range", {}, {none, size, one}, "places"));
    ONCILLA_ASSIGN(const ValueId down, b_.Unsqueeze(at, std::move(around_row), "rows"));
    ONCILLA_ASSIGN(const ValueId across, b_.Unsqueeze(at, std::move(around_column), "columns"));
    ONCILLA_ASSIGN(const ValueId on, b_.Add("Equal", {}, {down, across}, "on"));
    ONCILLA_ASSIGN(const ValueId zero, b_.Scalar(b_.fact(x.value).dtype, 0));
    ONCILLA_ASSIGN(const ValueId kept, b_.Add("Where", {}, {on, x.value, zero}, "diagonal"));
    const ValueId summed = b_.Ints({static_cast<int64_t>(second)});
    ONCILLA_ASSIGN(x.value, b_.Add("ReduceSum", {}, {kept, summed}, "diagonal_sum"));
    x.labels.erase(second, 1);
    return {};
  }

  // Expands an operand to a result that repeats labels: its values go to the diagonals.
  Result<ValueId> Spread(Operand x, const std::string& wanted) {
    if (wanted == x.labels) return x.value;
    for (char label : std::string(x.labels)) {
      for (auto n = std::count(wanted.begin(), wanted.end(), label); n > 1; --n) {
        // Earlier copies of the label stay in front; which copy is the last does not matter.
        std::string order = x.labels;
        order.erase(order.find(label), 1);
        ONCILLA_ASSIGN(const ValueId last,
                       b_.Transpose(x.value, PlacesOf(order + label, x.labels), "last"));
        ONCILLA_ASSIGN(const ValueId zero, b_.Scalar(b_.fact(last).dtype, 0));
        const ValueId open = b_.Ints({-1});
        ONCILLA_ASSIGN(x.value,
                       b_.Add("MatrixDiag", {}, {last, b_.Ints({0}), open, open, zero}, "spread"));
        x.labels = order + label + label;
      }
    }
    return b_.Transpose(x.value, PlacesOf(wanted, x.labels), end_);
  }

  // Sums over the axes of x that neither the other operands nor the result need.
  Status SumAlone(Operand& x, const std::string& needed, std::string_view role) {
    std::vector<int64_t> axes;
    std::string left;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (Has(needed, x.labels[i])) {
        left += x.labels[i];
      } else {
        axes.push_back(static_cast<int64_t>(i));
      }
    }
    if (axes.empty()) return {};
    x.labels = left;
    ONCILLA_ASSIGN(x.value,
                   b_.Add("ReduceSum", {}, {x.value, b_.Ints(axes)}, StrCat(prefix_, role)));
    return {};
  }

  // Transposes the operand to the order of `labels`; it has all of them.
  Result<ValueId> Arrange(const Operand& x, const std::string& labels, std::string_view role) {
    if (labels == x.labels && role.empty()) return b_.Add("Identity", {}, {x.value});
    return b_.Transpose(x.value, PlacesOf(labels, x.labels), role);
  }

  Dim DimAt(const Operand& x, size_t axis) {
    const PartialShape& shape = b_.fact(x.value).shape;
    return shape.ranked() ? shape[static_cast<int>(axis)] : Dim();
  }
  Dim DimOf(const Operand& x, char label) { return DimAt(x, x.labels.find(label)); }

  // One axis of a shape: the size of a label in an operand, or the product of the sizes of several
  // merged labels; if `with` is set, the size to which the label broadcasts between both operands.
  struct Size {
    const Operand* from;
    std::string labels;
    const Operand* with = nullptr;
  };

  // The size of a label that both operands and the result have.
  Size BatchSize(const Operand& x, const Operand& y, char label) {
    const Dim own = DimOf(x, label), other = DimOf(y, label);
    const bool stretches = IsPrivate(label) || Stretches();
    if (!stretches || own.Same(other)) return {&x, {label}};
    if (own.known()) return {own.size != 1 ? &x : &y, {label}};
    if (other.known()) return {other.size != 1 ? &y : &x, {label}};
    return {&x, {label}, &y};
  }

  // Merged axes can have the same product although the sizes of their labels differ.
  Status CheckSummed(const Operand& x, const Operand& y, const std::string& summed) {
    if (summed.size() < 2) return {};
    for (char c : summed) {
      const Dim own = DimOf(x, c), other = DimOf(y, c);
      if (own.Same(other)) continue;
      const std::string role = StrCat(prefix_, "label_", c);
      ONCILLA_ASSIGN(const ValueId a, Compute({&x, {c}}, role + "_x"));
      ONCILLA_ASSIGN(const ValueId b, Compute({&y, {c}}, role + "_y"));
      ONCILLA_ASSIGN(const ValueId same, b_.Add("Equal", {}, {a, b}, role + "_same"));
      const ValueId text =
          b_.Constant(Tensor::Strings({}, {StrCat("two operands have sizes of the label ", c)}));
      ONCILLA_TRY(b_.AddAll(AssertAttrs{}, {same, text, a, b}, role + "_check").status());
    }
    return {};
  }

  Dim Known(const Size& size) {
    if (size.with != nullptr) return Dim();
    int64_t total = 1;
    for (char label : size.labels) {
      const Dim d = DimOf(*size.from, label);
      if (!d.known()) return Dim();
      total = SaturatingMul(total, d.size);
    }
    return Dim(total);
  }

  // The size as a vector of one element, computed from the operand's shape if it is unknown.
  Result<ValueId> Compute(const Size& size, const std::string& role) {
    if (const Dim known = Known(size); known.known()) return b_.Ints({known.size});
    if (size.with != nullptr) {
      ONCILLA_ASSIGN(const ValueId own, Compute({size.from, size.labels}, role));
      ONCILLA_ASSIGN(const ValueId other, Compute({size.with, size.labels}, role));
      return b_.Add("BroadcastSizes", {}, {own, other}, role);
    }
    ValueId total = kNoValue;
    for (char label : size.labels) {
      const auto axis = static_cast<int64_t>(size.from->labels.find(label));
      ONCILLA_ASSIGN(const ValueId one,
                     b_.Add(ShapeAttrs{.start = axis, .end = axis + 1}, {size.from->value}, role));
      ONCILLA_ASSIGN(
          total, total == kNoValue ? Result<ValueId>(one) : b_.Add("Mul", {}, {total, one}, role));
    }
    return total;
  }

  Result<ValueId> ReshapeTo(ValueId x, const std::vector<Size>& sizes, const std::string& role) {
    const std::string name = role.empty() ? "result" : role;
    std::vector<int64_t> known;
    for (const Size& size : sizes) {
      if (const Dim d = Known(size); d.known()) known.push_back(d.size);
    }
    if (known.size() == sizes.size()) {
      return b_.Add("Reshape", {}, {x, b_.Ints(std::move(known))}, role);
    }
    Values parts;
    for (const Size& size : sizes) {
      ONCILLA_ASSIGN(const ValueId part, Compute(size, name + "_size"));
      parts.push_back(part);
    }
    ONCILLA_ASSIGN(const ValueId shape, b_.Add(ConcatAttrs(), std::move(parts), name + "_shape"));
    return b_.Add("Reshape", {}, {x, shape}, role);
  }

  // x with the axes `labels`; axes that x lacks have size one.
  Result<ValueId> Stretched(const Operand& x, const std::string& labels, const std::string& role) {
    std::string own;
    std::vector<int64_t> missing;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (Has(x.labels, labels[i])) {
        own += labels[i];
      } else {
        missing.push_back(static_cast<int64_t>(i));
      }
    }
    ONCILLA_ASSIGN(const ValueId arranged, Arrange(x, own, role));
    return b_.Unsqueeze(arranged, std::move(missing), role + "_stretched");
  }

  // The product of x and y with the axes `out`; labels of both operands that `out` lacks are summed
  // over.
  Result<ValueId> Product(const Operand& x, const Operand& y, const std::string& out,
                          const std::string& role) {
    if (out.size() > kMaxRank) return Unsupported("a product of rank ", out.size());
    // Classify the labels: in both (batch), in one of them, or summed over.
    std::string batch, x_only, y_only, summed;
    for (char c : out) (!Has(y.labels, c) ? x_only : Has(x.labels, c) ? batch : y_only) += c;
    for (char c : x.labels) {
      if (!Has(out, c)) summed += c;
    }
    // Without a sum, the product is an elementwise multiplication.
    if (summed.empty()) {
      ONCILLA_ASSIGN(const ValueId left, Stretched(x, out, prefix_ + "x"));
      ONCILLA_ASSIGN(const ValueId right, Stretched(y, out, prefix_ + "y"));
      return b_.Add("Mul", {}, {left, right}, role);
    }
    // Transpose to [batch.., x_only, summed] and [batch.., summed, y_only], and merge each group to
    // one axis.
    ONCILLA_ASSIGN(ValueId left, Arrange(x, batch + x_only + summed, prefix_ + "x"));
    ONCILLA_ASSIGN(ValueId right, Arrange(y, batch + summed + y_only, prefix_ + "y"));
    ONCILLA_TRY(CheckSummed(x, y, summed));
    std::vector<Size> left_sizes, right_sizes, sizes;
    for (char c : batch) {
      left_sizes.push_back({&x, {c}});
      right_sizes.push_back({&y, {c}});
      sizes.push_back(BatchSize(x, y, c));
    }
    const bool merge = x_only.size() != 1 || y_only.size() != 1 || summed.size() != 1;
    if (merge) {
      left_sizes.insert(left_sizes.end(), {{&x, x_only}, {&x, summed}});
      right_sizes.insert(right_sizes.end(), {{&y, summed}, {&y, y_only}});
      ONCILLA_ASSIGN(left, ReshapeTo(left, left_sizes, prefix_ + "x_matrix"));
      ONCILLA_ASSIGN(right, ReshapeTo(right, right_sizes, prefix_ + "y_matrix"));
    }
    const std::string order = batch + x_only + y_only;
    const bool arrange = order != out;
    ONCILLA_ASSIGN(ValueId product, b_.Add("MatMul", {}, {left, right},
                                           merge || arrange ? prefix_ + "product" : role));
    if (merge) {
      for (char c : x_only) sizes.push_back({&x, {c}});
      for (char c : y_only) sizes.push_back({&y, {c}});
      ONCILLA_ASSIGN(product, ReshapeTo(product, sizes, arrange ? prefix_ + "axes" : role));
    }
    return arrange ? Arrange({product, order}, out, role) : Result<ValueId>(product);
  }

  Lowering& b_;
  const LabelSizes label_sizes_;
  std::vector<Operand> operands_;
  MergedDots dots_;
  std::string end_;     // the role of the node before the one that splits the merged axis
  std::string prefix_;  // of roles, if there are several products
};

}  // namespace

Result<Values> LowerEinsum(Lowering& b, std::string equation, LabelSizes sizes) {
  return One(Einsum(b, sizes).Lower(std::move(equation)));
}

}  // namespace oncilla
