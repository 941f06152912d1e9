// Writes modules as messages. Everything but the weights is laid out in memory first; then the
// constants are appended one by one from where they are stored.
#include <map>
#include <unordered_map>

#include "engine/import/container/bytes.h"
#include "engine/import/container/container.h"
#include "engine/import/container/messages.h"

namespace oncilla {
namespace {

// The constants of all modules; equal contents are stored once.
class Blobs {
 public:
  uint32_t Add(const Tensor& tensor) {
    const std::span<const std::byte> bytes = tensor.bytes();
    const uint64_t hash = container::Hash(bytes);
    auto& same = by_hash_[{hash, bytes.size()}];
    for (const uint32_t index : same) {
      const auto other = tensors_[index].bytes();
      if (std::equal(bytes.begin(), bytes.end(), other.begin(), other.end())) return index;
    }
    const auto index = static_cast<uint32_t>(tensors_.size());
    same.push_back(index);
    tensors_.push_back(tensor);
    const uint64_t offset = container::RoundUp(end_, container::kAlignment);
    messages_.push_back({offset, bytes.size(), {hash}});
    end_ = offset + bytes.size();
    return index;
  }

  uint64_t bytes() const { return end_; }
  const std::vector<container::BlobMessage>& messages() const { return messages_; }

  Status WriteTo(FileDraft& file) const {
    uint64_t at = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const uint64_t offset = messages_[i].offset;
      ONCILLA_TRY(file.Append(std::string(offset - at, '\0')));
      ONCILLA_TRY(file.Append(tensors_[i].bytes()));
      at = offset + tensors_[i].bytes().size();
    }
    return {};
  }

 private:
  std::vector<container::BlobMessage> messages_;
  std::vector<Tensor> tensors_;
  std::map<std::pair<uint64_t, size_t>, std::vector<uint32_t>> by_hash_;
  uint64_t end_ = 0;
};

// The messages hold views of names, so what they are built from must outlive them.

container::TypeMessage TypeOf(DType dtype, const PartialShape& shape,
                              ValueKind kind = ValueKind::kTensor) {
  container::TypeMessage out;
  out.kind = kind == ValueKind::kList ? 1 : 0;
  out.dtype = Name(dtype);
  out.ranked = shape.ranked();
  for (const Dim& dim : shape.dims()) {
    container::DimMessage& to = out.dims.emplace_back();
    if (dim.known()) {
      to.known = static_cast<uint64_t>(dim.size);
    } else if (!dim.name.empty()) {
      to.name = dim.name;
    }
  }
  return out;
}

Result<container::TensorMessage> TensorOf(const Tensor& tensor, Blobs& blobs) {
  if (tensor.is_list()) return Unsupported("a constant list cannot be stored");
  if (!tensor.valid()) return Internal("a constant has no data");
  container::TensorMessage out;
  out.dtype = Name(tensor.dtype());
  for (const int64_t size : tensor.shape()) out.dims.push_back(static_cast<uint64_t>(size));
  if (tensor.dtype() == DType::kString) {
    out.strings.assign(tensor.strings().begin(), tensor.strings().end());
  } else {
    out.blob = blobs.Add(tensor);
  }
  return out;
}

container::AttrMessage AttrOf(std::string_view name, const AttrValue& value) {
  container::AttrMessage out;
  out.name = name;
  std::visit(
      [&]<class T>(const T& v) {
        if constexpr (std::is_same_v<T, int64_t>) {
          out.i = WireSigned{v};
        } else if constexpr (std::is_same_v<T, double>) {
          out.f = v;
        } else if constexpr (std::is_same_v<T, bool>) {
          out.b = v;
        } else if constexpr (std::is_same_v<T, DType>) {
          out.dtype = Name(v);
        } else if constexpr (std::is_same_v<T, std::string>) {
          out.s = v;
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          out.ints.emplace();
          for (const int64_t item : v) out.ints->values.push_back({item});
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          out.floats.emplace().values = v;
        } else {
          out.strings.emplace().values.assign(v.begin(), v.end());
        }
      },
      value);
  return out;
}

Result<container::GraphMessage> GraphOf(const Graph& graph, Blobs& blobs) {
  container::GraphMessage out;
  std::vector<uint32_t> numbers(graph.values().size(), 0);
  uint32_t next = 0;
  for (const NamedValue& input : graph.inputs()) {
    const Fact& fact = graph.fact(input.value);
    if (fact.kind != ValueKind::kTensor && fact.kind != ValueKind::kList) {
      return Unsupported("input '", input.name, "' is ", fact);
    }
    out.inputs.push_back({input.name, TypeOf(fact.dtype, fact.shape, fact.kind)});
    numbers[Index(input.value)] = next++;
  }
  const auto readers = Consumers(graph);
  std::vector<bool> is_output(graph.values().size(), false);
  for (const NamedValue& output : graph.outputs()) is_output[Index(output.value)] = true;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    if (!value.is_constant() || (readers[i].empty() && !is_output[i])) continue;
    auto tensor = TensorOf(value.fact.value, blobs);
    if (!tensor.ok()) return In(tensor.status(), StrCat("constant '", value.name, "'"));
    out.constants.push_back({value.name, *std::move(tensor)});
    numbers[i] = next++;
  }
  for (const Node& node : graph.nodes()) {
    container::NodeMessage& to = out.nodes.emplace_back();
    to.name = node.name;
    to.op = node.op->name;
    for (const auto& [name, value] : node.attrs) to.attrs.push_back(AttrOf(name, value));
    for (const ValueId input : node.inputs) {
      to.inputs.push_back(input == kNoValue ? 0 : numbers[Index(input)] + 1);
    }
    for (const ValueId output : node.outputs) {
      numbers[Index(output)] = next++;
      to.output_names.emplace_back(graph.value(output).name);
    }
    if (node.sources.size() == 1 && node.sources[0] == node.name) continue;
    to.sources.assign(node.sources.begin(), node.sources.end());
  }
  for (const NamedValue& output : graph.outputs()) {
    out.outputs.push_back({output.name, numbers[Index(output.value)]});
  }
  return out;
}

Result<container::ModuleMessage> ModuleOf(const Module& module, Blobs& blobs) {
  container::ModuleMessage out;
  ONCILLA_ASSIGN(out.main, GraphOf(module.main, blobs));
  for (const auto& [name, graph] : module.functions) {
    auto function = GraphOf(graph, blobs);
    if (!function.ok()) return In(function.status(), StrCat("function '", name, "'"));
    out.functions.push_back({name, *std::move(function)});
  }
  for (const ModuleVariable& variable : module.variables) {
    container::VariableMessage& to = out.variables.emplace_back();
    to.name = variable.name;
    to.resource = variable.resource;
    if (!variable.initial.valid()) continue;
    auto initial = TensorOf(variable.initial, blobs);
    if (!initial.ok()) {
      return In(initial.status(), StrCat("variable '", variable.resource, "'"));
    }
    to.initial = *std::move(initial);
  }
  return out;
}

std::vector<container::TensorInfoMessage> InfosOf(const std::vector<TensorInfo>& from) {
  std::vector<container::TensorInfoMessage> out;
  for (const TensorInfo& info : from) {
    out.push_back(
        {info.name, info.source, TypeOf(info.dtype, info.shape), static_cast<uint32_t>(info.kind)});
  }
  return out;
}

container::SignatureMessage SignatureOf(const Signature& signature) {
  return {signature.key, InfosOf(signature.inputs), InfosOf(signature.outputs)};
}

}  // namespace

Status WriteContainer(const std::string& path, const ContainerContents& contents) {
  container::ModelMessage model;
  Blobs blobs;
  model.producer = "oncilla";
  model.source_format = contents.source_format;
  for (const ContainerContents::Entry& entry : contents.entries) {
    auto module = ModuleOf(entry.module, blobs);
    if (!module.ok()) {
      return In(module.status(), StrCat("signature '", entry.signature.key, "'"));
    }
    model.entries.push_back({SignatureOf(entry.signature), *std::move(module)});
  }
  for (const auto& [resource, module] : contents.initialisers) {
    auto message = ModuleOf(module, blobs);
    if (!message.ok()) return In(message.status(), StrCat("the initialiser of '", resource, "'"));
    model.initialisers.push_back({resource, *std::move(message)});
  }
  for (const auto& [name, module] : contents.targets) {
    auto message = ModuleOf(module, blobs);
    if (!message.ok()) return In(message.status(), StrCat("target '", name, "'"));
    model.targets.push_back({name, *std::move(message)});
  }
  model.blobs = blobs.messages();
  const std::string graph = WriteMessage(model);
  if (graph.size() > INT32_MAX) {
    return Exhausted("the graph without its weights is larger than 2 GB");
  }
  container::Header header;
  header.version = kContainerVersion;
  header.graph_bytes = graph.size();
  header.graph_hash = container::Hash(graph);
  header.weights_offset =
      container::RoundUp(container::kHeaderBytes + graph.size(), container::kPage);
  header.weights_bytes = blobs.bytes();
  ONCILLA_ASSIGN(FileDraft file, FileDraft::Create(path));
  ONCILLA_TRY(file.Append(container::WriteHeader(header)));
  ONCILLA_TRY(file.Append(graph));
  ONCILLA_TRY(file.Append(std::string(header.weights_offset - file.bytes_written(), '\0')));
  ONCILLA_TRY(blobs.WriteTo(file));
  return file.Commit();
}

}  // namespace oncilla
