// Converts a graph of the file to canonical nodes: every node is lowered by its row, in order.
//
// A scope defines what names mean: in the main graph, in one call of a function, in a graph
// attribute of a node. Each scope adds its nodes to a target: the Module's main graph, or a
// function that control flow calls. Inlined calls of functions, and branches that are known to be
// taken, add to the target around them. All of them share an OnnxImportState. Nodes with graphs are
// lowered by control.h, which opens scopes of its own.
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

// The message of a failure whose reasons are already in the list of unsupported ops.
inline constexpr std::string_view kOnnxGraphFailed = "its graph holds unsupported ops";

struct OnnxImportState {
  OnnxImportState(const OnnxModel& m, const OnnxContext& c,
                  const std::shared_ptr<const OpSet>& ops);

  const OnnxModel& model;
  const OnnxContext& context;
  Module module;
  UnsupportedList unsupported;
  // By domain, name and overload; of duplicates the first one is used.
  using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<FunctionKey, const OnnxFunction*> functions;
  // Names of the Module's functions.
  std::unordered_set<std::string> function_names;
  ImportBounds bounds;
  // Limit on the nodes that may still be lowered: bodies of loops are lowered several times, those
  // of nested loops even more often.
  int64_t budget = int64_t{1} << 22;
  // Limit on the nodes that inlined calls may still add: a small file could otherwise require any
  // number.
  int64_t unfolding = int64_t{1} << 20;

  // A name that no function has yet; it is then taken.
  std::string NewFunctionName(const std::string& wanted);
  // Drops the functions added since there were `size`: their callers are lowered again.
  void DropFunctions(size_t size);
};

// A graph of canonical nodes that is being built.
struct OnnxTarget {
  explicit OnnxTarget(Graph& g) : graph(g) {}
  Graph& graph;
  OnnxKinds optionals;
};

struct OnnxScope {
  OnnxScope(OnnxTarget& t, std::span<const OnnxNode> n, const OnnxOpsets& o)
      : target(t), nodes(n), opsets(o) {}
  // Reads constants and stated ranks from a graph of the file. DataLoss if two of its constants, or
  // two of its inputs, have the same name.
  Status Take(const OnnxGraph& graph);

  OnnxTarget& target;
  std::span<const OnnxNode> nodes;
  const OnnxOpsets& opsets;
  std::string prefix;  // prepended to node names
  int depth = 0;       // nesting depth of scopes
  // The model's own graph, whose tensors keep their names; null elsewhere.
  const OnnxGraph* main = nullptr;
  std::unordered_map<std::string_view, OnnxTensorData> initializers;
  std::unordered_map<std::string_view, int> ranks;  // as the file states them
  std::unordered_map<std::string_view, ValueId> values;
  // Tensors whose node is not supported, or depends on one that is not; with a reason if the node
  // is supported but not this output.
  struct Failed {
    std::string op, reason, node;
  };
  std::unordered_map<std::string_view, Failed> failed;

  // Whether the scope has a value of this name, or recorded it as failed.
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
  // The same for nodes whose order is known.
  Status BuildNodes(std::span<const size_t> order);
  // The value of a tensor. kNoValue if it could not be computed (this is in the list), and for an
  // input of a function that the call omits.
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
