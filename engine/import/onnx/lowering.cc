// What the lowering functions of all families share, and the list of families.
#include "engine/import/onnx/lowering.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "engine/import/onnx/tensor.h"
#include "engine/tensor/scalar.h"

namespace oncilla {

const OnnxAttr* OnnxLowering::Find(std::string_view name) const {
  for (size_t i = 0; i < node_.attrs.size(); ++i) {
    if (node_.attrs[i].name != name) continue;
    asked_[i] = 1;
    return &node_.attrs[i];
  }
  return nullptr;
}

Result<const OnnxAttr*> OnnxLowering::Find(std::string_view name, OnnxAttrType type) const {
  const OnnxAttr* attr = Find(name);
  if (attr != nullptr && attr->type != type) {
    return DataLoss("attribute '", name, "' has the wrong type");
  }
  return attr;
}

bool OnnxLowering::HasAttr(std::string_view name) const { return Find(name) != nullptr; }

std::string_view OnnxLowering::UnknownAttr() const {
  for (size_t i = 0; i < node_.attrs.size(); ++i) {
    // A hint in very old files about which memory may be reused.
    if (asked_[i] == 0 && node_.attrs[i].name != "consumed_inputs") return node_.attrs[i].name;
  }
  return "";
}

Result<int64_t> OnnxLowering::Int(std::string_view name, int64_t otherwise) const {
  ONCILLA_ASSIGN(const OnnxAttr* attr, Find(name, OnnxAttrType::kInt));
  return attr == nullptr ? otherwise : attr->i;
}

Result<int64_t> OnnxLowering::NeedInt(std::string_view name) const {
  if (!HasAttr(name)) return DataLoss("attribute '", name, "' is missing");
  return Int(name, 0);
}

Result<bool> OnnxLowering::Flag(std::string_view name, bool otherwise) const {
  ONCILLA_ASSIGN(const int64_t value, Int(name, otherwise ? 1 : 0));
  return value != 0;
}

Result<float> OnnxLowering::Float(std::string_view name, float otherwise) const {
  ONCILLA_ASSIGN(const OnnxAttr* attr, Find(name, OnnxAttrType::kFloat));
  return attr == nullptr ? otherwise : attr->f;
}

Result<std::string> OnnxLowering::String(std::string_view name, std::string_view otherwise) const {
  ONCILLA_ASSIGN(const OnnxAttr* attr, Find(name, OnnxAttrType::kString));
  return std::string(attr == nullptr ? otherwise : attr->s);
}

Result<std::vector<int64_t>> OnnxLowering::IntList(std::string_view name) const {
  ONCILLA_ASSIGN(const OnnxAttr* attr, Find(name, OnnxAttrType::kInts));
  return attr == nullptr ? std::vector<int64_t>() : attr->ints;
}

Result<std::vector<float>> OnnxLowering::FloatList(std::string_view name) const {
  ONCILLA_ASSIGN(const OnnxAttr* attr, Find(name, OnnxAttrType::kFloats));
  return attr == nullptr ? std::vector<float>() : attr->floats;
}

Result<std::vector<Bytes>> OnnxLowering::StringList(std::string_view name) const {
  ONCILLA_ASSIGN(const OnnxAttr* attr, Find(name, OnnxAttrType::kStrings));
  return attr == nullptr ? std::vector<Bytes>() : attr->strings;
}

Result<Tensor> OnnxLowering::ReadTensorAttr(std::string_view name, OnnxAttrType type) const {
  ONCILLA_ASSIGN(const OnnxAttr* attr, Find(name, type));
  if (attr == nullptr) return DataLoss("attribute '", name, "' is missing");
  return context_.read_tensor(attr->tensor);
}

Result<Tensor> OnnxLowering::TensorAttr(std::string_view name) const {
  return ReadTensorAttr(name, OnnxAttrType::kTensor);
}

Result<Tensor> OnnxLowering::SparseAttr(std::string_view name) const {
  return ReadTensorAttr(name, OnnxAttrType::kSparse);
}

Result<const OnnxGraph*> OnnxLowering::GraphAttr(std::string_view name) const {
  ONCILLA_ASSIGN(const OnnxAttr* attr, Find(name, OnnxAttrType::kGraph));
  if (attr == nullptr || attr->graphs.size() != 1) {
    return DataLoss("attribute '", name, "' must be one graph");
  }
  return attr->graphs[0].get();
}

Result<OnnxType> OnnxLowering::TypeAttr(std::string_view name) const {
  ONCILLA_ASSIGN(const OnnxAttr* attr, Find(name, OnnxAttrType::kType));
  if (attr == nullptr) return DataLoss("attribute '", name, "' is missing");
  return attr->held;
}

int OnnxLowering::StatedRank(size_t input) const {
  const auto it = around_.ranks->find(node_.inputs[input]);
  if (it == around_.ranks->end() || it->second > kMaxRank) return -1;
  believed_[input] = it->second;
  return it->second;
}

OnnxKind OnnxLowering::kind(ValueId value) const {
  return OnnxKindOf(graph_, *around_.kinds, value);
}

ValueId OnnxLowering::Mark(ValueId value, OnnxKind kind) {
  MarkOnnxKind(graph_, *around_.kinds, value, kind);
  return value;
}

Result<ValueId> OnnxLowering::Wrap(ValueId x, std::string_view role) {
  return WrapOnnxOptional(graph_, *around_.kinds, x, NameOf(role));
}

Result<ValueId> OnnxLowering::Unwrap(ValueId optional, std::string_view role) {
  return UnwrapOnnxOptional(graph_, *around_.kinds, optional, NameOf(role));
}

Result<ValueId> OnnxLowering::EmptyList(const Fact& type, std::string_view role) {
  return EmptyOnnxList(graph_, type, NameOf(role));
}

Result<ValueId> OnnxLowering::ToScalar(ValueId x, std::string_view role) {
  if (fact(x).kind != ValueKind::kTensor) return InvalidArgument("a sequence is not a number");
  if (fact(x).shape.ranked() && fact(x).shape.rank() == 0) return x;
  if (fact(x).has_value() && fact(x).value.elements() == 1) {
    return Constant(fact(x).value.Reshaped({}));
  }
  return Add(ReshapeAttrs{}, {x, Ints({})}, role);
}

Result<DType> OnnxLowering::Type(std::string_view name, DType otherwise) const {
  if (!HasAttr(name)) return otherwise;
  ONCILLA_ASSIGN(const int64_t number, Int(name, 0));
  const DType dtype = DTypeFromOnnx(number);
  // No op computes with complex numbers; they are fed, moved and fetched.
  if (dtype == DType::kInvalid || IsComplex(dtype)) {
    return Unsupported("the type ", OnnxTypeName(number));
  }
  return dtype;
}

Result<ValueId> OnnxLowering::PerChannel(ValueId vector, int rank, std::string_view role) {
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < rank - 1; ++i) axes.push_back(i);
  return Unsqueeze(vector, std::move(axes), role);
}

Result<std::vector<double>> OnnxLowering::KnownNumbers(size_t input, std::string_view what) const {
  if (!has(input)) return DataLoss(what, " is missing");
  if (!in_fact(input).has_value()) {
    return Unsupported(what, " is computed while running; it must be a constant");
  }
  return ToDoubles(in_fact(input).value);
}

std::vector<OnnxOpFamily> OnnxOpFamilies() {
  return {
      {"", OnnxElementwiseRows()},
      {"", OnnxActivationRows()},
      {"", OnnxReduceRows()},
      {"", OnnxNormRows()},
      {"", OnnxMatMulRows()},
      {"", OnnxConvRows()},
      {"", OnnxPoolRows()},
      {"", OnnxMovementRows()},
      {"", OnnxIndexingRows()},
      {"", OnnxRecurrentRows()},
      {"", OnnxResizeRows()},
      {"", OnnxQuantRows()},
      {"", OnnxLossRows()},
      {"", OnnxSignalRows()},
      {"", OnnxTextRows()},
      {"", OnnxAttentionRows()},
      {"", OnnxRotaryRows()},
      {"", OnnxStateRows()},
      {"", OnnxColumnsRows()},
      {"", OnnxExperimentalRows()},
      {"", OnnxRandomRows()},
      {"", OnnxSequenceRows()},
      {"ai.onnx.preview", OnnxFlexRows()},
      {"", MicrosoftStandardRows()},
      {"ai.onnx.ml", OnnxMlRows()},
      {"ai.onnx.ml", OnnxMlSvmRows()},
      {"ai.onnx.ml", OnnxMlTreeRows()},
      {"ai.onnx.preview.training", OnnxTrainingRows()},
      {"com.microsoft", MicrosoftRows()},
      {"com.microsoft", MicrosoftArrayRows()},
      {"com.microsoft", MicrosoftAttentionRows()},
      {"com.microsoft", MicrosoftConvRows()},
      {"com.microsoft", MicrosoftDecoderRows()},
      {"com.microsoft", MicrosoftPackedRows()},
      {"com.microsoft", MicrosoftRefusedRows(), true},
      {"com.microsoft", MicrosoftRotaryRows()},
      {"com.microsoft", MicrosoftPoolRows()},
      {"com.microsoft", MicrosoftQLinearRows()},
      {"com.microsoft", MicrosoftDiffusionRows()},
      {"com.microsoft", MicrosoftFourBitRows()},
      {"com.microsoft", MicrosoftIndexingRows()},
      {"com.microsoft", MicrosoftLinearRows()},
      {"com.microsoft", MicrosoftMovementRows()},
      {"com.microsoft", MicrosoftRecurrentRows()},
      {"com.microsoft", MicrosoftSampleRows()},
      {"com.microsoft", MicrosoftStateRows()},
      {"com.microsoft", MicrosoftStreamRows()},
      {"com.microsoft", MicrosoftTextRows()},
      {"com.microsoft", MicrosoftTokenRows()},
      {"com.microsoft", MicrosoftQuantRows()},
  };
}

Result<const OnnxOpRow*> FindOnnxOp(std::string_view domain, std::string_view op, int64_t version) {
  using Rows = std::unordered_multimap<std::string_view, const OnnxOpRow*>;
  static const auto domains = [] {
    std::unordered_map<std::string_view, Rows> map;
    for (const OnnxOpFamily& family : OnnxOpFamilies()) {
      for (const OnnxOpRow& row : family.rows) map[family.domain].emplace(row.op, &row);
    }
    return map;
  }();
  if (domain == "com.microsoft.nchwc" || domain == "com.ms.internal.nhwc") {
    return Unsupported(
        "as it is made for one processor: save the model at the optimisation level extended");
  }
  const auto rows = domains.find(domain);
  if (rows == domains.end()) return Unsupported("opset ", version);
  const auto [begin, end] = rows->second.equal_range(op);
  if (begin == end) return Unsupported("opset ", version);
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  for (auto it = begin; it != end; ++it) {
    const OnnxOpRow& row = *it->second;
    if (version >= row.since && version <= row.until) return &row;
    first = std::min(first, row.since);
    last = std::max(last, row.until);
  }
  if (version > last) return Unsupported("of opset ", version, "; versions up to ", last, " are");
  return Unsupported("of opset ", version, "; versions from ", first, " are");
}

}  // namespace oncilla
