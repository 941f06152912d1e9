// TensorFlow's complex numbers; signal_fourier.cc has their Fourier transforms.
//
// The engine has no complex type: inside a graph a complex tensor is a real one with an additional
// last axis of size two, for the real and imaginary parts. Only these rows see such tensors; the
// importer uses them for every node that has a complex type among its attributes. At the model's
// inputs and outputs, the importer converts between both forms.
#include <array>

#include "engine/import/lowering/shared_ops.h"
#include "engine/import/tf/ops/signal_algebra.h"
#include "engine/import/tf/ops/signal_fourier.h"

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

// Sums and means of complex numbers are computed for each part separately.
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
  const Dim count = b.in_fact(1).shape.elements();
  if (!count.known()) return Unsupported("how many axes are sliced is not known");
  if (count.size > 30) return InvalidArgument("begin has ", count.size, " elements");
  attrs.begin_mask |= int64_t{1} << count.size;
  attrs.end_mask |= int64_t{1} << count.size;
  Complex c(b);
  Values inputs = {b.in(0)};
  for (size_t i = 1; i < 4; ++i) {
    const int64_t parts = i == 3 ? 1 : 0;
    if (AllIntsKnown(b.in_fact(i))) {
      ONCILLA_ASSIGN(std::vector<int64_t> list, b.KnownInts(i, "begin, end or strides"));
      list.push_back(parts);
      inputs.push_back(b.Ints(std::move(list)));
      continue;
    }
    ONCILLA_ASSIGN(const ValueId wide, c.Op(CastAttrs{DType::kI64}, {b.in(i)}));
    ONCILLA_ASSIGN(const ValueId list, c.Op(ConcatAttrs{.axis = 0}, {wide, b.Ints({parts})}));
    inputs.push_back(list);
  }
  return One(b.Add(attrs, std::move(inputs)));
}

// Pads with zeros, except along the axis of parts.
Result<Values> LowerPad(TfLowering& b) {
  Complex c(b);
  ONCILLA_ASSIGN(const ValueId wide, b.Cast(b.in(1), DType::kI64, "wide"));
  const ValueId none = b.Constant(Tensor::Int64s(std::array<int64_t, 2>{}).Reshaped({1, 2}));
  ONCILLA_ASSIGN(const ValueId pairs, c.Op(ConcatAttrs{.axis = 0}, {wide, none}));
  ONCILLA_ASSIGN(const ValueId sides, b.Transpose(pairs, {1, 0}, "sides"));
  ONCILLA_ASSIGN(const ValueId pads, c.Op("Reshape", {sides, b.Ints({-1})}));
  return One(b.Add("Pad", {}, {b.in(0), pads}));
}

Result<Values> LowerExponential(TfLowering& b) {
  return One(b.Add(MatrixExponentialAttrs{.complex = true}, {b.in(0)}));
}

constexpr TfOpRow kRows[] = {
    {"Add", 2, "Add"},
    {"AddV2", 2, "Add"},
    {"Angle", 1, "", LowerAngle},
    {"BatchMatMul", 2, "", LowerComplexMatMul},
    {"BatchMatMulV2", 2, "", LowerComplexMatMul},
    {"BatchMatMulV3", 2, "", LowerComplexMatMul},
    {"Cast", 1, "", LowerCast},
    {"Complex", 2, "", LowerComplex},
    {"ComplexAbs", 1, "", LowerAbs},
    {"ConcatV2", 2, "", LowerConcat},
    {"Conj", 1, "", LowerConj},
    {"ConjugateTranspose", 2, "", LowerComplexTranspose},
    {"Const", 0, "", LowerConst},
    {"Div", 2, "", LowerProduct},
    {"Equal", 2, "", LowerComplexEqual},
    {"Exp", 1, "", LowerExp},
    {"ExpandDims", 2, "", LowerExpandDims},
    {"FFT", 1, "", LowerFft},
    {"FFT2D", 1, "", LowerFft},
    {"FFT3D", 1, "", LowerFft},
    {"Gather", 2, "", LowerComplexGather},
    {"GatherV2", 3, "", LowerComplexGather},
    {"IFFT", 1, "", LowerFft},
    {"IFFT2D", 1, "", LowerFft},
    {"IFFT3D", 1, "", LowerFft},
    {"IRFFT", 2, "", LowerIrfft},
    {"IRFFT2D", 2, "", LowerIrfft},
    {"IRFFT3D", 2, "", LowerIrfft},
    {"Identity", 1, "", LowerIdentity},
    {"Imag", 1, "", LowerPart},
    {"LogMatrixDeterminant", 1, "", LowerComplexDecompose},
    {"Lu", 1, "", LowerComplexDecompose},
    {"MatMul", 2, "", LowerComplexMatMul},
    {"MatrixDeterminant", 1, "", LowerComplexDecompose},
    {"MatrixExponential", 1, "", LowerExponential},
    {"MatrixInverse", 1, "", LowerComplexDecompose},
    {"MatrixLogarithm", 1, "MatrixLogarithm"},
    {"MatrixSquareRoot", 1, "", LowerComplexDecompose},
    {"Mean", 2, "", LowerReduce<kMean>},
    {"Mul", 2, "", LowerProduct},
    {"Neg", 1, "Neg"},
    {"NotEqual", 2, "", LowerComplexEqual},
    {"Pack", 1, "", LowerPack},
    {"Pad", 2, "", LowerPad},
    {"Qr", 1, "", LowerComplexDecompose},
    {"RFFT", 2, "", LowerRfft},
    {"RFFT2D", 2, "", LowerRfft},
    {"RFFT3D", 2, "", LowerRfft},
    {"Real", 1, "", LowerPart},
    {"RealDiv", 2, "", LowerProduct},
    {"Reshape", 2, "", LowerReshape},
    {"SelectV2", 3, "", LowerComplexSelect},
    {"SelfAdjointEigV2", 1, "", LowerComplexDecompose},
    {"Shape", 1, "", LowerShape},
    {"Sqrt", 1, "", LowerComplexSqrt},
    {"Square", 1, "", LowerProduct},
    {"Squeeze", 1, "", LowerSqueeze},
    {"StopGradient", 1, "", LowerIdentity},
    {"StridedSlice", 4, "", LowerStridedSlice},
    {"Sub", 2, "Sub"},
    {"Sum", 2, "", LowerReduce<kSum>},
    {"Svd", 1, "", LowerComplexDecompose},
    {"Tile", 2, "", LowerComplexTile},
    {"Transpose", 2, "", LowerComplexTranspose},
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
