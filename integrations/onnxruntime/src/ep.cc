// Takes the nodes that the engine's importer accepts, in groups, and gives each group to the engine
// as a model in memory.
//
// The steps of Take: judge all nodes as one model, divide the accepted ones into groups
// (partition.h), judge each group by itself, and divide again without the nodes that were refused,
// until no group loses a node.
#include "integrations/onnxruntime/src/ep.h"

#include <algorithm>
#include <memory>

#include "integrations/onnxruntime/src/compute.h"
#include "integrations/onnxruntime/src/factory.h"
#include "integrations/onnxruntime/src/partition.h"

namespace oncilla::ort {
namespace {

// A group lacks the facts that the whole graph has of its inputs, so it is judged again separately.
// If a node is refused, the graph is divided again. Each round removes at least one node.
constexpr int kMostRounds = 16;

Session OpenSession(const Runtime& runtime, const std::string& device, const Options& options) {
  SessionOptions session;
  session.device = options.device.empty() ? device : options.device;
  session.config = options.config;
  auto opened = Session::Create(runtime, session);
  if (!opened.ok() && opened.status().code() == ONCILLA_INVALID_ARGUMENT) {
    const Failure failure(opened.status());
    throw Failure(failure.code(), std::string(failure.what()) +
                                      " (the provider's own options are " + kOwnOptions + ")");
  }
  return Value(std::move(opened));
}

// Keeps the bytes alive and in place for as long as the engine reads from them.
Model LoadModel(const Session& session, const std::string& name, std::string bytes) {
  const auto held = std::make_shared<std::string>(std::move(bytes));
  LoadOptions options;
  options.name = name;
  return Value(session.LoadBytes(held->data(), held->size(), options, [held] {}));
}

Predecessors PredecessorsOf(const Graph& graph) {
  std::unordered_map<std::string, size_t> made;
  Predecessors all(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const auto* list : {&graph.nodes[i].inputs, &graph.nodes[i].captures}) {
      for (const std::string& name : *list) {
        const auto it = made.find(name);
        if (it != made.end()) all[i].push_back(it->second);
      }
    }
    for (const std::string& name : graph.nodes[i].outputs) {
      if (!name.empty()) made.emplace(name, i);
    }
  }
  return all;
}

}  // namespace

Ep::Ep(Factory& factory, const Runtime& runtime, const std::string& device, const Options& options,
       const OrtLogger* logger)
    : OrtEp{},
      factory_(factory),
      options_(options),
      logger_(logger),
      device_(options.device.empty() ? device : options.device),
      session_(OpenSession(runtime, device, options)) {
  version = kStructVersion;
  GetName = [](const OrtEp*) { return kEpName; };
  GetCapability = &Ep::Capability;
  Compile = &Ep::CompileAll;
  ReleaseNodeComputeInfos = &Ep::ReleaseAll;
}

Ep::~Ep() = default;

OrtStatus* Ep::Capability(OrtEp* self, const OrtGraph* graph, OrtSupportInfo* info) {
  return Guard([&] { static_cast<Ep*>(self)->Take(graph, info); });
}

OrtStatus* Ep::CompileAll(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                          OrtNodeComputeInfo** infos, OrtNode**) {
  std::fill(infos, infos + count, nullptr);
  return Guard([&] {
    try {
      for (size_t i = 0; i < count; ++i) {
        infos[i] = static_cast<Ep*>(self)->CompileOne(graphs[i], fused[i]);
      }
    } catch (...) {
      ReleaseAll(self, infos, count);
      throw;
    }
  });
}

void Ep::ReleaseAll(OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    delete static_cast<class Compute*>(infos[i]);
    infos[i] = nullptr;
  }
}

void Ep::Take(const OrtGraph* ort_graph, OrtSupportInfo* info) {
  const Graph graph(ort_graph);
  if (GoesWithItsHolder(ort_graph)) return;
  WarnOfUnknownExclusions(ort_graph, graph);
  std::vector<std::string> reasons(graph.nodes.size());
  std::vector<bool> taken(graph.nodes.size());
  const std::vector<size_t> asked = Candidates(graph, taken, reasons);
  const Predecessors predecessors = PredecessorsOf(graph);
  std::vector<std::vector<size_t>> groups;
  if (!asked.empty()) Judge(graph, asked, taken, reasons);
  // Divides the claimed nodes into parts and judges each part as the model that it becomes. A
  // refused node leaves its part, which may split the part, so this repeats until all parts are
  // accepted. If that does not happen within the limit, nothing is claimed.
  for (int round = 0; round < kMostRounds; ++round) {
    groups = Partition(predecessors, taken);
    const auto small = [&](const std::vector<size_t>& group) {
      size_t size = 0;
      for (const size_t i : group) size += graph.nodes[i].size();
      return size < options_.min_nodes;
    };
    groups.erase(std::remove_if(groups.begin(), groups.end(), small), groups.end());
    bool all = true;
    for (const std::vector<size_t>& group : groups) {
      if (BoundaryOf(graph, group).outputs.empty()) {
        for (const size_t i : group) reasons[i] = "nothing reads what its part computes";
        for (const size_t i : group) taken[i] = all = false;
      } else if (group != asked) {
        all &= Judge(graph, group, taken, reasons);
      }
    }
    if (all) break;
    if (round + 1 == kMostRounds) groups.clear();
  }
  // Claims the nodes of the parts, and reports them and the reasons of the others.
  Taken report;
  report.graph = graph.name;
  std::vector<bool> gone(graph.nodes.size());
  for (const std::vector<size_t>& group : groups) {
    std::vector<const OrtNode*> nodes;
    for (const size_t i : group) {
      nodes.push_back(graph.nodes[i].node);
      gone[i] = true;
    }
    // The engine stores the constants itself, in the layout of its kernels.
    const OrtNodeFusionOptions fusion = {kStructVersion, true};
    Check(Ort().EpGraphSupportInfo_AddNodesToFuse(info, nodes.data(), nodes.size(), &fusion));
    size_t size = 0;
    for (const size_t i : group) size += graph.nodes[i].size();
    report.groups.push_back(size);
    report.taken += size;
    report.nodes += size;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (gone[i]) continue;
    ++report.nodes;  // graphs inside it are reported separately
    if (reasons[i].empty()) {
      reasons[i] = "the part around it has fewer than " + std::to_string(options_.min_nodes) +
                   " nodes (min_nodes)";
    }
    const GraphNode& node = graph.nodes[i];
    report.left.push_back({node.Label(), node.Kind(), reasons[i]});
  }
  Tell(report);
  const std::lock_guard<std::mutex> lock(mutex_);
  graphs_.push_back(std::move(report));
}

bool Ep::GoesWithItsHolder(const OrtGraph* graph) {
  const OrtNode* holder = nullptr;
  Check(Ort().Graph_GetParentNode(graph, &holder));
  if (holder == nullptr) return false;
  const Graph alone(holder, graph);
  const GraphNode& node = alone.nodes[0];
  // After this call, ONNX Runtime may expand a node that is a function (SequenceMap), with copies
  // of the graphs inside it. A group that was taken from the original is not known in these copies.
  if (!node.domain.empty() || (node.op != "If" && node.op != "Loop" && node.op != "Scan")) {
    return true;
  }
  if (node.graphs.empty()) return false;
  std::vector<std::string> reasons(1);
  std::vector<bool> taken(1);
  const std::vector<size_t> asked = Candidates(alone, taken, reasons);
  return !asked.empty() && node.size() >= options_.min_nodes && Judge(alone, asked, taken, reasons);
}

std::string Ep::ExcludedBy(const GraphNode& node) const {
  const std::set<std::string>& excluded = options_.exclude_ops;
  if (excluded.contains(node.Kind())) return "it is excluded (exclude_ops)";
  for (const std::string& kind : node.held) {
    if (excluded.contains(kind)) return "it holds " + kind + ", which is excluded (exclude_ops)";
  }
  return "";
}

void Ep::WarnOfUnknownExclusions(const OrtGraph* ort_graph, const Graph& graph) {
  const OrtNode* holder = nullptr;
  Check(Ort().Graph_GetParentNode(ort_graph, &holder));
  if (holder != nullptr) return;  // the graph around it is asked for later, and knows all ops
  std::set<std::string> kinds;
  for (const GraphNode& node : graph.nodes) {
    kinds.insert(node.Kind());
    kinds.insert(node.held.begin(), node.held.end());
  }
  for (const std::string& name : options_.exclude_ops) {
    if (kinds.contains(name)) continue;
    std::string hint;
    for (const std::string& kind : kinds) {
      if (kind.ends_with("." + name)) hint = "; it has '" + kind + "'";
    }
    Log(logger_, kOrtWarning,
        "oncilla: exclude_ops names '" + name + "', of which '" + graph.name +
            "' has no node after ONNX Runtime's optimisations" + hint);
  }
}

std::vector<size_t> Ep::Candidates(const Graph& graph, std::vector<bool>& taken,
                                   std::vector<std::string>& reasons) const {
  std::vector<size_t> asked;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    reasons[i] = ExcludedBy(graph.nodes[i]);
    if (reasons[i].empty()) reasons[i] = graph.KeptBy(graph.nodes[i]);
    taken[i] = reasons[i].empty();
    if (taken[i]) asked.push_back(i);
  }
  return asked;
}

bool Ep::Judge(const Graph& graph, const std::vector<size_t>& nodes, std::vector<bool>& taken,
               std::vector<std::string>& reasons) {
  const Boundary boundary = BoundaryOf(graph, nodes);
  std::string failed;
  std::vector<NodeJudgement> judged;
  try {
    judged = Value(LoadModel(session_, graph.name, ModelOf(graph, nodes, boundary)).JudgeNodes());
    if (judged.size() != nodes.size()) failed = "the engine sees other nodes than ONNX Runtime";
  } catch (const Failure& failure) {
    failed = failure.what();
  }
  bool all = true;
  for (size_t k = 0; k < nodes.size(); ++k) {
    const std::string& reason = failed.empty() ? judged[k].reason : failed;
    if (reason.empty()) continue;
    taken[nodes[k]] = all = false;
    reasons[nodes[k]] = reason;
  }
  return all;
}

OrtNodeComputeInfo* Ep::CompileOne(const OrtGraph* ort_graph, const OrtNode* fused) {
  const Graph graph(ort_graph);
  std::vector<size_t> nodes(graph.nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i] = i;
  // The names that the fused node reads and writes, in the node's order.
  const auto names = [](const OrtNode* node, auto count, auto get) {
    size_t size = 0;
    Check(count(node, &size));
    std::vector<const OrtValueInfo*> infos(size);
    if (size > 0) Check(get(node, infos.data(), size));
    std::vector<std::string> all;
    for (const OrtValueInfo* info : infos) {
      const char* name = nullptr;
      if (info != nullptr) Check(Ort().GetValueInfoName(info, &name));
      all.emplace_back(name == nullptr ? "" : name);
    }
    return all;
  };
  const std::vector<std::string> given =
      names(fused, Ort().Node_GetNumInputs, Ort().Node_GetInputs);
  Boundary boundary;
  boundary.outputs = names(fused, Ort().Node_GetNumOutputs, Ort().Node_GetOutputs);
  std::vector<Compute::Input> inputs;
  for (const std::string& name : BoundaryOf(graph, nodes).inputs) {
    const auto it = std::find(given.begin(), given.end(), name);
    if (it == given.end()) {
      throw Failure(kOrtFail, "oncilla: ONNX Runtime does not hand over '" + name + "'");
    }
    inputs.push_back({static_cast<size_t>(it - given.begin()), name});
    boundary.inputs.push_back(name);
  }
  const char* part = nullptr;
  Check(Ort().Node_GetName(fused, &part));
  Model model =
      LoadModel(session_, part == nullptr ? graph.name : part, ModelOf(graph, nodes, boundary));
  // Asking for the placement compiles the graph, which packs and uploads the weights, so that a
  // model that does not fit fails when the session is made. No plan is made, because inputs may
  // determine shapes by their values.
  Check(model.Placement().status());
  return new class Compute(std::move(model), std::move(inputs), boundary.outputs);
}

void Ep::Tell(const Taken& taken) const {
  if (taken.nodes == 0) return;
  Log(logger_, kOrtInfo,
      "oncilla takes " + std::to_string(taken.taken) + " of " + std::to_string(taken.nodes) +
          " nodes of '" + taken.graph + "' in " + std::to_string(taken.groups.size()) +
          " parts, on " + device_);
  if (!options_.log_nodes) return;
  for (const LeftNode& node : taken.left) {
    Log(logger_, kOrtWarning,
        "oncilla leaves '" + node.node + "' (" + node.op + "): " + node.reason);
  }
}

namespace {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

}  // namespace

std::string Ep::Report(bool json) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text = json ? "{\"device\": " + Quoted(device_) + ", \"graphs\": [" : "";
  for (size_t g = 0; g < graphs_.size(); ++g) {
    const Taken& taken = graphs_[g];
    if (json) {
      text += std::string(g == 0 ? "" : ", ") + "{\"graph\": " + Quoted(taken.graph) +
              ", \"nodes\": " + std::to_string(taken.nodes) +
              ", \"taken\": " + std::to_string(taken.taken) + ", \"parts\": [";
      for (size_t i = 0; i < taken.groups.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(taken.groups[i]);
      }
      text += "], \"left\": [";
      for (size_t i = 0; i < taken.left.size(); ++i) {
        const LeftNode& node = taken.left[i];
        text += std::string(i == 0 ? "" : ", ") + "{\"node\": " + Quoted(node.node) +
                ", \"op\": " + Quoted(node.op) + ", \"reason\": " + Quoted(node.reason) + "}";
      }
      text += "]}";
    } else {
      text += "graph '" + taken.graph + "' on " + device_ + ": " + std::to_string(taken.taken) +
              " of " + std::to_string(taken.nodes) + " nodes taken, in " +
              std::to_string(taken.groups.size()) + " parts\n";
      for (const LeftNode& node : taken.left) {
        text += "  left: '" + node.node + "' (" + node.op + "): " + node.reason + "\n";
      }
    }
  }
  auto memory = session_.MemoryReport(json);
  const std::string said = memory.ok() ? *memory : "";
  if (json) return text + "], \"memory\": " + (said.empty() ? "null" : said) + "}";
  return text + said;
}

}  // namespace oncilla::ort
