// TensorFlow's complex numbers and Fourier transforms.
//
// The engine has no complex type: inside a graph a complex tensor is a real one with an additional
// last axis of size two, for the real and imaginary parts. Only these rows see such tensors; the
// importer uses them for every node that has a complex type among its attributes. Where complex
// tensors enter or leave the model, it converts between both forms.
#include <limits>
#include <numbers>

#include "engine/import/lowering/fourier.h"
#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tf/ops/formula.h"

namespace oncilla {
namespace {

class Complex {
 public:
  explicit Complex(TfLowering& b) : b_(b) {}

  Result<ValueId> Op(std::string_view op, Values in) {
    return b_.Add(op, {}, std::move(in), StrCat("step", step_++));
  }
  template <class Attrs>
  requires(!kOpOf<Attrs>.empty()) Result<ValueId> Op(const Attrs& attrs, Values in) {
    return b_.Add(attrs, std::move(in), StrCat("step", step_++));
  }
  // One part of a complex tensor, without the last axis.
  Result<ValueId> Part(ValueId x, int64_t which) {
    return Op(GatherAttrs{.axis = -1}, {x, b_.Constant(Tensor::ScalarInt64(which))});
  }
  // The last node of most lowerings; it gets the node's own name.
  Result<Values> Join(ValueId real, ValueId imaginary) {
    ONCILLA_ASSIGN(const ValueId r, Op("Unsqueeze", {real, b_.Ints({-1})}));
    ONCILLA_ASSIGN(const ValueId i, Op("Unsqueeze", {imaginary, b_.Ints({-1})}));
    return One(b_.Add(ConcatAttrs{.axis = -1}, {r, i}));
  }
  // The number of axes of the complex tensor, without the axis of parts.
  Result<int> Rank(size_t input) {
    ONCILLA_ASSIGN(const int rank, b_.Rank(input, "a complex tensor"));
    return rank - 1;
  }

 private:
  TfLowering& b_;
  int step_ = 0;
};

Result<Values> LowerComplex(TfLowering& b) {
  Complex c(b);
  ValueId real = b.in(0), imaginary = b.in(1);
  const PartialShape &r = b.in_fact(0).shape, &i = b.in_fact(1).shape;
  bool same = r.ranked() && i.ranked() && r.rank() == i.rank();
  for (int axis = 0; same && axis < r.rank(); ++axis) same = r[axis].Same(i[axis]);
  if (!same) {
    ONCILLA_ASSIGN(const ValueId real_shape, c.Op("Shape", {real}));
    ONCILLA_ASSIGN(const ValueId imaginary_shape, c.Op("Shape", {imaginary}));
    ONCILLA_ASSIGN(real, c.Op("Expand", {real, imaginary_shape}));
    ONCILLA_ASSIGN(imaginary, c.Op("Expand", {imaginary, real_shape}));
  }
  return c.Join(real, imaginary);
}

Result<Values> LowerPart(TfLowering& b) {
  const int64_t which = b.op() == "Real" ? 0 : 1;
  return One(b.Add(GatherAttrs{.axis = -1}, {b.in(0), b.Constant(Tensor::ScalarInt64(which))}));
}

Result<Values> LowerAbs(TfLowering& b) {
  return One(b.Add("ReduceL2", {}, {b.in(0), b.Ints({-1})}));
}

Result<Values> LowerAngle(TfLowering& b) {
  Complex c(b);
  ONCILLA_ASSIGN(const ValueId real, c.Part(b.in(0), 0));
  ONCILLA_ASSIGN(const ValueId imaginary, c.Part(b.in(0), 1));
  return One(b.Add("Atan2", {}, {imaginary, real}));
}

Result<Values> LowerConj(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId plus, b.Scalar(b.in_fact(0).dtype, 1));
  ONCILLA_ASSIGN(const ValueId minus, b.Scalar(b.in_fact(0).dtype, -1));
  Complex c(b);
  ONCILLA_ASSIGN(const ValueId first, c.Op("Unsqueeze", {plus, b.Ints({0})}));
  ONCILLA_ASSIGN(const ValueId second, c.Op("Unsqueeze", {minus, b.Ints({0})}));
  ONCILLA_ASSIGN(const ValueId signs, c.Op(ConcatAttrs{.axis = 0}, {first, second}));
  return One(b.Add("Mul", {}, {b.in(0), signs}));
}

bool IsComplexType(int64_t tf_type) { return tf_type == 8 || tf_type == 18; }
DType PartType(int64_t tf_type) { return tf_type == 8 ? DType::kF32 : DType::kF64; }

Result<Values> LowerCast(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t from, b.attrs().TypeNumber("SrcT"));
  ONCILLA_ASSIGN(const int64_t to, b.attrs().TypeNumber("DstT"));
  Complex c(b);
  if (!IsComplexType(to)) {
    ONCILLA_ASSIGN(const DType type, b.attrs().Type("DstT"));
    ONCILLA_ASSIGN(const ValueId real, c.Part(b.in(0), 0));
    return One(b.Add(CastAttrs{type}, {real}));
  }
  if (IsComplexType(from)) return One(b.Add(CastAttrs{PartType(to)}, {b.in(0)}));
  ONCILLA_ASSIGN(const ValueId real, c.Op(CastAttrs{PartType(to)}, {b.in(0)}));
  ONCILLA_ASSIGN(const ValueId shape, c.Op("Shape", {real}));
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(PartType(to), 0));
  ONCILLA_ASSIGN(const ValueId none, c.Op("Fill", {shape, zero}));
  return c.Join(real, none);
}

Result<Values> LowerIdentity(TfLowering& b) { return Values{b.in(0)}; }

Result<Values> LowerProduct(TfLowering& b) {
  Complex c(b);
  ONCILLA_ASSIGN(const ValueId ar, c.Part(b.in(0), 0));
  ONCILLA_ASSIGN(const ValueId ai, c.Part(b.in(0), 1));
  const size_t second = b.op() == "Square" ? 0 : 1;
  ONCILLA_ASSIGN(const ValueId br, c.Part(b.in(second), 0));
  ONCILLA_ASSIGN(const ValueId bi, c.Part(b.in(second), 1));
  ONCILLA_ASSIGN(const ValueId rr, c.Op("Mul", {ar, br}));
  ONCILLA_ASSIGN(const ValueId ii, c.Op("Mul", {ai, bi}));
  ONCILLA_ASSIGN(const ValueId ri, c.Op("Mul", {ar, bi}));
  ONCILLA_ASSIGN(const ValueId ir, c.Op("Mul", {ai, br}));
  const bool divides = b.op() == "RealDiv" || b.op() == "Div";
  if (!divides) {
    ONCILLA_ASSIGN(const ValueId real, c.Op("Sub", {rr, ii}));
    ONCILLA_ASSIGN(const ValueId imaginary, c.Op("Add", {ri, ir}));
    return c.Join(real, imaginary);
  }
  // a times the conjugate of b, divided by |b|^2.
  ONCILLA_ASSIGN(const ValueId size, c.Op("ReduceSumSquare", {b.in(1), b.Ints({-1})}));
  ONCILLA_ASSIGN(ValueId real, c.Op("Add", {rr, ii}));
  ONCILLA_ASSIGN(ValueId imaginary, c.Op("Sub", {ir, ri}));
  ONCILLA_ASSIGN(real, c.Op("Div", {real, size}));
  ONCILLA_ASSIGN(imaginary, c.Op("Div", {imaginary, size}));
  return c.Join(real, imaginary);
}

Result<Values> LowerExp(TfLowering& b) {
  Complex c(b);
  ONCILLA_ASSIGN(const ValueId real, c.Part(b.in(0), 0));
  ONCILLA_ASSIGN(const ValueId turn, c.Part(b.in(0), 1));
  ONCILLA_ASSIGN(const ValueId size, c.Op("Exp", {real}));
  ONCILLA_ASSIGN(const ValueId cosine, c.Op("Cos", {turn}));
  ONCILLA_ASSIGN(const ValueId sine, c.Op("Sin", {turn}));
  ONCILLA_ASSIGN(const ValueId r, c.Op("Mul", {size, cosine}));
  ONCILLA_ASSIGN(const ValueId i, c.Op("Mul", {size, sine}));
  return c.Join(r, i);
}

// Movement: the axis of parts stays last.

Result<Values> LowerConst(TfLowering& b) {
  ONCILLA_ASSIGN(const Tensor value, b.ConstantValue());
  ONCILLA_ASSIGN(Tensor parts, ComplexParts(value));
  return Values{b.Constant(std::move(parts))};
}

// A negative axis counts from the end of the result, before the axis of parts.
Result<Values> LowerPack(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("axis"));
  return LowerPackParts(b, axis < 0 ? axis - 1 : axis);
}

Result<Values> LowerUnpack(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.attrs().Int("axis"));
  ONCILLA_ASSIGN(const int64_t count, b.attrs().Int("num"));
  return LowerUnpackParts(b, axis < 0 ? axis - 1 : axis, count);
}

Result<Values> LowerSqueeze(TfLowering& b) {
  ONCILLA_ASSIGN(std::vector<int64_t> axes, b.attrs().Ints("squeeze_dims"));
  if (axes.empty()) return One(b.Add("Squeeze", {}, {b.in(0)}));
  for (int64_t& axis : axes) axis = axis < 0 ? axis - 1 : axis;
  return One(b.Add("Squeeze", {}, {b.in(0), b.Ints(std::move(axes))}));
}

// Sums and means of complex numbers are computed for each part.
template <const char* kCanonical>
Result<Values> LowerReduce(TfLowering& b) {
  ONCILLA_ASSIGN(const bool keep_dims, b.attrs().Bool("keep_dims"));
  ONCILLA_ASSIGN(std::vector<int64_t> axes, b.KnownInts(1, "the axes"));
  for (int64_t& axis : axes) axis = axis < 0 ? axis - 1 : axis;
  return One(b.Add(kCanonical, ReduceAttrs{.keep_dims = keep_dims, .empty_axes_is_all = false},
                   {b.in(0), b.Ints(std::move(axes))}));
}
constexpr char kSum[] = "ReduceSum", kMean[] = "ReduceMean";

Result<Values> LowerZeros(TfLowering& b) {
  ONCILLA_ASSIGN(const ValueId zero, b.Scalar(b.in_fact(0).dtype, 0));
  ONCILLA_ASSIGN(const ValueId shape, b.Add("Shape", {}, {b.in(0)}, "shape"));
  return One(b.Add("Fill", {}, {shape, zero}));
}

Result<Values> LowerShape(TfLowering& b) {
  ONCILLA_ASSIGN(const DType to, b.attrs().Type("out_type"));
  return One(b.Add(ShapeAttrs{.end = -1, .to = to}, {b.in(0)}));
}

Result<Values> LowerReshape(TfLowering& b) {
  Complex c(b);
  ONCILLA_ASSIGN(const ValueId wide, c.Op(CastAttrs{DType::kI64}, {b.in(1)}));
  ONCILLA_ASSIGN(const ValueId shape, c.Op(ConcatAttrs{.axis = 0}, {wide, b.Ints({2})}));
  return One(b.Add("Reshape", {}, {b.in(0), shape}));
}

Result<Values> LowerTranspose(TfLowering& b) {
  Complex c(b);
  ONCILLA_ASSIGN(const int rank, c.Rank(0));
  ONCILLA_ASSIGN(std::vector<int64_t> perm, b.KnownInts(1, "perm"));
  for (int64_t& axis : perm) axis = axis < 0 ? axis + rank : axis;
  perm.push_back(rank);
  return One(b.Transpose(b.in(0), std::move(perm), ""));
}

Result<Values> LowerExpandDims(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(1, "the axis"));
  return One(b.Add("Unsqueeze", {}, {b.in(0), b.Ints({axis < 0 ? axis - 1 : axis})}));
}

Result<Values> LowerConcat(TfLowering& b) {
  Values parts = b.all_inputs();
  ONCILLA_ASSIGN(const int64_t axis, b.KnownInt(parts.size() - 1, "the axis"));
  parts.pop_back();
  return One(b.Add(ConcatAttrs{.axis = axis < 0 ? axis - 1 : axis}, std::move(parts)));
}

// After an ellipsis the axis of parts must be named; otherwise unnamed axes stay whole.
Result<Values> LowerStridedSlice(TfLowering& b) {
  ONCILLA_ASSIGN(StridedSliceAttrs attrs, ReadSliceMasks(b));
  if (attrs.ellipsis_mask == 0) return One(b.Add(attrs, b.all_inputs()));
  ONCILLA_ASSIGN(std::vector<int64_t> begin, b.KnownInts(1, "begin"));
  ONCILLA_ASSIGN(std::vector<int64_t> end, b.KnownInts(2, "end"));
  ONCILLA_ASSIGN(std::vector<int64_t> strides, b.KnownInts(3, "strides"));
  if (begin.size() > 30) return InvalidArgument("begin has ", begin.size(), " elements");
  attrs.begin_mask |= int64_t{1} << begin.size();
  attrs.end_mask |= int64_t{1} << begin.size();
  begin.push_back(0);
  end.push_back(0);
  strides.push_back(1);
  return One(b.Add(attrs, {b.in(0), b.Ints(begin), b.Ints(end), b.Ints(strides)}));
}

// Fourier transforms.

// Cuts `axis` to `size`. A shorter axis fails, at the latest when its elements are counted.
Result<ValueId> Fit(TfLowering& b, ValueId x, int axis, int64_t size, std::string_view role) {
  const Dim own = b.fact(x).shape.ranked() ? b.fact(x).shape[axis] : Dim();
  if (own.known() && own.size == size) return x;
  if (own.known() && own.size < size) {
    return InvalidArgument("Input dimension ", axis, " must have length of at least ", size,
                           " but got: ", own.size);
  }
  return b.Add("Slice", {}, {x, b.Ints({0}), b.Ints({size}), b.Ints({axis})}, role);
}

Status CheckPoints(int64_t points, int64_t entries, DType dtype) {
  if (points < 1) return InvalidArgument("there are ", points, " points");
  if (SaturatingMul(entries, BytesOf(dtype)) > kMostFourierBytes) {
    return Unsupported("of ", points, " points");
  }
  return {};
}

// Transforms a complex tensor of `rank` axes (plus the parts) along one of them.
Result<ValueId> Transform(TfLowering& b, ValueId x, int rank, int axis, int64_t n, bool inverse,
                          std::string_view role) {
  const DType dtype = b.fact(x).dtype;
  ONCILLA_TRY(CheckPoints(n, SaturatingMul(4 * n, n), dtype));
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
  const Tensor matrix = FourierMatrix(dtype, n, 2, n, inverse).Reshaped({2 * n, 2 * n});
  ONCILLA_ASSIGN(x, b.Add("MatMul", {}, {x, b.Constant(matrix)}, StrCat(role, "/bins")));
  ONCILLA_ASSIGN(x, b.Add(zeros, {x, b.Ints(pairs)}, StrCat(role, "/pairs")));
  if (!moves) return x;
  return b.Transpose(x, back, StrCat(role, "/back"));
}

int Axes(std::string_view op) { return op.ends_with("3D") ? 3 : op.ends_with("2D") ? 2 : 1; }

// Cosines and sines of the multiples of a turn's n-th part, [n, n], n being a vector of one number.
// Divided by n for the inverse, which turns the other way.
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

// Transforms of axes whose sizes, and number, are the run's: the matrices are made there.
Result<Values> LowerOpenFft(TfLowering& b) {
  constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();
  const DType dtype = b.dtype();
  const bool inverse = b.op()[0] == 'I';
  int64_t most = 1;
  while (4 * (most + 1) * (most + 1) * BytesOf(dtype) <= kMostFourierBytes) ++most;
  const auto part = [](int64_t which) { return Tensor::ScalarInt64(which); };
  TfFormula f(b);
  ValueId real = f(GatherAttrs{.axis = -1}, {b.in(0), b.Constant(part(0))});
  ValueId imaginary = f(GatherAttrs{.axis = -1}, {b.in(0), b.Constant(part(1))});
  for (int64_t i = 1; i <= Axes(b.op()); ++i) {
    const ValueId whole = f("Shape", {real});
    const ValueId n = f(ShapeAttrs{.start = -i, .end = i == 1 ? kToTheEnd : 1 - i}, {real});
    const ValueId few = f("LessEqual", {n, f.Number(DType::kI64, static_cast<double>(most))});
    ONCILLA_TRY(f.status());
    const ValueId text = b.Constant(Tensor::Strings({}, {StrCat("more than ", most, " points")}));
    ONCILLA_TRY(b.AddAll(AssertAttrs{}, {few, text, n}, StrCat("check", i)).status());
    const Values turns = TurnsOf(f, n, dtype, inverse);
    // Behind the second axis from the end, those that follow are one.
    ValueId flat = kNoValue;
    if (i > 2) {
      const ValueId before = f(ShapeAttrs{.end = 1 - i}, {real});
      const ValueId behind =
          f("ReduceProd", ReduceAttrs{.keep_dims = true}, {f(ShapeAttrs{.start = 1 - i}, {real})});
      flat = f(ConcatAttrs{.axis = 0}, {before, behind});
    }
    const auto times = [&](ValueId x, ValueId turn) {
      if (i == 1) return f(MatMulAttrs{}, {x, turn});
      const ValueId y = f(MatMulAttrs{}, {turn, flat == kNoValue ? x : f("Reshape", {x, flat})});
      return flat == kNoValue ? y : f("Reshape", {y, whole});
    };
    const ValueId next = f("Add", {times(real, turns[0]), times(imaginary, turns[1])});
    imaginary = f("Sub", {times(imaginary, turns[0]), times(real, turns[1])});
    real = next;
  }
  ONCILLA_TRY(f.status());
  return Complex(b).Join(real, imaginary);
}

// The axes in front of those that are transformed: as they are, or one where their number is the
// run's.
class Batches {
 public:
  // x with `axes` axes behind its batches.
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
  // The role of the last node that is not the batches' own.
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

Result<Values> LowerFft(TfLowering& b) {
  Complex c(b);
  const int axes = Axes(b.op());
  const PartialShape& shape = b.in_fact(0).shape;
  bool open = !shape.ranked();
  for (int i = 1; i <= axes && !open && i < shape.rank(); ++i) {
    open = !shape[shape.rank() - 1 - i].known();
  }
  if (open && b.SizesStayOpen()) return LowerOpenFft(b);
  ONCILLA_ASSIGN(const int rank, c.Rank(0));
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

// A real transform to bins along the last axis, then complex ones along the other axes.
Result<Values> LowerRfft(TfLowering& b) {
  ONCILLA_ASSIGN(const std::vector<int64_t> lengths, b.KnownInts(1, "fft_length"));
  const int axes = Axes(b.op());
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
  ONCILLA_TRY(CheckPoints(n, SaturatingMul(2 * n, bins), dtype));
  const Tensor matrix = FourierMatrix(dtype, n, 1, bins, false).Reshaped({n, bins * 2});
  ONCILLA_ASSIGN(x, b.Add("MatMul", {}, {x, b.Constant(matrix)}, "bins"));
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
  ONCILLA_ASSIGN(const std::vector<int64_t> lengths, b.KnownInts(1, "fft_length"));
  const int axes = Axes(b.op());
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
  ONCILLA_TRY(CheckPoints(n, SaturatingMul(2 * n, bins), dtype));
  std::vector<int64_t> flat(static_cast<size_t>(rank - 1), 0);
  flat.push_back(2 * bins);
  ONCILLA_ASSIGN(x, b.Add(ReshapeAttrs{.zero_copies = true}, {x, b.Ints(flat)}, "flat"));
  const Tensor matrix = RealInverseMatrix(dtype, n).Reshaped({2 * bins, n});
  ONCILLA_ASSIGN(x, b.Add("MatMul", {}, {x, b.Constant(matrix)}, batches.role()));
  return batches.Done(b, x);
}

Result<Values> LowerExponential(TfLowering& b) {
  return One(b.Add(MatrixExponentialAttrs{.complex = true}, {b.in(0)}));
}

constexpr TfOpRow kRows[] = {
    {"Add", 2, "Add"},
    {"AddV2", 2, "Add"},
    {"Angle", 1, "", LowerAngle},
    {"Cast", 1, "", LowerCast},
    {"Complex", 2, "", LowerComplex},
    {"ComplexAbs", 1, "", LowerAbs},
    {"ConcatV2", 2, "", LowerConcat},
    {"Conj", 1, "", LowerConj},
    {"Const", 0, "", LowerConst},
    {"Div", 2, "", LowerProduct},
    {"Exp", 1, "", LowerExp},
    {"ExpandDims", 2, "", LowerExpandDims},
    {"FFT", 1, "", LowerFft},
    {"FFT2D", 1, "", LowerFft},
    {"FFT3D", 1, "", LowerFft},
    {"IFFT", 1, "", LowerFft},
    {"IFFT2D", 1, "", LowerFft},
    {"IFFT3D", 1, "", LowerFft},
    {"IRFFT", 2, "", LowerIrfft},
    {"IRFFT2D", 2, "", LowerIrfft},
    {"IRFFT3D", 2, "", LowerIrfft},
    {"Identity", 1, "", LowerIdentity},
    {"Imag", 1, "", LowerPart},
    {"MatrixExponential", 1, "", LowerExponential},
    {"MatrixLogarithm", 1, "MatrixLogarithm"},
    {"Mul", 2, "", LowerProduct},
    {"Mean", 2, "", LowerReduce<kMean>},
    {"Neg", 1, "Neg"},
    {"Pack", 1, "", LowerPack},
    {"RFFT", 2, "", LowerRfft},
    {"RFFT2D", 2, "", LowerRfft},
    {"RFFT3D", 2, "", LowerRfft},
    {"Real", 1, "", LowerPart},
    {"RealDiv", 2, "", LowerProduct},
    {"Reshape", 2, "", LowerReshape},
    {"Shape", 1, "", LowerShape},
    {"Square", 1, "", LowerProduct},
    {"Squeeze", 1, "", LowerSqueeze},
    {"StopGradient", 1, "", LowerIdentity},
    {"StridedSlice", 4, "", LowerStridedSlice},
    {"Sub", 2, "Sub"},
    {"Sum", 2, "", LowerReduce<kSum>},
    {"Transpose", 2, "", LowerTranspose},
    {"Unpack", 1, "", LowerUnpack},
    {"ZerosLike", 1, "", LowerZeros},
};

}  // namespace

std::span<const TfOpRow> TfComplexRows() { return kRows; }

bool HasComplexType(const TfNode& node) {
  for (const auto& [name, value] : node.attrs) {
    const TfAttr attr(value);
    if (const auto type = attr.TypeNumber(); type.ok() && IsComplexType(*type)) return true;
    const auto types = attr.TypeNumbers();
    for (size_t i = 0; types.ok() && i < types->size(); ++i) {
      if (IsComplexType((*types)[i])) return true;
    }
  }
  return false;
}

bool GivesComplex(const TfNode& node, const TfAttrs& attrs) {
  if (node.op == "Cast") {
    const auto to = attrs.TypeNumber("DstT");
    return to.ok() && IsComplexType(*to);
  }
  for (const char* real :
       {"Angle", "ComplexAbs", "IRFFT", "IRFFT2D", "IRFFT3D", "Imag", "Real", "Shape"}) {
    if (node.op == real) return false;
  }
  return true;
}

}  // namespace oncilla
