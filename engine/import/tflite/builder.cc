// Finds which ops are needed, and lowers each by its row.
#include "engine/import/tflite/builder.h"

#include <algorithm>
#include <unordered_set>

#include "engine/graph/at_node.h"
#include "engine/import/tflite/flex_op.h"

namespace oncilla {
namespace {

// The ops whose rows handle the additional axis of complex parts.
bool TakesComplex(std::string_view op) {
  constexpr std::string_view kOps[] = {"COMPLEX_ABS", "IMAG",   "REAL",
                                       "RESHAPE",     "RFFT2D", "SQUEEZE"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Whether a value has the type that the file states for its tensor. If a row misread an option, the
// type would most likely differ.
bool IsOfType(const Fact& fact, int8_t stated) {
  if (fact.kind == ValueKind::kList) return stated == kTfliteVariant;
  if (stated == kTfliteComplex64) return fact.dtype == DType::kF32;  // pairs
  return fact.dtype == DTypeFromTflite(stated);
}

}  // namespace

Result<Fact> TfliteBuilder::InputFact(const TfliteTensor& tensor, std::string_view name) {
  const DType dtype = DTypeFromTflite(tensor.type);
  if (dtype == DType::kInvalid) return Unsupported("of ", TfliteTypeName(tensor.type));
  if (std::ssize(tensor.shape) > kMaxRank) return Unsupported("its rank is ", tensor.shape.size());
  std::vector<Dim> dims;
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    const int32_t size = tensor.has_signature ? tensor.signature[axis] : tensor.shape[axis];
    if (size < -1) return DataLoss("an axis of ", size);
    dims.push_back(size >= 0 ? Dim(size) : Dim::Named(StrCat(name, ".", axis)));
  }
  return Fact::Of(dtype, PartialShape(std::move(dims)));
}

std::string TfliteBuilder::NameOf(size_t i) const {
  const TfliteOp& op = subgraph_.ops[i];
  std::string_view label;
  if (!op.outputs.empty() && op.outputs[0] != kNoTensor) {
    label = subgraph_.tensors[static_cast<size_t>(op.outputs[0])].name;
  }
  return label.empty() ? StrCat(prefix_, "op", i) : StrCat(prefix_, label);
}

// Collects, from the last op to the first, those that compute what later ones need, or that change
// a variable.
std::vector<size_t> TfliteBuilder::NeededOps(std::unordered_set<int32_t>& needed) const {
  std::vector<size_t> order;
  for (size_t i = subgraph_.ops.size(); i-- > 0;) {
    const TfliteOp& op = subgraph_.ops[i];
    const bool used = std::any_of(op.outputs.begin(), op.outputs.end(), [&](int32_t t) {
      return t != kNoTensor && needed.contains(t) && !values_.contains(t);
    });
    if (!used && !HasEffect(op)) continue;
    order.push_back(i);
    needed.insert(op.inputs.begin(), op.inputs.end());
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::unordered_set<int32_t> TfliteBuilder::NeededTensors(std::span<const int32_t> wanted) const {
  std::unordered_set<int32_t> needed(wanted.begin(), wanted.end());
  NeededOps(needed);
  return needed;
}

Status TfliteBuilder::Build(std::span<const int32_t> wanted) {
  std::unordered_set<int32_t> needed(wanted.begin(), wanted.end());
  for (size_t i : NeededOps(needed)) {
    const TfliteOp& op = subgraph_.ops[i];
    Status status = Fenced([&] { return LowerOp(i); });
    if (status.ok()) continue;
    const std::string name = NameOf(i), op_name = TfliteOpName(op);
    if (status.code() == Code::kUnimplemented) {
      state_.unsupported.Add(op_name, Message(status), name);
      ONCILLA_TRY(Fail(op));
      continue;
    }
    if (!Details(status).node.empty()) return status;
    return AtNode(std::move(status), name, op_name);
  }
  return {};
}

Status TfliteBuilder::Fail(const TfliteOp& op) {
  any_failed_ = true;
  for (int32_t output : op.outputs) values_.try_emplace(output, kNoValue);
  return {};
}

std::string TfliteBuilder::HandleOf(int32_t tensor) const {
  const auto it = handles_.find(tensor);
  return it == handles_.end() ? "" : it->second;
}

Result<ValueId> TfliteBuilder::Value(int32_t tensor) {
  if (tensor == kNoTensor) return kNoValue;
  if (const auto it = values_.find(tensor); it != values_.end()) return it->second;
  if (handles_.contains(tensor)) return kNoValue;
  const TfliteTensor& stored = subgraph_.tensors[static_cast<size_t>(tensor)];
  const bool input =
      std::find(subgraph_.inputs.begin(), subgraph_.inputs.end(), tensor) != subgraph_.inputs.end();
  const bool none = std::find(stored.shape.begin(), stored.shape.end(), 0) != stored.shape.end();
  if (input || stored.is_variable || (stored.data.empty() && !none)) {
    if (input) {
      return WithStage(InvalidArgument("the input '", stored.name, "' is needed and not fed"),
                       Stage::kOptions);
    }
    if (stored.is_variable) return Unsupported("the variable tensor '", stored.name, "'");
    return DataLoss("nothing computes tensor ", tensor, " '", stored.name, "'");
  }
  auto value = TensorFromTflite(stored, state_.owner);
  if (!value.ok()) return In(value.status(), StrCat("the constant '", stored.name, "'"));
  const ValueId id = graph_.AddConstant(*std::move(value), ValueName(stored));
  values_.emplace(tensor, id);
  return id;
}

std::string TfliteBuilder::ValueName(const TfliteTensor& tensor) {
  if (!prefix_.empty()) return "";
  if (names_.empty()) {
    for (const NamedValue& input : graph_.inputs()) names_.insert(input.name);
  }
  std::string name(tensor.name);
  return names_.insert(name).second ? name : "";
}

Status TfliteBuilder::LowerOp(size_t i) {
  const TfliteOp& op = subgraph_.ops[i];
  const std::string name = NameOf(i);
  ONCILLA_TRY(state_.bounds.Take(name.size(), op.inputs.size() + op.outputs.size()));
  if (--state_.budget < 0) return Exhausted("loops and branches expand to too many nodes");
  for (int32_t output : op.outputs) {
    // A fed value is not computed.
    if (output == kNoTensor || !values_.contains(output)) continue;
    if (std::find(subgraph_.inputs.begin(), subgraph_.inputs.end(), output) !=
        subgraph_.inputs.end()) {
      return DataLoss("an op computes '", subgraph_.tensors[static_cast<size_t>(output)].name,
                      "', which is an input");
    }
  }
  Values inputs;
  bool failed = false;
  for (int32_t tensor : op.inputs) {
    // A state has no value in the graph: the op reads it itself.
    const bool own =
        tensor == kNoTensor ||
        (!values_.contains(tensor) && subgraph_.tensors[static_cast<size_t>(tensor)].is_variable);
    Result<ValueId> value = own ? Result<ValueId>(kNoValue) : Value(tensor);
    if (!value.ok()) return value.status();
    failed |= !own && *value == kNoValue && !handles_.contains(tensor);
    inputs.push_back(*value);
  }
  // Of an op that depends on an unsupported one, only the name is checked.
  if (failed) {
    if (!IsControl(op) && !IsFlexOp(op) && FindTfliteOp(op) == nullptr) return Unsupported("");
    return Fail(op);
  }
  ONCILLA_ASSIGN(const Values outputs, Lower(op, name, std::move(inputs)));
  return Define(op, outputs);
}

Result<Values> TfliteBuilder::Lower(const TfliteOp& op, const std::string& name, Values inputs) {
  if (IsControl(op)) return LowerControl(op, name, inputs);
  const TfliteOpRow* row = FindTfliteOp(op);
  const bool flex = row == nullptr && IsFlexOp(op);
  if (row == nullptr && !flex) return Unsupported("");
  bool complex = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (op.inputs[i] != kNoTensor && handles_.contains(op.inputs[i])) {
      return Unsupported("its input ", i, " is a handle");
    }
    if (!flex) continue;
    if (op.inputs[i] == kNoTensor) return Unsupported("its input ", i, " is missing");
    // TensorFlow's rows use numbers as they are stored, so quantised inputs would be misread.
    const TfliteTensor& tensor = subgraph_.tensors[static_cast<size_t>(op.inputs[i])];
    if (IsQuantised(tensor)) return Unsupported("its input ", i, " is quantised");
    complex |= tensor.type == kTfliteComplex64;
  }
  if (flex) return LowerFlexOp(state_.module, graph_, op, name, std::move(inputs), complex);
  return LowerByRow(op, *row, name, std::move(inputs));
}

Result<Values> TfliteBuilder::LowerByRow(const TfliteOp& op, const TfliteOpRow& row,
                                         const std::string& name, Values inputs) {
  size_t present = 0;
  while (present < op.inputs.size() && op.inputs[present] != kNoTensor) ++present;
  if (static_cast<int>(present) < row.min_inputs) {
    return DataLoss("has ", present, " inputs and needs ", row.min_inputs);
  }
  // Only the rows of layers with states handle inputs that keep their values between runs; such
  // inputs come after the required ones.
  for (size_t i = 0; i < static_cast<size_t>(row.min_inputs); ++i) {
    if (inputs[i] == kNoValue) return Unsupported("its input ", i, " is a state");
  }
  if (op.outputs.empty() ||
      std::find(op.outputs.begin(), op.outputs.end(), kNoTensor) != op.outputs.end()) {
    return DataLoss("has no output");
  }
  const int options = static_cast<int>(row.options);
  if (options != 0 && op.options_type != 0 && op.options_type != options) {
    return DataLoss("has options of kind ", op.options_type, " and needs kind ", options);
  }
  if (op.options2.valid()) return Unsupported("with options of kind ", op.options2_type);
  TfliteLowering lowering(state_, graph_, subgraph_, op, name, std::move(inputs));
  if (lowering.has_complex() && !TakesComplex(row.op)) return Unsupported("of complex numbers");
  const bool quantised = lowering.any_quantised();
  if (row.quantised == TfliteQuantised::kRefused && quantised) {
    return Unsupported("arithmetic on quantised tensors (", lowering.QuantisedTypes(), ")");
  }
  if (row.quantised == TfliteQuantised::kMoved) ONCILLA_TRY(lowering.CheckMoved());
  Result<Values> outputs = Values();
  if (quantised && row.lower_quantised != nullptr) {
    outputs = row.lower_quantised(lowering);
  } else if (row.lower != nullptr) {
    outputs = row.lower(lowering);
  } else {
    outputs = One(lowering.Add(row.canonical, {}, lowering.all_inputs()));
  }
  if (!outputs.ok()) return outputs.status();
  if (const int field = lowering.UnknownOption();
      row.options != TfliteOptions::kNone && field >= 0) {
    return Unsupported("with the option ", field);
  }
  return outputs;
}

Status TfliteBuilder::Define(const TfliteOp& op, const Values& outputs) {
  for (size_t k = 0; k < op.outputs.size(); ++k) {
    const int32_t tensor = op.outputs[k];
    if (tensor == kNoTensor || values_.contains(tensor) || handles_.contains(tensor)) continue;
    const TfliteTensor& stated = subgraph_.tensors[static_cast<size_t>(tensor)];
    if (k >= outputs.size()) return DataLoss("has ", op.outputs.size(), " outputs");
    if (outputs[k] == kNoValue) return Unsupported("its output ", k);
    if (const Fact& fact = graph_.fact(outputs[k]); !IsOfType(fact, stated.type)) {
      const bool list = fact.kind == ValueKind::kList;
      return DataLoss("gives ", list ? "a list of " : "", fact.dtype, ", and the file says ",
                      TfliteTypeName(stated.type));
    }
    values_[tensor] = outputs[k];
    if (graph_.value(outputs[k]).name.empty()) graph_.SetValueName(outputs[k], ValueName(stated));
  }
  return {};
}

}  // namespace oncilla
