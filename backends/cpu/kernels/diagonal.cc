// Diagonals of matrices on the CPU: elements are only moved, whatever their type.
#include <algorithm>

#include "backends/cpu/move.h"
#include "engine/ops/math/diagonal.h"

namespace oncilla::cpu {
namespace {

// Calls fn(index in the matrix, index in the stored band) for every element of every diagonal.
template <class F>
void ForBand(const Band& band, F&& fn) {
  for (int64_t d = band.upper; d >= band.lower; --d) {
    const int64_t row = (band.upper - d) * band.longest + band.Begin(d);
    const int64_t i = std::max<int64_t>(-d, 0), j = std::max<int64_t>(d, 0);
    for (int64_t n = 0; n < band.Length(d); ++n) {
      fn((i + n) * band.columns + j + n, row + n);
    }
  }
}

struct Parts {
  Band band;
  int64_t matrices = 0, matrix = 0, stored = 0;
};
Result<Parts> PartsOf(const DiagonalAttrs& attrs, const std::vector<int64_t>& k,
                      const Shape& matrix) {
  Parts parts;
  const int rank = matrix.rank();
  ONCILLA_ASSIGN(parts.band, BandOf(attrs, k, matrix[rank - 2], matrix[rank - 1]));
  parts.matrices = matrix.Product(0, rank - 2);
  parts.matrix = matrix[rank - 2] * matrix[rank - 1];
  parts.stored = parts.band.count() * parts.band.longest;
  return parts;
}

Status MatrixDiagPart(const DiagonalAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const auto k, args.Ints(1, "k"));
  ONCILLA_ASSIGN(const Parts p, PartsOf(attrs, k, args.in(0).shape));
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T) {
    std::fill_n(args.Out<T>(0), args.out(0).elements(), args.In<T>(2)[0]);
    for (int64_t m = 0; m < p.matrices; ++m) {
      const T* x = args.In<T>(0) + m * p.matrix;
      T* y = args.Out<T>(0) + m * p.stored;
      ForBand(p.band, [&](int64_t from, int64_t to) { y[to] = x[from]; });
    }
  });
  return Status();
}

Status MatrixDiag(const DiagonalAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const auto k, args.Ints(1, "k"));
  ONCILLA_ASSIGN(const Parts p, PartsOf(attrs, k, args.out(0).shape));
  // A band may be stored with longer diagonals than the requested matrix has; then its elements do
  // not line up.
  if (p.matrices * p.stored != args.in(0).elements()) {
    return InvalidArgument("diagonals ", args.in(0).shape, " do not fill matrices ",
                           args.out(0).shape);
  }
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T) {
    std::fill_n(args.Out<T>(0), args.out(0).elements(), args.In<T>(4)[0]);
    for (int64_t m = 0; m < p.matrices; ++m) {
      const T* x = args.In<T>(0) + m * p.stored;
      T* y = args.Out<T>(0) + m * p.matrix;
      ForBand(p.band, [&](int64_t to, int64_t from) { y[to] = x[from]; });
    }
  });
  return Status();
}

Status MatrixSetDiag(const DiagonalAttrs& attrs, const Args& args) {
  ONCILLA_ASSIGN(const auto k, args.Ints(2, "k"));
  ONCILLA_ASSIGN(const Parts p, PartsOf(attrs, k, args.in(0).shape));
  DispatchBytes(BytesOf(args.in(0).dtype), [&]<class T>(T) {
    std::copy_n(args.In<T>(0), args.in(0).elements(), args.Out<T>(0));
    for (int64_t m = 0; m < p.matrices; ++m) {
      const T* x = args.In<T>(1) + m * p.stored;
      T* y = args.Out<T>(0) + m * p.matrix;
      ForBand(p.band, [&](int64_t to, int64_t from) { y[to] = x[from]; });
    }
  });
  return Status();
}

const KernelRow kRows[] = {
    Row<MatrixDiagPart>("MatrixDiagPart", kFixedSize),
    Row<MatrixDiag>("MatrixDiag", kFixedSize),
    Row<MatrixSetDiag>("MatrixSetDiag", kFixedSize),
};

}  // namespace

std::span<const KernelRow> DiagonalKernels() { return kRows; }

}  // namespace oncilla::cpu
