// Complex linear algebra on the parts of numbers: products by four real ones, decompositions by one
// canonical op.
#include "engine/import/tf/ops/signal_algebra.h"

#include <cmath>

#include "engine/import/tf/ops/formula.h"
#include "engine/ops/math/decompose.h"

namespace oncilla {
namespace {

struct Parts {
  ValueId real, imaginary;
};

Parts PartsOf(TfLowering& b, TfFormula& f, ValueId x) {
  const auto part = [&](int64_t which) {
    return f(GatherAttrs{.axis = -1}, {x, b.Constant(Tensor::ScalarInt64(which))});
  };
  return {part(0), part(1)};
}

// The last node of a lowering, with the node's own name.
Result<Values> Joined(TfFormula& f, const Parts& x) {
  const ValueId real = f("Unsqueeze", {x.real, f.Ints({-1})});
  const ValueId imaginary = f("Unsqueeze", {x.imaginary, f.Ints({-1})});
  return f.Last(ConcatAttrs{.axis = -1}, {real, imaginary});
}

// One and minus one, which conjugate a tensor that they multiply.
ValueId Signs(TfLowering& b, TfFormula& f) {
  const DType dtype = b.in_fact(0).dtype;
  const ValueId plus = f("Unsqueeze", {f.Number(dtype, 1), f.Ints({0})});
  const ValueId minus = f("Unsqueeze", {f.Number(dtype, -1), f.Ints({0})});
  return f(ConcatAttrs{.axis = 0}, {plus, minus});
}

}  // namespace

// Four products of real matrices. Only the adjoint of BatchMatMul is conjugated.
Result<Values> LowerComplexMatMul(TfLowering& b) {
  const bool batched = b.op() != "MatMul";
  ONCILLA_ASSIGN(const bool of_a, b.attrs().Bool(batched ? "adj_x" : "transpose_a"));
  ONCILLA_ASSIGN(const bool of_b, b.attrs().Bool(batched ? "adj_y" : "transpose_b"));
  for (size_t i = 0; i < 2; ++i) {
    ONCILLA_ASSIGN(const int rank, b.Rank(i, "a matrix of complex numbers"));
    if (rank < 3) return InvalidArgument("operand ", i, " must have at least two axes");
  }
  TfFormula f(b);
  Parts x = PartsOf(b, f, b.in(0)), y = PartsOf(b, f, b.in(1));
  if (batched && of_a) x.imaginary = f("Neg", {x.imaginary});
  if (batched && of_b) y.imaginary = f("Neg", {y.imaginary});
  const MatMulAttrs attrs = {.transpose_a = of_a, .transpose_b = of_b};
  const auto product = [&](ValueId p, ValueId q) { return f(attrs, {p, q}); };
  const ValueId real = f("Sub", {product(x.real, y.real), product(x.imaginary, y.imaginary)});
  const ValueId imaginary = f("Add", {product(x.real, y.imaginary), product(x.imaginary, y.real)});
  return Joined(f, {real, imaginary});
}

Result<Values> LowerComplexDecompose(TfLowering& b) {
  DecomposeComplexAttrs attrs;
  const std::string_view op = b.op();
  if (op == "Qr" || op == "Svd") {
    attrs.into = op == "Qr" ? "qr" : "svd";
    ONCILLA_ASSIGN(attrs.full, b.attrs().Bool("full_matrices"));
  }
  if (op == "Svd") {
    ONCILLA_ASSIGN(attrs.vectors, b.attrs().Bool("compute_uv"));
  } else if (op == "SelfAdjointEigV2") {
    attrs.into = "eigen";
    ONCILLA_ASSIGN(attrs.vectors, b.attrs().Bool("compute_v"));
  } else if (op == "Lu") {
    attrs.into = "lu";
    ONCILLA_ASSIGN(attrs.index, b.attrs().Type("output_idx_type"));
  } else if (op == "MatrixInverse") {
    attrs.into = "inverse";
    ONCILLA_ASSIGN(attrs.adjoint, b.attrs().Bool("adjoint"));
  } else if (op == "MatrixSquareRoot") {
    attrs.into = "square_root";
  } else if (op == "MatrixDeterminant") {
    attrs.into = "determinant";
  } else if (op == "LogMatrixDeterminant") {
    attrs.into = "log_determinant";
  }
  ONCILLA_ASSIGN(Values out, b.AddAll("DecomposeComplex", attrs, {b.in(0)}));
  // A single number in place of each output that was not requested.
  const size_t outputs = op == "Svd" ? 3 : op == "SelfAdjointEigV2" ? 2 : out.size();
  while (out.size() < outputs) {
    ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.dtype(), 0));
    ONCILLA_ASSIGN(const ValueId none, b.Add("Fill", {}, {b.Ints({2}), zero}, "none"));
    out.push_back(none);
  }
  return out;
}

// The root with a real part that is not negative; its imaginary part has the sign of x's.
Result<Values> LowerComplexSqrt(TfLowering& b) {
  const DType dtype = b.in_fact(0).dtype;
  TfFormula f(b);
  const Parts x = PartsOf(b, f, b.in(0));
  const ValueId zero = f.Number(dtype, 0), half = f.Number(dtype, 0.5);
  const ValueId size = f("ReduceL2", ReduceAttrs{.keep_dims = false}, {b.in(0), f.Ints({-1})});
  // Halves are added, so that the sum of two large numbers does not overflow.
  const ValueId sum = f("Add", {f("Mul", {size, half}), f("Mul", {f("Abs", {x.real}), half})});
  const ValueId larger = f("Sqrt", {sum});
  const ValueId ratio = f("Div", {f("Mul", {f("Abs", {x.imaginary}), half}), larger});
  const ValueId smaller = f("Where", {f("Equal", {larger, zero}), zero, ratio});
  const ValueId right = f("GreaterEqual", {x.real, zero});
  ValueId real = f("Where", {right, larger, smaller});
  ValueId imaginary = f("Where", {right, smaller, larger});
  // The sign is the highest bit, which minus zero has too.
  const DType bits = dtype == DType::kF64 ? DType::kI64 : DType::kI32;
  const ValueId pattern = f(BitcastAttrs{.to = bits}, {x.imaginary});
  const ValueId below = f("Less", {pattern, f.Number(bits, 0)});
  imaginary = f("Where", {below, f("Neg", {imaginary}), imaginary});
  const ValueId endless = f(IsInfAttrs{}, {x.imaginary});
  real = f("Where", {endless, f.Number(dtype, INFINITY), real});
  imaginary = f("Where", {endless, x.imaginary, imaginary});
  return Joined(f, {real, imaginary});
}

Result<Values> LowerComplexEqual(TfLowering& b) {
  const bool equal = b.op() == "Equal";
  ONCILLA_ASSIGN(const bool refuses, b.attrs().Bool("incompatible_shape_error"));
  if (!refuses && !BroadcastShapes(b.in_fact(0).shape, b.in_fact(1).shape).ok()) {
    // Tensors whose shapes are incompatible are unequal as a whole.
    const uint8_t differ = equal ? 0 : 1;
    return Values{
        b.Constant(Tensor::Of<uint8_t>(DType::kBool, {}, std::span<const uint8_t>(&differ, 1)))};
  }
  TfFormula f(b);
  const ValueId same = f("Equal", {b.in(0), b.in(1)});
  const ValueId both = f("ReduceAll", ReduceAttrs{.keep_dims = false}, {same, f.Ints({-1})});
  if (equal) return f.Done({both});
  return f.Last("Not", {both});
}

Result<Values> LowerComplexSelect(TfLowering& b) {
  TfFormula f(b);
  const ValueId condition = f("Unsqueeze", {b.in(0), f.Ints({-1})});
  return f.Last("Where", {condition, b.in(1), b.in(2)});
}

Result<Values> LowerComplexGather(TfLowering& b) {
  int64_t batch_dims = 0, axis = 0;
  if (b.op() == "GatherV2") {
    ONCILLA_ASSIGN(batch_dims, b.attrs().Int("batch_dims"));
    if (batch_dims < 0) {
      ONCILLA_ASSIGN(const int rank, b.Rank(1, "the indices"));
      batch_dims += rank;
      if (batch_dims < 0) return InvalidArgument("batch_dims is ", batch_dims - rank);
    }
    ONCILLA_ASSIGN(axis, b.KnownInt(2, "the axis"));
    if (axis < 0) --axis;
  }
  return One(b.Add(GatherAttrs{.axis = axis, .batch_dims = batch_dims, .negative_indices = false},
                   {b.in(0), b.in(1)}));
}

Result<Values> LowerComplexTile(TfLowering& b) {
  TfFormula f(b);
  const ValueId counts = f.Cast(b.in(1), DType::kI64);
  return f.Last("Tile", {b.in(0), f(ConcatAttrs{.axis = 0}, {counts, f.Ints({1})})});
}

// The axis of parts stays last. Axes that are fed count from the end if they are negative.
Result<Values> LowerComplexTranspose(TfLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0, "a complex tensor"));
  TfFormula f(b);
  ValueId x = b.in(0);
  const bool conjugate = b.op() == "ConjugateTranspose";
  if (conjugate) x = f("Mul", {x, Signs(b, f)});
  ValueId perm = kNoValue;
  if (AllIntsKnown(b.in_fact(1))) {
    ONCILLA_ASSIGN(std::vector<int64_t> axes, b.KnownInts(1, "perm"));
    for (int64_t& axis : axes) axis = axis < 0 ? axis + rank - 1 : axis;
    axes.push_back(rank - 1);
    perm = f.Ints(std::move(axes));
  } else {
    const ValueId axes = f.Cast(b.in(1), DType::kI64);
    const ValueId from_end = f("Add", {axes, f.Number(DType::kI64, rank - 1)});
    const ValueId negative = f("Less", {axes, f.Number(DType::kI64, 0)});
    const ValueId all = f("Where", {negative, from_end, axes});
    perm = f(ConcatAttrs{.axis = 0}, {all, f.Ints({rank - 1})});
  }
  return f.Last("Transpose", {x, perm});
}

}  // namespace oncilla
