// Linear algebra: inference and rows.
#include "engine/ops/math/linalg.h"

#include <algorithm>

#include "engine/ops/known_ints.h"
#include "engine/ops/math/decompose.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

// Checks that x holds square matrices. Sets their size, which may be unknown.
Status RequireSquare(const Fact& fact, std::string_view what, Dim* size) {
  ONCILLA_TRY(RequireFloat(fact, what));
  if (!fact.shape.ranked()) return Status();
  const int rank = fact.shape.rank();
  if (rank < 2) return InvalidArgument(what, " must hold matrices, not shape ", fact.shape);
  const Dim &rows = fact.shape[rank - 2], &columns = fact.shape[rank - 1];
  if (rows.known() && columns.known() && rows.size != columns.size) {
    return InvalidArgument(what, " must hold square matrices, not shape ", fact.shape);
  }
  *size = rows.known() ? rows : columns;
  return Status();
}

Result<Facts> InferSquare(const NoAttrs&, std::span<const Fact> in) {
  Dim size;
  ONCILLA_TRY(RequireSquare(in[0], "x", &size));
  return Facts{Fact::Of(in[0].dtype, in[0].shape)};
}

Result<Facts> InferInverse(const MatrixSolveAttrs&, std::span<const Fact> in) {
  return InferSquare({}, in);
}

PartialShape WithoutMatrix(const PartialShape& shape) {
  if (!shape.ranked()) return shape;
  return PartialShape(std::vector<Dim>(shape.dims().begin(), shape.dims().end() - 2));
}

Result<Facts> InferDeterminant(const NoAttrs&, std::span<const Fact> in) {
  Dim size;
  ONCILLA_TRY(RequireSquare(in[0], "x", &size));
  return Facts{Fact::Of(in[0].dtype, WithoutMatrix(in[0].shape))};
}

Result<Facts> InferLogDeterminant(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_ASSIGN(const Facts one, InferDeterminant({}, in));
  return Facts{one[0], one[0]};
}

// Checks that b has as many rows as the matrix; batches must be equal or, with `broadcast`,
// compatible.
Result<Facts> SolutionOf(const Fact& a, const Fact& b, const Dim& rows, bool broadcast) {
  ONCILLA_TRY(RequireSameDType(std::vector<Fact>{a, b}));
  if (!b.shape.ranked()) return Facts{Fact::Of(b.dtype, PartialShape())};
  const int rank = b.shape.rank();
  if (rank < 2) return InvalidArgument("the right-hand sides must be matrices, not ", b.shape);
  const Dim& given = b.shape[rank - 2];
  if (rows.known() && given.known() && rows.size != given.size) {
    return InvalidArgument("the right-hand sides ", b.shape, " do not fit the matrices ", a.shape);
  }
  if (!a.shape.ranked()) return Facts{Fact::Of(b.dtype, broadcast ? PartialShape() : b.shape)};
  PartialShape batch = WithoutMatrix(b.shape);
  if (broadcast) {
    ONCILLA_ASSIGN(batch, BroadcastShapes(WithoutMatrix(a.shape), batch));
  } else if (a.shape.rank() != rank || !MergeShapes(WithoutMatrix(a.shape), batch).ok()) {
    return InvalidArgument("the right-hand sides ", b.shape, " do not fit the matrices ", a.shape);
  }
  std::vector<Dim> dims = batch.dims();
  dims.insert(dims.end(), {rows.known() ? rows : given, b.shape[rank - 1]});
  return Facts{Fact::Of(b.dtype, PartialShape(std::move(dims)))};
}

Result<Facts> InferSolve(const MatrixSolveAttrs&, std::span<const Fact> in) {
  Dim size;
  ONCILLA_TRY(RequireSquare(in[0], "the matrix", &size));
  return SolutionOf(in[0], in[1], size, false);
}

Result<Facts> InferTriangular(const TriangularSolveAttrs&, std::span<const Fact> in) {
  Dim size;
  ONCILLA_TRY(RequireSquare(in[0], "the matrix", &size));
  return SolutionOf(in[0], in[1], size, true);
}

Result<Facts> InferTridiagonal(const TridiagonalSolveAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "the diagonals"));
  const PartialShape& x = in[0].shape;
  Dim size;
  if (x.ranked()) {
    if (x.rank() < 2 || (x[x.rank() - 2].known() && x[x.rank() - 2].size != 3)) {
      return InvalidArgument("three diagonals are needed, not ", x);
    }
    size = x[x.rank() - 1];
  }
  return SolutionOf(in[0], in[1], size, false);
}

Result<Facts> InferSparseMatMul(const SparseMatMulAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "indices"));
  ONCILLA_TRY(RequireRank(in[0], 2, "indices"));
  ONCILLA_TRY(RequireNumber(in[1], "values"));
  ONCILLA_TRY(RequireRank(in[1], 1, "values"));
  ONCILLA_TRY(RequireInteger(in[2], "shape"));
  ONCILLA_TRY(RequireRank(in[3], 2, "b"));
  if (in[1].dtype != in[3].dtype) {
    return InvalidArgument("values are ", in[1].dtype, " and b is ", in[3].dtype);
  }
  Dim rows, inner, columns;
  if (const auto shape = KnownInts(in[2])) {
    if (shape->size() != 2) return InvalidArgument("shape has ", shape->size(), " sizes, not 2");
    rows = (*shape)[attrs.transpose_a ? 1 : 0];
    inner = (*shape)[attrs.transpose_a ? 0 : 1];
  }
  if (in[3].shape.ranked()) {
    columns = in[3].shape[attrs.transpose_b ? 0 : 1];
    const Dim& depth = in[3].shape[attrs.transpose_b ? 1 : 0];
    if (depth.known() && inner.known() && depth.size != inner.size) {
      return InvalidArgument("a matrix with ", inner.size, " columns times b ", in[3].shape);
    }
  }
  return Facts{Fact::Of(in[1].dtype, PartialShape({rows, columns}))};
}

// The shape [.., rows, columns] with the batch axes of x.
Fact MatrixLike(const Fact& x, Dim rows, Dim columns) {
  std::vector<Dim> dims = WithoutMatrix(x.shape).dims();
  dims.push_back(std::move(rows));
  dims.push_back(std::move(columns));
  return Fact::Of(x.dtype, PartialShape(std::move(dims)));
}
Fact ListLike(const Fact& x, Dim size) {
  std::vector<Dim> dims = WithoutMatrix(x.shape).dims();
  dims.push_back(std::move(size));
  return Fact::Of(x.dtype, PartialShape(std::move(dims)));
}

// Sets rows, columns and the smaller of the two; false if even the rank is unknown.
Result<bool> ReadMatrices(const Fact& x, Dim* rows, Dim* columns, Dim* least) {
  ONCILLA_TRY(RequireFloat(x, "x"));
  if (!x.shape.ranked()) return false;
  const int rank = x.shape.rank();
  if (rank < 2) return InvalidArgument("x must hold matrices, not shape ", x.shape);
  *rows = x.shape[rank - 2];
  *columns = x.shape[rank - 1];
  if (rows->known() && columns->known()) *least = Dim(std::min(rows->size, columns->size));
  return true;
}

Result<Facts> InferQr(const QrAttrs& attrs, std::span<const Fact> in) {
  Dim rows, columns, least;
  ONCILLA_ASSIGN(const bool ranked, ReadMatrices(in[0], &rows, &columns, &least));
  if (!ranked) return Facts(2, Fact::Of(in[0].dtype, PartialShape()));
  const Dim inner = attrs.full ? rows : least;
  return Facts{MatrixLike(in[0], rows, inner), MatrixLike(in[0], inner, columns)};
}

Result<Facts> InferSvd(const SvdAttrs& attrs, std::span<const Fact> in) {
  Dim rows, columns, least;
  ONCILLA_ASSIGN(const bool ranked, ReadMatrices(in[0], &rows, &columns, &least));
  if (!ranked) return Facts(attrs.vectors ? 3 : 1, Fact::Of(in[0].dtype, PartialShape()));
  Facts out = {ListLike(in[0], least)};
  if (attrs.vectors) {
    out.push_back(MatrixLike(in[0], rows, attrs.full ? rows : least));
    out.push_back(MatrixLike(in[0], columns, attrs.full ? columns : least));
  }
  return out;
}

Result<Facts> InferSymmetricEigen(const SymmetricEigenAttrs& attrs, std::span<const Fact> in) {
  Dim size;
  ONCILLA_TRY(RequireSquare(in[0], "x", &size));
  if (!in[0].shape.ranked()) {
    return Facts(attrs.vectors ? 2 : 1, Fact::Of(in[0].dtype, PartialShape()));
  }
  Facts out = {ListLike(in[0], size)};
  if (attrs.vectors) out.push_back(MatrixLike(in[0], size, size));
  return out;
}

Result<Facts> InferLu(const LuAttrs& attrs, std::span<const Fact> in) {
  Dim size;
  ONCILLA_TRY(RequireSquare(in[0], "x", &size));
  if (attrs.index != DType::kI32 && attrs.index != DType::kI64) {
    return InvalidArgument("rows cannot be ", attrs.index);
  }
  const PartialShape& x = in[0].shape;
  Fact rows = x.ranked() ? ListLike(in[0], size) : Fact::Of(in[0].dtype, PartialShape());
  rows.dtype = attrs.index;
  return Facts{Fact::Of(in[0].dtype, x), std::move(rows)};
}

// x holds square matrices of pairs: a real and an imaginary part.
Result<Facts> InferSquarePairs(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireFloat(in[0], "x"));
  const PartialShape& x = in[0].shape;
  if (!x.ranked()) return Facts{Fact::Of(in[0].dtype, x)};
  const int rank = x.rank();
  if (rank < 3 || (x[rank - 1].known() && x[rank - 1].size != 2)) {
    return InvalidArgument("x must hold matrices of complex numbers, not shape ", x);
  }
  Dim size;
  const PartialShape parts(std::vector<Dim>(x.dims().begin(), x.dims().end() - 1));
  ONCILLA_TRY(RequireSquare(Fact::Of(in[0].dtype, parts), "x", &size));
  return Facts{Fact::Of(in[0].dtype, x)};
}

Result<Facts> InferExponential(const MatrixExponentialAttrs& attrs, std::span<const Fact> in) {
  return attrs.complex ? InferSquarePairs({}, in) : InferSquare({}, in);
}

// What the op on real matrices gives, with an axis for the parts of each number.
Result<Facts> InferDecomposeComplex(const DecomposeComplexAttrs& attrs, std::span<const Fact> in) {
  if (in[0].dtype != DType::kF32 && in[0].dtype != DType::kF64) {
    return InvalidArgument("the parts of complex numbers cannot be ", in[0].dtype);
  }
  Fact real = Fact::Of(in[0].dtype, in[0].shape);
  if (const PartialShape& x = in[0].shape; x.ranked()) {
    if (x.rank() < 3 || (x[x.rank() - 1].known() && x[x.rank() - 1].size != 2)) {
      return InvalidArgument("x must hold matrices of complex numbers, not shape ", x);
    }
    real.shape = PartialShape(std::vector<Dim>(x.dims().begin(), x.dims().end() - 1));
  }
  const std::span<const Fact> one(&real, 1);
  const std::string& into = attrs.into;
  Result<Facts> out = InvalidArgument("there is no decomposition '", into, "'");
  if (into == "qr") out = InferQr({attrs.full}, one);
  if (into == "svd") out = InferSvd({.vectors = attrs.vectors, .full = attrs.full}, one);
  if (into == "eigen") out = InferSymmetricEigen({attrs.vectors}, one);
  if (into == "lu") out = InferLu({attrs.index}, one);
  if (into == "square_root" || into == "inverse") out = InferSquare({}, one);
  if (into == "determinant") out = InferDeterminant({}, one);
  if (into == "log_determinant") out = InferLogDeterminant({}, one);
  if (!out.ok()) return out;
  for (Fact& fact : *out) {
    if (!IsFloat(fact.dtype) || !fact.shape.ranked()) continue;
    std::vector<Dim> dims = fact.shape.dims();
    dims.push_back(Dim(2));
    fact.shape = PartialShape(std::move(dims));
  }
  return out;
}

constexpr OpDef kLinalgOps[] = {
    Op<InferSquare>("Cholesky", {}),
    Op<InferInverse>("MatrixInverse", {}),
    Op<InferDeterminant>("MatrixDeterminant", {}),
    Op<InferLogDeterminant>("LogDeterminant", {}),
    Op<InferSolve>("MatrixSolve", {.inputs = {2, 2}}),
    Op<InferTriangular>("TriangularSolve", {.inputs = {2, 2}}),
    Op<InferTridiagonal>("TridiagonalSolve", {.inputs = {2, 2}}),
    Op<InferQr>("Qr", {}),
    Op<InferSvd>("Svd", {}),
    Op<InferSymmetricEigen>("SymmetricEigen", {}),
    Op<InferLu>("Lu", {}),
    Op<InferSquare>("MatrixSquareRoot", {}),
    Op<InferExponential>("MatrixExponential", {}),
    Op<InferSquarePairs>("MatrixLogarithm", {}),
    Op<InferDecomposeComplex>("DecomposeComplex", {}),
    Op<InferSparseMatMul>("SparseMatMul", {.inputs = {4, 4}, .plan_inputs = 0b100}),
};

}  // namespace

std::span<const OpDef> LinalgOps() { return kLinalgOps; }

}  // namespace oncilla
