// Reading, checking and printing programs of elementwise steps.
#include "engine/ops/math/elementwise_program.h"

#include <charconv>

namespace oncilla {
namespace {

using Kind = ElementwiseOperand::Kind;

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

template <class T>
bool ReadNumber(std::string_view text, T* value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

Result<AttrValue> ParseValue(std::string_view text) {
  if (text == "true" || text == "false") return AttrValue(text == "true");
  if (auto dtype = DTypeFromName(text)) return AttrValue(*dtype);
  double number = 0;
  if (!ReadNumber(text, &number)) return InvalidArgument("'", text, "' is not an attribute value");
  return AttrValue(number);
}

Result<ElementwiseOperand> ParseOperand(std::string_view text, size_t inputs, size_t steps) {
  ElementwiseOperand operand;
  if (text == "-") return operand;
  if (text[0] == '#') {
    operand.kind = Kind::kNumber;
    if (!ReadNumber(text.substr(1), &operand.number)) {
      return InvalidArgument("'", text, "' is not a number");
    }
    return operand;
  }
  const bool step = text[0] == 't';
  operand.kind = step ? Kind::kStep : Kind::kInput;
  if (!ReadNumber(text.substr(step ? 1 : 0), &operand.index) || operand.index < 0 ||
      static_cast<size_t>(operand.index) >= (step ? steps : inputs)) {
    return InvalidArgument("there is no operand '", text, "' here");
  }
  return operand;
}

Result<ElementwiseStep> ParseStep(std::string_view text, std::span<const DType> inputs,
                                  std::span<const ElementwiseStep> before) {
  const auto words = Words(text);
  const ElementwiseRow* row = words.empty() ? nullptr : FindElementwise(words[0]);
  if (row == nullptr) return InvalidArgument("there is no such elementwise op");
  AttrMap attrs;
  size_t next = 1;
  for (; next < words.size() && words[next].find('=') != std::string_view::npos; ++next) {
    const size_t equal = words[next].find('=');
    ONCILLA_ASSIGN(AttrValue value, ParseValue(words[next].substr(equal + 1)));
    attrs.emplace(words[next].substr(0, equal), std::move(value));
  }
  ElementwiseStep step;
  ONCILLA_ASSIGN(step.call, ReadElementwise(*row, attrs));
  const int count = static_cast<int>(words.size() - next);
  if (count < row->min_inputs() || count > row->inputs) {
    return InvalidArgument("takes ", row->inputs, " operands, not ", count);
  }
  for (; next < words.size(); ++next) {
    ONCILLA_ASSIGN(auto operand, ParseOperand(words[next], inputs.size(), before.size()));
    if (operand.kind == Kind::kAbsent && (row->flags & kOptionalBounds) == 0) {
      return InvalidArgument("an operand is missing");
    }
    step.operands.push_back(operand);
  }
  // Numbers take the dtype of the first operand that is not a number; a condition does not count.
  const size_t first = (row->flags & kConditionFirst) != 0 ? 1 : 0;
  DType dtypes[3] = {};
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const ElementwiseOperand& o = step.operands[i];
    if (o.kind == Kind::kInput) dtypes[i] = inputs[o.index];
    if (o.kind == Kind::kStep) dtypes[i] = before[o.index].dtype;
    if (i >= first && step.compute == DType::kInvalid) step.compute = dtypes[i];
  }
  for (size_t i = first; i < step.operands.size(); ++i) {
    if (step.operands[i].kind == Kind::kNumber) dtypes[i] = step.compute;
  }
  if (step.operands[0].kind == Kind::kAbsent) return InvalidArgument("an operand is missing");
  ONCILLA_ASSIGN(step.dtype, ResultOf(step.call, {dtypes, step.operands.size()}));
  return step;
}

std::string Number(double value) { return ToString(AttrValue(value)); }

}  // namespace

std::string ToString(const ElementwiseStep& step) {
  const ElementwiseRow& row = *step.call.row;
  std::string out(row.name);
  if ((row.flags & kIsCast) != 0) out += StrCat(" to=", step.call.to);
  const double values[2] = {step.call.alpha, step.call.beta};
  for (int i = 0; i < row.params.count && !row.params.variant; ++i) {
    if (values[i] == row.params.defaults[i]) continue;
    out += StrCat(" ", row.params.names[i], "=");
    out += row.params.flags ? (values[i] != 0 ? "true" : "false") : Number(values[i]);
  }
  for (const ElementwiseOperand& o : step.operands) {
    switch (o.kind) {
      case Kind::kAbsent:
        out += " -";
        break;
      case Kind::kInput:
        out += StrCat(" ", o.index);
        break;
      case Kind::kStep:
        out += StrCat(" t", o.index);
        break;
      case Kind::kNumber:
        out += " #" + Number(o.number);
        break;
    }
  }
  return out;
}

Result<ElementwiseProgram> ParseProgram(std::span<const std::string> program,
                                        std::span<const DType> inputs) {
  if (program.empty() || program.size() > kMaxProgramSteps) {
    return InvalidArgument("a program has 1 to ", kMaxProgramSteps, " steps, not ", program.size());
  }
  if (inputs.size() > kMaxProgramInputs) {
    return InvalidArgument("a program has at most ", kMaxProgramInputs, " inputs");
  }
  ElementwiseProgram out;
  std::vector<bool> input_used(inputs.size()), step_used(program.size());
  for (size_t i = 0; i < program.size(); ++i) {
    auto step = ParseStep(program[i], inputs, out.steps);
    if (!step.ok()) return In(step.status(), StrCat("step ", i, " '", program[i], "'"));
    for (const ElementwiseOperand& o : step->operands) {
      if (o.kind == Kind::kInput) input_used[o.index] = true;
      if (o.kind == Kind::kStep) step_used[o.index] = true;
    }
    out.steps.push_back(*std::move(step));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!input_used[i]) return InvalidArgument("input ", i, " is not used by the program");
  }
  for (size_t i = 0; i + 1 < program.size(); ++i) {
    if (!step_used[i]) return InvalidArgument("step ", i, " is not used by the program");
  }
  return out;
}

Result<ElementwiseProgram> SingleStep(const ElementwiseCall& call, std::span<const DType> inputs) {
  ElementwiseStep step{call, {}, DType::kInvalid, DType::kInvalid};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Kind kind = inputs[i] == DType::kInvalid ? Kind::kAbsent : Kind::kInput;
    step.operands.push_back({kind, static_cast<int>(i), 0});
  }
  step.compute = inputs[(call.row->flags & kConditionFirst) != 0 ? 1 : 0];
  ONCILLA_ASSIGN(step.dtype, ResultOf(call, inputs));
  return ElementwiseProgram{{std::move(step)}};
}

Result<ElementwiseProgram> ProgramOf(const NodeView& node) {
  std::vector<DType> dtypes;
  for (const Fact& fact : node.inputs) {
    dtypes.push_back(fact.absent() ? DType::kInvalid : fact.dtype);
  }
  if (node.op->elementwise != nullptr) {
    ONCILLA_ASSIGN(const auto call, ReadElementwise(*node.op->elementwise, *node.attrs));
    return SingleStep(call, dtypes);
  }
  ONCILLA_ASSIGN(const auto attrs, ReadAttrs<FusedElementwiseAttrs>(*node.attrs));
  return ParseProgram(attrs.program, dtypes);
}

}  // namespace oncilla
