// Finds the checkpoint key of each variable's node, in two ways: by the object graph and by the
// restore graph.
#include "engine/import/tf/state/variables.h"

#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/import/tf/op_kinds.h"

namespace oncilla {
namespace {

constexpr char kObjectGraphKey[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

bool IsVariable(std::string_view op) {
  return op == "VarHandleOp" || op == "VariableV2" || op == "Variable";
}
bool IsTableImport(std::string_view op) {
  return op == "LookupTableImport" || op == "LookupTableImportV2";
}
bool IsAssign(std::string_view op) { return op == "Assign" || op == "AssignVariableOp"; }

// The node that an input leads to through identities; null if it leaves the body.
const TfNode* FindNode(const TfBody& body, const TfInput& input, int* output) {
  const TfInput* at = &input;
  for (int hops = 0; hops < 64; ++hops) {
    const int id = body.Find(at->node);
    if (id < 0) return nullptr;
    const TfNode& node = body.nodes[static_cast<size_t>(id)];
    if (node.op != "Identity" || node.inputs.empty()) {
      *output = at->index;
      return &node;
    }
    at = &node.inputs[0];
  }
  return nullptr;
}

// Reads the TrackableObjectGraph: the checkpoint key of each object that is a variable or a table.
std::vector<std::string> ReadObjectKeys(Bytes object_graph) {
  std::vector<std::string> keys;
  WireMessage graph(object_graph);
  while (graph.Next()) {
    if (graph.field() != 1) continue;
    std::string found;
    WireMessage object(graph.View());
    while (object.Next()) {
      if (object.field() != 2 || !object.is_view()) continue;
      Bytes name, key;
      WireMessage attribute(object.View());
      while (attribute.Next()) {
        if (attribute.field() == 1) name = attribute.View();
        if (attribute.field() == 3) key = attribute.View();
      }
      if (name == "VARIABLE_VALUE" || name == "table") found = key;
    }
    keys.push_back(std::move(found));
  }
  return keys;
}

}  // namespace

Status TfVariables::FollowObjectGraph() {
  if (checkpoint_->Find(kObjectGraphKey) == nullptr) return {};  // a TensorFlow 1 model
  ONCILLA_ASSIGN(const auto bound_inputs, model_.BoundInputs());
  ONCILLA_ASSIGN(const Tensor objects, checkpoint_->Read(kObjectGraphKey));
  if (objects.dtype() != DType::kString || objects.elements() != 1) {
    return DataLoss(checkpoint_->prefix(), ": the object graph is not one string");
  }
  std::vector<std::string>& keys = object_keys_;
  ONCILLA_TRY(ReadWire(StrCat(checkpoint_->prefix(), ": the object graph"),
                       [&] { keys = ReadObjectKeys(objects.strings()[0]); }));
  const TfBody& main = graph_->main();
  std::unordered_set<const TfNode*> ambiguous;
  // A call's last inputs are its function's captures; the object graph says which objects these
  // are.
  for (const TfNode& call : main.nodes) {
    const Bytes function_attr = call.FindAttr("f");
    if (function_attr.empty()) continue;
    const Result<Bytes> function = TfAttr(function_attr).Function();
    const auto bound = function.ok() ? bound_inputs.find(*function) : bound_inputs.end();
    if (bound == bound_inputs.end()) continue;
    const int first = call.data_inputs() - static_cast<int>(bound->second.size());
    for (int j = 0; first >= 0 && j < static_cast<int>(bound->second.size()); ++j) {
      int output = 0;
      const TfNode* handle = FindNode(main, call.inputs[static_cast<size_t>(first + j)], &output);
      const int64_t object = bound->second[static_cast<size_t>(j)];
      if (handle != nullptr) object_handles_.emplace(object, handle);
      if (handle == nullptr || !(IsVariable(handle->op) || IsTfTable(handle->op)) || object < 0 ||
          object >= static_cast<int64_t>(keys.size()) ||
          keys[static_cast<size_t>(object)].empty()) {
        continue;
      }
      if (IsTfTable(handle->op)) {
        const std::string& key = keys[static_cast<size_t>(object)];
        tables_.emplace(handle, std::make_pair(key + "-keys", key + "-values"));
        continue;
      }
      const Source source{keys[static_cast<size_t>(object)], ""};
      const auto [it, added] = from_objects_.emplace(handle, source);
      if (!added && it->second.key != source.key) ambiguous.insert(handle);
    }
  }
  // If two calls disagree on a variable, neither is trusted, and the restore graph decides.
  for (const TfNode* handle : ambiguous) from_objects_.erase(handle);
  return {};
}

Status TfVariables::ReadAssignments(const TfBody& body, const TfFunction* function,
                                    const TfNode* call) {
  std::unordered_map<const TfNode*, std::pair<std::vector<std::string>, std::vector<std::string>>>
      restores;
  for (const TfNode& assign : body.nodes) {
    const bool table = IsTableImport(assign.op);
    if (!(IsAssign(assign.op) || table) || assign.data_inputs() < (table ? 3 : 2)) continue;
    int output = 0;
    const TfNode* restore = FindNode(body, assign.inputs[1], &output);
    if (restore == nullptr || restore->op != "RestoreV2" || restore->data_inputs() < 3) continue;
    // Cache the names and slices of each RestoreV2 that an assignment reads from.
    auto known = restores.find(restore);
    if (known == restores.end()) {
      std::vector<std::string> lists[2];
      for (int i = 0; i < 2; ++i) {
        int ignored = 0;
        const TfNode* list = FindNode(body, restore->inputs[static_cast<size_t>(1 + i)], &ignored);
        if (list == nullptr || list->op != "Const") continue;
        ONCILLA_ASSIGN(const Tensor names, graph_->TensorAttr(*list, "value"));
        if (names.dtype() == DType::kString) lists[i] = names.strings();
      }
      known = restores.emplace(restore, std::make_pair(lists[0], lists[1])).first;
    }
    const auto& [names, slices] = known->second;
    if (output < 0 || output >= static_cast<int>(names.size())) continue;
    // The variable is in this body, or is what the call passes as an argument.
    const TfNode* handle = nullptr;
    int ignored = 0;
    if (function == nullptr) {
      handle = FindNode(body, assign.inputs[0], &ignored);
    } else {
      const int arg = function->FindArg(assign.inputs[0].node);
      if (arg >= 0 && arg < call->data_inputs()) {
        handle = FindNode(graph_->main(), call->inputs[static_cast<size_t>(arg)], &ignored);
      }
    }
    if (handle == nullptr || !(table ? IsTfTable(handle->op) : IsVariable(handle->op))) continue;
    if (table) {
      int values = 0;
      const TfNode* from = FindNode(body, assign.inputs[2], &values);
      if (from != restore || values < 0 || values >= static_cast<int>(names.size())) continue;
      tables_.emplace(handle, std::make_pair(names[static_cast<size_t>(output)],
                                             names[static_cast<size_t>(values)]));
      continue;
    }
    const auto k = static_cast<size_t>(output);
    from_restore_.emplace(handle, Source{names[k], k < slices.size() ? slices[k] : ""});
  }
  return {};
}

Status TfVariables::FollowRestoreGraph() {
  Bytes name = model_.restore_op();
  name = name.substr(0, name.find(':'));
  const TfBody& main = graph_->main();
  const int id = main.Find(name);
  if (id < 0) return {};
  const TfNode& restore = main.nodes[static_cast<size_t>(id)];
  const Bytes function_attr = restore.FindAttr("f");
  if (function_attr.empty()) {
    // TensorFlow 1: a NoOp that waits for all assignments. Assignments that restore are recognised
    // by their RestoreV2, so the control edges need not be followed.
    return ReadAssignments(main, nullptr, nullptr);
  }
  ONCILLA_ASSIGN(const Bytes function_name, TfAttr(function_attr).Function());
  ONCILLA_ASSIGN(const TfFunction* function, graph_->Function(function_name));
  return ReadAssignments(function->body, function, &restore);
}

// Finds variables to which the initialiser assigns the path of a file that came with the model.
void TfVariables::FindAssets() {
  const TfBody& main = graph_->main();
  for (const TfNode& assign : main.nodes) {
    if (!IsTfAssetPath(*graph_, assign)) continue;
    int output = 0;
    const TfNode* handle = FindNode(main, assign.inputs[0], &output);
    const auto asset = graph_->assets().find(assign.inputs[1].node);
    if (handle != nullptr) assets_[handle] = asset->second;
  }
}

bool IsTfAssetPath(const TfGraph& graph, const TfNode& assign) {
  return IsAssign(assign.op) && assign.data_inputs() >= 2 &&
         graph.assets().find(assign.inputs[1].node) != graph.assets().end();
}

Status TfVariables::Prepare() {
  ONCILLA_ASSIGN(graph_, model_.Graph());
  FindAssets();
  ONCILLA_ASSIGN(checkpoint_, model_.Variables());
  ONCILLA_TRY(FollowObjectGraph());
  ONCILLA_TRY(FollowRestoreGraph());
  prepared_ = true;
  return {};
}

Result<std::string> TfVariables::TensorOf(int64_t object) const {
  if (const auto known = object_handles_.find(object); known != object_handles_.end()) {
    return StrCat(known->second->name, ":0");
  }
  // Constants, and tensors captured by value, are in the graph under their own names.
  std::string found;
  int64_t id = 0;
  ONCILLA_TRY(ReadWire("the object graph", [&] {
    for (WireMessage graph(model_.object_graph()); graph.Next();) {
      if (graph.field() != 1 || id++ != object) continue;
      for (WireMessage wire(graph.View()); wire.Next();) {
        const bool constant = wire.field() == 9, captured = wire.field() == 12;
        if (!constant && !captured) continue;
        for (WireMessage value(wire.View()); value.Next();) {
          if (value.field() == 1) found = std::string(value.View());
        }
        if (constant && !found.empty()) found += ":0";
      }
    }
  }));
  const std::string_view name = std::string_view(found).substr(0, found.find(':'));
  if (!found.empty() && graph_->main().Find(name) >= 0) return found;
  // A captured variable is the one that is restored from the object's key.
  if (object >= 0 && object < static_cast<int64_t>(object_keys_.size())) {
    const std::string& key = object_keys_[static_cast<size_t>(object)];
    for (const auto& [handle, source] : from_restore_) {
      if (!key.empty() && source.key == key) return StrCat(handle->name, ":0");
    }
  }
  return std::string();
}

Result<std::vector<std::string>> TfVariables::Captures(const std::string& function) {
  ONCILLA_ASSIGN(const auto bound_inputs, model_.BoundInputs());
  std::vector<std::string> tensors;
  const auto bound = bound_inputs.find(function);
  if (bound == bound_inputs.end() || bound->second.empty()) return tensors;
  if (!prepared_) {
    const Status status = Prepare();
    if (!status.ok() && status.code() != Code::kNotFound) return status;
  }
  for (const int64_t object : bound->second) {
    ONCILLA_ASSIGN(std::string tensor, TensorOf(object));
    if (tensor.empty()) {
      return Unsupported("function '", function, "' captures object ", object,
                         " of the model, which no signature passes and nothing restores");
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<Tensor> TfVariables::Read(const TfNode& handle, const Source& source) {
  ONCILLA_ASSIGN(Tensor tensor, checkpoint_->ReadSlice(source.key, source.slice));
  const TfAttrs attrs = graph_->Attrs(handle);
  ONCILLA_ASSIGN(const int64_t tf_type, attrs.TypeNumber("dtype"));
  ONCILLA_ASSIGN(const PartialShape shape, attrs.Shape("shape"));
  if (DTypeFromTf(tf_type) != tensor.dtype() || !shape.Accepts(tensor.shape())) {
    return DataLoss("is a ", TfTypeName(tf_type), shape, " but the checkpoint's '", source.key,
                    "' is a ", tensor.desc());
  }
  return tensor;
}

Result<std::optional<TfTableContents>> TfVariables::Table(const TfNode& handle) {
  if (!prepared_) {
    Status status = Prepare();
    // Without a checkpoint there is nothing to restore.
    if (status.code() == Code::kNotFound) return std::optional<TfTableContents>();
    if (!status.ok()) return In(std::move(status), "its contents");
  }
  const auto table = tables_.find(&handle);
  if (table == tables_.end()) return std::optional<TfTableContents>();
  TfTableContents contents;
  ONCILLA_ASSIGN(contents.keys, checkpoint_->Read(table->second.first));
  ONCILLA_ASSIGN(contents.values, checkpoint_->Read(table->second.second));
  return std::optional<TfTableContents>(std::move(contents));
}

Result<Tensor> TfVariables::Value(const TfNode& handle) {
  if (!prepared_) {
    Status status = Prepare();
    if (!status.ok()) return In(std::move(status), "its value");
  }
  if (const auto asset = assets_.find(&handle); asset != assets_.end()) {
    return Tensor::Strings({}, {asset->second});
  }
  const auto object = from_objects_.find(&handle);
  const auto restore = from_restore_.find(&handle);
  if (object != from_objects_.end()) {
    Result<Tensor> tensor = Read(handle, object->second);
    // In files of some old versions object ids are wrong; then the restore graph is used.
    if (tensor.ok() || restore == from_restore_.end()) return tensor;
  }
  if (restore != from_restore_.end()) return Read(handle, restore->second);
  return NotFound("the checkpoint has no value for this variable");
}

}  // namespace oncilla
