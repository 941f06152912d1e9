// A SavedModel folder: its meta graph, signatures, graph, and the location of its variables.
//
// Opening maps saved_model.pb and reads names only. The graph's nodes, function bodies and
// variables are read when an import needs them. It must be used by one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/import/model_source.h"
#include "engine/import/tf/graph/graph.h"
#include "engine/import/tf/state/checkpoint.h"

namespace oncilla {

enum class TfFileKind { kSavedModel, kGraphDef, kUnknown };
// Detects the kind by content: a SavedModel begins with a version number and contains meta graphs,
// a GraphDef contains nodes. kUnknown for anything else.
TfFileKind DetectTfFile(Bytes bytes);

class SavedModel {
 public:
  // `tags`: the exact set to load; empty means {"serve"}, else the only set there is. NotFound
  // lists the sets when none matches. `file_name`: the graph's file in the folder; empty means
  // saved_model.pb, else saved_model.pbtxt. Its content tells whether it is binary or text. A
  // folder with an unsupported form (.cpb) is Unimplemented with an alternative.
  static Result<std::unique_ptr<SavedModel>> Open(const std::string& folder,
                                                  std::span<const std::string> tags,
                                                  const std::string& file_name = {});

  const std::string& folder() const { return folder_; }
  const std::vector<std::string>& tags() const { return tags_; }
  // All sets of tags, in the order of the file.
  const std::vector<std::vector<std::string>>& all_tags() const { return all_tags_; }
  // The chosen MetaGraphDef; lives as long as the model.
  Bytes meta_graph() const { return meta_graph_; }
  // Sorted by key, without TensorFlow's internal ones; inputs and outputs sorted by key. An entry
  // that is a sparse or composite tensor has no source.
  std::span<const Signature> signatures() const { return signatures_; }
  // The MetaGraph's nodes and functions, read on the first call.
  Result<TfGraph*> Graph();

  // The node that restores the variables (SaverDef); empty when the model has none.
  const std::string& restore_op() const { return restore_op_; }
  // The node that TensorFlow runs once after restoring, to fill tables; empty when the model has
  // none.
  const std::string& init_op() const { return init_op_; }
  // A SavedObjectGraph; empty for models of TensorFlow 1.
  Bytes object_graph() const { return object_graph_; }
  // For each function of the object graph the ids of the objects that are its last arguments.
  Result<std::map<Bytes, std::vector<int64_t>>> BoundInputs() const;

  // Opened together with the model. NotFound when the folder has no variables.
  Result<Checkpoint*> Variables();
  int64_t file_bytes() const;
  void AddTo(std::vector<std::shared_ptr<const MappedFile>>& files) const {
    files.push_back(file_);
    if (variables_ != nullptr) variables_->AddTo(files);
  }

 private:
  Status ReadMetaGraph(Bytes meta_graph);

  std::string folder_, path_;
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const void> owner_;  // of the bytes: the mapped file, or what a text became
  Bytes bytes_;
  std::vector<std::string> tags_;
  std::vector<std::vector<std::string>> all_tags_;
  Bytes meta_graph_;
  std::vector<Signature> signatures_;
  Bytes graph_def_, op_list_, object_graph_;
  std::string restore_op_, init_op_;
  std::map<std::string, std::string, std::less<>> assets_;  // constant's node -> file
  std::unique_ptr<TfGraph> graph_;
  std::unique_ptr<Checkpoint> variables_;
  Status no_variables_;  // why there are none; reported on use
};

}  // namespace oncilla
