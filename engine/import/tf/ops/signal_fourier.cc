// TensorFlow's Fourier transforms of complex tensors in parts (see signal.cc): products with
// matrices of cosines and sines, which are constants if the sizes are known.
#include "engine/import/tf/ops/signal_fourier.h"

#include <limits>
#include <numbers>

#include "engine/import/lowering/fourier.h"
#include "engine/import/tf/ops/formula.h"

namespace oncilla {
namespace {

// Cuts `axis` to `size`. A shorter axis fails, at the latest when Reshape compares the number of
// elements.
Result<ValueId> Fit(TfLowering& b, ValueId x, int axis, int64_t size, std::string_view role) {
  const Dim own = b.fact(x).shape.ranked() ? b.fact(x).shape[axis] : Dim();
  if (own.known() && own.size == size) return x;
  if (own.known() && own.size < size) {
    return InvalidArgument("Input dimension ", axis, " must have length of at least ", size,
                           " but got: ", own.size);
  }
  return b.Add("Slice", {}, {x, b.Ints({0}), b.Ints({size}), b.Ints({axis})}, role);
}

// Transforms a complex tensor of `rank` axes (plus the parts) along one of them.
Result<ValueId> Transform(TfLowering& b, ValueId x, int rank, int axis, int64_t n, bool inverse,
                          std::string_view role) {
  const DType dtype = b.fact(x).dtype;
  std::vector<int64_t> perm, back(static_cast<size_t>(rank) + 1);
  for (int i = 0; i < rank; ++i) {
    if (i != axis) perm.push_back(i);
  }
  perm.insert(perm.end(), {axis, rank});
  for (int64_t i = 0; i <= rank; ++i) back[static_cast<size_t>(perm[static_cast<size_t>(i)])] = i;
  const bool moves = axis != rank - 1;
  if (moves) {
    ONCILLA_ASSIGN(x, b.Transpose(x, perm, StrCat(role, "/ordered")));
  }
  const ReshapeAttrs zeros = {.zero_copies = true};
  std::vector<int64_t> flat(static_cast<size_t>(rank - 1), 0), pairs = flat;
  flat.push_back(2 * n);
  pairs.insert(pairs.end(), {n, 2});
  ONCILLA_ASSIGN(x, b.Add(zeros, {x, b.Ints(flat)}, StrCat(role, "/points")));
  ONCILLA_ASSIGN(x, AddFourier(b, x, n, 2, n, inverse, dtype, StrCat(role, "/bins")));
  ONCILLA_ASSIGN(x, b.Add(zeros, {x, b.Ints(pairs)}, StrCat(role, "/pairs")));
  if (!moves) return x;
  return b.Transpose(x, back, StrCat(role, "/back"));
}

int AxesOf(std::string_view op) { return op.ends_with("3D") ? 3 : op.ends_with("2D") ? 2 : 1; }

// The [n, n] matrices of cosines and sines, where n is a vector of one number. For the inverse
// transform the angles are negative, and the matrices are divided by n.
Values TurnsOf(TfFormula& f, ValueId n, DType dtype, bool inverse) {
  const ValueId zero = f.Number(DType::kI64, 0), one = f.Number(DType::kI64, 1);
  const ValueId size = f("Reshape", {n, f.Ints({})});
  const ValueId points = f("Range", {zero, size, one});
  const ValueId down = f("Unsqueeze", {points, f.Ints({1})});
  const ValueId part = f.Cast(f("FloorMod", {f("Mul", {down, points}), size}), DType::kF64);
  const ValueId wide = f.Cast(size, DType::kF64);
  const double turn = (inverse ? -2 : 2) * std::numbers::pi;
  const ValueId angle = f("Mul", {part, f("Div", {f.Number(DType::kF64, turn), wide})});
  Values out = {f("Cos", {angle}), f("Sin", {angle})};
  for (ValueId& matrix : out) {
    if (inverse) matrix = f("Div", {matrix, wide});
    matrix = f.Cast(matrix, dtype);
  }
  return out;
}

// The parts of a complex tensor; `imaginary` is kNoValue for a real one.
struct OpenParts {
  ValueId real = kNoValue, imaginary = kNoValue;
};

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// The size of axis i from the end (1 is the last), as a range of the shape.
ShapeAttrs SizeFromEnd(int64_t i) { return {.start = -i, .end = i == 1 ? kToTheEnd : 1 - i}; }

// Fails the run if `n`, a vector of one number, is above `most`.
Status CheckMost(TfLowering& b, TfFormula& f, ValueId n, ValueId most, std::string_view message,
                 const std::string& role) {
  const ValueId few = f("LessEqual", {n, most});
  ONCILLA_TRY(f.status());
  const ValueId text = b.Constant(Tensor::Strings({}, {std::string(message)}));
  return b.AddAll(AssertAttrs{}, {few, text, n}, role).status();
}

Status CheckOpenPoints(TfLowering& b, TfFormula& f, ValueId n, DType dtype, int64_t i) {
  int64_t most = 1;
  while (4 * (most + 1) * (most + 1) * BytesOf(dtype) <= kMostFourierBytes) ++most;
  return CheckMost(b, f, n, f.Number(DType::kI64, static_cast<double>(most)),
                   StrCat("more than ", most, " points"), StrCat("check", i));
}

// Transforms axis i from the end, which has n points.
void TransformOpen(TfFormula& f, int64_t i, const Values& turns, OpenParts& x) {
  const ValueId whole = f("Shape", {x.real});
  // The axes after axis i are merged into one, if there are several.
  ValueId flat = kNoValue;
  if (i > 2) {
    const ValueId before = f(ShapeAttrs{.end = 1 - i}, {x.real});
    const ValueId behind =
        f("ReduceProd", ReduceAttrs{.keep_dims = true}, {f(ShapeAttrs{.start = 1 - i}, {x.real})});
    flat = f(ConcatAttrs{.axis = 0}, {before, behind});
  }
  const auto times = [&](ValueId part, ValueId turn) {
    if (i == 1) return f(MatMulAttrs{}, {part, turn});
    const ValueId y =
        f(MatMulAttrs{}, {turn, flat == kNoValue ? part : f("Reshape", {part, flat})});
    return flat == kNoValue ? y : f("Reshape", {y, whole});
  };
  if (x.imaginary == kNoValue) {
    x = {times(x.real, turns[0]), f("Neg", {times(x.real, turns[1])})};
    return;
  }
  const ValueId real = f("Add", {times(x.real, turns[0]), times(x.imaginary, turns[1])});
  x = {real, f("Sub", {times(x.imaginary, turns[0]), times(x.real, turns[1])})};
}

OpenParts PartsOf(TfLowering& b, TfFormula& f) {
  const auto part = [&](int64_t which) {
    return f(GatherAttrs{.axis = -1}, {b.in(0), b.Constant(Tensor::ScalarInt64(which))});
  };
  const ValueId real = part(0);
  return {real, part(1)};
}

Result<Values> Join(TfFormula& f, const OpenParts& x) {
  const ValueId real = f("Unsqueeze", {x.real, f.Ints({-1})});
  const ValueId imaginary = f("Unsqueeze", {x.imaginary, f.Ints({-1})});
  return f.Last(ConcatAttrs{.axis = -1}, {real, imaginary});
}

// Transforms of axes whose sizes, or number, are only known at run time: the matrices are computed
// then.
Result<Values> LowerOpenFft(TfLowering& b) {
  const DType dtype = b.dtype();
  TfFormula f(b);
  OpenParts x = PartsOf(b, f);
  for (int64_t i = 1; i <= AxesOf(b.op()); ++i) {
    const ValueId n = f(SizeFromEnd(i), {x.real});
    ONCILLA_TRY(CheckOpenPoints(b, f, n, dtype, i));
    TransformOpen(f, i, TurnsOf(f, n, dtype, b.op()[0] == 'I'), x);
  }
  return Join(f, x);
}

// The lengths of a real transform, if the model computes them.
struct OpenLengths {
  int64_t axes = 0;
  ValueId all = kNoValue;

  static Result<OpenLengths> Of(TfLowering& b, TfFormula& f) {
    OpenLengths out;
    out.axes = AxesOf(b.op());
    const PartialShape& shape = b.in_fact(1).shape;
    if (shape.ranked() && (shape.rank() != 1 || (shape[0].known() && shape[0].size != out.axes))) {
      return InvalidArgument("fft_length is ", shape, " for ", out.axes, " axes");
    }
    out.all = f.Cast(f(EnsureShapeAttrs{.dims = {out.axes}}, {b.in(1)}), DType::kI64);
    return out;
  }
  // The length of axis i from the end, as a vector of one number.
  ValueId At(TfFormula& f, int64_t i) const {
    return f("Slice", {all, f.Ints({axes - i}), f.Ints({axes - i + 1})});
  }
};

// x with axis i from the end cut to `size`; a shorter axis fails the run.
Result<ValueId> CutTo(TfLowering& b, TfFormula& f, ValueId x, int64_t i, ValueId size) {
  ONCILLA_TRY(CheckMost(b, f, size, f(SizeFromEnd(i), {x}), "the input is shorter than fft_length",
                        StrCat("length", i)));
  return f.Keep(f("Slice", {x, f.Ints({0}), size, f.Ints({-i})}));
}

// n / 2 + 1
ValueId BinsOf(TfFormula& f, ValueId n) {
  const ValueId half = f("FloorDiv", {n, f.Number(DType::kI64, 2)});
  return f("Add", {half, f.Number(DType::kI64, 1)});
}

Result<Values> LowerOpenRfft(TfLowering& b) {
  const DType dtype = b.dtype();
  TfFormula f(b);
  ONCILLA_ASSIGN(const OpenLengths lengths, OpenLengths::Of(b, f));
  OpenParts x = {b.in(0)};
  for (int64_t i = 1; i <= lengths.axes; ++i) {
    ONCILLA_ASSIGN(x.real, CutTo(b, f, x.real, i, lengths.At(f, i)));
  }
  for (int64_t i = 1; i <= lengths.axes; ++i) {
    const ValueId n = lengths.At(f, i);
    ONCILLA_TRY(CheckOpenPoints(b, f, n, dtype, i));
    Values turns = TurnsOf(f, n, dtype, false);
    for (ValueId& turn : turns) {
      if (i == 1) turn = f("Slice", {turn, f.Ints({0}), BinsOf(f, n), f.Ints({1})});
    }
    TransformOpen(f, i, turns, x);
  }
  return Join(f, x);
}

// Each bin of a real signal also stands for its mirror image, except for the first bin, and the
// last one of an even number of points.
Result<Values> LowerOpenIrfft(TfLowering& b) {
  const DType dtype = b.dtype();
  TfFormula f(b);
  ONCILLA_ASSIGN(const OpenLengths lengths, OpenLengths::Of(b, f));
  OpenParts x = PartsOf(b, f);
  const ValueId n = lengths.At(f, 1), bins = BinsOf(f, n);
  for (int64_t i = 1; i <= lengths.axes; ++i) {
    const ValueId size = i == 1 ? bins : lengths.At(f, i);
    ONCILLA_ASSIGN(x.real, CutTo(b, f, x.real, i, size));
    x.imaginary = f("Slice", {x.imaginary, f.Ints({0}), size, f.Ints({-i})});
  }
  for (int64_t i = lengths.axes; i > 1; --i) {
    const ValueId points = lengths.At(f, i);
    ONCILLA_TRY(CheckOpenPoints(b, f, points, dtype, i));
    TransformOpen(f, i, TurnsOf(f, points, dtype, true), x);
  }
  ONCILLA_TRY(CheckOpenPoints(b, f, n, dtype, 1));
  const ValueId zero = f.Number(DType::kI64, 0), one = f.Number(DType::kI64, 1);
  const ValueId two = f.Number(DType::kI64, 2);
  const ValueId at = f("Range", {zero, f("Reshape", {bins, f.Ints({})}), one});
  const ValueId first = f("Equal", {at, zero}), last = f("Equal", {f("Mul", {at, two}), n});
  const ValueId weight = f.Cast(f("Where", {f("Or", {first, last}), one, two}), dtype);
  Values turns = TurnsOf(f, n, dtype, true);
  for (ValueId& turn : turns) turn = f("Slice", {turn, f.Ints({0}), bins, f.Ints({0})});
  const ValueId real = f(MatMulAttrs{}, {f("Mul", {x.real, weight}), turns[0]});
  const ValueId imaginary = f(MatMulAttrs{}, {f("Mul", {x.imaginary, weight}), turns[1]});
  return f.Last("Add", {real, imaginary});
}

// The axes before those that are transformed: unchanged, or merged into one if their number is
// known only at run time.
class Batches {
 public:
  // x with `axes` axes after the batch axes.
  static Result<Batches> Of(TfLowering& b, int axes, std::string_view what) {
    Batches out;
    const Result<int> rank = b.Rank(0, what);
    if (rank.ok() || !b.RanksStayOpen()) {
      ONCILLA_ASSIGN(out.rank_, rank);
      out.x_ = b.in(0);
      return out;
    }
    TfFormula f(b);
    out.sizes_ = f(ShapeAttrs{.end = -axes}, {b.in(0)});
    const ValueId one = f("ReduceProd", ReduceAttrs{.keep_dims = true}, {out.sizes_});
    const ValueId own = f(ShapeAttrs{.start = -axes}, {b.in(0)});
    const ValueId x = f("Reshape", {b.in(0), f(ConcatAttrs{.axis = 0}, {one, own})});
    out.rank_ = axes + 1;
    out.x_ =
        f(EnsureShapeAttrs{.dims = std::vector<int64_t>(static_cast<size_t>(out.rank_), -1)}, {x});
    ONCILLA_TRY(f.status());
    return out;
  }
  int rank() const { return rank_; }
  ValueId x() const { return x_; }
  // The role of the last node before Done() adds nodes.
  std::string_view role() const { return sizes_ == kNoValue ? "" : "merged"; }
  Result<Values> Done(TfLowering& b, ValueId y) const {
    if (sizes_ == kNoValue) return Values{y};
    ONCILLA_ASSIGN(const ValueId own, b.Add(ShapeAttrs{.start = 1}, {y}, "own_shape"));
    ONCILLA_ASSIGN(const ValueId shape, b.Add(ConcatAttrs{.axis = 0}, {sizes_, own}, "shape"));
    return One(b.Add("Reshape", {}, {y, shape}));
  }

 private:
  int rank_ = 0;
  ValueId x_ = kNoValue, sizes_ = kNoValue;
};

}  // namespace

Result<Values> LowerFft(TfLowering& b) {
  const int axes = AxesOf(b.op());
  const PartialShape& shape = b.in_fact(0).shape;
  bool open = !shape.ranked();
  for (int i = 1; i <= axes && !open && i < shape.rank(); ++i) {
    open = !shape[shape.rank() - 1 - i].known();
  }
  if (open && b.SizesStayOpen()) return LowerOpenFft(b);
  ONCILLA_ASSIGN(const int parts_rank, b.Rank(0, "a complex tensor"));
  const int rank = parts_rank - 1;
  if (rank < axes) return InvalidArgument("Input must have rank of at least ", axes);
  ValueId x = b.in(0);
  for (int i = 1; i <= axes; ++i) {
    const Dim points = b.fact(x).shape.ranked() ? b.fact(x).shape[rank - i] : Dim();
    if (!points.known()) return Unsupported("of an axis of unknown size");
    ONCILLA_ASSIGN(
        x, Transform(b, x, rank, rank - i, points.size, b.op()[0] == 'I', StrCat("axis", i)));
  }
  return Values{x};
}

// A real transform along the last axis, then complex ones along the other axes.
Result<Values> LowerRfft(TfLowering& b) {
  if (!AllIntsKnown(b.in_fact(1)) && b.SizesStayOpen()) return LowerOpenRfft(b);
  ONCILLA_ASSIGN(const std::vector<int64_t> lengths, b.KnownInts(1, "fft_length"));
  const int axes = AxesOf(b.op());
  ONCILLA_ASSIGN(const Batches batches, Batches::Of(b, axes, "the signal"));
  const int rank = batches.rank();
  if (static_cast<int>(lengths.size()) != axes || rank < axes) {
    return InvalidArgument("fft_length has ", lengths.size(), " elements for ", axes, " axes");
  }
  ValueId x = batches.x();
  const DType dtype = b.in_fact(0).dtype;
  for (int i = 0; i < axes; ++i) {
    ONCILLA_ASSIGN(
        x, Fit(b, x, rank - axes + i, lengths[static_cast<size_t>(i)], StrCat("length", i)));
  }
  const int64_t n = lengths.back(), bins = n / 2 + 1;
  ONCILLA_ASSIGN(x, AddFourier(b, x, n, 1, bins, false, dtype, "bins"));
  std::vector<int64_t> pairs(static_cast<size_t>(rank - 1), 0);
  pairs.insert(pairs.end(), {bins, 2});
  ONCILLA_ASSIGN(x, b.Add(ReshapeAttrs{.zero_copies = true}, {x, b.Ints(pairs)}, "pairs"));
  for (int i = 2; i <= axes; ++i) {
    ONCILLA_ASSIGN(x, Transform(b, x, rank, rank - i, lengths[static_cast<size_t>(axes - i)], false,
                                StrCat("axis", i)));
  }
  return batches.Done(b, x);
}

Result<Values> LowerIrfft(TfLowering& b) {
  if (!AllIntsKnown(b.in_fact(1)) && b.SizesStayOpen()) return LowerOpenIrfft(b);
  ONCILLA_ASSIGN(const std::vector<int64_t> lengths, b.KnownInts(1, "fft_length"));
  const int axes = AxesOf(b.op());
  ONCILLA_ASSIGN(const Batches batches, Batches::Of(b, axes + 1, "a complex tensor"));
  const int rank = batches.rank() - 1;  // without the axis of parts
  if (static_cast<int>(lengths.size()) != axes || rank < axes) {
    return InvalidArgument("fft_length has ", lengths.size(), " elements for ", axes, " axes");
  }
  ValueId x = batches.x();
  const DType dtype = b.in_fact(0).dtype;
  const int64_t n = lengths.back(), bins = n / 2 + 1;
  for (int i = 0; i < axes; ++i) {
    const int64_t size = i == axes - 1 ? bins : lengths[static_cast<size_t>(i)];
    ONCILLA_ASSIGN(x, Fit(b, x, rank - axes + i, size, StrCat("length", i)));
  }
  for (int i = 2; i <= axes; ++i) {
    ONCILLA_ASSIGN(x, Transform(b, x, rank, rank - i, lengths[static_cast<size_t>(axes - i)], true,
                                StrCat("axis", i)));
  }
  std::vector<int64_t> flat(static_cast<size_t>(rank - 1), 0);
  flat.push_back(2 * bins);
  ONCILLA_ASSIGN(x, b.Add(ReshapeAttrs{.zero_copies = true}, {x, b.Ints(flat)}, "flat"));
  ONCILLA_ASSIGN(x, AddRealInverse(b, x, n, dtype, batches.role()));
  return batches.Done(b, x);
}

}  // namespace oncilla
