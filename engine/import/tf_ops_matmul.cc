// TensorFlow's matrix products. An Einsum of two operands is at heart one batched product: its
// labels fall into those of the batch, of each side alone, and those summed over.
#include <algorithm>

#include "engine/import/tf_lowering.h"

namespace oncilla {
namespace {

// ONNX multiplies vectors, TensorFlow refuses them.
Status CheckMatrices(const TfLowering& b) {
  for (size_t i = 0; i < 2; ++i) {
    const PartialShape& shape = b.in_fact(i).shape;
    if (!shape.ranked() || shape.rank() >= 2) continue;
    return InvalidArgument("operand ", i, " must have at least two axes and is ", shape);
  }
  return Status();
}

Result<Values> LowerMatMul(TfLowering& b) {
  ONCILLA_TRY(CheckMatrices(b));
  ONCILLA_ASSIGN(const bool transpose_a, b.attrs().Bool("transpose_a"));
  ONCILLA_ASSIGN(const bool transpose_b, b.attrs().Bool("transpose_b"));
  return One(b.Add("MatMul", {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
                   {b.in(0), b.in(1)}));
}

Result<Values> LowerBatchMatMul(TfLowering& b) {
  ONCILLA_TRY(CheckMatrices(b));
  ONCILLA_ASSIGN(const bool adj_x, b.attrs().Bool("adj_x"));
  ONCILLA_ASSIGN(const bool adj_y, b.attrs().Bool("adj_y"));
  if (b.op() == "BatchMatMulV3") {
    ONCILLA_ASSIGN(const DType result, b.attrs().Type("Tout"));
    // Narrow factors are widened first: the sum would not fit them.
    Values factors = {b.in(0), b.in(1)};
    for (size_t i = 0; i < 2; ++i) {
      if (b.fact(factors[i]).dtype == result) continue;
      ONCILLA_ASSIGN(factors[i],
                     b.Add("Cast", {{"to", result}}, {factors[i]}, i == 0 ? "wide_x" : "wide_y"));
    }
    return One(b.Add("MatMul", {{"transpose_a", adj_x}, {"transpose_b", adj_y}}, factors));
  }
  return One(b.Add("MatMul", {{"transpose_a", adj_x}, {"transpose_b", adj_y}}, {b.in(0), b.in(1)}));
}

Result<Values> LowerFusedMatMul(TfLowering& b) {
  ONCILLA_TRY(CheckMatrices(b));
  ONCILLA_ASSIGN(const bool transpose_a, b.attrs().Bool("transpose_a"));
  ONCILLA_ASSIGN(const bool transpose_b, b.attrs().Bool("transpose_b"));
  ONCILLA_ASSIGN(const std::vector<std::string> fused, b.attrs().Strings("fused_ops"));
  ONCILLA_ASSIGN(ValueId y,
                 b.Add("MatMul", {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
                       {b.in(0), b.in(1)}, fused.empty() ? "" : "matmul"));
  size_t arg = 2;
  for (size_t i = 0; i < fused.size(); ++i) {
    const std::string role = i + 1 == fused.size() ? "" : "fused" + std::to_string(i);
    if (fused[i] == "BiasAdd") {
      if (arg >= b.inputs()) return DataLoss("the input for ", fused[i], " is missing");
      ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, b.in(arg++)}, role));
    } else if (fused[i] == "Relu" || fused[i] == "Relu6" || fused[i] == "Elu" ||
               fused[i] == "Tanh" || fused[i] == "Sigmoid") {
      ONCILLA_ASSIGN(y, b.Add(fused[i], {}, {y}, role));
    } else if (fused[i] == "LeakyRelu") {
      ONCILLA_ASSIGN(const float alpha, b.attrs().Float("leakyrelu_alpha"));
      ONCILLA_ASSIGN(y, b.Add("LeakyRelu", {{"alpha", double{alpha}}}, {y}, role));
    } else if (fused[i] == "GeluExact" || fused[i] == "GeluApproximate") {
      ONCILLA_ASSIGN(y, b.Add("Gelu", {{"approximate", fused[i] == "GeluApproximate"}}, {y}, role));
    } else {
      return Unsupported("the fused op ", fused[i]);
    }
  }
  return Values{y};
}

// An einsum operand: one label per axis.
struct Labelled {
  ValueId value = kNoValue;
  std::string labels;
};

bool Has(const std::string& labels, char c) { return labels.find(c) != std::string::npos; }

constexpr char kFirstPrivate = '\x10';  // below all letters
bool IsPrivate(char label) { return label < 'A'; }

// The labels of an operand; "..." becomes private labels, the same ones for the same distance from
// the right end.
Result<std::string> ReadLabels(std::string_view text, const PartialShape& shape,
                               std::string_view what) {
  std::string out;
  if (!shape.ranked()) return Unsupported("the rank of ", what, " is not known");
  if (shape.rank() > kMaxRank) return Unsupported("the rank ", shape.rank(), " of ", what);
  const size_t dots = text.find("...");
  const size_t named = dots == std::string_view::npos ? text.size() : text.size() - 3;
  const auto rank = static_cast<size_t>(shape.rank());
  if (rank < named || (dots == std::string_view::npos && rank != named)) {
    return InvalidArgument(what, " has the rank ", rank, " and the labels ", text);
  }
  const size_t spread = rank - named;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (size_t k = spread; k > 0; --k) out += static_cast<char>(kFirstPrivate + k - 1);
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

std::string WithoutRepeats(const std::string& labels) {
  std::string out;
  for (char c : labels) {
    if (!Has(out, c)) out += c;
  }
  return out;
}

class Einsum {
 public:
  explicit Einsum(TfLowering& b) : b_(b) {}

  Result<ValueId> Lower() {
    ONCILLA_ASSIGN(std::string equation, b_.attrs().String("equation"));
    std::erase(equation, ' ');
    const size_t arrow = equation.find("->");
    if (arrow == std::string::npos) return Unsupported("an equation without '->': ", equation);
    const std::string left = equation.substr(0, arrow);
    const std::string right = equation.substr(arrow + 2);
    const size_t comma = left.find(',');
    const size_t operands = comma == std::string::npos ? 1 : 2;
    if (operands != b_.inputs() || left.find(',', comma + 1) < left.size()) {
      return Unsupported("the equation ", equation, " with ", b_.inputs(), " inputs");
    }
    ONCILLA_ASSIGN(Labelled x, Operand(0, left.substr(0, comma)));
    size_t spread = Private(x.labels);
    Labelled y;
    if (operands == 2) {
      ONCILLA_ASSIGN(y, Operand(1, left.substr(comma + 1)));
      spread = std::max(spread, Private(y.labels));
    }
    // The result's "..." stands for the longest one of the operands.
    ONCILLA_ASSIGN(const std::string wanted, OutputLabels(right, spread));
    out_ = WithoutRepeats(wanted);
    for (char c : out_) {
      if (!Has(x.labels, c) && !Has(y.labels, c)) {
        return InvalidArgument("the label ", c, " of the result is in no operand");
      }
    }
    ONCILLA_ASSIGN(x, SumAlone(std::move(x), y.labels, "sum_x"));
    if (operands == 1) {
      ONCILLA_ASSIGN(const ValueId result, Arrange(x, out_, ""));
      return Spread(result, wanted);
    }
    ONCILLA_ASSIGN(y, SumAlone(std::move(y), x.labels, "sum_y"));
    ONCILLA_ASSIGN(const ValueId result, Product(x, y));
    return Spread(result, wanted);
  }

 private:
  static size_t Private(const std::string& labels) {
    return static_cast<size_t>(std::count_if(labels.begin(), labels.end(), IsPrivate));
  }

  Result<Labelled> Operand(size_t i, const std::string& text) {
    const std::string what = "operand " + std::to_string(i);
    ONCILLA_ASSIGN(std::string labels, ReadLabels(text, b_.in_fact(i).shape, what));
    Labelled x{b_.in(i), std::move(labels)};
    while (WithoutRepeats(x.labels) != x.labels) {
      ONCILLA_ASSIGN(x, Diagonal(std::move(x), what));
    }
    return x;
  }

  // The first label that stands twice, as one axis: of the two only the diagonal counts.
  Result<Labelled> Diagonal(Labelled x, const std::string& what) {
    size_t second = 1;
    while (x.labels.find(x.labels[second]) == second) ++second;
    const char label = x.labels[second];
    const size_t first = x.labels.find(label);
    const PartialShape& shape = b_.fact(x.value).shape;
    const Dim &rows = shape[static_cast<int>(first)], &columns = shape[static_cast<int>(second)];
    if (rows.known() && columns.known() && rows.size != columns.size) {
      return InvalidArgument(what, " has the sizes ", rows.size, " and ", columns.size,
                             " for the label ", label);
    }
    if (!rows.Same(columns)) {
      return Unsupported("two sizes of the label ", label, " that are not known to be equal");
    }
    std::vector<int64_t> perm;
    Labelled out;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (i == first || i == second) continue;
      perm.push_back(static_cast<int64_t>(i));
      out.labels += x.labels[i];
    }
    perm.insert(perm.end(), {static_cast<int64_t>(first), static_cast<int64_t>(second)});
    out.labels += label;
    ONCILLA_ASSIGN(const ValueId square, b_.Transpose(x.value, std::move(perm), "square"));
    ONCILLA_ASSIGN(const ValueId zero, b_.Scalar(b_.fact(square).dtype, 0));
    ONCILLA_ASSIGN(out.value,
                   b_.Add("MatrixDiagPart", {}, {square, b_.Ints({0}), zero}, "diagonal"));
    return out;
  }

  // The result with labels that are wanted more than once laid out on diagonals.
  Result<ValueId> Spread(ValueId result, const std::string& wanted) {
    if (wanted == out_) return result;
    Labelled x{result, out_};
    for (char label : out_) {
      for (auto n = std::count(wanted.begin(), wanted.end(), label); n > 1; --n) {
        std::string order = x.labels;
        order.erase(order.find(label), 1);
        // Earlier copies of the label stay in front.
        order += label;
        std::vector<int64_t> perm;
        for (size_t i = 0; i < x.labels.size(); ++i) {
          if (i != x.labels.find(label)) perm.push_back(static_cast<int64_t>(i));
        }
        perm.push_back(static_cast<int64_t>(x.labels.find(label)));
        ONCILLA_ASSIGN(const ValueId last, b_.Transpose(x.value, std::move(perm), "last"));
        ONCILLA_ASSIGN(const ValueId zero, b_.Scalar(b_.fact(last).dtype, 0));
        const ValueId open = b_.Ints({-1});
        ONCILLA_ASSIGN(x.value,
                       b_.Add("MatrixDiag", {}, {last, b_.Ints({0}), open, open, zero}, "spread"));
        x.labels = order + label;
      }
    }
    std::vector<int64_t> perm;
    std::vector<char> used(x.labels.size(), 0);
    for (char label : wanted) {
      size_t at = 0;
      while (x.labels[at] != label || used[at] != 0) ++at;
      used[at] = 1;
      perm.push_back(static_cast<int64_t>(at));
    }
    return b_.Transpose(x.value, std::move(perm), "");
  }

  static Result<std::string> OutputLabels(const std::string& text, size_t spread) {
    const bool dots = text.find("...") != std::string::npos;
    if (!dots && spread > 0) {
      return InvalidArgument("the equation has '...' in an operand and not in the result");
    }
    const size_t rank = dots ? text.size() - 3 + spread : text.size();
    return ReadLabels(text, PartialShape::OfRank(static_cast<int>(rank)), "the result");
  }

  // Sums over labels that are neither in the other operand nor in the result.
  Result<Labelled> SumAlone(Labelled x, const std::string& other, std::string_view role) {
    std::vector<int64_t> axes;
    std::string left;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (Has(other, x.labels[i]) || Has(out_, x.labels[i])) {
        left += x.labels[i];
      } else {
        axes.push_back(static_cast<int64_t>(i));
      }
    }
    if (axes.empty()) return x;
    ONCILLA_ASSIGN(const ValueId sum, b_.Add("ReduceSum", {}, {x.value, b_.Ints(axes)}, role));
    return Labelled{sum, left};
  }

  // The operand with its axes in the order of `labels`, all of which it has.
  Result<ValueId> Arrange(const Labelled& x, const std::string& labels, std::string_view role) {
    if (labels == x.labels) {
      return role.empty() ? b_.Add("Identity", {}, {x.value}) : Result<ValueId>(x.value);
    }
    std::vector<int64_t> perm;
    for (char c : labels) perm.push_back(static_cast<int64_t>(x.labels.find(c)));
    return b_.Transpose(x.value, std::move(perm), role);
  }

  // One axis of a wanted shape: the size of a label, or the product of a group's sizes, as an
  // operand has them.
  struct Size {
    const Labelled* from;
    std::string labels;
  };

  const Dim& DimOf(const Labelled& x, char label) {
    return b_.fact(x.value).shape[static_cast<int>(x.labels.find(label))];
  }

  Dim Known(const Size& size) {
    int64_t total = 1;
    for (char label : size.labels) {
      const Dim& d = DimOf(*size.from, label);
      if (!d.known()) return Dim();
      total = SaturatingMul(total, d.size);
    }
    return Dim(total);
  }

  // The size as a vector of one number, read from the operand's shape where it is not known.
  Result<ValueId> Compute(const Size& size, const std::string& role) {
    if (const Dim known = Known(size); known.known()) return b_.Ints({known.size});
    ValueId total = kNoValue;
    for (char label : size.labels) {
      const auto axis = static_cast<int64_t>(size.from->labels.find(label));
      ONCILLA_ASSIGN(const ValueId one, b_.Add("Shape", {{"start", axis}, {"end", axis + 1}},
                                               {size.from->value}, role));
      if (total == kNoValue) {
        total = one;
      } else {
        ONCILLA_ASSIGN(total, b_.Add("Mul", {}, {total, one}, role));
      }
    }
    return total;
  }

  Result<ValueId> ReshapeTo(ValueId x, const std::vector<Size>& sizes, std::string_view role) {
    const std::string prefix(role.empty() ? "result" : role);
    std::vector<int64_t> known;
    for (const Size& size : sizes) {
      if (const Dim d = Known(size); d.known()) known.push_back(d.size);
    }
    if (known.size() == sizes.size()) {
      return b_.Add("Reshape", {}, {x, b_.Ints(std::move(known))}, role);
    }
    Values parts;
    for (const Size& size : sizes) {
      ONCILLA_ASSIGN(const ValueId part, Compute(size, prefix + "_size"));
      parts.push_back(part);
    }
    ONCILLA_ASSIGN(const ValueId shape,
                   b_.Add("Concat", {{"axis", int64_t{0}}}, std::move(parts), prefix + "_shape"));
    return b_.Add("Reshape", {}, {x, shape}, role);
  }

  Result<ValueId> Product(const Labelled& x, const Labelled& y) {
    std::string batch, x_only, y_only, summed;
    for (char c : out_) {
      if (Has(x.labels, c) && Has(y.labels, c)) {
        batch += c;
      } else if (Has(x.labels, c)) {
        x_only += c;
      } else {
        y_only += c;
      }
    }
    for (char c : x.labels) {
      if (Has(y.labels, c) && !Has(out_, c)) summed += c;
    }
    // To [batch.., x_only, summed] and [batch.., summed, y_only], each group merged to one axis.
    ONCILLA_ASSIGN(ValueId left, Arrange(x, batch + x_only + summed, "x"));
    ONCILLA_ASSIGN(ValueId right, Arrange(y, batch + summed + y_only, "y"));
    const bool merge = x_only.size() != 1 || y_only.size() != 1 || summed.size() != 1;
    std::vector<Size> left_sizes, right_sizes, sizes;
    for (char c : batch) {
      left_sizes.push_back({&x, {c}});
      right_sizes.push_back({&y, {c}});
      // What "..." stands for may stretch: then the other operand has the size.
      const Dim& d = DimOf(x, c);
      const bool stretched = IsPrivate(c) && (d.known() ? d.size == 1 : DimOf(y, c).known());
      sizes.push_back({stretched && DimOf(y, c).size != 1 ? &y : &x, {c}});
    }
    if (merge) {
      left_sizes.insert(left_sizes.end(), {{&x, x_only}, {&x, summed}});
      right_sizes.insert(right_sizes.end(), {{&y, summed}, {&y, y_only}});
      ONCILLA_ASSIGN(left, ReshapeTo(left, left_sizes, "x_matrix"));
      ONCILLA_ASSIGN(right, ReshapeTo(right, right_sizes, "y_matrix"));
    }
    const std::string order = batch + x_only + y_only;
    const bool arrange = order != out_;
    ONCILLA_ASSIGN(ValueId product,
                   b_.Add("MatMul", {}, {left, right}, merge || arrange ? "product" : ""));
    if (merge) {
      for (char c : x_only) sizes.push_back({&x, {c}});
      for (char c : y_only) sizes.push_back({&y, {c}});
      ONCILLA_ASSIGN(product, ReshapeTo(product, sizes, arrange ? "axes" : ""));
    }
    if (!arrange) return product;
    return Arrange({product, order}, out_, "");
  }

  TfLowering& b_;
  std::string out_;
};

Result<Values> LowerEinsum(TfLowering& b) { return One(Einsum(b).Lower()); }

constexpr TfOpRow kRows[] = {
    {"BatchMatMul", 2, "", LowerBatchMatMul},
    {"BatchMatMulV2", 2, "", LowerBatchMatMul},
    {"BatchMatMulV3", 2, "", LowerBatchMatMul},
    {"Einsum", 1, "", LowerEinsum},
    {"MatMul", 2, "", LowerMatMul},
    {"_FusedMatMul", 2, "", LowerFusedMatMul},
};

}  // namespace

std::span<const TfOpRow> TfMatMulRows() { return kRows; }

}  // namespace oncilla
