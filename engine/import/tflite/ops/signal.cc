// TFLite's Fourier transform of real signals, and complex numbers: pairs of real numbers along an
// additional last axis that the file's shapes do not have.
#include "engine/import/lowering/fourier.h"
#include "engine/import/tflite/lowering.h"

namespace oncilla {
namespace {

// The first elements of `axis`; LiteRT refuses an axis that is too short.
Result<ValueId> Fit(TfliteLowering& b, ValueId x, int axis, int64_t size, std::string_view role) {
  const Dim own = b.fact(x).shape[axis];
  if (own.known() && own.size == size) return x;
  if (!own.known() || own.size < size) {
    return Unsupported("of ", size, " points along axis ", axis, " of ", b.fact(x));
  }
  return b.Add("Slice", {}, {x, b.Ints({0}), b.Ints({size}), b.Ints({axis})}, role);
}

// Transforms the last axis from points to bins, then the axis before it, which keeps all its bins.
Result<Values> LowerRfft(TfliteLowering& b) {
  if (b.dtype() != DType::kF32) return Unsupported("of ", b.dtype());
  ONCILLA_ASSIGN(const std::vector<int64_t> lengths, b.KnownInts(1, "the lengths"));
  const PartialShape shape = b.in_fact(0).shape;
  if (lengths.size() != 2 || !shape.ranked() || shape.rank() < 2 || shape.rank() + 1 > kMaxRank) {
    return Unsupported("of ", b.in_fact(0));
  }
  const int rank = shape.rank();
  const int64_t rows = lengths[0], points = lengths[1], bins = points / 2 + 1;
  if (rows < 1 || points < 1) return InvalidArgument("of ", rows, " times ", points, " points");
  ONCILLA_ASSIGN(ValueId x, Fit(b, b.in(0), rank - 2, rows, "rows"));
  ONCILLA_ASSIGN(x, Fit(b, x, rank - 1, points, "points"));
  ONCILLA_ASSIGN(x, AddFourier(b, x, points, 1, bins, false, DType::kF32, "bins"));
  const ReshapeAttrs kept = {.zero_copies = true};
  std::vector<int64_t> pairs(static_cast<size_t>(rank - 1), 0);
  pairs.insert(pairs.end(), {bins, 2});
  if (rows == 1) return One(b.Add(kept, {x, b.Ints(pairs)}));
  ONCILLA_ASSIGN(x, b.Add(kept, {x, b.Ints(pairs)}, "pairs"));
  // From [.., rows, bins, 2] to [.., bins, rows * 2] and back.
  std::vector<int64_t> swap;
  for (int i = 0; i <= rank; ++i) swap.push_back(i);
  std::swap(swap[static_cast<size_t>(rank) - 2], swap[static_cast<size_t>(rank) - 1]);
  ONCILLA_ASSIGN(x, b.Transpose(x, swap, "columns"));
  std::vector<int64_t> flat(static_cast<size_t>(rank - 1), 0), again = flat;
  flat.push_back(2 * rows);
  again.insert(again.end(), {rows, 2});
  ONCILLA_ASSIGN(x, b.Add(kept, {x, b.Ints(flat)}, "column_points"));
  ONCILLA_ASSIGN(x, AddFourier(b, x, rows, 2, rows, false, DType::kF32, "column_bins"));
  ONCILLA_ASSIGN(x, b.Add(kept, {x, b.Ints(again)}, "column_pairs"));
  return One(b.Transpose(x, swap, ""));
}

template <int kPart>
Result<Values> LowerPart(TfliteLowering& b) {
  return One(b.Add(GatherAttrs{.axis = -1}, {b.in(0), b.Constant(Tensor::ScalarInt64(kPart))}));
}

Result<Values> LowerSize(TfliteLowering& b) {
  return One(b.Add("ReduceL2", ReduceAttrs{.keep_dims = false}, {b.in(0), b.Ints({-1})}));
}

using Options = TfliteOptions;
constexpr TfliteOpRow kRows[] = {
    {"COMPLEX_ABS", 1, Options::kNone, "", LowerSize},
    {"IMAG", 1, Options::kNone, "", LowerPart<1>},
    {"REAL", 1, Options::kNone, "", LowerPart<0>},
    {"RFFT2D", 2, Options::kNone, "", LowerRfft},
};

}  // namespace

std::span<const TfliteOpRow> TfliteSignalRows() { return kRows; }

}  // namespace oncilla
