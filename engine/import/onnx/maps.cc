// Rewrites a model before anything reads its graph: each map becomes two tensors, its keys and its
// values. A map that other nodes read as well stays a map.
#include "engine/import/onnx/maps.h"

#include <algorithm>
#include <unordered_set>

#include "engine/base/status.h"

namespace oncilla {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

bool Is(const OnnxNode& node, std::string_view op) { return node.domain == kMl && node.op == op; }

OnnxValueInfo Vector(std::string_view name, int64_t type) {
  OnnxValueInfo info;
  info.name = name;
  info.kind = OnnxKind::kTensor;
  info.element_type = type;
  info.shape = PartialShape(std::vector<Dim>(1));
  return info;
}

// The type of a ZipMap's keys, as a number of TensorProto.DataType: strings, or else 64-bit
// integers.
int64_t KeyType(const OnnxNode& zip) {
  constexpr int64_t kInt64 = 7, kString = 8;
  return zip.Find("classlabels_strings") != nullptr ? kString : kInt64;
}

class Teller {
 public:
  Teller(OnnxGraph& graph, std::deque<std::string>& names) : graph_(graph), names_(names) {
    for (const OnnxNode& node : graph.nodes) {
      for (const auto* list : {&node.inputs, &node.captures}) {
        for (const std::string_view name : *list) {
          read_.insert(name);
          if (!Is(node, "CastMap") && !Is(node, "DictVectorizer")) read_otherwise_.insert(name);
        }
      }
      taken_.insert(node.outputs.begin(), node.outputs.end());
    }
    for (const auto* list : {&graph.inputs, &graph.outputs}) {
      for (const OnnxValueInfo& info : *list) taken_.insert(info.name);
    }
    for (const auto& [name, tensor] : graph.initializers) taken_.insert(name);
  }

  void Outputs() {
    const size_t count = graph_.outputs.size();
    for (size_t i = 0; i < count; ++i) {
      const std::string_view name = graph_.outputs[i].name;
      const auto zip =
          std::find_if(graph_.nodes.begin(), graph_.nodes.end(), [&](const OnnxNode& n) {
            return Is(n, "ZipMap") && n.outputs.size() == 1 && n.outputs[0] == name;
          });
      if (zip == graph_.nodes.end() || read_.contains(name)) continue;
      const std::string_view labels = New(name, ".labels");
      if (labels.empty()) continue;
      constexpr int64_t kFloat = 1;
      OnnxValueInfo values = Vector(name, kFloat);
      values.shape = PartialShape();
      graph_.outputs[i] = values;
      graph_.outputs.push_back(Vector(labels, KeyType(*zip)));
      zip->outputs.push_back(labels);
    }
  }

  void Inputs() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const OnnxValueInfo map = graph_.inputs[i];
      if (map.kind != OnnxKind::kMap || read_otherwise_.contains(map.name)) continue;
      const std::string_view keys = New(map.name, ".keys"), values = New(map.name, ".values");
      if (keys.empty() || values.empty()) continue;
      for (OnnxNode& node : graph_.nodes) {
        if (node.inputs.size() == 1 && node.inputs[0] == map.name) node.inputs = {keys, values};
      }
      graph_.inputs[i] = Vector(keys, map.key_type);
      graph_.inputs.insert(graph_.inputs.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                           Vector(values, map.element_type));
    }
  }

 private:
  // The name with this ending; empty if the model uses that name already.
  std::string_view New(std::string_view name, std::string_view end) {
    std::string made = StrCat(name, end);
    if (taken_.contains(made)) return "";
    names_.push_back(std::move(made));
    taken_.insert(names_.back());
    return names_.back();
  }

  OnnxGraph& graph_;
  std::deque<std::string>& names_;
  std::unordered_set<std::string_view> read_, read_otherwise_, taken_;
};

}  // namespace

void TellOnnxMapsAsTensors(OnnxModel& model, std::deque<std::string>& names) {
  Teller teller(model.graph, names);
  teller.Outputs();
  teller.Inputs();
}

}  // namespace oncilla
