// The optimisers of ai.onnx.preview.training: one step of a training loop as arithmetic. Inputs are
// the learning rate, the number of steps so far, and then lists of equal length: the variables,
// their gradients, and the optimiser's state for each.
#include "engine/import/onnx/lowering.h"

namespace oncilla {
namespace {

// Adds arithmetic nodes on values and numbers, each under a unique name.
class Formula {
 public:
  explicit Formula(OnnxLowering& b) : b_(b) {}
  void Begin(size_t variable, DType dtype) { prefix_ = StrCat("x", variable, "_"), dtype_ = dtype; }
  Result<ValueId> Number(double value) { return b_.Scalar(dtype_, value); }
  Result<ValueId> Do(std::string_view op, ValueId x, ValueId y) {
    return b_.Add(op, {}, {x, y}, StrCat(prefix_, count_++));
  }
  Result<ValueId> Do(std::string_view op, ValueId x) {
    return b_.Add(op, {}, {x}, StrCat(prefix_, count_++));
  }
  Result<ValueId> Times(ValueId x, double factor) {
    ONCILLA_ASSIGN(const ValueId number, Number(factor));
    return Do("Mul", x, number);
  }
  // x + factor * y
  Result<ValueId> Plus(ValueId x, ValueId y, double factor = 1) {
    if (factor == 1) return Do("Add", x, y);
    ONCILLA_ASSIGN(const ValueId part, Times(y, factor));
    return Do("Add", x, part);
  }
  Result<ValueId> As(ValueId x) { return b_.Cast(x, dtype_, StrCat(prefix_, count_++)); }
  Result<ValueId> Either(ValueId condition, ValueId x, ValueId y) {
    return b_.Add("Where", {}, {condition, x, y}, StrCat(prefix_, count_++));
  }

 private:
  OnnxLowering& b_;
  std::string prefix_;
  DType dtype_ = DType::kF32;
  int count_ = 0;
};

// The number of variables: there are two scalar inputs and `lists` values for each variable.
Result<size_t> Variables(const OnnxLowering& b, size_t lists) {
  if (b.inputs() < 2 + lists || (b.inputs() - 2) % lists != 0) {
    return InvalidArgument("has ", b.inputs(), " inputs, not 2 and ", lists, " of each variable");
  }
  return (b.inputs() - 2) / lists;
}

Result<Values> LowerAdagrad(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float decay, b.Float("decay_factor", 0));
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-6f));
  ONCILLA_ASSIGN(const float norm, b.Float("norm_coefficient", 0));
  ONCILLA_ASSIGN(const size_t n, Variables(b, 3));
  Values out(2 * n, kNoValue);
  Formula f(b);
  for (size_t i = 0; i < n; ++i) {
    const ValueId x = b.in(2 + i), gradient = b.in(2 + n + i), squares = b.in(2 + 2 * n + i);
    f.Begin(i, b.dtype(2 + i));
    ONCILLA_ASSIGN(const ValueId one, f.Number(1));
    ONCILLA_ASSIGN(ValueId step, f.As(b.in(1)));
    ONCILLA_ASSIGN(step, f.Plus(one, step, double{decay}));
    ONCILLA_ASSIGN(ValueId rate, f.As(b.in(0)));
    ONCILLA_ASSIGN(rate, f.Do("Div", rate, step));
    ONCILLA_ASSIGN(const ValueId pull, f.Plus(gradient, x, double{norm}));
    ONCILLA_ASSIGN(const ValueId square, f.Do("Square", pull));
    ONCILLA_ASSIGN(out[n + i], f.Plus(squares, square));
    ONCILLA_ASSIGN(ValueId size, f.Do("Sqrt", out[n + i]));
    ONCILLA_ASSIGN(const ValueId least, f.Number(double{epsilon}));
    ONCILLA_ASSIGN(size, f.Plus(size, least));
    ONCILLA_ASSIGN(ValueId move, f.Do("Mul", rate, pull));
    ONCILLA_ASSIGN(move, f.Do("Div", move, size));
    ONCILLA_ASSIGN(out[i], f.Do("Sub", x, move));
  }
  return out;
}

// R * sqrt(1 - beta^T) / (1 - alpha^T) from the second step on; R in the first.
Result<ValueId> AdamRate(OnnxLowering& b, Formula& f, double alpha, double beta) {
  ONCILLA_ASSIGN(const ValueId rate, f.As(b.in(0)));
  ONCILLA_ASSIGN(const ValueId step, f.As(b.in(1)));
  ONCILLA_ASSIGN(const ValueId one, f.Number(1));
  ONCILLA_ASSIGN(const ValueId first, f.Number(alpha));
  ONCILLA_ASSIGN(const ValueId second, f.Number(beta));
  ONCILLA_ASSIGN(ValueId above, f.Do("Pow", second, step));
  ONCILLA_ASSIGN(above, f.Do("Sub", one, above));
  ONCILLA_ASSIGN(above, f.Do("Sqrt", above));
  ONCILLA_ASSIGN(ValueId below, f.Do("Pow", first, step));
  ONCILLA_ASSIGN(below, f.Do("Sub", one, below));
  ONCILLA_ASSIGN(ValueId adjusted, f.Do("Mul", rate, above));
  ONCILLA_ASSIGN(adjusted, f.Do("Div", adjusted, below));
  ONCILLA_ASSIGN(const ValueId zero, f.Number(0));
  ONCILLA_ASSIGN(const ValueId later, f.Do("Greater", step, zero));
  return f.Either(later, adjusted, rate);
}

Result<Values> LowerAdam(OnnxLowering& b) {
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 0.9f));
  ONCILLA_ASSIGN(const float beta, b.Float("beta", 0.999f));
  ONCILLA_ASSIGN(const float epsilon, b.Float("epsilon", 1e-6f));
  ONCILLA_ASSIGN(const float norm, b.Float("norm_coefficient", 0));
  ONCILLA_ASSIGN(const float after, b.Float("norm_coefficient_post", 0));
  ONCILLA_ASSIGN(const size_t n, Variables(b, 4));
  Values out(3 * n, kNoValue);
  Formula f(b);
  for (size_t i = 0; i < n; ++i) {
    const ValueId x = b.in(2 + i), gradient = b.in(2 + n + i);
    f.Begin(i, b.dtype(2 + i));
    ONCILLA_ASSIGN(const ValueId rate, AdamRate(b, f, double{alpha}, double{beta}));
    ONCILLA_ASSIGN(const ValueId pull, f.Plus(gradient, x, double{norm}));
    ONCILLA_ASSIGN(const ValueId mean, f.Times(b.in(2 + 2 * n + i), double{alpha}));
    ONCILLA_ASSIGN(out[n + i], f.Plus(mean, pull, 1 - double{alpha}));
    ONCILLA_ASSIGN(const ValueId square, f.Do("Square", pull));
    ONCILLA_ASSIGN(const ValueId squares, f.Times(b.in(2 + 3 * n + i), double{beta}));
    ONCILLA_ASSIGN(out[2 * n + i], f.Plus(squares, square, 1 - double{beta}));
    ONCILLA_ASSIGN(ValueId size, f.Do("Sqrt", out[2 * n + i]));
    ONCILLA_ASSIGN(const ValueId least, f.Number(double{epsilon}));
    ONCILLA_ASSIGN(size, f.Plus(size, least));
    ONCILLA_ASSIGN(ValueId move, f.Do("Mul", rate, out[n + i]));
    ONCILLA_ASSIGN(move, f.Do("Div", move, size));
    ONCILLA_ASSIGN(const ValueId moved, f.Do("Sub", x, move));
    ONCILLA_ASSIGN(out[i], f.Times(moved, 1 - double{after}));
  }
  return out;
}

Result<Values> LowerMomentum(OnnxLowering& b) {
  for (const char* name : {"alpha", "beta", "mode", "norm_coefficient"}) {
    if (!b.HasAttr(name)) return DataLoss("attribute '", name, "' is missing");
  }
  ONCILLA_ASSIGN(const float alpha, b.Float("alpha", 0));
  ONCILLA_ASSIGN(const float beta, b.Float("beta", 0));
  ONCILLA_ASSIGN(const std::string mode, b.String("mode", ""));
  ONCILLA_ASSIGN(const float norm, b.Float("norm_coefficient", 0));
  if (mode != "standard" && mode != "nesterov") return InvalidArgument("mode is '", mode, "'");
  ONCILLA_ASSIGN(const size_t n, Variables(b, 3));
  Values out(2 * n, kNoValue);
  Formula f(b);
  for (size_t i = 0; i < n; ++i) {
    const ValueId x = b.in(2 + i);
    f.Begin(i, b.dtype(2 + i));
    ONCILLA_ASSIGN(const ValueId rate, f.As(b.in(0)));
    ONCILLA_ASSIGN(const ValueId step, f.As(b.in(1)));
    ONCILLA_ASSIGN(const ValueId zero, f.Number(0));
    ONCILLA_ASSIGN(const ValueId one, f.Number(1));
    ONCILLA_ASSIGN(const ValueId usual, f.Number(double{beta}));
    ONCILLA_ASSIGN(const ValueId later, f.Do("Greater", step, zero));
    ONCILLA_ASSIGN(const ValueId share, f.Either(later, usual, one));
    ONCILLA_ASSIGN(const ValueId pull, f.Plus(b.in(2 + n + i), x, double{norm}));
    ONCILLA_ASSIGN(const ValueId taken, f.Do("Mul", share, pull));
    ONCILLA_ASSIGN(out[n + i], f.Plus(taken, b.in(2 + 2 * n + i), double{alpha}));
    ValueId way = out[n + i];
    if (mode == "nesterov") {
      ONCILLA_ASSIGN(way, f.Plus(pull, out[n + i], double{alpha}));
    }
    ONCILLA_ASSIGN(const ValueId move, f.Do("Mul", rate, way));
    ONCILLA_ASSIGN(out[i], f.Do("Sub", x, move));
  }
  return out;
}

constexpr OnnxOpRow kRows[] = {
    {"Adagrad", 1, kNewestOnnxTraining, 5, "", LowerAdagrad},
    {"Adam", 1, kNewestOnnxTraining, 6, "", LowerAdam},
    {"Momentum", 1, kNewestOnnxTraining, 5, "", LowerMomentum},
};

}  // namespace

std::span<const OnnxOpRow> OnnxTrainingRows() { return kRows; }

}  // namespace oncilla
