// One function per message, with the field numbers of onnx.proto. Fields that the engine does not
// use are skipped.
#include "engine/import/onnx/reader.h"

#include <algorithm>
#include <unordered_set>

namespace oncilla {
namespace {

std::string_view Domain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

// The type that a value field implies, for files that do not state the attribute's type.
OnnxAttrType TypeOfField(uint32_t field) {
  switch (field) {
    case 2:
      return OnnxAttrType::kFloat;
    case 3:
      return OnnxAttrType::kInt;
    case 4:
      return OnnxAttrType::kString;
    case 5:
      return OnnxAttrType::kTensor;
    case 6:
    case 11:
      return OnnxAttrType::kGraph;
    case 7:
      return OnnxAttrType::kFloats;
    case 8:
      return OnnxAttrType::kInts;
    case 9:
      return OnnxAttrType::kStrings;
    case 14:
      return OnnxAttrType::kType;
    case 22:
      return OnnxAttrType::kSparse;
    case 10:
    case 15:
    case 23:
      return OnnxAttrType::kOther;
    default:
      return OnnxAttrType::kUndefined;
  }
}

OnnxAttrType TypeOfNumber(int64_t number) {
  switch (number) {
    case 1:
      return OnnxAttrType::kFloat;
    case 2:
      return OnnxAttrType::kInt;
    case 3:
      return OnnxAttrType::kString;
    case 4:
      return OnnxAttrType::kTensor;
    case 5:
    case 10:
      return OnnxAttrType::kGraph;
    case 6:
      return OnnxAttrType::kFloats;
    case 7:
      return OnnxAttrType::kInts;
    case 8:
      return OnnxAttrType::kStrings;
    case 11:
      return OnnxAttrType::kSparse;
    case 13:
      return OnnxAttrType::kType;
    default:
      return OnnxAttrType::kOther;
  }
}

PartialShape ReadShape(Bytes bytes) {
  std::vector<Dim> dims;
  WireMessage message(bytes);
  while (message.Next()) {
    if (message.field() != 1) continue;
    Dim dim;
    WireMessage fields(message.View());
    while (fields.Next()) {
      if (fields.field() == 1) {
        const int64_t size = fields.Int();
        // Some files write -1 for an unknown size.
        dim = size >= 0 ? Dim(size) : Dim();
      } else if (fields.field() == 2) {
        const Bytes name = fields.View();
        dim = name.empty() || name == "?" ? Dim() : Dim::Named(std::string(name));
      }
    }
    dims.push_back(std::move(dim));
  }
  return PartialShape(std::move(dims));
}

// The element type of a sequence or an optional value. Only what the engine supports is
// distinguished: a sequence of tensors, and an optional tensor or sequence of tensors.
OnnxType ReadType(Bytes bytes, int depth = 0);

OnnxType ReadHeld(Bytes bytes, OnnxKind kind, int depth) {
  OnnxType type;
  type.kind = kind;
  WireMessage message(bytes);
  while (message.Next()) {
    if (message.field() != 1) continue;
    OnnxType held = depth < 2 ? ReadType(message.View(), depth + 1) : OnnxType();
    const bool sequence = kind == OnnxKind::kOptional && held.kind == OnnxKind::kSequence;
    if (held.kind != OnnxKind::kTensor && !sequence) return OnnxType();
    type = std::move(held);
    type.kind = sequence ? OnnxKind::kOptionalSequence : kind;
  }
  return type;
}

OnnxType ReadMap(Bytes bytes, int depth) {
  OnnxType map;
  int64_t key_type = 0;
  WireMessage message(bytes);
  while (message.Next()) {
    if (message.field() == 1) key_type = message.Int();
    if (message.field() == 2 && depth < 2) map = ReadType(message.View(), depth + 1);
  }
  if (map.kind != OnnxKind::kTensor) map = OnnxType();
  map.kind = OnnxKind::kMap;
  map.key_type = key_type;
  return map;
}

OnnxType ReadType(Bytes bytes, int depth) {
  OnnxType info;
  WireMessage type(bytes);
  while (type.Next()) {
    switch (type.field()) {
      case 1: {
        info.kind = OnnxKind::kTensor;
        WireMessage tensor(type.View());
        while (tensor.Next()) {
          if (tensor.field() == 1) info.element_type = tensor.Int();
          if (tensor.field() == 2) info.shape = ReadShape(tensor.View());
        }
        break;
      }
      case 4:
        info = ReadHeld(type.View(), OnnxKind::kSequence, depth);
        break;
      case 5:
        info = ReadMap(type.View(), depth);
        break;
      case 8:
        info.kind = OnnxKind::kSparse;
        break;
      case 9:
        info = ReadHeld(type.View(), OnnxKind::kOptional, depth);
        break;
    }
  }
  return info;
}

std::shared_ptr<const OnnxGraph> ReadSubgraph(Bytes bytes, int depth);

OnnxAttr ReadAttr(Bytes bytes, int depth) {
  OnnxAttr attr;
  OnnxAttrType seen = OnnxAttrType::kUndefined;
  WireMessage message(bytes);
  while (message.Next()) {
    const OnnxAttrType holds = TypeOfField(message.field());
    if (holds != OnnxAttrType::kUndefined) seen = holds;
    switch (message.field()) {
      case 1:
        attr.name = message.View();
        break;
      case 2:
        attr.f = message.Float();
        break;
      case 3:
        attr.i = message.Int();
        break;
      case 4:
        attr.s = message.View();
        break;
      case 5:
        attr.tensor = {message.View()};
        break;
      case 6:
      case 11:
        attr.graphs.push_back(ReadSubgraph(message.View(), depth + 1));
        break;
      case 7:
        message.EachFloat([&](float v) { attr.floats.push_back(v); });
        break;
      case 8:
        message.EachInt([&](int64_t v) { attr.ints.push_back(v); });
        break;
      case 9:
        attr.strings.push_back(message.View());
        break;
      case 14:
        attr.held = ReadType(message.View());
        break;
      case 20:
        attr.type = TypeOfNumber(message.Int());
        break;
      case 21:
        attr.reference = message.View();
        break;
      case 22:
        attr.tensor = {message.View(), true};
        break;
    }
  }
  if (attr.type == OnnxAttrType::kUndefined) attr.type = seen;
  return attr;
}

// Collects the names that a graph reads but neither computes nor has as inputs or initializers.
void AddFreeNames(const OnnxGraph& graph, std::unordered_set<std::string_view>& free) {
  std::unordered_set<std::string_view> own;
  for (const OnnxValueInfo& input : graph.inputs) own.insert(input.name);
  for (const auto& [name, tensor] : graph.initializers) own.insert(name);
  for (const OnnxNode& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  const auto read = [&](std::string_view name) {
    if (!name.empty() && !own.contains(name)) free.insert(name);
  };
  for (const OnnxNode& node : graph.nodes) {
    for (std::string_view name : node.inputs) read(name);
    for (std::string_view name : node.captures) read(name);
  }
  for (const OnnxValueInfo& output : graph.outputs) read(output.name);
}

void FindCaptures(OnnxNode& node) {
  std::unordered_set<std::string_view> free;
  for (const OnnxAttr& attr : node.attrs) {
    for (const auto& graph : attr.graphs) AddFreeNames(*graph, free);
  }
  node.captures.assign(free.begin(), free.end());
  std::sort(node.captures.begin(), node.captures.end());  // the same order in every import
}

OnnxNode ReadNode(Bytes bytes, int depth) {
  OnnxNode node;
  WireMessage message(bytes);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        node.inputs.push_back(message.View());
        break;
      case 2:
        node.outputs.push_back(message.View());
        break;
      case 3:
        node.name = message.View();
        break;
      case 4:
        node.op = message.View();
        break;
      case 5:
        node.attrs.push_back(ReadAttr(message.View(), depth));
        break;
      case 7:
        node.domain = Domain(message.View());
        break;
      case 8:
        node.overload = message.View();
        break;
    }
  }
  if (node.has_subgraph()) FindCaptures(node);
  return node;
}

OnnxValueInfo ReadValueInfo(Bytes bytes) {
  OnnxValueInfo info;
  WireMessage message(bytes);
  while (message.Next()) {
    if (message.field() == 1) info.name = message.View();
    if (message.field() == 2) static_cast<OnnxType&>(info) = ReadType(message.View());
  }
  return info;
}

std::string_view TensorName(Bytes bytes) {
  std::string_view name;
  WireMessage message(bytes);
  while (message.Next()) {
    if (message.field() == 8) name = message.View();
  }
  return name;
}

std::string_view SparseTensorName(Bytes bytes) {
  WireMessage message(bytes);
  while (message.Next()) {
    if (message.field() == 1) return TensorName(message.View());
  }
  return "";
}

void ReadGraph(Bytes bytes, OnnxGraph& graph, int depth) {
  WireMessage message(bytes);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        graph.nodes.push_back(ReadNode(message.View(), depth));
        break;
      case 2:
        graph.name = message.View();
        break;
      case 5: {
        const Bytes tensor = message.View();
        graph.initializers.emplace_back(TensorName(tensor), OnnxTensorData{tensor});
        break;
      }
      case 11:
        graph.inputs.push_back(ReadValueInfo(message.View()));
        break;
      case 12:
        graph.outputs.push_back(ReadValueInfo(message.View()));
        break;
      case 13:
        graph.values.push_back(ReadValueInfo(message.View()));
        break;
      case 15: {
        const Bytes tensor = message.View();
        graph.initializers.emplace_back(SparseTensorName(tensor), OnnxTensorData{tensor, true});
        break;
      }
    }
  }
}

std::shared_ptr<const OnnxGraph> ReadSubgraph(Bytes bytes, int depth) {
  if (depth > kMaxOnnxGraphDepth) throw WireError("its graphs are nested too deeply");
  auto graph = std::make_shared<OnnxGraph>();
  ReadGraph(bytes, *graph, depth);
  return graph;
}

void ReadOpset(Bytes bytes, OnnxOpsets& opsets) {
  std::string_view domain;
  int64_t version = 0;
  WireMessage message(bytes);
  while (message.Next()) {
    if (message.field() == 1) domain = Domain(message.View());
    if (message.field() == 2) version = message.Int();
  }
  opsets.emplace_back(domain, version);
}

OnnxFunction ReadFunction(Bytes bytes) {
  OnnxFunction function;
  WireMessage message(bytes);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        function.name = message.View();
        break;
      case 4:
        function.inputs.push_back(message.View());
        break;
      case 5:
        function.outputs.push_back(message.View());
        break;
      case 6:
        function.attrs.push_back(message.View());
        break;
      case 7:
        function.nodes.push_back(ReadNode(message.View(), 0));
        break;
      case 9:
        ReadOpset(message.View(), function.opsets);
        break;
      case 10:
        function.domain = Domain(message.View());
        break;
      case 11:
        function.defaults.push_back(ReadAttr(message.View(), 0));
        break;
      case 13:
        function.overload = message.View();
        break;
    }
  }
  return function;
}

Status ReadModel(Bytes bytes, OnnxModel& model) {
  int graphs = 0;
  WireMessage message(bytes);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        model.ir_version = message.Int();
        break;
      case 2:
        model.producer = message.View();
        break;
      case 3:
        model.producer_version = message.View();
        break;
      case 4:
        model.domain = message.View();
        break;
      case 5:
        model.model_version = message.Int();
        break;
      case 6:
        model.doc = message.View();
        break;
      case 7:
        if (++graphs > 1) throw WireError("it holds two graphs");
        ReadGraph(message.View(), model.graph, 0);
        break;
      case 8:
        ReadOpset(message.View(), model.opsets);
        break;
      case 14: {
        std::string_view key, value;
        WireMessage entry(message.View());
        while (entry.Next()) {
          if (entry.field() == 1) key = entry.View();
          if (entry.field() == 2) value = entry.View();
        }
        model.metadata.emplace_back(key, value);
        break;
      }
      case 25:
        model.functions.push_back(ReadFunction(message.View()));
        break;
    }
  }
  if (graphs == 0) throw WireError("it holds no graph");
  return {};
}

// Reads a varint at `at`; false at the end of the bytes.
bool ReadVarint(Bytes bytes, size_t& at, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

const OnnxAttr* OnnxNode::Find(std::string_view attr) const {
  for (const OnnxAttr& a : attrs) {
    if (a.name == attr) return &a;
  }
  return nullptr;
}

bool OnnxNode::has_subgraph() const {
  for (const OnnxAttr& a : attrs) {
    if (a.type == OnnxAttrType::kGraph || !a.graphs.empty()) return true;
  }
  return false;
}

std::string_view OnnxNode::label() const {
  if (!name.empty()) return name;
  for (std::string_view output : outputs) {
    if (!output.empty()) return output;
  }
  return "";
}

bool LooksLikeOnnx(Bytes bytes) {
  // The IR version comes first, and the graph, field 7, somewhere after it; a file that is cut off
  // within the graph is still detected. TensorFlow's files have no field 7.
  bool version = false;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t tag = 0, value = 0;
    if (!ReadVarint(bytes, at, tag) || !ReadVarint(bytes, at, value)) return false;
    const uint64_t field = tag >> 3, wire = tag & 7;
    if (field == 0 || field > 25 || (wire != 0 && wire != 2)) return false;
    if (field == 1 && wire == 0) version = true;
    if (field == 7) return version && wire == 2;
    if (wire == 2) {
      if (value > bytes.size() - at) return false;
      at += value;
    }
  }
  return false;
}

Result<OnnxModel> ReadOnnxModel(Bytes bytes, std::string_view file) {
  OnnxModel model;
  ONCILLA_TRY(ReadWire(file, [&] { return ReadModel(bytes, model); }));
  return model;
}

std::vector<std::string_view> FreeOnnxNames(const OnnxGraph& graph) {
  std::unordered_set<std::string_view> free;
  AddFreeNames(graph, free);
  std::vector<std::string_view> names(free.begin(), free.end());
  std::sort(names.begin(), names.end());
  return names;
}

int64_t VersionOf(const OnnxOpsets& opsets, std::string_view domain) {
  for (const auto& [name, version] : opsets) {
    if (name == domain) return version;
  }
  return 0;
}

}  // namespace oncilla
