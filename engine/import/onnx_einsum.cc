// Labels are numbers: letters are their codes, axes of an ellipsis count from the right.
#include "engine/import/onnx_einsum.h"

#include <algorithm>
#include <cctype>

namespace oncilla {
namespace {

using Labels = std::vector<int>;
constexpr int kEllipsis = 1000;  // label of its last axis; the one before has one more

bool Contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Operand {
  ValueId value = kNoValue;
  Labels labels;
};

// One term of the equation. `ellipsis` is how many axes the dots stand for.
Result<Labels> ReadTerm(std::string_view term, int ellipsis, bool* dots) {
  Labels labels;
  *dots = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
      labels.push_back(term[i]);
    } else if (term.substr(i, 3) == "..." && !*dots) {
      for (int k = ellipsis; k-- > 0;) labels.push_back(kEllipsis + k);
      *dots = true;
      i += 2;
    } else {
      return InvalidArgument("the equation has the term '", term, "'");
    }
  }
  return labels;
}

class Einsum {
 public:
  explicit Einsum(OnnxLowering& b) : b_(b) {}

  Result<Values> Lower() {
    ONCILLA_TRY(Parse());
    for (Operand& operand : operands_) ONCILLA_TRY(TakeDiagonals(operand));
    Operand left = operands_[0];
    for (size_t i = 1; i < operands_.size(); ++i) {
      Labels needed = output_;
      for (size_t k = i + 1; k < operands_.size(); ++k) {
        needed.insert(needed.end(), operands_[k].labels.begin(), operands_[k].labels.end());
      }
      ONCILLA_ASSIGN(left, Combine(std::move(left), operands_[i], needed));
    }
    ONCILLA_TRY(SumAway(left, output_));
    ONCILLA_TRY(Order(left, output_));
    return One(b_.Add("Identity", {}, {left.value}));
  }

 private:
  std::string Role(std::string_view what) { return StrCat(what, ++steps_); }

  Status Parse() {
    ONCILLA_ASSIGN(std::string equation, b_.String("equation", ""));
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const size_t arrow = equation.find("->");
    std::string_view inputs = std::string_view(equation).substr(0, arrow);
    int most_dots = 0;
    for (size_t i = 0; i < b_.inputs(); ++i) {
      const size_t comma = inputs.find(',');
      const std::string_view term = inputs.substr(0, comma);
      if ((comma == std::string_view::npos) != (i + 1 == b_.inputs())) {
        return InvalidArgument("'", equation, "' does not have ", b_.inputs(), " operands");
      }
      inputs.remove_prefix(comma == std::string_view::npos ? inputs.size() : comma + 1);
      ONCILLA_ASSIGN(const int rank, b_.Rank(i, StrCat("operand ", i)));
      bool dots = false;
      ONCILLA_ASSIGN(const Labels letters, ReadTerm(term, 0, &dots));
      const int rest = rank - static_cast<int>(letters.size());
      if (rest < 0 || (rest > 0 && !dots)) {
        return InvalidArgument("operand ", i, " has rank ", rank, " and the term '", term, "'");
      }
      ONCILLA_ASSIGN(Labels labels, ReadTerm(term, rest, &dots));
      most_dots = std::max(most_dots, rest);
      operands_.push_back({b_.in(i), std::move(labels)});
    }
    bool dots = false;
    if (arrow != std::string::npos) {
      ONCILLA_ASSIGN(output_,
                     ReadTerm(std::string_view(equation).substr(arrow + 2), most_dots, &dots));
      if (!dots && most_dots > 0) {
        return Unsupported("an ellipsis that the result leaves out, in '", equation, "'");
      }
    } else {
      // Without an arrow: the ellipsis, then the letters that stand once, in order.
      for (int k = most_dots; k-- > 0;) output_.push_back(kEllipsis + k);
      Labels letters;
      for (const Operand& operand : operands_) {
        for (int label : operand.labels) {
          if (label < kEllipsis) letters.push_back(label);
        }
      }
      std::sort(letters.begin(), letters.end());
      for (int label : letters) {
        if (std::count(letters.begin(), letters.end(), label) == 1) output_.push_back(label);
      }
    }
    for (size_t i = 0; i < output_.size(); ++i) {
      if (std::count(output_.begin(), output_.end(), output_[i]) != 1) {
        return InvalidArgument("'", equation, "' repeats a letter of the result");
      }
      const bool known = std::any_of(operands_.begin(), operands_.end(), [&](const Operand& o) {
        return Contains(o.labels, output_[i]);
      });
      if (!known) return InvalidArgument("'", equation, "' has a result of no operand");
    }
    return {};
  }

  // Two axes of one letter are the diagonal: all but it is set to zero, and one axis summed.
  Status TakeDiagonals(Operand& x) {
    for (size_t p = 0; p < x.labels.size(); ++p) {
      for (size_t q = x.labels.size(); --q > p;) {
        if (x.labels[q] != x.labels[p]) continue;
        const int rank = static_cast<int>(x.labels.size());
        const int row = static_cast<int>(p), column = static_cast<int>(q);
        const ValueId one = b_.Constant(Tensor::ScalarInt64(1));
        const ValueId none = b_.Constant(Tensor::ScalarInt64(0));
        ONCILLA_ASSIGN(const ValueId size, b_.Sizes(x.value, row, row + 1, Role("size")));
        ONCILLA_ASSIGN(const ValueId at, b_.Add("Range", {}, {none, size, one}, Role("places")));
        std::vector<int64_t> row_axes, column_axes;
        for (int64_t i = 0; i < rank; ++i) {
          if (i != row) row_axes.push_back(i);
          if (i != column) column_axes.push_back(i);
        }
        ONCILLA_ASSIGN(const ValueId rows, b_.Unsqueeze(at, row_axes, Role("rows")));
        ONCILLA_ASSIGN(const ValueId columns, b_.Unsqueeze(at, column_axes, Role("columns")));
        ONCILLA_ASSIGN(const ValueId on, b_.Add("Equal", {}, {rows, columns}, Role("on")));
        ONCILLA_ASSIGN(const ValueId zero, b_.Scalar(b_.fact(x.value).dtype, 0));
        ONCILLA_ASSIGN(const ValueId kept,
                       b_.Add("Where", {}, {on, x.value, zero}, Role("diagonal")));
        ONCILLA_ASSIGN(x.value, b_.Add("ReduceSum", {}, {kept, b_.Ints({column})}, Role("sum")));
        x.labels.erase(x.labels.begin() + column);
      }
    }
    return {};
  }

  // Sums over the axes of x that nobody needs.
  Status SumAway(Operand& x, const Labels& needed) {
    std::vector<int64_t> axes;
    Labels kept;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (Contains(needed, x.labels[i])) {
        kept.push_back(x.labels[i]);
      } else {
        axes.push_back(static_cast<int64_t>(i));
      }
    }
    if (axes.empty()) return {};
    ONCILLA_ASSIGN(x.value,
                   b_.Add("ReduceSum", {}, {x.value, b_.Ints(std::move(axes))}, Role("sum")));
    x.labels = std::move(kept);
    return {};
  }

  Status Order(Operand& x, const Labels& order) {
    std::vector<int64_t> perm;
    for (int label : order) {
      perm.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
    }
    ONCILLA_ASSIGN(x.value, b_.Transpose(x.value, std::move(perm), Role("order")));
    x.labels = order;
    return {};
  }

  Result<Operand> Combine(Operand x, Operand y, const Labels& needed) {
    Labels for_x = needed, for_y = needed;
    for_x.insert(for_x.end(), y.labels.begin(), y.labels.end());
    for_y.insert(for_y.end(), x.labels.begin(), x.labels.end());
    ONCILLA_TRY(SumAway(x, for_x));
    ONCILLA_TRY(SumAway(y, for_y));
    Labels batch, summed, x_only, y_only;
    for (int label : x.labels) {
      const bool shared = Contains(y.labels, label);
      (!shared ? x_only : Contains(needed, label) ? batch : summed).push_back(label);
    }
    for (int label : y.labels) {
      if (!Contains(x.labels, label)) y_only.push_back(label);
    }
    Operand out;
    out.labels = batch;
    out.labels.insert(out.labels.end(), x_only.begin(), x_only.end());
    out.labels.insert(out.labels.end(), y_only.begin(), y_only.end());
    if (out.labels.size() > kMaxRank) return Unsupported("a result of rank ", out.labels.size());
    if (summed.empty()) {
      ONCILLA_ASSIGN(const ValueId a, Stretched(x, out.labels));
      ONCILLA_ASSIGN(const ValueId c, Stretched(y, out.labels));
      ONCILLA_ASSIGN(out.value, b_.Add("Mul", {}, {a, c}, Role("product")));
      return out;
    }
    const auto joined = [](const Labels& a, const Labels& c, const Labels& d) {
      Labels all = a;
      all.insert(all.end(), c.begin(), c.end());
      all.insert(all.end(), d.begin(), d.end());
      return all;
    };
    ONCILLA_TRY(Order(x, joined(batch, x_only, summed)));
    ONCILLA_TRY(Order(y, joined(batch, summed, y_only)));
    const int nb = static_cast<int>(batch.size());
    const int rows = static_cast<int>(x_only.size()), inner = static_cast<int>(summed.size());
    const int columns = static_cast<int>(y_only.size());
    ONCILLA_ASSIGN(const ValueId a, AsMatrices(x.value, nb, rows, inner));
    ONCILLA_ASSIGN(const ValueId c, AsMatrices(y.value, nb, inner, columns));
    ONCILLA_ASSIGN(out.value, b_.Add("MatMul", {}, {a, c}, Role("product")));
    if (rows == 1 && columns == 1) return out;
    Values sizes;
    if (nb > 0) {
      ONCILLA_ASSIGN(const ValueId part, b_.Sizes(out.value, 0, nb, Role("batch")));
      sizes.push_back(part);
    }
    if (rows > 0) {
      ONCILLA_ASSIGN(const ValueId part, b_.Sizes(x.value, nb, nb + rows, Role("rows")));
      sizes.push_back(part);
    }
    if (columns > 0) {
      ONCILLA_ASSIGN(const ValueId part,
                     b_.Sizes(y.value, nb + inner, nb + inner + columns, Role("columns")));
      sizes.push_back(part);
    }
    ONCILLA_ASSIGN(const ValueId shape, Joined(std::move(sizes)));
    ONCILLA_ASSIGN(out.value, b_.Add("Reshape", {}, {out.value, shape}, Role("unfolded")));
    return out;
  }

  // x with its axes in the order of `labels` and axes of size one for those that it lacks.
  Result<ValueId> Stretched(Operand x, const Labels& labels) {
    Labels own;
    std::vector<int64_t> missing;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (Contains(x.labels, labels[i])) {
        own.push_back(labels[i]);
      } else {
        missing.push_back(static_cast<int64_t>(i));
      }
    }
    ONCILLA_TRY(Order(x, own));
    return b_.Unsqueeze(x.value, std::move(missing), Role("stretched"));
  }

  Result<ValueId> Joined(Values parts) {
    if (parts.empty()) return b_.Ints({});
    if (parts.size() == 1) return parts[0];
    return b_.Add("Concat", {{"axis", int64_t{0}}}, std::move(parts), Role("shape"));
  }

  // [batch.., first.., second..] as matrices: each group of axes as one.
  Result<ValueId> AsMatrices(ValueId x, int batch, int first, int second) {
    if (first == 1 && second == 1) return x;
    Values sizes;
    if (batch > 0) {
      ONCILLA_ASSIGN(const ValueId part, b_.Sizes(x, 0, batch, Role("batch")));
      sizes.push_back(part);
    }
    for (const auto& [start, count] : {std::pair(batch, first), std::pair(batch + first, second)}) {
      if (count == 0) {
        sizes.push_back(b_.Ints({1}));
        continue;
      }
      ONCILLA_ASSIGN(ValueId part, b_.Sizes(x, start, start + count, Role("sizes")));
      if (count > 1) {
        ONCILLA_ASSIGN(part, b_.Add("ReduceProd", {{"keep_dims", true}}, {part}, Role("size")));
      }
      sizes.push_back(part);
    }
    ONCILLA_ASSIGN(const ValueId shape, Joined(std::move(sizes)));
    return b_.Add("Reshape", {}, {x, shape}, Role("matrices"));
  }

  OnnxLowering& b_;
  std::vector<Operand> operands_;
  Labels output_;
  int steps_ = 0;
};

}  // namespace

Result<Values> LowerOnnxEinsum(OnnxLowering& b) { return Einsum(b).Lower(); }

}  // namespace oncilla
