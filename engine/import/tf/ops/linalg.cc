// TensorFlow's linear algebra and diagonals.
#include "engine/import/tf/lowering.h"
#include "engine/ops/math/decompose.h"

namespace oncilla {
namespace {

// The cross product along the last axis: a rolled once times b rolled twice, minus the reverse.
Result<Values> LowerCross(TfLowering& b) {
  for (size_t i = 0; i < 2; ++i) {
    const PartialShape& shape = b.in_fact(i).shape;
    if (!shape.ranked()) continue;
    if (shape.rank() < 1) return InvalidArgument("inputs must be at least rank 1");
    const Dim& last = shape[shape.rank() - 1];
    if (last.known() && last.size != 3) {
      return InvalidArgument("cross-products are only defined for 3-element vectors, not ", shape);
    }
  }
  auto roll = [&](size_t input, int64_t by, std::string_view role) {
    return b.Add("Roll", {}, {b.in(input), b.Ints({by}), b.Ints({-1})}, role);
  };
  ONCILLA_ASSIGN(const ValueId a1, roll(0, -1, "a1"));
  ONCILLA_ASSIGN(const ValueId b2, roll(1, -2, "b2"));
  ONCILLA_ASSIGN(const ValueId a2, roll(0, -2, "a2"));
  ONCILLA_ASSIGN(const ValueId b1, roll(1, -1, "b1"));
  ONCILLA_ASSIGN(const ValueId plus, b.Add("Mul", {}, {a1, b2}, "plus"));
  ONCILLA_ASSIGN(const ValueId minus, b.Add("Mul", {}, {a2, b1}, "minus"));
  return One(b.Add("Sub", {}, {plus, minus}));
}

// For real matrices the adjoint is the transpose.
Result<Values> LowerSolve(TfLowering& b) {
  ONCILLA_ASSIGN(const bool adjoint, b.attrs().Bool("adjoint"));
  return One(b.Add(b.op(), MatrixSolveAttrs{adjoint}, b.all_inputs()));
}

Result<Values> LowerTriangular(TfLowering& b) {
  ONCILLA_ASSIGN(const bool lower, b.attrs().Bool("lower"));
  ONCILLA_ASSIGN(const bool adjoint, b.attrs().Bool("adjoint"));
  return One(b.Add(TriangularSolveAttrs{.lower = lower, .transpose = adjoint}, b.all_inputs()));
}

Result<Values> LowerTridiagonal(TfLowering& b) {
  ONCILLA_ASSIGN(const bool pivoting, b.attrs().Bool("partial_pivoting"));
  return One(b.Add(TridiagonalSolveAttrs{.pivoting = pivoting}, b.all_inputs()));
}

Result<Values> LowerLogDeterminant(TfLowering& b) {
  return b.AddAll("LogDeterminant", {}, {b.in(0)});
}

Result<Values> LowerSparseMatMul(TfLowering& b) {
  ONCILLA_ASSIGN(const bool adjoint_a, b.attrs().Bool("adjoint_a"));
  ONCILLA_ASSIGN(const bool adjoint_b, b.attrs().Bool("adjoint_b"));
  return One(
      b.Add(SparseMatMulAttrs{.transpose_a = adjoint_a, .transpose_b = adjoint_b}, b.all_inputs()));
}

// Keeps `below` diagonals below the main one and `above` diagonals above it; a negative number
// keeps all.
Result<Values> LowerBandPart(TfLowering& b) {
  // Larger than the size of any matrix.
  constexpr int64_t kAll = int64_t{1} << 40;
  auto band = [&](size_t input, int64_t sign, const std::string& role) -> Result<ValueId> {
    ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(input), DType::kI64, role));
    ONCILLA_ASSIGN(const ValueId zero, b.Scalar(DType::kI64, 0));
    ONCILLA_ASSIGN(const ValueId all, b.Scalar(DType::kI64, static_cast<double>(kAll)));
    ONCILLA_ASSIGN(const ValueId open, b.Add("Less", {}, {wide, zero}, role + "_open"));
    ONCILLA_ASSIGN(const ValueId k, b.Add("Where", {}, {open, all, wide}, role + "_k"));
    return sign > 0 ? Result<ValueId>(k) : b.Add("Neg", {}, {k}, role + "_down");
  };
  ONCILLA_ASSIGN(const ValueId below, band(1, -1, "below"));
  ONCILLA_ASSIGN(const ValueId above, band(2, 1, "above"));
  ONCILLA_ASSIGN(const ValueId upper, b.Add(TriluAttrs{.upper = true}, {b.in(0), below}, "upper"));
  return One(b.Add(TriluAttrs{.upper = false}, {upper, above}));
}

// The alignment of the diagonals: version 3 states it, version 2 aligns left, and version 1 has
// only the main diagonal.
Result<DiagonalAttrs> AlignOf(const TfLowering& b) {
  if (b.op().substr(b.op().size() - 2) != "V3") return DiagonalAttrs{"left_left"};
  ONCILLA_ASSIGN(std::string align, b.attrs().String("align"));
  for (char& c : align) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return DiagonalAttrs{align};
}

Result<Values> LowerDiag(TfLowering& b) {
  ONCILLA_ASSIGN(const DiagonalAttrs align, AlignOf(b));
  if (b.op() != "MatrixDiag") return One(b.Add("MatrixDiag", align, b.all_inputs()));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.in_fact(0).dtype, 0));
  return One(b.Add("MatrixDiag", {}, {b.in(0), b.Ints({0}), b.Ints({-1}), b.Ints({-1}), zero}));
}

Result<Values> LowerDiagPart(TfLowering& b) {
  ONCILLA_ASSIGN(const DiagonalAttrs align, AlignOf(b));
  if (b.op() != "MatrixDiagPart") {
    return One(b.Add("MatrixDiagPart", align, b.all_inputs()));
  }
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.in_fact(0).dtype, 0));
  return One(b.Add("MatrixDiagPart", {}, {b.in(0), b.Ints({0}), zero}));
}

Result<Values> LowerSetDiag(TfLowering& b) {
  ONCILLA_ASSIGN(const DiagonalAttrs align, AlignOf(b));
  const ValueId k = b.op() == "MatrixSetDiag" ? b.Ints({0}) : b.in(2);
  return One(b.Add("MatrixSetDiag", align, {b.in(0), b.in(1), k}));
}

// A tensor of twice the rank, with x at the positions whose index has two equal halves.
Result<Values> LowerFullDiag(TfLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0, "the diagonal"));
  if (rank < 1 || 2 * rank > kMaxRank) return Unsupported("a diagonal of rank ", rank);
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.in_fact(0).dtype, 0));
  ONCILLA_ASSIGN(const ValueId flat, b.Add("Reshape", {}, {b.in(0), b.Ints({-1})}, "flat"));
  ONCILLA_ASSIGN(const ValueId matrix,
                 b.Add("MatrixDiag", {}, {flat, b.Ints({0}), b.Ints({-1}), b.Ints({-1}), zero},
                       rank == 1 ? "" : "matrix"));
  if (rank == 1) return Values{matrix};
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  ONCILLA_ASSIGN(const ValueId twice, b.Add(ConcatAttrs{.axis = 0}, {shape, shape}, "shape_twice"));
  return One(b.Add("Reshape", {}, {matrix, twice}));
}

Result<Values> LowerFullDiagPart(TfLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0, "the input"));
  if (rank < 2 || rank % 2 != 0) {
    return InvalidArgument("The rank of the tensor should be even and positive, got ", rank);
  }
  const PartialShape x = b.in_fact(0).shape;
  for (int i = 0; i < rank / 2; ++i) {
    const Dim &row = x[i], &column = x[i + rank / 2];
    if (!row.known() || !column.known()) return Unsupported("the diagonal of an unknown shape");
    if (row.size != column.size) {
      return InvalidArgument("Invalid shape ", x, ": the two halves differ");
    }
  }
  std::vector<int64_t> half;
  int64_t elements = 1;
  for (int i = 0; i < rank / 2; ++i) {
    half.push_back(x[i].size);
    elements = SaturatingMul(elements, x[i].size);
  }
  ONCILLA_ASSIGN(const ValueId matrix,
                 b.Add("Reshape", {}, {b.in(0), b.Ints({elements, elements})}, "matrix"));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.in_fact(0).dtype, 0));
  ONCILLA_ASSIGN(const ValueId diagonal,
                 b.Add("MatrixDiagPart", {}, {matrix, b.Ints({0}), zero}, rank == 2 ? "" : "list"));
  if (rank == 2) return Values{diagonal};
  return One(b.Add("Reshape", {}, {diagonal, b.Ints(half)}));
}

// Solves with a banded triangular matrix, given as its bands from the highest on, each as long as
// the matrix has rows: element i of each belongs to row i.
Result<Values> LowerBanded(TfLowering& b) {
  ONCILLA_ASSIGN(const bool lower, b.attrs().Bool("lower"));
  ONCILLA_ASSIGN(const bool adjoint, b.attrs().Bool("adjoint"));
  const PartialShape bands = b.in_fact(0).shape;
  if (!bands.ranked() || bands.rank() < 2 || !bands[bands.rank() - 2].known()) {
    return Unsupported("how many bands there are is not known");
  }
  const int64_t others = bands[bands.rank() - 2].size - 1;
  if (others < 0) return InvalidArgument("there are no bands");
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.in_fact(0).dtype, 0));
  ValueId diagonals = b.in(0), k = lower ? b.Ints({-others, 0}) : b.Ints({0, others});
  if (others == 0) {
    ONCILLA_ASSIGN(diagonals, b.Add("Squeeze", {}, {diagonals, b.Ints({-2})}, "diagonal"));
    k = b.Ints({0});
  }
  ONCILLA_ASSIGN(const ValueId matrix,
                 b.Add("MatrixDiag", DiagonalAttrs{.align = "left_right"},
                       {diagonals, k, b.Ints({-1}), b.Ints({-1}), zero}, "matrix"));
  return One(b.Add(TriangularSolveAttrs{.lower = lower, .transpose = adjoint}, {matrix, b.in(1)}));
}

Result<Values> LowerQr(TfLowering& b) {
  ONCILLA_ASSIGN(const bool full, b.attrs().Bool("full_matrices"));
  return b.AddAll("Qr", QrAttrs{full}, {b.in(0)});
}

// A single number in place of an output that was not requested, since TensorFlow leaves it unset.
Result<ValueId> NoVectors(TfLowering& b) { return b.Scalar(b.dtype(), 0); }

Result<Values> LowerSvd(TfLowering& b) {
  SvdAttrs attrs;
  ONCILLA_ASSIGN(attrs.vectors, b.attrs().Bool("compute_uv"));
  ONCILLA_ASSIGN(attrs.full, b.attrs().Bool("full_matrices"));
  ONCILLA_ASSIGN(Values out, b.AddAll("Svd", attrs, {b.in(0)}));
  while (out.size() < 3) {
    ONCILLA_ASSIGN(const ValueId none, NoVectors(b));
    out.push_back(none);
  }
  return out;
}

Result<Values> LowerEigen(TfLowering& b) {
  ONCILLA_ASSIGN(const bool vectors, b.attrs().Bool("compute_v"));
  ONCILLA_ASSIGN(Values out, b.AddAll("SymmetricEigen", SymmetricEigenAttrs{vectors}, {b.in(0)}));
  if (!vectors) {
    ONCILLA_ASSIGN(const ValueId none, NoVectors(b));
    out.push_back(none);
  }
  return out;
}

Result<Values> LowerLu(TfLowering& b) {
  ONCILLA_ASSIGN(const DType index, b.attrs().Type("output_idx_type"));
  return b.AddAll("Lu", LuAttrs{index}, {b.in(0)});
}

// The matrix product of TensorFlow's first version, whose sparsity hints have no effect; sums are
// in f32.
Result<Values> LowerHintedMatMul(TfLowering& b) {
  ONCILLA_ASSIGN(const bool transpose_a, b.attrs().Bool("transpose_a"));
  ONCILLA_ASSIGN(const bool transpose_b, b.attrs().Bool("transpose_b"));
  ONCILLA_ASSIGN(const ValueId x, b.Cast(b.in(0), DType::kF32, "a"));
  ONCILLA_ASSIGN(const ValueId y, b.Cast(b.in(1), DType::kF32, "b"));
  return One(b.Add(MatMulAttrs{.transpose_a = transpose_a, .transpose_b = transpose_b}, {x, y}));
}

constexpr TfOpRow kRows[] = {
    {"BandedTriangularSolve", 2, "", LowerBanded},
    {"Cholesky", 1, "Cholesky"},
    {"Cross", 2, "", LowerCross},
    {"Diag", 1, "", LowerFullDiag},
    {"DiagPart", 1, "", LowerFullDiagPart},
    {"LogMatrixDeterminant", 1, "", LowerLogDeterminant},
    {"Lu", 1, "", LowerLu},
    {"MatrixBandPart", 3, "", LowerBandPart},
    {"MatrixDeterminant", 1, "MatrixDeterminant"},
    {"MatrixDiag", 1, "", LowerDiag},
    {"MatrixDiagPart", 1, "", LowerDiagPart},
    {"MatrixDiagPartV2", 3, "", LowerDiagPart},
    {"MatrixDiagPartV3", 3, "", LowerDiagPart},
    {"MatrixDiagV2", 5, "", LowerDiag},
    {"MatrixDiagV3", 5, "", LowerDiag},
    {"MatrixExponential", 1, "MatrixExponential"},
    {"MatrixInverse", 1, "", LowerSolve},
    {"MatrixSetDiag", 2, "", LowerSetDiag},
    {"MatrixSetDiagV2", 3, "", LowerSetDiag},
    {"MatrixSetDiagV3", 3, "", LowerSetDiag},
    {"MatrixSolve", 2, "", LowerSolve},
    {"MatrixSquareRoot", 1, "MatrixSquareRoot"},
    {"MatrixTriangularSolve", 2, "", LowerTriangular},
    {"Qr", 1, "", LowerQr},
    {"SelfAdjointEigV2", 1, "", LowerEigen},
    {"SparseMatMul", 2, "", LowerHintedMatMul},
    {"SparseTensorDenseMatMul", 4, "", LowerSparseMatMul},
    {"Svd", 1, "", LowerSvd},
    {"TridiagonalSolve", 2, "", LowerTridiagonal},
};

}  // namespace

std::span<const TfOpRow> TfLinalgRows() { return kRows; }

}  // namespace oncilla
