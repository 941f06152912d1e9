// A single pass over the MetaGraphDef's bytes. Field numbers are those of meta_graph.proto,
// graph.proto, function.proto, saved_object_graph.proto and struct.proto.
#include "engine/import/tf/contents.h"

#include <algorithm>
#include <map>

#include "engine/base/file.h"
#include "engine/import/tf/op_kinds.h"
#include "engine/import/tf/saved_model.h"
#include "engine/import/tf/text.h"

namespace oncilla {
namespace {

using OpCounts = std::map<Bytes, int64_t>;

std::vector<TfContents::OpCount> MostFrequentFirst(const OpCounts& counts) {
  std::vector<TfContents::OpCount> out;
  for (const auto& [op, nodes] : counts) out.push_back({std::string(op), nodes});
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
  return out;
}

// Prints a value that a function was traced with, as Python would write it. Deep nesting and long
// lists are cut short.
class ValueText {
 public:
  void Add(Bytes structured_value, int depth) {
    WireMessage message(structured_value);
    bool any = false;
    while (message.Next()) {
      any = true;
      Field(message, depth);
    }
    if (!any) text += "None";
  }
  // The arguments of a call: a tuple of positional ones and a dictionary of named ones.
  void AddArguments(Bytes structured_value) {
    WireMessage message(structured_value);
    while (message.Next()) {
      if (message.field() != 52 || !message.is_view()) continue;
      WireMessage tuple(message.View());
      while (tuple.Next()) {
        if (tuple.field() == 1) AddItems(tuple.View());
      }
    }
  }

  std::string text;

 private:
  static constexpr int kMaxDepth = 16;
  static constexpr size_t kMaxLength = 2000;

  void Comma() {
    if (!text.empty() && text.back() != '(' && text.back() != '[' && text.back() != '{') {
      text += ", ";
    }
  }

  // The items of a tuple or dictionary, without its brackets.
  void AddItems(Bytes structured_value) {
    WireMessage message(structured_value);
    while (message.Next()) {
      if (message.field() == 52 || message.field() == 53) {
        List(message.View(), message.field() == 53, 0);
      }
    }
  }

  // ListValue and TupleValue hold values; DictValue holds pairs.
  void List(Bytes list, bool pairs, int depth) {
    WireMessage message(list);
    while (message.Next()) {
      if (message.field() != 1) continue;
      const Bytes item = message.View();
      if (text.size() > kMaxLength) {
        if (!text.ends_with("..")) text += "..";
        return;
      }
      Comma();
      if (!pairs) {
        Add(item, depth + 1);
        continue;
      }
      Bytes key, value;
      WireMessage entry(item);
      while (entry.Next()) {
        if (entry.field() == 1) key = entry.View();
        if (entry.field() == 2) value = entry.View();
      }
      // A tensor spec prints its own name.
      const std::string prefix = StrCat(key, ": ");
      const size_t at = text.size();
      Add(value, depth + 1);
      if (text.compare(at, prefix.size(), prefix) != 0) text.insert(at, prefix);
    }
  }

  void Field(WireMessage& message, int depth) {
    if (depth > kMaxDepth) {
      text += "..";
      return;
    }
    // The cases are the fields of StructuredValue (struct.proto).
    switch (message.field()) {
      case 11:
        text += StrCat(message.Double());
        break;
      case 12: {
        const auto zigzag = static_cast<uint64_t>(message.Int());
        text += StrCat(static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1));
        break;
      }
      case 13:
        text += StrCat("'", message.View(), "'");
        break;
      case 14:
        text += message.Bool() ? "True" : "False";
        break;
      case 32:
        text += TfTypeName(message.Int());
        break;
      case 33:
      case 35:
        TensorSpec(message.View());
        break;
      case 34: {  // another TypeSpec class: ragged, sparse, ..
        Bytes name;
        WireMessage spec(message.View());
        while (spec.Next()) {
          if (spec.field() == 3) name = spec.View();
        }
        text += name.empty() ? "TypeSpec" : std::string(name);
        break;
      }
      case 51:
        text += "[";
        List(message.View(), false, depth);
        text += "]";
        break;
      case 52:
        text += "(";
        List(message.View(), false, depth);
        text += ")";
        break;
      case 53:
        text += "{";
        List(message.View(), true, depth);
        text += "}";
        break;
      case 1:
        text += "None";
        break;
      default:
        text += "..";
    }
  }

  void TensorSpec(Bytes proto) {
    Bytes name;
    int64_t type = 0;
    std::string shape = "[?]";
    WireMessage spec(proto);
    while (spec.Next()) {
      if (spec.field() == 1) name = spec.View();
      if (spec.field() == 2) {
        const auto read = ShapeFromTf(spec.View());
        if (read.ok()) shape = StrCat(*read);
      }
      if (spec.field() == 3) type = spec.Int();
    }
    const DType dtype = DTypeFromTf(type);
    if (!name.empty()) text += StrCat(name, ": ");
    text += dtype == DType::kInvalid ? TfTypeName(type) : StrCat(dtype);
    text += shape;
  }
};

class Reader {
 public:
  Status ReadMetaGraph(Bytes meta_graph) {
    Bytes graph_def, object_graph;
    WireMessage message(meta_graph);
    while (message.Next()) {
      switch (message.field()) {
        case 1: {
          WireMessage info(message.View());
          while (info.Next()) {
            if (info.field() == 5) out.tensorflow_version = info.View();
          }
          break;
        }
        case 2:
          graph_def = message.View();
          break;
        case 5:
          ONCILLA_TRY(ReadSignature(message.View()));
          break;
        case 7:
          object_graph = message.View();
          break;
      }
    }
    std::sort(out.signatures.begin(), out.signatures.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    ReadObjects(object_graph);
    return ReadGraph(graph_def);
  }

  Status ReadGraph(Bytes graph_def) {
    WireMessage message(graph_def);
    while (message.Next()) {
      if (message.field() == 1) {
        ++out.nodes;
        ONCILLA_TRY(ReadNode(message.View(), true));
      }
      if (message.field() != 2 || !message.is_view()) continue;
      WireMessage library(message.View());
      while (library.Next()) {
        if (library.field() != 1 || !library.is_view()) continue;
        ++out.library_functions;
        WireMessage function(library.View());
        while (function.Next()) {
          if (function.field() != 3) continue;
          ++out.function_nodes;
          ONCILLA_TRY(ReadNode(function.View(), false));
        }
      }
    }
    out.ops = MostFrequentFirst(ops_);
    for (const auto& [name, ops] : devices_) {
      TfContents::Device device{std::string(name), 0, MostFrequentFirst(ops)};
      for (const auto& [op, nodes] : ops) device.nodes += nodes;
      out.devices.push_back(std::move(device));
    }
    std::stable_sort(out.devices.begin(), out.devices.end(),
                     [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
    return {};
  }

  TfContents out;

 private:
  Status ReadNode(Bytes node_def, bool in_main) {
    Bytes name, op, device;
    std::vector<Bytes> attrs;
    WireMessage node(node_def);
    while (node.Next()) {
      if (node.field() == 1) name = node.View();
      if (node.field() == 2) op = node.View();
      if (node.field() == 4) device = node.View();
      if (node.field() == 5 && in_main) attrs.push_back(node.View());
    }
    ++ops_[op];
    if (!device.empty()) ++devices_[device][op];
    return in_main && IsTfVariable(op) ? ReadVariable(name, attrs) : Status();
  }

  Status ReadVariable(Bytes name, const std::vector<Bytes>& attrs) {
    TfContents::Variable variable{std::string(name), TfTypeName(0), {}, -1};
    DType dtype = DType::kInvalid;
    for (Bytes attr : attrs) {
      Bytes key, value;
      WireMessage entry(attr);
      while (entry.Next()) {
        if (entry.field() == 1) key = entry.View();
        if (entry.field() == 2) value = entry.View();
      }
      WireMessage fields(value);
      while (fields.Next()) {
        if (key == "dtype" && fields.field() == 6) {
          const int64_t type = fields.Int();
          variable.dtype = TfTypeName(type);
          dtype = DTypeFromTf(type);
        }
        if (key == "shape" && fields.field() == 7) {
          ONCILLA_ASSIGN(variable.shape, ShapeFromTf(fields.View()));
        }
      }
    }
    if (dtype != DType::kInvalid && dtype != DType::kString && variable.shape.known()) {
      variable.bytes = BytesOf(dtype);
      for (const Dim& dim : variable.shape.dims()) {
        variable.bytes = SaturatingMul(variable.bytes, dim.size);
      }
    }
    out.variables.push_back(std::move(variable));
    return {};
  }

  Status ReadSignature(Bytes entry_proto) {
    TfContents::SignatureDef signature;
    WireMessage entry(entry_proto);
    while (entry.Next()) {
      if (entry.field() == 1) signature.key = entry.View();
      if (entry.field() != 2 || !entry.is_view()) continue;
      WireMessage def(entry.View());
      while (def.Next()) {
        if (def.field() == 3) signature.method = def.View();
        if (def.field() != 1 && def.field() != 2) continue;
        ONCILLA_ASSIGN(TfContents::Tensor tensor, ReadTensor(def.View()));
        (def.field() == 1 ? signature.inputs : signature.outputs).push_back(std::move(tensor));
      }
    }
    for (auto* list : {&signature.inputs, &signature.outputs}) {
      std::sort(list->begin(), list->end(),
                [](const auto& a, const auto& b) { return a.key < b.key; });
    }
    out.signatures.push_back(std::move(signature));
    return {};
  }

  static Result<TfContents::Tensor> ReadTensor(Bytes entry_proto) {
    TfContents::Tensor tensor;
    WireMessage entry(entry_proto);
    while (entry.Next()) {
      if (entry.field() == 1) tensor.key = entry.View();
      if (entry.field() != 2 || !entry.is_view()) continue;
      WireMessage info(entry.View());
      int64_t type = 0;
      while (info.Next()) {
        if (info.field() == 1) tensor.tensor = info.View();
        if (info.field() == 2) type = info.Int();
        if (info.field() != 3) continue;
        ONCILLA_ASSIGN(tensor.shape, ShapeFromTf(info.View()));
      }
      tensor.dtype = TfTypeName(type);
    }
    return tensor;
  }

  // Functions among the children of the root object, as users of tf.saved_model.load see them.
  void ReadObjects(Bytes object_graph) {
    std::vector<Bytes> objects;
    std::map<Bytes, Bytes> signatures;  // the signature of each concrete function
    WireMessage message(object_graph);
    while (message.Next()) {
      if (message.field() == 1) objects.push_back(message.View());
      if (message.field() != 2 || !message.is_view()) continue;
      Bytes key;
      WireMessage entry(message.View());
      while (entry.Next()) {
        if (entry.field() == 1) key = entry.View();
        if (entry.field() != 2 || !entry.is_view()) continue;
        WireMessage function(entry.View());
        while (function.Next()) {
          if (function.field() == 3) signatures[key] = function.View();
        }
      }
    }
    if (objects.empty()) return;
    WireMessage root(objects[0]);
    while (root.Next()) {
      if (root.field() != 1 || !root.is_view()) continue;
      int64_t id = 0;
      Bytes name;
      WireMessage child(root.View());
      while (child.Next()) {
        if (child.field() == 1) id = child.Int();
        if (child.field() == 2) name = child.View();
      }
      if (id < 0 || id >= static_cast<int64_t>(objects.size())) continue;
      ReadFunction(name, objects[static_cast<size_t>(id)], signatures);
    }
    std::sort(out.functions.begin(), out.functions.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  void ReadFunction(Bytes name, Bytes object, const std::map<Bytes, Bytes>& signatures) {
    TfContents::Function function{std::string(name), {}};
    bool is_function = false;
    WireMessage message(object);
    while (message.Next()) {
      if (message.field() != 6 || !message.is_view()) continue;
      is_function = true;
      WireMessage saved(message.View());
      while (saved.Next()) {
        if (saved.field() != 1) continue;
        ValueText arguments;
        const auto known = signatures.find(saved.View());
        if (known != signatures.end()) arguments.AddArguments(known->second);
        function.calls.push_back("(" + arguments.text + ")");
      }
    }
    if (is_function) out.functions.push_back(std::move(function));
  }

  OpCounts ops_;
  std::map<Bytes, OpCounts> devices_;
};

Result<TfContents> OfSavedModel(SavedModel& model, const std::string& path) {
  Reader reader;
  reader.out.format = "SavedModel";
  reader.out.tags = model.all_tags();
  reader.out.chosen = model.tags();
  ONCILLA_TRY(ReadWire(path, [&] { return reader.ReadMetaGraph(model.meta_graph()); }));
  const auto variables = model.Variables();
  if (!variables.ok() && variables.status().code() != Code::kNotFound) return variables.status();
  if (variables.ok()) {
    reader.out.checkpoint_tensors = 0;
    for (const Checkpoint::Entry& entry : (*variables)->entries()) {
      if (entry.tf_type == tf_type::kString) continue;  // the object graph, or paths of assets
      ++reader.out.checkpoint_tensors;
      int64_t bytes = entry.size;
      if (entry.partitioned && entry.shape.known()) {
        bytes = BytesOf(DTypeFromTf(entry.tf_type));
        for (const Dim& dim : entry.shape.dims()) bytes = SaturatingMul(bytes, dim.size);
      }
      reader.out.checkpoint_bytes = SaturatingAdd(reader.out.checkpoint_bytes, bytes);
    }
  }
  return std::move(reader.out);
}

Result<TfContents> OfGraphDef(Bytes graph_def, const std::string& path) {
  Reader reader;
  reader.out.format = "GraphDef";
  ONCILLA_TRY(ReadWire(path, [&] { return reader.ReadGraph(graph_def); }));
  return std::move(reader.out);
}

}  // namespace

Result<TfContents> ReadTfContents(const std::string& path, std::span<const std::string> tags) {
  if (FolderExists(path)) {
    ONCILLA_ASSIGN(const auto model, SavedModel::Open(path, tags));
    return OfSavedModel(*model, path);
  }
  ONCILLA_ASSIGN(const auto file, MappedFile::Open(path));
  TfFileKind kind = DetectTfFile(file->text());
  const bool is_text = kind == TfFileKind::kUnknown;
  if (is_text) kind = DetectTfText(file->text());
  switch (kind) {
    case TfFileKind::kSavedModel: {
      const size_t slash = path.rfind('/');
      ONCILLA_ASSIGN(const auto model,
                     SavedModel::Open(slash == std::string::npos ? "." : path.substr(0, slash),
                                      tags, path.substr(slash + 1)));
      return OfSavedModel(*model, path);
    }
    case TfFileKind::kGraphDef: {
      if (!is_text) return OfGraphDef(file->text(), path);
      ONCILLA_ASSIGN(const std::string bytes, TfTextToBytes(file->text(), kind, path));
      return OfGraphDef(bytes, path);
    }
    case TfFileKind::kUnknown:
      break;
  }
  return WithStage(Unsupported(path, ": not a model of TensorFlow"), Stage::kFile);
}

}  // namespace oncilla
