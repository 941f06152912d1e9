// Access to the attributes of a StableHLO module.
#include "engine/import/stablehlo/module.h"

#include <algorithm>

namespace oncilla {

PartialShape HloType::shape() const {
  std::vector<Dim> dims;
  for (int64_t size : sizes) dims.push_back(size < 0 ? Dim() : Dim(size));
  return PartialShape(std::move(dims));
}

bool HloType::fixed() const {
  return kind == Kind::kTensor &&
         std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
}

const HloAttr* HloModule::Find(const HloOp& op, std::string_view name) const {
  for (const auto& [key, value] : op.attrs) {
    if (key == name) return &attrs[static_cast<size_t>(value)];
  }
  return nullptr;
}

Result<int64_t> HloModule::Int(const HloOp& op, std::string_view name) const {
  const HloAttr* attr = Find(op, name);
  if (attr == nullptr || attr->kind != HloAttr::Kind::kNumber) {
    return DataLoss("attribute '", name, "' is not a number");
  }
  return attr->number;
}

Result<std::string_view> HloModule::Text(const HloOp& op, std::string_view name) const {
  const HloAttr* attr = Find(op, name);
  if (attr == nullptr || attr->kind != HloAttr::Kind::kText) {
    return DataLoss("attribute '", name, "' is not a text");
  }
  return attr->text;
}

Result<std::vector<int64_t>> HloModule::Ints(const HloOp& op, std::string_view name) const {
  const HloAttr* attr = Find(op, name);
  if (attr == nullptr) return DataLoss("attribute '", name, "' is missing");
  return IntsOf(*attr, name);
}

Result<std::vector<int64_t>> HloModule::IntsOf(const HloAttr& attr, std::string_view name) const {
  if (attr.kind == HloAttr::Kind::kTensor) {
    ONCILLA_ASSIGN(const Elements elements, ElementsOf(attr));
    ONCILLA_ASSIGN(std::vector<int64_t> values, ToInt64s(elements.tensor));
    const HloType& type = types[static_cast<size_t>(attr.type)];
    const int64_t count = type.shape().ToShape().elements();
    // Lists of an op's attributes are as long as a rank, or twice that.
    if (elements.splat && count <= 4 * kMaxRank)
      values.resize(static_cast<size_t>(count), values[0]);
    if (static_cast<int64_t>(values.size()) == count) return values;
  }
  if (attr.kind != HloAttr::Kind::kList) {
    return DataLoss("attribute '", name, "' is not a list of integers");
  }
  std::vector<int64_t> values;
  for (int item : attr.items) {
    const HloAttr& entry = attrs[static_cast<size_t>(item)];
    if (entry.kind != HloAttr::Kind::kNumber) {
      return DataLoss("attribute '", name, "' is not a list of integers");
    }
    values.push_back(entry.number);
  }
  return values;
}

const HloAttr* HloModule::Entry(const HloAttr& pairs, std::string_view name) const {
  if (pairs.kind != HloAttr::Kind::kPairs) return nullptr;
  for (size_t i = 0; i + 1 < pairs.items.size(); i += 2) {
    if (attrs[static_cast<size_t>(pairs.items[i])].text == name) {
      return &attrs[static_cast<size_t>(pairs.items[i + 1])];
    }
  }
  return nullptr;
}

namespace {

// Truth values are packed, eight to a byte; old files store a byte for each. One byte of ones
// stands for all elements.
Result<HloModule::Elements> TruthValues(std::string_view bytes, const Shape& shape) {
  const int64_t count = shape.elements();
  const auto stored = static_cast<int64_t>(bytes.size());
  std::vector<uint8_t> values;
  if (stored == 1 && count > 1 && (bytes[0] == '\xff' || (bytes[0] == 0 && count > 8))) {
    values.push_back(bytes[0] == 0 ? 0 : 1);
    return HloModule::Elements{Tensor::Of<uint8_t>(DType::kBool, {}, values), true};
  }
  if (stored == count && stored != (count + 7) / 8) {
    for (char c : bytes) values.push_back(c == 0 ? 0 : 1);
  } else if (stored == count / 8 + (count % 8 != 0 ? 1 : 0)) {
    values.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = (static_cast<uint8_t>(bytes[i / 8]) >> (i % 8)) & 1;
    }
  } else {
    return DataLoss("a constant of ", count, " truth values of which ", stored,
                    " bytes are stored");
  }
  return HloModule::Elements{Tensor::Of<uint8_t>(DType::kBool, shape, values), false};
}

}  // namespace

Result<HloModule::Elements> HloModule::ElementsOf(const HloAttr& attr) const {
  if (attr.kind != HloAttr::Kind::kTensor) return DataLoss("a constant is not a tensor");
  const HloType& type = types[static_cast<size_t>(attr.type)];
  if (!type.fixed()) return DataLoss("the shape of a constant is open");
  if (type.dtype == DType::kInvalid || BytesOf(type.dtype) == 0) {
    return Unsupported("a constant of a type that is not supported");
  }
  if (type.sizes.size() > static_cast<size_t>(kMaxRank)) {
    return Unsupported("a constant of rank ", type.sizes.size());
  }
  const Shape shape = type.shape().ToShape();
  if (type.dtype == DType::kBool) return TruthValues(attr.text, shape);
  const TensorDesc desc = {type.dtype, shape};
  const auto stored = static_cast<int64_t>(attr.text.size());
  const auto bytes = std::as_bytes(std::span(attr.text));
  if (stored == desc.bytes()) return Elements{Tensor::View(desc, bytes, owner), false};
  if (stored == BytesOf(type.dtype) && desc.elements() > 1) {
    return Elements{Tensor::Copy({type.dtype, {}}, bytes), true};
  }
  return DataLoss("a constant ", desc, " of which ", stored, " bytes are stored");
}

int HloModule::ArgumentBehind(const HloRegion& region, int value, int depth,
                              int64_t& budget) const {
  const auto argument = std::find(region.arguments.begin(), region.arguments.end(), value);
  if (argument != region.arguments.end()) {
    return static_cast<int>(argument - region.arguments.begin());
  }
  constexpr int kMostCalls = 8;  // JAX wraps a function once or twice
  if (depth >= kMostCalls) return -1;
  for (const HloOp& op : region.ops) {
    if (--budget < 0) return -1;
    const auto result = std::find(op.results.begin(), op.results.end(), value);
    if (result == op.results.end()) continue;
    const Result<std::string_view> callee = Text(op, "callee");
    if (op.name != "call" || !callee.ok()) return -1;
    const auto called = functions.find(*callee);
    if (called == functions.end() || called->second.ops.empty()) return -1;
    const std::vector<int>& returned = called->second.ops.back().operands;
    const auto index = static_cast<size_t>(result - op.results.begin());
    if (index >= returned.size()) return -1;
    const int inner = ArgumentBehind(called->second, returned[index], depth + 1, budget);
    if (inner < 0 || static_cast<size_t>(inner) >= op.operands.size()) return -1;
    return ArgumentBehind(region, op.operands[static_cast<size_t>(inner)], depth + 1, budget);
  }
  return -1;
}

std::vector<int> HloModule::PassedThrough(std::string_view function) const {
  std::vector<int> passed;
  const auto found = functions.find(function);
  if (found == functions.end() || found->second.ops.empty()) return passed;
  int64_t budget = int64_t{1} << 24;  // ops that are looked at
  for (int value : found->second.ops.back().operands) {
    passed.push_back(ArgumentBehind(found->second, value, 0, budget));
  }
  return passed;
}

}  // namespace oncilla
