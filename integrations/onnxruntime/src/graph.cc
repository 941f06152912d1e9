// Reads a graph through the functions of ONNX Runtime.
#include "integrations/onnxruntime/src/graph.h"

#include <unordered_set>

namespace oncilla::ort {
namespace {

// The items of an array, from two functions that give its length and its contents.
template <class T, class Count, class Get, class Of>
std::vector<const T*> List(const Of* of, Count count, Get get) {
  size_t size = 0;
  Check(count(of, &size));
  std::vector<const T*> all(size);
  if (size > 0) Check(get(of, all.data(), size));
  return all;
}

// Records the value and returns its name; "" for null, which stands for an omitted one.
std::string Note(const OrtValueInfo* info, Graph& graph) {
  if (info == nullptr) return "";
  const char* text = nullptr;
  Check(Ort().GetValueInfoName(info, &text));
  std::string name = text == nullptr ? "" : text;
  if (name.empty() || graph.values.contains(name)) return name;
  GraphValue value;
  value.name = name;
  const OrtTypeInfo* type = nullptr;
  Check(Ort().GetValueInfoTypeInfo(info, &type));
  int kind = 0;
  if (type != nullptr) Check(Ort().GetOnnxTypeFromTypeInfo(type, &kind));
  if (kind == kOrtTensor) {
    const OrtTensorInfo* tensor = nullptr;
    Check(Ort().CastTypeInfoToTensorInfo(type, &tensor));
    value.tensor = tensor != nullptr;
    if (value.tensor) value.type = TypeOf(tensor);
  }
  bool constant = false;
  Check(Ort().ValueInfo_IsConstantInitializer(info, &constant));
  if (constant) Check(Ort().ValueInfo_GetInitializerValue(info, &value.constant));
  graph.values.emplace(name, std::move(value));
  return name;
}

std::vector<std::string> NoteAll(const std::vector<const OrtValueInfo*>& infos, Graph& graph) {
  std::vector<std::string> names;
  for (const OrtValueInfo* info : infos) names.push_back(Note(info, graph));
  return names;
}

std::string TextOf(OrtStatus* (*get)(const OrtNode*, const char**), const OrtNode* node) {
  const char* text = nullptr;
  Check(get(node, &text));
  return text == nullptr ? "" : text;
}

std::string KindOf(const std::string& domain, const std::string& op) {
  return domain.empty() ? op : domain + "." + op;
}

// Adds the kinds of the nodes of a graph and of the graphs in it. ONNX Runtime limits their depth.
void AddKinds(const OrtGraph* graph, std::vector<std::string>& kinds) {
  const Functions& ort = Ort();
  for (const OrtNode* node : List<OrtNode>(graph, ort.Graph_GetNumNodes, ort.Graph_GetNodes)) {
    size_t graphs = 0;
    Check(ort.Node_GetNumSubgraphs(node, &graphs));
    std::vector<const OrtGraph*> held(graphs);
    if (graphs > 0) Check(ort.Node_GetSubgraphs(node, held.data(), graphs, nullptr));
    kinds.push_back(
        KindOf(TextOf(ort.Node_GetDomain, node), TextOf(ort.Node_GetOperatorType, node)));
    for (const OrtGraph* inner : held) AddKinds(inner, kinds);
  }
}

}  // namespace

std::string GraphNode::Label() const {
  if (!name.empty()) return name;
  for (const std::string& output : outputs) {
    if (!output.empty()) return output;
  }
  return op;
}

std::string GraphNode::Kind() const { return KindOf(domain, op); }

Graph::Graph(const OrtGraph* graph) {
  const Functions& ort = Ort();
  inputs = NoteAll(List<OrtValueInfo>(graph, ort.Graph_GetNumInputs, ort.Graph_GetInputs), *this);
  outputs =
      NoteAll(List<OrtValueInfo>(graph, ort.Graph_GetNumOutputs, ort.Graph_GetOutputs), *this);
  for (const OrtNode* node : List<OrtNode>(graph, ort.Graph_GetNumNodes, ort.Graph_GetNodes)) {
    Add(node);
  }
  ReadNames(graph);
}

Graph::Graph(const OrtNode* node, const OrtGraph* within) {
  Add(node);
  for (const std::string& output : nodes[0].outputs) {
    if (!output.empty()) outputs.push_back(output);
  }
  ReadNames(within);
}

void Graph::Add(const OrtNode* node) {
  const Functions& ort = Ort();
  GraphNode read;
  read.node = node;
  read.name = TextOf(ort.Node_GetName, node);
  read.op = TextOf(ort.Node_GetOperatorType, node);
  read.domain = TextOf(ort.Node_GetDomain, node);
  read.inputs = NoteAll(List<OrtValueInfo>(node, ort.Node_GetNumInputs, ort.Node_GetInputs), *this);
  read.outputs =
      NoteAll(List<OrtValueInfo>(node, ort.Node_GetNumOutputs, ort.Node_GetOutputs), *this);
  read.captures = NoteAll(
      List<OrtValueInfo>(node, ort.Node_GetNumImplicitInputs, ort.Node_GetImplicitInputs), *this);
  size_t count = 0;
  Check(ort.Node_GetNumSubgraphs(node, &count));
  std::vector<const OrtGraph*> held(count);
  std::vector<const char*> attrs(count);
  if (count > 0) Check(ort.Node_GetSubgraphs(node, held.data(), count, attrs.data()));
  for (size_t i = 0; i < count; ++i) {
    read.graphs.emplace_back(attrs[i], held[i]);
    AddKinds(held[i], read.held);
  }
  nodes.push_back(std::move(read));
}

void Graph::ReadNames(const OrtGraph* graph) {
  const Functions& ort = Ort();
  const char* text = nullptr;
  Check(ort.Graph_GetName(graph, &text));
  name = text == nullptr ? "" : text;
  size_t sets = 0;
  Check(ort.Graph_GetNumOperatorSets(graph, &sets));
  std::vector<const char*> domains(sets);
  std::vector<int64_t> versions(sets);
  if (sets > 0) Check(ort.Graph_GetOperatorSets(graph, domains.data(), versions.data(), sets));
  for (size_t i = 0; i < sets; ++i) {
    opsets.emplace_back(domains[i] == nullptr ? "" : domains[i], versions[i]);
  }
}

std::string Graph::KeptBy(const GraphNode& node) const {
  if (!node.graphs.empty() && !TakesHoldersOfGraphs()) {
    return "it holds graphs, which ONNX Runtime hands over from 1.27 on; the nodes in them are "
           "taken "
           "instead";
  }
  for (const auto* list : {&node.inputs, &node.outputs, &node.captures}) {
    for (const std::string& name : *list) {
      if (name.empty()) continue;
      const GraphValue& v = value(name);
      if (!v.tensor)
        return "'" + name + "' is not a tensor, but a sequence, a map or an optional value";
      if (v.type.element <= 0 || v.type.element > kOrtLastElementType) {
        return "'" + name + "' has the element type " + std::to_string(v.type.element) +
               ", which cannot be handed over";
      }
    }
  }
  return "";
}

Boundary BoundaryOf(const Graph& graph, const std::vector<size_t>& nodes) {
  const std::unordered_set<size_t> inside(nodes.begin(), nodes.end());
  std::unordered_set<std::string> made, wanted(graph.outputs.begin(), graph.outputs.end());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (inside.contains(i)) {
      made.insert(node.outputs.begin(), node.outputs.end());
    } else {
      wanted.insert(node.inputs.begin(), node.inputs.end());
      wanted.insert(node.captures.begin(), node.captures.end());
    }
  }
  Boundary boundary;
  std::unordered_set<std::string> listed;
  for (const size_t i : nodes) {
    const GraphNode& node = graph.nodes[i];
    for (const auto* list : {&node.inputs, &node.captures}) {
      for (const std::string& name : *list) {
        if (name.empty() || made.contains(name) || graph.value(name).constant != nullptr) continue;
        if (listed.insert(name).second) boundary.inputs.push_back(name);
      }
    }
    for (const std::string& name : node.outputs) {
      if (name.empty() || !wanted.contains(name)) continue;
      if (listed.insert(name).second) boundary.outputs.push_back(name);
    }
  }
  return boundary;
}

}  // namespace oncilla::ort
