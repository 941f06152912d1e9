// Reads the functions of a saved object from the object graph, and makes calls to them.
#include "engine/import/tf/saved_functions.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "engine/base/format.h"
#include "engine/import/tf/tensor.h"
#include "engine/import/tf/write.h"

namespace oncilla {
namespace {

struct SavedObject {
  std::vector<std::pair<Bytes, int64_t>> children;  // by name
  std::vector<std::string> traces;                  // concrete functions of a function
  bool is_function = false;
};

SavedObject ReadObject(Bytes bytes) {
  SavedObject object;
  for (WireMessage wire(bytes); wire.Next();) {
    if (wire.field() == 1 && wire.is_view()) {
      Bytes name;
      int64_t id = 0;
      for (WireMessage child(wire.View()); child.Next();) {
        if (child.field() == 1) id = child.Int();
        if (child.field() == 2) name = child.View();
      }
      object.children.emplace_back(name, id);
    } else if (wire.field() == 6 && wire.is_view()) {
      object.is_function = true;
      for (WireMessage function(wire.View()); function.Next();) {
        if (function.field() == 1) object.traces.emplace_back(function.View());
      }
    }
  }
  return object;
}

bool IsPrivate(Bytes name) { return name.substr(0, 1) == "_" && name != "__call__"; }

// One tensor argument or result in a structure.
struct Leaf {
  std::string name;  // the name of the argument, or the key of the result
  PartialShape shape;
  bool keyed = false;
};

PartialShape ReadTensorShape(Bytes shape) {
  std::string attr;
  protozero::pbf_writer(attr).add_message(7, shape.data(), shape.size());
  auto read = TfAttr(attr).Shape();
  return read.ok() ? *std::move(read) : PartialShape();
}

// The tensors of a StructuredValue in TensorFlow's order: sequences in order, dictionaries sorted
// by key.
void Flatten(Bytes bytes, const Leaf& at, int depth, std::vector<Leaf>& leaves) {
  constexpr int kMostDepth = 64;
  constexpr size_t kMostLeaves = 1 << 16;
  if (depth > kMostDepth || leaves.size() > kMostLeaves) throw WireError("a structure too deep");
  for (WireMessage value(bytes); value.Next();) {
    switch (value.field()) {
      case 33:    // tensor_spec_value
      case 35: {  // bounded_tensor_spec_value
        Leaf leaf = at;
        for (WireMessage spec(value.View()); spec.Next();) {
          if (spec.field() == 1 && !leaf.keyed) leaf.name = std::string(spec.View());
          if (spec.field() == 2) leaf.shape = ReadTensorShape(spec.View());
        }
        leaves.push_back(std::move(leaf));
        break;
      }
      case 51:  // list_value
      case 52:  // tuple_value
        for (WireMessage list(value.View()); list.Next();) {
          if (list.field() == 1) Flatten(list.View(), at, depth + 1, leaves);
        }
        break;
      case 53: {  // dict_value
        std::map<std::string, Bytes> entries;
        for (WireMessage dict(value.View()); dict.Next();) {
          if (dict.field() != 1) continue;
          Bytes key, item;
          for (WireMessage entry(dict.View()); entry.Next();) {
            (entry.field() == 1 ? key : item) = entry.View();
          }
          entries[std::string(key)] = item;
        }
        for (const auto& [key, item] : entries) {
          const std::string path = at.keyed ? at.name + "." + key : key;
          Flatten(item, {.name = path, .shape = {}, .keyed = true}, depth + 1, leaves);
        }
        break;
      }
      default:
        break;
    }
  }
}

// Prints the arguments that are not tensors, as Python writes them.
void AddLiterals(Bytes bytes, int depth, std::string& text) {
  constexpr int kMostDepth = 64;
  constexpr size_t kMostText = 256;
  if (depth > kMostDepth || text.size() > kMostText) return;
  const auto add = [&text](const auto&... parts) {
    text += StrCat(text.empty() ? "" : ", ", parts...);
  };
  for (WireMessage value(bytes); value.Next();) {
    switch (value.field()) {
      case 12:  // int64_value, zigzag-encoded
        add(protozero::decode_zigzag64(static_cast<uint64_t>(value.Int())));
        break;
      case 13:  // string_value
        add('\'', value.View().substr(0, kMostText), '\'');
        break;
      case 14:  // bool_value
        add(value.Int() != 0 ? "True" : "False");
        break;
      case 51:  // list_value
      case 52:  // tuple_value
        for (WireMessage list(value.View()); list.Next();) {
          if (list.field() == 1) AddLiterals(list.View(), depth + 1, text);
        }
        break;
      case 53:  // dict_value
        for (WireMessage dict(value.View()); dict.Next();) {
          if (dict.field() != 1) continue;
          for (WireMessage entry(dict.View()); entry.Next();) {
            if (entry.field() == 2) AddLiterals(entry.View(), depth + 1, text);
          }
        }
        break;
      default:
        break;
    }
  }
}

// The arguments and results with which a function was traced.
struct Traced {
  std::vector<Leaf> arguments, results;
  std::string literals;  // see SavedTrace
};

Traced ReadTraced(Bytes object_graph, std::string_view function) {
  Traced traced;
  for (WireMessage graph(object_graph); graph.Next();) {
    if (graph.field() != 2) continue;
    Bytes key, value;
    for (WireMessage entry(graph.View()); entry.Next();) {
      (entry.field() == 1 ? key : value) = entry.View();
    }
    if (key != function) continue;
    for (WireMessage concrete(value); concrete.Next();) {
      if (concrete.field() == 3) {
        const Bytes arguments = concrete.View();
        Flatten(arguments, {}, 0, traced.arguments);
        AddLiterals(arguments, 0, traced.literals);
      }
      if (concrete.field() == 4) Flatten(concrete.View(), {}, 0, traced.results);
    }
  }
  return traced;
}

// Whether the names are distinct; if not, the caller uses other names.
bool NamesServe(const std::vector<Leaf>& leaves, size_t count) {
  std::set<std::string_view> names;
  for (const Leaf& leaf : leaves) {
    if (leaf.name.empty() || !names.insert(leaf.name).second) return false;
  }
  return leaves.size() == count;
}

std::string Text(const WireRope& rope) {
  std::string out;
  for (std::string_view part : rope.Parts()) out += part;
  return out;
}

}  // namespace

SavedFunctions ReadSavedFunctions(Bytes object_graph) {
  std::vector<SavedObject> objects;
  for (WireMessage graph(object_graph); graph.Next();) {
    if (graph.field() == 1) objects.push_back(ReadObject(graph.View()));
  }
  // Breadth first: an object is named by the shortest path to it.
  SavedFunctions functions;
  std::vector<bool> seen(objects.size(), false);
  std::deque<std::pair<size_t, std::string>> waiting;
  if (!objects.empty()) waiting.emplace_back(0, "");
  for (; !waiting.empty(); waiting.pop_front()) {
    const auto& [id, path] = waiting.front();
    for (const auto& [name, child] : objects[id].children) {
      if (child < 0 || child >= static_cast<int64_t>(objects.size()) || IsPrivate(name)) continue;
      const auto next = static_cast<size_t>(child);
      if (seen[next]) continue;
      seen[next] = true;
      std::string full = path.empty() ? std::string(name) : StrCat(path, ".", name);
      if (objects[next].is_function) functions[full] = objects[next].traces;
      waiting.emplace_back(next, std::move(full));
    }
  }
  return functions;
}

Result<SavedTrace> CallSavedFunction(TfGraph& graph, Bytes object_graph,
                                     const std::string& function, const CapturesOf& captures_of) {
  ONCILLA_ASSIGN(const TfFunction* body, graph.Function(function));
  ONCILLA_ASSIGN(const std::vector<std::string> captures, captures_of(function));
  if (captures.size() > body->args.size()) {
    return DataLoss("function '", function, "' captures more than it takes");
  }
  Traced traced;
  ONCILLA_TRY(ReadWire("the object graph", [&] { traced = ReadTraced(object_graph, function); }));
  const size_t arguments = body->args.size() - captures.size();
  const bool described = traced.arguments.size() == arguments;
  const bool named = NamesServe(traced.arguments, arguments);
  const bool keyed = NamesServe(traced.results, body->outputs.size()) &&
                     std::ranges::all_of(traced.results, &Leaf::keyed);

  // TensorFlow's own names never contain parentheses.
  const std::string call = StrCat(function, "()");
  Signature signature;
  signature.key = function;
  WireRope nodes;
  WireRope node = tf_write::NodeHead(call, "StatefulPartitionedCall");
  std::vector<int64_t> taken, given;
  for (size_t i = 0; i < body->args.size(); ++i) {
    const TfFunction::Arg& arg = body->args[i];
    taken.push_back(arg.tf_type);
    if (i >= arguments) {
      node.Text(3, captures[i - arguments]);
      continue;
    }
    const std::string holder = StrCat(call, "/", arg.name);
    TensorInfo& info = signature.inputs.emplace_back();
    info.name = named ? traced.arguments[i].name : std::string(arg.name);
    info.source = StrCat(holder, ":0");
    info.dtype = DTypeFromTf(arg.tf_type);
    if (described) info.shape = traced.arguments[i].shape;
    WireRope placeholder = tf_write::NodeHead(holder, "Placeholder");
    tf_write::AddAttr(placeholder, "dtype", tf_write::TypeAttr(arg.tf_type));
    tf_write::AddAttr(placeholder, "shape", tf_write::ShapeAttr(info.shape));
    nodes.Message(1, std::move(placeholder));
    node.Text(3, info.source);
  }
  for (size_t i = 0; i < body->outputs.size(); ++i) {
    TensorInfo& info = signature.outputs.emplace_back();
    info.name = keyed ? traced.results[i].name : StrCat("output_", i);
    info.source = StrCat(call, ":", i);
    info.dtype = DTypeFromTf(body->outputs[i].tf_type);
    if (traced.results.size() == body->outputs.size()) info.shape = traced.results[i].shape;
    given.push_back(body->outputs[i].tf_type);
  }
  tf_write::AddAttr(node, "f", tf_write::FunctionAttr(function));
  tf_write::AddAttr(node, "Tin", tf_write::TypesAttr(taken));
  tf_write::AddAttr(node, "Tout", tf_write::TypesAttr(given));
  nodes.Message(1, std::move(node));
  if (graph.main().Find(call) < 0) ONCILLA_TRY(graph.Extend(Text(nodes)));
  return SavedTrace{std::move(signature), std::move(traced.literals)};
}

}  // namespace oncilla
