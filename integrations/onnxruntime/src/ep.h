// The provider in one session of ONNX Runtime: which nodes it takes, and how they are compiled.
#pragma once

#include <memory>
#include <mutex>
#include <oncilla/oncilla.hpp>
#include <string>
#include <vector>

#include "integrations/onnxruntime/src/graph.h"
#include "integrations/onnxruntime/src/options.h"

namespace oncilla::ort {

class Factory;

inline constexpr const char* kEpName = "OncillaExecutionProvider";

// A node that stays with ONNX Runtime.
struct LeftNode {
  std::string node, op, reason;
};

// The result of GetCapability, for the report.
struct Taken {
  std::string graph;
  size_t nodes = 0, taken = 0;
  std::vector<size_t> groups;  // nodes of each
  std::vector<LeftNode> left;
};

class Ep : public OrtEp {
 public:
  // Opens a session of the engine on `device`.
  Ep(Factory& factory, const Runtime& runtime, const std::string& device, const Options& options,
     const OrtLogger* logger);
  ~Ep();

  Factory& factory() { return factory_; }
  // What was taken and left, and the engine's memory report; text, or a JSON object.
  std::string Report(bool json) const;

 private:
  static OrtStatus* Capability(OrtEp* self, const OrtGraph* graph, OrtSupportInfo* info);
  static OrtStatus* CompileAll(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused,
                               size_t count, OrtNodeComputeInfo** infos, OrtNode** context_nodes);
  static void ReleaseAll(OrtEp* self, OrtNodeComputeInfo** infos, size_t count);

  void Take(const OrtGraph* graph, OrtSupportInfo* info);
  // Whether a graph within a node can be taken together with that node; the graph itself is then
  // not divided. ONNX Runtime asks for the graphs within nodes before the graphs around them.
  bool GoesWithItsHolder(const OrtGraph* graph);
  // The nodes that may be taken from ONNX Runtime.
  std::vector<size_t> Candidates(const Graph& graph, std::vector<bool>& taken,
                                 std::vector<std::string>& reasons) const;
  // Why the options leave a node to ONNX Runtime; empty if they do not.
  std::string ExcludedBy(const GraphNode& node) const;
  // Logs a warning for each op of exclude_ops that the model does not have.
  void WarnOfUnknownExclusions(const OrtGraph* ort_graph, const Graph& graph);
  // Marks the nodes of `nodes` that the engine cannot run as not taken, with the reason; true when
  // all of them can.
  bool Judge(const Graph& graph, const std::vector<size_t>& nodes, std::vector<bool>& taken,
             std::vector<std::string>& reasons);
  OrtNodeComputeInfo* CompileOne(const OrtGraph* graph, const OrtNode* fused);
  void Tell(const Taken& taken) const;

  Factory& factory_;
  const Options options_;
  const OrtLogger* const logger_;
  const std::string device_;
  Session session_;
  mutable std::mutex mutex_;
  std::vector<Taken> graphs_;
};

}  // namespace oncilla::ort
