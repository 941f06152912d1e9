// NodeDefs, serialized as they are added.
#include "engine/import/graph_builder.h"

#include <algorithm>
#include <array>

#include "engine/import/tf/write.h"
// Included after wire.h, which configures protozero.
#include <protozero/pbf_writer.hpp>

namespace oncilla {
namespace {

// The attributes by which an op names the types of its first input and of its last one (an index).
struct TypeAttrs {
  std::string_view op;
  std::string_view first;   // "T" by default; "" for none
  std::string_view second;  // names the type of the last input
  bool counted = false;     // takes a list, whose length is attribute N
};
constexpr std::array<TypeAttrs, 28> kTypeAttrs = {{
    {"AddN", "T", "", true},
    {"ArgMax", "T", "Tidx"},
    {"ArgMin", "T", "Tidx"},
    {"Cast", "SrcT", ""},
    {"ConcatV2", "T", "Tidx", true},
    {"ExpandDims", "T", "Tdim"},
    {"Fill", "index_type", "T"},
    {"GatherV2", "Tparams", "Taxis"},
    {"Max", "T", "Tidx"},
    {"Mean", "T", "Tidx"},
    {"Min", "T", "Tidx"},
    {"NoOp", "", ""},
    {"Pack", "T", "", true},
    {"Pad", "T", "Tpaddings"},
    {"PlaceholderWithDefault", "dtype", ""},
    {"Prod", "T", "Tidx"},
    {"Range", "Tidx", ""},
    {"Reshape", "T", "Tshape"},
    {"Slice", "T", "Index"},
    {"Split", "", "T"},
    {"StringJoin", "", "", true},
    {"Sum", "T", "Tidx"},
    {"Tile", "T", "Tmultiples"},
    {"Transpose", "T", "Tperm"},
    {"All", "", "Tidx"},
    {"Any", "", "Tidx"},
    {"LogicalAnd", "", ""},
    {"LogicalNot", "", ""},
}};

TypeAttrs TypeAttrsOf(std::string_view op) {
  for (const TypeAttrs& row : kTypeAttrs) {
    if (row.op == op) return row;
  }
  return {op, "T", ""};
}

// The type of an op's result, if it does not follow from the inputs.
bool KnownResult(std::string_view op, DType& out) {
  constexpr std::array<std::string_view, 10> kBoolean = {
      "Equal",        "NotEqual",   "Less",       "LessEqual", "Greater",
      "GreaterEqual", "LogicalAnd", "LogicalNot", "LogicalOr", "IsNan"};
  if (std::find(kBoolean.begin(), kBoolean.end(), op) != kBoolean.end()) {
    out = DType::kBool;
  } else if (op == "Shape" || op == "Size" || op == "Rank") {
    out = DType::kI32;
  } else if (op == "ArgMax" || op == "ArgMin") {
    out = DType::kI64;
  } else {
    return false;
  }
  return true;
}

std::string Text(const WireRope& rope) {
  std::string out;
  for (std::string_view part : rope.Parts()) out += part;
  return out;
}

// A serialized AttrValue message.
std::string ValueOf(const GraphBuilder::AttrValue& value) {
  std::string text;
  protozero::pbf_writer out(text);
  if (const auto* v = std::get_if<int64_t>(&value)) out.add_int64(3, *v);
  if (const auto* v = std::get_if<float>(&value)) out.add_float(4, *v);
  if (const auto* v = std::get_if<bool>(&value)) out.add_bool(5, *v);
  if (const auto* v = std::get_if<std::string>(&value)) out.add_bytes(2, *v);
  if (const auto* v = std::get_if<DType>(&value))
    return Text(tf_write::TypeAttr(tf_write::TypeOf(*v)));
  if (const auto* v = std::get_if<PartialShape>(&value)) return Text(tf_write::ShapeAttr(*v));
  if (const auto* v = std::get_if<Tensor>(&value)) {
    return Text(tf_write::TensorAttr(*v, tf_write::TypeOf(v->dtype())));
  }
  if (const auto* v = std::get_if<std::vector<int64_t>>(&value)) {
    protozero::pbf_writer list(out, 1);
    list.add_packed_int64(3, v->begin(), v->end());
  }
  if (const auto* v = std::get_if<std::vector<float>>(&value)) {
    protozero::pbf_writer list(out, 1);
    list.add_packed_float(4, v->begin(), v->end());
  }
  if (const auto* v = std::get_if<std::vector<DType>>(&value)) {
    std::vector<int32_t> types;
    for (const DType type : *v) types.push_back(static_cast<int32_t>(tf_write::TypeOf(type)));
    protozero::pbf_writer list(out, 1);
    list.add_packed_int32(6, types.begin(), types.end());
  }
  if (const auto* v = std::get_if<std::vector<std::string>>(&value)) {
    protozero::pbf_writer list(out, 1);
    for (const std::string& s : *v) list.add_bytes(2, s);
  }
  return text;
}

bool IsNodeName(std::string_view name) {
  // TensorFlow accepts [A-Za-z0-9.][A-Za-z0-9_.\\/>-]*
  if (name.empty()) return false;
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  };
  return letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
           return letter(c) || c == '_' || c == '\\' || c == '/' || c == '>' || c == '-';
         });
}

}  // namespace

GraphBuilder::Output GraphBuilder::Fail(Status status) {
  if (status_.ok()) status_ = WithStage(std::move(status), Stage::kLoad);
  return {};
}

std::string GraphBuilder::Unique(std::string_view name, std::string_view op) {
  const std::string wanted(name.empty() ? op : name);
  std::string unique = wanted;
  for (int i = 1; std::find(names_.begin(), names_.end(), unique) != names_.end(); ++i) {
    unique = StrCat(wanted, '_', i);
  }
  names_.push_back(unique);
  return unique;
}

GraphBuilder::Output GraphBuilder::Constant(const Tensor& value, std::string_view name) {
  if (!value.valid() || value.is_list()) {
    return Fail(InvalidArgument("constant '", name, "' has no value"));
  }
  if (tf_write::TypeOf(value.dtype()) == 0) {
    return Fail(Unsupported("constant '", name, "': TensorFlow has no ", value.dtype()));
  }
  return Op("Const", {}, {{"value", value}}, name, value.dtype());
}

GraphBuilder::Output GraphBuilder::Placeholder(DType dtype, const PartialShape& shape,
                                               std::string_view name) {
  return Op("Placeholder", {}, {{"shape", shape}}, name, dtype);
}

GraphBuilder::Output GraphBuilder::Op(std::string_view op, const std::vector<Output>& inputs,
                                      const Attrs& attrs, std::string_view name, DType dtype) {
  if (!status_.ok()) return {};
  if (!name.empty() && !IsNodeName(name)) {
    return Fail(InvalidArgument("'", name, "' is not a node name"));
  }
  const std::string unique = Unique(name, op);
  std::string node_text;
  protozero::pbf_writer node(node_text);
  node.add_string(1, unique);
  node.add_string(2, std::string(op));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].tensor.empty()) {
      return Fail(InvalidArgument("input ", i, " of '", unique, "' (", op, ") is not an output"));
    }
    node.add_string(3, inputs[i].tensor);
  }
  if (!devices_.empty() && !devices_.back().empty()) node.add_string(4, devices_.back().text());
  const auto add = [&](std::string_view key, const AttrValue& value) {
    protozero::pbf_writer entry(node, 5);
    entry.add_string(1, key.data(), key.size());
    entry.add_message(2, ValueOf(value));
  };
  const auto given = [&](std::string_view key) {
    return std::any_of(attrs.begin(), attrs.end(), [&](const auto& a) { return a.first == key; });
  };
  for (const auto& [key, value] : attrs) add(key, value);
  const TypeAttrs types = TypeAttrsOf(op);
  if (inputs.empty()) {
    if (dtype != DType::kInvalid && !given("dtype")) add("dtype", dtype);
  } else {
    if (!types.first.empty() && !given(types.first)) add(types.first, inputs[0].dtype);
    if (!types.second.empty() && !given(types.second)) add(types.second, inputs.back().dtype);
    // The last input of a list op is the axis, if the op has one.
    const size_t count = inputs.size() - (op == "ConcatV2" ? 1 : 0);
    if (types.counted && !given("N")) add("N", static_cast<int64_t>(count));
    if (op == "Cast" && dtype != DType::kInvalid && !given("DstT")) add("DstT", dtype);
  }
  protozero::pbf_writer(nodes_).add_message(1, node_text);
  if (dtype == DType::kInvalid && !KnownResult(op, dtype) && !inputs.empty()) {
    dtype = inputs[op == "Fill" || op == "Split" ? inputs.size() - 1 : 0].dtype;
  }
  return {unique + ":0", dtype};
}

GraphBuilder::Output GraphBuilder::Other(const Output& first, int index, DType dtype) const {
  if (first.tensor.empty()) return {};
  const std::string node = first.tensor.substr(0, first.tensor.rfind(':'));
  return {StrCat(node, ':', index), dtype == DType::kInvalid ? first.dtype : dtype};
}

void GraphBuilder::PushDevice(std::string_view device) {
  const DeviceName around = devices_.empty() ? DeviceName() : devices_.back();
  auto name = DeviceName::Parse(device);
  if (!name.ok()) {
    Fail(In(name.status(), StrCat("device scope '", device, "'")));
    name = DeviceName();
  }
  devices_.push_back(device.empty() ? DeviceName() : Nest(around, *name));
}

void GraphBuilder::PopDevice() {
  if (devices_.empty()) {
    Fail(Error(Code::kFailedPrecondition, "no device scope is open"));
    return;
  }
  devices_.pop_back();
}

Result<std::string> GraphBuilder::GraphDef() const {
  if (!status_.ok()) return status_;
  std::string versions;
  protozero::pbf_writer(versions).add_int32(1, 1087);  // a version whose ops these are
  std::string out = nodes_;
  protozero::pbf_writer(out).add_message(4, versions);
  return out;
}

}  // namespace oncilla
