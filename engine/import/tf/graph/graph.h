// A GraphDef in memory: nodes, attributes and functions as views into the file's bytes.
//
// This is the neutral form that the readers of SavedModels and frozen graphs fill and that
// functions.h flattens; nothing here knows which ops the engine supports. Function bodies are
// parsed on first request: a Keras model has hundreds that inference never calls. A TfGraph keeps
// its file mapped; views stay valid as long as it lives. It must be used by one thread at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/file.h"
#include "engine/import/tf/op_defs.h"
#include "engine/import/tf/tensor.h"

namespace oncilla {

// One input of a node, as the file spells it: "node", "node:1", "node:arg:1" (inside functions,
// where the argument names one of the producer's output arguments), or "^node".
struct TfInput {
  Bytes node;
  Bytes arg;
  int index = 0;
  bool control = false;
};
Result<TfInput> ParseTfInput(Bytes text);
std::ostream& operator<<(std::ostream& out, const TfInput& input);

// The value of one attribute. Every accessor fails with a message when the value is of another
// kind.
class TfAttr {
 public:
  explicit TfAttr(Bytes attr_value) : value_(attr_value) {}

  Result<int64_t> Int() const;
  Result<float> Float() const;
  Result<bool> Bool() const;
  Result<Bytes> String() const;
  Result<int64_t> TypeNumber() const;  // TensorFlow's DataType
  Result<PartialShape> Shape() const;
  Result<Bytes> TensorProto() const;
  Result<Bytes> Function() const;  // a function's name
  Result<std::vector<int64_t>> Ints() const;
  Result<std::vector<float>> Floats() const;
  Result<std::vector<Bytes>> Strings() const;
  Result<std::vector<int64_t>> TypeNumbers() const;
  Result<std::vector<PartialShape>> Shapes() const;
  Result<std::vector<Bytes>> Functions() const;

 private:
  Bytes value_;
};

// Keys, and a row of values for each.
struct TfTableContents {
  Tensor keys, values;
};

struct TfNode {
  Bytes name, op, device;
  std::vector<TfInput> inputs;  // data inputs first, then control inputs, as in the file
  std::vector<std::pair<Bytes, Bytes>> attrs;

  int data_inputs() const;
  Bytes FindAttr(std::string_view name) const;  // empty when absent
};
// "node 'a/b' (Conv2D)", for messages.
std::string Where(const TfNode& node);

// A node's attributes, with the defaults of its op definition for missing ones. A view: both
// arguments must outlive it. Failures name the node and the attribute.
class TfAttrs {
 public:
  TfAttrs(const TfNode& node, const TfOpDefs& defs) : node_(&node), defs_(&defs) {}

  bool Has(std::string_view name) const { return !Find(name).empty(); }
  Result<int64_t> Int(std::string_view name) const;
  Result<float> Float(std::string_view name) const;
  Result<bool> Bool(std::string_view name) const;
  Result<std::string> String(std::string_view name) const;
  Result<int64_t> TypeNumber(std::string_view name) const;
  Result<DType> Type(std::string_view name) const;  // fails for types that the engine lacks
  Result<PartialShape> Shape(std::string_view name) const;
  Result<Bytes> TensorProto(std::string_view name) const;
  Result<std::string> Function(std::string_view name) const;
  Result<std::vector<int64_t>> Ints(std::string_view name) const;
  Result<std::vector<float>> Floats(std::string_view name) const;
  Result<std::vector<std::string>> Strings(std::string_view name) const;
  Result<std::vector<int64_t>> TypeNumbers(std::string_view name) const;
  Result<std::vector<PartialShape>> Shapes(std::string_view name) const;

 private:
  Bytes Find(std::string_view name) const;
  template <class T>
  Result<T> Get(std::string_view name, Result<T> (TfAttr::*accessor)() const) const;
  Status Failed(std::string_view name, const Status& status) const;

  const TfNode* node_;
  const TfOpDefs* defs_;
};

// A list of nodes with an index by name: the main graph, or the body of a function.
struct TfBody {
  std::deque<TfNode> nodes;  // a deque, so that nodes do not move when more are added
  std::unordered_map<std::string_view, int> by_name;

  // Adds a NodeDef. Throws WireError; fails when the name is taken.
  Status Add(Bytes node_def);
  int Find(std::string_view name) const;  // -1 when absent
};

struct TfFunction {
  struct Arg {
    Bytes name;
    int64_t tf_type = 0;
  };
  Bytes name;
  std::vector<Arg> args, outputs;
  TfBody body;
  // Per output argument the body tensor that is returned.
  std::vector<TfInput> returns;
  // Body nodes that a call must run even if their outputs are not read.
  std::vector<Bytes> control_returns;

  std::unordered_map<std::string_view, int> arg_by_name;

  int FindArg(std::string_view name) const;  // -1 when absent
};

class TfGraph {
 public:
  // Reads a GraphDef and, if there is one, the OpList of the enclosing MetaGraph. `owner` keeps the
  // bytes alive; `file` is for messages.
  static Result<std::unique_ptr<TfGraph>> Parse(Bytes graph_def, Bytes op_list, std::string file,
                                                std::shared_ptr<const void> owner);

  // Adds the nodes of another GraphDef to the main graph.
  Status Extend(std::string graph_def);

  const TfBody& main() const { return main_; }
  const TfOpDefs& defs() const { return defs_; }
  const std::string& file() const { return file_; }
  int64_t producer_version() const { return producer_; }

  bool HasFunction(std::string_view name) const { return library_.count(name) != 0; }
  size_t function_count() const { return library_.size(); }
  // Parses the function's body on the first call; NotFound when there is no function of that name.
  Result<const TfFunction*> Function(std::string_view name);

  // The flat number of output `input` of `producer`, resolving a named output argument.
  Result<int> OutputIndex(const TfNode& producer, const TfInput& input) const;

  TfAttrs Attrs(const TfNode& node) const { return TfAttrs(node, defs_); }
  // Files that belong to the model: the constants of the graph that contain a file's path, with the
  // file's name in `folder`.
  void SetAssets(std::string folder, std::map<std::string, std::string, std::less<>> by_node) {
    asset_folder_ = std::move(folder);
    assets_ = std::move(by_node);
  }
  const std::map<std::string, std::string, std::less<>>& assets() const { return assets_; }
  // Opens such a file by its name; no other file of the machine can be opened.
  Result<std::shared_ptr<const MappedFile>> OpenAsset(const std::string& name) const;

  // The tensor attribute `attr` of a node (a constant's "value").
  Result<Tensor> TensorAttr(const TfNode& node, std::string_view attr);

 private:
  struct LibraryEntry {
    Bytes proto;
    std::unique_ptr<TfFunction> parsed;
  };
  Status ReadGraph(Bytes graph_def);
  Status ReadLibrary(Bytes library);

  std::string file_;
  std::shared_ptr<const void> owner_;
  std::deque<std::string> extensions_;
  TfBody main_;
  TfOpDefs defs_;
  std::unordered_map<std::string_view, LibraryEntry> library_;
  TfUnfoldBudget unfold_budget_;
  int64_t producer_ = 0;
  std::string asset_folder_;
  std::map<std::string, std::string, std::less<>> assets_;
};

// Whether a node assigns the path of such a file to a variable.
bool IsTfAssetPath(const TfGraph& graph, const TfNode& assign);

}  // namespace oncilla
