// Reading and checking the messages of a container.
#include "engine/import/container/read.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "engine/base/near_names.h"
#include "engine/import/container/bytes.h"
#include "engine/import/container/container.h"
#include "engine/ops/control.h"

namespace oncilla::container {
namespace {

PartialShape ReadShape(const TypeMessage& type) {
  if (!type.ranked) return {};
  std::vector<Dim> dims;
  for (const DimMessage& dim : type.dims) {
    if (dim.known.has_value()) {
      dims.emplace_back(static_cast<int64_t>(std::min<uint64_t>(*dim.known, INT64_MAX)));
    } else {
      const Bytes name = dim.name.value_or(Bytes());
      dims.push_back(name.empty() ? Dim() : Dim::Named(std::string(name)));
    }
  }
  return PartialShape(std::move(dims));
}

Result<Fact> ReadType(const TypeMessage& type) {
  const auto dtype = DTypeFromName(type.dtype);
  if (!dtype.has_value()) return DataLoss("there is no type '", type.dtype, "'");
  if (type.dims.size() > size_t{kMaxRank}) return DataLoss("has the rank ", type.dims.size());
  if (type.kind > 1) return DataLoss("is of no known kind (", type.kind, ")");
  if (type.kind == 1) return Fact::List(*dtype, ReadShape(type));
  return Fact::Of(*dtype, ReadShape(type));
}

}  // namespace

Result<Tensor> ReadTensor(const Opened& opened, const TensorMessage& message) {
  const auto dtype = DTypeFromName(message.dtype);
  if (!dtype.has_value()) return DataLoss("there is no type '", message.dtype, "'");
  if (message.dims.size() > size_t{kMaxRank}) return DataLoss("has the rank ", message.dims.size());
  TensorDesc desc{*dtype, {}};
  for (const uint64_t size : message.dims) {
    if (size > INT64_MAX) return DataLoss("has the size ", size);
    desc.shape.push_back(static_cast<int64_t>(size));
  }
  if (desc.dtype == DType::kString) {
    if (desc.elements() != static_cast<int64_t>(message.strings.size())) {
      return DataLoss("has ", message.strings.size(), " strings for ", desc);
    }
    return Tensor::Strings(desc.shape, {message.strings.begin(), message.strings.end()});
  }
  if (message.blob >= opened.model->blobs.size()) {
    return DataLoss("is in blob ", message.blob, " of ", opened.model->blobs.size());
  }
  const BlobMessage& blob = opened.model->blobs[message.blob];
  if (static_cast<uint64_t>(desc.bytes()) != blob.bytes) {
    return DataLoss("has ", blob.bytes, " bytes; ", desc, " needs ", desc.bytes());
  }
  if (Hash(opened.weights.subspan(blob.offset, blob.bytes)) != blob.hash.value) {
    return DataLoss("its checksum does not match");
  }
  Tensor tensor = Tensor::View(desc, opened.weights.subspan(blob.offset, blob.bytes), opened.file);
  tensor.set_mapped();
  return tensor;
}

namespace {

Result<AttrValue> ReadAttr(const AttrMessage& attr) {
  const int given = attr.i.has_value() + attr.f.has_value() + attr.b.has_value() +
                    attr.dtype.has_value() + attr.s.has_value() + attr.ints.has_value() +
                    attr.floats.has_value() + attr.strings.has_value();
  if (given != 1) return DataLoss("has ", given, " values");
  if (attr.i.has_value()) return AttrValue(attr.i->value);
  if (attr.f.has_value()) return AttrValue(*attr.f);
  if (attr.b.has_value()) return AttrValue(*attr.b);
  if (attr.s.has_value()) return AttrValue(std::string(*attr.s));
  if (attr.floats.has_value()) return AttrValue(attr.floats->values);
  if (attr.strings.has_value()) {
    return AttrValue(
        std::vector<std::string>(attr.strings->values.begin(), attr.strings->values.end()));
  }
  if (attr.ints.has_value()) {
    std::vector<int64_t> values;
    for (const WireSigned item : attr.ints->values) values.push_back(item.value);
    return AttrValue(std::move(values));
  }
  const auto dtype = DTypeFromName(*attr.dtype);
  if (!dtype.has_value()) return DataLoss("there is no type '", *attr.dtype, "'");
  return AttrValue(*dtype);
}

Result<AttrMap> ReadAttrMap(const NodeMessage& node) {
  AttrMap attrs;
  for (const AttrMessage& attr : node.attrs) {
    auto value = ReadAttr(attr);
    if (!value.ok()) return In(value.status(), StrCat("attribute '", attr.name, "'"));
    if (!attrs.emplace(std::string(attr.name), *std::move(value)).second) {
      return DataLoss("attribute '", attr.name, "' occurs twice");
    }
  }
  return attrs;
}

template <class List>
std::vector<std::string> NamesOf(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.emplace_back(item.name);
  return names;
}

// The index of the first item of each name.
template <class List>
std::unordered_map<std::string_view, size_t> ByName(const List& list) {
  std::unordered_map<std::string_view, size_t> out;
  for (size_t i = 0; i < list.size(); ++i) out.emplace(list[i].name, i);
  return out;
}

// One graph's message, with numbers for its values.
class GraphReader {
 public:
  GraphReader(const Opened& opened, const GraphMessage& message,
              const std::shared_ptr<const OpSet>& ops)
      : opened_(opened), message_(message), graph_(ops) {}

  Result<Graph> Read(const Part& part) {
    ONCILLA_TRY(Number());
    ONCILLA_TRY(Choose(part));
    ONCILLA_TRY(AddInputs(part));
    const size_t first = message_.inputs.size();
    for (size_t i = 0; i < message_.constants.size(); ++i) {
      if (!needed_[first + i]) continue;
      const ConstantMessage& constant = message_.constants[i];
      auto tensor = ReadTensor(opened_, constant.value);
      if (!tensor.ok()) return In(tensor.status(), StrCat("constant '", constant.name, "'"));
      ids_[first + i] = graph_.AddConstant(*std::move(tensor), std::string(constant.name));
    }
    for (size_t n = 0; n < message_.nodes.size(); ++n) {
      if (node_needed_[n]) ONCILLA_TRY(AddNode(n));
    }
    for (const size_t o : outputs_) {
      const OutputMessage& output = message_.outputs[o];
      graph_.AddOutput(std::string(output.name), ids_[output.value]);
    }
    std::set<std::string_view> names;
    for (const Value& value : graph_.values()) {
      if (!value.name.empty() && !names.insert(value.name).second) {
        return DataLoss("two values are called '", value.name, "'");
      }
    }
    return std::move(graph_);
  }

 private:
  // Computes the number of each node's first output, and of the value after the last one.
  Status Number() {
    size_t next = message_.inputs.size() + message_.constants.size();
    for (const NodeMessage& node : message_.nodes) {
      for (const uint32_t input : node.inputs) {
        if (input > next) return DataLoss("node '", node.name, "' reads a later value");
      }
      first_output_.push_back(next);
      next += node.output_names.size();
    }
    if (next >= UINT32_MAX) return DataLoss("has too many values");
    ids_.resize(next, kNoValue);
    for (const OutputMessage& output : message_.outputs) {
      if (output.value >= next) return DataLoss("output '", output.name, "' has no value");
    }
    return {};
  }

  // Finds the requested outputs, in order, and everything that they need.
  Status Choose(const Part& part) {
    for (size_t o = 0; part.fetches.empty() && o < message_.outputs.size(); ++o)
      outputs_.push_back(o);
    if (!part.fetches.empty()) {
      const auto by_name = ByName(message_.outputs);
      for (const std::string& name : part.fetches) {
        const auto found = by_name.find(name);
        if (found == by_name.end()) {
          return NoSuchTensor("output", name, NamesOf(message_.outputs));
        }
        outputs_.push_back(found->second);
      }
    }
    // If no outputs were requested, everything is kept: nodes may be there for their effects.
    const bool all = part.fetches.empty() || part.all_nodes;
    needed_.resize(ids_.size(), all);
    node_needed_.resize(message_.nodes.size(), all);
    for (const size_t o : outputs_) needed_[message_.outputs[o].value] = true;
    for (size_t n = node_needed_.size(); n-- > 0 && !all;) {
      const NodeMessage& node = message_.nodes[n];
      for (size_t i = 0; i < node.output_names.size(); ++i) {
        if (needed_[first_output_[n] + i]) node_needed_[n] = true;
      }
      for (const uint32_t input : node.inputs) {
        if (node_needed_[n] && input > 0) needed_[input - 1] = true;
      }
    }
    // A needed input may not be read at all; inputs that are read must be fed.
    read_.resize(ids_.size(), false);
    for (const size_t o : outputs_) read_[message_.outputs[o].value] = true;
    for (size_t n = 0; n < node_needed_.size(); ++n) {
      for (const uint32_t input : message_.nodes[n].inputs) {
        if (node_needed_[n] && input > 0) read_[input - 1] = true;
      }
    }
    return {};
  }

  Status AddInput(size_t i) {
    const InputMessage& input = message_.inputs[i];
    auto fact = ReadType(input.type);
    if (!fact.ok()) return In(fact.status(), StrCat("input '", input.name, "'"));
    ids_[i] = graph_.AddInput(std::string(input.name), *std::move(fact));
    return {};
  }

  Status AddInputs(const Part& part) {
    const auto by_name = ByName(message_.inputs);
    for (const std::string& name : part.feeds) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) return NoSuchTensor("input", name, NamesOf(message_.inputs));
      if (ids_[found->second] == kNoValue) ONCILLA_TRY(AddInput(found->second));
    }
    std::vector<std::string> missing;
    for (size_t i = 0; i < message_.inputs.size(); ++i) {
      if (ids_[i] != kNoValue) continue;
      const bool read = read_[i] || part.all_inputs;
      if (part.feeds.empty() && read) ONCILLA_TRY(AddInput(i));
      if (!part.feeds.empty() && read) missing.emplace_back(message_.inputs[i].name);
    }
    if (missing.empty()) return {};
    return WithStage(InvalidArgument("inputs that are needed are not fed: ", Listed(missing)),
                     Stage::kOptions);
  }

  Status AddNode(size_t n) {
    const NodeMessage& node = message_.nodes[n];
    auto attrs = ReadAttrMap(node);
    if (!attrs.ok()) return In(attrs.status(), StrCat("node '", node.name, "'"));
    std::vector<ValueId> inputs;
    for (const uint32_t input : node.inputs) {
      inputs.push_back(input == 0 ? kNoValue : ids_[input - 1]);
    }
    ONCILLA_ASSIGN(const auto outputs,
                   graph_.AddNode(std::string(node.name), node.op, *std::move(attrs),
                                  std::move(inputs), {node.sources.begin(), node.sources.end()}));
    if (outputs.size() != node.output_names.size()) {
      return DataLoss("node '", node.name, "' (", node.op, ") gives ", outputs.size(),
                      " values, not ", node.output_names.size());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      ids_[first_output_[n] + i] = outputs[i];
      const Bytes name = node.output_names[i];
      if (!name.empty()) graph_.SetValueName(outputs[i], std::string(name));
    }
    return {};
  }

  const Opened& opened_;
  const GraphMessage& message_;
  Graph graph_;
  std::vector<size_t> first_output_;
  std::vector<bool> needed_, node_needed_, read_;  // read_: by a needed node, or fetched
  std::vector<ValueId> ids_;                       // by value number
  std::vector<size_t> outputs_;                    // indices into the message's outputs
};

// Checks the types that a call passes or receives against those of its function.
Status SameTypes(std::span<const Fact> a, std::span<const Fact> b, std::string_view what) {
  if (a.size() != b.size()) return DataLoss(a.size(), " ", what, " meet ", b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].kind != b[i].kind || a[i].dtype != b[i].dtype) {
      return DataLoss(what, " ", i, " is ", a[i], " here and ", b[i], " there");
    }
  }
  return {};
}

Facts FactsOfNames(const Graph& graph, std::span<const NamedValue> names) {
  Facts facts;
  for (const NamedValue& name : names) facts.push_back(graph.fact(name.value));
  return facts;
}

// Checks the calls and variables of a module.
class ModuleChecker {
 public:
  ModuleChecker(const Module& module, VariableTypes* variables)
      : module_(module), variables_(*variables) {}

  Status Check() {
    for (size_t f = 0; f < module_.functions.size(); ++f) {
      if (!functions_.emplace(module_.functions[f].first, f).second) {
        return DataLoss("function '", module_.functions[f].first, "' occurs twice");
      }
    }
    std::set<std::string> names;
    for (const ModuleVariable& variable : module_.variables) {
      if (!names.insert(variable.name).second) {
        return DataLoss("variable '", variable.name, "' occurs twice");
      }
      if (variable.initial.valid()) {
        ONCILLA_TRY(NoteVariable(variable.name, Fact::Of(variable.initial)));
      }
    }
    calls_.resize(module_.functions.size() + 1);
    for (size_t f = 0; f < module_.functions.size(); ++f) {
      ONCILLA_TRY(In(CheckGraph(module_.functions[f].second, f),
                     StrCat("function '", module_.functions[f].first, "'")));
    }
    ONCILLA_TRY(CheckGraph(module_.main, module_.functions.size()));
    return CheckRecursion();
  }

 private:
  Status NoteVariable(const std::string& name, const Fact& fact) {
    const auto [it, added] = variables_.emplace(name, fact);
    if (added || (it->second.kind == fact.kind && it->second.dtype == fact.dtype)) return {};
    return DataLoss("variable '", name, "' is ", it->second, " here and ", fact, " there");
  }

  Status CheckGraph(const Graph& graph, size_t self) {
    for (const Node& node : graph.nodes()) {
      ONCILLA_TRY(In(CheckNode(graph, node, self), StrCat("node '", node.name, "'")));
    }
    return {};
  }

  Status CheckNode(const Graph& graph, const Node& node, size_t self) {
    if (node.op->name == "ReadVariable") {
      ONCILLA_ASSIGN(const auto attrs, ReadAttrs<ReadVariableAttrs>(node.attrs));
      return NoteVariable(attrs.variable, graph.fact(node.outputs[0]));
    }
    if (node.op->name == "AssignVariable") {
      ONCILLA_ASSIGN(const auto attrs, ReadAttrs<AssignVariableAttrs>(node.attrs));
      return NoteVariable(attrs.variable, graph.fact(node.inputs[0]));
    }
    const std::vector<std::string> called = CalledFunctions(node.op->name, node.attrs);
    const Facts in = graph.FactsOf(node.inputs), out = graph.FactsOf(node.outputs);
    const bool loop = node.op->name == "While";
    for (size_t i = 0; i < called.size(); ++i) {
      const auto found = functions_.find(called[i]);
      if (found == functions_.end()) return DataLoss("there is no function '", called[i], "'");
      calls_[self].insert(found->second);
      const Graph& function = module_.functions[found->second].second;
      const std::span<const Fact> arguments = std::span(in).subspan(loop ? 0 : 1);
      ONCILLA_TRY(SameTypes(arguments, FactsOfNames(function, function.inputs()), "arguments"));
      const Facts results = FactsOfNames(function, function.outputs());
      if (loop && i == 0) {
        const Fact decision[] = {Fact::Of(DType::kBool, PartialShape(Shape()))};
        ONCILLA_TRY(SameTypes(decision, results, "conditions"));
      } else {
        ONCILLA_TRY(SameTypes(out, results, "results"));
      }
    }
    return {};
  }

  // Repeatedly removes functions that call no remaining function; any that stay are recursive.
  Status CheckRecursion() {
    std::vector<size_t> left(calls_.size());
    std::vector<std::vector<size_t>> callers(calls_.size());
    std::vector<size_t> ready;
    for (size_t f = 0; f < calls_.size(); ++f) {
      left[f] = calls_[f].size();
      for (const size_t called : calls_[f]) callers[called].push_back(f);
      if (left[f] == 0) ready.push_back(f);
    }
    size_t done = 0;
    while (!ready.empty()) {
      const size_t f = ready.back();
      ready.pop_back();
      ++done;
      for (const size_t caller : callers[f]) {
        if (--left[caller] == 0) ready.push_back(caller);
      }
    }
    if (done == calls_.size()) return {};
    for (size_t f = 0; f < module_.functions.size(); ++f) {
      if (left[f] > 0) return DataLoss("function '", module_.functions[f].first, "' calls itself");
    }
    return DataLoss("the functions call themselves");
  }

  const Module& module_;
  std::map<std::string_view, size_t> functions_;
  VariableTypes& variables_;
  std::vector<std::set<size_t>> calls_;  // per function; the last is the main graph
};

bool Assigns(const ModuleMessage& module) {
  const auto assigns = [](const GraphMessage& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [](const NodeMessage& node) { return node.op == "AssignVariable"; });
  };
  return assigns(module.main) ||
         std::any_of(module.functions.begin(), module.functions.end(),
                     [&](const FunctionMessage& f) { return assigns(f.graph); });
}

}  // namespace

Result<Opened> OpenParts(std::shared_ptr<const MappedFile> file) {
  const std::string_view text = file->text();
  const auto damaged = [&](const auto&... what) {
    return WithStage(DataLoss(file->path(), ": ", what...), Stage::kFile);
  };
  const auto header = ReadHeader(text);
  if (!header.has_value()) return damaged("the header of the Oncilla model is damaged");
  if (header->version != kContainerVersion) {
    return WithStage(
        Unsupported(file->path(), ": an Oncilla model of version ", header->version,
                    "; this engine reads version ", kContainerVersion, "; convert the model again"),
        Stage::kFile);
  }
  if (header->graph_bytes > text.size() - kHeaderBytes || header->graph_bytes > INT32_MAX) {
    return damaged("the graph part is cut off");
  }
  if (header->weights_offset < kHeaderBytes + header->graph_bytes ||
      header->weights_offset > text.size() ||
      header->weights_bytes != text.size() - header->weights_offset) {
    return damaged("the weights are cut off");
  }
  const std::string_view graph = text.substr(kHeaderBytes, header->graph_bytes);
  // The graph part is copied, so that nobody can change it: the messages are views of it.
  Opened opened;
  opened.graph = std::make_shared<const std::string>(graph);
  if (Hash(*opened.graph) != header->graph_hash) {
    return damaged("the checksum of the graph part does not match");
  }
  auto model = std::make_shared<ModelMessage>();
  const Status read = ReadWire("the graph part", [&] { ReadMessage(*opened.graph, *model); });
  if (!read.ok()) return damaged(Message(read));
  for (const BlobMessage& blob : model->blobs) {
    if (blob.bytes > header->weights_bytes || blob.offset > header->weights_bytes - blob.bytes) {
      return damaged("a constant lies outside the weights");
    }
  }
  opened.weights = file->bytes().subspan(header->weights_offset);
  opened.model = std::move(model);
  opened.file = std::move(file);
  return opened;
}

// A kind that is unknown (written by a newer version) is read as a sequence, which is not a tensor.
static TensorInfo::Kind ReadKind(uint32_t kind) {
  constexpr auto kLast = TensorInfo::Kind::kOptionalSequence;
  if (kind > static_cast<uint32_t>(kLast)) return TensorInfo::Kind::kSequence;
  return static_cast<TensorInfo::Kind>(kind);
}

Signature ReadSignature(const SignatureMessage& message) {
  Signature signature;
  signature.key = message.key;
  const auto read = [](const auto& from, std::vector<TensorInfo>* to) {
    for (const TensorInfoMessage& info : from) {
      to->push_back({std::string(info.name), std::string(info.source),
                     DTypeFromName(info.type.dtype).value_or(DType::kInvalid), ReadShape(info.type),
                     ReadKind(info.kind)});
    }
  };
  read(message.inputs, &signature.inputs);
  read(message.outputs, &signature.outputs);
  return signature;
}

Result<Module> ReadModule(const Opened& opened, const ModuleMessage& message, const Part& part,
                          const std::shared_ptr<const OpSet>& ops, VariableTypes* variables) {
  // It is not recorded which outputs need an assignment, so no node may be left out.
  Part asked = part;
  asked.all_nodes = part.all_nodes || Assigns(message);
  if (!part.fetches.empty() && asked.all_nodes &&
      part.fetches.size() < message.main.outputs.size()) {
    return WithStage(Unsupported("the model changes its state, so its outputs come together only; "
                                 "convert it with the --outputs that you need"),
                     Stage::kOptions);
  }
  ONCILLA_ASSIGN(Graph main, GraphReader(opened, message.main, ops).Read(asked));
  Module module(std::move(main));
  for (const FunctionMessage& function : message.functions) {
    Part whole;
    whole.all_inputs = true;
    auto graph = GraphReader(opened, function.graph, ops).Read(whole);
    if (!graph.ok()) return In(graph.status(), StrCat("function '", function.name, "'"));
    module.functions.emplace_back(std::string(function.name), *std::move(graph));
  }
  for (const VariableMessage& variable : message.variables) {
    ModuleVariable to{std::string(variable.name), std::string(variable.resource), {}};
    if (variable.initial.has_value()) {
      auto tensor = ReadTensor(opened, *variable.initial);
      if (!tensor.ok()) {
        return In(tensor.status(), StrCat("variable '", variable.resource, "'"));
      }
      to.initial = *std::move(tensor);
    }
    module.variables.push_back(std::move(to));
  }
  ONCILLA_TRY(ModuleChecker(module, variables).Check());
  return module;
}

}  // namespace oncilla::container
