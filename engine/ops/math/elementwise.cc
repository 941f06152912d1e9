// Elementwise ops: the table as op rows, their attributes, and inference.
#include "engine/ops/math/elementwise.h"

#include <algorithm>

#include "engine/ops/known_ints.h"
#include "engine/ops/math/elementwise_program.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

constexpr ElementwiseParams NoParams() { return {}; }
constexpr ElementwiseParams Alpha(double alpha) { return {1, false, false, {"alpha"}, {alpha}}; }
constexpr ElementwiseParams AlphaBeta(double alpha, double beta) {
  return {2, false, false, {"alpha", "beta"}, {alpha, beta}};
}
// Two boolean attributes, true by default, passed as alpha and beta (0 or 1).
constexpr ElementwiseParams Flags(std::string_view a, std::string_view b) {
  return {2, true, false, {a, b}, {1, 1}};
}
constexpr ElementwiseParams Variant(std::string_view name) { return {1, true, true, {name}, {0}}; }
constexpr std::string_view Text(std::string_view text) {
  return text == "NONE" ? std::string_view() : text;
}

constexpr ElementwiseRow kRows[] = {
#define ELEMENTWISE(name, inputs, params, flags, storage, f, i, b) \
  {#name, inputs, params, flags, StorageRule::k##storage, {Text(#f), Text(#i), Text(#b)}},
#include "engine/ops/math/elementwise_table.inc"
#undef ELEMENTWISE
};

enum RowIndex {
#define ELEMENTWISE(name, ...) kIndex##name,
#include "engine/ops/math/elementwise_table.inc"
#undef ELEMENTWISE
};

std::string TakenTypes(const ElementwiseRow& row) {
  std::string out;
  auto add = [&](ElementClass c, const char* what) {
    if (row.takes(c)) out += (out.empty() ? "" : " or ") + std::string(what);
  };
  add(ElementClass::kFloat, "floating point");
  add(ElementClass::kInteger, "integers");
  add(ElementClass::kBool, "bool");
  return out;
}

int64_t LargestOf(DType dtype) {
  return BitsOf(dtype) >= 63 ? std::numeric_limits<int64_t>::max()
                             : (int64_t{1} << (BitsOf(dtype) - 1)) - 1;
}

// The result for two integers that are not negative; nothing where it would be negative, does not
// fit, or is not defined.
std::optional<int64_t> Computed(std::string_view op, int64_t a, int64_t b, int64_t largest) {
  int64_t out = -1;
  if (op == "Add") {
    if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  } else if (op == "Mul") {
    if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  } else if (op == "Sub") {
    out = a - b;
  } else if (op == "Min") {
    out = std::min(a, b);
  } else if (op == "Max") {
    out = std::max(a, b);
  } else if (b > 0 && (op == "Div" || op == "FloorDiv")) {
    out = a / b;
  } else if (b > 0 && (op == "TruncMod" || op == "FloorMod")) {
    out = a % b;
  }
  if (out < 0 || out > largest) return std::nullopt;
  return out;
}

// Computes the elements of a result of two operands that follow from known sizes, so that
// inference knows sizes that a model computes from others. Plans compute the rest.
void ComputeElements(const ElementwiseRow& row, std::span<const Fact> in, Fact& out) {
  if (!IsInteger(out.dtype) || !out.shape.known() || out.shape.rank() > 1) return;
  const auto a = ReadKnownInts(in[0]), b = ReadKnownInts(in[1]);
  if (!a.has_value() || !b.has_value()) return;
  const auto count = static_cast<size_t>(out.shape.ToShape().elements());
  if (count == 0 || count > static_cast<size_t>(kMaxKnownInts)) return;
  std::vector<Dim> elements(count);
  if (out.elements.has_value()) elements = *out.elements;
  bool any = out.elements.has_value();
  for (size_t k = 0; k < count; ++k) {
    const auto &x = (*a)[a->size() == 1 ? 0 : k].value, &y = (*b)[b->size() == 1 ? 0 : k].value;
    if (!x.has_value() || !y.has_value() || *x < 0 || *y < 0) continue;
    const auto computed = Computed(row.name, *x, *y, LargestOf(out.dtype));
    if (!computed.has_value()) continue;
    elements[k] = Dim(*computed);
    any = true;
  }
  if (any) out.elements = std::move(elements);
}

// Elements of an integer result that equal those of an operand: for Cast, x + 0 and x * 1. This
// preserves the names of sizes.
std::optional<std::vector<Dim>> PassedElements(const ElementwiseRow& row, const Fact& out,
                                               std::span<const Fact> in) {
  if (!IsInteger(out.dtype) || !out.shape.known() || out.shape.rank() > 1) return std::nullopt;
  auto carries = [&](const Fact& fact) {
    return fact.elements.has_value() && IsInteger(fact.dtype) &&
           static_cast<int64_t>(fact.elements->size()) == out.shape.ToShape().elements();
  };
  if (row.inputs == 1) {
    if (!carries(in[0])) return std::nullopt;
    std::vector<Dim> elements = *in[0].elements;
    // A known number may not fit a narrower type; sizes with names are taken to fit.
    for (Dim& d : elements) {
      if (d.size > LargestOf(out.dtype)) d = Dim();
    }
    return elements;
  }
  const bool sum = row.name == "Add", product = row.name == "Mul";
  if (!sum && !product) return std::nullopt;
  for (const int i : {0, 1}) {
    if (!carries(in[i]) || !in[1 - i].has_value()) continue;
    auto other = ToInt64s(in[1 - i].value);
    if (!other.ok() || other->empty()) continue;
    std::vector<Dim> elements = *in[i].elements;
    for (size_t k = 0; k < elements.size(); ++k) {
      const int64_t v = (*other)[other->size() == 1 ? 0 : k];
      if (v == (sum ? 0 : 1)) continue;
      elements[k] = Dim();
    }
    return elements;
  }
  return std::nullopt;
}

Result<Facts> InferElementwise(const ElementwiseRow& row, const AttrMap& attrs,
                               std::span<const Fact> in) {
  ONCILLA_ASSIGN(const ElementwiseCall call, ReadElementwise(row, attrs));
  // Identity passes any kind of value through.
  if (&row == &kRows[kIndexIdentity]) return Facts{in[0]};
  DType dtypes[3];
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].kind != ValueKind::kTensor && !in[i].absent()) {
      return InvalidArgument("input ", i, " must be a tensor, not ", in[i]);
    }
    dtypes[i] = in[i].absent() ? DType::kInvalid : in[i].dtype;
  }
  ONCILLA_ASSIGN(const DType dtype, ResultOf(call, {dtypes, in.size()}));
  PartialShape shape = in[0].shape;
  for (size_t i = 1; i < in.size(); ++i) {
    if (in[i].absent()) continue;
    ONCILLA_ASSIGN(shape, BroadcastShapes(shape, in[i].shape));
  }
  Fact out = Fact::Of(dtype, std::move(shape));
  if ((row.flags & kIsCast) != 0 || row.inputs == 2) {
    out.elements = PassedElements(row, out, in);
    if (row.inputs == 2) ComputeElements(row, in, out);
  }
  return Facts{std::move(out)};
}

Result<Facts> InferFused(const FusedElementwiseAttrs& attrs, std::span<const Fact> in) {
  std::vector<DType> dtypes;
  PartialShape shape = in[0].shape;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].kind != ValueKind::kTensor) {
      return InvalidArgument("input ", i, " must be a tensor, not ", in[i]);
    }
    dtypes.push_back(in[i].dtype);
    if (i == 0) continue;
    ONCILLA_ASSIGN(shape, BroadcastShapes(shape, in[i].shape));
  }
  ONCILLA_ASSIGN(const ElementwiseProgram program, ParseProgram(attrs.program, dtypes));
  return Facts{Fact::Of(program.steps.back().dtype, std::move(shape))};
}

template <RowIndex index>
Result<Facts> InferRow(const AttrMap& attrs, std::span<const Fact> in) {
  return InferElementwise(kRows[index], attrs, in);
}

constexpr OpDef MakeOp(const ElementwiseRow& row,
                       Result<Facts> (*infer)(const AttrMap&, std::span<const Fact>)) {
  OpDef op;
  op.name = row.name;
  op.traits.inputs = {row.min_inputs(), row.inputs};
  op.traits.may_overwrite = true;
  op.traits.is_view = row.name == "Identity";
  op.traits.axes = Elementwise();
  op.traits.storage = row.storage;
  op.traits.work = Work::kPerOutput;
  op.infer = infer;
  op.elementwise = &row;
  return op;
}

constexpr OpDef kOps[] = {
#define ELEMENTWISE(name, ...) MakeOp(kRows[kIndex##name], &InferRow<kIndex##name>),
#define ELEMENTWISE_VARIANT(...)
#include "engine/ops/math/elementwise_table.inc"
#undef ELEMENTWISE_VARIANT
#undef ELEMENTWISE
    Op<InferFused>("FusedElementwise", {.inputs = {1, kMaxProgramInputs},
                                        .may_overwrite = true,
                                        .axes = Elementwise(),
                                        .work = Work::kPerStep}),
};

}  // namespace

ElementClass ClassOf(DType dtype) {
  return IsFloat(dtype)          ? ElementClass::kFloat
         : dtype == DType::kBool ? ElementClass::kBool
                                 : ElementClass::kInteger;
}

std::span<const ElementwiseRow> ElementwiseRows() { return kRows; }

const ElementwiseRow* FindElementwise(std::string_view name) {
  for (const ElementwiseRow& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// Deliberately not inlined: g++ 12 drops the rounding when it vectorises two calls side by side.
double ParameterAs(DType dtype, double value) {
  return dtype == DType::kF64 ? value : static_cast<float>(value);
}

Result<ElementwiseCall> ReadElementwise(const ElementwiseRow& row, const AttrMap& attrs) {
  ElementwiseCall call{&row, row.params.defaults[0], row.params.defaults[1], DType::kInvalid};
  if ((row.flags & kIsCast) != 0) {
    ONCILLA_ASSIGN(const auto cast, ReadAttrs<CastAttrs>(attrs));
    call.to = cast.to;
    return call;
  }
  std::vector<std::string_view> names(row.params.names, row.params.names + row.params.count);
  ONCILLA_TRY(attrs_internal::UnknownNames(attrs, names));
  for (int i = 0; i < row.params.count; ++i) {
    auto it = attrs.find(names[i]);
    if (it == attrs.end()) continue;
    double& to = i == 0 ? call.alpha : call.beta;
    const auto* flag = std::get_if<bool>(&it->second);
    const auto* number = std::get_if<double>(&it->second);
    const auto* whole = std::get_if<int64_t>(&it->second);
    if (row.params.flags ? flag != nullptr : number != nullptr || whole != nullptr) {
      to = flag != nullptr ? *flag : number != nullptr ? *number : static_cast<double>(*whole);
    } else {
      return attrs_internal::WrongType(names[i], it->second);
    }
  }
  if (row.params.variant) {
    if (call.alpha != 0) call.row = &row + 1;
    call.alpha = 0;
  }
  return call;
}

Result<DType> ResultOf(const ElementwiseCall& call, std::span<const DType> in) {
  const ElementwiseRow& row = *call.row;
  const size_t first = (row.flags & kConditionFirst) != 0 ? 1 : 0;
  if (first == 1 && in[0] != DType::kBool) {
    return InvalidArgument("the condition must be bool, not ", in[0]);
  }
  const DType dtype = in[first];
  if (dtype == DType::kString || dtype == DType::kInvalid || !row.takes(ClassOf(dtype))) {
    return InvalidArgument(row.name, " takes ", TakenTypes(row), ", not ", dtype);
  }
  for (size_t i = first + 1; i < in.size(); ++i) {
    if (in[i] != dtype && in[i] != DType::kInvalid) {
      return InvalidArgument("inputs differ in dtype: ", dtype, " and ", in[i]);
    }
  }
  if ((row.flags & kIsCast) != 0) {
    if (call.to == DType::kInvalid) return InvalidArgument("attribute 'to' is missing");
    if (call.to == DType::kString) return Unsupported("numbers cannot be cast to strings");
    return call.to;
  }
  return (row.flags & kToBool) != 0 ? DType::kBool : dtype;
}

std::span<const OpDef> ElementwiseOps() { return kOps; }

DTypeSet FirstDTypes(const OpDef& op) {
  if (op.elementwise == nullptr) return kFixedSize;
  const ElementwiseRow& row = *op.elementwise;
  if ((row.flags & kConditionFirst) != 0) return kBools;
  return (row.takes(ElementClass::kFloat) ? kFloats : 0) |
         (row.takes(ElementClass::kInteger) ? kIntegers : 0) |
         (row.takes(ElementClass::kBool) ? kBools : 0);
}

}  // namespace oncilla
