// Finds the tensor of the checkpoint for each variable of the graph.
//
// There are two ways; names are never compared. First the object graph: a signature's call names a
// function, the object graph lists the objects that are that function's last arguments, and the
// checkpoint's own object graph gives an object's key. Second the restore graph, which TensorFlow
// runs to load: each assignment in it says which key it reads for which variable. Some models need
// the first, some the second; see the README. It must be used by one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "engine/import/tf/saved_model.h"

namespace oncilla {

class TfVariables {
 public:
  // `model` must outlive this object. Nothing is read until the first Value().
  explicit TfVariables(SavedModel& model) : model_(model) {}

  // The value of a variable by its node in the main graph (VarHandleOp, VariableV2). NotFound when
  // neither way finds it, DataLoss when dtype or shape contradict the node's own.
  Result<Tensor> Value(const TfNode& handle);
  // The tensors of the main graph that a function of the object graph captures: its last arguments.
  // Unimplemented, naming the tensor that is not found.
  Result<std::vector<std::string>> Captures(const std::string& function);
  // Keys and values of a table by its node in the main graph, if the checkpoint contains them,
  // which it does only for tables that change.
  Result<std::optional<TfTableContents>> Table(const TfNode& handle);

 private:
  struct Source {
    std::string key;
    std::string slice;  // RestoreV2's shape_and_slices; empty: the whole tensor
  };
  using Sources = std::unordered_map<const TfNode*, Source>;

  Status Prepare();
  // The tensor of the main graph for an object, given by its index in the object graph; empty if
  // none is found.
  Result<std::string> TensorOf(int64_t object) const;
  Status FollowObjectGraph();
  Status FollowRestoreGraph();
  void FindAssets();
  // The assignments in `body` whose value comes from a RestoreV2; `call` is the call node of the
  // main graph whose function `body` belongs to, or null for the main graph.
  Status ReadAssignments(const TfBody& body, const TfFunction* function, const TfNode* call);
  Result<Tensor> Read(const TfNode& handle, const Source& source);

  SavedModel& model_;
  bool prepared_ = false;
  TfGraph* graph_ = nullptr;
  Checkpoint* checkpoint_ = nullptr;
  Sources from_objects_, from_restore_;
  std::vector<std::string> object_keys_;                       // in the checkpoint; may be empty
  std::unordered_map<int64_t, const TfNode*> object_handles_;  // as calls pass them
  std::unordered_map<const TfNode*, std::pair<std::string, std::string>> tables_;  // keys, values
  std::unordered_map<const TfNode*, std::string> assets_;  // variables that hold a file's path
};

}  // namespace oncilla
