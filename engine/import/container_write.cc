// Modules to messages, and the file: everything but the weights is laid out in memory first, then
// the constants are appended one after another from where they lie.
#include <proto/oncilla.pb.h>

#include <map>
#include <unordered_map>

#include "engine/import/container.h"
#include "engine/import/container_bytes.h"

namespace oncilla {
namespace {

namespace pb = container::proto;

// The constants of all modules, each content once.
class Blobs {
 public:
  explicit Blobs(pb::Model* model) : model_(model) {}

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
    pb::Blob* blob = model_->add_blobs();
    blob->set_offset(container::RoundUp(end_, container::kAlignment));
    blob->set_bytes(bytes.size());
    blob->set_hash(hash);
    end_ = blob->offset() + bytes.size();
    return index;
  }

  uint64_t bytes() const { return end_; }

  Status WriteTo(FileDraft& file) const {
    uint64_t at = 0;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const uint64_t offset = model_->blobs(static_cast<int>(i)).offset();
      ONCILLA_TRY(file.Append(std::string(offset - at, '\0')));
      ONCILLA_TRY(file.Append(tensors_[i].bytes()));
      at = offset + tensors_[i].bytes().size();
    }
    return {};
  }

 private:
  pb::Model* model_;
  std::vector<Tensor> tensors_;
  std::map<std::pair<uint64_t, size_t>, std::vector<uint32_t>> by_hash_;
  uint64_t end_ = 0;
};

void SetType(DType dtype, const PartialShape& shape, pb::Type* out) {
  out->set_dtype(std::string(Name(dtype)));
  out->set_ranked(shape.ranked());
  for (const Dim& dim : shape.dims()) {
    pb::Dim* to = out->add_dims();
    if (dim.known()) {
      to->set_known(static_cast<uint64_t>(dim.size));
    } else if (!dim.name.empty()) {
      to->set_name(dim.name);
    }
  }
}

Status SetTensor(const Tensor& tensor, Blobs& blobs, pb::Tensor* out) {
  if (tensor.is_list()) return Unsupported("a constant list cannot be stored");
  if (!tensor.valid()) return Internal("a constant has no data");
  out->set_dtype(std::string(Name(tensor.dtype())));
  for (const int64_t size : tensor.shape()) out->add_dims(static_cast<uint64_t>(size));
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.strings()) out->add_strings(text);
  } else {
    out->set_blob(blobs.Add(tensor));
  }
  return {};
}

void SetAttr(const AttrValue& value, pb::Attr* out) {
  std::visit(
      [&]<class T>(const T& v) {
        if constexpr (std::is_same_v<T, int64_t>) {
          out->set_i(v);
        } else if constexpr (std::is_same_v<T, double>) {
          out->set_f(v);
        } else if constexpr (std::is_same_v<T, bool>) {
          out->set_b(v);
        } else if constexpr (std::is_same_v<T, DType>) {
          out->set_dtype(std::string(Name(v)));
        } else if constexpr (std::is_same_v<T, std::string>) {
          out->set_s(v);
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          out->mutable_ints()->mutable_values()->Add(v.begin(), v.end());
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          out->mutable_floats()->mutable_values()->Add(v.begin(), v.end());
        } else {
          out->mutable_strings();
          for (const std::string& text : v) out->mutable_strings()->add_values(text);
        }
      },
      value);
}

Status SetGraph(const Graph& graph, Blobs& blobs, pb::Graph* out) {
  std::vector<uint32_t> numbers(graph.values().size(), 0);
  uint32_t next = 0;
  for (const NamedValue& input : graph.inputs()) {
    const Fact& fact = graph.fact(input.value);
    pb::Graph::Input* to = out->add_inputs();
    to->set_name(input.name);
    if (fact.kind != ValueKind::kTensor && fact.kind != ValueKind::kList) {
      return Unsupported("input '", input.name, "' is ", fact);
    }
    SetType(fact.dtype, fact.shape, to->mutable_type());
    to->mutable_type()->set_kind(fact.kind == ValueKind::kList ? 1 : 0);
    numbers[Index(input.value)] = next++;
  }
  const auto readers = Consumers(graph);
  std::vector<bool> is_output(graph.values().size(), false);
  for (const NamedValue& output : graph.outputs()) is_output[Index(output.value)] = true;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const Value& value = graph.values()[i];
    if (!value.is_constant() || (readers[i].empty() && !is_output[i])) continue;
    pb::Graph::Constant* to = out->add_constants();
    to->set_name(value.name);
    Status status = SetTensor(value.fact.value, blobs, to->mutable_value());
    if (!status.ok()) return In(std::move(status), StrCat("constant '", value.name, "'"));
    numbers[i] = next++;
  }
  for (const Node& node : graph.nodes()) {
    pb::Graph::Node* to = out->add_nodes();
    to->set_name(node.name);
    to->set_op(std::string(node.op->name));
    for (const auto& [name, value] : node.attrs) {
      pb::Attr* attr = to->add_attrs();
      attr->set_name(name);
      SetAttr(value, attr);
    }
    for (const ValueId input : node.inputs) {
      to->add_inputs(input == kNoValue ? 0 : numbers[Index(input)] + 1);
    }
    for (const ValueId output : node.outputs) {
      numbers[Index(output)] = next++;
      to->add_output_names(graph.value(output).name);
    }
    if (node.sources.size() == 1 && node.sources[0] == node.name) continue;
    for (const std::string& source : node.sources) to->add_sources(source);
  }
  for (const NamedValue& output : graph.outputs()) {
    pb::Graph::Output* to = out->add_outputs();
    to->set_name(output.name);
    to->set_value(numbers[Index(output.value)]);
  }
  return {};
}

Status SetModule(const Module& module, Blobs& blobs, pb::Module* out) {
  ONCILLA_TRY(SetGraph(module.main, blobs, out->mutable_main()));
  for (const auto& [name, graph] : module.functions) {
    pb::Module::Function* to = out->add_functions();
    to->set_name(name);
    Status status = SetGraph(graph, blobs, to->mutable_graph());
    if (!status.ok()) return In(std::move(status), StrCat("function '", name, "'"));
  }
  for (const ModuleVariable& variable : module.variables) {
    pb::Module::Variable* to = out->add_variables();
    to->set_name(variable.name);
    to->set_resource(variable.resource);
    if (!variable.initial.valid()) continue;
    Status status = SetTensor(variable.initial, blobs, to->mutable_initial());
    if (!status.ok()) return In(std::move(status), StrCat("variable '", variable.resource, "'"));
  }
  return {};
}

void SetInfos(const std::vector<TensorInfo>& from,
              google::protobuf::RepeatedPtrField<pb::TensorInfo>* out) {
  for (const TensorInfo& info : from) {
    pb::TensorInfo* to = out->Add();
    to->set_name(info.name);
    to->set_source(info.source);
    SetType(info.dtype, info.shape, to->mutable_type());
  }
}

}  // namespace

Status WriteContainer(const std::string& path, const ContainerContents& contents) {
  pb::Model model;
  Blobs blobs(&model);
  model.set_producer("oncilla");
  model.set_source_format(contents.source_format);
  for (const ContainerContents::Entry& entry : contents.entries) {
    pb::Model::Entry* to = model.add_entries();
    to->mutable_signature()->set_key(entry.signature.key);
    SetInfos(entry.signature.inputs, to->mutable_signature()->mutable_inputs());
    SetInfos(entry.signature.outputs, to->mutable_signature()->mutable_outputs());
    Status status = SetModule(entry.module, blobs, to->mutable_module());
    if (!status.ok()) return In(std::move(status), StrCat("signature '", entry.signature.key, "'"));
  }
  for (const auto& [resource, module] : contents.initialisers) {
    pb::Model::Initialiser* to = model.add_initialisers();
    to->set_resource(resource);
    ONCILLA_TRY(In(SetModule(module, blobs, to->mutable_module()),
                   StrCat("the initialiser of '", resource, "'")));
  }
  for (const auto& [name, module] : contents.targets) {
    pb::Model::Target* to = model.add_targets();
    to->set_name(name);
    ONCILLA_TRY(In(SetModule(module, blobs, to->mutable_module()), StrCat("target '", name, "'")));
  }
  std::string graph;
  if (model.ByteSizeLong() > INT32_MAX || !model.SerializeToString(&graph)) {
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
