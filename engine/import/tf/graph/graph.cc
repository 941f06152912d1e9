// GraphDef, NodeDef, AttrValue and FunctionDef, read from the wire format. Field numbers are those
// of graph.proto, node_def.proto, attr_value.proto and function.proto.
#include "engine/import/tf/graph/graph.h"

#include <algorithm>
#include <charconv>

namespace oncilla {
namespace {

// Field numbers of AttrValue.
enum AttrField : uint32_t {
  kList = 1,
  kString = 2,
  kInt = 3,
  kFloat = 4,
  kBool = 5,
  kType = 6,
  kShape = 7,
  kTensor = 8,
  kPlaceholder = 9,
  kFunction = 10,
};
constexpr uint32_t kListFunction =
    9;  // in AttrValue.ListValue; the other fields have the same numbers

const char* KindName(uint32_t field) {
  switch (field) {
    case kList:
      return "a list";
    case kString:
      return "a string";
    case kInt:
      return "an integer";
    case kFloat:
      return "a float";
    case kBool:
      return "a bool";
    case kType:
      return "a type";
    case kShape:
      return "a shape";
    case kTensor:
      return "a tensor";
    case kPlaceholder:
      return "a placeholder of a polymorphic function";
    case kFunction:
      return "a function";
  }
  return "nothing";
}

// Calls read(message) at the field that holds the value; fails if the value is of another kind.
template <class F>
Status ReadValue(Bytes attr_value, AttrField want, F&& read) {
  return ReadWire("an attribute", [&]() -> Status {
    uint32_t held = 0;
    Status status;
    WireMessage message(attr_value);
    while (message.Next()) {
      held = message.field();
      if (held == want) status = read(message);
    }
    if (held != want) return InvalidArgument("holds ", KindName(held), ", not ", KindName(want));
    return status;
  });
}

// Calls read(list message) at every field `item` of the list that the value holds.
template <class F>
Status ReadList(Bytes attr_value, uint32_t item, F&& read) {
  return ReadValue(attr_value, kList, [&](WireMessage& message) -> Status {
    WireMessage list(message.View());
    while (list.Next()) {
      if (list.field() != item) {
        return InvalidArgument("lists ", KindName(list.field()), ", not ", KindName(item));
      }
      read(list);
    }
    return {};
  });
}

// The name in a NameAttrList.
Bytes FunctionName(Bytes name_attr_list) {
  Bytes name;
  WireMessage message(name_attr_list);
  while (message.Next()) {
    if (message.field() == 1) name = message.View();
  }
  return name;
}

TfNode ParseNode(Bytes node_def, Status* status) {
  TfNode node;
  WireMessage message(node_def);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        node.name = message.View();
        break;
      case 2:
        node.op = message.View();
        break;
      case 3: {
        auto input = ParseTfInput(message.View());
        if (!input.ok()) {
          *status = input.status();
          return node;
        }
        node.inputs.push_back(*input);
        break;
      }
      case 4:
        node.device = message.View();
        break;
      case 5: {
        std::pair<Bytes, Bytes> attr;
        WireMessage entry(message.View());
        while (entry.Next()) {
          if (entry.field() == 1) attr.first = entry.View();
          if (entry.field() == 2) attr.second = entry.View();
        }
        node.attrs.push_back(attr);
        break;
      }
    }
  }
  // TensorFlow writes data inputs before control inputs; the rest of the importer relies on that.
  std::stable_partition(node.inputs.begin(), node.inputs.end(),
                        [](const TfInput& input) { return !input.control; });
  return node;
}

TfFunction::Arg ParseArg(Bytes arg_def) {
  TfFunction::Arg arg;
  WireMessage message(arg_def);
  while (message.Next()) {
    if (message.field() == 1) arg.name = message.View();
    if (message.field() == 3) arg.tf_type = message.Int();
  }
  return arg;
}

std::pair<Bytes, Bytes> ParseStringEntry(Bytes entry_proto) {
  std::pair<Bytes, Bytes> entry;
  WireMessage message(entry_proto);
  while (message.Next()) {
    if (message.field() == 1) entry.first = message.View();
    if (message.field() == 2) entry.second = message.View();
  }
  return entry;
}

Status ParseFunction(Bytes function_def, TfFunction* function) {
  std::vector<std::pair<Bytes, Bytes>> returns;
  WireMessage message(function_def);
  while (message.Next()) {
    switch (message.field()) {
      case 1: {
        WireMessage signature(message.View());
        while (signature.Next()) {
          if (signature.field() == 1) function->name = signature.View();
          if (signature.field() == 2) function->args.push_back(ParseArg(signature.View()));
          if (signature.field() == 3) function->outputs.push_back(ParseArg(signature.View()));
        }
        break;
      }
      case 3:
        ONCILLA_TRY(function->body.Add(message.View()));
        break;
      case 4:
        returns.push_back(ParseStringEntry(message.View()));
        break;
      case 6:
        function->control_returns.push_back(ParseStringEntry(message.View()).second);
        break;
    }
  }
  for (const TfFunction::Arg& arg : function->args) {
    function->arg_by_name.emplace(arg.name, static_cast<int>(function->arg_by_name.size()));
  }
  if (function->arg_by_name.size() != function->args.size()) {
    return DataLoss("two arguments have one name");
  }
  for (const TfFunction::Arg& output : function->outputs) {
    const auto it = std::find_if(returns.begin(), returns.end(),
                                 [&](const auto& entry) { return entry.first == output.name; });
    if (it == returns.end()) return DataLoss("returns nothing for its output '", output.name, "'");
    ONCILLA_ASSIGN(TfInput input, ParseTfInput(it->second));
    function->returns.push_back(input);
  }
  return {};
}

}  // namespace

Result<TfInput> ParseTfInput(Bytes text) {
  TfInput input;
  const Bytes whole = text;
  if (!text.empty() && text[0] == '^') {
    input.control = true;
    input.node = text.substr(1);
    if (input.node.empty()) return DataLoss("an input has no name");
    return input;
  }
  const size_t first = text.find(':');
  input.node = text.substr(0, first);
  if (first != Bytes::npos) {
    Bytes rest = text.substr(first + 1);
    if (const size_t second = rest.find(':'); second != Bytes::npos) {
      input.arg = rest.substr(0, second);
      rest.remove_prefix(second + 1);
    }
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), input.index);
    if (error != std::errc() || end != rest.data() + rest.size() || input.index < 0) {
      return DataLoss("the input '", whole, "' is not of the form node:output");
    }
  }
  if (input.node.empty()) return DataLoss("the input '", whole, "' has no node");
  return input;
}

std::ostream& operator<<(std::ostream& out, const TfInput& input) {
  if (input.control) return out << '^' << input.node;
  out << input.node;
  if (!input.arg.empty()) out << ':' << input.arg;
  return out << ':' << input.index;
}

Result<int64_t> TfAttr::Int() const {
  int64_t out = 0;
  ONCILLA_TRY(ReadValue(value_, kInt, [&](WireMessage& m) {
    out = m.Int();
    return Status();
  }));
  return out;
}

Result<float> TfAttr::Float() const {
  float out = 0;
  ONCILLA_TRY(ReadValue(value_, kFloat, [&](WireMessage& m) {
    out = m.Float();
    return Status();
  }));
  return out;
}

Result<bool> TfAttr::Bool() const {
  bool out = false;
  ONCILLA_TRY(ReadValue(value_, kBool, [&](WireMessage& m) {
    out = m.Bool();
    return Status();
  }));
  return out;
}

Result<Bytes> TfAttr::String() const {
  Bytes out;
  ONCILLA_TRY(ReadValue(value_, kString, [&](WireMessage& m) {
    out = m.View();
    return Status();
  }));
  return out;
}

Result<int64_t> TfAttr::TypeNumber() const {
  int64_t out = 0;
  ONCILLA_TRY(ReadValue(value_, kType, [&](WireMessage& m) {
    out = m.Int();
    return Status();
  }));
  return out;
}

Result<PartialShape> TfAttr::Shape() const {
  PartialShape out;
  ONCILLA_TRY(ReadValue(value_, kShape, [&](WireMessage& m) -> Status {
    ONCILLA_ASSIGN(out, ShapeFromTf(m.View()));
    return {};
  }));
  return out;
}

Result<Bytes> TfAttr::TensorProto() const {
  Bytes out;
  ONCILLA_TRY(ReadValue(value_, kTensor, [&](WireMessage& m) {
    out = m.View();
    return Status();
  }));
  return out;
}

Result<Bytes> TfAttr::Function() const {
  Bytes out;
  ONCILLA_TRY(ReadValue(value_, kFunction, [&](WireMessage& m) {
    out = FunctionName(m.View());
    return Status();
  }));
  return out;
}

Result<std::vector<int64_t>> TfAttr::Ints() const {
  std::vector<int64_t> out;
  ONCILLA_TRY(ReadList(value_, kInt,
                       [&](WireMessage& m) { m.EachInt([&](int64_t v) { out.push_back(v); }); }));
  return out;
}

Result<std::vector<float>> TfAttr::Floats() const {
  std::vector<float> out;
  ONCILLA_TRY(ReadList(value_, kFloat,
                       [&](WireMessage& m) { m.EachFloat([&](float v) { out.push_back(v); }); }));
  return out;
}

Result<std::vector<Bytes>> TfAttr::Strings() const {
  std::vector<Bytes> out;
  ONCILLA_TRY(ReadList(value_, kString, [&](WireMessage& m) { out.push_back(m.View()); }));
  return out;
}

Result<std::vector<int64_t>> TfAttr::TypeNumbers() const {
  std::vector<int64_t> out;
  ONCILLA_TRY(ReadList(value_, kType,
                       [&](WireMessage& m) { m.EachInt([&](int64_t v) { out.push_back(v); }); }));
  return out;
}

Result<std::vector<PartialShape>> TfAttr::Shapes() const {
  std::vector<PartialShape> out;
  Status status;
  ONCILLA_TRY(ReadList(value_, kShape, [&](WireMessage& m) {
    auto shape = ShapeFromTf(m.View());
    if (shape.ok()) out.push_back(*std::move(shape));
    if (status.ok()) status = shape.status();
  }));
  ONCILLA_TRY(status);
  return out;
}

Result<std::vector<Bytes>> TfAttr::Functions() const {
  std::vector<Bytes> out;
  ONCILLA_TRY(ReadList(value_, kListFunction,
                       [&](WireMessage& m) { out.push_back(FunctionName(m.View())); }));
  return out;
}

int TfNode::data_inputs() const {
  int n = 0;
  while (n < static_cast<int>(inputs.size()) && !inputs[static_cast<size_t>(n)].control) ++n;
  return n;
}

Bytes TfNode::FindAttr(std::string_view name) const {
  for (const auto& [key, value] : attrs) {
    if (key == name) return value;
  }
  return {};
}

std::string Where(const TfNode& node) { return StrCat("node '", node.name, "' (", node.op, ")"); }

Bytes TfAttrs::Find(std::string_view name) const {
  const Bytes own = node_->FindAttr(name);
  return own.empty() ? defs_->FindDefault(node_->op, name) : own;
}

Status TfAttrs::Failed(std::string_view name, const Status& status) const {
  return WithNode(In(status, StrCat(Where(*node_), ": attribute '", name, "'")), node_->name);
}

template <class T>
Result<T> TfAttrs::Get(std::string_view name, Result<T> (TfAttr::*accessor)() const) const {
  const Bytes value = Find(name);
  if (value.empty()) return Failed(name, InvalidArgument("is missing"));
  auto result = (TfAttr(value).*accessor)();
  if (!result.ok()) return Failed(name, result.status());
  return result;
}

Result<int64_t> TfAttrs::Int(std::string_view name) const { return Get(name, &TfAttr::Int); }
Result<float> TfAttrs::Float(std::string_view name) const { return Get(name, &TfAttr::Float); }
Result<bool> TfAttrs::Bool(std::string_view name) const { return Get(name, &TfAttr::Bool); }
Result<std::string> TfAttrs::String(std::string_view name) const {
  ONCILLA_ASSIGN(const Bytes text, Get(name, &TfAttr::String));
  return std::string(text);
}
Result<int64_t> TfAttrs::TypeNumber(std::string_view name) const {
  return Get(name, &TfAttr::TypeNumber);
}
Result<DType> TfAttrs::Type(std::string_view name) const {
  ONCILLA_ASSIGN(const int64_t number, TypeNumber(name));
  const DType dtype = DTypeFromTf(number);
  if (dtype == DType::kInvalid) {
    return Failed(name, Unsupported("is the type ", TfTypeName(number)));
  }
  return dtype;
}
Result<PartialShape> TfAttrs::Shape(std::string_view name) const {
  return Get(name, &TfAttr::Shape);
}
Result<Bytes> TfAttrs::TensorProto(std::string_view name) const {
  return Get(name, &TfAttr::TensorProto);
}
Result<std::string> TfAttrs::Function(std::string_view name) const {
  ONCILLA_ASSIGN(const Bytes function, Get(name, &TfAttr::Function));
  return std::string(function);
}
Result<std::vector<int64_t>> TfAttrs::Ints(std::string_view name) const {
  return Get(name, &TfAttr::Ints);
}
Result<std::vector<float>> TfAttrs::Floats(std::string_view name) const {
  return Get(name, &TfAttr::Floats);
}
Result<std::vector<std::string>> TfAttrs::Strings(std::string_view name) const {
  ONCILLA_ASSIGN(const std::vector<Bytes> texts, Get(name, &TfAttr::Strings));
  return std::vector<std::string>(texts.begin(), texts.end());
}
Result<std::vector<int64_t>> TfAttrs::TypeNumbers(std::string_view name) const {
  return Get(name, &TfAttr::TypeNumbers);
}

Result<std::vector<PartialShape>> TfAttrs::Shapes(std::string_view name) const {
  return Get(name, &TfAttr::Shapes);
}

Status TfBody::Add(Bytes node_def) {
  Status status;
  TfNode node = ParseNode(node_def, &status);
  if (!status.ok()) return In(status, Where(node));
  if (node.name.empty()) return DataLoss("a node has no name");
  if (node.op.empty()) return DataLoss("node '", node.name, "' has no op");
  if (!by_name.emplace(node.name, static_cast<int>(nodes.size())).second) {
    return DataLoss("the name '", node.name, "' belongs to two nodes");
  }
  nodes.push_back(std::move(node));
  return {};
}

int TfBody::Find(std::string_view name) const {
  const auto it = by_name.find(name);
  return it == by_name.end() ? -1 : it->second;
}

int TfFunction::FindArg(std::string_view name) const {
  const auto it = arg_by_name.find(name);
  return it == arg_by_name.end() ? -1 : it->second;
}

Status TfGraph::ReadLibrary(Bytes library) {
  WireMessage message(library);
  while (message.Next()) {
    if (message.field() != 1) continue;
    const Bytes function_def = message.View();
    Bytes name;
    WireMessage function(function_def);
    while (function.Next()) {
      if (function.field() != 1) continue;
      WireMessage signature(function.View());
      while (signature.Next()) {
        if (signature.field() == 1) name = signature.View();
      }
    }
    if (name.empty()) return DataLoss("a function has no name");
    if (!library_.emplace(name, LibraryEntry{function_def, nullptr}).second) {
      return DataLoss("the name '", name, "' belongs to two functions");
    }
  }
  return {};
}

Status TfGraph::ReadGraph(Bytes graph_def) {
  WireMessage message(graph_def);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        ONCILLA_TRY(main_.Add(message.View()));
        break;
      case 2:
        ONCILLA_TRY(ReadLibrary(message.View()));
        break;
      case 4: {
        WireMessage versions(message.View());
        while (versions.Next()) {
          if (versions.field() == 1) producer_ = versions.Int();
        }
        break;
      }
    }
  }
  return {};
}

Status TfGraph::Extend(std::string graph_def) {
  const std::string& kept = extensions_.emplace_back(std::move(graph_def));
  return In(ReadWire("more of the graph", [&] { return ReadGraph(kept); }), file_);
}

Result<std::unique_ptr<TfGraph>> TfGraph::Parse(Bytes graph_def, Bytes op_list, std::string file,
                                                std::shared_ptr<const void> owner) {
  auto graph = std::make_unique<TfGraph>();
  graph->file_ = std::move(file);
  graph->owner_ = std::move(owner);
  ONCILLA_TRY(
      ReadWire(StrCat(graph->file_, ": the op list"), [&] { graph->defs_.AddOpList(op_list); }));
  ONCILLA_TRY(In(ReadWire("the graph", [&] { return graph->ReadGraph(graph_def); }), graph->file_));
  return graph;
}

Result<const TfFunction*> TfGraph::Function(std::string_view name) {
  const auto it = library_.find(name);
  if (it == library_.end()) {
    return NotFound("there is no function '", name, "' in the library");
  }
  LibraryEntry& entry = it->second;
  if (entry.parsed == nullptr) {
    auto parsed = std::make_unique<TfFunction>();
    const std::string where = StrCat("function '", name, "'");
    Status status = ReadWire("the body", [&] { return ParseFunction(entry.proto, parsed.get()); });
    if (!status.ok()) return In(std::move(status), where);
    entry.parsed = std::move(parsed);
  }
  return entry.parsed.get();
}

Result<int> TfGraph::OutputIndex(const TfNode& producer, const TfInput& input) const {
  const TfOpDef* def = input.arg.empty() ? nullptr : defs_.Find(producer.op);
  if (def == nullptr || def->outputs.size() <= 1) return input.index;
  const TfAttrs attrs = Attrs(producer);
  int64_t before = 0;
  for (const TfOpDef::Output& output : def->outputs) {
    int64_t count = 1;
    if (!output.number_attr.empty()) {
      ONCILLA_ASSIGN(count, attrs.Int(output.number_attr));
    } else if (!output.type_list_attr.empty()) {
      ONCILLA_ASSIGN(const std::vector<int64_t> types, attrs.TypeNumbers(output.type_list_attr));
      count = static_cast<int64_t>(types.size());
    }
    if (output.name == input.arg) {
      if (input.index < count && before + input.index < (1 << 20)) {
        return static_cast<int>(before + input.index);
      }
      break;
    }
    before = SaturatingAdd(before, std::max<int64_t>(count, 0));
  }
  return DataLoss(Where(producer), " has no output '", input.arg, ":", input.index, "'");
}

Result<Tensor> TfGraph::TensorAttr(const TfNode& node, std::string_view attr) {
  ONCILLA_ASSIGN(const Bytes proto, Attrs(node).TensorProto(attr));
  Result<Tensor> tensor = Tensor();
  Status status = ReadWire("the tensor", [&]() -> Status {
    tensor = TensorFromTf(proto, owner_, unfold_budget_);
    return tensor.status();
  });
  if (!status.ok()) return WithNode(In(std::move(status), Where(node)), node.name);
  return tensor;
}

Result<std::shared_ptr<const MappedFile>> TfGraph::OpenAsset(const std::string& name) const {
  // The path of an asset is its folder and file name, regardless of where the model was when it was
  // saved.
  for (const auto& [node, file] : assets_) {
    const std::string spelled = StrCat("assets/", file);
    const bool path = name == spelled || name.ends_with("/" + spelled);
    if (file == name || path) return MappedFile::OpenBeneath(asset_folder_, file);
  }
  return NotFound("'", name, "' is not one of the files that came with the model");
}

}  // namespace oncilla
