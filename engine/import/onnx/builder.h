// From a graph of the file to canonical nodes: every node lowered by its row, in order.
//
// A scope says what names mean: in the main graph, in one call of a function, in a graph that a
// node holds. Each adds its nodes to a target: the Module's main graph, or a function that control
// flow calls. Calls of functions, and branches that are known to be taken, add to the target around
// them. What all of them share is an OnnxImportState. Nodes that hold graphs are lowered by
// control.h, which opens scopes of its own.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/import/import_bounds.h"
#include "engine/import/onnx/lowering.h"
#include "engine/import/onnx/order.h"
#include "engine/import/unsupported_list.h"

namespace oncilla {

// The message of a failure whose reasons stand in the list of unsupported ops already.
inline constexpr std::string_view kOnnxGraphFailed = "its graph holds unsupported ops";

struct OnnxImportState {
  OnnxImportState(const OnnxModel& m, const OnnxContext& c,
                  const std::shared_ptr<const OpSet>& ops);

  const OnnxModel& model;
  const OnnxContext& context;
  Module module;
  UnsupportedList unsupported;
  // By domain, name and overload; the first of equal ones counts.
  using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<FunctionKey, const OnnxFunction*> functions;
  // Names of the Module's functions.
  std::unordered_set<std::string> function_names;
  ImportBounds bounds;
  // Nodes that may still be lowered: loops lower their bodies several times, loops within loops the
  // more often.
  int64_t budget = int64_t{1} << 22;
  // Nodes that calls of functions may still unfold to: a small file could stand for endless ones.
  int64_t unfolding = int64_t{1} << 20;

  // A name that no function has yet; remembered.
  std::string NewFunctionName(const std::string& wanted);
  // Drops the functions added since there were `size`: their callers are lowered again.
  void DropFunctions(size_t size);
};

// A graph of canonical nodes under way.
struct OnnxTarget {
  explicit OnnxTarget(Graph& g) : graph(g) {}
  Graph& graph;
  OnnxKinds optionals;
};

struct OnnxScope {
  OnnxScope(OnnxTarget& t, std::span<const OnnxNode> n, const OnnxOpsets& o)
      : target(t), nodes(n), opsets(o) {}
  // Takes constants and stated ranks from a graph of the file. DataLoss where a name stands for two
  // of its constants, or for two of its inputs.
  Status Take(const OnnxGraph& graph);

  OnnxTarget& target;
  std::span<const OnnxNode> nodes;
  const OnnxOpsets& opsets;
  std::string prefix;  // of node names
  int depth = 0;       // of scopes within each other
  // The model's own graph, whose tensors keep their names; null elsewhere.
  const OnnxGraph* main = nullptr;
  std::unordered_map<std::string_view, OnnxTensorData> initializers;
  std::unordered_map<std::string_view, int> ranks;  // as the file states them
  std::unordered_map<std::string_view, ValueId> values;
  // Tensors of nodes that are not supported, or depend on one; with a reason where the node is
  // supported but this output of it is not.
  struct Failed {
    std::string op, reason, node;
  };
  std::unordered_map<std::string_view, Failed> failed;

  // True when the scope has a value of this name, or had to do without.
  bool Knows(std::string_view name) const;
  std::string NameOf(const OnnxNode& node) const { return prefix + std::string(node.label()); }
};

class OnnxBuilder {
 public:
  // Both must outlive the builder.
  OnnxBuilder(OnnxImportState& state, OnnxScope& scope) : state_(state), scope_(scope) {}

  // Lowers the nodes that these tensors need. Unsupported nodes are added to the state's list;
  // other failures name the node. `given` are inputs that may have no value.
  Status Build(std::span<const std::string_view> wanted, OnnxNames given = {});
  // The same in an order that is known.
  Status BuildNodes(std::span<const size_t> order);
  // The value of a tensor. kNoValue when it could not be made, which is listed, and for an input of
  // a function that the call leaves out.
  Result<ValueId> Find(std::string_view name);

  OnnxImportState& state() { return state_; }
  OnnxScope& scope() { return scope_; }
  Graph& graph() { return scope_.target.graph; }

 private:
  Status LowerNode(const OnnxNode& node);
  Result<Values> LowerByRow(const OnnxNode& node, const OnnxOpRow& row, int64_t version,
                            Values inputs);
  Status Call(const OnnxNode& node, const OnnxFunction& function, const Values& inputs);
  Status DefineCalled(const OnnxNode& node, const OnnxFunction& function, OnnxBuilder& body);
  void Define(const OnnxNode& node, const Values& outputs);
  void SetValue(std::string_view name, ValueId value);
  void Fail(const OnnxNode& node);

  OnnxImportState& state_;
  OnnxScope& scope_;
};

}  // namespace oncilla
