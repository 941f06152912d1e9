// Functions that the lowering functions of all families share, and the list of families.
#include "engine/import/tflite/lowering.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "engine/import/tflite/builder.h"

namespace oncilla {

std::vector<const TfliteTensor*> TfliteLowering::QuantisedTensors() const {
  std::vector<const TfliteTensor*> out;
  for (const auto* list : {&op_.inputs, &op_.outputs}) {
    for (int32_t i : *list) {
      if (i != kNoTensor && IsQuantised(TensorAt(i))) out.push_back(&TensorAt(i));
    }
  }
  return out;
}

const TfliteTensor& TfliteLowering::tensor(size_t i) const {
  static const TfliteTensor kNone;
  const bool there = i < op_.inputs.size() && op_.inputs[i] != kNoTensor;
  return there ? TensorAt(op_.inputs[i]) : kNone;
}

bool TfliteLowering::has_complex() const {
  for (const auto* list : {&op_.inputs, &op_.outputs}) {
    for (int32_t i : *list) {
      if (i != kNoTensor && TensorAt(i).type == kTfliteComplex64) return true;
    }
  }
  return false;
}

std::string TfliteLowering::QuantisedTypes() const {
  std::set<std::string> types;
  for (const TfliteTensor* tensor : QuantisedTensors()) types.insert(TfliteTypeName(tensor->type));
  std::string out;
  for (const std::string& type : types) out += (out.empty() ? "" : ", ") + type;
  return out;
}

Status TfliteLowering::CheckMoved() const {
  const auto tensors = QuantisedTensors();
  for (const TfliteTensor* tensor : tensors) {
    if (tensor->quantization.scale.size() > 1 || tensor->quantization.details != 0) {
      return Unsupported("of tensors with a scale for each channel");
    }
    if (tensor->type != tensors[0]->type || !SameQuantisation(*tensor, *tensors[0])) {
      return Unsupported("of quantised tensors whose scales differ");
    }
  }
  return {};
}

Result<int64_t> TfliteLowering::Int(int field, int32_t otherwise) const {
  Ask(field);
  ONCILLA_ASSIGN(const int32_t value, op_.options.Number<int32_t>(field, otherwise));
  return int64_t{value};
}

Result<int64_t> TfliteLowering::Long(int field) const {
  Ask(field);
  return op_.options.Number<int64_t>(field, 0);
}

Result<int64_t> TfliteLowering::Enum(int field, int8_t otherwise) const {
  Ask(field);
  ONCILLA_ASSIGN(const int8_t value, op_.options.Number<int8_t>(field, otherwise));
  return int64_t{value};
}

Result<bool> TfliteLowering::Flag(int field, bool otherwise) const {
  Ask(field);
  ONCILLA_ASSIGN(const uint8_t value, op_.options.Number<uint8_t>(field, otherwise ? 1 : 0));
  return value != 0;
}

Result<float> TfliteLowering::Float(int field) const {
  Ask(field);
  return op_.options.Number<float>(field, 0);
}

Result<std::vector<int64_t>> TfliteLowering::IntList(int field) const {
  Ask(field);
  ONCILLA_ASSIGN(const auto values, op_.options.Numbers<int32_t>(field));
  return std::vector<int64_t>(values.begin(), values.end());
}

Result<std::vector<float>> TfliteLowering::Floats(int field) const {
  Ask(field);
  return op_.options.Numbers<float>(field);
}

Result<std::string> TfliteLowering::String(int field) const {
  Ask(field);
  ONCILLA_ASSIGN(const std::string_view text, op_.options.String(field));
  return std::string(text);
}

Result<DType> TfliteLowering::Type(int field, int8_t otherwise) const {
  ONCILLA_ASSIGN(const int64_t number, Enum(field, otherwise));
  const DType dtype = DTypeFromTflite(number);
  if (dtype == DType::kInvalid) return Unsupported("the type ", TfliteTypeName(number));
  return dtype;
}

int TfliteLowering::UnknownOption() const {
  for (int i = 0; i < op_.options.fields(); ++i) {
    if (op_.options.Has(i) && (i >= 64 || (asked_ >> i & 1) == 0)) return i;
  }
  return -1;
}

Result<int64_t> TfliteLowering::Activation(int field) const {
  ONCILLA_ASSIGN(const int64_t activation, Enum(field));
  if (activation < 0 || activation > 4) return Unsupported("the activation ", activation);
  return activation;
}

Result<ValueId> TfliteLowering::Activated(ValueId y, int64_t activation) {
  const DType dtype = fact(y).dtype;
  switch (activation) {
    case 0:
      return y;
    case 1:
      if (IsFloat(dtype)) return Add("Relu", {}, {y});
      break;
    case 3:
      if (IsFloat(dtype)) return Add("Relu6", {}, {y});
      break;
    case 4:
      return Add("Tanh", {}, {y});
  }
  // Activation 2 clips to the range from -1 to 1.
  if (!IsFloat(dtype) && !IsSigned(dtype)) return Unsupported("an activation of ", dtype);
  ONCILLA_ASSIGN(const ValueId least, Scalar(dtype, activation == 2 ? -1 : 0));
  if (activation == 1) return Add("Max", {}, {y, least});
  ONCILLA_ASSIGN(const ValueId most, Scalar(dtype, activation == 2 ? 1 : 6));
  return Add("Clip", {}, {y, least, most});
}

Result<std::string> TfliteLowering::StateName(size_t input) const {
  if (input >= op_.inputs.size() || op_.inputs[input] == kNoTensor) {
    return DataLoss("input ", input, " is missing, which holds a state");
  }
  if (!tensor(input).is_variable) return Unsupported("a state that is not a variable");
  // Subgraphs do not share their tensors, so the subgraph's number is part of the name.
  const auto subgraph = &subgraph_ - state_.model.subgraphs.data();
  return StrCat("state/", subgraph, "/", op_.inputs[input], "/", tensor(input).name);
}

Result<ValueId> TfliteLowering::ReadState(size_t input) {
  ONCILLA_ASSIGN(const std::string variable, StateName(input));
  TensorDesc desc{DTypeFromTflite(tensor(input).type), {}};
  for (int32_t size : tensor(input).shape) {
    if (size < 0) return Unsupported("a state of a size that is open");
    desc.shape.push_back(size);
  }
  if (desc.dtype == DType::kInvalid || desc.rank() > kMaxRank) {
    return Unsupported("a state of ", TfliteTypeName(tensor(input).type));
  }
  // The initial zeros take memory even if the file is small.
  constexpr int64_t kMostBytes = int64_t{64} << 20;
  if (desc.bytes() > kMostBytes) return Unsupported("a state of ", desc.bytes(), " bytes");
  auto& variables = state_.module.variables;
  const bool known = std::any_of(variables.begin(), variables.end(),
                                 [&](const ModuleVariable& v) { return v.name == variable; });
  if (!known) {
    ONCILLA_ASSIGN(Tensor zeros, Tensor::Allocate(desc));
    variables.push_back({variable, variable, std::move(zeros)});
  }
  return Add("ReadVariable", ReadVariableAttrs{variable, StrCat(desc)}, {}, StrCat("state", input));
}

Status TfliteLowering::AssignState(size_t input, ValueId value) {
  ONCILLA_ASSIGN(const std::string variable, StateName(input));
  return AddAll("AssignVariable", AssignVariableAttrs{variable}, {value}, StrCat("keep", input))
      .status();
}

Result<std::vector<double>> TfliteLowering::KnownNumbers(size_t input,
                                                         std::string_view what) const {
  if (!has(input)) return DataLoss(what, " is missing");
  if (!in_fact(input).has_value()) {
    return Unsupported(what, " is computed while running; it must be a constant");
  }
  return ToDoubles(in_fact(input).value);
}

int TfliteLowering::StatedRank(size_t input) const {
  const TfliteTensor& stated = tensor(input);
  return !stated.shape.empty() || stated.has_rank ? static_cast<int>(stated.shape.size()) : -1;
}

std::vector<std::span<const TfliteOpRow>> TfliteOpFamilies() {
  return {TfliteElementwiseRows(), TfliteConvRows(),   TflitePoolRows(),      TfliteMatMulRows(),
          TfliteNormRows(),        TfliteReduceRows(), TfliteMovementRows(),  TfliteIndexingRows(),
          TfliteImageRows(),       TfliteQuantRows(),  TfliteRecurrentRows(), TfliteSignalRows(),
          TfliteSvdfRows()};
}

const TfliteOpRow* FindTfliteOp(const TfliteOp& op) {
  using Map = std::unordered_map<std::string_view, const TfliteOpRow*>;
  static const Map builtins = [] {
    Map map;
    for (std::span<const TfliteOpRow> family : TfliteOpFamilies()) {
      for (const TfliteOpRow& row : family) map.emplace(row.op, &row);
    }
    return map;
  }();
  static const Map customs = [] {
    Map map;
    for (const TfliteOpRow& row : TfliteCustomRows()) map.emplace(row.op, &row);
    return map;
  }();
  const bool custom = op.code == kTfliteCustom;
  const std::string name = custom ? std::string(op.custom) : TfliteOpName(op);
  const Map& map = custom ? customs : builtins;
  const auto it = map.find(name);
  return it == map.end() ? nullptr : it->second;
}

}  // namespace oncilla
