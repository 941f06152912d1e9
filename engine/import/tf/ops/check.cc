// TensorFlow's assertions, checks and messages. A check that is known to hold at import adds no
// node.
#include "engine/import/tf/lowering.h"

namespace oncilla {
namespace {

bool IsTrue(const Fact& fact) {
  return fact.has_value() && fact.dtype == DType::kBool && fact.value.elements() == 1 &&
         fact.value.bytes()[0] != std::byte{0};
}

Result<Values> LowerAssert(TfLowering& b) {
  ONCILLA_ASSIGN(const int64_t summarize, b.attrs().Int("summarize"));
  if (IsTrue(b.in_fact(0))) return Values{};
  ONCILLA_TRY(b.AddAll(AssertAttrs{.summarize = summarize}, b.all_inputs()).status());
  return Values{};
}

Result<Values> LowerCheckNumerics(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string message, b.attrs().String("message"));
  return One(b.Add(CheckNumericsAttrs{.message = message, .signs = b.op() == "CheckNumericsV2"},
                   {b.in(0)}));
}

Result<Values> LowerEnsureShape(TfLowering& b) {
  ONCILLA_ASSIGN(const PartialShape shape, b.attrs().Shape("shape"));
  if (!shape.ranked()) return Values{b.in(0)};
  std::vector<int64_t> dims;
  for (const Dim& d : shape.dims()) dims.push_back(d.known() ? d.size : -1);
  return One(b.Add(EnsureShapeAttrs{.dims = std::move(dims)}, {b.in(0)}));
}

Result<Values> LowerPrint(TfLowering& b) {
  ONCILLA_ASSIGN(const std::string message, b.attrs().String("message"));
  ONCILLA_ASSIGN(const int64_t summarize, b.attrs().Int("summarize"));
  const Values data(b.all_inputs().begin() + 1, b.all_inputs().end());
  ONCILLA_TRY(
      b.AddAll(PrintAttrs{.message = message, .summarize = summarize}, data, "print").status());
  return Values{b.in(0)};
}

Result<Values> LowerPrintV2(TfLowering& b) {
  ONCILLA_TRY(b.AddAll(PrintAttrs{.message = "", .plain = true}, {b.in(0)}).status());
  return Values{};
}

Result<Values> LowerNothing(TfLowering&) { return Values{}; }

// Converts a value to bool as the condition of an If: not zero, or not empty.
Result<Values> LowerToBool(TfLowering& b) {
  ONCILLA_ASSIGN(const int rank, b.Rank(0, "the input"));
  ValueId x = b.in(0);
  const bool text = b.in_fact(0).dtype == DType::kString;
  if (rank > 0 || text) {
    ONCILLA_ASSIGN(x, b.Add(rank > 0 ? "Size" : "StringLength", {}, {x}, "size"));
  }
  return One(b.Add(CastAttrs{DType::kBool}, {x}));
}

// A value that exists on one side of a branch only but is used outside of it: the run fails if the
// other side is taken, as in TensorFlow.
template <bool kSide>
Result<Values> LowerGate(TfLowering& b) {
  ValueId taken = b.in(1);
  if (!kSide) {
    ONCILLA_ASSIGN(taken, b.Add("Not", {}, {taken}, "taken"));
  }
  const ValueId text =
      b.Constant(Tensor::Strings({}, {"a value of the side of a branch that was not taken"}));
  ONCILLA_TRY(b.AddAll("Assert", {}, {taken, text}, "check").status());
  return One(b.Add("Identity", {}, {b.in(0)}));
}

constexpr TfOpRow kRows[] = {
    {"Assert", 1, "", LowerAssert},
    {"CheckNumerics", 1, "", LowerCheckNumerics},
    {"CheckNumericsV2", 1, "", LowerCheckNumerics},
    {"EnsureShape", 1, "", LowerEnsureShape},
    {"GuaranteeConst", 1, "Identity"},
    {"NoOp", 0, "", LowerNothing},
    {"Print", 1, "", LowerPrint},
    {"PrintV2", 1, "", LowerPrintV2},
    {"ToBool", 1, "", LowerToBool},
    {"_SwitchFalse", 2, "", LowerGate<false>},
    {"_SwitchTrue", 2, "", LowerGate<true>},
};

}  // namespace

std::span<const TfOpRow> TfCheckRows() { return kRows; }

}  // namespace oncilla
