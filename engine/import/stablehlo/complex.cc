// Complex numbers in StableHLO: two values, of their real and imaginary parts.
//
// An op that only moves elements, or is the same for both parts, is lowered for each of them;
// products and Fourier transforms have formulas of their own.
#include <algorithm>

#include "engine/import/lowering/fourier.h"
#include "engine/import/stablehlo/builder.h"

namespace oncilla {
namespace {

// Ops that do the same to both parts.
constexpr std::string_view kByParts[] = {"add",
                                         "broadcast_in_dim",
                                         "concatenate",
                                         "dynamic_broadcast_in_dim",
                                         "dynamic_gather",
                                         "dynamic_reshape",
                                         "dynamic_slice",
                                         "dynamic_update_slice",
                                         "gather",
                                         "negate",
                                         "pad",
                                         "real_dynamic_slice",
                                         "reshape",
                                         "reverse",
                                         "select",
                                         "slice",
                                         "subtract",
                                         "transpose"};

DType PartOf(DType complex) { return complex == DType::kC128 ? DType::kF64 : DType::kF32; }

bool IsComplexType(const HloModule& source, const std::vector<int>& types) {
  return std::any_of(types.begin(), types.end(), [&](int type) {
    return IsComplex(source.types[static_cast<size_t>(type)].dtype);
  });
}

}  // namespace

class HloComplex {
 public:
  HloComplex(HloBuilder& builder, const HloOp& op, std::string name, HloValues operands)
      : builder_(builder),
        op_(op),
        name_(std::move(name)),
        operands_(std::move(operands)),
        node_(builder, builder.graph_, name_, {}, op, builder.state_.source) {}

  Result<HloValues> Lower();

 private:
  const HloModule& source() const { return builder_.state_.source; }
  Result<ValueId> Part(size_t i, bool imaginary);
  HloValues Joined(ValueId real, ValueId imag) {
    HloValue value = builder_.Whole(real, -1);
    value.imag = imag;
    return {value};
  }
  Result<ValueId> Add(std::string_view op, ValueId x, ValueId y, std::string_view role) {
    return node_.Add(op, AttrMap(), {x, y}, role);
  }
  // Its value before a broadcast is kept where that is all that is there.
  Result<HloValues> ByParts();
  Result<HloValues> Constant();
  Result<HloValues> Multiply();
  Result<HloValues> Divide();
  Result<HloValues> Magnitude();
  Result<HloValues> Exponential();
  Result<HloValues> Fourier();
  struct Parts {
    ValueId real = kNoValue, imag = kNoValue;
  };
  Result<ValueId> Interleaved(const Parts& x, int64_t size, const std::string& role);
  Result<Parts> AlongLast(const Parts& x, int64_t kind, int64_t points, const std::string& role);
  Result<Parts> AlongAxis(Parts x, int64_t kind, int64_t points, int axis);

  HloBuilder& builder_;
  const HloOp& op_;
  const std::string name_;
  HloValues operands_;
  HloNode node_;
};

// A part of an operand in full; a real operand has an imaginary part of zero.
Result<ValueId> HloComplex::Part(size_t i, bool imaginary) {
  if (i >= operands_.size() || operands_[i].id == kNoValue) return DataLoss("lacks an operand");
  if (operands_[i].imag == kNoValue) {
    ONCILLA_ASSIGN(const ValueId real, builder_.Full(operands_[i]));
    if (!imaginary) return real;
    ONCILLA_ASSIGN(const ValueId zero, node_.Scalar(node_.fact(real).dtype, 0));
    return Add("Mul", real, zero, StrCat("imaginary", i));
  }
  return imaginary ? operands_[i].imag : operands_[i].id;
}

Result<HloValues> HloComplex::ByParts() {
  Values parts;
  for (const bool imaginary : {false, true}) {
    HloBuilder inner(builder_.state_, builder_.graph_,
                     StrCat(name_, imaginary ? "/imag" : "/real"));
    for (size_t i = 0; i < operands_.size(); ++i) {
      HloValue part = operands_[i];
      if (part.imag != kNoValue) part.id = imaginary ? part.imag : part.id;
      part.imag = kNoValue;
      inner.values_[op_.operands[i]] = part;
    }
    ONCILLA_ASSIGN(HloValues results,
                   inner.LowerOp(op_, StrCat(name_, imaginary ? "/imag" : "/real")));
    if (results.size() != 1) return DataLoss("gives several results");
    results[0].type = op_.result_types[0];
    ONCILLA_ASSIGN(const ValueId full, inner.Full(results[0]));
    parts.push_back(full);
  }
  return Joined(parts[0], parts[1]);
}

Result<HloValues> HloComplex::Constant() {
  const HloAttr* attr = source().Find(op_, "value");
  if (attr == nullptr) return DataLoss("has no value");
  ONCILLA_ASSIGN(const HloModule::Elements elements, source().ElementsOf(*attr));
  const DType part = PartOf(elements.tensor.dtype());
  const size_t size = static_cast<size_t>(BytesOf(part));
  const auto bytes = elements.tensor.bytes();
  Values parts;
  for (size_t which = 0; which < 2; ++which) {
    std::vector<std::byte> taken;
    for (size_t at = which * size; at + size <= bytes.size(); at += 2 * size) {
      taken.insert(taken.end(), bytes.begin() + static_cast<ptrdiff_t>(at),
                   bytes.begin() + static_cast<ptrdiff_t>(at + size));
    }
    HloValue value = builder_.Whole(
        node_.Constant(Tensor::Copy({part, elements.tensor.shape()}, taken)), op_.result_types[0]);
    value.narrow = elements.splat;
    ONCILLA_ASSIGN(const ValueId full, builder_.Full(value));
    parts.push_back(full);
  }
  return Joined(parts[0], parts[1]);
}

Result<HloValues> HloComplex::Multiply() {
  ONCILLA_ASSIGN(const ValueId a, Part(0, false));
  ONCILLA_ASSIGN(const ValueId b, Part(0, true));
  ONCILLA_ASSIGN(const ValueId c, Part(1, false));
  ONCILLA_ASSIGN(const ValueId d, Part(1, true));
  ONCILLA_ASSIGN(const ValueId ac, Add("Mul", a, c, "ac"));
  ONCILLA_ASSIGN(const ValueId bd, Add("Mul", b, d, "bd"));
  ONCILLA_ASSIGN(const ValueId ad, Add("Mul", a, d, "ad"));
  ONCILLA_ASSIGN(const ValueId bc, Add("Mul", b, c, "bc"));
  ONCILLA_ASSIGN(const ValueId real, Add("Sub", ac, bd, "real"));
  ONCILLA_ASSIGN(const ValueId imag, Add("Add", ad, bc, "imag"));
  return Joined(real, imag);
}

Result<HloValues> HloComplex::Divide() {
  ONCILLA_ASSIGN(const ValueId a, Part(0, false));
  ONCILLA_ASSIGN(const ValueId b, Part(0, true));
  ONCILLA_ASSIGN(const ValueId c, Part(1, false));
  ONCILLA_ASSIGN(const ValueId d, Part(1, true));
  ONCILLA_ASSIGN(const ValueId cc, Add("Mul", c, c, "cc"));
  ONCILLA_ASSIGN(const ValueId dd, Add("Mul", d, d, "dd"));
  ONCILLA_ASSIGN(const ValueId size, Add("Add", cc, dd, "size"));
  ONCILLA_ASSIGN(const ValueId ac, Add("Mul", a, c, "ac"));
  ONCILLA_ASSIGN(const ValueId bd, Add("Mul", b, d, "bd"));
  ONCILLA_ASSIGN(const ValueId bc, Add("Mul", b, c, "bc"));
  ONCILLA_ASSIGN(const ValueId ad, Add("Mul", a, d, "ad"));
  ONCILLA_ASSIGN(const ValueId real, Add("Add", ac, bd, "real_part"));
  ONCILLA_ASSIGN(const ValueId imag, Add("Sub", bc, ad, "imag_part"));
  ONCILLA_ASSIGN(const ValueId x, Add("Div", real, size, "real"));
  ONCILLA_ASSIGN(const ValueId y, Add("Div", imag, size, "imag"));
  return Joined(x, y);
}

Result<HloValues> HloComplex::Magnitude() {
  ONCILLA_ASSIGN(const ValueId a, Part(0, false));
  ONCILLA_ASSIGN(const ValueId b, Part(0, true));
  // The larger part is taken out, so that no square overflows.
  ONCILLA_ASSIGN(const ValueId x, node_.Add("Abs", AttrMap(), {a}, "real_size"));
  ONCILLA_ASSIGN(const ValueId y, node_.Add("Abs", AttrMap(), {b}, "imag_size"));
  ONCILLA_ASSIGN(const ValueId most, Add("Max", x, y, "most"));
  ONCILLA_ASSIGN(const ValueId least, Add("Min", x, y, "least"));
  ONCILLA_ASSIGN(const ValueId ratio, node_.Add("DivNoNan", AttrMap(), {least, most}, "ratio"));
  ONCILLA_ASSIGN(const ValueId square, Add("Mul", ratio, ratio, "square"));
  ONCILLA_ASSIGN(const ValueId one, node_.Scalar(node_.fact(a).dtype, 1));
  ONCILLA_ASSIGN(const ValueId sum, Add("Add", square, one, "sum"));
  ONCILLA_ASSIGN(const ValueId root, node_.Add("Sqrt", AttrMap(), {sum}, "root"));
  ONCILLA_ASSIGN(const ValueId size, Add("Mul", root, most, ""));
  return HloValues{builder_.Whole(size, -1)};
}

Result<HloValues> HloComplex::Exponential() {
  ONCILLA_ASSIGN(const ValueId a, Part(0, false));
  ONCILLA_ASSIGN(const ValueId b, Part(0, true));
  ONCILLA_ASSIGN(const ValueId size, node_.Add("Exp", AttrMap(), {a}, "size"));
  ONCILLA_ASSIGN(const ValueId cosine, node_.Add("Cos", AttrMap(), {b}, "cosine"));
  ONCILLA_ASSIGN(const ValueId sine, node_.Add("Sin", AttrMap(), {b}, "sine"));
  ONCILLA_ASSIGN(const ValueId real, Add("Mul", size, cosine, "real"));
  ONCILLA_ASSIGN(const ValueId imag, Add("Mul", size, sine, "imag"));
  return Joined(real, imag);
}

enum FourierKind : int64_t { kForward = 0, kInverse = 1, kReal = 2, kRealInverse = 3 };

// Real and imaginary parts as one axis behind all others, flattened into the last: [.., 2 n].
Result<ValueId> HloComplex::Interleaved(const Parts& x, int64_t size, const std::string& role) {
  const int rank = node_.fact(x.real).shape.rank();
  Values apart;
  for (const ValueId part : {x.real, x.imag}) {
    ONCILLA_ASSIGN(const ValueId column,
                   node_.Unsqueeze(part, {rank}, StrCat(role, "_column", apart.size())));
    apart.push_back(column);
  }
  ONCILLA_ASSIGN(const ValueId pairs, node_.Add(ConcatAttrs{.axis = rank}, apart, role + "_parts"));
  ONCILLA_ASSIGN(const ValueId outer, node_.Sizes(x.real, 0, rank - 1, role + "_outer"));
  ONCILLA_ASSIGN(const ValueId shape, node_.Add(ConcatAttrs{.axis = 0},
                                                {outer, node_.Ints({2 * size})}, role + "_shape"));
  return node_.Add(ReshapeAttrs(), {pairs, shape}, role + "_flat");
}

// One transform along the last axis. The result of a real inverse has no imaginary part.
Result<HloComplex::Parts> HloComplex::AlongLast(const Parts& x, int64_t kind, int64_t points,
                                                const std::string& role) {
  const DType dtype = node_.fact(x.real).dtype;
  const PartialShape shape = node_.fact(x.real).shape;
  const int rank = shape.rank();
  const int64_t bins = points / 2 + 1, size = kind == kRealInverse ? bins : points;
  if (points < 1 || rank < 1 || !shape[rank - 1].known() || shape[rank - 1].size != size) {
    return DataLoss("a Fourier transform of ", points, " points of ", shape);
  }
  if (SaturatingMul(SaturatingMul(4 * BytesOf(dtype), points), points) > kMostFourierBytes) {
    return Unsupported("a Fourier transform of ", points, " points");
  }
  ValueId flat = x.real;
  if (kind != kReal) {
    ONCILLA_ASSIGN(flat, Interleaved(x, size, role));
  }
  const auto product = [&](const Tensor& matrix, int64_t columns) -> Result<ValueId> {
    const Shape rows = {matrix.elements() / columns, columns};
    return node_.Add(MatMulAttrs(), {flat, node_.Constant(matrix.Reshaped(rows))},
                     role + "_product");
  };
  if (kind == kRealInverse) {
    ONCILLA_ASSIGN(const ValueId y, product(RealInverseMatrix(dtype, points), points));
    return Parts{y, kNoValue};
  }
  const int64_t out = kind == kReal ? bins : points;
  ONCILLA_ASSIGN(
      const ValueId all,
      product(FourierMatrix(dtype, points, kind == kReal ? 1 : 2, out, kind == kInverse), 2 * out));
  ONCILLA_ASSIGN(const ValueId outer, node_.Sizes(x.real, 0, rank - 1, role + "_rows"));
  ONCILLA_ASSIGN(const ValueId apart,
                 node_.Add(ConcatAttrs{.axis = 0}, {outer, node_.Ints({out, 2})}, role + "_apart"));
  ONCILLA_ASSIGN(const ValueId pairs, node_.Add(ReshapeAttrs(), {all, apart}, role + "_pairs"));
  Parts parts;
  for (const bool imaginary : {false, true}) {
    const ValueId index = node_.Constant(Tensor::ScalarInt64(imaginary ? 1 : 0));
    ONCILLA_ASSIGN(const ValueId part, node_.Add(GatherAttrs{.axis = rank}, {pairs, index},
                                                 role + (imaginary ? "_imag" : "_real")));
    (imaginary ? parts.imag : parts.real) = part;
  }
  return parts;
}

// A plain transform along any axis.
Result<HloComplex::Parts> HloComplex::AlongAxis(Parts x, int64_t kind, int64_t points, int axis) {
  const int rank = node_.fact(x.real).shape.rank();
  std::vector<int64_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm[static_cast<size_t>(rank - 1)]);
  const std::string role = StrCat("axis", axis);
  ONCILLA_ASSIGN(x.real, node_.Transpose(x.real, perm, role + "_moved_real"));
  ONCILLA_ASSIGN(x.imag, node_.Transpose(x.imag, perm, role + "_moved_imag"));
  ONCILLA_ASSIGN(x, AlongLast(x, kind, points, role));
  ONCILLA_ASSIGN(x.real, node_.Transpose(x.real, perm, role + "_back_real"));
  ONCILLA_ASSIGN(x.imag, node_.Transpose(x.imag, perm, role + "_back_imag"));
  return x;
}

// Along the last axes, one after the other; that of real numbers is the last axis.
Result<HloValues> HloComplex::Fourier() {
  ONCILLA_ASSIGN(const int64_t kind, node_.Int("fft_type"));
  ONCILLA_ASSIGN(const std::vector<int64_t> lengths, node_.List("fft_length"));
  Parts x;
  ONCILLA_ASSIGN(x.real, Part(0, false));
  if (kind != kReal) {
    ONCILLA_ASSIGN(x.imag, Part(0, true));
  }
  const int rank = node_.fact(x.real).shape.rank(), count = static_cast<int>(lengths.size());
  if (kind < kForward || kind > kRealInverse || count < 1 || count > 3 || count > rank) {
    return DataLoss("a Fourier transform along ", count, " of ", rank, " axes");
  }
  if (kind == kReal || kind == kForward || kind == kInverse) {
    ONCILLA_ASSIGN(x, AlongLast(x, kind, lengths.back(), "last"));
  }
  for (int i = 0; i + 1 < count; ++i) {
    const bool inverse = kind == kInverse || kind == kRealInverse;
    ONCILLA_ASSIGN(x, AlongAxis(x, inverse ? kInverse : kForward, lengths[static_cast<size_t>(i)],
                                rank - count + i));
  }
  if (kind != kRealInverse) return Joined(x.real, x.imag);
  ONCILLA_ASSIGN(x, AlongLast(x, kind, lengths.back(), "last"));
  return HloValues{builder_.Whole(x.real, -1)};
}

Result<HloValues> HloComplex::Lower() {
  const std::string_view op = op_.name;
  if (op_.result_types.size() != 1) return Unsupported("of complex numbers");
  if (op == "constant") return Constant();
  if (op == "fft") return Fourier();
  if (op == "real" || op == "imag") {
    ONCILLA_ASSIGN(const ValueId part, Part(0, op == "imag"));
    return HloValues{builder_.Whole(part, -1)};
  }
  if (op == "complex") {
    ONCILLA_ASSIGN(const ValueId real, Part(0, false));
    ONCILLA_ASSIGN(const ValueId imag, Part(1, false));
    return Joined(real, imag);
  }
  if (op == "convert" && IsComplexType(source(), op_.result_types)) {
    ONCILLA_ASSIGN(ValueId real, Part(0, false));
    ONCILLA_ASSIGN(ValueId imag, Part(0, true));
    const DType part = PartOf(node_.result_type().dtype);
    ONCILLA_ASSIGN(real, node_.Cast(real, part, "real"));
    ONCILLA_ASSIGN(imag, node_.Cast(imag, part, "imag"));
    return Joined(real, imag);
  }
  if (op == "multiply") return Multiply();
  if (op == "divide") return Divide();
  if (op == "abs") return Magnitude();
  if (op == "exponential") return Exponential();
  if (std::find(std::begin(kByParts), std::end(kByParts), op) != std::end(kByParts)) {
    return ByParts();
  }
  return Unsupported("of complex numbers");
}

bool IsHloComplex(const HloOp& op, const HloModule& source, const HloValues& operands) {
  if (op.name == "fft" || op.name == "real" || op.name == "imag" || op.name == "complex")
    return true;
  for (const HloValue& operand : operands) {
    if (operand.imag != kNoValue) return true;
  }
  // The parts of an op that is lowered by parts are real numbers, whatever type it names.
  if (op.name == "constant" || op.name == "convert" || operands.empty()) {
    return IsComplexType(source, op.result_types);
  }
  return false;
}

Result<HloValues> LowerHloComplex(HloBuilder& builder, const HloOp& op, const std::string& name,
                                  HloValues operands) {
  return HloComplex(builder, op, name, std::move(operands)).Lower();
}

}  // namespace oncilla
