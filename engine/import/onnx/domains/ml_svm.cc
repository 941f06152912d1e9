// ai.onnx.ml's support vector machines.
#include <algorithm>
#include <cmath>

#include "engine/import/onnx/domains/ml.h"
#include "engine/ops/math/coupling.h"

namespace oncilla {
namespace {

// exp(-gamma |x - v|^2), computed as |x|^2 - 2 x v' + |v|^2 so that the differences of all rows and
// all vectors are not stored in memory; in double, so that cancellation does not matter.
Result<ValueId> AddWideKernel(OnnxLowering& b, ValueId x, ValueId vectors, double gamma) {
  ONCILLA_ASSIGN(const ValueId rows, b.Cast(x, DType::kF64, "rows"));
  ONCILLA_ASSIGN(const ValueId points, b.Cast(vectors, DType::kF64, "points"));
  ONCILLA_ASSIGN(ValueId y, b.Add(MatMulAttrs{.transpose_b = true}, {rows, points}, "products"));
  ONCILLA_ASSIGN(const ValueId own, b.Add("ReduceSumSquare", ReduceAttrs{.keep_dims = true},
                                          {rows, b.Ints({1})}, "row_squares"));
  ONCILLA_ASSIGN(const ValueId other, b.Add("ReduceSumSquare", ReduceAttrs{.keep_dims = false},
                                            {points, b.Ints({1})}, "point_squares"));
  ONCILLA_ASSIGN(const ValueId minus_two, b.Scalar(DType::kF64, -2));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, minus_two}, "mixed"));
  ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, own}, "with_rows"));
  ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, other}, "distance"));
  ONCILLA_ASSIGN(const ValueId factor, b.Scalar(DType::kF64, -gamma));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, factor}, "exponent"));
  ONCILLA_ASSIGN(y, b.Add("Exp", {}, {y}, "near_wide"));
  return b.Cast(y, DType::kF32, "near");
}

// The kernel named by the attributes, for each row of x and each of the vectors.
Result<ValueId> AddKernel(OnnxLowering& b, ValueId x, ValueId vectors) {
  ONCILLA_ASSIGN(const std::string kind, b.String("kernel_type", "LINEAR"));
  ONCILLA_ASSIGN(std::vector<float> params, b.FloatList("kernel_params"));
  params.resize(3, 0.0f);
  const auto number = [&](double value) { return b.Scalar(DType::kF32, value); };
  const Dim numbers = b.fact(vectors).shape.elements();
  constexpr int64_t kFew = 1 << 16;
  if (kind == "RBF" && numbers.known() && numbers.size > kFew) {
    return AddWideKernel(b, x, vectors, double{params[0]});
  }
  if (kind == "RBF") {
    // exp(-gamma |x - v|^2) from squared differences, which avoids cancellation.
    ONCILLA_ASSIGN(const ValueId rows, b.Unsqueeze(x, {1}, "rows"));
    ONCILLA_ASSIGN(const ValueId apart, b.Add("Sub", {}, {rows, vectors}, "apart"));
    ONCILLA_ASSIGN(const ValueId square, b.Add("Square", {}, {apart}, "square"));
    ONCILLA_ASSIGN(ValueId far, b.Add("ReduceSum", ReduceAttrs{.keep_dims = false},
                                      {square, b.Ints({-1})}, "distance"));
    ONCILLA_ASSIGN(const ValueId gamma, number(-double{params[0]}));
    ONCILLA_ASSIGN(far, b.Add("Mul", {}, {far, gamma}, "exponent"));
    return b.Add("Exp", {}, {far}, "near");
  }
  ONCILLA_ASSIGN(ValueId y, b.Add(MatMulAttrs{.transpose_b = true}, {x, vectors}, "products"));
  if (kind == "LINEAR") return y;
  if (kind != "POLY" && kind != "SIGMOID") return InvalidArgument("kernel_type is '", kind, "'");
  ONCILLA_ASSIGN(const ValueId gamma, number(double{params[0]}));
  ONCILLA_ASSIGN(const ValueId offset, number(double{params[1]}));
  ONCILLA_ASSIGN(y, b.Add("Mul", {}, {y, gamma}, "scaled"));
  ONCILLA_ASSIGN(y, b.Add("Add", {}, {y, offset}, "raised"));
  if (kind == "SIGMOID") return b.Add("Tanh", {}, {y}, "near");
  ONCILLA_ASSIGN(const ValueId degree, number(double{params[2]}));
  return b.Add("Pow", {}, {y, degree}, "near");
}

// The sum of kernels weighted by the coefficients. Without support vectors, the coefficients are
// those of the features, and the kernel is linear.
Result<ValueId> AddKernelSum(OnnxLowering& b, const std::vector<float>& weights) {
  ONCILLA_ASSIGN(const std::vector<float> vectors, b.FloatList("support_vectors"));
  ONCILLA_ASSIGN(const int64_t count, b.Int("n_supports", 0));
  ONCILLA_ASSIGN(const ValueId x, AddRows(b));
  const auto size = std::ssize(vectors), numbers = std::ssize(weights);
  const ValueId column = b.Constant(Tensor::Of<float>(DType::kF32, {numbers, 1}, weights));
  if (count <= 0) {
    b.Ignore("kernel_type");
    b.Ignore("kernel_params");
    return b.Add("MatMul", MatMulAttrs{}, {x, column}, "sum");
  }
  if (numbers != count || size == 0 || size % count != 0) {
    return InvalidArgument(numbers, " coefficients and ", size, " numbers of vectors for ", count,
                           " support vectors");
  }
  const ValueId points = b.Constant(Tensor::Of<float>(DType::kF32, {count, size / count}, vectors));
  ONCILLA_ASSIGN(const ValueId near, AddKernel(b, x, points));
  return b.Add("MatMul", MatMulAttrs{}, {near, column}, "sum");
}

// The sum plus rho; for a one-class model, its sign.
Result<Values> LowerSvmRegressor(OnnxLowering& b) {
  ONCILLA_ASSIGN(const std::vector<float> weights, b.FloatList("coefficients"));
  ONCILLA_ASSIGN(const std::vector<float> rho, b.FloatList("rho"));
  ONCILLA_ASSIGN(const bool one_class, b.Flag("one_class", false));
  b.Ignore("post_transform");  // ONNX Runtime reads it and does not use it
  if (weights.empty() || rho.size() != 1) {
    return InvalidArgument(weights.size(), " coefficients and ", rho.size(), " rho");
  }
  ONCILLA_ASSIGN(const ValueId sum, AddKernelSum(b, weights));
  ONCILLA_ASSIGN(const ValueId offset, b.Scalar(DType::kF32, double{rho[0]}));
  ONCILLA_ASSIGN(const ValueId y, b.Add("Add", {}, {sum, offset}, one_class ? "score" : ""));
  if (!one_class) return Values{y};
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF32, 0));
  ONCILLA_ASSIGN(const ValueId inside, b.Add("Greater", {}, {y, zero}, "inside"));
  ONCILLA_ASSIGN(const ValueId plus, b.Scalar(DType::kF32, 1));
  ONCILLA_ASSIGN(const ValueId minus, b.Scalar(DType::kF32, -1));
  return One(b.Add("Where", {}, {inside, plus, minus}));
}

// A classifier's attributes: C classes, P = C (C - 1) / 2 pairs of them, S support vectors, ordered
// by class.
struct Machine {
  std::vector<float> vectors, coefficients, rho, prob_a, prob_b;
  std::vector<int64_t> per_class, starts;
  int64_t classes = 0, pairs = 0, supports = 0, features = 0;
};
Result<Machine> ReadMachine(OnnxLowering& b) {
  Machine m;
  ONCILLA_ASSIGN(m.vectors, b.FloatList("support_vectors"));
  ONCILLA_ASSIGN(m.coefficients, b.FloatList("coefficients"));
  ONCILLA_ASSIGN(m.rho, b.FloatList("rho"));
  ONCILLA_ASSIGN(m.prob_a, b.FloatList("prob_a"));
  ONCILLA_ASSIGN(m.prob_b, b.FloatList("prob_b"));
  ONCILLA_ASSIGN(m.per_class, b.IntList("vectors_per_class"));
  constexpr int64_t kMost = int64_t{1} << 30;
  for (const int64_t count : m.per_class) {
    if (count < 0 || count > kMost) return InvalidArgument("a class of ", count, " vectors");
    m.starts.push_back(m.supports);
    m.supports += count;
  }
  m.classes = std::ssize(m.per_class);
  if (m.supports == 0) return m;
  if (m.classes < 2 || m.classes > 1024) return InvalidArgument(m.classes, " classes");
  m.pairs = m.classes * (m.classes - 1) / 2;
  constexpr int64_t kMostWeights = int64_t{1} << 28;
  if (SaturatingMul(m.pairs, m.supports) > kMostWeights) {
    return Unsupported("of ", m.pairs, " pairs of classes with ", m.supports, " vectors");
  }
  if (m.vectors.empty() || std::ssize(m.vectors) % m.supports != 0 ||
      std::ssize(m.coefficients) != SaturatingMul(m.classes - 1, m.supports) ||
      std::ssize(m.rho) != m.pairs) {
    return InvalidArgument(m.vectors.size(), " numbers of vectors, ", m.coefficients.size(),
                           " coefficients and ", m.rho.size(), " rho for ", m.supports,
                           " vectors of ", m.classes, " classes");
  }
  if (m.prob_a.size() != m.prob_b.size() ||
      (!m.prob_a.empty() && std::ssize(m.prob_a) != m.pairs)) {
    return InvalidArgument(m.prob_a.size(), " prob_a and ", m.prob_b.size(), " prob_b for ",
                           m.pairs, " pairs");
  }
  m.features = std::ssize(m.vectors) / m.supports;
  return m;
}

// [S, P]: the weight of each vector in the decision of each pair. The coefficients of a class
// against the C - 1 other classes are in C - 1 rows, in the order of those classes.
Tensor PairWeights(const Machine& m) {
  std::vector<float> weights(static_cast<size_t>(m.supports * m.pairs), 0.0f);
  const auto take = [&](int64_t of, int64_t row, int64_t pair) {
    for (int64_t i = 0; i < m.per_class[static_cast<size_t>(of)]; ++i) {
      const int64_t vector = m.starts[static_cast<size_t>(of)] + i;
      weights[static_cast<size_t>(vector * m.pairs + pair)] =
          m.coefficients[static_cast<size_t>(row * m.supports + vector)];
    }
  };
  int64_t pair = 0;
  for (int64_t i = 0; i < m.classes; ++i) {
    for (int64_t j = i + 1; j < m.classes; ++j, ++pair) {
      take(i, j - 1, pair);
      take(j, i, pair);
    }
  }
  return Tensor::Of<float>(DType::kF32, {m.supports, m.pairs}, weights);
}

// The number of pairs that each class wins, [N, C]; the first class of a pair wins if its decision
// is above zero. The table gives, for each class, the columns of its C - 1 pairs in the
// concatenation [wins of first classes, wins of second classes].
Result<ValueId> AddVotes(OnnxLowering& b, const Machine& m, ValueId decisions) {
  std::vector<int64_t> places(static_cast<size_t>(m.classes * (m.classes - 1)));
  std::vector<int64_t> filled(static_cast<size_t>(m.classes), 0);
  int64_t pair = 0;
  for (int64_t i = 0; i < m.classes; ++i) {
    for (int64_t j = i + 1; j < m.classes; ++j, ++pair) {
      const auto put = [&](int64_t of, int64_t place) {
        int64_t& next = filled[static_cast<size_t>(of)];
        places[static_cast<size_t>(of * (m.classes - 1) + next++)] = place;
      };
      put(i, pair);
      put(j, m.pairs + pair);
    }
  }
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kF32, 0));
  ONCILLA_ASSIGN(const ValueId above, b.Add("Greater", {}, {decisions, zero}, "first_wins"));
  ONCILLA_ASSIGN(const ValueId lost, b.Add("Not", {}, {above}, "second_wins"));
  ONCILLA_ASSIGN(const ValueId both, b.Add(ConcatAttrs{.axis = 1}, {above, lost}, "wins"));
  ONCILLA_ASSIGN(const ValueId won, b.Cast(both, DType::kF32, "won"));
  const ValueId table =
      b.Constant(Tensor::Of<int64_t>(DType::kI64, {m.classes, m.classes - 1}, places));
  ONCILLA_ASSIGN(const ValueId own, b.Add(GatherAttrs{.axis = 1}, {won, table}, "own_pairs"));
  return b.Add("ReduceSum", ReduceAttrs{.keep_dims = false}, {own, b.Ints({2})}, "votes");
}

// Platt's probability for the first class of each pair, kept away from 0 and 1, and from these the
// probabilities of the classes.
Result<ValueId> AddProbabilities(OnnxLowering& b, const Machine& m, ValueId decisions) {
  const ValueId slope = b.Constant(Tensor::Of<float>(DType::kF32, {m.pairs}, m.prob_a));
  const ValueId offset = b.Constant(Tensor::Of<float>(DType::kF32, {m.pairs}, m.prob_b));
  ONCILLA_ASSIGN(ValueId x, b.Add("Mul", {}, {decisions, slope}, "sloped"));
  ONCILLA_ASSIGN(x, b.Add("Add", {}, {x, offset}, "placed"));
  ONCILLA_ASSIGN(x, b.Add("Sigmoid", {}, {x}, "second_probable"));
  ONCILLA_ASSIGN(const ValueId one, b.Scalar(DType::kF32, 1));
  ONCILLA_ASSIGN(x, b.Add("Sub", {}, {one, x}, "first_probable"));
  ONCILLA_ASSIGN(const ValueId least, b.Scalar(DType::kF32, double{1e-7f}));
  ONCILLA_ASSIGN(const ValueId most, b.Scalar(DType::kF32, double{1 - 1e-7f}));
  ONCILLA_ASSIGN(x, b.Add("Clip", {}, {x, least, most}, "pairs"));
  return b.Add("CoupleProbabilities", CoupleProbabilitiesAttrs{m.classes}, {x}, "probabilities");
}

// Without support vectors: a score for each class, with coefficients [classes, features]. The label
// is the class of the largest score. With two classes and no probabilities, it is the second class
// if the largest score is above zero, or, if no coefficient is negative, at least 0.5.
Result<Values> LowerLinearSvm(OnnxLowering& b, const Machine& m, const std::string& transform) {
  for (const char* name : {"kernel_type", "kernel_params", "support_vectors"}) b.Ignore(name);
  ONCILLA_ASSIGN(const std::vector<int64_t> numbers, b.IntList("classlabels_ints"));
  ONCILLA_ASSIGN(const std::vector<Bytes> words, b.StringList("classlabels_strings"));
  const auto classes = static_cast<int64_t>(std::max(numbers.size(), words.size()));
  const auto count = std::ssize(m.coefficients);
  if (classes < 2 || count == 0 || count % classes != 0 || m.rho.empty()) {
    return InvalidArgument(count, " coefficients and ", m.rho.size(), " rho for ", classes,
                           " classes without support vectors");
  }
  ONCILLA_ASSIGN(const ValueId x, AddRows(b));
  const ValueId matrix =
      b.Constant(Tensor::Of<float>(DType::kF32, {classes, count / classes}, m.coefficients));
  ONCILLA_ASSIGN(ValueId scores, b.Add(MatMulAttrs{.transpose_b = true}, {x, matrix}, "products"));
  ONCILLA_ASSIGN(const ValueId rho, b.Scalar(DType::kF32, double{m.rho[0]}));
  ONCILLA_ASSIGN(scores, b.Add("Add", {}, {scores, rho}, "scores"));
  ONCILLA_ASSIGN(ValueId place,
                 b.Add("ArgMax", ArgAttrs{.axis = 1, .keep_dims = false}, {scores}, "top"));
  if (classes == 2 && m.prob_a.empty()) {
    const bool positive = std::all_of(m.coefficients.begin(), m.coefficients.end(),
                                      [](float value) { return value >= 0; });
    ONCILLA_ASSIGN(const ValueId most, b.Add("ReduceMax", ReduceAttrs{.keep_dims = false},
                                             {scores, b.Ints({1})}, "largest"));
    ONCILLA_ASSIGN(const ValueId bound, b.Scalar(DType::kF32, positive ? 0.5 : 0));
    ONCILLA_ASSIGN(const ValueId above,
                   b.Add(positive ? "GreaterEqual" : "Greater", {}, {most, bound}, "above"));
    ONCILLA_ASSIGN(const ValueId second, b.Cast(above, DType::kI64, "second"));
    ONCILLA_ASSIGN(place, b.Add("Max", {}, {place, second}, "place"));
  }
  ONCILLA_ASSIGN(const ValueId label,
                 AddLabelAt(b, place, classes, "classlabels_ints", "classlabels_strings"));
  ONCILLA_ASSIGN(const ValueId shown, AddPostTransform(b, scores, transform, "shown"));
  return Values{label, shown};
}

// The label is the class that wins most pairs; of several such classes, the first. Scores are
// probabilities if there are parameters for them, otherwise the decisions; for two classes, the
// negated decision comes first.
Result<Values> LowerSvmClassifier(OnnxLowering& b) {
  ONCILLA_ASSIGN(const Machine m, ReadMachine(b));
  ONCILLA_ASSIGN(const std::string transform, b.String("post_transform", "NONE"));
  if (m.supports == 0) return LowerLinearSvm(b, m, transform);
  ONCILLA_ASSIGN(const ValueId x, AddRows(b));
  const ValueId points =
      b.Constant(Tensor::Of<float>(DType::kF32, {m.supports, m.features}, m.vectors));
  ONCILLA_ASSIGN(const ValueId near, AddKernel(b, x, points));
  ONCILLA_ASSIGN(const ValueId sums,
                 b.Add("MatMul", {}, {near, b.Constant(PairWeights(m))}, "sums"));
  const ValueId rho = b.Constant(Tensor::Of<float>(DType::kF32, {m.pairs}, m.rho));
  ONCILLA_ASSIGN(const ValueId decisions, b.Add("Add", {}, {sums, rho}, "decisions"));
  ONCILLA_ASSIGN(const ValueId votes, AddVotes(b, m, decisions));
  ONCILLA_ASSIGN(const ValueId label,
                 AddTopLabel(b, votes, m.classes, "classlabels_ints", "classlabels_strings"));
  ValueId scores = decisions;
  if (!m.prob_a.empty()) {
    ONCILLA_ASSIGN(scores, AddProbabilities(b, m, decisions));
  } else if (m.classes == 2) {
    if (transform != "NONE") {
      ONCILLA_ASSIGN(const ValueId both, AddBothScores(b, decisions, transform));
      return Values{label, both};
    }
    ONCILLA_ASSIGN(const ValueId other, b.Add("Neg", {}, {decisions}, "other_side"));
    ONCILLA_ASSIGN(scores, b.Add(ConcatAttrs{.axis = 1}, {other, decisions}, "both_sides"));
  }
  ONCILLA_ASSIGN(const ValueId shown, AddPostTransform(b, scores, transform, "shown"));
  return Values{label, shown};
}

constexpr OnnxOpRow kRows[] = {
    {"SVMClassifier", 1, kNewestOnnxMl, 1, "", LowerSvmClassifier},
    {"SVMRegressor", 1, kNewestOnnxMl, 1, "", LowerSvmRegressor},
};

}  // namespace

std::span<const OnnxOpRow> OnnxMlSvmRows() { return kRows; }

}  // namespace oncilla
