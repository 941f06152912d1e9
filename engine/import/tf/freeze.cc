// Copies the nodes that a fetch needs, with variables replaced by their values and functions
// specialised for this. Field numbers are those of graph.proto, node_def.proto, function.proto,
// op_def.proto, attr_value.proto and tensor.proto.
#include "engine/import/tf/freeze.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "engine/base/file.h"
#include "engine/import/tf/op_kinds.h"
#include "engine/import/tf/write.h"

namespace oncilla {

namespace {

constexpr int kMaxHops = 1 << 12;
constexpr size_t kMaxFunctions = 1 << 16;
constexpr int kMaxDepth = 64;

// Turns a text into a name that TensorFlow accepts for a node.
std::string NodeName(std::string_view text) {
  std::string name(text.substr(0, text.find(':')));
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  };
  for (char& c : name) {
    if (!word(c) && c != '_' && c != '-' && c != '/' && c != '>') c = '_';
  }
  if (name.empty() || !word(name[0])) name.insert(0, "t");
  return name;
}

std::string InputText(const TfInput& input) {
  if (input.control) return StrCat("^", input.node);
  if (!input.arg.empty()) return StrCat(input.node, ":", input.arg, ":", input.index);
  if (input.index != 0) return StrCat(input.node, ":", input.index);
  return std::string(input.node);
}

// Where a node is: in the main graph, or in a function, with the types of its arguments there.
struct Scope {
  const TfBody* body = nullptr;
  const TfFunction* function = nullptr;
  std::vector<int64_t> arg_types;
  const std::unordered_set<std::string_view>* wanted = nullptr;  // nodes of the main graph to write
};

class Freezer {
 public:
  Freezer(TfGraph& graph, const TfFreezeRequest& request) : graph_(graph), request_(request) {}

  Result<TfFrozenGraph> Run() {
    ONCILLA_TRY(ReadFeeds());
    std::vector<Site> fetches;
    for (const TensorInfo& info : request_.outputs) {
      ONCILLA_ASSIGN(const Site site, Find(info));
      fetches.push_back(site);
    }
    ONCILLA_TRY(Reach(fetches));
    for (std::string_view name : wanted_) taken_.emplace(name);
    ONCILLA_TRY(AddInputs());
    Scope main;
    main.body = &graph_.main();
    for (const TfNode& node : graph_.main().nodes) {
      if (wanted_.count(node.name) == 0) continue;
      ONCILLA_TRY(AddNode(main, node, 1, out_.graph_def));
    }
    ONCILLA_TRY(AddOutputs(fetches));
    WireRope versions;
    versions.Varint(1, static_cast<uint64_t>(graph_.producer_version()));
    out_.graph_def.Message(4, std::move(versions));
    if (library_.bytes() > 0) out_.graph_def.Message(2, std::move(library_));
    if (out_.graph_def.bytes() > uint64_t{INT32_MAX}) {
      return Unsupported("the frozen graph would take ", out_.graph_def.bytes(),
                         " bytes, and a GraphDef holds at most 2 GB; our own model file has no "
                         "such limit");
    }
    return std::move(out_);
  }

 private:
  using Site = std::pair<int, int>;  // node of the main graph, and output

  Result<Site> Find(const TensorInfo& info) {
    ONCILLA_ASSIGN(const TfInput input, ParseTfInput(info.source));
    const int node = graph_.main().Find(input.node);
    if (node < 0 || input.control) {
      return WithStage(Unsupported("'", info.name,
                                   "' is inside a called function; inputs and "
                                   "outputs of a frozen graph must be tensors of its main graph"),
                       Stage::kOptions);
    }
    ONCILLA_ASSIGN(const int output,
                   graph_.OutputIndex(graph_.main().nodes[static_cast<size_t>(node)], input));
    return Site{node, output};
  }

  const TfNode& NodeAt(const Site& site) const {
    return graph_.main().nodes[static_cast<size_t>(site.first)];
  }

  Status ReadFeeds() {
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      ONCILLA_ASSIGN(const Site site, Find(request_.inputs[i]));
      if (!feeds_.emplace(site, i).second) {
        return InvalidArgument("'", request_.inputs[i].name, "' is fed twice");
      }
    }
    return {};
  }

  // Collects the nodes that the fetches need through data and control edges, as TensorFlow prunes.
  Status Reach(const std::vector<Site>& fetches) {
    std::vector<Site> stack = fetches;
    while (!stack.empty()) {
      const Site site = stack.back();
      stack.pop_back();
      if (IsFed(site)) continue;
      const TfNode& node = NodeAt(site);
      if (!wanted_.insert(node.name).second) continue;
      for (const TfInput& input : node.inputs) {
        const int producer = graph_.main().Find(input.node);
        if (producer < 0) return Fail(node, DataLoss("its input '", input, "' is not there"));
        Site from{producer, 0};
        if (!input.control) {
          ONCILLA_ASSIGN(from.second, graph_.OutputIndex(NodeAt(from), input));
        }
        stack.push_back(from);
      }
    }
    return {};
  }

  bool IsFed(const Site& site) const { return feeds_.count(site) != 0; }

  std::string FreeName(std::string name) {
    const std::string base = name;
    for (int n = 1; !taken_.insert(name).second; ++n) name = StrCat(base, "_", n);
    return name;
  }

  Status AddInputs() {
    feed_names_.resize(request_.inputs.size());
    for (const auto& [site, i] : feeds_) {
      const TensorInfo& info = request_.inputs[i];
      const TfNode& source = NodeAt(site);
      int64_t type = tf_write::TypeOf(info.dtype);
      PartialShape shape = info.shape;
      if (source.op.substr(0, 11) == "Placeholder") {
        const TfAttrs attrs = graph_.Attrs(source);
        if (type == 0) type = attrs.TypeNumber("dtype").value_or(0);
        if (const auto own = attrs.Shape("shape"); own.ok() && !shape.ranked()) shape = *own;
      }
      for (const char* attr : {"dtype", "T", "DstT"}) {
        if (type == 0) type = graph_.Attrs(source).TypeNumber(attr).value_or(0);
      }
      if (type == 0) return InvalidArgument("the type of input '", info.name, "' is not known");
      feed_names_[i] = FreeName(NodeName(info.name));
      WireRope node = tf_write::NodeHead(feed_names_[i], "Placeholder");
      tf_write::AddAttr(node, "dtype", tf_write::TypeAttr(type));
      tf_write::AddAttr(node, "shape", tf_write::ShapeAttr(shape));
      out_.graph_def.Message(1, std::move(node));
      out_.inputs.emplace_back(info.name, feed_names_[i] + ":0");
    }
    return {};
  }

  // Identity nodes give outputs their names, unless they have them already.
  Status AddOutputs(const std::vector<Site>& fetches) {
    for (size_t i = 0; i < fetches.size(); ++i) {
      const TensorInfo& info = request_.outputs[i];
      const std::string source = MainInput(fetches[i]);
      const std::string wish = NodeName(info.name);
      const int64_t type = tf_write::TypeOf(info.dtype);
      const bool own = info.name == info.source || StrCat(wish, ":0") == info.source;
      if ((own && !IsFed(fetches[i])) || type == 0) {
        out_.outputs.emplace_back(info.name,
                                  source.find(':') == std::string::npos ? source + ":0" : source);
        continue;
      }
      const std::string name = FreeName(wish);
      WireRope node = tf_write::NodeHead(name, "Identity");
      node.Text(3, source);
      tf_write::AddAttr(node, "T", tf_write::TypeAttr(type));
      out_.graph_def.Message(1, std::move(node));
      out_.outputs.emplace_back(info.name, name + ":0");
    }
    return {};
  }

  // "node:1", or for a fed tensor the name of its placeholder.
  std::string MainInput(const Site& site) const {
    const auto feed = feeds_.find(site);
    if (feed != feeds_.end()) return feed_names_[feed->second];
    const TfNode& node = NodeAt(site);
    return site.second == 0 ? std::string(node.name) : StrCat(node.name, ":", site.second);
  }

  Status Fail(const TfNode& node, Status status) const {
    return WithNode(In(std::move(status), Where(node)), std::string(node.name));
  }

  // The type of the variable that a handle refers to; 0 for anything that is no variable's handle.
  Result<int64_t> HandleType(const Scope& scope, TfInput input) {
    for (int hops = 0; hops < kMaxHops; ++hops) {
      const int arg = scope.function == nullptr ? -1 : scope.function->FindArg(input.node);
      if (arg >= 0) {
        const auto a = static_cast<size_t>(arg);
        const bool was = scope.function->args[a].tf_type == kTfResourceType;
        return was && scope.arg_types[a] != kTfResourceType ? scope.arg_types[a] : int64_t{0};
      }
      const int id = scope.body->Find(input.node);
      if (id < 0) return DataLoss("the input '", input, "' is not there");
      const TfNode& node = scope.body->nodes[static_cast<size_t>(id)];
      if (scope.function == nullptr && IsFed({id, input.index})) return 0;
      const TfAttrs attrs = graph_.Attrs(node);
      if (node.op == "VarHandleOp") return attrs.TypeNumber("dtype");
      size_t from = 0;
      if (node.op == "While" || node.op == "StatelessWhile" || node.op == "IdentityN") {
        ONCILLA_ASSIGN(const auto types, attrs.TypeNumbers("T"));
        ONCILLA_ASSIGN(const int output, graph_.OutputIndex(node, input));
        if (output < 0 || output >= static_cast<int>(types.size())) return 0;
        if (types[static_cast<size_t>(output)] != kTfResourceType) return 0;
        from = static_cast<size_t>(output);
      } else if (IsCall(node)) {
        return 0;  // CallArguments refuses functions that return such a handle
      } else if (!attrs.Has("T") || attrs.TypeNumber("T").value_or(0) != kTfResourceType) {
        return 0;
      }
      if (from >= node.inputs.size() || node.inputs[from].control) return 0;
      input = node.inputs[from];
    }
    return Unsupported("its inputs lead through too many nodes");
  }

  bool IsCall(const TfNode& node) const {
    return node.op == "PartitionedCall" || node.op == "StatefulPartitionedCall" ||
           graph_.HasFunction(node.op);
  }

  // Copies the function for arguments of these types, and returns the copy's name. Handles of
  // variables become the values.
  Result<std::string> Specialise(std::string_view name, const std::vector<int64_t>& arg_types) {
    ONCILLA_ASSIGN(const TfFunction* function, graph_.Function(name));
    if (function->args.size() != arg_types.size()) {
      return DataLoss("gives ", arg_types.size(), " inputs to the function '", name,
                      "', which takes ", function->args.size());
    }
    const auto [known, added] = functions_.emplace(std::pair(std::string(name), arg_types), "");
    if (!added) {
      if (known->second.empty()) return Unsupported("the function '", name, "' calls itself");
      return known->second;
    }
    if (functions_.size() > kMaxFunctions) return Exhausted("too many functions");
    Scope scope;
    scope.body = &function->body;
    scope.function = function;
    scope.arg_types = arg_types;
    bool changed = false;
    for (size_t i = 0; i < arg_types.size(); ++i) {
      changed |= arg_types[i] != function->args[i].tf_type;
    }
    const std::string base = changed ? StrCat(name, "_frozen") : std::string(name);
    std::string new_name = base;
    for (int n = 1; !function_names_.insert(new_name).second; ++n) new_name = StrCat(base, "_", n);
    if (++depth_ > kMaxDepth) return Exhausted("calls are nested deeper than ", kMaxDepth);
    ONCILLA_TRY(AddFunction(scope, new_name));
    --depth_;
    return functions_[{std::string(name), arg_types}] = new_name;
  }

  static WireRope ArgDef(Bytes name, int64_t type) {
    WireRope arg;
    arg.Text(1, name);
    arg.Varint(3, static_cast<uint64_t>(type));
    return arg;
  }

  Status AddFunction(const Scope& scope, const std::string& name) {
    const TfFunction& function = *scope.function;
    WireRope signature, out;
    signature.Text(1, name);
    for (size_t i = 0; i < function.args.size(); ++i) {
      signature.Message(2, ArgDef(function.args[i].name, scope.arg_types[i]));
    }
    for (size_t i = 0; i < function.outputs.size(); ++i) {
      int64_t type = function.outputs[i].tf_type;
      if (type == kTfResourceType && i < function.returns.size()) {
        ONCILLA_ASSIGN(const int64_t handle, HandleType(scope, function.returns[i]));
        if (handle != 0) type = handle;
      }
      signature.Message(3, ArgDef(function.outputs[i].name, type));
    }
    if (!function.control_returns.empty()) signature.Varint(17, 1);  // is_stateful
    for (Bytes control : function.control_returns) signature.Text(20, control);
    out.Message(1, std::move(signature));
    for (const TfNode& node : function.body.nodes) ONCILLA_TRY(AddNode(scope, node, 3, out));
    for (size_t i = 0; i < function.returns.size() && i < function.outputs.size(); ++i) {
      WireRope entry;
      entry.Text(1, function.outputs[i].name);
      ONCILLA_ASSIGN(const std::string source, InputOf(scope, function.returns[i]));
      entry.Text(2, source);
      out.Message(4, std::move(entry));
    }
    for (Bytes control : function.control_returns) {
      WireRope entry;
      entry.Text(1, control);
      entry.Text(2, control);
      out.Message(6, std::move(entry));
    }
    library_.Message(1, std::move(out));
    return {};
  }

  // An input in the form that the copy uses.
  Result<std::string> InputOf(const Scope& scope, const TfInput& input) {
    if (scope.function == nullptr) {
      const int id = graph_.main().Find(input.node);
      if (id < 0) return DataLoss("the input '", input, "' is not there");
      Site site{id, 0};
      if (input.control) {
        return "^" + std::string(IsFed(site) && wanted_.count(input.node) == 0
                                     ? MainInput(site)
                                     : std::string(input.node));
      }
      ONCILLA_ASSIGN(site.second, graph_.OutputIndex(NodeAt(site), input));
      return MainInput(site);
    }
    // A read becomes an Identity, so its output is named as that of an Identity.
    TfInput named = input;
    const int id = scope.body->Find(input.node);
    if (id >= 0 && scope.body->nodes[static_cast<size_t>(id)].op == "ReadVariableOp" &&
        input.arg == "value") {
      named.arg = "output";
    }
    return InputText(named);
  }

  Status AddNode(const Scope& scope, const TfNode& node, uint32_t field, WireRope& to) {
    Status status = TryAddNode(scope, node, field, to);
    if (status.ok() || !Details(status).node.empty()) return status;
    return Fail(node, std::move(status));
  }

  Status TryAddNode(const Scope& scope, const TfNode& node, uint32_t field, WireRope& to) {
    if (IsTfVariable(node.op)) return AddVariable(scope, node, to);
    if (IsTfTable(node.op)) return Unsupported("a frozen graph cannot hold a table");
    if (IsTfStack(node.op)) return Unsupported("stacks are not written");
    if (IsTfWrite(node.op)) {
      return Unsupported("a frozen graph has no state, and this node changes some");
    }
    // Find out which inputs are handles of variables.
    std::vector<std::string> inputs;
    std::vector<int64_t> handles;  // per data input: the variable's type, or 0
    bool has_handle = false;
    for (const TfInput& input : node.inputs) {
      ONCILLA_ASSIGN(std::string text, InputOf(scope, input));
      inputs.push_back(std::move(text));
      if (input.control) continue;
      ONCILLA_ASSIGN(const int64_t handle, HandleType(scope, input));
      handles.push_back(handle);
      has_handle |= handle != 0;
    }
    std::string op(node.op);
    std::map<std::string, WireRope, std::less<>> changed;  // attributes with new values
    std::set<std::string, std::less<>> dropped;
    if (has_handle) {
      ONCILLA_TRY(TakeValues(scope, node, handles, field, to, op, inputs, changed, dropped));
    }
    ONCILLA_TRY(TakeFunctions(node, handles, op, changed));
    // Ops on references become ops on values.
    for (const char* name :
         {"RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefNextIteration", "RefIdentity"}) {
      if (op == name) op.erase(0, 3);
    }
    WireRope copy = tf_write::NodeHead(node.name, op);
    for (const std::string& input : inputs) copy.Text(3, input);
    for (const auto& [name, value] : node.attrs) {
      // Annotations of the exporter: where the node ran, and how Python code named it.
      if (name.substr(0, 1) == "_" || name == "config_proto" || name == "executor_type") continue;
      if (changed.count(name) > 0 || dropped.count(name) > 0) continue;
      WireRope entry;
      entry.Text(1, name);
      entry.View(2, value);
      copy.Message(5, std::move(entry));
    }
    for (auto& [name, value] : changed) tf_write::AddAttr(copy, name, std::move(value));
    to.Message(field, std::move(copy));
    return {};
  }

  Status AddVariable(const Scope& scope, const TfNode& node, WireRope& to) {
    if (scope.function != nullptr) return Unsupported("a variable that a function makes");
    ONCILLA_ASSIGN(Tensor value, request_.variable(node));
    ONCILLA_ASSIGN(const int64_t type, graph_.Attrs(node).TypeNumber("dtype"));
    out_.kept.push_back(std::move(value));
    ++out_.variables;
    WireRope copy = tf_write::NodeHead(node.name, "Const");
    tf_write::AddAttr(copy, "dtype", tf_write::TypeAttr(type));
    tf_write::AddAttr(copy, "value", tf_write::TensorAttr(out_.kept.back(), type));
    to.Message(1, std::move(copy));
    return {};
  }

  // Rewrites an op on a variable's handle to one on the variable's value.
  Status TakeValues(const Scope& scope, const TfNode& node, const std::vector<int64_t>& handles,
                    uint32_t field, WireRope& to, std::string& op, std::vector<std::string>& inputs,
                    std::map<std::string, WireRope, std::less<>>& changed,
                    std::set<std::string, std::less<>>& dropped) {
    const TfAttrs attrs = graph_.Attrs(node);
    const int64_t type = handles[0];
    const bool reads = op == "ReadVariableOp" || op == "VariableShape" || op == "ResourceGather" ||
                       op == "ResourceGatherNd";
    if (reads && (type == 0 || handles.size() != (op.find("Gather") == op.npos ? 1u : 2u))) {
      return DataLoss("its inputs are not a variable and, for a gather, indices");
    }
    if (op == "ReadVariableOp") {
      op = "Identity";
      dropped = {"dtype"};
      changed.emplace("T", tf_write::TypeAttr(type));
      return {};
    }
    if (op == "ResourceGather") {
      op = "GatherV2";
      const int64_t batch_dims = attrs.Int("batch_dims").value_or(0);
      const std::string axis = StrCat(node.name, "/axis_of_gather");
      WireRope constant = tf_write::NodeHead(axis, "Const");
      tf_write::AddAttr(constant, "dtype", tf_write::TypeAttr(tf_type::kInt32));
      out_.kept.push_back(
          Tensor::Of<int32_t>(DType::kI32, Shape(), std::vector{static_cast<int32_t>(batch_dims)}));
      tf_write::AddAttr(constant, "value", tf_write::TensorAttr(out_.kept.back(), tf_type::kInt32));
      to.Message(field, std::move(constant));
      inputs.insert(inputs.begin() + 2, scope.function == nullptr ? axis : axis + ":output:0");
      dropped = {"dtype", "validate_indices"};
      changed.emplace("Tparams", tf_write::TypeAttr(type));
      changed.emplace("Taxis", tf_write::TypeAttr(tf_type::kInt32));
      changed.emplace("batch_dims", tf_write::IntAttr(batch_dims));
      return {};
    }
    if (op == "ResourceGatherNd") {
      op = "GatherNd";
      dropped = {"dtype"};
      changed.emplace("Tparams", tf_write::TypeAttr(type));
      return {};
    }
    if (op == "VariableShape") {
      op = "Shape";
      changed.emplace("T", tf_write::TypeAttr(type));
      return {};
    }
    if (IsCall(node) || !TfControlFormOf(op).attrs.empty()) return {};  // see TakeFunctions
    if (op == "IdentityN") {
      ONCILLA_ASSIGN(auto types, attrs.TypeNumbers("T"));
      for (size_t i = 0; i < types.size() && i < handles.size(); ++i) {
        if (handles[i] != 0) types[i] = handles[i];
      }
      changed.emplace("T", tf_write::TypesAttr(types));
      return {};
    }
    static constexpr std::string_view kPass[] = {"Identity",      "Enter",  "Exit",
                                                 "NextIteration", "Switch", "Merge"};
    if (std::find(std::begin(kPass), std::end(kPass), op) == std::end(kPass)) {
      return Unsupported("a frozen graph has no variables, and this op needs one");
    }
    changed.emplace("T", tf_write::TypeAttr(type));
    return {};
  }

  // Specialises the functions that the node calls for the types that its arguments have now.
  Status TakeFunctions(const TfNode& node, const std::vector<int64_t>& handles, std::string& op,
                       std::map<std::string, WireRope, std::less<>>& changed) {
    const TfControlForm form = TfControlFormOf(node.op);
    const bool calls = IsCall(node);
    if (form.attrs.empty() && !calls) {
      for (const auto& [name, value] : node.attrs) {
        if (name.substr(0, 1) == "_") continue;
        const auto functions = TfAttr(value).Functions();
        if (TfAttr(value).Function().ok() || (functions.ok() && !functions->empty())) {
          return Unsupported("an op with a function that is not a call, loop or branch");
        }
      }
      return {};
    }
    // The argument types of a function: `shift` inputs come before those that are passed on.
    const auto arguments = [&](std::string_view function,
                               int shift) -> Result<std::vector<int64_t>> {
      ONCILLA_ASSIGN(const TfFunction* found, graph_.Function(function));
      std::vector<int64_t> types;
      for (const TfFunction::Arg& arg : found->args) {
        const int64_t input = static_cast<int64_t>(types.size()) + shift;
        const bool is_handle = input >= 0 && input < static_cast<int64_t>(handles.size()) &&
                               handles[static_cast<size_t>(input)] != 0;
        types.push_back(is_handle ? handles[static_cast<size_t>(input)] : arg.tf_type);
      }
      return types;
    };
    const auto specialise = [&](std::string_view function, int shift) -> Result<std::string> {
      ONCILLA_ASSIGN(const auto types, arguments(function, shift));
      return Specialise(function, types);
    };
    const auto retype = [&](std::string_view attr, size_t first) -> Status {
      ONCILLA_ASSIGN(auto types, graph_.Attrs(node).TypeNumbers(attr));
      for (size_t i = 0; i < types.size() && i + first < handles.size(); ++i) {
        if (handles[i + first] != 0) types[i] = handles[i + first];
      }
      changed.emplace(attr, tf_write::TypesAttr(types));
      return {};
    };
    if (calls) {
      if (graph_.HasFunction(node.op)) {
        ONCILLA_ASSIGN(op, specialise(node.op, 0));
        return {};
      }
      ONCILLA_ASSIGN(const std::string function, graph_.Attrs(node).Function("f"));
      ONCILLA_ASSIGN(const auto types, arguments(function, 0));
      ONCILLA_TRY(RefuseReturnedHandles(function, types));
      ONCILLA_ASSIGN(const std::string name, Specialise(function, types));
      changed.emplace("f", tf_write::FunctionAttr(name));
      return retype("Tin", 0);
    }
    // Control flow: each branch, condition and body is specialised.
    if (form.attrs[0] == "branches") {
      ONCILLA_ASSIGN(const auto branches, TfAttr(node.FindAttr("branches")).Functions());
      std::vector<std::string> names;
      for (Bytes branch : branches) {
        ONCILLA_ASSIGN(std::string name, specialise(branch, form.shift));
        names.push_back(std::move(name));
      }
      changed.emplace("branches", tf_write::FunctionsAttr(names));
    } else {
      for (std::string_view attr : form.attrs) {
        ONCILLA_ASSIGN(const std::string function, graph_.Attrs(node).Function(attr));
        ONCILLA_ASSIGN(const std::string name, specialise(function, form.shift));
        changed.emplace(attr, tf_write::FunctionAttr(name));
      }
    }
    const bool is_loop = node.op.find("While") != Bytes::npos || node.op == "For";
    ONCILLA_TRY(retype(is_loop ? "T" : "Tin", node.op == "For" ? 3 : is_loop ? 0 : 1));
    if (node.op == "For" || !is_loop) return {};
    // A handle is a scalar, but its variable's value need not be.
    auto shapes = graph_.Attrs(node).Shapes("output_shapes");
    if (!shapes.ok() || shapes->empty()) return {};
    WireRope list, value;
    for (size_t i = 0; i < shapes->size(); ++i) {
      const bool was_handle = i < handles.size() && handles[i] != 0;
      list.Message(7, tf_write::ShapeProto(was_handle ? PartialShape() : (*shapes)[i]));
    }
    value.Message(1, std::move(list));
    changed.emplace("output_shapes", std::move(value));
    return {};
  }

  Status RefuseReturnedHandles(std::string_view name, const std::vector<int64_t>& arg_types) {
    ONCILLA_ASSIGN(const TfFunction* function, graph_.Function(name));
    Scope scope;
    scope.body = &function->body;
    scope.function = function;
    scope.arg_types = arg_types;
    for (size_t i = 0; i < function->returns.size() && i < function->outputs.size(); ++i) {
      if (function->outputs[i].tf_type != kTfResourceType) continue;
      ONCILLA_ASSIGN(const int64_t handle, HandleType(scope, function->returns[i]));
      if (handle != 0) return Unsupported("its function returns a variable");
    }
    return {};
  }

  TfGraph& graph_;
  const TfFreezeRequest& request_;
  TfFrozenGraph out_;
  WireRope library_;
  std::map<Site, size_t> feeds_;
  std::vector<std::string> feed_names_;
  std::unordered_set<std::string_view> wanted_;
  std::set<std::string, std::less<>> taken_;
  std::map<std::pair<std::string, std::vector<int64_t>>, std::string> functions_;
  std::set<std::string> function_names_;
  int depth_ = 0;
};

}  // namespace

Result<TfFrozenGraph> FreezeTfGraph(TfGraph& graph, const TfFreezeRequest& request) {
  auto frozen = Freezer(graph, request).Run();
  if (frozen.ok()) return frozen;
  return WithStage(In(frozen.status(), StrCat(graph.file(), ": cannot be frozen")), Stage::kLoad);
}

Status WriteFrozenGraph(const std::string& path, const TfFrozenGraph& frozen) {
  ONCILLA_ASSIGN(FileDraft file, FileDraft::Create(path));
  for (Bytes part : frozen.graph_def.Parts()) ONCILLA_TRY(file.Append(part));
  return file.Commit();
}

}  // namespace oncilla
